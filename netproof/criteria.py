"""The criteria that judge curves: pure functions, each with its settings, each saying why.

A criterion takes curves and settings and returns findings. It raises nothing for a curve that
it cannot judge, but returns the level ``undefined`` with the reason, which no one may count
as passed. The landmarks of a curve are in ``netproof.landmarks``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import ClassVar

import numpy as np

from netproof import interval as intervals
from netproof import links
from netproof.curve import Curve
from netproof.errors import NetproofError
from netproof.interval import Interval
from netproof.landmarks import Landmarks, line_rate_share
from netproof.launches import median_curve
from netproof.links import Crossing
from netproof.units import mbit_s

READABLE = (1e-15, 1e24)
"""Least and largest time in µs or bandwidth in MB/s that enters a ratio: no clock reads past."""


class Level(StrEnum):
    """What a finding means for the verdict.

    ``SHOWN`` was measured but nothing is asserted; ``INCONCLUSIVE`` was measured again and again,
    and its interval still lies astride a bound, or its launches were disturbed: it has neither
    passed nor failed.
    """

    PASS = "pass"
    SHOWN = "shown"
    WARN = "warn"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    UNDEFINED = "undefined"


@dataclass(frozen=True)
class CommonSizes:
    """The sizes in bytes at which curves meet: how many, the least and the largest."""

    count: int
    least: int
    largest: int

    def __str__(self) -> str:
        """As it stands in a sentence."""
        if self.count == 1:
            return f"at the one common size of {self.least} bytes"
        return f"over {self.count} common sizes, {self.least} to {self.largest} bytes"


@dataclass(frozen=True)
class Finding:
    """What a criterion found, where and why.

    ``where``: the label of the configuration as the caller gave it; ``size``: bytes, None for
    a finding about the whole curve; ``value`` and the ``bound`` it was held against, in the
    criterion's unit, None where undefined or not asserted; ``why``: one sentence;
    ``compared_sizes``: the other sizes that made the value; ``common``: where two curves met;
    ``interval``: low and high end of the confidence interval of the value; ``against``: the label
    of the configuration that it was compared with; ``disturbed``: what else the nodes did in
    launches that the value rests on.
    """

    criterion: str
    level: Level
    where: str
    why: str
    size: int | None = None
    value: float | None = None
    bound: float | None = None
    compared_sizes: tuple[int, ...] = ()
    common: CommonSizes | None = None
    interval: tuple[float, float] | None = None
    against: str | None = None
    disturbed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bounds:
    """From where on a value is a warning and a failure; None asserts nothing.

    ``least_size``: smaller messages in bytes are left out of every ratio, since benchmarks
    print 0 µs there (4 bytes, after the GigE synthetic-benchmark report). Raises NetproofError
    for a bound that is no number, and for a failure milder than the warning.
    """

    warn: float | None = None
    fail: float | None = None
    least_size: int = 4
    reached: ClassVar[Callable[[float, float], bool]] = operator.ge

    def __post_init__(self) -> None:
        """Refuse what the class says it refuses."""
        name = type(self).__name__
        for bound in (self.warn, self.fail):
            if bound is not None and not math.isfinite(bound):
                raise NetproofError(f"{name}: {bound} is no bound: give a number, or None")
        if self.warn is not None and self.fail is not None:
            milder = self.fail != self.warn and not self.reached(self.fail, self.warn)
            if milder:
                raise NetproofError(
                    f"{name}: fail={self.fail} is milder than warn={self.warn}: exchange them"
                )
        if self.least_size < 1:
            raise NetproofError(f"{name}: least_size={self.least_size}: it is 1 byte or more")

    def level(
        self, value: float, interval: tuple[float, float] | None = None
    ) -> tuple[Level, float | None]:
        """The level of a value, and the bound that decided it.

        ``interval``: of the value, which fails only where all of it is beyond the bound, and is
        inconclusive where it lies astride it; None lets the value alone decide. Whether it warns
        the value decides in any case, since a warning stops nothing.
        """
        if self.fail is not None:
            beyond = [self.reached(one, self.fail) for one in (value, *(interval or ()))]
            if any(beyond):
                return (Level.FAIL if all(beyond) else Level.INCONCLUSIVE), self.fail
        if self.warn is not None and self.reached(value, self.warn):
            return Level.WARN, self.warn
        nearest = self.warn if self.warn is not None else self.fail
        return (Level.SHOWN, None) if nearest is None else (Level.PASS, nearest)


@dataclass(frozen=True)
class EnvelopeSettings(Bounds):
    """``fail``: a time above this multiple of what others need is red (an order of magnitude)."""

    fail: float | None = 10.0
    reached: ClassVar[Callable[[float, float], bool]] = operator.gt


@dataclass(frozen=True)
class ScoreSettings(Bounds):
    """A score below ``warn`` or ``fail`` is flagged; by default nothing is asserted.

    ``resamples`` bootstrap samples over the launches give the interval of ``confidence``;
    ``random_seed`` makes it the same at every judging of the same launches.
    """

    resamples: int = 2000
    confidence: float = 0.95
    random_seed: int = 20060701
    reached: ClassVar[Callable[[float, float], bool]] = operator.lt

    def __post_init__(self) -> None:
        """Refuse what the class says it refuses."""
        super().__post_init__()
        if self.resamples < 100 or not 0 < self.confidence < 1:
            raise NetproofError(
                f"ScoreSettings: resamples={self.resamples}, confidence={self.confidence}: "
                "an interval takes 100 resamples or more and a confidence between 0 and 1"
            )


@dataclass(frozen=True)
class InversionSettings(Bounds):
    """``warn`` and ``fail`` at this multiple of a larger message's time.

    On 254 public curves of InfiniBand and RoCE clusters the median is 1.04, the 95th
    percentile 2.8, and all above 10 were one broken MPI transport.
    """

    warn: float | None = 2.0
    fail: float | None = 10.0


@dataclass(frozen=True)
class JumpSettings(Bounds):
    """``warn`` and ``fail`` at time growing this many times faster than the size.

    On the same 254 curves the median is 1.2, the 95th percentile 2.3, the 99th 6.1.
    """

    warn: float | None = 4.0
    fail: float | None = 10.0


@dataclass(frozen=True)
class RoughnessSettings(Bounds):
    """``warn`` and ``fail`` at this roughness in octaves; by default nothing is asserted."""


@dataclass(frozen=True)
class DropoutSettings(Bounds):
    """``warn`` and ``fail`` below this share of the lesser of the best on either side."""

    warn: float | None = 0.5
    fail: float | None = 0.1
    reached: ClassVar[Callable[[float, float], bool]] = operator.lt


@dataclass(frozen=True)
class LineRateSettings(Bounds):
    """``fail``: a share of the line rate above this is an error of measurement.

    ``warn_below`` and ``fail_below``: from where on a share is too small; None, the default,
    asserts nothing. Raises NetproofError where these leave nothing that passes.
    """

    fail: float | None = 1.02
    warn_below: float | None = None
    fail_below: float | None = None
    reached: ClassVar[Callable[[float, float], bool]] = operator.gt

    def __post_init__(self) -> None:
        """Refuse what the class says it refuses."""
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
        """The level of a share with its interval, the bound that decided it, and if from below.

        A bound is violated by the whole interval; where the value is beyond it and the interval
        is not, or there is none, that is inconclusive.
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


