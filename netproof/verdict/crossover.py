"""Where a function breaks down: the least rank count at which it fails, and the sizes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from netproof.criteria import Level
from netproof.measurement.case import Case
from netproof.verdict.judged import Judged, Verdict


@dataclass(frozen=True)
class Crossover:
    """A function in one configuration over its rank counts, which increase.

    ``cases``: measured or expected; at least one of the configuration was measured.
    """

    cases: tuple[Judged, ...]

    @property
    def case(self) -> Case:
        """First case, for what all have in common."""
        return self.cases[0].case

    @property
    def red(self) -> tuple[Judged, ...]:
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
        said = [f"at {' and '.join(ranks)} ranks{how}" for how, ranks in alike.items()]
        said += [f"not at {' and '.join(fine)}"] if fine else []
        said += rest
        return f"red {'; '.join(said)}"


def crossovers(verdict: Verdict) -> tuple[Crossover, ...]:
    """Return every function of every configuration that was measured, in the verdict's order."""
    several: dict[tuple, list[Judged]] = defaultdict(list)
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


def red_sizes(judged: Judged) -> tuple[int, ...]:
    """Return the sizes in bytes at which a criterion fails the case, increasing."""
    failed = (ruling for ruling in judged.rulings if ruling.level is Level.FAIL)
    return tuple(sorted({size for ruling in failed for size in ruling.sizes()}))


def red_criteria(judged: Judged) -> tuple[str, ...]:
    """Return the names of the criteria that fail the case."""
    failed = (ruling for ruling in judged.rulings if ruling.level is Level.FAIL)
    return tuple(dict.fromkeys(ruling.finding.criterion for ruling in failed))


def broken(judged: Judged) -> str:
    """Return the sizes and criteria of a red case, as words that follow its rank count."""
    if judged.measured is None:
        return ", not measured whole"
    sizes, criteria = red_sizes(judged), list(red_criteria(judged))
    where = f", {_spans(judged.measured.curve.sizes, sizes)} bytes" if sizes else ""
    by = [*criteria, *(["references"] if judged.faults else [])]
    return f"{where} by {' and '.join(filter(None, [', '.join(by[:-1]), *by[-1:]]))}"


def _spans(curve: Sequence[int], sizes: Sequence[int]) -> str:
    """Return sizes in words, neighbours on the curve as one span: ``32768 to 131072``."""
    neighbours = set(pairwise(curve))
    spans: list[list[int]] = []
    for size in sizes:
        if spans and (spans[-1][-1], size) in neighbours:
            spans[-1].append(size)
        else:
            spans.append([size])
    return ", ".join(
        str(span[0]) if len(span) == 1 else f"{span[0]} to {span[-1]}" for span in spans
    )
