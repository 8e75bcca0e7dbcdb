"""A verdict put in order for people: failures by reason, counts, breaking points, CPU costs."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import Any

from netproof.benchmarks import registry
from netproof.criteria import Level
from netproof.errors import listed
from netproof.measurement.case import Case
from netproof.measurement.cpu_use import NodeCost, costliest
from netproof.verdict.engine import by_place, companion_keys
from netproof.verdict.verdict import NOT_IN_SESSION, CaseVerdict, FailedTest, Verdict


class FailureKind(IntEnum):
    """Kind of a failure, the worst with the largest number.

    ``BOUND``: a measured case is beyond a bound; ``CASE``: one was not measured; ``BEYOND_CASES``:
    a job failed or a configuration is gone, with all of its cases.
    """

    BOUND = 0
    CASE = 1
    BEYOND_CASES = 2


@dataclass(frozen=True)
class Failure:
    """Cases or tests that failed for one reason.

    ``whole``: the verdict's sentence, for a single one; ``why``: the reason alone; ``waiting``:
    cases that did not run since ``tests`` failed; ``excess``: how many times beyond its bound, 1
    where not known, the most of several.
    """

    kind: FailureKind
    whole: str
    why: str
    cases: tuple[Case, ...] = ()
    tests: tuple[FailedTest, ...] = ()
    waiting: tuple[Case, ...] = ()
    excess: float = 1.0

    def __str__(self) -> str:
        sentence = self.whole
        if len(self.tests) > 1:
            places = [test.where for test in self.tests]
            sentence = f"{len(places)} tests ({listed(places)}): {self.why}"
        elif len(self.cases) > 1:
            sentence = f"{named(self.cases)}: {self.why}"
        if not self.waiting:
            return sentence
        for_whom = "it" if len(self.tests) == 1 else "them"
        did = "case did" if len(self.waiting) == 1 else "cases did"
        which = _counted(self.waiting)
        if len({(case.partition, case.environment) for case in self.waiting}) == 1:
            which = listed([case.what() for case in self.waiting])
        return f"{sentence}; {len(self.waiting)} {did} not run for {for_whom} ({which})"


def failures(verdict: Verdict) -> list[Failure]:
    """Return all failures, by kind, times beyond the bound and number of cases, the worst last.

    Cases that nobody measured come before those that failed.
    """
    by_test = {(test.partition, test.environment, test.name): test for test in verdict.failed_tests}
    waiting: dict[FailedTest, list[Case]] = defaultdict(list)
    single: list[Failure] = []
    for judged in verdict.cases:
        case = judged.case
        test = by_test.get((case.partition, case.environment, judged.failed_job or ""))
        if test is not None and len(judged.faults) == 1:
            waiting[test].append(case)
            continue
        kind = FailureKind.BOUND if judged.complete else FailureKind.CASE
        single += [Failure(kind, f"{case}: {why}", why, (case,)) for why in judged.faults]
        single += [
            Failure(FailureKind.BOUND, one.why, one.reason, (case,), excess=one.excess)
            for one in judged.findings
            if one.level is Level.FAIL
        ]
    sentences = {str(test) for test in verdict.failed_tests}
    beyond = FailureKind.BEYOND_CASES
    found = [
        *_alike(single),
        *(Failure(beyond, one, one) for one in verdict.faults if one not in sentences),
        *_alike(
            Failure(beyond, str(one), one.why, tests=(one,), waiting=tuple(waiting[one]))
            for one in verdict.failed_tests
        ),
    ]
    return sorted(
        found,
        key=lambda one: (
            one.why != NOT_IN_SESSION,
            one.kind,
            one.excess,
            len(one.cases) + len(one.waiting),
        ),
    )


def named(cases: Sequence[Case]) -> str:
    """Return cases of one reason in words: the only one, some names, or counts."""
    if len(cases) == 1:
        return str(cases[0])
    places = {(case.system, case.partition, case.environment) for case in cases}
    if len(places) > 1:
        return f"{len(cases)} cases ({_counted(cases)})"
    (system, partition, environment) = places.pop()
    which = listed([case.what() for case in cases])
    return f"{len(cases)} cases of {system}:{partition} {environment} ({which})"


def _counted(cases: Sequence[Case]) -> str:
    counts = Counter(f"{case.partition} {case.environment}" for case in cases)
    return ", ".join(f"{count} of {place}" for place, count in counts.items())


def _alike(several: Iterable[Failure]) -> list[Failure]:
    together: dict[tuple[FailureKind, str], list[Failure]] = defaultdict(list)
    for one in several:
        together[one.kind, one.why].append(one)
    return [
        dataclasses.replace(
            alike[0],
            cases=tuple(case for one in alike for case in one.cases),
            tests=tuple(test for one in alike for test in one.tests),
            waiting=tuple(case for one in alike for case in one.waiting),
            excess=max(one.excess for one in alike),
        )
        for alike in together.values()
    ]


@dataclass(frozen=True)
class Crossover:
    """A function in one configuration over its rank counts, which increase.

    ``cases``: measured or expected; at least one of the configuration was measured.
    """

    cases: tuple[CaseVerdict, ...]

    @property
    def case(self) -> Case:
        """First case, for what all have in common."""
        return self.cases[0].case

    @property
    def red(self) -> tuple[CaseVerdict, ...]:
        """Cases that ran and failed."""
        return tuple(one for one in self.cases if one.failed and one.ran)

    @property
    def inconclusive(self) -> tuple[int, ...]:
        """Rank counts at which it neither passed nor failed."""
        return tuple(one.case.ranks for one in self.cases if one.level is Level.INCONCLUSIVE)

    @property
    def missing(self) -> tuple[int, ...]:
        """Rank counts at which it did not run."""
        return tuple(one.case.ranks for one in self.cases if not one.ran)

    @property
    def least(self) -> int | None:
        """Least rank count at which it is red, or None."""
        return self.red[0].case.ranks if self.red else None

    def sentence(self) -> str:
        """Return at which ranks and sizes it is red, and by what; or up to which it is not."""
        fine = [str(one.case.ranks) for one in self.cases if one.passed]
        rest = [
            f"{word} at {' and '.join(map(str, ranks))} ranks"
            for word, ranks in (("inconclusive", self.inconclusive), ("did not run", self.missing))
            if ranks
        ]
        if not self.red:
            # Nothing is known from the first inconclusive count on.
            settled = [
                one.case.ranks
                for one in self.cases
                if one.passed and one.case.ranks < min(self.inconclusive, default=math.inf)
            ]
            not_red = [f"not red up to {settled[-1]} ranks"] if settled else []
            return "; ".join([*not_red, *rest])
        alike: dict[str, list[str]] = defaultdict(list)
        for one in self.red:
            alike[broken(one)].append(str(one.case.ranks))
        parts = [f"at {' and '.join(ranks)} ranks{how}" for how, ranks in alike.items()]
        parts += [f"not at {' and '.join(fine)}"] if fine else []
        return f"red {'; '.join([*parts, *rest])}"


def crossovers(verdict: Verdict) -> tuple[Crossover, ...]:
    """Return every function of every configuration that was measured, in the verdict's order."""
    several: dict[tuple[Any, ...], list[CaseVerdict]] = defaultdict(list)
    measured = set()
    for one in verdict.cases:
        case = one.case
        where = (case.partition, case.environment)
        key = (*where, case.benchmark, case.function, case.path, case.direction)
        several[key].append(one)
        if one.measured is not None:
            measured.add(where)
    return tuple(
        Crossover(tuple(sorted(cases, key=lambda one: one.case.ranks)))
        for key, cases in several.items()
        if key[:2] in measured
    )