@dataclass(frozen=True)
class MpiLossSettings(Bounds):
    """``warn`` and ``fail`` at this loss.

    The e325 Opteron NetPIPE report has 12 % on a tuned GigE, 22 % on an untuned one, and 44 to
    51 % where MPI copies every message once more.
    """

    warn: float | None = 0.2
    fail: float | None = 0.5


AT_EVERY_SIZE = MpiLossSettings(warn=None, fail=None)
"""The loss at one size is shown, not asserted: at small sizes it is the latency of MPI."""


@dataclass(frozen=True)
class CpuCostSettings(Bounds):
    """``warn`` and ``fail`` at this many CPU seconds a second; by default nothing is asserted."""


@dataclass(frozen=True)
class CrashSettings(Bounds):
    """``warn`` and ``fail`` above this share of a configuration's launches that crashed.

    ``least``: crashes below which no share is flagged; one of 40 is no rate.
    """

    fail: float | None = 0.02
    least: int = 2
    reached: ClassVar[Callable[[float, float], bool]] = operator.gt


@dataclass(frozen=True)
class ConfirmSettings:
    """How a flagged size, and what is beyond a bound, is measured again.

    ``launches``: at least so many more; ``most_launches``: of a case at most, the first ones
    included; ``sizes``: at least so many between half and twice the
    flagged size; ``element_bytes``: what a size is a multiple of, 4 for the reductions of IMB,
    which rounds 1023 up to 1024; ``most_bytes``: the largest message to measure, but for the
    neighbour of a flagged size, None for no limit. Raises NetproofError for less than 3
    launches, as many at most, 8 sizes, elements of 1 byte and messages of 8 bytes.
    """

    launches: int = 3
    most_launches: int = 12
    sizes: int = 8
    element_bytes: int = 1
    most_bytes: int | None = None

    def __post_init__(self) -> None:
        """Refuse what the class says it refuses."""
        if self.launches < 3 or self.sizes < 8 or self.element_bytes < 1:
            raise NetproofError(
                f"{self}: confirming takes at least 3 launches, 8 sizes and elements of 1 byte"
            )
        if self.most_launches < self.launches:
            raise NetproofError(
                f"{self}: most_launches counts all launches of a case, so it is"
                f" {self.launches} or more"
            )
        if self.most_bytes is not None and self.most_bytes < 8:
            raise NetproofError(f"{self}: messages of 8 bytes at least have to be allowed")


@dataclass(frozen=True)
class Envelope:
    """The least time at each size over configurations, and the configuration that has it.

    ``curve`` holds only the sizes of at least 4 bytes that two configurations or more have.
    """

    curve: Curve
    fastest: tuple[str, ...]


@dataclass(frozen=True)
class Confirmation:
    """What measuring a flagged size again said.

    ``level`` is what most launches reached again; ``SHOWN`` where the flag is unconfirmed and
    ``UNDEFINED`` where too few launches could be used. ``flagged`` of ``launches`` usable ones
    were flagged again.
    """

    finding: Finding
    level: Level
    flagged: int
    launches: int
    why: str

    @property
    def confirmed(self) -> bool:
        """Whether the flag counts."""
        return self.level in (Level.WARN, Level.FAIL)


@dataclass(frozen=True)
class _Points:
    """A curve's times or bandwidths by size, or the fault that keeps it from being judged."""

    at: dict[int, float]
    fault: str | None = None


@dataclass(frozen=True)
class _Value:
    size: int
    value: float
    compared: tuple[int, ...] = ()


