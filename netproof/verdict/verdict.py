"""A verdict with its parts; its failures, breaking points and CPU costs in order for people."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, Self

from netproof.benchmarks import registry
from netproof.criteria import Finding, Level
from netproof.criteria.findings import ranges_in_words
from netproof.criteria.registry import RELATIVE
from netproof.errors import counted, grouped, listed
from netproof.measurement.case import Case, Curve
from netproof.measurement.disturbance import NodeCost, costliest
from netproof.measurement.landmarks import Landmarks
from netproof.pairs.verdict import PairsVerdict
from netproof.session.measured import Launch, Measured
from netproof.session.session import CheckResult
from netproof.site.matrix import Absence
from netproof.verdict import FAILED, INCONCLUSIVE, MAX_AGE_DAYS, PASSED
from netproof.verdict.confirmations import LaunchCount
from netproof.verdict.coverage import Coverage
from netproof.verdict.engine import Key, Subject, by_place, companion_keys
from netproof.verdict.nodes import NodeFinding
from netproof.verdict.traffic import InterfaceTotals

NOT_IN_SESSION = "did not run: the session does not have it"
"""Reason of a case that was expected and that no test of the session was to measure."""

NEVER_RAN = ("skip", "fail_deps")
"""ReFrame's results of a case that it did not run."""


@dataclass(frozen=True)
class CaseVerdict:
    """One judged case.

    ``faults``: why it was not measured or does not meet its references, a sentence each;
    ``expected``: why its failure was expected, or empty; ``findings``: of references and
    criteria; ``ran``: whether ReFrame ran it, with any result; ``failed_job``: the failed test that
    it waited for, or None; ``nodes``: of its first launch, and ``landmarks`` of its curve, where it
    was measured whole; ``results``: of the session's cases, read when one is asked for.
    """

    case: Case
    faults: tuple[str, ...]
    expected: str = ""
    findings: tuple[Finding, ...] = ()
    ran: bool = False
    failed_job: str | None = None
    nodes: tuple[str, ...] = ()
    landmarks: Landmarks | None = None
    results: Callable[[], Mapping[Key, CheckResult]] = field(default=dict, compare=False)

    @classmethod
    def of(cls, case: Case, result: CheckResult | None, *judged: Any, **more: Any) -> Self:
        """Return the verdict on a case with its result; ``judged``: its faults and what follows."""
        if result is not None:
            more |= {"ran": result.result not in NEVER_RAN, "failed_job": result.failed_job}
            more["results"] = lambda: {case.key(): result}
        if result is not None and (measured := result.measured):
            more |= {"nodes": measured.launches[0].nodes(), "landmarks": measured.landmarks}
        return cls(case, *judged, **more)

    @property
    def result(self) -> CheckResult | None:
        """Result of its test; None where the session has none."""
        return self.results().get(self.case.key())

    @property
    def measured(self) -> Measured | None:
        """Measurement; None where it was not complete."""
        result = self.result
        return result.measured if result else None

    def said(self, level: Level) -> tuple[str, ...]:
        """Return the sentences of the findings of that level."""
        return tuple(finding.why for finding in self.findings if finding.level is level)

    @property
    def failed(self) -> bool:
        """Whether it was not measured, or fails a criterion or a reference."""
        return self.level is Level.FAIL

    @property
    def passed(self) -> bool:
        """Whether nothing of it failed or is inconclusive."""
        return self.level in (Level.PASS, Level.WARN)

    @property
    def complete(self) -> bool:
        """Whether it was measured whole."""
        return self.landmarks is not None

    @property
    def again(self) -> tuple[Launch, ...] | None:
        """Launches around flagged sizes; None where none was asked for."""
        return None if self.measured is None else self.measured.again

    @property
    def curves_again(self) -> list[Curve]:
        """Curves of its complete launches around flagged sizes."""
        return [one.curve for one in self.again or () if one.curves]

    @cached_property
    def level(self) -> Level:
        """Result: fail, inconclusive, warn or pass."""
        levels = {finding.level for finding in self.findings}
        if self.faults or Level.FAIL in levels:
            return Level.FAIL
        others = (Level.INCONCLUSIVE, Level.WARN)
        return next((level for level in others if level in levels), Level.PASS)

    def flags(self) -> tuple[Finding, ...]:
        """Return the flags that were measured again, with any result."""
        return tuple(finding for finding in self.findings if finding.repeated is not None)

    def score(self) -> Finding | None:
        """Return the score against the baseline, or None."""
        several = (one for one in self.findings if one.criterion in RELATIVE)
        return next((one for one in several if one.value is not None), None)


