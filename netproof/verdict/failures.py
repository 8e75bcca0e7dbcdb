"""What failed, those that share a reason together, the worst last.

A person reads a screen from its last line up, so the worst stands there. What is read from the top,
a mail for instance, turns the order round.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from netproof.criteria import Finding, Level
from netproof.measurement.case import Case
from netproof.verdict.judged import FailedTest, Judged, Verdict

NAMED = 3
"""How many cases or tests that share a reason are named; the others are counted."""


class FailureKind(IntEnum):
    """What a failure is of, the worse the greater.

    ``BOUND``: a case that was measured is beyond a bound; ``CASE``: a case was not measured, so
    that nothing is known of it; ``BEYOND_CASES``: a job failed, or a configuration is gone, and
    with it all that it was to measure.
    """

    BOUND = 0
    CASE = 1
    BEYOND_CASES = 2


@dataclass(frozen=True)
class Failure:
    """What failed for one reason.

    ``whole``: the sentence of the only one of it, as the verdict has it; ``why``: the reason
    without what it befell; ``cases`` and ``tests``: what it befell; ``waiting``: the cases that
    did not run since those tests failed; ``excess``: how many times beyond its bound, 1 where
    that is not told, the most of several; ``judged``: the case of which more is to be shown,
    where a criterion flagged it and it was measured again.
    """

    kind: FailureKind
    whole: str
    why: str
    cases: tuple[Case, ...] = ()
    tests: tuple[FailedTest, ...] = ()
    waiting: tuple[Case, ...] = ()
    excess: float = 1.0
    judged: Judged | None = None

    def __str__(self) -> str:
        """In one line: what failed, why, and what did not run for it."""
        if len(self.tests) > 1:
            places = [test.where for test in self.tests]
            told = f"{len(places)} tests ({listed(places)}): {self.why}"
        elif len(self.cases) > 1:
            told = f"{named(self.cases)}: {self.why}"
        else:
            told = self.whole
        if not self.waiting:
            return told
        for_whom = "it" if len(self.tests) == 1 else "them"
        did = "case did" if len(self.waiting) == 1 else "cases did"
        places = {(case.partition, case.environment) for case in self.waiting}
        which = (
            listed([case.what() for case in self.waiting])
            if len(places) == 1
            else _counted(self.waiting)
        )
        return f"{told}; {len(self.waiting)} {did} not run for {for_whom} ({which})"


def failures(verdict: Verdict) -> list[Failure]:
    """All that failed, in order of ``badness``; of what is equally bad, in the verdict's order."""
    by_test = {(test.partition, test.environment, test.name): test for test in verdict.failed_tests}
    waiting: dict[FailedTest, list[Case]] = {}
    single = []
    for judged in verdict.cases:
        test = by_test.get(_failed_test_of(judged))
        if test is not None:
            waiting.setdefault(test, []).append(judged.case)
            continue
        single += _of_case(judged)
    sentences = {str(test) for test in verdict.failed_tests}
    found = [
        *_alike(single),
        *(
            Failure(FailureKind.BEYOND_CASES, fault, fault)
            for fault in verdict.faults
            if fault not in sentences
        ),
        *_of_tests(verdict.failed_tests, waiting),
    ]
    return sorted(found, key=badness)


def badness(failure: Failure) -> tuple[FailureKind, float, int]:
    """How bad a failure is compared with others: kind first, then how far beyond, then how many.

    A fault beyond cases is worse than a case that was not measured, and that worse than one beyond
    a bound. Of those, the one that is more times beyond its bound is worse, and of equal ones the
    one that befell more cases.
    """
    return failure.kind, failure.excess, len(failure.cases) + len(failure.waiting)


def named(cases: Sequence[Case]) -> str:
    """Cases that share a reason: the only one, some names, or counts by configuration."""
    if len(cases) == 1:
        return str(cases[0])
    places = {(case.system, case.partition, case.environment) for case in cases}
    if len(places) > 1:
        return f"{len(cases)} cases ({_counted(cases)})"
    (system, partition, environment) = places.pop()
    which = listed([case.what() for case in cases])
    return f"{len(cases)} cases of {system}:{partition} {environment} ({which})"


def listed(names: Sequence[str]) -> str:
    """The first of many names, and how many more there are."""
    more = len(names) - NAMED
    # The last one takes no more room than its count.
    shown = names if more <= 1 else names[:NAMED]
    return f"{', '.join(shown)}{f' and {more} more' if more > 1 else ''}"


def _counted(cases: Sequence[Case]) -> str:
    counts = Counter(f"{case.partition} {case.environment}" for case in cases)
    return ", ".join(f"{count} of {place}" for place, count in counts.items())


def _failed_test_of(judged: Judged) -> tuple[str, str, str] | None:
    """Which test's failing is all that is wrong with a case; None where there is more."""
    result = judged.result
    if result is None or result.failed_job is None or len(judged.faults) != 1:
        return None
    return (result.partition, result.environment, result.failed_job)


def _of_case(judged: Judged) -> list[Failure]:
    kind = FailureKind.CASE if judged.measured is None else FailureKind.BOUND
    found = [Failure(kind, f"{judged.case}: {why}", why, (judged.case,)) for why in judged.faults]
    for ruling in judged.rulings:
        if ruling.level is not Level.FAIL:
            continue
        more = judged if ruling.confirmation is not None else None
        found.append(
            Failure(
                FailureKind.BOUND,
                ruling.why,
                ruling.reason,
                (judged.case,),
                excess=excess(ruling.finding),
                judged=more,
            )
        )
    return found


def excess(finding: Finding) -> float:
    """How many times a flagged value is beyond its bound, on whichever side the bound lies."""
    value, bound = finding.value, finding.bound
    if value is None or not bound or not math.isfinite(value):
        return 1.0
    ratio = value / bound
    return math.inf if ratio <= 0 else max(ratio, 1 / ratio)


def _alike(single: Sequence[Failure]) -> list[Failure]:
    """One failure for each kind and reason."""
    together: dict[tuple[FailureKind, str], list[Failure]] = {}
    for one in single:
        together.setdefault((one.kind, one.why), []).append(one)
    return [
        Failure(
            kind,
            several[0].whole,
            why,
            tuple(case for one in several for case in one.cases),
            excess=max(one.excess for one in several),
            judged=several[0].judged,
        )
        for (kind, why), several in together.items()
    ]


def _of_tests(tests: Sequence[FailedTest], waiting: dict[FailedTest, list[Case]]) -> list[Failure]:
    alike: dict[str, list[FailedTest]] = {}
    for test in tests:
        alike.setdefault(test.why, []).append(test)
    return [
        Failure(
            FailureKind.BEYOND_CASES,
            str(several[0]),
            why,
            tests=tuple(several),
            waiting=tuple(case for test in several for case in waiting.get(test, ())),
        )
        for why, several in alike.items()
    ]