def envelope(
    curves: Mapping[str, Curve], settings: EnvelopeSettings = EnvelopeSettings()
) -> Envelope | None:
    """The least time at each size over configurations, after the GigE synthetic-benchmark report.

    ``curves``: the curve of each configuration, for the same function at the same ranks. None
    where fewer than two configurations share a size. A curve that cannot be judged takes no
    part.
    """
    usable = {label: _times(curve, settings) for label, curve in curves.items()}
    holders: dict[int, list[tuple[float, str]]] = {}
    for label, points in usable.items():
        if points.fault is None:
            for size, time in points.at.items():
                holders.setdefault(size, []).append((time, label))
    least = {size: min(times) for size, times in sorted(holders.items()) if len(times) > 1}
    if not least:
        return None
    return Envelope(
        Curve(tuple(least), tuple(time for time, _ in least.values())),
        tuple(label for _, label in least.values()),
    )


def above_envelope(
    curves: Mapping[str, Curve],
    settings: EnvelopeSettings = EnvelopeSettings(),
    *,
    launches: Mapping[str, Sequence[Curve]] | None = None,
    crossings: Mapping[str, Crossing] | None = None,
) -> tuple[Finding, ...]:
    """How many times as long as any other each configuration takes (criterion 1).

    At each size t over the least that another would take over this configuration's link: its time,
    and what the slower link adds to it (``links.explained_us``). A pure number, 1 where nobody
    takes less. Each size that is flagged or inconclusive has a finding of its own; a configuration
    without one has a finding for the size where it comes nearest.

    ``curves`` as in ``envelope``; ``launches``: those that a curve is the median of, for the
    interval of the ratio, where both sides have two or more; ``crossings``: the link that a
    configuration's messages cross, where they cross one. A size fails if the ratio to any
    other fails with its whole interval; else the largest ratio decides.
    """
    everything = {
        where: _times(curve, replace(settings, least_size=1)).at for where, curve in curves.items()
    }
    sides = {}
    for where, curve in curves.items():
        crossing = (crossings or {}).get(where)
        several = [
            dict(zip(launch.sizes, launch.time_us, strict=True))
            for launch in (launches or {}).get(where, ())
        ]
        points = _times(curve, settings)
        crossed = {}
        if crossing is not None and points.fault is None:
            # Latency is seen best at sizes that are not judged.
            crossed = links.messages(everything[where] or points.at, crossing)
        sides[where] = _Side(where, points, several, crossing, crossed)
    findings = []
    for where, side in sides.items():
        if side.points.fault is not None:
            findings.append(_undefined("envelope", where, side.points.fault))
            continue
        others = [
            other for other in sides.values() if other is not side and other.points.fault is None
        ]
        findings += _above(side, others, settings) or [
            _undefined("envelope", where, _why_no_envelope(where, others, sides))
        ]
    return tuple(findings)


def score(
    launches: Sequence[Curve],
    baseline_launches: Sequence[Curve],
    *,
    where: str,
    baseline: str,
    red_sizes: Sequence[int] = (),
    settings: ScoreSettings = ScoreSettings(),
) -> Finding:
    """Geometric mean over the common sizes of t_baseline / t (criterion 2).

    Above 1 is faster than the baseline. Both cases are given as their launches; the curves
    compared are their medians, the ``interval`` is the percentile bootstrap over the launches
    of both, which needs two launches or more of each. No ``baseline_launches`` means that the
    baseline did not run: undefined. ``red_sizes`` are those that ``above_envelope`` failed;
    the score stands, and wears the mark. After the GigE synthetic-benchmark report.

    Raises NetproofError where launches of one case differ in their sizes.
    """
    if not launches:
        return _undefined("score", where, "it has no launch")
    if not baseline_launches:
        return _undefined("score", where, f"the baseline {baseline} did not run")
    for label, several in ((where, launches), (baseline, baseline_launches)):
        for number, curve in enumerate(several, 1):
            fault = _times(curve, settings).fault
            if fault is not None:
                return _undefined("score", where, f"in launch {number} of {label}, {fault}")
    case_times = _times(median_curve(launches), settings).at
    baseline_times = _times(median_curve(baseline_launches), settings).at
    sizes = sorted(case_times.keys() & baseline_times.keys())
    if not sizes:
        return _undefined("score", where, f"it has no size in common with the baseline {baseline}")
    common = _common(sizes)
    logs = [math.log(baseline_times[size] / case_times[size]) for size in sizes]
    value = math.exp(math.fsum(logs) / len(logs))
    interval = None
    spoken = "no interval, which takes two launches of both"
    if len(launches) > 1 and len(baseline_launches) > 1:
        interval = _bootstrap(launches, baseline_launches, sizes, settings)
        spoken = f"{settings.confidence:.0%} interval {interval[0]:.3g} to {interval[1]:.3g}"
    level, bound = settings.level(value, interval)
    mark = f"; red at {_sizes(red_sizes)}" if red_sizes else ""
    held = f", where below {bound:g} is flagged" if bound is not None else ""
    held += "; inconclusive: the interval lies astride it" if level is Level.INCONCLUSIVE else ""
    return Finding(
        "score",
        level,
        where,
        f"{where}: {value:.3g} times as fast as {baseline} {common} ({spoken}){held}{mark}",
        value=value,
        bound=bound,
        common=common,
        interval=interval,
        against=baseline,
    )


