"""The settings of all criteria for one partition, and how a flagged size is measured again."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, make_dataclass
from functools import cache
from typing import Annotated, Any, get_type_hints

from pydantic import Field, create_model

from netproof.criteria.counters import CountedSettings
from netproof.criteria.findings import Bounds, Finding
from netproof.criteria.registry import CRITERIA
from netproof.errors import NetproofError
from netproof.intake.models import Written
from netproof.measurement.disturbance import DisturbanceSettings


@dataclass(frozen=True)
class ConfirmSettings:
    """How a flagged size, and what is beyond a bound, is measured again.

    ``launches``: at least so many repeats; ``most_launches``: at most so many of a case, the first
    ones included; ``sizes``: at least so many between half and twice the flagged size;
    ``element_bytes``: the unit of a size, 4 for IMB's reductions; ``least_bytes``, ``most_bytes``:
    the messages to measure, but for a flagged size's neighbour. ``slopes``: neighbouring slopes
    d(ln t)/d(ln n) that differ by this are measured at closer sizes; None: none are.
    """

    launches: Annotated[int, Field(ge=3)] = 3
    most_launches: Annotated[int, Field(ge=3, title="all launches, 3 or more")] = 12
    sizes: Annotated[int, Field(ge=8)] = 8
    element_bytes: int = 1
    least_bytes: int = 1
    most_bytes: int | None = None
    slopes: Annotated[
        float | None,
        Field(gt=0, allow_inf_nan=False, title="a number above 0, or None to refine nothing"),
    ] = None


_BY_KEY = {criterion.key: criterion for criterion in CRITERIA}
_OF_ALL = {
    "curves": (Bounds(), ("least_size",)),
    "counters": (CountedSettings(), ("not_known",)),
    "confirm": (ConfirmSettings(), ("most_launches",)),
    "disturbance": (DisturbanceSettings(), ("others", "steal")),
    "refine": (ConfirmSettings(), ("slopes",)),
}
"""Keys that are no criteria's, with their defaults, and what a site may change of them."""

_DEFAULTS = {name: criterion.bounds for name, criterion in _BY_KEY.items()} | {
    name: default for name, (default, _) in _OF_ALL.items()
}

_Fields = make_dataclass(
    "_Fields",
    [(name, type(default), default) for name, default in _DEFAULTS.items()],
    frozen=True,
)


# Its fields are the keys of the criteria, which only their modules name.
class Settings(_Fields):  # type: ignore[misc, valid-type]
    """The settings of every criterion by its keys, as a site may change them for a partition.

    No criteria are ``curves`` and ``counters``, which hold for all along a curve and of counters;
    ``confirm``, ``refine`` and ``disturbance``: how often to repeat, where to measure at closer
    sizes, and from where on a launch counts as disturbed.
    """

    @classmethod
    def of_site(
        cls, changes: Mapping[str, Mapping[str, Any]], line_rate_from_bytes: int
    ) -> Settings:
        """Return the defaults with a partition's ``changes``: criterion to setting to value.

        ``line_rate_from_bytes``: the least size of the loss of MPI. Raises NetproofError.
        """
        # A session has few partitions, and each of its cases asks.
        return _of_site(json.dumps(changes, default=repr), line_rate_from_bytes)

    def _with(self, name: str, values: Mapping[str, Any]) -> Settings:
        criteria = [name for name in _DEFAULTS if set_by_sites(name)]
        if name not in criteria:
            raise NetproofError(f"{name!r} is no criterion; those are {', '.join(criteria)}")
        if not isinstance(values, dict):
            raise NetproofError(f"{name!r} is {values!r}, and has to be a dictionary of settings")
        old = getattr(self, name)
        kinds = get_type_hints(type(old), include_extras=True)
        # All are optional, and None means no bound.
        known: dict[str, Any] = {
            key: (kinds[key], getattr(old, key)) for key in sorted(set_by_sites(name))
        }
        model = create_model(name, __base__=Written, **known)
        try:
            model.of_site(values)
            return dataclasses.replace(self, **{name: dataclasses.replace(old, **values)})
        except NetproofError as error:
            raise NetproofError(f"{name!r}: {error}") from error


