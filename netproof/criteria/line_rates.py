"""Criterion 8: the share of the line rate."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from netproof.criteria.findings import (
    Bounds,
    Finding,
    Level,
    bound_in_words,
    rate_in_words,
    undefined,
)
from netproof.criteria.interface import CaseCurves, Criterion
from netproof.errors import NetproofError
from netproof.measurement.interval import Interval
from netproof.measurement.landmarks import Landmarks
from netproof.measurement.units import line_rate_share


@dataclass(frozen=True)
class LineRateSettings(Bounds):
    """``fail``: a share of the line rate above this is an error of measurement.

    ``warn_below`` and ``fail_below``: a share below this is too small; None, the default, asserts
    nothing. Raises NetproofError where these leave nothing that passes.
    """

    fail: float | None = 1.02
    warn_below: float | None = None
    fail_below: float | None = None
    reached: ClassVar[Callable[[float, float], bool]] = operator.gt

    def __post_init__(self) -> None:
        """Check the values as the class describes."""
        super().__post_init__()
        # As in Bounds: both ends of what passes, from the mildest bound to the hardest.
        ordered = [
            bound
            for bound in (self.fail_below, self.warn_below, self.warn, self.fail)
            if bound is not None
        ]
        if not all(map(math.isfinite, ordered)) or ordered != sorted(ordered):
            raise NetproofError(
                f"LineRateSettings: fail_below={self.fail_below}, warn_below={self.warn_below},"
                f" warn={self.warn}, fail={self.fail}: they are numbers that increase in this order"
            )

    def of_interval(
        self, value: float, interval: Interval | None
    ) -> tuple[Level, float | None, bool]:
        """Return the level of a share, the bound that decided it, and whether it is a lower bound.

        A bound is violated by the whole interval. It is inconclusive where only the value is
        beyond the bound, or the interval is missing.
        """
        low, high = interval or (-math.inf, math.inf)
        sides = ((Level.FAIL, self.fail, self.fail_below), (Level.WARN, self.warn, self.warn_below))
        for level, above, below in sides:
            if above is not None and value > above:
                return (level if low > above else Level.INCONCLUSIVE), above, False
            if below is not None and value < below:
                return (level if high < below else Level.INCONCLUSIVE), below, True
        level, bound = self.level(value)
        if bound is None and (self.warn_below, self.fail_below) != (None, None):
            return Level.PASS, self.warn_below or self.fail_below, True
        return level, bound, False


def line_rate(
    found: Landmarks,
    line_rate_mb_s: float | None,
    *,
    where: str,
    settings: LineRateSettings = LineRateSettings(),
) -> Finding:
    """Return the asymptotic bandwidth's share of the line rate (criterion 8).

    ``found``: the landmarks of a curve of TCP, or MPI over TCP; ``line_rate_mb_s``:
    ``units.line_rate_mb_s`` of the link, None where not known. A share above 1.02 is an error of
    measurement. A bound is violated by the whole interval, else ``inconclusive``. Undefined
    with its reason where r∞ is. Raises NetproofError for a line rate that is not positive.
    """
    if line_rate_mb_s is None:
        return undefined("line rate", where, "no line rate is known: give link rate and MTU")
    r_mb_s = found.asymptotic_mb_s
    if r_mb_s is None:
        return undefined("line rate", where, found.why("asymptotic_mb_s") or "it has no r∞")
    share, interval = line_rate_share(r_mb_s, line_rate_mb_s), found.interval("asymptotic_mb_s")
    if interval is not None:
        interval = (interval[0] / line_rate_mb_s, interval[1] / line_rate_mb_s)
    level, bound, below = settings.of_interval(share, interval)
    spoken = "no interval"
    if interval is not None:
        spoken = f"95 % interval {interval[0]:.1%} to {interval[1]:.1%}"
    advised = ""
    if level in (Level.WARN, Level.FAIL):
        advised = (
            "; look at the link's rate, its duplex and errors, and at what else it carried"
            if below
            else "; no link carries that, so the link rate given is wrong, or the messages took"
            " another network or shared memory"
        )
    elif level is Level.INCONCLUSIVE:
        advised = "; more launches would show on which side of the bound it lies"
    return Finding(
        "line rate",
        level,
        where,
        f"an asymptotic bandwidth of {rate_in_words(r_mb_s)} is {share:.1%} of the line"
        f" rate of {rate_in_words(line_rate_mb_s)} ({spoken})"
        f"{bound_in_words(level, bound, below=below)}{advised}",
        value=share,
        bound=bound,
        interval=interval,
    )


def _judge(case: CaseCurves, settings: Any) -> tuple[Finding, ...]:
    if case.curve.bandwidth_mb_s is None or case.line_rate_mb_s is None:
        return ()
    share = line_rate(
        case.landmarks, case.line_rate_mb_s, where=case.where, settings=settings.line_rate
    )
    return (share,)


CRITERION = Criterion(
    8, {"line_rate": LineRateSettings()}, {"line rate": "line_rate"}, _judge, of_launches=True
)