def inversion(
    curve: Curve, *, where: str, settings: InversionSettings = InversionSettings()
) -> Finding:
    """The most that a message took over a larger one (criterion 3).

    max over s of t(s) / min over s' ≥ s of t(s'), a pure number, 1 for a curve that never
    falls. ``size`` is that of the slow message, ``compared_sizes`` that of the faster one.
    """
    points = _times(curve, settings, at_least=2)
    if points.fault is not None:
        return _undefined("inversion", where, points.fault)
    worst = _greatest(_inversions(points))
    level, bound = settings.level(worst.value)
    faster = worst.compared[0]
    return _found(
        "inversion",
        level,
        bound,
        where,
        worst,
        f"a message of {worst.size} bytes took {points.at[worst.size]:.4g} µs, "
        f"{worst.value:.3g} times the {points.at[faster]:.4g} µs of one of {faster} bytes",
        f"look for lost packets or a full buffer between {worst.size} and {faster} bytes",
    )


def jump(curve: Curve, *, where: str, settings: JumpSettings = JumpSettings()) -> Finding:
    """The most that time grew faster than linearly in one step (criterion 4).

    max over neighbouring sizes of (t₂/t₁) / (s₂/s₁), a pure number, at least 1. ``size`` is
    the larger one of the step, ``compared_sizes`` the smaller.
    """
    points = _times(curve, settings, at_least=2)
    if points.fault is not None:
        return _undefined("jump", where, points.fault)
    worst = _greatest(_jumps(points))
    level, bound = settings.level(worst.value)
    before = worst.compared[0]
    return _found(
        "jump",
        level,
        bound,
        where,
        worst,
        f"from {before} to {worst.size} bytes time went from {points.at[before]:.4g} to "
        f"{points.at[worst.size]:.4g} µs, {worst.value:.3g} times what the size explains",
        f"look for congestion or a change of protocol at {worst.size} bytes",
    )


def roughness(
    curve: Curve, *, where: str, settings: RoughnessSettings = RoughnessSettings()
) -> Finding:
    """Total variation of log₂ t less its net rise, in octaves (criterion 5).

    0 for a curve that never falls; summed as twice all falls, which is the same and exact.
    ``size`` is the size of the deepest fall, None where there is none.
    """
    points = _times(curve, settings, at_least=2)
    if points.fault is not None:
        return _undefined("roughness", where, points.fault)
    logs = [(size, math.log2(time)) for size, time in points.at.items()]
    falls = [
        (before - after, size) for (_, before), (size, after) in pairwise(logs) if after < before
    ]
    value = 2 * math.fsum(fall for fall, _ in falls)
    level, bound = settings.level(value)
    deepest = max(falls, key=lambda fall: fall[0])[1] if falls else None
    told = f"time falls by {value / 2:.3g} octaves in all along the curve, roughness {value:.3g}"
    if deepest is not None:
        told += f", most at {deepest} bytes"
    return Finding(
        "roughness",
        level,
        where,
        f"{where}: {told}{_held(level, bound)}",
        size=deepest,
        value=value,
        bound=bound,
    )


def dropout(
    curve: Curve, *, where: str, settings: DropoutSettings = DropoutSettings()
) -> tuple[Finding, ...]:
    """Sizes whose bandwidth is below half of what both sides reach (criterion 6).

    bw(s) / min(best at smaller sizes, best at larger sizes), a pure number. One finding for
    each size flagged, or one for the size that comes nearest; ``compared_sizes`` are where
    the two sides are at their best. After the dips of the e325 Opteron NetPIPE report.
    """
    points = _bandwidths(curve, settings, at_least=3)
    if points.fault is not None:
        return (_undefined("dropout", where, points.fault),)
    values = _dropouts(points)
    flagged = [v for v in values if settings.level(v.value)[0] in (Level.WARN, Level.FAIL)]
    findings = []
    for found in flagged or [min(values, key=lambda v: v.value)]:
        level, bound = settings.level(found.value)
        left, right = found.compared
        findings.append(
            _found(
                "dropout",
                level,
                bound,
                where,
                found,
                f"at {found.size} bytes the bandwidth is {_rate(points.at[found.size])}, "
                f"{found.value:.2g} of the lesser of {_rate(points.at[left])} at {left} bytes "
                f"and {_rate(points.at[right])} at {right} bytes",
                "measure the sizes around it, and look at socket buffers and flow control",
                below=True,
            )
        )
    return tuple(findings)


def line_rate(
    found: Landmarks,
    line_rate_mb_s: float | None,
    *,
    where: str,
    settings: LineRateSettings = LineRateSettings(),
) -> Finding:
    """The share of the line rate that the asymptotic bandwidth is (criterion 8).

    ``found``: the landmarks of a curve of TCP, or MPI over TCP; ``line_rate_mb_s``:
    ``units.line_rate_mb_s`` of the link, None where none is known. A share above 1.02 is an error
    of measurement. Only what the whole interval violates is flagged; a share beyond a bound whose
    interval is not is ``inconclusive``. Undefined with its reason where r∞ is. Raises NetproofError
    for a line rate that is not positive.
    """
    if line_rate_mb_s is None:
        return _undefined("line rate", where, "no line rate is known: give link rate and MTU")
    r_mb_s = found.asymptotic_mb_s
    if r_mb_s is None:
        return _undefined("line rate", where, found.why("asymptotic_mb_s") or "it has no r∞")
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
        advised = "; more launches have to tell on which side of the bound it lies"
    return Finding(
        "line rate",
        level,
        where,
        f"{where}: an asymptotic bandwidth of {_rate(r_mb_s)} is {share:.1%} of the line rate of"
        f" {_rate(line_rate_mb_s)} ({spoken}){_held(level, bound, below=below)}{advised}",
        value=share,
        bound=bound,
        interval=interval,
    )


