"""Compare one switch with each of the others, of the same session or taken from a store."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from netproof.comparison.compared_case import Outcome
from netproof.comparison.comparison import Comparison, compare
from netproof.comparison.sides import ComparedSide
from netproof.errors import NetproofError
from netproof.session.session import CheckResult, Session
from netproof.verdict.judged import Verdict


@dataclass(frozen=True)
class Against:
    """A partition, as the second side, compared with each other partition, as the first.

    ``alone``: a sentence for each partition that has no case in common with it.
    """

    partition: str
    comparisons: tuple[Comparison, ...]
    alone: tuple[str, ...]

    def worse(self) -> set[tuple]:
        """Return the keys of cases slower than another switch's, overall or at some sizes."""
        return {
            case.second.case.key()
            for compared in self.comparisons
            for case in compared.cases
            if case.outcome is Outcome.SLOWER or any(not one.faster for one in case.ranges)
        }


def new_partition(verdict: Verdict) -> str | None:
    """Return the only measured partition, None unless stored cases of others are paired."""
    measured = {one.case.partition for one in verdict.cases if one.measured is not None}
    if len(measured) != 1 or verdict.alongside is None:
        return None
    (name,) = measured
    others = {one.case.partition for one in verdict.alongside.cases} - measured
    return name if others else None


def alone(session: Session, verdict: Verdict, switch: str | None = None) -> Against | None:
    """Compare ``switch``, or else the switch that was measured alone, with each other one.

    Return None where no switch was measured alone and none is given. Raise NetproofError as
    ``against``.
    """
    partition = switch or new_partition(verdict)
    return None if partition is None else against(session, verdict, partition)


def against(
    session: Session,
    verdict: Verdict,
    partition: str,
    tracked: Callable[[Sequence], Iterable] = iter,
) -> Against:
    """Compare a partition's cases with those of each other partition.

    ``tracked`` as ``comparison.compare`` takes it. Raise NetproofError where the partition has no
    case, or is the only one.
    """
    results: dict[str, list[CheckResult]] = defaultdict(list)
    days: dict[str, set[str]] = defaultdict(set)
    sources: dict[str, dict[Path, Session]] = defaultdict(dict)
    for judged in verdict.cases:
        if judged.result is not None:
            results[judged.case.partition].append(judged.result)
            sources[judged.case.partition][session.path] = session
    for one in () if verdict.alongside is None else verdict.alongside.cases:
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
            " with; --alongside-stored takes others from the store"
        )

    def side(name: str) -> ComparedSide:
        day = days[name]
        of = f", of {' to '.join(dict.fromkeys((min(day), max(day))))}" if day else ""
        first, *others = sources[name].values()
        only = dataclasses.replace(first, results=tuple(results[name]))
        return ComparedSide(only, f"{name}{of}", name, also=tuple(others))

    comparisons, alone = [], []
    for other in results:
        if other == partition:
            continue
        try:
            comparisons.append(compare(side(other), side(partition), tracked))
        except NetproofError as error:
            alone.append(str(error))
    return Against(partition, tuple(comparisons), tuple(alone))
