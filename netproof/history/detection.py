"""Finds changes in a series of nights: steps, drifts and single bad nights.

A series has one value for each night, a case's latency for instance. Everything here works on
plain numbers: it knows nothing of stores, cases or dates.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import NormalDist, median
from typing import TypeVar

K = TypeVar("K", bound=Hashable)

MAD_OF_NORMAL = 1.4826
"""Standard deviations of normal noise in one MAD."""


class Kind(StrEnum):
    """What happened to a series."""

    STEP = "step"
    DRIFT = "drift"
    BAD_NIGHT = "bad night"


@dataclass(frozen=True)
class Change:
    """A change in a series.

    ``index``: first night of the new level; a bad night: that night. ``found``: night of the
    alarm. ``before``, ``after``: levels (medians), in the unit of the series. ``size``: relative,
    after / before - 1. ``p_value``: how often chance alone does as much. ``ended``: the night
    from which on the series is back, None while it is not. ``accepted``: the new level was
    accepted as intended.
    """

    kind: Kind
    index: int
    found: int
    before: float
    after: float
    size: float
    p_value: float
    ended: int | None = None
    accepted: bool = False

    @property
    def open(self) -> bool:
        """Whether it still stands and alarms; a bad night never does."""
        return self.kind is not Kind.BAD_NIGHT and self.ended is None and not self.accepted


@dataclass(frozen=True)
class Followed:
    """A series as it was followed night by night.

    ``changes``: by index. ``level``: the level that it has tonight, in its unit, None without
    any value. ``noise``: standard deviation of a night about it, relative, robust; None with too
    few values. ``cold``: fewer than ``cold_nights`` nights at the level. ``p_value``: tonight's,
    for the control over all series; 1.0 where nothing can be said.
    """

    changes: tuple[Change, ...]
    level: float | None
    noise: float | None
    cold: bool
    p_value: float


@dataclass(frozen=True)
class DetectionSettings:
    """How changes are found.

    ``alarm``: p-value of one series at one night from which on a change is listed.
    ``false_share``: share of false ones among the series that ``controlled`` lets pass.
    ``cold_nights``: nights that a level needs before its noise is known. ``least_noise``:
    relative noise that every series is taken to have at least.
    """

    alarm: float = 1e-3
    false_share: float = 0.05
    cold_nights: int = 10
    least_noise: float = 0.0025


def follow(
    values: Sequence[float | None],
    settings: DetectionSettings = DetectionSettings(),
    accepted: Collection[int] = (),
) -> Followed:
    """One series, followed from its first night to its last.

    ``values``: above 0, in any unit; None: a night without a value. ``accepted``: indices of the
    nights from which on a new level is intended.
    """
    changes: list[Change] = []
    start, p_value = 0, 1.0
    for night, value in enumerate(values):
        if night in accepted:
            changes = [replace(change, accepted=True) for change in changes]
            start = night
        if value is None:
            continue
        newest = max((change for change in changes if change.open), default=None, key=_index)
        begin = newest.index if newest else night - 2
        before = [math.log(v) for v in values[start:begin] if v is not None]
        after = [math.log(v) for v in values[begin : night + 1] if v is not None]
        if len(before) < 5 or len(after) < 3:
            continue
        level, noise = _level(before, settings)
        z = (median(after) - level) / noise * math.sqrt(len(after))
        p_value = max(2 * NormalDist().cdf(-abs(z)), 1e-300)
        if newest:
            changes.remove(newest)
        if p_value <= settings.alarm:
            was, now = math.exp(level), math.exp(median(after))
            found = newest.found if newest else night
            changes.append(Change(Kind.STEP, begin, found, was, now, now / was - 1, p_value))
        elif newest:
            changes.append(replace(newest, ended=night))
    present = [math.log(v) for v in values[start:] if v is not None]
    level, noise = _level(present, settings) if len(present) >= 3 else (None, None)
    return Followed(
        tuple(sorted(changes, key=_index)),
        None if level is None else math.exp(level),
        noise,
        len(present) < settings.cold_nights,
        p_value,
    )


def follow_all(
    series: Sequence[Sequence[float | None]],
    settings: DetectionSettings = DetectionSettings(),
    accepted: Sequence[Collection[int]] | None = None,
) -> list[Followed]:
    """Many series of the same nights, as ``follow`` has each of them, in less time."""
    return [
        follow(values, settings, () if accepted is None else accepted[number])
        for number, values in enumerate(series)
    ]


def controlled(
    p_values: Mapping[K, float], settings: DetectionSettings = DetectionSettings()
) -> frozenset[K]:
    """The series whose p-value of tonight stands among all of them (Benjamini and Hochberg)."""
    ordered = sorted(p_values.items(), key=lambda item: item[1])
    passed = [
        rank
        for rank, (_, p_value) in enumerate(ordered, 1)
        if p_value <= settings.false_share * rank / len(ordered)
    ]
    return frozenset(name for name, _ in ordered[: max(passed, default=0)])


def expected_false_alarms(
    series: int, nights: int, settings: DetectionSettings = DetectionSettings()
) -> float:
    """How many false alarms ``nights`` nights of so many unchanged series bring, at most."""
    return nights * settings.false_share / (1 - settings.false_share) ** 2 if series else 0.0


def pooled(series: Sequence[Sequence[float | None]]) -> list[float | None]:
    """Several series of the same nights as one, relative to their levels."""
    levels = [median(math.log(v) for v in values if v is not None) for values in series]
    nights = zip(*series, strict=True)
    return [
        math.exp(sum(found) / len(found))
        if (found := [math.log(v) - level for v, level in zip(night, levels, strict=True) if v])
        else None
        for night in nights
    ]


def _level(logs: Sequence[float], settings: DetectionSettings) -> tuple[float, float]:
    level = median(logs)
    mad = median(abs(value - level) for value in logs)
    return level, max(MAD_OF_NORMAL * mad, settings.least_noise)


def _index(change: Change) -> int:
    return change.index