def loss(mpi_mb_s: float, tcp_mb_s: float) -> float:
    """1 - bw_MPI / bw_TCP: what MPI loses of the bandwidth of TCP; negative is a gain.

    Both in one unit. Raises NetproofError for a TCP bandwidth that is not positive and an MPI
    bandwidth that is negative. After the e325 Opteron NetPIPE report.
    """
    if not (math.isfinite(tcp_mb_s) and tcp_mb_s > 0 and math.isfinite(mpi_mb_s) and mpi_mb_s >= 0):
        raise NetproofError(
            f"no loss of MPI at {mpi_mb_s} over TCP at {tcp_mb_s}: bandwidths are above 0"
        )
    return 1 - mpi_mb_s / tcp_mb_s


def losses(
    mpi: Curve, tcp: Curve, settings: MpiLossSettings = AT_EVERY_SIZE
) -> tuple[tuple[int, float], ...]:
    """The loss of MPI over TCP at each size that both have, as (bytes, loss).

    Raises NetproofError where one of them has no bandwidth to compare.
    """
    sides = []
    for label, curve in (("MPI", mpi), ("TCP", tcp)):
        points = _bandwidths(curve, settings)
        if points.fault is not None:
            raise NetproofError(f"no loss of MPI over TCP: of {label}, {points.fault}")
        sides.append(points.at)
    common = sorted(sides[0].keys() & sides[1].keys())
    return tuple((size, loss(sides[0][size], sides[1][size])) for size in common)


def mpi_loss(
    mpi: Curve,
    tcp: Curve,
    *,
    where: str,
    settings: MpiLossSettings = MpiLossSettings(),
    at_every_size: MpiLossSettings = AT_EVERY_SIZE,
    launches: tuple[Sequence[Curve], Sequence[Curve]] = ((), ()),
) -> tuple[Finding, Finding]:
    """What MPI loses of TCP's bandwidth, at the peaks and at the worst size (criterion 9).

    Both curves from the same two nodes in the same job, in the same direction. The first
    finding holds the loss between the peaks, which may lie at different sizes, against
    ``settings``; the second the largest loss at a common size against ``at_every_size``.
    ``launches``: those that the curves are medians of, for the interval of the first: a failure
    that only a part of it reaches is inconclusive.
    """
    try:
        at_sizes = losses(mpi, tcp, at_every_size)
    except NetproofError as error:
        return (
            _undefined("MPI loss at the peak", where, str(error)),
            _undefined("MPI loss at a size", where, str(error)),
        )
    (mpi_size, mpi_peak), (tcp_size, tcp_peak) = (
        max(_bandwidths(curve, settings).at.items(), key=lambda point: (point[1], -point[0]))
        for curve in (mpi, tcp)
    )
    peaks = _Value(mpi_size, loss(mpi_peak, tcp_peak), (tcp_size,))
    level, bound = settings.level(peaks.value)
    advice = "look at the library's TCP buffers and at copies that it makes"
    between = _loss_interval(*launches, settings)
    told = ""
    if between is not None:
        told = f" (95% interval {between[0]:.1%} to {between[1]:.1%})"
        level, bound = settings.level(peaks.value, between)
    at_the_peak = _found(
        "MPI loss at the peak",
        level,
        bound,
        where,
        peaks,
        f"MPI peaks at {_rate(mpi_peak)} ({mpi_size} bytes), TCP at {_rate(tcp_peak)} ({tcp_size} "
        f"bytes), a loss of {peaks.value:.1%}{told}",
        advice,
    )
    at_the_peak = replace(at_the_peak, interval=between)
    if not at_sizes:
        return at_the_peak, _undefined(
            "MPI loss at a size", where, "MPI and TCP have no size in common"
        )
    worst = _greatest([_Value(size, lost) for size, lost in at_sizes])
    common = _common([size for size, _ in at_sizes])
    level, bound = at_every_size.level(worst.value)
    at_a_size = _found(
        "MPI loss at a size",
        level,
        bound,
        where,
        worst,
        f"at {worst.size} bytes MPI loses {worst.value:.1%} of TCP's bandwidth, the most {common}",
        advice,
    )
    return at_the_peak, replace(at_a_size, common=common)


def _loss_interval(
    mpi: Sequence[Curve], tcp: Sequence[Curve], settings: MpiLossSettings
) -> tuple[float, float] | None:
    peaks: list[list[float]] = []
    for several in (mpi, tcp):
        points = [_bandwidths(curve, settings) for curve in several]
        if any(one.fault is not None for one in points):
            return None
        peaks.append([max(one.at.values()) for one in points])
    kept = intervals.of_ratio(*peaks)
    return None if kept is None else (1 - kept[1], 1 - kept[0])


def cpu_cost(
    cpu_seconds: Mapping[str, float],
    benchmark_seconds: float,
    *,
    where: str,
    settings: CpuCostSettings = CpuCostSettings(),
) -> tuple[Finding, ...]:
    """CPU seconds on each node for each second of benchmark (criterion 11).

    ``cpu_seconds``: used by the job on each node; ``benchmark_seconds``: how long the benchmark
    ran. 1 is one core all the time, as one busy-polling rank shows. One finding for each node.
    After the network-adapter page. Raises NetproofError for seconds that are negative or no
    number.
    """
    for label, seconds in [*cpu_seconds.items(), (where, benchmark_seconds)]:
        if not math.isfinite(seconds) or seconds < 0:
            raise NetproofError(f"{label}: {seconds} s is no time used")
    if not cpu_seconds:
        return (_undefined("CPU cost", where, "the job's resource use names no node"),)
    if benchmark_seconds < READABLE[0]:
        return (_undefined("CPU cost", where, "the benchmark ran for 0 s"),)
    findings = []
    for node, seconds in cpu_seconds.items():
        value = seconds / benchmark_seconds
        level, bound = settings.level(value)
        findings.append(
            Finding(
                "CPU cost",
                level,
                where,
                f"{where}: node {node} spent {seconds:.3g} CPU s in {benchmark_seconds:.3g} s of "
                f"benchmark, {value:.0%} of a core{_held(level, bound)}",
                value=value,
                bound=bound,
            )
        )
    return tuple(findings)


