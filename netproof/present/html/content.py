"""Cases on pages: their states, and the groups that measured the same."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from netproof.benchmarks import registry
from netproof.criteria import Level
from netproof.errors import NetproofError, grouped
from netproof.measurement.case import Case
from netproof.present.wording import file_name
from netproof.verdict import engine
from netproof.verdict.verdict import CaseVerdict, StoredResult, Verdict

SPLIT_ABOVE = 300
"""Most cases of a report whose pages have all partitions; beyond, charts are crowded and slow."""


LEVELS = {
    Level.FAIL: ("FAIL", "failed"),
    Level.INCONCLUSIVE: ("INCONCLUSIVE", "inconclusive"),
    Level.UNDEFINED: ("NOT JUDGED", "inconclusive"),
    Level.WARN: ("WARN", "warned"),
    Level.PASS: ("pass", "passed"),
}
"""Words and styles of levels, the most severe first."""


class CaseState(Enum):
    """State of a case: a word, a sign without colour, its severity, the style's class."""

    PASSED = ("passed", "✓", 0, "passed")
    EXPECTED = ("fails as expected", "≈", 1, "passed")
    UNCONFIRMED = ("passed, a flag was not confirmed", "○", 2, "passed")
    WARNED = ("passed with a warning", "▲", 3, "warned")
    INCONCLUSIVE = ("inconclusive", "?", 4, "inconclusive")
    ABSENT = ("did not run", "∅", 5, "absent")
    FAILED = ("failed", "✗", 6, "failed")

    def __init__(self, word: str, sign: str, badness: int, look: str) -> None:
        self.word, self.sign, self.badness, self.look = word, sign, badness, look


def state_of(judged: CaseVerdict) -> CaseState:
    """Return the state of one case."""
    unconfirmed = any(finding.level is Level.SHOWN for finding in judged.flags())
    states = {
        CaseState.ABSENT: not judged.ran,
        CaseState.FAILED: judged.failed,
        CaseState.INCONCLUSIVE: not judged.passed,
        CaseState.WARNED: bool(judged.said(Level.WARN)),
        CaseState.EXPECTED: bool(judged.expected),
        CaseState.UNCONFIRMED: unconfirmed,
    }
    return next((state for state, holds in states.items() if holds), CaseState.PASSED)


def configuration(case: Case) -> str:
    """Return the label of a configuration at curves: partition and environment."""
    return f"{case.partition} {case.environment}"


def switch(one: CaseVerdict) -> str:
    """Return the partition's label in legends, with the day if another session measured it."""
    if isinstance(one, StoredResult):
        return f"{one.case.partition}, of {one.date}"
    return one.case.partition


def label(one: CaseVerdict) -> str:
    """Return the label of a configuration at curves, with the day as in ``switch``."""
    day = f", of {one.date}" if isinstance(one, StoredResult) else ""
    return f"{configuration(one.case)}{day}"


def function_name(case: Case) -> str:
    """Return the benchmark and its function or protocol: ``IMB Alltoall``, ``NetPIPE TCP``."""
    return registry.of(case).title(case.function)


@dataclass(frozen=True)
class Group:
    """Cases that measured the same in every configuration, in the verdict's order.

    ``stored``: cases that other sessions measured; ``partition``: where each partition has pages of
    its own, else empty.
    """

    members: tuple[CaseVerdict, ...]
    stored: tuple[StoredResult, ...] = ()
    partition: str = ""

    @property
    def case(self) -> Case:
        """Any of its cases, for what all have in common."""
        return self.members[0].case

    @property
    def every(self) -> tuple[CaseVerdict, ...]:
        """Its cases, stored ones last."""
        return (*self.members, *self.stored)

    @property
    def title(self) -> str:
        """Name of its cases, and the partition of a page of its own."""
        return ", ".join(filter(None, (self.case.what(), self.partition)))

    @cached_property
    def name(self) -> str:
        """Name of its anchor and its files."""
        return file_name(self.title)

    @property
    def page_title(self) -> str:
        """Title of its page: of a benchmark with one page, or of a function."""
        benchmark = registry.of(self.case)
        title = benchmark.label if benchmark.by_protocol else function_name(self.case)
        return ", ".join(filter(None, (title, self.partition)))

    @cached_property
    def page(self) -> str:
        """File of its page."""
        return f"{file_name(self.page_title)}.html"

    @property
    def link(self) -> str:
        """Link to it from another page."""
        return f"{self.page}#{self.name}"

    def state(self) -> CaseState:
        """Return the worst state of a case."""
        return max(map(state_of, self.members), key=lambda state: state.badness)


def groups(verdict: Verdict) -> tuple[Group, ...]:
    """Return all groups, in the verdict's order, above ``SPLIT_ABOVE`` cases for each partition.

    Raises NetproofError where two would have one file.
    """
    split = len(verdict.cases) > SPLIT_ABOVE
    stored = grouped((engine.group(one.case), one) for one in verdict.stored_cases)
    several = grouped(
        ((engine.group(one.case), one.case.partition if split else ""), one)
        for one in verdict.cases
    )
    found: dict[str, Group] = {}
    for (key, partition), members in several.items():
        group = Group(tuple(members), tuple(stored.get(key, ())), partition)
        same = found.setdefault(group.name, group)
        if same is not group:
            both = f"{group.title} and {same.title}"
            raise NetproofError(f"{both} would both be {group.name}: rename one")
    return tuple(found.values())
