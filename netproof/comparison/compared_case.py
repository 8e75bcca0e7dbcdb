"""A case that both sides measured: its ratio, its ranges of sizes and its landmarks.

Intervals are the score's bootstrap over launches, with the landmark of their median curve. r∞ and
the share of the line rate are known per launch: theirs is the interval of the ratio of medians.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netproof.criteria import Finding, Level, slower
from netproof.criteria.findings import CannotJudgeError, undefined
from netproof.criteria.score import SEED, percentile_interval, resampled_medians, score
from netproof.criteria.settings import Settings
from netproof.criteria.slower import ENVELOPE, factor, spans
from netproof.errors import NetproofError
from netproof.measurement import twin
from netproof.measurement.cpu_use import costliest
from netproof.measurement.curve import Curve
from netproof.measurement.interval import Interval, of_ratio
from netproof.measurement.landmark_table import LANDMARKS, LATENCY_BELOW, RATES, Better
from netproof.measurement.landmarks import ASYMPTOTIC, landmarks
from netproof.session.measured import Measured
from netproof.site.matrix import Matrix
from netproof.verdict.engine import Subject
from netproof.verdict.verdict import CaseVerdict, StoredResult

Floats = NDArray[np.float64]

RANGE_SIZES = 3
"""Sizes that make a range: at each, the launches of both sides do not overlap."""

RANGE_LAUNCHES = 3
"""Launches of each side that a range takes: with fewer, chance separates sides too often."""

LONE_SIZE_RATIO = 2.0
"""Ratio from which a size outside all ranges is reported too."""


@dataclass(frozen=True)
class Range:
    """Neighbouring sizes, from ``least`` to ``largest`` bytes, over which one side is faster.

    ``faster``: whether the second side is; ``ratio`` at ``size`` is the one furthest from 1.
    """

    least: int
    largest: int
    faster: bool
    size: int
    ratio: float

    def __str__(self) -> str:
        """Return the range as part of a sentence about the second side."""
        word = "faster" if self.faster else "slower"
        if self.least == self.largest:
            return f"{word} at {self.size} bytes ({self.ratio:.3g} times as fast)"
        return (
            f"{word} from {self.least} to {self.largest} bytes ({self.ratio:.3g} times as fast at"
            f" {self.size})"
        )


def ranges_of(
    first: Sequence[Curve], second: Sequence[Curve], ratios: Mapping[int, float]
) -> tuple[Range, ...]:
    """Return the ranges in which all launches of one side beat all of the other.

    A range has ``RANGE_SIZES`` such sizes or more, with at most one other size between two. Single
    sizes count where one side is ``LONE_SIZE_RATIO`` times as fast.
    """
    if min(len(first), len(second)) < RANGE_LAUNCHES:
        return ()
    found = []
    for run in spans(ratios, lambda size: _apart(first, second, size), others=1):
        parts = [run] if len(run) >= RANGE_SIZES else [[size] for size in run]
        for sizes in parts:
            size = max(sizes, key=lambda one: factor(ratios[one]))
            if len(sizes) > 1 or factor(ratios[size]) >= LONE_SIZE_RATIO:
                found.append(Range(sizes[0], sizes[-1], ratios[size] > 1, size, ratios[size]))
    return tuple(found)


def _apart(first: Sequence[Curve], second: Sequence[Curve], size: int) -> bool:
    one, other = (
        [curve.time_us[curve.sizes.index(size)] for curve in side] for side in (first, second)
    )
    return max(one) < min(other) or max(other) < min(one)


_OWN = [one for one in LANDMARKS.values() if one.name not in twin.NAMES]
COMPARED = sorted(_OWN, key=lambda one: one.better is Better.NEITHER)
"""Landmarks of one case; those with a better end, and so with a ratio, come first."""


@dataclass(frozen=True)
class LandmarkRatio:
    """A landmark of both sides; with ``ratio`` above 1 the second side's is better.

    ``difference``: second minus first. Values are None where a side has no such landmark, or it has
    no better end; intervals also where a side has one launch.
    """

    first: float | None
    second: float | None
    ratio: float | None = None
    interval: Interval | None = None
    difference: float | None = None
    difference_interval: Interval | None = None


def landmark_ratios(
    first: Measured,
    second: Measured,
    peaks_from: Sequence[int],
) -> dict[str, LandmarkRatio]:
    """Return every landmark of two cases by name, with ratio and difference where comparable.

    ``peaks_from``: the least size in bytes that can be the peak, for each side. Raise NetproofError
    where launches of a case differ in their sizes.
    """
    resampled: list[dict[str, Floats]] = [{}, {}]
    if min(len(first.launches), len(second.launches)) > 1:
        random = np.random.default_rng(SEED)
        resampled = [
            _resampled(one, peak_from, random)
            for one, peak_from in zip((first, second), peaks_from, strict=True)
        ]
    found = {}
    for landmark in COMPARED:
        name, smaller = landmark.name, landmark.better is Better.SMALLER
        one, other = getattr(first.landmarks, name), getattr(second.landmarks, name)
        if landmark.better is Better.NEITHER or not (one and other):
            found[name] = LandmarkRatio(one, other)
            continue
        interval = difference_interval = None
        if name in ASYMPTOTIC:
            interval = _of_asymptotic(first, second, name)
        elif name in resampled[0] and name in resampled[1]:
            ones, others = resampled[0][name], resampled[1][name]
            interval = percentile_interval(ones / others if smaller else others / ones)
            difference_interval = percentile_interval(others - ones)
        ratio = one / other if smaller else other / one
        found[name] = LandmarkRatio(one, other, ratio, interval, other - one, difference_interval)
    return found


def _of_asymptotic(first: Measured, second: Measured, name: str) -> Interval | None:
    """Return the interval of the ratio of two r∞, or of two shares of the line rate, over launches.

    None where a launch has no line, for a single launch, and where the ratio has no upper end.
    """
    sides: list[list[float]] = []
    for measured in (first, second):
        figures = (landmarks(one.curve, measured.line_rate_mb_s) for one in measured.launches)
        sides.append([own for one in figures if (own := getattr(one, name)) is not None])
        if len(sides[-1]) < len(measured.launches):
            return None
    found = of_ratio(sides[1], sides[0])
    return found if found and found[1] < math.inf else None


def _resampled(
    measured: Measured, peak_from: int, random: np.random.Generator
) -> dict[str, Floats]:
    """Return the case's landmarks above 0 in bootstrap samples of its launches."""
    curve, launches = measured.curve, measured.launches
    for launch in launches:
        if launch.curve.sizes != curve.sizes:
            raise NetproofError(
                f"{measured.case}: launch {launch.number} has other sizes than its median curve;"
                " the report was changed"
            )
    short = [
        number
        for number, (size, time) in enumerate(zip(curve.sizes, curve.time_us, strict=True))
        if (1 <= size < LATENCY_BELOW or curve.sizes == (0,)) and time > 0
    ]
    times = np.array([launch.curve.time_us for launch in launches])[:, short]
    rates = np.array([launch.curve.bandwidth_mb_s or () for launch in launches])
    medians = resampled_medians(np.hstack([times, rates]), random)
    found = {}
    if short:
        found["latency_us"] = np.median(medians[:, : len(short)], axis=1)
    if curve.bandwidth_mb_s is not None:
        at = {size: medians[:, len(short) + number] for number, size in enumerate(curve.sizes)}
        found |= {name: at[size] for name, size in RATES.items() if size in at}
        candidates = [values for size, values in at.items() if size >= peak_from]
        if candidates:
            found["peak_mb_s"] = np.max(candidates, axis=0)
    return {name: values for name, values in found.items() if values.min() > 0}