def crash_share(
    crashed: int, launches: int, *, where: str, settings: CrashSettings = CrashSettings()
) -> Finding:
    """Launches of a configuration that crashed before their first figure, over those made.

    ``launches``: with those that crashed, each attempt being one. Raises NetproofError where
    more crashed than were made.
    """
    if not 0 <= crashed <= launches:
        raise NetproofError(f"{where}: {crashed} of {launches} launches cannot have crashed")
    if launches == 0:
        return _undefined("crashes", where, "nothing was launched")
    value = crashed / launches
    level, bound = settings.level(value) if crashed >= settings.least else (Level.PASS, None)
    flagged = level in (Level.WARN, Level.FAIL)
    held = f", above {100 * bound:.3g} % is flagged" if flagged else ""
    return Finding(
        "crashes",
        level,
        where,
        f"{where}: {crashed} of {launches} launches crashed ({100 * value:.2g} %{held})",
        value=value,
        bound=bound,
    )


def dense_sizes(flagged: Finding, settings: ConfirmSettings = ConfirmSettings()) -> tuple[int, ...]:
    """The sizes in bytes at which a flagged size is measured again (criterion 7).

    From half to twice the flagged size s, evenly spaced in log s, with s and its neighbours
    s ± 1 (± ``element_bytes``) among them, and the sizes that it was compared with, wherever
    they lie. At least ``settings.sizes`` between s/2 and 2s (or ``settings.most_bytes``), or all
    multiples of ``element_bytes`` there where there are fewer (7 at 4 bytes). Raises
    NetproofError for a finding without a size.
    """
    size, element = _flagged_size(flagged), settings.element_bytes
    window = _window(size, settings)
    neighbours = _neighbours(size, window)
    wanted = min(settings.sizes, len(window))
    steps = settings.sizes
    while True:
        grid = {
            round(size / 2 * 4 ** (step / (steps - 1)) / element) * element for step in range(steps)
        }
        dense = {one for one in grid if one in window} | neighbours
        if len(dense) >= wanted:
            return tuple(sorted(dense | set(flagged.compared_sizes)))
        steps += settings.sizes


def needed_sizes(
    flagged: Finding, settings: ConfirmSettings = ConfirmSettings()
) -> tuple[range, frozenset[int]]:
    """What any measuring again of a flagged size has to have, if it cannot take ``dense_sizes``.

    The window from half to twice the flagged size, of which ``settings.sizes`` have to be there,
    and the sizes that all have to be: the flagged one, its neighbours and what it was compared
    with. Raises NetproofError for a finding without a size.
    """
    size = _flagged_size(flagged)
    window = _window(size, settings)
    return window, frozenset(_neighbours(size, window) | set(flagged.compared_sizes))


def confirm(
    flagged: Finding,
    launches: Sequence[Curve],
    *,
    bounds: Bounds,
    settings: ConfirmSettings = ConfirmSettings(),
) -> Confirmation:
    """Whether launches measured again around a flagged size show it again (criterion 7).

    ``flagged``: a finding of inversion, jump or dropout; ``launches``: curves over
    ``dense_sizes`` or more; ``bounds``: the settings that the finding was made with. A launch
    is flagged again if the same criterion reaches a bound at any size from half to twice the
    flagged one; more than half of the usable launches confirm. Raises NetproofError for
    another criterion.
    """
    size = _flagged_size(flagged)
    if flagged.criterion not in _PER_SIZE:
        raise NetproofError(
            f"{flagged.criterion} is not confirmed by measuring again: only "
            f"{', '.join(_PER_SIZE)} are"
        )
    levels, faults = [], []
    for number, curve in enumerate(launches, 1):
        level, fault = _level_again(flagged, curve, bounds, settings)
        if fault is None:
            levels.append(level)
        else:
            faults.append(f"launch {number} could not be used: {fault}")
    again = sum(level in (Level.WARN, Level.FAIL) for level in levels)
    failed = sum(level is Level.FAIL for level in levels)
    unused = "".join(f"; {fault}" for fault in faults)
    counted = f"{again} of {len(levels)} launches around {size} bytes show it again"
    if len(levels) < settings.launches:
        level, told = Level.UNDEFINED, f"not judged, which takes {settings.launches}: {counted}"
    elif 2 * again <= len(levels):
        level, told = Level.SHOWN, f"unconfirmed: {counted}"
    else:
        level = Level.FAIL if 2 * failed > len(levels) else Level.WARN
        told = f"confirmed: {counted}"
    why = f"{flagged.where}: {flagged.criterion} at {size} bytes {told}{unused}"
    return Confirmation(flagged, level, again, len(levels), why)


