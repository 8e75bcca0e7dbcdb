"""Two sessions, partitions or environments held against each other, case by case.

The ratio of a case is the score of criterion 2, with the first side as its baseline: above 1
the second side is faster. Nothing is judged here, and what only one side measured is told.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from typing import Any

from netproof import criteria
from netproof.comparison.landmark_ratios import LandmarkRatio, landmark_ratios
from netproof.criteria import Finding, Level
from netproof.criteria.settings import Settings
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve
from netproof.session.measured import Measured
from netproof.session.session import CheckResult, Session
from netproof.verdict.judgement import Subject, disturbances, group
from netproof.verdict.verdict import faults_of

RANGE_SIZES = 3
"""Sizes at which the launches of both sides are apart that make a range."""

RANGE_LAUNCHES = 3
"""Launches of each side that it takes to tell at which sizes one is faster."""

LONE_SIZE_RATIO = 2.0
"""Where one side is this many times as fast, a size outside all ranges is told too."""

NOT_MEASURED_BY = ("criteria", "baseline", "absent", "known", "retired")
"""What a site's file says of a configuration that does not change what is measured."""


class Outcome(StrEnum):
    """What the interval of a case's ratio says of the second side."""

    FASTER = "faster"
    SLOWER = "slower"
    ALIKE = "no difference overall"
    UNDECIDED = "no interval"
    UNDEFINED = "no ratio"


@dataclass(frozen=True)
class ComparedSide:
    """One side: a session, or the cases of one partition or environment of it, or of both.

    ``name``: what tells it from the other side, as sentences have it; ``also``: further sessions
    that its cases are of, whose results stand in ``session``.
    """

    session: Session
    name: str
    partition: str | None = None
    environment: str | None = None
    also: tuple[Session, ...] = ()

    def results(self) -> dict[tuple, CheckResult]:
        """The results of its cases as they ended, by what a counterpart has in common with them.

        Raises NetproofError where it has none.
        """
        found = {}
        for result in self.session.results:
            case = result.case
            if case is None:
                continue
            if self.partition not in (None, case.partition):
                continue
            if self.environment not in (None, case.environment):
                continue
            # A case that ReFrame ran again stands as it ended.
            found[self._match(case)] = result
        if not found:
            raise NetproofError(f"{self.session.path}: {self._lack()}")
        return found

    def _match(self, case: Case) -> tuple:
        where = (
            None if self.partition else case.partition,
            None if self.environment else case.environment,
        )
        return (*where, *group(case))

    def _lack(self) -> str:
        cases = [result.case for result in self.session.results if result.case is not None]
        for asked, what in ((self.partition, "partition"), (self.environment, "environment")):
            known = dict.fromkeys(getattr(case, what) for case in cases)
            if asked is not None and asked not in known:
                return f"has no case of {what} {asked!r}; it has {', '.join(known) or 'no case'}"
        return f"has no case of {self.name}"


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
        """As it stands in a sentence, of the second side."""
        word = "faster" if self.faster else "slower"
        if self.least == self.largest:
            return f"{word} at {self.size} bytes ({self.ratio:.3g} times as fast)"
        return (
            f"{word} from {self.least} to {self.largest} bytes ({self.ratio:.3g} times as fast at"
            f" {self.size})"
        )


