"""Compare two sessions, partitions or environments, case by case.

The ratio of a case is the score, with the first side as its baseline: above 1 the second side is
faster. Intervals are the score's bootstrap over launches, with the landmark of their median curve;
r∞ and the share of the line rate are known per launch: theirs is that of the ratio of medians.
Nothing is judged here; cases that only one side measured are listed.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netproof.criteria import Finding, Level, slower
from netproof.criteria.findings import CannotJudgeError, undefined
from netproof.criteria.score import NO_INTERVAL, ScoredSide, percentile_interval, samples, score
from netproof.criteria.score import medians as medians_of
from netproof.criteria.settings import Settings
from netproof.criteria.slower import ENVELOPE, factor, spans
from netproof.errors import NetproofError, listed
from netproof.measurement import twin
from netproof.measurement.case import Case, Curve
from netproof.measurement.disturbance import costliest
from netproof.measurement.interval import Interval, of_ratio
from netproof.measurement.landmarks import (
    ASYMPTOTIC,
    LANDMARKS,
    LATENCY_BELOW,
    RATES,
    Better,
    asymptotic_mb_s,
)
from netproof.session import node_facts
from netproof.session.measured import Measured
from netproof.session.node_facts import Node
from netproof.session.session import CheckResult, Session
from netproof.site.matrix import Matrix
from netproof.verdict.engine import Key, Subject, group
from netproof.verdict.judge import faults_of
from netproof.verdict.verdict import CaseVerdict, StoredResult, Verdict

Floats = NDArray[np.float64]

RANGE_SIZES = 3
"""Sizes that make a range: at each, the launches of both sides do not overlap."""

RANGE_LAUNCHES = 3
"""Launches of each side that a range takes: with fewer, chance separates sides too often."""

LONE_SIZE_RATIO = 2.0
"""Ratio from which a size outside all ranges is reported too."""

NOT_MEASURED_BY = (
    *("criteria", "baseline", "absent", "known", "retired"),
    *("may_differ", "clock_offset_ms", "coverage_percent", "pairs", "wait_for_nodes_s"),
)
"""Keys of a site's file that do not change what is measured."""


@dataclass(frozen=True)
class ComparedSide:
    """One side: a session, or the cases of one of its partitions or environments, or of both.

    ``name``: distinguishes it in sentences; ``also``: further sessions whose results stand in
    ``session``.
    """

    session: Session
    name: str
    partition: str | None = None
    environment: str | None = None
    also: tuple[Session, ...] = ()

    def results(self) -> dict[Key, CheckResult]:
        """Return the final results of its cases, by the key that a counterpart shares.

        Raise NetproofError where it has none.
        """
        cases = [(one.case, one) for one in self.session.results if one.case is not None]
        # A case that ReFrame repeated counts as it ended.
        found = {
            (
                None if self.partition else case.partition,
                None if self.environment else case.environment,
                *group(case),
            ): result
            for case, result in cases
            if self.partition in (None, case.partition)
            and self.environment in (None, case.environment)
        }
        if found:
            return found
        known = dict.fromkeys(f"{case.partition} {case.environment}" for case, _ in cases)
        raise NetproofError(
            f"{self.session.path}: has no case of {self.name}; it has"
            f" {', '.join(known) or 'no case'}"
        )


def sides(
    first: Session,
    second: Session | None = None,
    partitions: tuple[str, str] | None = None,
    environments: tuple[str, str] | None = None,
    names: tuple[str, str] | None = None,
) -> tuple[ComparedSide, ComparedSide]:
    """Return the two sides: two sessions, or two partitions or environments of one.

    ``partitions`` and ``environments``: those of the first and of the second side; ``names``: of
    the two sessions, else their files. Raise NetproofError where both sides would be the same, or a
    session holds several systems.
    """
    second = second or first
    for one in (first, second):
        one.system()
    parts = []
    if first.path != second.path:
        # A stored session is a folder, session=NAME.
        stems = [one.path.stem.removeprefix("session=") for one in (first, second)]
        same = stems[0] == stems[1]
        parts.append(names or ((str(first.path), str(second.path)) if same else (*stems,)))
    parts += [pair for pair in (partitions, environments) if pair and pair[0] != pair[1]]
    if not parts:
        raise NetproofError(
            f"{first.path}: both sides are the same; name a second session, or two with"
            " --partition or --environment"
        )

    def side(session: Session, at: int) -> ComparedSide:
        partition, environment = (pair and pair[at] for pair in (partitions, environments))
        name = " ".join(pair[at] for pair in parts)
        return ComparedSide(session, name, partition, environment)

    return side(first, 0), side(second, 1)


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
        word = "faster" if self.faster else "slower"
        if self.least == self.largest:
            return f"{word} at {self.size} bytes ({self.ratio:.3g} times as fast)"
        return (
            f"{word} from {self.least} to {self.largest} bytes ({self.ratio:.3g} times as fast at"
            f" {self.size})"
        )