@dataclass(frozen=True, kw_only=True)
class StoredResult(CaseVerdict):
    """Stored result of a case from another session, which is compared with and not judged.

    ``session``: its name in the store, at ``path``; ``started``: UTC; ``days``: how long before the
    judged session, negative after it; ``marks``: reasons against comparing them, a sentence each;
    its findings are of the criteria across configurations.
    """

    subject: Subject
    session: str
    path: Path
    started: datetime
    days: float
    marks: tuple[str, ...]

    @property
    def date(self) -> str:
        """Day on which it was measured, UTC, ``2026-11-20``."""
        return f"{self.started:%Y-%m-%d}"

    @property
    def age(self) -> str:
        """Time before or after the judged session, in words."""
        hours, days = round(24 * abs(self.days)), abs(self.days)
        if hours == 0:
            return "within the hour"
        long = counted(hours, "hour") if hours < 48 else f"{days:.0f} days"
        return f"{long} {'before' if self.days >= 0 else 'after'}"


@dataclass(frozen=True)
class StoredResults:
    """Stored results of configurations that a session neither was to measure nor measured.

    ``max_age_days``: age beyond which a session is marked; ``leave_out_marked``: whether results
    that are marked, for their age or versions, are left out: an older result without a mark then
    replaces one, if available. ``cases``: compared with; ``left_out``: excluded for their marks;
    ``not_found``: not measured well by any stored session; none before they are looked for.
    """

    store: Path
    max_age_days: float = MAX_AGE_DAYS
    leave_out_marked: bool = False
    cases: tuple[StoredResult, ...] = ()
    left_out: tuple[StoredResult, ...] = ()
    not_found: tuple[Case, ...] = ()

    def together(self) -> Iterator[tuple[str, tuple[StoredResult, ...], bool]]:
        """Yield its cases in groups, in words, and whether they were left out; those last.

        A group is of one configuration, session and set of marks.
        """
        for several, left_out in ((self.cases, False), (self.left_out, True)):
            found: dict[str, list[StoredResult]] = defaultdict(list)
            for one in several:
                place = f"{one.case.partition} {one.case.environment}, of {one.date} ({one.age})"
                marks = "".join(f"; {mark}" for mark in one.marks)
                found[f"{place}: {{}} of session {one.session}{marks}"].append(one)
            for words, cases in found.items():
                yield words.replace("{}", counted(len(cases)), 1), tuple(cases), left_out