def set_by_sites(name: str) -> tuple[str, ...]:
    """Return the settings of a key that a site may change."""
    if name in _OF_ALL:
        return _OF_ALL[name][1]
    return _BY_KEY[name].sets if name in _BY_KEY else ()


@cache
def _of_site(changes: str, line_rate_from_bytes: int) -> Settings:
    asked, settings = json.loads(changes), Settings()
    for name in ("curves", "counters"):
        if name in asked:
            settings = settings._with(name, asked.pop(name))
    shared = {}
    for name, criterion in _BY_KEY.items():
        if isinstance(criterion.bounds, CountedSettings):
            values = {"not_known": settings.counters.not_known}
        elif criterion.of_all_sizes:
            continue
        else:
            peaks = line_rate_from_bytes if criterion.of_peaks else 0
            least = max(settings.curves.least_size, peaks)
            values = {"least_size": asked.get(criterion.sizes_of, {}).get("least_size", least)}
        shared[name] = dataclasses.replace(criterion.bounds, **values)
    settings = dataclasses.replace(settings, **shared)
    for name, values in asked.items():
        settings = settings._with(name, values)
    return settings


_WORDS = {
    **{"warn": "warns at {}", "fail": "fails at {}", "least_size": "from {} bytes"},
    **{"warn_below": "warns below {}", "fail_below": "fails below {}"},
}
"""Bounds in words; other settings have their names."""


def own_bounds(changes: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what a partition's settings change of the defaults, in words; empty for nothing."""
    found = []
    for name, values in changes.items():
        bounds, parts = _DEFAULTS[name], []
        for key, value in values.items():
            default, of_bounds = getattr(bounds, key), key in _WORDS and key != "least_size"
            in_words = bounds.in_words if of_bounds and isinstance(bounds, Bounds) else str
            now, then = ("none" if one is None else in_words(one) for one in (value, default))
            said = _WORDS.get(key, f"{key} {{}}").format(now) if now != "none" else f"no {key}"
            parts += [f"{said} (default {then})"] if value != default else []
        found += [f"{name} {', '.join(parts)}"] if parts else []
    return "; ".join(found)


def dense_sizes(flagged: Finding, settings: ConfirmSettings = ConfirmSettings()) -> tuple[int, ...]:
    """Return the sizes in bytes at which a flagged size is measured again.

    From half to twice the flagged size, evenly spaced in their logarithms, with its neighbours and
    the sizes that it was compared with. Raises NetproofError for a finding without a size.
    """
    size, window, neighbours = _around(flagged, settings)
    element, steps = settings.element_bytes, settings.sizes
    while True:
        powers = (4 ** (step / (steps - 1)) for step in range(steps))
        dense = {round(size / 2 * power / element) * element for power in powers}
        dense = {one for one in dense if one in window} | neighbours
        if len(dense) >= min(settings.sizes, len(window)):
            return tuple(sorted(dense | set(flagged.compared_sizes)))
        steps += settings.sizes


def needed_sizes(
    flagged: Finding, settings: ConfirmSettings = ConfirmSettings()
) -> tuple[range, frozenset[int]]:
    """Return the window and the sizes that a repeat needs where it cannot take ``dense_sizes``.

    ``settings.sizes`` of the window are needed, and all of the sizes. Raises NetproofError for a
    finding without a size.
    """
    _, window, neighbours = _around(flagged, settings)
    return window, frozenset(neighbours | set(flagged.compared_sizes))


def _around(flagged: Finding, settings: ConfirmSettings) -> tuple[int, range, set[int]]:
    """Return a flagged size, the multiples of an element around it, and its neighbours."""
    size, element = flagged.size, settings.element_bytes
    if size is None or size < 1:
        raise NetproofError(
            f"{flagged.criterion} of {flagged.where} is about no size to measure again"
        )
    last = 2 * size
    if settings.most_bytes is not None:
        last = min(last, max(settings.most_bytes, size + element))
    least = max(min(settings.least_bytes, size), size / 2)
    window = range(max(1, math.ceil(least / element)) * element, last + 1, element)
    neighbours = {one for one in (size - element, size, size + element) if one in window}
    return size, window, neighbours
