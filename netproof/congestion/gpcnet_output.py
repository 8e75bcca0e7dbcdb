"""Output of GPCNeT's ``network_load_test`` (version 1.3, not compiled as verbose).

Three tables: network tests alone, the same tests while congestors run, and the factors between
both. Any other text between its first line and its last is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from netproof.errors import ParseError

PROGRAM = "network_load_test"

ALONE, ALONGSIDE, FACTORS = (
    "Isolated Network Tests",
    "Network Tests running with Congestion Tests",
    "Network Tests running with Congestion Tests - Key Results",
)

_FIRST = re.compile(r"NetworkLoad Tests v(\d+\.\d+)")
_RANKS = re.compile(r" +Test with (\d+) MPI ranks \((\d+) nodes\)")
_TESTS = re.compile(r" +(\d+) nodes running Network Tests")
_CONGESTORS = re.compile(r" +(\d+) nodes running Congestion Tests \(min \d+ nodes per congestor\)")
_LEGEND = re.compile(r" +(Legend|[\w+]+ = .*)")
_RULE = re.compile(r"\+[+-]{70,}\+")
_ROW = re.compile(r" *\|(.+)\|")
_NUMBER = re.compile(r"\d+\.\d")

TIME, RATE = "usec", "MiB/s/rank"


@dataclass(frozen=True)
class NetworkTest:
    """One line of a table: the mean and the 99th percentile of a test, in its unit.

    A percentile of a rate is a low one: 99 in 100 are above it.
    """

    name: str
    mean: float
    tail: float
    unit: str


@dataclass(frozen=True)
class GpcnetOutput:
    """One run: its ranks and nodes, and each test ``alone`` and ``alongside`` the congestors."""

    version: str
    ranks: int
    nodes: int
    nodes_of_tests: int
    alone: tuple[NetworkTest, ...]
    alongside: tuple[NetworkTest, ...]


class _Lines:
    """The lines that are not empty from the benchmark's first on, with their numbers."""

    def __init__(self, text: str, path: str) -> None:
        self.path = path
        numbered = [one for one in enumerate(text.splitlines(), 1) if one[1].strip()]
        # A launcher or a library may print before it.
        begins = (at for at, (_, one) in enumerate(numbered) if _FIRST.fullmatch(one.rstrip()))
        self._left = numbered[next(begins, len(numbered)) :][::-1]
        self._last = numbered[-1] if numbered else (0, "")

    def fault(self, reason: str) -> ParseError:
        return ParseError(self.path, *(self._left[-1] if self._left else self._last), reason)

    def next_is(self, pattern: re.Pattern[str]) -> bool:
        return bool(self._left) and pattern.fullmatch(self._left[-1][1].rstrip()) is not None

    def take(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        if not self.next_is(pattern):
            raise self.fault(f"{what} has to stand here")
        return pattern.fullmatch(self._left.pop()[1].rstrip())

    def cells(self, what: str) -> list[str]:
        """Return the cells of a table's row, after the rule above it."""
        self.take(_RULE, f"the line above {what}")
        return [cell.strip() for cell in self.take(_ROW, what)[1].split("|")]

    def at_row(self) -> bool:
        """Check whether a rule with a row below it comes next, which ends with the table."""
        below = len(self._left) > 1 and self._left[-2][1].lstrip().startswith("|")
        return below and self.next_is(_RULE)


def read(text: str, path: str) -> GpcnetOutput:
    """Return one run; ParseError with the line where the program does not print such text."""
    lines = _Lines(text, path)
    version = lines.take(_FIRST, "'NetworkLoad Tests v…'")[1]
    ranks, nodes = map(int, lines.take(_RANKS, "ranks and nodes").groups())
    tests = int(lines.take(_TESTS, "the nodes of the network tests")[1])
    lines.take(_CONGESTORS, "the nodes of the congestion tests")
    while lines.next_is(_LEGEND):
        lines.take(_LEGEND, "the legend")
    alone, alongside = (tuple(_tests(lines, title)) for title in (ALONE, ALONGSIDE))
    if [(one.name, one.unit) for one in alone] != [(one.name, one.unit) for one in alongside]:
        raise lines.fault("the tests alone and those alongside congestors are not the same")
    _factors(lines, [one.name for one in alone])
    return GpcnetOutput(version, ranks, nodes, tests, alone, alongside)


def _tests(lines: _Lines, title: str) -> Iterator[NetworkTest]:
    _heads(lines, [[title], ["Name", "Avg", "99%", "Units"]])
    if not lines.at_row():
        raise lines.fault(f"the table {title!r} has no row")
    while lines.at_row():
        cells = lines.cells("a test")
        numbers = cells[1:3]
        whole = len(cells) == 4 and cells[0] and cells[3] in (TIME, RATE)
        if not whole or not all(map(_NUMBER.fullmatch, numbers)):
            raise lines.fault(f"the row before it, {cells}, is no test, two numbers and a unit")
        mean, tail = map(float, numbers)
        if not (mean > 0 and tail > 0):
            raise lines.fault(f"the row before it, {cells}, is of no time or rate above 0")
        yield NetworkTest(cells[0], mean, tail, cells[3])
    lines.take(_RULE, "the last line of the table")


def _factors(lines: _Lines, tests: list[str]) -> None:
    """Check the last table, which follows from the others but must be there, and complete."""
    _heads(lines, [[FACTORS], ["Name", "Congestion Impact Factor"], ["", "Avg", "99%"]])
    seen = []
    while lines.at_row():
        cells = lines.cells("a factor")
        if len(cells) != 3 or not all(re.fullmatch(r"\d+\.\dX|infX", one) for one in cells[1:]):
            raise lines.fault(f"the row before it, {cells}, has no test with two factors")
        seen.append(cells[0])
    lines.take(_RULE, "the last line of the table")
    if seen != tests:
        raise lines.fault(f"factors are of {seen}, and tests were {tests}")


def _heads(lines: _Lines, rows: list[list[str]]) -> None:
    for row in rows:
        if lines.cells(f"the title {row}") != row:
            raise lines.fault(f"the row before it is not the title {row}")