def red_sizes(judged: CaseVerdict) -> tuple[int, ...]:
    """Return the sizes in bytes at which a criterion fails the case, increasing."""
    failed = (one for one in judged.findings if one.level is Level.FAIL)
    return tuple(sorted({size for finding in failed for size in finding.sizes()}))


def red_criteria(judged: CaseVerdict) -> tuple[str, ...]:
    """Return the names of the criteria that fail the case."""
    failed = (one for one in judged.findings if one.level is Level.FAIL)
    return tuple(dict.fromkeys(finding.criterion for finding in failed))


def broken(judged: CaseVerdict) -> str:
    """Return the sizes and criteria of a red case, as words that follow its rank count."""
    if judged.measured is None:
        return ", not measured whole"
    by = [*red_criteria(judged), *(["references"] if judged.faults else [])]
    neighbours = set(pairwise(judged.measured.curve.sizes))
    spans: list[list[int]] = []
    for size in red_sizes(judged):
        if spans and (spans[-1][-1], size) in neighbours:
            spans[-1].append(size)
        else:
            spans.append([size])
    words = [str(one[0]) if len(one) == 1 else f"{one[0]} to {one[-1]}" for one in spans]
    where = f", {', '.join(words)} bytes" if words else ""
    return f"{where} by {' and '.join(filter(None, [', '.join(by[:-1]), *by[-1:]]))}"


@dataclass(frozen=True)
class CpuRow:
    """CPU cost of a case on its costliest node.

    ``of_tcp``: its CPU seconds per GB over those of the same case over TCP, None where it is not
    compared with TCP or either is not known.
    """

    case: Case
    cost: NodeCost
    of_tcp: float | None = None


CpuRows = tuple[Sequence[CpuRow], Mapping[str, int]]
"""Rows of known costs, and the number of other cases by the reason."""


def cpu_rows(verdict: Verdict) -> CpuRows:
    """Return the CPU costs of the measured cases of a session, in its order."""
    costs = {
        judged.case.key(): (judged.case, costliest(judged.measured.cpu_costs))
        for judged in verdict.cases
        if judged.measured is not None
    }
    there = by_place(costs)
    rows: list[CpuRow] = []
    unknown: Counter[str] = Counter()
    for case, cost in costs.values():
        if cost.cpu_s is None:
            unknown[cost.why("cpu_s")] += 1
            continue
        over_tcp, of_tcp = registry.of(case).over_tcp.get(case.function), None
        for key, operation in companion_keys(case, there).items():
            per_gb = there[key][1].s_per_gb if key in there and operation == over_tcp else None
            if per_gb and cost.s_per_gb is not None:
                of_tcp = cost.s_per_gb / per_gb
        rows.append(CpuRow(case, cost, of_tcp))
    return rows, unknown