def _level_again(
    flagged: Finding, curve: Curve, bounds: Bounds, settings: ConfirmSettings
) -> tuple[Level, str | None]:
    """The level that a launch measured again reaches near the flagged size, and its fault."""
    window, needed = needed_sizes(flagged, settings)
    measured = [s for s in curve.sizes if s in window]
    missing = needed - set(curve.sizes)
    if missing:
        return Level.UNDEFINED, f"it lacks {_sizes(sorted(missing))}"
    wanted = min(settings.sizes, len(window))
    if len(measured) < wanted:
        return Level.UNDEFINED, (
            f"it has {len(measured)} of {wanted} sizes from {window[0]} to {window[-1]} bytes"
        )
    read, per_size = _PER_SIZE[flagged.criterion]
    points = read(curve, bounds, at_least=3)
    if points.fault is not None:
        return Level.UNDEFINED, points.fault
    levels = {
        bounds.level(found.value)[0]
        for found in per_size(points)
        if window[0] <= found.size <= window[-1]
    }
    worst = next((level for level in (Level.FAIL, Level.WARN) if level in levels), Level.PASS)
    return worst, None


def _flagged_size(flagged: Finding) -> int:
    if flagged.size is None or flagged.size < 1:
        raise NetproofError(
            f"{flagged.criterion} of {flagged.where} is about no size to measure again"
        )
    return flagged.size


def _window(size: int, settings: ConfirmSettings) -> range:
    """The multiples of an element from half to twice a size."""
    element = settings.element_bytes
    if size % element:
        raise NetproofError(f"{size} bytes is no multiple of an element of {element} bytes")
    last = 2 * size
    if settings.most_bytes is not None:
        last = min(last, max(settings.most_bytes, size + element))
    return range(max(1, math.ceil(size / 2 / element)) * element, last + 1, element)


def _neighbours(size: int, window: range) -> set[int]:
    return {one for one in (size - window.step, size, size + window.step) if one in window}


@dataclass(frozen=True)
class _Side:
    """A configuration as the envelope compares it.

    ``launches``: the time of each by size; ``crossed``: how many message sizes cross its link.
    """

    label: str
    points: _Points
    launches: Sequence[Mapping[int, float]]
    crossing: Crossing | None
    crossed: Mapping[int, float]

    def times(self, size: int) -> list[float]:
        return [launch[size] for launch in self.launches if size in launch]


@dataclass(frozen=True)
class _Compared:
    """The ratio of two configurations at a size; ``added_us`` explains what links differ in."""

    value: float
    interval: tuple[float, float] | None
    other: _Side
    added_us: float


def _why_no_envelope(where: str, others: Sequence[_Side], sides: Mapping[str, _Side]) -> str:
    beside = "run another beside it"
    if len(sides) == 1:
        return f"{where} is the only configuration, and one has no envelope: {beside}"
    meeting = any(
        one is not other and one.points.at.keys() & other.points.at.keys()
        for one in others
        for other in others
    )
    if meeting:
        return "it has no size in common with another configuration"
    return f"no size was measured in two configurations: {beside}"


def _above(side: _Side, others: Sequence[_Side], settings: EnvelopeSettings) -> list[Finding]:
    """A finding for each size that is flagged, or one for the largest ratio; none without any."""
    compared: dict[int, list[_Compared]] = {}
    for other in others:
        added = links.explained_us(other.crossed, other.crossing, side.crossing)
        for size in side.points.at.keys() & other.points.at.keys():
            compared.setdefault(size, []).append(_compare(side, other, size, added.get(size, 0)))
    if not compared:
        return []
    common = _common(sorted(compared))
    findings = []
    for size, several in sorted(compared.items()):
        failing = [c for c in several if settings.level(c.value, c.interval)[0] is Level.FAIL]
        decides = max(failing or several, key=lambda c: c.value)
        findings.append(_held_against(side, size, decides, common, settings))
    flagged = [f for f in findings if f.level in (Level.WARN, Level.FAIL, Level.INCONCLUSIVE)]
    return flagged or [max(findings, key=lambda finding: finding.value or 0)]


def _compare(side: _Side, other: _Side, size: int, added_us: float) -> _Compared:
    value = side.points.at[size] / (other.points.at[size] + added_us)
    expected = [time + added_us for time in other.times(size)]
    return _Compared(value, intervals.of_ratio(side.times(size), expected), other, added_us)


def _held_against(
    side: _Side, size: int, compared: _Compared, common: CommonSizes, settings: EnvelopeSettings
) -> Finding:
    time, other = side.points.at[size], compared.other
    level, bound = settings.level(compared.value, compared.interval)
    if compared.value < 1 and level is not Level.INCONCLUSIVE:
        level, bound = settings.level(1)
        told = f"{time:.4g} µs at {size} bytes is the least of all, compared {common}"
        nearest = _found("envelope", level, bound, side.label, _Value(size, 1), told, "")
        return replace(nearest, common=common)
    theirs = other.points.at[size]
    whose = f"the {theirs:.4g} µs of {other.label}"
    if compared.added_us > 0 and side.crossing is not None and other.crossing is not None:
        whose = (
            f"the {theirs + compared.added_us:.4g} µs that {other.label} would take over"
            f" {side.crossing.link}, by its {theirs:.4g} µs over {other.crossing.link}"
        )
    found = _found(
        "envelope",
        level,
        bound,
        side.label,
        _Value(size, compared.value),
        f"{time:.4g} µs at {size} bytes is {compared.value:.3g} times{_spoken(compared.interval)}"
        f" {whose}, compared {common}",
        f"avoid or mend this configuration for messages of about {size} bytes",
    )
    return replace(found, common=common, interval=compared.interval, against=other.label)


