"""Compare two sessions, partitions or environments, case by case.

The ratio of a case is the score, with the first side as its baseline: above 1 the
second side is faster. Nothing is judged here; cases that only one side measured are listed.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from netproof.comparison.compared_case import RANGE_SIZES, ComparedCase, Outcome, compared_case
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.session import node_differences
from netproof.session.node_differences import NodeInJob
from netproof.session.session import CheckResult, Session
from netproof.verdict import session_verdict
from netproof.verdict.engine import group
from netproof.verdict.judge import faults_of
from netproof.verdict.verdict import Verdict

Key = tuple[Any, ...]


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
        for asked, what in ((self.partition, "partition"), (self.environment, "environment")):
            known = dict.fromkeys(getattr(case, what) for case, _ in cases)
            if asked is not None and asked not in known:
                raise NetproofError(
                    f"{self.session.path}: has no case of {what} {asked!r}; it has"
                    f" {', '.join(known) or 'no case'}"
                )
        raise NetproofError(f"{self.session.path}: has no case of {self.name}")


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
        systems = sorted({result.system for result in one.results})
        if not systems:
            raise NetproofError(f"{one.path}: holds no test case, so nothing ran")
        if len(systems) != 1:
            raise NetproofError(
                f"{one.path}: holds results of {len(systems)} systems"
                f" ({', '.join(systems)}), and one is compared"
            )
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


NOT_MEASURED_BY = (
    *("criteria", "baseline", "absent", "known", "retired"),
    *("may_differ", "clock_offset_ms", "coverage_percent", "pairs", "wait_for_nodes_s"),
)
"""Keys of a site's file that do not change what is measured."""


@dataclass(frozen=True)
class Uncompared:
    """A case without a measured counterpart.

    ``measured_by``: name of the side that measured it, None where neither did; ``why``: the reason
    on the other side, or on both.
    """

    case: Case
    measured_by: str | None
    why: str


@dataclass(frozen=True)
class CaseDifference:
    """A difference in a site's configuration that affects ``cases`` cases.

    ``what``: the key; ``first`` and ``second``: its values, None where it is not set.
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
                compared_case(one.measured, other.measured, extras, first.name, second.name)
            )
            several = _differences(one, other, compared[-1])
            differ.update(json.dumps(difference, sort_keys=True) for difference in several)
        else:
            uncompared.append(_uncompared(((first.name, one), (second.name, other))))
    if not compared:
        raise NetproofError(
            f"{first.name} and {second.name} have no case in common that both measured; of the"
            f" first, there are {_some(ours)}, of the second {_some(theirs)}"
        )
    differences = tuple(
        CaseDifference(what, before, after, count)
        for one, count in differ.items()
        for what, before, after in [json.loads(one)]
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


def _differences(
    first: CheckResult, second: CheckResult, compared: ComparedCase
) -> Iterator[tuple[str, Any, Any]]:
    for extras in ("partition_extras", "environment_extras"):
        yield from of_extras(first.extras[extras], second.extras[extras])
    one, other = (side.case.ranks_per_node for side in (compared.first, compared.second))
    if one != other:
        yield "ranks a node", one, other


def _uncompared(sides: Sequence[tuple[str, CheckResult | None]]) -> Uncompared:
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
    return Uncompared(case, measured_by, "; ".join(missing))


def _some(results: Mapping[Key, CheckResult]) -> str:
    names = [str(result.case) for result in results.values()]
    return f"{', '.join(names[:2])}{' and others' if len(names) > 2 else ''}"


@dataclass(frozen=True)
class Against:
    """A partition, as the second side, compared with each other partition, as the first.

    ``alone``: a sentence for each partition that has no case in common with it.
    """

    partition: str
    comparisons: tuple[Comparison, ...]
    alone: tuple[str, ...]

    def worse(self) -> set[Key]:
        """Return the keys of cases slower than another switch's, overall or at some sizes."""
        return {
            case.second.case.key()
            for compared in self.comparisons
            for case in compared.cases
            if case.outcome is Outcome.SLOWER or any(not one.faster for one in case.ranges)
        }


def alone(session: Session, verdict: Verdict, switch: str | None = None) -> Against | None:
    """Compare ``switch``, or else the switch that was measured alone, with each other one.

    Return None where none is given, and no switch was measured alone with stored results of others
    beside it. Raise NetproofError as ``against``.
    """
    if switch is None:
        measured = {one.case.partition for one in verdict.cases if one.measured is not None}
        stored = () if verdict.compared_with is None else verdict.compared_with.cases
        if len(measured) != 1 or not {one.case.partition for one in stored} - measured:
            return None
        (switch,) = measured
    return against(session, verdict, switch)


def against(session: Session, verdict: Verdict, partition: str) -> Against:
    """Compare a partition's cases with those of each other partition.

    Raise NetproofError where the partition has no case, or is the only one.
    """
    results: dict[str, list[CheckResult]] = defaultdict(list)
    days: dict[str, set[str]] = defaultdict(set)
    sources: dict[str, dict[Path, Session]] = defaultdict(dict)
    for judged in verdict.cases:
        if judged.result is not None:
            results[judged.case.partition].append(judged.result)
            sources[judged.case.partition][session.path] = session
    for one in () if verdict.compared_with is None else verdict.compared_with.cases:
        results[one.case.partition].append(one.result)
        days[one.case.partition].add(one.date)
        sources[one.case.partition][one.path] = Session(one.path, {}, ())
    if partition not in results:
        raise NetproofError(
            f"{session.path}: has no case of partition {partition!r}; it has"
            f" {', '.join(results) or 'none'}"
        )
    if len(results) == 1:
        raise NetproofError(
            f"{session.path}: {partition} is the only partition, so there is no other to compare it"
            " with; --with-stored takes others from the store"
        )

    def side(name: str) -> ComparedSide:
        day = days[name]
        of = f", of {' to '.join(dict.fromkeys((min(day), max(day))))}" if day else ""
        first, *others = sources[name].values()
        only = dataclasses.replace(first, results=tuple(results[name]))
        return ComparedSide(only, f"{name}{of}", name, also=tuple(others))

    comparisons, alone = [], []
    for other in [one for one in results if one != partition]:
        try:
            comparisons.append(compare(side(other), side(partition)))
        except NetproofError as error:
            alone.append(str(error))
    return Against(partition, tuple(comparisons), tuple(alone))


def differing(compared: Comparison) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the properties in which the nodes of both sides differ, with the values of each.

    Raise NetproofError where a side's nodes are not known.
    """

    def nodes(side: ComparedSide) -> list[NodeInJob]:
        of_sessions = [session_verdict.provenance_of(one) for one in (side.session, *side.also)]
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

    return node_differences.between(nodes(compared.first), nodes(compared.second))
