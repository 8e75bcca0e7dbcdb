"""Power of a session: the smallest change of each case that would have failed it.

A change is planted into every launch of a case, and the case is judged again by its references and
all criteria, with the other cases unchanged. The result is the mildest change that fails. The
case's own noise gives the change that is found with a stated probability.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from netproof.criteria import Level
from netproof.measurement.case import Case, Curve
from netproof.session.measured import Measured
from netproof.session.session import Session
from netproof.site.matrix import Matrix
from netproof.verdict import engine, limits
from netproof.verdict.engine import Key, Subject
from netproof.verdict.judge import cases_of, subjects_of
from netproof.verdict.references import Entries

SURE = 0.95
"""Probability with which the stated change is found."""

_QUANTILE = 1.6448536269514722
"""Quantile of the normal distribution, one-sided, for ``SURE``."""

_INTERVAL = 1.959963984540054
"""Standard errors from the middle of a 95 % interval to its end."""

FACTORS = (
    *(1.01, 1.02, 1.03, 1.05, 1.07, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4, 1.5, 1.75),
    *(2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0, 30.0, 50.0, 100.0),
)
"""Factors on the time of a changed quantity, in the order in which they are tried."""


class Degradation(StrEnum):
    """Changed quantity of a case."""

    BANDWIDTH = "bandwidth"
    LATENCY = "latency"
    SPIKE = "one size"


TWICE, FIFTH_LESS = 2.0, 1.25
"""Factors on latency and time per byte of the sentence at the top of a report."""


@dataclass(frozen=True)
class Smallest:
    """Mildest change of one kind that fails a case.

    ``factor``: on the time per byte, the latency, or one size's messages; None where even the last
    of ``FACTORS`` passes; ``by``: the criterion that fails; ``size``: bytes, of a spike where it is
    hardest to find; ``sure``: found with the probability ``SURE``, None with a single launch.
    """

    change: Degradation
    factor: float | None
    by: str = ""
    sure: float | None = None
    size: int | None = None


@dataclass(frozen=True)
class Sensitivity:
    """How many of ``cases`` fail by twice the latency, by a fifth less bandwidth, by neither.

    ``neither``: not even by the last of ``FACTORS``.
    """

    cases: int
    latency: int
    bandwidth: int
    neither: int


CasePower = tuple[Case, int, tuple[Smallest, ...]]
"""A case, its number of launches of the whole curve, and the mildest failing change of each kind,
none where it failed unchanged."""


class Examined:
    """A session whose cases are changed one at a time, and judged."""

    def __init__(self, session: Session, matrix: Matrix, references: Entries) -> None:
        ran, self.cases = cases_of(session, matrix)
        self._references = references
        self._subjects = subjects_of(ran, matrix)
        self._job = engine.by_place(self._subjects)
        self._groups: dict[Key, list[Subject]] = defaultdict(list)
        for one in self._subjects.values():
            if one.measured.curve.sizes != (0,):
                self._groups[engine.group(one.case)].append(one)

    def power(self, case: Case) -> CasePower | None:
        """Return the power for one case; None where it was not complete."""
        one = self._subjects.get(case.key())
        if one is None:
            return None
        count = len(one.measured.launches)
        if self._failing(one):
            return case, count, ()
        found = [self._mildest(one, Degradation.LATENCY)]
        if one.measured.curve.sizes != (0,):
            found.append(self._mildest(one, Degradation.BANDWIDTH))
            spikes = [
                self._mildest(one, Degradation.SPIKE, size)
                for size in one.measured.curve.sizes
                if size >= one.settings.envelope.least_size
            ]
            if spikes:
                found.append(max(spikes, key=lambda spike: spike.factor or math.inf))
        return case, count, tuple(found)

    def fails_with(
        self, case: Case, change: Degradation, factor: float, size: int | None
    ) -> str | None:
        """Return the criterion that fails a case with this change, or empty; None as ``power``."""
        one = self._subjects.get(case.key())
        if one is None:
            return None
        return self._failing(_changed(one, change, factor, size))

    def sensitivity(self, cases: Iterable[Case]) -> Sensitivity:
        """Return how many of the cases that pass here a stated change would fail."""
        several = (self._subjects[one.key()] for one in cases if one.key() in self._subjects)
        passed = [one for one in several if not self._failing(one)]
        latency = bandwidth = neither = 0
        for one in passed:
            has_sizes = one.measured.curve.sizes != (0,)

            def fails(change: Degradation, factor: float, one: Subject = one) -> bool:
                return bool(self._failing(_changed(one, change, factor, None)))

            slower = fails(Degradation.LATENCY, TWICE)
            thinner = has_sizes and fails(Degradation.BANDWIDTH, FIFTH_LESS)
            latency, bandwidth = latency + slower, bandwidth + thinner
            most = [Degradation.LATENCY, *([Degradation.BANDWIDTH] if has_sizes else [])]
            if not (slower or thinner or any(fails(one, FACTORS[-1]) for one in most)):
                neither += 1
        return Sensitivity(len(passed), latency, bandwidth, neither)

    def _mildest(self, one: Subject, change: Degradation, size: int | None = None) -> Smallest:
        """Return the first factor that fails, by bisection, as every larger one fails too."""
        low, high, by = 0, len(FACTORS), ""
        while low < high:
            middle = (low + high) // 2
            failed = self._failing(_changed(one, change, FACTORS[middle], size))
            if failed:
                high, by = middle, failed
            else:
                low = middle + 1
        if low == len(FACTORS):
            return Smallest(change, None, size=size)
        error = _standard_error(one.measured, change, size)
        sure = None if error is None else FACTORS[low] * math.exp(_QUANTILE * error)
        return Smallest(change, FACTORS[low], by, sure, size)

    def _failing(self, one: Subject) -> str:
        key = one.case.key()
        bounds = limits.of_case(self._references, one.case)
        findings = [
            *engine.references(one, bounds).values(),
            *engine.smoothness(one),
            *engine.rates(one, self._job),
        ]
        for finding in findings:
            # A flag at a size would be confirmed, since every launch has the change.
            if engine.rule(one, finding).level is Level.FAIL:
                return finding.criterion
        others = [each for each in self._groups[engine.group(one.case)] if each.case.key() != key]
        compared = engine.compared([one, *others], None, only=one, scored=False)
        failing = (found for _, found in compared if found.level is Level.FAIL)
        return next((found.criterion for found in failing), "")


Changed = Callable[[Curve], Curve]
"""Function from each launch's curve to its changed curve."""


