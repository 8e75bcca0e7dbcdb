"""Compare two sessions, partitions or environments, case by case.

The ratio of a case is the score of criterion 2, with the first side as its baseline: above 1 the
second side is faster. Nothing is judged here; cases that only one side measured are listed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from netproof.comparison.compared_case import ComparedCase, Outcome, compared_case
from netproof.comparison.ranges import RANGE_SIZES
from netproof.comparison.sides import ComparedSide
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.session.session import CheckResult
from netproof.verdict.verdict import faults_of

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

        Each range is its least and largest size in bytes and whether the second side is faster, by
        ``ranges``; it has at least ``RANGE_SIZES`` sizes in a row. Sizes that fewer than half of
        the benchmark's cases have are left out.
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
        """Return the geometric mean of the ratios, each with equal weight; None without any."""
        logs = [math.log(case.score.value) for case in self.cases if case.score.value is not None]
        return math.exp(math.fsum(logs) / len(logs)) if logs else None


def compare(
    first: ComparedSide, second: ComparedSide, tracked: Callable[[Sequence], Iterable] = iter
) -> Comparison:
    """Compare the cases of two sides.

    A counterpart has the same function, ranks, path and direction, and the partition and
    environment that the sides do not name. ``tracked`` wraps the iteration over cases, to show
    progress. Raise NetproofError where a side has no case, or no case has a counterpart.
    """
    ours, theirs = first.results(), second.results()
    compared, uncompared = [], []
    differ: dict[tuple[str, str, str], CaseDifference] = {}
    for key in tracked(list(dict.fromkeys((*ours, *theirs)))):
        one, other = ours.get(key), theirs.get(key)
        if one and other and one.measured and other.measured:
            compared.append(compared_case(one, other, first.name, second.name))
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


def _differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[tuple]:
    found = []
    for extras in ("partition_extras", "environment_extras"):
        # An empty value counts as unset: a key may be younger than a session.
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