class Outcome(StrEnum):
    """Outcome for the second side, by the interval of the ratio."""

    FASTER = "faster"
    SLOWER = "slower"
    ALIKE = "no difference overall"
    UNDECIDED = "no interval"
    UNDEFINED = "no ratio"


@dataclass(frozen=True)
class ComparedCase:
    """A case that both sides measured.

    ``score``: the second side's, with the first as baseline, or the ratio of times without message
    sizes; ``ratios``: by size in bytes, the first side's median time over the second's;
    ``cpu_s_per_gb``: of each side's costliest node; ``disturbed``: other activity in launches that
    count all the same, with the side's name.
    """

    first: Measured
    second: Measured
    score: Finding
    ratios: Mapping[int, float]
    ranges: tuple[Range, ...]
    landmarks: Mapping[str, LandmarkRatio]
    cpu_s_per_gb: LandmarkRatio
    disturbed: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """Return the outcome by the interval: an interval that contains 1 shows no difference."""
        if self.score.value is None:
            return Outcome.UNDEFINED
        if self.score.interval is None:
            return Outcome.UNDECIDED
        low, high = self.score.interval
        if low > 1:
            return Outcome.FASTER
        return Outcome.SLOWER if high < 1 else Outcome.ALIKE

    def latency(self, first: str, second: str) -> str | None:
        """Return how the second side's latency differs, in words; None without a difference."""
        found = self.landmarks["latency_us"]
        if found.difference is None:
            return None
        before = f"the {found.first:.3g} µs of {first}"
        size = f"{abs(found.difference):.3g} µs"
        if found.difference_interval is None:
            verb = "adds" if found.difference > 0 else "takes off"
            return f"{second} {verb} {size}, with no interval, {before}"
        low, high = found.difference_interval
        if low <= 0 <= high:
            return f"{second} is no different from {before} ({low:+.2g} to {high:+.2g} µs)"
        if low > 0:
            return f"{second} adds {size} ({low:.3g} to {high:.3g}) to {before}"
        return f"{second} takes {size} ({-high:.3g} to {-low:.3g}) off {before}"

    def sentence(self) -> str:
        """Return the sentence: ratio, sizes, and what disturbed either side."""
        noise = f"; the machine was disturbed: {'; '.join(self.disturbed)}"
        return f"{self._ratio()}{noise if self.disturbed else ''}"

    def _ratio(self) -> str:
        if self.score.value is None:
            latency = self.landmarks["latency_us"].ratio
            alongside = "" if latency is None else f"; by its latency {latency:.3g} times as fast"
            return f"{self.score.reason}{alongside}"
        by = "" if self.score.common else " by its time"
        ratio = f"{self.score.value:.3g} times as fast{by}"
        if self.score.interval is None:
            return f"{ratio}, with no interval, which takes two launches of both"
        low, high = self.score.interval
        ranges = f": {'; '.join(map(str, self.ranges))}" if self.ranges else ""
        return f"{ratio} ({low:.3g} to {high:.3g}){ranges}"