@dataclass(frozen=True)
class Verdict:
    """All cases in the matrix' order, declared absences, and faults beyond single cases.

    ``notes``: what was not or could not be asserted; ``skipped``: expected cases that were skipped;
    ``compared_with``: stored results, None if not asked for; ``failed_tests``: jobs, and tests that
    judge several cases, that did not finish, by configuration and name; ``launched``: launches and
    crashes of each configuration; ``traffic``: counters of each interface; ``standing_out``:
    changed carriers, and nodes that lose more than others; ``beyond_nodes``: differences between
    jobs, which ``nodes`` does not have; ``unread``: why earlier sessions could not be read. What
    fails in a part is among the faults, in a sentence.
    """

    cases: tuple[CaseVerdict, ...]
    absences: tuple[Absence, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...]
    skipped: tuple[tuple[Case, CheckResult], ...] = ()
    compared_with: StoredResults | None = None
    failed_tests: tuple[Finding, ...] = ()
    launched: tuple[LaunchCount, ...] = ()
    pairs: tuple[PairsVerdict, ...] = ()
    nodes: tuple[NodeFinding, ...] = ()
    coverage: tuple[Coverage, ...] = ()
    traffic: tuple[InterfaceTotals, ...] = ()
    standing_out: tuple[Finding, ...] = ()
    beyond_nodes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    @cached_property
    def by_partition(self) -> Mapping[str, list[CaseVerdict]]:
        """Verdicts on the cases of each partition."""
        return grouped((one.case.partition, one) for one in self.cases)

    @property
    def stored_cases(self) -> tuple[StoredResult, ...]:
        """Stored results that it is compared with; none if not asked for."""
        return () if self.compared_with is None else self.compared_with.cases

    @property
    def warns(self) -> bool:
        """Whether a case warns."""
        return any(one.said(Level.WARN) for one in self.cases)

    @property
    def node_warnings(self) -> tuple[str, ...]:
        """Warnings about nodes, a sentence each."""
        return tuple(str(one) for one in self.nodes if one.level is Level.WARN)

    @property
    def undecided(self) -> tuple[str, ...]:
        """Why nodes are neither cleared nor accused, or too few were free, a sentence each."""
        return (
            *(why for one in self.pairs for why in one.undecided()),
            *(f"coverage: {one}" for one in self.coverage if one.short),
        )

    @property
    def crashes(self) -> str:
        """Line with the launches of complete cases, and how many crashed; empty without any."""
        made = sum(one.launches for one in self.launched)
        crashed = sum(one.crashed for one in self.launched)
        return f"launches: {made}, crashed: {crashed}" if made else ""

    @property
    def status(self) -> int:
        """Exit status: 0 passed, 1 failed, 3 nothing failed and some is not decided.

        Nothing failed where a job died or was not submitted, and what waited for it did not run.
        """
        # Not those that fail in setup, as where references are missing, or that nobody ran.
        died = ("fail in run:", "fail in sanity:", "fail in cleanup:")
        unmeasured = {one.why for one in self.failed_tests if one.reason.startswith(died)}
        if unmeasured:
            unmeasured |= {f"coverage: {one}" for one in self.coverage if one.failed}
        failed = any(one.failed and (one.ran or not unmeasured) for one in self.cases)
        if failed or not unmeasured.issuperset(self.faults):
            return FAILED
        passed = self._whole and not self.faults and all(one.passed for one in self.cases)
        return PASSED if passed and not self.undecided else INCONCLUSIVE

    @property
    def inconclusive(self) -> bool:
        """Whether it was judged whole, nothing failed, and some of it is inconclusive."""
        return self.status == INCONCLUSIVE and self._whole

    @property
    def _whole(self) -> bool:
        return bool(self.cases) and all(result.planned for _, result in self.skipped)


def by_reason(
    skipped: Sequence[tuple[Case, CheckResult]],
) -> dict[tuple[str, str, str, bool], list[Case]]:
    """Return the skipped cases by partition, environment, reason and whether it was planned."""
    return grouped(
        ((case.partition, case.environment, result.skipped, result.planned), case)
        for case, result in skipped
    )


