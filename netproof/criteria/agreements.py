"""Criterion 18: whether benchmarks that send the same message between the same two ranks agree.

NetPIPE over MPI, PingPong of IMB and latency of OMB send one message there and back, by one library
and over one link. Where one of them takes twice as long as another, that is not the network as it
is: something was in the way of one of them, or they did not measure the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import ClassVar

from netproof.criteria.companions import alongside, worst_of
from netproof.criteria.findings import (
    Bounds,
    CommonSizes,
    Finding,
    Level,
    bound_in_words,
    common_sizes,
    finding_at,
    undefined,
)
from netproof.criteria.interface import Companion, Criterion
from netproof.criteria.points import times_of
from netproof.measurement import interval as intervals
from netproof.measurement.curve import Curve

_ADVICE = "look at what else ran during that job, and at the arguments of both benchmarks"


@dataclass(frozen=True)
class AgreementSettings(Bounds):
    """``warn`` and ``fail`` above this multiple of another benchmark's time.

    ``launches``: the fewest of either side with which anything fails. They are of different jobs,
    and are not repeated.
    """

    warn: float | None = None
    fail: float | None = 2.0
    launches: int = 3
    reached: ClassVar[Callable[[float, float], bool]] = operator.gt


def agreement(
    own: Companion,
    others: Mapping[str, Companion],
    *,
    where: str,
    settings: AgreementSettings = AgreementSettings(),
) -> Finding | None:
    """Return the largest ratio of a benchmark's time to another's for the same message.

    A pure number, 1 where all take the same. ``others``: by the labels of their cases, of the same
    configuration. A size fails where the whole interval of its ratio is above the bound, and is
    shown where only a part of it is. All sizes together fail by the median of their ratios. With
    too few launches, that median is inconclusive if its interval over the sizes is above the bound.
    None without another benchmark.
    """
    if not others:
        return None
    mine = times_of(own.curve, settings)
    if mine.fault is not None:
        return undefined("agreement", where, mine.fault)
    compared, together = [], []
    for label, other in others.items():
        theirs = times_of(other.curve, settings)
        if theirs.fault is not None:
            return undefined("agreement", where, f"of {label}, {theirs.fault}")
        of_sizes = alongside((own, mine), (other, theirs), label, settings)
        if of_sizes:
            compared += of_sizes
            times = {one.ratio.size: one.times_us for one in of_sizes}
            together.append(_together(own, other, label, times, settings))
    if not compared:
        return undefined("agreement", where, "no other benchmark has a size in common with it")
    worst = worst_of(compared)
    flagged = [one for one in together if one.level is Level.FAIL]
    if not flagged and worst.level is not Level.FAIL:
        flagged = [one for one in together if one.level is Level.INCONCLUSIVE]
    if flagged:
        return max(flagged, key=lambda one: one.ratio).finding(where, settings)
    spoken = worst.interval_in_words(settings.launches)
    found = finding_at(
        "agreement",
        worst.level,
        worst.bound,
        where,
        worst.ratio,
        f"a message of {worst.ratio.size} bytes took {worst.times_us[0]:.4g} µs,"
        f" {worst.ratio.value:.3g} times ({spoken}) the {worst.times_us[1]:.4g} µs of"
        f" {worst.label}, which sends the same",
        _ADVICE,
    )
    sizes = sorted({one.ratio.size for one in compared})
    return replace(found, against=worst.label, interval=worst.interval, common=common_sizes(sizes))


@dataclass(frozen=True)
class _Together:
    """Median ratio of a benchmark's times to those of another, ``label``, over all sizes.

    ``interval``: over launches; over sizes where a side has ``few`` launches, which does not show
    how launches differ; None with few sizes.
    """

    label: str
    ratio: float
    interval: intervals.Interval | None
    few: bool
    sizes: CommonSizes
    level: Level

    def finding(self, where: str, settings: AgreementSettings) -> Finding:
        """Return the finding for a ratio that fails or is inconclusive."""
        low, high = self.interval or (self.ratio, self.ratio)
        over, then = ("launches", _ADVICE)
        if self.few:
            needed = settings.launches
            over, then = "sizes", f"measure it again: to be sure takes {needed} launches of both"
        return Finding(
            "agreement",
            self.level,
            where,
            f"{self.sizes} a message took {self.ratio:.3g} times (95% interval over {over}"
            f" {low:.3g} to {high:.3g}) what it took by {self.label}, which sends the same"
            f"{bound_in_words(self.level, settings.fail)}; {then}",
            value=self.ratio,
            bound=settings.fail,
            common=self.sizes,
            interval=self.interval,
            against=self.label,
        )


def _together(
    own: Companion,
    other: Companion,
    label: str,
    times_us: Mapping[int, tuple[float, float]],
    settings: AgreementSettings,
) -> _Together:
    """Compare two sides over all sizes; ``times_us``: by size, the times of their medians."""

    def middles(launches: Sequence[Curve]) -> list[float]:
        """Return each launch's median ratio to the other side's median curve."""
        return [
            median(
                time / times_us[size][1]
                for size, time in zip(launch.sizes, launch.time_us, strict=True)
                if size in times_us
            )
            for launch in launches
        ]

    sizes = common_sizes(sorted(times_us))
    few = min(len(own.launches), len(other.launches)) < settings.launches
    if few:
        ratios = [mine / theirs for mine, theirs in times_us.values()]
        ratio, interval = median(ratios), None
        if len(ratios) >= intervals.FEWEST_RANKED:
            interval = intervals.of_median(ratios)
    else:
        mine, theirs = middles(own.launches), middles(other.launches)
        ratio, interval = median(mine) / median(theirs), intervals.of_ratio(mine, theirs)
    level = Level.SHOWN
    if interval is not None and settings.level(ratio, interval)[0] is Level.FAIL:
        level = Level.INCONCLUSIVE if few else Level.FAIL
    return _Together(label, ratio, interval, few, sizes, level)


CRITERION = Criterion(18, {"agreement": AgreementSettings()}, {"agreement": "agreement"})
