"""Changes in series of nights, and settings of their detection."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class ChangeKind(StrEnum):
    """Kind of a change in a series."""

    STEP = "step"
    DRIFT = "drift"
    BAD_NIGHT = "bad night"


@dataclass(frozen=True)
class Change:
    """A change in a series.

    ``index``: first night of the new level; of a bad night: that night. ``found``: night on which
    the p-value of this series alone first reached ``DetectionSettings.alarm``. ``before``,
    ``after``: levels, in the unit of the series. ``size``: relative, after / before - 1.
    ``p_value``: chance of such a change, from all nights so far; for an ended or accepted change,
    from those up to then. ``ended``: the night from which on the series is back, None while it is
    not; a bad night is over with the next one that differs. ``accepted``: the new level was
    accepted as intended.
    """

    kind: ChangeKind
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
        """Check whether it still stands and alarms; a bad night never does."""
        return self.kind is not ChangeKind.BAD_NIGHT and self.ended is None and not self.accepted


@dataclass(frozen=True)
class Followed:
    """A series as it was followed night by night.

    ``changes``: by index. ``level``: tonight's, in its unit, None without any value. ``noise``:
    standard deviation of a night about it, relative, robust; None with too few values. ``cold``:
    fewer than ``cold_nights`` nights at the level. ``p_value``: tonight's, for the control over all
    series; 1.0 without a result.
    """

    changes: tuple[Change, ...]
    level: float | None
    noise: float | None
    cold: bool
    p_value: float


@dataclass(frozen=True)
class DetectionSettings:
    """Settings of the detection.

    ``alarm``: p-value of one series on one night from which on a change is listed. ``false_share``:
    share of false ones among the series that ``controlled`` lets pass. ``cold_nights``: nights at
    its level up to which a series is judged by median and MAD. ``memory``: newest nights at a level
    that level and noise are taken from. ``least_noise``: least relative noise of every series, so
    that one that repeats to the last digit does not alarm at the digit. ``bad_night``: standard
    deviations off the level from which on a night is set aside, unless the one before or after it
    is alike. ``alike``: by how much two such nights may differ. ``back``: logarithm of the odds at
    which a series has gone back to its old level. ``drift_nights``: nights now and long ago that
    are compared for a drift; ``least_drift``: relative size of the least one.
    """

    alarm: float = 2e-3
    false_share: float = 0.05
    cold_nights: int = 10
    memory: int = 180
    least_noise: float = 0.0025
    bad_night: float = 4.0
    alike: float = 3.3
    back: float = 7.0
    drift_nights: tuple[int, int] = (14, 30)
    least_drift: float = 0.02


SETTINGS = DetectionSettings()
"""Settings by default."""


def change_between(
    kind: ChangeKind, index: int, found: int, before: float, after: float, p_value: float
) -> Change:
    """Return a change between two levels that are given as logarithms."""
    was, now = math.exp(before), math.exp(after)
    return Change(kind, index, found, was, now, math.expm1(after - before), float(p_value))