def sentences_of_skipped(skipped: Sequence[tuple[Case, CheckResult]]) -> list[str]:
    """Return a sentence on skipped cases for each configuration and reason."""
    return [
        f"{counted(len(cases))} of {partition} {environment}"
        f" {'deferred' if planned else 'NOT MEASURED'}: {why}"
        for (partition, environment, why, planned), cases in by_reason(skipped).items()
    ]


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

    ``where``: of a single one, empty for a fault that names its place; ``why``: the reason alone;
    ``waiting``: cases that did not run since ``tests`` failed; ``excess``: how many times beyond
    its bound, 1 where not known, the most of several.
    """

    kind: FailureKind
    where: str
    why: str
    cases: tuple[Case, ...] = ()
    tests: tuple[Finding, ...] = ()
    waiting: tuple[Case, ...] = ()
    excess: float = 1.0

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.subject, self.reason)))

    @property
    def subject(self) -> str:
        """Where it is: a case or test, or several in words; empty for a fault."""
        if len(self.tests) > 1:
            return f"{len(self.tests)} tests ({listed([test.where for test in self.tests])})"
        return named(self.cases) if len(self.cases) > 1 else self.where

    @property
    def reason(self) -> str:
        """The reason, and which cases waited for it."""
        if not self.waiting:
            return self.why
        for_whom = "it" if len(self.tests) == 1 else "them"
        did = counted(len(self.waiting), "case did", "cases did")
        which = _counted(self.waiting)
        if len({(case.partition, case.environment) for case in self.waiting}) == 1:
            which = listed([case.what() for case in self.waiting])
        return f"{self.why}; {did} not run for {for_whom} ({which})"


def failures(verdict: Verdict) -> list[Failure]:
    """Return all failures, by kind, times beyond the bound and number of cases, the worst last.

    Cases that nobody measured come before those that failed.
    """
    by_test = {test.where: test for test in verdict.failed_tests}
    waiting: dict[str, list[Case]] = defaultdict(list)
    single: list[Failure] = []
    for judged in verdict.cases:
        case = judged.case
        test = f"{case.system}:{case.partition} {case.environment} {judged.failed_job}"
        if test in by_test and len(judged.faults) == 1:
            waiting[test].append(case)
            continue
        kind = FailureKind.BOUND if judged.complete else FailureKind.CASE
        single += [Failure(kind, str(case), why, (case,)) for why in judged.faults]
        single += [
            Failure(FailureKind.BOUND, one.where, one.reason, (case,), excess=one.excess)
            for one in judged.findings
            if one.level is Level.FAIL
        ]
    sentences = {test.why for test in verdict.failed_tests}
    beyond = FailureKind.BEYOND_CASES
    found = [
        *_alike(single),
        *(Failure(beyond, "", one) for one in verdict.faults if one not in sentences),
        *_alike(
            Failure(beyond, one.where, one.reason, tests=(one,), waiting=tuple(waiting[one.where]))
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
    together = grouped(((one.kind, one.why), one) for one in several)
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


Crossover = tuple[CaseVerdict, ...]
"""A function in one configuration over its rank counts, which increase: cases that were measured or
expected; at least one of the configuration was measured."""


def red_cases(cases: Crossover) -> Crossover:
    """Return the cases that ran and failed."""
    return tuple(one for one in cases if one.failed and one.ran)


def breakdown(cases: Crossover) -> str:
    """Return at which ranks and sizes a function is red, and by what; or up to which it is not."""
    unsure = [one.case.ranks for one in cases if one.level is Level.INCONCLUSIVE]
    missing = [one.case.ranks for one in cases if not one.ran]
    fine = [one.case.ranks for one in cases if one.passed]
    rest = [
        f"{word} at {' and '.join(map(str, ranks))} ranks"
        for word, ranks in (("inconclusive", unsure), ("did not run", missing))
        if ranks
    ]
    if not red_cases(cases):
        # Nothing is known from the first inconclusive count on.
        settled = [ranks for ranks in fine if ranks < min(unsure, default=math.inf)]
        not_red = [f"not red up to {settled[-1]} ranks"] if settled else []
        return "; ".join([*not_red, *rest])
    alike = grouped((broken(one), str(one.case.ranks)) for one in red_cases(cases))
    parts = [f"at {' and '.join(ranks)} ranks{how}" for how, ranks in alike.items()]
    parts += [f"not at {' and '.join(map(str, fine))}"] if fine else []
    return f"red {'; '.join([*parts, *rest])}"


def crossovers(verdict: Verdict) -> tuple[Crossover, ...]:
    """Return every function of every configuration that was measured, in the verdict's order."""
    alike = attrgetter("partition", "environment", "benchmark", "function", "path", "direction")
    several = grouped((alike(one.case), one) for one in verdict.cases)
    measured = {alike(one.case)[:2] for one in verdict.cases if one.measured is not None}
    return tuple(
        tuple(sorted(cases, key=lambda one: one.case.ranks))
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
    sizes = red_sizes(judged)
    measured = sorted({*judged.measured.curve.sizes, *sizes})
    where = f", {ranges_in_words(sizes, measured)}" if sizes else ""
    return f"{where} by {' and '.join(filter(None, [', '.join(by[:-1]), *by[-1:]]))}"


CpuRow = tuple[Case, NodeCost, float | None]
"""A case, its cost on the costliest node, and its CPU seconds per GB over those of the same case
over TCP, None where it is not compared with TCP or either is not known."""

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
        rows.append((case, cost, of_tcp))
    return rows, unknown
