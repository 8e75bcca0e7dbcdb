"""GPCNeT's ``network_test`` and ``network_load_test`` of version 1.3, also compiled as verbose.

The first has one table, of tests alone; the second also the same tests while congestors run, and
the factors between both. Verbose ones have more columns, a table for each test beside congestors,
and the congestors' rates, which are checked and left out. Any other text between the first line and
the last is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from netproof.benchmarks.fixed import Lines, Row, TableError
from netproof.benchmarks.interface import (
    BOTH_WAYS,
    Benchmark,
    Function,
    Output,
    Table,
    up_to_fault,
)
from netproof.errors import ParseError
from netproof.measurement.case import MEBI

ALONE, CONGESTORS, CONGESTED, FACTORS = (
    "Isolated Network Tests",
    "Isolated Congestion Tests",
    "Network Tests running with Congestion Tests",
    "Network Tests running with Congestion Tests - Key Results",
)

_FIRST = re.compile(r"Network(Load)? Tests v(\d+\.\d+) *")
_RANKS = re.compile(r" *Test with (\d{1,9}) MPI ranks \((\d{1,9}) nodes\) *")
_TESTS = re.compile(r" *(\d{1,9}) nodes running Network Tests *")
_NODES_OF_CONGESTORS = re.compile(
    r" *\d+ nodes running Congestion Tests \(min \d+ nodes per congestor\) *"
)
_LEGEND = re.compile(r" *(Legend|[\w+]+ = .*)")
_RULE = re.compile(r" *\+[+-]{70,}\+ *")
_ROW = re.compile(r" *\|(.+)\| *")
_NUMBER = re.compile(r"\d{1,15}\.\d")
_TEST = re.compile(r"(.+) \((\d{1,12}) B\)")
_HEADS = (
    ["Name", "Avg", "99%", "Units"],
    ["Name", "Min", "Max", "Avg", "Avg(Worst)", "99%", "99.9%", "Units"],
)
_LAST = "Multiple Alltoall"
"""Last test of ``network_test``."""
_MEAN, BESIDE = "mean of the ranks", "beside congestors"

TIME, RATE = "usec", "MiB/s/rank"

_FUNCTIONS = ("RR Two-sided Lat", "RR Get Lat", "RR Put Lat", "Multiple Allreduce")
_RATES = (
    *("RR Two-sided BW", "RR Put BW", "RR Get BW", "RR Two-sided BW+Sync"),
    *("Nat Two-sided BW", "Multiple Alltoall"),
)


def _match(lines: Lines, pattern: re.Pattern[str]) -> re.Match[str] | None:
    lines.skip_blank()
    return lines.match(pattern)


def _expect(lines: Lines, pattern: re.Pattern[str], what: str) -> re.Match[str]:
    lines.skip_blank()
    return lines.expect(pattern, what)


def _tables(lines: Lines, empty: Table, *, loaded: bool) -> Iterator[Table]:
    """Yield the tests alone, and of a ``loaded`` run those beside congestors."""
    _, alone = _tests(lines, replace(empty, remark=_MEAN), ALONE)
    if not loaded and alone[-1].function != _LAST:
        lines.refuse(f"the table ends before {_LAST}", TableError)
    yield from map(_sized, alone)
    if loaded:
        empty = replace(empty, remark=f"{_MEAN}, {BESIDE}")
        title, congested = _tests(lines, empty, CONGESTED, CONGESTORS)
        if title == CONGESTORS:
            each = (f"{CONGESTED} ({test.function:>20} Network Test)" for test in alone)
            congested = [_tests(lines, empty, title)[1][0] for title in each]
        names = list(map(name_of, alone))
        if names != list(map(name_of, congested)):
            lines.refuse("the tests alone and those with congestors are not the same")
        _insist_on_factors(lines, names)
        yield from map(_sized, congested)


def _sized(test: Table) -> Table:
    """Return a test; TableError where it is none of GPCNeT's with its size."""
    (row,) = test.rows
    if not row.size:
        reason = f"is no test of GPCNeT in {test.facts['unit']} with its size, such as (8 B)"
        raise TableError(test.path, row.line, test.function, reason)
    return test


def _rows(lines: Lines) -> Iterator[list[str]]:
    """Yield the cells of each row of a table, to the rule below the last."""
    while _expect(lines, _RULE, "the line above or below a row") and (row := _match(lines, _ROW)):
        yield [cell.strip() for cell in row[1].split("|")]