@dataclass(frozen=True)
class ComparedCase:
    """A case that both sides measured.

    ``score``: criterion 2 of the second side with the first as baseline, and for a function without
    message sizes (Barrier) the ratio of its times; ``ratios``: size in bytes to time of the first
    over time of the second, of the medians; ``ranges``: where one side is faster, empty where too
    few launches leave that open; ``disturbed``: what else a side's nodes did in launches that
    count, since it has too few others, each with the side's name.
    """

    first: Measured
    second: Measured
    score: Finding
    ratios: Mapping[int, float]
    ranges: tuple[Range, ...]
    landmarks: Mapping[str, LandmarkRatio]
    disturbed: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """What the interval says: one that has 1 in it shows no difference."""
        if self.score.value is None:
            return Outcome.UNDEFINED
        if self.score.interval is None:
            return Outcome.UNDECIDED
        low, high = self.score.interval
        if low > 1:
            return Outcome.FASTER
        return Outcome.SLOWER if high < 1 else Outcome.ALIKE

    def latency(self, first: str, second: str) -> str | None:
        """What the second side adds to the first one's latency, by their names; None without."""
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
        """What the second side is, by how much, at which sizes, and what disturbed either."""
        noise = f"; the machine was disturbed: {'; '.join(self.disturbed)}"
        return f"{self._told()}{noise if self.disturbed else ''}"

    def _told(self) -> str:
        if self.score.value is None:
            reason = self.score.why.removeprefix(f"{self.score.where}: ")
            latency = self.landmarks["latency_us"].ratio
            beside = "" if latency is None else f"; by its latency {latency:.3g} times as fast"
            return f"{reason}{beside}"
        by = "" if self.score.common else " by its time"
        ratio = f"{self.score.value:.3g} times as fast{by}"
        if self.score.interval is None:
            return f"{ratio}, with no interval, which takes two launches of both"
        low, high = self.score.interval
        between = f"{ratio} ({low:.3g} to {high:.3g})"
        return ": ".join([between, "; ".join(map(str, self.ranges))] if self.ranges else [between])


@dataclass(frozen=True)
class Uncompared:
    """A case that has no measured counterpart.

    ``measured_by``: the name of the side that measured it, None where neither did; ``why``: what
    became of it on the other side, or on both.
    """

    case: Case
    measured_by: str | None
    why: str


@dataclass(frozen=True)
class CaseDifference:
    """What a site's file says of the configurations of ``cases`` cases, and not alike.

    ``what``: the key; ``first`` and ``second``: its values, None where it is not there.
    """

    what: str
    first: Any
    second: Any
    cases: int


@dataclass(frozen=True)
class Comparison:
    """Both sides with all of their cases, in the first side's order."""

    first: ComparedSide
    second: ComparedSide
    cases: tuple[ComparedCase, ...]
    uncompared: tuple[Uncompared, ...]
    differences: tuple[CaseDifference, ...]

    def count(self, outcome: Outcome) -> int:
        """How many cases came out so."""
        return sum(case.outcome is outcome for case in self.cases)

    def mostly(self, benchmark: str) -> tuple[tuple[int, int, bool], ...]:
        """Sizes at which the second side is faster, or slower, in more than half of the cases.

        Each the least and the largest in bytes, and whether it is faster, by ``ranges``; at least
        ``RANGE_SIZES`` sizes in a row. Of one benchmark, since each has sizes of its own; sizes
        that fewer than half of its cases have are left out.
        """
        verdicts = []
        with_ratios = [
            case for case in self.cases if case.ratios and case.first.case.benchmark == benchmark
        ]
        for size in sorted({size for case in with_ratios for size in case.ratios}):
            cases = [case for case in with_ratios if size in case.ratios]
            if 2 * len(cases) < len(with_ratios):
                continue
            for faster in (True, False):
                found = sum(
                    any(r.least <= size <= r.largest and r.faster == faster for r in case.ranges)
                    for case in cases
                )
                if 2 * found > len(cases):
                    verdicts.append((size, faster))
                    break
            else:
                verdicts.append((size, None))
        runs = [
            (faster, [size for size, _ in run])
            for faster, run in groupby(verdicts, key=itemgetter(1))
        ]
        return tuple(
            (run[0], run[-1], faster)
            for faster, run in runs
            if faster is not None and len(run) >= RANGE_SIZES
        )

    def mean(self) -> float | None:
        """Geometric mean of the ratios of all cases that have one, each with equal weight."""
        logs = [math.log(case.score.value) for case in self.cases if case.score.value is not None]
        return math.exp(math.fsum(logs) / len(logs)) if logs else None


