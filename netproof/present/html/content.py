"""Cases on pages: their states, and the groups that measured the same."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import Enum

from netproof.benchmarks import registry
from netproof.criteria import Level
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.present.wording import file_name
from netproof.verdict import engine
from netproof.verdict.verdict import CaseVerdict, StoredResult, Verdict

SPLIT_ABOVE = 300
"""Most cases of a report whose pages have all partitions; beyond, charts are crowded and slow."""


LOOKS = {
    Level.FAIL: "failed",
    Level.INCONCLUSIVE: "inconclusive",
    Level.UNDEFINED: "inconclusive",
    Level.WARN: "warned",
}
"""Styles of findings, the most severe first."""


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


def named(case: Case) -> str:
    """Return a case's function and variant: ``IMB Alltoall, 4 ranks``."""
    return f"{function_name(case)}, {variant(case)}"


def configuration(case: Case) -> str:
    """Return the label of a configuration at curves: partition and environment."""
    return f"{case.partition} {case.environment}"


def switch(one: CaseVerdict | StoredResult) -> str:
    """Return the partition's label in legends, with the day if another session measured it."""
    if isinstance(one, StoredResult):
        return f"{one.case.partition}, of {one.date}"
    return one.case.partition


def label(one: CaseVerdict | StoredResult) -> str:
    """Return the label of a configuration at curves, with the day as in ``switch``."""
    day = f", of {one.date}" if isinstance(one, StoredResult) else ""
    return f"{configuration(one.case)}{day}"


def function_name(case: Case) -> str:
    """Return the benchmark and its function or protocol: ``IMB Alltoall``, ``NetPIPE TCP``."""
    return registry.of(case).title(case.function)


def variant(case: Case) -> str:
    """Return what distinguishes cases of one function: ranks, or NetPIPE's path and direction."""
    return registry.of(case).variant(case)


@dataclass(frozen=True)
class Group:
    """Cases that measured the same in every configuration, in the verdict's order.

    ``name`` is that of its anchor and its files, ``page`` that of its page; ``stored``: cases that
    other sessions measured; ``partition``: where each partition has pages of its own, else empty.
    """

    name: str
    page: str
    function: str
    variant: str
    members: tuple[CaseVerdict, ...]
    stored: tuple[StoredResult, ...] = ()
    partition: str = ""

    @property
    def title(self) -> str:
        """Function and variant, and the partition of a page of its own."""
        return ", ".join(filter(None, (self.function, self.variant, self.partition)))

    @property
    def short(self) -> str:
        """Title on its page, which names the benchmark or the function already."""
        if registry.of(self.case).by_protocol:
            return f"{self.case.function.upper()}, {self.variant}"
        return self.variant

    @property
    def case(self) -> Case:
        """Any of its cases, for what all have in common."""
        return self.members[0].case

    @property
    def link(self) -> str:
        """Link to it from another page."""
        return f"{self.page}#{self.name}"

    def state(self) -> CaseState:
        """Return the worst state of a case."""
        return max(map(state_of, self.members), key=lambda state: state.badness)


def groups(verdict: Verdict) -> tuple[Group, ...]:
    """Return all groups, in the order in which the verdict first has them.

    Above ``SPLIT_ABOVE`` cases each partition has groups, and pages, of its own.
    Raises NetproofError where two would have one file.
    """
    split = len(verdict.cases) > SPLIT_ABOVE
    several: dict[tuple[tuple[object, ...], str], list[CaseVerdict]] = defaultdict(list)
    for judged in verdict.cases:
        several[engine.group(judged.case), judged.case.partition if split else ""].append(judged)
    stored: dict[tuple[object, ...], list[StoredResult]] = defaultdict(list)
    for one in () if verdict.compared_with is None else verdict.compared_with.cases:
        stored[engine.group(one.case)].append(one)
    found: dict[str, Group] = {}
    for (key, partition), members in several.items():
        case = members[0].case
        function, benchmark = function_name(case), registry.of(case)
        where = (partition,) if partition else ()
        name = file_name(function, variant(case), *where)
        page = file_name(benchmark.name if benchmark.by_protocol else function, *where)
        of_cases = (tuple(members), tuple(stored[key]), partition)
        group = Group(name, f"{page}.html", function, variant(case), *of_cases)
        if name in found:
            same = found[name].title
            raise NetproofError(f"{group.title} and {same} would both be {name}: rename one")
        found[name] = group
    return tuple(found.values())


def page_title(group: Group) -> str:
    """Return the title of a group's page: a benchmark with one page, or a function."""
    benchmark = registry.of(group.case)
    title = benchmark.label if benchmark.by_protocol else group.function
    return f"{title}, {group.partition}" if group.partition else title


def reasons(judged: CaseVerdict, level: Level) -> list[str]:
    """Return the reasons of a case's findings of a level."""
    return [finding.reason for finding in judged.findings if finding.level is level]