def _next(lines: Lines, rows: Iterator[list[str]]) -> list[str]:
    """Return the cells of the next row, which must be there."""
    return next(rows, None) or lines.refuse_next("a row of the table", "expected a row", ParseError)


def _tests(lines: Lines, empty: Table, *titles: str) -> tuple[str, list[Table]]:
    """Return which of ``titles`` a table has, and its tests, each as ``empty`` with one row."""
    rows = _rows(lines)
    if (title := " ".join(_next(lines, rows))) not in titles:
        lines.refuse(f"is not the title {[titles[0]]}")
    if (heads := _next(lines, rows)) not in _HEADS:
        lines.refuse(f"is not the title {_HEADS[0]}")
    found = []
    for cells in rows:
        row = dict(zip(heads, cells, strict=False))
        name, unit, figures = row.pop("Name"), row.pop("Units", ""), list(row.values())
        whole = len(cells) == len(heads) and name and unit in (TIME, RATE)
        if not whole or not all(map(_NUMBER.fullmatch, figures)):
            lines.refuse("is no test, its numbers and a unit")
        values = {key: float(figure) for key, figure in row.items()}
        if min(values.values()) <= 0:
            lines.refuse("is of no time or rate above 0")
        mean, rated = values["Avg"], unit == RATE
        if not values.get("Min", mean) <= mean <= values.get("Max", mean):
            lines.refuse("expected min <= avg <= max")
        test = _TEST.fullmatch(name)
        known = test is not None and test[1] in (_RATES if rated else _FUNCTIONS)
        function, size = (test[1], int(test[2])) if test and known else (name, 0)
        time = size / (mean * MEBI) * 1e6 if rated else mean
        entry = (Row(lines.number, size, {"mean": mean}, time),)
        facts = {"unit": unit, "mean": mean, "percentile_99": values["99%"]}
        one = replace(empty, function=function, rows=entry, messages=int(rated), facts=facts)
        found.append(one)
    if not found:
        lines.refuse(f"the table {title!r} has no row")
    return title, found


def name_of(test: Table) -> str:
    """Return the name of a test as it is printed, with its size."""
    return f"{test.function} ({test.rows[0].size} B)"


def _insist_on_factors(lines: Lines, tests: list[str]) -> None:
    """Check the last table, which follows from the others but must be there, and complete."""
    rows = _rows(lines)
    for row in ([FACTORS], ["Name", "Congestion Impact Factor"], ["", "Avg", "99%"]):
        if _next(lines, rows) != row:
            lines.refuse(f"is not the title {row}")
    if (seen := [cells[0] for cells in rows]) != tests:
        lines.refuse(f"factors are of {seen}, and tests were {tests}")


class Gpcnet(Benchmark):
    """GPCNeT, which ``netproof measure gpcnet`` runs, and no check."""

    number = 7
    name = "gpcnet"
    label = "GPCNeT"
    only_read = (
        *(Function(name) for name in _FUNCTIONS),
        *(Function(name, rated=True) for name in _RATES),
    )
    heads = re.compile(r"(?P<program>Network(?:Load)? Tests v\d)")
    several_tables = True

    def read_next(self, lines: Lines, before: Sequence[str], **_: Any) -> Output:
        """Return a table of one size for each test, alone and beside congestors."""
        number = lines.number + 1
        first = _expect(lines, _FIRST, "'NetworkLoad Tests v…'")
        ranks, nodes = map(int, _expect(lines, _RANKS, "ranks and nodes").groups())
        tests = nodes
        if first[1]:
            tests = int(_expect(lines, _TESTS, "the nodes of the network tests")[1])
            _expect(lines, _NODES_OF_CONGESTORS, "the nodes of the congestion tests")
        while _match(lines, _LEGEND):
            pass
        empty = Table(lines.path, "", ranks * tests // nodes, (), number, direction=BOTH_WAYS)
        tables, fault = up_to_fault(lines, _tables(lines, empty, loaded=bool(first[1])))
        of_run = {"ranks": ranks, "nodes": nodes, "nodes_of_tests": tests}
        return Output(self, lines.path, tables, first[2], of_run, fault=fault)


BENCHMARK = Gpcnet()