def compared_case(
    before: Measured,
    after: Measured,
    extras: Sequence[Mapping[str, Any]],
    first: str,
    second: str,
) -> ComparedCase:
    """Compare two measurements of the same case, from sides of these names.

    ``extras``: the keys of each side's partition. Raise NetproofError where a measurement cannot be
    read.
    """
    both = list(zip((before, after), extras, strict=True))
    # The line rate takes no part in a score.
    settings = Settings.of_site(extras[1].get("criteria", {}), line_rate_from_bytes=0).score
    curves = [[launch.curve for launch in side.launches] for side in (before, after)]
    peaks_from = [here["line_rate_from_bytes"] if side.line_rate_mb_s else 0 for side, here in both]
    landmarks = landmark_ratios(before, after, peaks_from)
    where = f"{second} {after.case.what()}"
    sizeless = before.curve.sizes == after.curve.sizes == (0,)
    if sizeless:
        found = _of_times(landmarks["latency_us"], where, first)
    else:
        try:
            found = score(curves[1], curves[0], where=where, baseline=first, settings=settings)
        except CannotJudgeError as error:
            found = undefined("score", where, str(error))
    ratios: dict[int, float] = {}
    if found.value is not None and not sizeless:
        times = [
            dict(zip(side.curve.sizes, side.curve.time_us, strict=True)) for side in (before, after)
        ]
        ratios = {
            size: times[0][size] / times[1][size]
            for size in before.curve.sizes
            if size in times[1] and size >= settings.least_size
        }
    ranges = ranges_of(curves[0], curves[1], ratios)
    disturbed = tuple(
        f"{name}: {noise}"
        for name, (side, here) in zip((first, second), both, strict=True)
        for noise in Subject.of_extras(side, here, {}).disturbances
    )
    one_cost, other_cost = (costliest(side.cpu_costs).s_per_gb for side in (before, after))
    costs = LandmarkRatio(one_cost, other_cost)
    if one_cost and other_cost:
        # Below 1 the second side costs more.
        ratio, more = one_cost / other_cost, other_cost - one_cost
        costs = dataclasses.replace(costs, ratio=ratio, difference=more)
    return ComparedCase(before, after, found, ratios, ranges, landmarks, costs, disturbed)


def _of_times(time: LandmarkRatio, where: str, first: str) -> Finding:
    """Return the ratio of times as a score, for a function without message sizes."""
    if time.ratio is None:
        why = "no ratio: a side has no time above 0"
        return Finding("time", Level.UNDEFINED, where, why)
    spoken = "no interval, which takes two launches of both"
    if time.interval is not None:
        spoken = f"95% interval {time.interval[0]:.3g} to {time.interval[1]:.3g}"
    why = f"{time.ratio:.3g} times as fast as {first}, by its time ({spoken})"
    return Finding("time", Level.SHOWN, where, why, value=time.ratio, interval=time.interval)


def envelope_of_cases(
    cases: Mapping[str, CaseVerdict | StoredResult], matrix: Matrix
) -> tuple[dict[int, tuple[float, str]], bool]:
    """Return the envelope of equal cases by their labels, and whether they cross unlike links.

    At least one case is of this session. The envelope has the least time in µs and its label by
    size, where two cases share one; unlike links differ in rate or MTU, as far as they are known.
    """
    curves = {
        label: one.measured.curve
        for label, one in cases.items()
        if one.measured is not None and one.measured.curve.sizes != (0,)
    }
    first = next(one.case for one in cases.values() if isinstance(one, CaseVerdict))
    partition = matrix.partitions.get(first.partition)
    settings = ENVELOPE if partition is None else partition.settings().envelope
    links = set()
    for one in cases.values():
        if isinstance(one, StoredResult):
            links.add(one.subject.link)
        elif one.case.partition in matrix.partitions:
            rdma = one.case.environment in matrix.not_over_tcp
            over_tcp = one.case.function == "tcp" or not rdma
            links.add(matrix.partitions[one.case.partition].link(over_tcp=over_tcp))
    unlike = first.path != "intra-node" and len(links - {None}) > 1
    return slower.envelope(curves, settings), unlike