def sides(
    first: Session,
    second: Session | None = None,
    partitions: tuple[str, str] | None = None,
    environments: tuple[str, str] | None = None,
    names: tuple[str, str] | None = None,
) -> tuple[ComparedSide, ComparedSide]:
    """The two sides of two sessions, or of one with two partitions or environments of it.

    ``partitions`` and ``environments``: those of the first and of the second side; ``names``: what
    to call two sessions, else by their files. Raises NetproofError where both sides would be the
    same, or a session holds several systems.
    """
    sessions = (first, second or first)
    for one in sessions:
        systems = sorted({result.system for result in one.results})
        if not systems:
            raise NetproofError(f"{one.path}: holds no test case, so nothing ran")
        if len(systems) != 1:
            raise NetproofError(
                f"{one.path}: holds results of {len(systems)} systems"
                f" ({', '.join(systems)}), and one is compared"
            )
    parts = []
    if first.path != sessions[1].path:
        parts.append(names or _session_names(first, sessions[1]))
    parts += [pair for pair in (partitions, environments) if pair and pair[0] != pair[1]]
    if not parts:
        raise NetproofError(
            f"{first.path}: both sides are the same; name a second session, or two with"
            " --partition or --environment"
        )
    asked = (partitions or (None, None), environments or (None, None))
    return tuple(
        ComparedSide(one, " ".join(pair[i] for pair in parts), asked[0][i], asked[1][i])
        for i, one in enumerate(sessions)
    )


def compare(
    first: ComparedSide, second: ComparedSide, tracked: Callable[[Sequence], Iterable] = iter
) -> Comparison:
    """Hold the cases of two sides against each other.

    A case's counterpart has the same function, ranks, path and direction, and the partition and
    environment that the sides do not name. ``tracked``: goes through the cases, and may say how
    far it has come. Raises NetproofError where a side has no case, or no case has a counterpart.
    """
    ours, theirs = first.results(), second.results()
    compared, uncompared = [], []
    differ: dict[tuple[str, str, str], CaseDifference] = {}
    for key in tracked(list(dict.fromkeys((*ours, *theirs)))):
        one, other = ours.get(key), theirs.get(key)
        if one and other and one.measured and other.measured:
            compared.append(_compared(one, other, first.name, second.name))
            for difference in _differences(one.measured, other.measured):
                known = tuple(json.dumps(part, sort_keys=True) for part in difference)
                counted = differ[known].cases if known in differ else 0
                differ[known] = CaseDifference(*difference, counted + 1)
        else:
            uncompared.append(_uncompared(one, other, first.name, second.name))
    if not compared:
        raise NetproofError(
            f"{first.name} and {second.name} have no case in common that both measured; of the"
            f" first, there are {_some(ours)}, of the second {_some(theirs)}"
        )
    return Comparison(first, second, tuple(compared), tuple(uncompared), tuple(differ.values()))


def _session_names(first: Session, second: Session) -> tuple[str, str]:
    # A stored session is a folder, session=NAME.
    names = tuple(one.path.stem.removeprefix("session=") for one in (first, second))
    return names if names[0] != names[1] else (str(first.path), str(second.path))


def _compared(one: CheckResult, other: CheckResult, first: str, second: str) -> ComparedCase:
    before, after = Measured.from_json(one.measured), Measured.from_json(other.measured)
    extras = [result.measured["partition_extras"] for result in (one, other)]
    # The line rate takes no part in a score.
    settings = Settings.of_site(extras[1].get("criteria", {}), line_rate_from_bytes=0).score
    curves = [[launch.curve for launch in side.launches] for side in (before, after)]
    landmarks = landmark_ratios(
        before,
        after,
        tuple(
            said["line_rate_from_bytes"] if side.line_rate_mb_s else 0
            for side, said in zip((before, after), extras, strict=True)
        ),
        settings,
    )
    where = f"{second} {after.case.what()}"
    sizeless = before.curve.sizes == after.curve.sizes == (0,)
    if sizeless:
        score = _of_times(landmarks["latency_us"], where, first)
    else:
        score = criteria.score(curves[1], curves[0], where=where, baseline=first, settings=settings)
    ratios: dict[int, float] = {}
    if score.value is not None and not sizeless:
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
        for name, side, said in zip((first, second), (before, after), extras, strict=True)
        for noise in disturbances(Subject.of_extras(side, said, {}))
    )
    return ComparedCase(before, after, score, ratios, ranges, landmarks, disturbed)