def _standard_error(measured: Measured, change: Degradation, size: int | None) -> float | None:
    """Return the standard error of a changed quantity's logarithm; None without an interval."""
    if size is not None:
        ends = limits.interval_of(measured, f"{limits.TIME_AT}{size}")
    elif change is Degradation.LATENCY:
        ends = measured.landmarks.intervals.get("latency_us")
    else:
        # The asymptotic bandwidth has no interval where times lie on no line; that of the
        # largest message serves as well.
        ends = measured.landmarks.intervals.get("asymptotic_mb_s") or limits.interval_of(
            measured, f"{limits.TIME_AT}{measured.curve.sizes[-1]}"
        )
    if ends is None or len(measured.launches) < 2 or not 0 < ends[0] <= ends[1] < math.inf:
        return None
    return math.log(ends[1] / ends[0]) / (2 * _INTERVAL)


def _changed(one: Subject, change: Degradation, factor: float, size: int | None) -> Subject:
    """Return a case with a factor on one size, its latency, or its time per byte, in each launch.

    Interleaved launches stay.
    """
    measured = one.measured
    more = (factor - 1) * (measured.landmarks.latency_us or measured.curve.time_us[0])

    def changed(curve: Curve) -> Curve:
        if change is Degradation.BANDWIDTH:
            return slower_by_the_byte(measured, factor)(curve)
        if size is None:
            return with_times(curve, [time + more for time in curve.time_us])
        points = zip(curve.sizes, curve.time_us, strict=True)
        return with_times(curve, [time * (factor if at == size else 1) for at, time in points])

    launches = [dataclasses.replace(it, curves=(changed(it.curve),)) for it in measured.launches]
    return dataclasses.replace(one, measured=measured.with_launches(launches))


def slower_by_the_byte(measured: Measured, factor: float) -> Changed:
    """Make each byte slower, so that the largest message takes the factor longer."""
    each = (factor - 1) * measured.curve.time_us[-1] / measured.curve.sizes[-1]
    return lambda curve: with_times(
        curve, [time + each * size for size, time in zip(curve.sizes, curve.time_us, strict=True)]
    )


def with_times(curve: Curve, times: Sequence[float]) -> Curve:
    """Return a curve with other times, and with bandwidths and the ranks' own times adapted."""
    factors = [new / old if old else 1.0 for new, old in zip(times, curve.time_us, strict=True)]

    def scaled(values: tuple[float, ...] | None, exponent: int) -> tuple[float, ...] | None:
        if values is None:
            return None
        return tuple(
            value * factor**exponent for value, factor in zip(values, factors, strict=True)
        )

    return Curve(
        curve.sizes,
        tuple(times),
        scaled(curve.bandwidth_mb_s, -1),
        scaled(curve.time_min_us, 1),
        scaled(curve.time_avg_us, 1),
    )
