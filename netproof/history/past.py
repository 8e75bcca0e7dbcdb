"""A series' earlier changes, and the state of series after a night, to continue from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netproof.history.changes import Change, ChangeKind
from netproof.history.night import Estimate, Floats


@dataclass
class OpenStep:
    """A step that a series is in, and the level to return to where it ends.

    ``nights`` made the level before, ``known`` is its estimate, ``prior`` the noise known before
    it; ``since`` and ``long_ago`` are the series' own of that time.
    """

    index: int
    found: int
    nights: list[int]
    known: Estimate
    prior: float
    since: int
    long_ago: Floats


@dataclass(frozen=True)
class BegunLevel:
    """An intended new level without a found change; ``level``: that before it."""

    index: int
    level: float


@dataclass
class SeriesPast:
    """A series' past: changes that are over, and steps and a drift that it is in.

    ``aside``: its last night, as a bad one, until the next shows whether it is.
    """

    over: list[Change | BegunLevel] = field(default_factory=list)
    steps: list[OpenStep] = field(default_factory=list)
    drift: Change | None = None
    aside: Change | None = None


NO_PAST = SeriesPast()


@dataclass(frozen=True)
class FollowedState:
    """State of series after a night, to continue from.

    ``logs``: series x nights, the values so far; ``accepted``: of each series, the nights at which
    an intended level begins; ``arrays`` and ``past``: those of ``Followers``, the latter as plain
    values, for series that have any.
    """

    logs: Floats
    accepted: tuple[frozenset[int], ...]
    arrays: dict[str, NDArray[Any]]
    past: dict[int, dict[str, Any]]


def plain_past(past: SeriesPast) -> dict[str, Any]:
    """Return the JSON values for ``read_past``; floats in hexadecimal, which loses nothing."""
    return {
        "over": [_plain(one) for one in past.over],
        "steps": [_plain(one) for one in past.steps],
        "drift": None if past.drift is None else _plain(past.drift),
        "aside": None if past.aside is None else _plain(past.aside),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Estimate):
        return [_plain(array.ravel().tolist()) for array in value.arrays]
    if isinstance(value, Change | BegunLevel | OpenStep):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, np.ndarray | list):
        return [_plain(one) for one in value]
    if isinstance(value, np.integer):
        return int(value)
    return float(value).hex() if isinstance(value, float) else value


def read_past(values: Mapping[str, Any]) -> SeriesPast:
    """Read a series' past; KeyError, TypeError or ValueError for invalid values."""
    return SeriesPast(
        [_read_begun(one) if "level" in one else _read_change(one) for one in values["over"]],
        [_read_step(one) for one in values["steps"]],
        None if values["drift"] is None else _read_change(values["drift"]),
        None if values["aside"] is None else _read_change(values["aside"]),
    )


def _read_begun(values: Mapping[str, Any]) -> BegunLevel:
    return BegunLevel(int(values["index"]), float.fromhex(values["level"]))


def _read_change(values: Mapping[str, Any]) -> Change:
    floats = ("before", "after", "size", "p_value")
    read = {name: float.fromhex(values[name]) for name in floats}
    return Change(**{**values, **read, "kind": ChangeKind(values["kind"])})


def _read_step(values: Mapping[str, Any]) -> OpenStep:
    level, noise, freedom, count, tail = (
        np.array([float.fromhex(one) for one in several]) for several in values["known"]
    )
    known = Estimate(level, noise, freedom, count, tail.reshape(1, -1))
    long_ago = np.array([float.fromhex(one) for one in values["long_ago"]])
    prior = float.fromhex(values["prior"])
    return OpenStep(**{**values, "known": known, "long_ago": long_ago, "prior": prior})