def _of_times(time: LandmarkRatio, where: str, first: str) -> Finding:
    """The ratio of a function that has one time and no message sizes, as a score has it."""
    if time.ratio is None:
        why = f"{where}: no ratio: a side has no time above 0"
        return Finding("time", Level.UNDEFINED, where, why)
    spoken = "no interval, which takes two launches of both"
    if time.interval is not None:
        spoken = f"95% interval {time.interval[0]:.3g} to {time.interval[1]:.3g}"
    why = f"{where}: {time.ratio:.3g} times as fast as {first}, by its time ({spoken})"
    return Finding("time", Level.SHOWN, where, why, value=time.ratio, interval=time.interval)


def _ranges(
    first: Sequence[Curve], second: Sequence[Curve], ratios: Mapping[int, float]
) -> tuple[Range, ...]:
    """Where one side is faster, by the sizes at which all its launches beat all of the other.

    A range has ``RANGE_SIZES`` of these or more, with at most one other size between two. Besides
    there are those alone at which one side is ``LONE_SIZE_RATIO`` times as fast. Fewer than
    ``RANGE_LAUNCHES`` launches of a side are too often apart by chance.
    """
    if min(len(first), len(second)) < RANGE_LAUNCHES:
        return ()
    runs: list[list[int]] = []
    since = 0
    for size, ratio in ratios.items():
        if not _apart(first, second, size):
            since += 1
            continue
        if runs and since < 2 and (ratios[runs[-1][-1]] > 1) == (ratio > 1):
            runs[-1].append(size)
        else:
            runs.append([size])
        since = 0
    found = []
    for run in runs:
        told = [run] if len(run) >= RANGE_SIZES else [[size] for size in run]
        for sizes in told:
            size = max(sizes, key=lambda one: _factor(ratios[one]))
            if len(sizes) > 1 or _factor(ratios[size]) >= LONE_SIZE_RATIO:
                found.append(Range(sizes[0], sizes[-1], ratios[size] > 1, size, ratios[size]))
    return tuple(found)


def _factor(ratio: float) -> float:
    """How far a ratio is from 1, to either side."""
    return max(ratio, 1 / ratio)


def _apart(first: Sequence[Curve], second: Sequence[Curve], size: int) -> bool:
    one, other = (
        [curve.time_us[curve.sizes.index(size)] for curve in launches]
        for launches in (first, second)
    )
    return max(one) < min(other) or max(other) < min(one)


def _differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[tuple]:
    found = []
    for extras in ("partition_extras", "environment_extras"):
        # What is empty is as good as not said: a key may be younger than a session.
        one, other = (
            {key: value for key, value in side[extras].items() if value not in ("", [], {})}
            for side in (first, second)
        )
        found += [
            (key, one.get(key), other.get(key))
            for key in dict.fromkeys((*one, *other))
            if key not in NOT_MEASURED_BY and one.get(key) != other.get(key)
        ]
    if first["case"]["ranks_per_node"] != second["case"]["ranks_per_node"]:
        found.append(
            (
                "ranks a node",
                first["case"]["ranks_per_node"],
                second["case"]["ranks_per_node"],
            )
        )
    return found


def _uncompared(
    one: CheckResult | None, other: CheckResult | None, first: str, second: str
) -> Uncompared:
    measured_by = None
    missing = []
    for name, result in ((first, one), (second, other)):
        if result is not None and result.measured:
            measured_by = name
        elif result is None:
            missing.append(f"{name} does not have it")
        else:
            reasons = faults_of(result)[0] or ("it left no measurement",)
            missing.append(f"{name}: {'; '.join(reasons)}")
    case = one.case if one is not None else other.case
    return Uncompared(case, measured_by, "; ".join(missing))


def _some(results: Mapping[tuple, CheckResult]) -> str:
    names = [str(result.case) for result in results.values()]
    return f"{', '.join(names[:2])}{' and others' if len(names) > 2 else ''}"
