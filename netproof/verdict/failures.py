"""Failures, grouped by their reason, the worst last.

A person reads a screen from its last line up, so the worst stands there. A text that is read from
the top, a mail for instance, reverses the order.
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
"""Cases or tests of one reason that are named; the others are counted."""


class FailureKind(IntEnum):
    """Kind of a failure, the worst with the largest number.

    ``BOUND``: a measured case is beyond a bound; ``CASE``: a case was not measured;
    ``BEYOND_CASES``: a job failed or a configuration is gone, with all of its cases.
    """

    BOUND = 0
    CASE = 1
    BEYOND_CASES = 2


@dataclass(frozen=True)
class Failure:
    """Cases or tests that failed for one reason.

    ``whole``: the verdict's sentence, for a single one; ``why``: the reason alone; ``cases`` and
    ``tests``: what failed; ``waiting``: the cases that did not run since those tests failed;
    ``excess``: how many times beyond its bound, 1 where not known, the most of several;
    ``judged``: the case to show in detail, where flagged sizes were measured again.
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
        """Return one line: what failed, why, and what did not run for it."""
        if len(self.tests) > 1:
            places = [test.where for test in self.tests]
            sentence = f"{len(places)} tests ({listed(places)}): {self.why}"
        elif len(self.cases) > 1:
            sentence = f"{named(self.cases)}: {self.why}"
        else:
            sentence = self.whole
        if not self.waiting:
            return sentence
        for_whom = "it" if len(self.tests) == 1 else "them"
        did = "case did" if len(self.waiting) == 1 else "cases did"
        places = {(case.partition, case.environment) for case in self.waiting}
        which = (
            listed([case.what() for case in self.waiting])
            if len(places) == 1
            else _counted(self.waiting)
        )
        return f"{sentence}; {len(self.waiting)} {did} not run for {for_whom} ({which})"


def failures(verdict: Verdict) -> list[Failure]:
    """Return all failures in order of ``badness``, and in the verdict's order among equals."""
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
    """Return the sort key of a failure: kind first, then how far beyond, then how many.

    A fault beyond cases is worse than a case that was not measured, and this worse than one beyond
    a bound. Among these, more times beyond the bound is worse, and then more cases.
    """
    return failure.kind, failure.excess, len(failure.cases) + len(failure.waiting)


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


def listed(names: Sequence[str]) -> str:
    """Return the first of many names, and the number of further ones."""
    more = len(names) - NAMED
    # The last one takes no more room than its count.
    shown = names if more <= 1 else names[:NAMED]
    return f"{', '.join(shown)}{f' and {more} more' if more > 1 else ''}"


def _counted(cases: Sequence[Case]) -> str:
    counts = Counter(f"{case.partition} {case.environment}" for case in cases)
    return ", ".join(f"{count} of {place}" for place, count in counts.items())


def _failed_test_of(judged: Judged) -> tuple[str, str, str] | None:
    """Return the failed test that alone failed a case; None where there is more."""
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
    """Return how many times a flagged value is beyond its bound, on either side."""
    value, bound = finding.value, finding.bound
    if value is None or not bound or not math.isfinite(value):
        return 1.0
    ratio = value / bound
    return math.inf if ratio <= 0 else max(ratio, 1 / ratio)


def _alike(single: Sequence[Failure]) -> list[Failure]:
    """Return one failure for each kind and reason."""
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