def _ranges(
    first: Sequence[Curve], second: Sequence[Curve], ratios: Mapping[int, float]
) -> tuple[Range, ...]:
    """Return the ranges in which all launches of one side beat all of the other.

    A range has ``RANGE_SIZES`` such sizes or more, with at most one other size between two. Single
    sizes count where one side is ``LONE_SIZE_RATIO`` times as fast.
    """
    if min(len(first), len(second)) < RANGE_LAUNCHES:
        return ()

    def apart(size: int) -> bool:
        one, other = (
            [curve.time_us[curve.sizes.index(size)] for curve in side] for side in (first, second)
        )
        return max(one) < min(other) or max(other) < min(one)

    found = []
    for run in spans(ratios, apart, others=1):
        parts = [run] if len(run) >= RANGE_SIZES else [[size] for size in run]
        for sizes in parts:
            size = max(sizes, key=lambda one: factor(ratios[one]))
            if len(sizes) > 1 or factor(ratios[size]) >= LONE_SIZE_RATIO:
                found.append(Range(sizes[0], sizes[-1], ratios[size] > 1, size, ratios[size]))
    return tuple(found)


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


def _landmark_ratios(
    first: Measured, second: Measured, peaks_from: Sequence[int]
) -> dict[str, LandmarkRatio]:
    """Return every landmark by name; ``peaks_from``: least bytes of a peak, for each side."""
    resampled: list[dict[str, Floats]] = [{}, {}]
    counts = len(first.launches), len(second.launches)
    if min(counts) > 1:
        resampled = [
            _resampled(one, peaks_from[side], counts, side)
            for side, one in enumerate((first, second))
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
            interval = _of_asymptotic(first, second, share=name == "line_rate_share")
        elif name in resampled[0] and name in resampled[1]:
            ones, others = resampled[0][name], resampled[1][name]
            interval = percentile_interval(ones / others if smaller else others / ones)
            difference_interval = percentile_interval(others - ones)
        ratio = one / other if smaller else other / one
        found[name] = LandmarkRatio(one, other, ratio, interval, other - one, difference_interval)
    return found


def _of_asymptotic(first: Measured, second: Measured, *, share: bool) -> Interval | None:
    """Return the interval of the ratio of two r∞, or of two shares of the line rate, over launches.

    None where a launch has no line, for a single launch, and where the ratio has no upper end.
    """
    sides: list[list[float]] = []
    for side in (first, second):
        own = [asymptotic_mb_s(one.curve) for one in side.launches]
        rate = side.line_rate_mb_s if share else None
        sides.append([one / (rate or 1) for one in own if one is not None])
        if len(sides[-1]) < len(own):
            return None
    found = of_ratio(sides[1], sides[0])
    return found if found and found[1] < math.inf else None


def _resampled(
    measured: Measured, peak_from: int, counts: tuple[int, int], side: int
) -> dict[str, Floats]:
    """Return the case's landmarks above 0 in bootstrap samples of its launches."""
    curve, launches = measured.curve, measured.launches
    short = [
        number
        for number, (size, time) in enumerate(zip(curve.sizes, curve.time_us, strict=True))
        if (1 <= size < LATENCY_BELOW or curve.sizes == (0,)) and time > 0
    ]
    times = np.array([launch.curve.time_us for launch in launches])[:, short]
    rates = np.array([launch.curve.bandwidth_mb_s or () for launch in launches])
    different, which = samples(counts)[side]
    medians = medians_of(np.hstack([times, rates]), different)[which]
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
        ends = found.difference_interval
        if ends is not None and ends[0] <= 0 <= ends[1]:
            return f"{second} is no different from {before} ({ends[0]:+.2g} to {ends[1]:+.2g} µs)"
        within = "no interval"
        if ends is not None:
            low, high = sorted(map(abs, ends))
            within = f"{low:.3g} to {high:.3g}"
        if found.difference > 0:
            return f"{second} adds {size} ({within}) to {before}"
        return f"{second} takes {size} ({within}) off {before}"

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
            return f"{ratio}, with {NO_INTERVAL}"
        low, high = self.score.interval
        ranges = f": {'; '.join(map(str, self.ranges))}" if self.ranges else ""
        return f"{ratio} ({low:.3g} to {high:.3g}){ranges}"


def _compared_case(
    before: Measured,
    after: Measured,
    extras: Sequence[Mapping[str, Any]],
    first: str,
    second: str,
) -> ComparedCase:
    """Compare two measurements of the same case, from sides of these names.

    ``extras``: of each side's partition. Raise NetproofError where a measurement cannot be read.
    """
    both = list(zip((before, after), extras, strict=True))
    # The line rate takes no part in a score.
    settings = Settings.of_site(extras[1].get("criteria", {}), line_rate_from_bytes=0).score
    curves = [[launch.curve for launch in side.launches] for side in (before, after)]
    peaks_from = [here["line_rate_from_bytes"] if side.line_rate_mb_s else 0 for side, here in both]
    landmarks = _landmark_ratios(before, after, peaks_from)
    where = f"{second} {after.case.what()}"
    sizeless = before.curve.sizes == after.curve.sizes == (0,)
    if sizeless:
        found = _of_times(landmarks["latency_us"], where, first)
    else:
        try:
            sides = ScoredSide(curves[1], where, settings), ScoredSide(curves[0], first, settings)
            found = score(*sides, settings).but(where=where)
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
    ranges = _ranges(curves[0], curves[1], ratios)
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
    ends = time.interval
    spoken = NO_INTERVAL if ends is None else f"95% interval {ends[0]:.3g} to {ends[1]:.3g}"
    why = f"{time.ratio:.3g} times as fast as {first}, by its time ({spoken})"
    return Finding("time", Level.SHOWN, where, why, value=time.ratio, interval=time.interval)


@dataclass(frozen=True)
class Comparison:
    """Both sides with all of their cases, in the first side's order.

    ``uncompared``: cases without a measured counterpart, with the name of the side that measured
    it, None where neither did, and why the other did not; ``differences``: keys of the site's file
    that differ (``what``), with both values, None where not set, and the number of ``cases``.
    """

    first: ComparedSide
    second: ComparedSide
    cases: tuple[ComparedCase, ...]
    uncompared: tuple[tuple[Case, str | None, str], ...]
    differences: tuple[dict[str, Any], ...]

    def count(self, outcome: Outcome) -> int:
        """Return the number of cases with this outcome."""
        return sum(case.outcome is outcome for case in self.cases)

    def mostly(self, benchmark: str) -> tuple[tuple[int, int, bool], ...]:
        """Return the sizes at which the second side is faster, or slower, in most of the cases.

        Each range is its least and largest size in bytes and whether the second side is faster; it
        has at least ``RANGE_SIZES`` sizes in a row. Sizes that fewer than half of the benchmark's
        cases have are left out.
        """
        verdicts: list[tuple[int, bool | None]] = []
        with_ratios = [
            case for case in self.cases if case.ratios and case.first.case.benchmark == benchmark
        ]
        for size in sorted({size for case in with_ratios for size in case.ratios}):
            cases = [case for case in with_ratios if size in case.ratios]
            if 2 * len(cases) < len(with_ratios):
                continue
            found = Counter(
                faster
                for case in cases
                for faster in {r.faster for r in case.ranges if r.least <= size <= r.largest}
            )
            most = (faster for faster in (True, False) if 2 * found[faster] > len(cases))
            verdicts.append((size, next(most, None)))
        runs = ((faster, [*run]) for faster, run in groupby(verdicts, key=itemgetter(1)))
        return tuple(
            (run[0][0], run[-1][0], faster)
            for faster, run in runs
            if faster is not None and len(run) >= RANGE_SIZES
        )

    def mean(self) -> float | None:
        """Return the geometric mean of the ratios, each with equal weight; None without any."""
        logs = [math.log(case.score.value) for case in self.cases if case.score.value is not None]
        return math.exp(math.fsum(logs) / len(logs)) if logs else None


def compare(
    first: ComparedSide,
    second: ComparedSide,
    tracked: Callable[[Sequence[Key]], Iterable[Key]] = iter,
) -> Comparison:
    """Compare the cases of two sides.

    A counterpart has the same function, ranks, path and direction, and the partition and
    environment that the sides do not name. ``tracked`` wraps the iteration over cases, to show
    progress. Raise NetproofError where a side has no case, or no case has a counterpart.
    """
    ours, theirs = first.results(), second.results()
    compared, uncompared = [], []
    differ: Counter[str] = Counter()
    for key in tracked(list(dict.fromkeys((*ours, *theirs)))):
        one, other = ours.get(key), theirs.get(key)
        if one and other and one.measured and other.measured:
            extras = [result.extras["partition_extras"] for result in (one, other)]
            compared.append(
                _compared_case(one.measured, other.measured, extras, first.name, second.name)
            )
            for which in ("partition_extras", "environment_extras"):
                several = of_extras(one.extras[which], other.extras[which])
                differ.update(json.dumps(difference, sort_keys=True) for difference in several)
            ranks = [side.case.ranks_per_node for side in (one.measured, other.measured)]
            if ranks[0] != ranks[1]:
                differ[json.dumps(["ranks per node", *ranks])] += 1
        else:
            uncompared.append(_uncompared(((first.name, one), (second.name, other))))
    if not compared:
        of_first, of_second = (
            listed([str(one.case) for one in several.values()]) for several in (ours, theirs)
        )
        raise NetproofError(
            f"{first.name} and {second.name} have no case in common that both measured; of the"
            f" first, there are {of_first}, of the second {of_second}"
        )
    differences = tuple(
        {**dict(zip(("what", "first", "second"), json.loads(one), strict=True)), "cases": count}
        for one, count in differ.items()
    )
    return Comparison(first, second, tuple(compared), tuple(uncompared), differences)


def of_extras(
    first: Mapping[str, Any], second: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the keys of a site's file that measure otherwise, with the values of both, or None."""
    for key in dict.fromkeys((*first, *second)):
        # An empty value counts as unset: a key may be younger than a session.
        one, other = (
            None if (it := side.get(key)) in ("", [], {}) else it for side in (first, second)
        )
        if key not in NOT_MEASURED_BY and one != other:
            yield key, one, other


def _uncompared(
    sides: Sequence[tuple[str, CheckResult | None]],
) -> tuple[Case, str | None, str]:
    measured_by = None
    missing = []
    for name, result in sides:
        if result is not None and result.measured:
            measured_by = name
        elif result is None:
            missing.append(f"{name} does not have it")
        else:
            reasons = faults_of(result)[0] or ("it left no measurement",)
            missing.append(f"{name}: {'; '.join(reasons)}")
    case = next(result.case for _, result in sides if result is not None and result.case)
    return case, measured_by, "; ".join(missing)


Against = tuple[str, Sequence[Comparison], Sequence[str]]
"""A partition; its comparisons, as the second side, with each other partition, as the first; and a
sentence for each partition that has no case in common with it."""


def alone(session: Session, verdict: Verdict, partition: str | None = None) -> Against | None:
    """Compare a partition's cases, or those of the one measured alone, with each other partition's.

    Return None where none is given, and none was measured alone with stored results of others
    beside it. Raise NetproofError where the partition has no case, or is the only one.
    """
    if partition is None:
        measured = {one.case.partition for one in verdict.cases if one.measured is not None}
        if len(measured) != 1 or {s.case.partition for s in verdict.stored_cases} <= measured:
            return None
        (partition,) = measured
    found: dict[str, list[tuple[Session, str, CheckResult]]] = defaultdict(list)
    for one in (*verdict.cases, *verdict.stored_cases):
        of, day = session, ""
        if isinstance(one, StoredResult):
            of, day = Session(one.path, {}, ()), one.date
        if one.result is not None:
            found[one.case.partition].append((of, day, one.result))
    if partition not in found:
        raise NetproofError(
            f"{session.path}: has no case of partition {partition!r}; it has"
            f" {', '.join(found) or 'none'}"
        )
    if len(found) == 1:
        raise NetproofError(
            f"{session.path}: {partition} is the only partition, so there is no other to compare it"
            " with; --with-stored takes others from the store"
        )

    def side(name: str) -> ComparedSide:
        days = sorted({day for _, day, _ in found[name] if day})
        of = f", of {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""
        first, *others = {each.path: each for each, _, _ in found[name]}.values()
        only = dataclasses.replace(first, results=tuple(result for *_, result in found[name]))
        return ComparedSide(only, f"{name}{of}", name, also=tuple(others))

    comparisons, alone = [], []
    for other in [one for one in found if one != partition]:
        try:
            comparisons.append(compare(side(other), side(partition)))
        except NetproofError as error:
            alone.append(str(error))
    return partition, comparisons, alone


def differing(compared: Comparison) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the properties in which the nodes of both sides differ, with the values of each.

    Raise NetproofError where a side's nodes are not known.
    """

    def nodes(side: ComparedSide) -> list[Node]:
        of_sessions = [one.provenance for one in (side.session, *side.also)]
        here = [
            one
            for of_session in of_sessions
            for one in of_session.nodes
            if side.partition in (None, one.partition)
            and side.environment in (None, one.environment)
        ]
        if not here:
            reasons = [why for known in of_sessions for why in known.unknown.values()]
            why = "; ".join(dict.fromkeys(reasons)) or "no job of it recorded them"
            raise NetproofError(f"what the nodes of {side.name} were is not known: {why}")
        return here

    return node_facts.between(nodes(compared.first), nodes(compared.second))


def envelope_of_cases(
    cases: Mapping[str, CaseVerdict], matrix: Matrix
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
    first = next(one.case for one in cases.values() if not isinstance(one, StoredResult))
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