def _spoken(interval: tuple[float, float] | None) -> str:
    if interval is None:
        return ""
    return f" ({intervals.CONFIDENCE:.0%} interval {interval[0]:.3g} to {interval[1]:.3g})"


def _inversions(points: _Points) -> list[_Value]:
    found = []
    fastest = None
    for size, time in reversed(points.at.items()):
        if fastest is None or time <= points.at[fastest]:
            fastest = size
        found.append(_Value(size, time / points.at[fastest], (fastest,)))
    return found[::-1]


def _jumps(points: _Points) -> list[_Value]:
    steps = list(points.at.items())
    return [
        _Value(size, max(1.0, time / time_before / (size / before)), (before,))
        for (before, time_before), (size, time) in pairwise(steps)
    ]


def _dropouts(points: _Points) -> list[_Value]:
    rates = list(points.at.items())
    found = []
    for i, (size, rate) in enumerate(rates[1:-1], 1):
        left = max(rates[:i], key=lambda point: point[1])
        right = max(rates[i + 1 :], key=lambda point: point[1])
        found.append(_Value(size, rate / min(left[1], right[1]), (left[0], right[0])))
    return found


def _times(curve: Curve, settings: Bounds, at_least: int = 1) -> _Points:
    return _points(curve.sizes, curve.time_us, "µs", settings, at_least)


def _bandwidths(curve: Curve, settings: Bounds, at_least: int = 1) -> _Points:
    if curve.bandwidth_mb_s is None:
        return _Points({}, "the benchmark defines no bandwidth")
    return _points(curve.sizes, curve.bandwidth_mb_s, "MB/s", settings, at_least)


def _points(
    sizes: Sequence[int], values: Sequence[float], unit: str, settings: Bounds, at_least: int
) -> _Points:
    points = {}
    for size, value in zip(sizes, values, strict=True):
        if size < settings.least_size:
            continue
        if not READABLE[0] <= value <= READABLE[1]:
            return _Points({}, f"{value:g} {unit} at {size} bytes is no reading: measure it again")
        points[size] = value
    if len(points) < at_least:
        return _Points(
            {},
            f"it has {len(points)} sizes of {settings.least_size} bytes or more, and this takes "
            f"{at_least}",
        )
    return _Points(points)


_PER_SIZE: dict[str, tuple[Callable[..., _Points], Callable[[_Points], list[_Value]]]] = {
    "inversion": (_times, _inversions),
    "jump": (_times, _jumps),
    "dropout": (_bandwidths, _dropouts),
}
"""The criteria that flag single sizes: what they read of a curve, and its value at each size."""


def _bootstrap(
    launches: Sequence[Curve],
    baseline_launches: Sequence[Curve],
    sizes: Sequence[int],
    settings: ScoreSettings,
) -> tuple[float, float]:
    random = np.random.default_rng(settings.random_seed)

    def resampled_logs(several: Sequence[Curve]) -> np.ndarray:
        columns = [several[0].sizes.index(size) for size in sizes]
        times = np.array([curve.time_us for curve in several])[:, columns]
        return np.log(resampled_medians(times, settings, random)).mean(axis=1)

    scores = np.exp(resampled_logs(baseline_launches) - resampled_logs(launches))
    return percentile_interval(scores, settings)


def resampled_medians(
    launches: np.ndarray, settings: ScoreSettings, random: np.random.Generator
) -> np.ndarray:
    """What the median over the launches is in bootstrap samples of them.

    ``launches``: a row for each launch, a column for each size. Shape of the result: resamples,
    sizes; in the unit of the values.
    """
    drawn = random.integers(0, len(launches), (settings.resamples, len(launches)))
    return np.median(launches[drawn], axis=1)


def percentile_interval(values: np.ndarray, settings: ScoreSettings) -> tuple[float, float]:
    """The interval of the settings' confidence by the percentiles of bootstrap samples' values."""
    outside = (1 - settings.confidence) / 2
    low, high = np.quantile(values, [outside, 1 - outside])
    return float(low), float(high)


def _greatest(values: Sequence[_Value]) -> _Value:
    return max(values, key=lambda found: found.value)


def _common(sizes: Sequence[int]) -> CommonSizes:
    return CommonSizes(len(sizes), sizes[0], sizes[-1])


def _found(
    criterion: str,
    level: Level,
    bound: float | None,
    where: str,
    found: _Value,
    told: str,
    advice: str,
    *,
    below: bool = False,
) -> Finding:
    advised = f"; {advice}" if level in (Level.WARN, Level.FAIL) else ""
    if level is Level.INCONCLUSIVE:
        advised = "; the interval lies astride that bound, and more launches would make it shorter"
    return Finding(
        criterion,
        level,
        where,
        f"{where}: {told}{_held(level, bound, below=below)}{advised}",
        size=found.size,
        value=found.value,
        bound=bound,
        compared_sizes=found.compared,
    )


def _held(level: Level, bound: float | None, *, below: bool = False) -> str:
    if bound is None:
        return ""
    side = "below" if below else "above"
    return f" ({level.value}: {side} {bound:g} is flagged)"


def _undefined(criterion: str, where: str, reason: str) -> Finding:
    return Finding(criterion, Level.UNDEFINED, where, f"{where}: {criterion} undefined: {reason}")


def _rate(bandwidth_mb_s: float) -> str:
    return f"{bandwidth_mb_s:.4g} MB/s ({mbit_s(bandwidth_mb_s):.4g} Mbit/s)"


def _sizes(sizes: Sequence[int]) -> str:
    return f"{', '.join(map(str, sizes))} bytes"
