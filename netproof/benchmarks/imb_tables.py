"""IMB's tables: columns, rows and groups, read exactly, or by words where blanks are missing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from netproof.benchmarks.fixed import (
    Layout,
    Lines,
    Row,
    TableError,
    check_order,
    header_in,
    row_in,
)
from netproof.errors import ParseError
from netproof.measurement.curve import Curve
from netproof.measurement.units import MEBI, bandwidth_mb_s

MEGA = 10**6

SMALLEST_TIMED_BYTES = 4
"""Size below which a collective may do nothing at all, and IMB prints a time of 0.00."""

POINT_TO_POINT = {
    "PingPong": 1,
    "PingPongSpecificSource": 1,
    "PingPongAnySource": 1,
    "PingPing": 1,
    "PingPingSpecificSource": 1,
    "PingPingAnySource": 1,
    "Sendrecv": 2,
    "Exchange": 4,
}
"""Messages per call that a rate counts."""

SINGLE_TRANSFER = frozenset(name for name in POINT_TO_POINT if name.startswith("PingP"))

MESSAGE_RATE = frozenset({"Uniband", "Biband"})

REDUCTIONS = frozenset(
    {"Reduce", "Reduce_local", "Reduce_scatter", "Reduce_scatter_block", "Allreduce"}
)

COLLECTIVE = REDUCTIONS | {
    "Bcast",
    "Allgather",
    "Allgatherv",
    "Gather",
    "Gatherv",
    "Scatter",
    "Scatterv",
    "Alltoall",
    "Alltoallv",
}

LARGEST_ELEMENT_BYTES = 16

FUNCTIONS = frozenset(POINT_TO_POINT) | MESSAGE_RATE | COLLECTIVE | {"Barrier"}

GUESSED = ("PingPong", "Sendrecv", "Exchange", "Uniband", "Barrier")
"""Functions that columns and rates tell apart from others, where a table has no title."""


def time_us(row: Row) -> float:
    """Return the time per call in µs: of the slowest rank, or of one message of a rate."""
    values = row.values
    if MESSAGES in values:
        return 1e6 / values[MESSAGES]
    return values[TIME] if TIME in values else values[MOST]


@dataclass(frozen=True)
class ImbTable:
    """One function at one number of ranks.

    ``ranks`` is IMB's #processes, with ``-multi`` those of one group; ``groups``: how many ran at
    once; ``group``: the rows' group, None where the rows cover all; ``waiting``: ranks that took no
    part. ``first_line`` is the title's, ``last_line`` the last row's.
    """

    path: str
    function: str
    ranks: int | None
    waiting: int
    groups: int
    group: int | None
    rows: tuple[Row, ...]
    failures: tuple[Row, ...]
    first_line: int
    last_line: int

    def curve(self) -> Curve:
        """Return times and bandwidths by size; ParseError for a failed size or a wrong result.

        Time is µs per call of the slowest rank (one way for PingPong), bandwidth MB/s (10⁶) from
        bytes and time; collectives and Barrier have no bandwidth. Tables that have them also give
        the fastest rank's time and the mean. For Uniband and Biband, µs per message is 1e6 over the
        message rate of all pairs together, and bandwidth is bytes times that rate.
        """
        for row in (*self.failures, *self.rows):
            there = f"{self.function} at {self.ranks} ranks"
            if row.failure:
                reason = f"{there} failed at {row.size} bytes"
                raise ParseError(self.path, row.line, row.failure, reason)
            if defects := row.values.get(DEFECTS):
                reason = f"{there} moved wrong data at {row.size} bytes"
                raise ParseError(self.path, row.line, f"defects {defects}", reason)
        bandwidth = None
        times = tuple(map(time_us, self.rows))
        if self.function in POINT_TO_POINT or self.function in MESSAGE_RATE:
            messages = POINT_TO_POINT.get(self.function, 1)
            bandwidth = tuple(
                bandwidth_mb_s(messages * row.size, time)
                for row, time in zip(self.rows, times, strict=True)
            )
        sizes = tuple(row.size for row in self.rows)
        return Curve(sizes, times, bandwidth, self._column(LEAST), self._column(MEAN))

    def document(self, faults: list[str]) -> dict[str, Any]:
        """Return plain values for ``json``, with a sentence in ``faults`` where it failed."""
        bandwidth = None
        try:
            bandwidth = self.curve().bandwidth_mb_s
        except ParseError as fault:
            faults.append(str(fault))
        return {
            "function": self.function,
            "ranks": self.ranks,
            "waiting": self.waiting,
            "groups": self.groups,
            "group": self.group,
            "mode": "multi" if self.groups > 1 else "single",
            "lines": [self.first_line, self.last_line],
            "sizes_bytes": [row.size for row in self.rows],
            "repetitions": [int(row.values[COUNT_COLUMN]) for row in self.rows],
            "time_us": [time_us(row) for row in self.rows],
            "time_min_us": self._column(LEAST),
            "time_avg_us": self._column(MEAN),
            "bandwidth_mb_s": bandwidth,
            "messages_s": self._column(MESSAGES),
            "defects": self._column(DEFECTS),
            "failures": [
                {"line": f.line, "size_bytes": f.size, "text": f.failure} for f in self.failures
            ],
        }

    def _column(self, name: str) -> tuple[float, ...] | None:
        """Return a column, None where the table has none of that name."""
        column = tuple(row.values[name] for row in self.rows if name in row.values)
        return column or None


SIZE_COLUMN, COUNT_COLUMN = "#bytes", "#repetitions"

RATE_COLUMN, MESSAGES = "Mbytes/sec", "Msg/sec"

TIME, DEFECTS, _GROUP = "t[usec]", "defects", "Group"

LEAST, MOST, MEAN = RANGE = ("t_min[usec]", "t_max[usec]", "t_avg[usec]")

_WHOLE = frozenset({SIZE_COLUMN, COUNT_COLUMN, MESSAGES, _GROUP})

VERSION = re.compile(r"(20[0-9]{2}|[2-4])(?:\.[0-9]{1,3})*(?: Update [0-9]{1,2})?")
"""IMB's version in its banner."""

_FAILURE = re.compile(
    r" *([0-9]{1,15}(?: +[0-9]{1,15})?) ((?:out-of-mem\.|time-out\.|int-overflow\.?);.*)"
)

_TRUNCATED = re.compile(r"Attention, msg size [0-9]{1,15} truncated to [0-9]{1,15}")


RULE = re.compile(r"#-{40,}")

HASH = re.compile(r"# *")

TITLE = re.compile(r"# Benchmarking (Multi-)?([A-Za-z_]+) *")

PROCESSES = re.compile(r"# #processes = ([0-9]{1,15}) *")

_MAPPED = re.compile(r"# #processes = ([0-9]{1,15}); rank order \(rowwise\): *")

_RANK_ROW = re.compile(r"# (?: +[0-9]{1,15})+ *")

_GROUPS = re.compile(
    r"# \( ([0-9]{1,15}) groups of ([0-9]{1,15}) processes each running simultaneous \) *"
)

_GROUP_ROW = re.compile(r"# Group +([0-9]{1,15}): ((?: +[0-9]{1,15})+) *")

_WAITING = re.compile(r"# \( ([0-9]{1,15}) additional process(?:es)? waiting in MPI_Barrier\) *")


@dataclass(frozen=True)
class _Place:
    """Ranks of each group, None where they are not printed; groups at once; ranks that wait."""

    ranks: int | None
    groups: int = 1
    waiting: int = 0


@dataclass(frozen=True)
class _Header:
    """Functions that have this header; ``exact``: the blanks of it are as IMB prints them."""

    functions: tuple[str, ...]
    layout: Layout
    exact: bool


def read_table(
    lines: Lines, megabytes: Megabytes, longest: int | None, *, repeated: bool
) -> list[ImbTable]:
    """Return one table, or with ``-multi 1`` one per group; ParseError for anything else.

    ``longest``: the largest message in bytes, None where IMB was given the lengths; ``repeated``:
    the same size may occur several times in a row.
    """
    lines.expect(RULE, "the rule above a table, or IMB's last line")
    title = lines.expect(TITLE, "the name of a benchmark")
    function = _known(lines, title)
    number = lines.number
    place = _read_place(lines, function, multi=title[1] is not None)
    lines.expect(RULE, "the rule below a table's title")
    header = _read_header(lines, (function,))
    tables = _read_rows(
        lines, number, header, place, megabytes, doubling=longest is not None, repeated=repeated
    )
    for table in tables:
        if longest is not None and not table.failures:
            _check_end(lines, function, table.rows[-1].size, longest)
    return tables


def read_bare(lines: Lines) -> tuple[list[ImbTable], int, bool]:
    """Return the tables of one title or header without IMB's banner.

    And the bytes of its megabyte, and whether it has a title. Sizes have to double. Without a
    title, the function is one of ``GUESSED`` whose rows would look as these do.
    """
    title = lines.match(TITLE)
    number = lines.number + (title is None)
    functions = GUESSED if title is None else (_known(lines, title),)
    place = None
    if title is not None or PROCESSES.fullmatch(lines.peek() or ""):
        place = _read_place(lines, functions[0] if title else "", multi=bool(title and title[1]))
    lines.match(RULE)
    header = _read_header(lines, functions)
    rows, fault = lines.number + 1, None
    for function in header.functions:
        lines.go_to(rows)
        megabytes = Megabytes("")
        try:
            tables = _read_rows(
                lines,
                number,
                replace(header, functions=(function,)),
                place or _Place(2 if function in SINGLE_TRANSFER else None),
                megabytes,
                doubling=True,
                repeated=False,
            )
            return tables, megabytes.candidates[0], title is not None
        except ParseError as error:
            fault = fault or error
    assert fault is not None
    raise fault


def _known(lines: Lines, title: re.Match[str]) -> str:
    if title[2] not in FUNCTIONS:
        lines.refuse("no benchmark of IMB-MPI1 that is known here", TableError)
    return title[2]


def _read_rows(
    lines: Lines,
    first_line: int,
    header: _Header,
    place: _Place,
    megabytes: Megabytes,
    *,
    doubling: bool,
    repeated: bool,
) -> list[ImbTable]:
    (function,) = header.functions
    by_group = header.layout[0][0] == _GROUP
    members: list[int | None] = list(range(place.groups)) if by_group else [None]
    entries: dict[int | None, list[Row]] = {group: [] for group in members}
    while _size_follows(lines, by_group):
        for group in members:
            entry = _read_entry(lines, header, group)
            if entries[group]:
                before = entries[group][-1].size
                if function == "Barrier":
                    lines.refuse("a second row of Barrier")
                doubles = "IMB" if doubling and before else ""
                check_order(lines, before, entry.size, doubles, again=repeated)
            entries[group].append(entry)
            if not entry.failure:
                megabytes.check(lines, function, entry)
    if not entries[members[0]]:
        lines.refuse(f"the table of {function} has no rows")
    return [
        ImbTable(
            path=lines.path,
            function=function,
            ranks=place.ranks,
            waiting=place.waiting,
            groups=place.groups,
            group=group,
            rows=tuple(entry for entry in mine if not entry.failure),
            failures=tuple(entry for entry in mine if entry.failure),
            first_line=first_line,
            last_line=mine[-1].line,
        )
        for group, mine in entries.items()
    ]


def _read_place(lines: Lines, function: str, *, multi: bool) -> _Place:
    groups, ranks = _read_ranks(lines, multi=multi)
    if function in SINGLE_TRANSFER and ranks != 2:
        lines.refuse(f"{function} runs between 2 ranks")
    waiting = lines.match(_WAITING)
    return _Place(ranks, groups, int(waiting[1]) if waiting else 0)


def _read_ranks(lines: Lines, *, multi: bool) -> tuple[int, int]:
    """Return the groups that run at once, and the ranks of each."""
    if not multi:
        if found := lines.match(_MAPPED):
            while lines.match(_RANK_ROW) or lines.match(HASH):
                pass
            lines.skip_blank()
        else:
            found = lines.expect(PROCESSES, "the number of processes")
        if not int(found[1]):
            lines.refuse("a benchmark of 0 processes")
        return 1, int(found[1])
    found = lines.expect(_GROUPS, "the number of groups and their processes")
    groups, ranks = int(found[1]), int(found[2])
    if groups < 2 or not ranks:
        lines.refuse("expected two groups or more, of processes")
    for group in range(groups):
        row = lines.expect(_GROUP_ROW, f"the ranks of group {group}")
        members = row[2].split()
        while more := lines.match(_RANK_ROW):
            members += more[0].split()[1:]
        if int(row[1]) != group or len(members) != ranks:
            lines.refuse(f"expected the {ranks} ranks of group {group}")
        lines.match(HASH)
        lines.skip_blank()
    return groups, ranks


def _layouts(function: str, *, by_group: bool) -> Iterator[Layout]:
    """Yield the layouts that IMB prints for ``function``, with and without check of results."""
    sized = (SIZE_COLUMN, COUNT_COLUMN)
    if function == "Barrier":
        several: list[tuple[str, ...]] = [(COUNT_COLUMN, *RANGE)]
    elif function in MESSAGE_RATE:
        several = [(*sized, RATE_COLUMN, MESSAGES)]
    elif function in COLLECTIVE:
        several = [(*sized, *RANGE)]
    elif function in SINGLE_TRANSFER:
        several = [(*sized, *RANGE, RATE_COLUMN), (*sized, TIME, RATE_COLUMN)]
    else:
        several = [(*sized, *RANGE, RATE_COLUMN)]
    if function != "Barrier":
        several += [(*columns, DEFECTS) for columns in several]
    for columns in several:
        whole = (_GROUP, *columns) if by_group else columns
        yield tuple((name, f">13.{0 if name in _WHOLE else 2}f") for name in whole)


class Megabytes:
    """Megabyte of the printed rates, narrowed down row by row; ``version``: empty if unknown."""

    def __init__(self, version: str) -> None:
        found = VERSION.fullmatch(version)
        self.version = version
        newer = found is not None and int(found[1]) >= 2018
        self.candidates: tuple[int, ...] = (MEGA,) if newer else (MEBI, MEGA)

    def check(self, lines: Lines, table: str, row: Row) -> None:
        """Raise ParseError unless the row's rate follows from its bytes and its time."""
        rate = row.values.get(RATE_COLUMN)
        if rate is None:
            return
        if MESSAGES in row.values:
            least = row.size * max(row.values[MESSAGES] - 0.5, 0)
            most = row.size * (row.values[MESSAGES] + 0.5)
        else:
            moved, time = POINT_TO_POINT[table] * row.size * 1e6, time_us(row)
            least = moved / (time + 0.005)
            most = moved / (time - 0.005) if time > 0.005 else float("inf")
        # Two printed decimals, and a margin for the rounding of the bounds themselves.
        margin = 0.005 + 1e-9 * rate
        fitting = tuple(
            unit
            for unit in self.candidates
            if least / unit - margin <= rate <= most / unit + margin
        )
        if not fitting:
            units = " or ".join({MEGA: "10^6", MEBI: "2^20"}[unit] for unit in self.candidates)
            lines.refuse(
                f"{RATE_COLUMN} does not follow from bytes and time in megabytes of {units} bytes, "
                f"as {f'IMB {self.version}'.strip()} prints them"
            )
        self.candidates = fitting


def _read_header(lines: Lines, functions: tuple[str, ...]) -> _Header:
    """Return the header of a table, which one or more of ``functions`` have to print."""
    line = lines.take("the header of a table")
    for by_group in (False, True):
        matching: dict[tuple[Layout, bool], list[str]] = {}
        for function in functions:
            found = header_in(line, _layouts(function, by_group=by_group))
            if found is not None:
                matching.setdefault(found, []).append(function)
        for (layout, exact), there in matching.items():
            return _Header(tuple(there), layout, exact)
    if len(functions) == 1:
        lines.refuse(f"is no header that IMB prints for {functions[0]}")
    lines.refuse(
        "the line above it is missing that names the function, such as `# Benchmarking Allreduce`",
        TableError,
    )


def _size_follows(lines: Lines, by_group: bool) -> bool:
    """Check that another size's row follows; with groups, take the empty line above the rows."""
    if by_group:
        lines.skip_blank()
        line = lines.peek()
        return line is not None and not line.startswith("#")
    line = lines.peek()
    return line is not None and bool(line.strip())


def _read_entry(lines: Lines, header: _Header, group: int | None) -> Row:
    """Return one row, or IMB's message in place of a size that failed."""
    line = lines.take("a row of the table")
    if _TRUNCATED.fullmatch(line):
        lines.refuse("IMB measured another size than it was asked for: shorten -msglen")
    if found := _FAILURE.fullmatch(line):
        *groups, size = map(int, found[1].split())
        if groups != [one for one in (group,) if one is not None]:
            lines.refuse("a failure of no size or group that was expected here")
        return Row(lines.number, size, {}, found[2])
    values = row_in(lines, header.layout, exact=header.exact, program="IMB")
    if values.pop(_GROUP, group) != group:
        lines.refuse(f"expected the row of group {group}")
    row = Row(lines.number, int(values.pop(SIZE_COLUMN, 0)), values)
    _check_times(lines, header.functions[0], row)
    return row


def _check_times(lines: Lines, function: str, row: Row) -> None:
    values = row.values
    if not values[COUNT_COLUMN]:
        lines.refuse("0 repetitions measure nothing")
    if values.get(MESSAGES) == 0:
        lines.refuse("a rate of 0 messages a second")
    may_be_nothing = function in COLLECTIVE and row.size < SMALLEST_TIMED_BYTES
    if 0 in [values.get(name) for name in (TIME, *RANGE)] and not may_be_nothing:
        lines.refuse(f"a time of 0 for {function} at {row.size} bytes")
    if MEAN in values:
        least, most, mean = (values[name] for name in RANGE)
        # The mean is a sum of floats: it may round up where its terms do not.
        slack = 0.01 + 1e-9 * most
        if not least <= mean + slack or not mean <= most + slack:
            lines.refuse("expected t_min <= t_avg <= t_max")
        if least > most:
            lines.refuse("expected t_min <= t_max")


def _check_end(lines: Lines, function: str, last: int, longest: int) -> None:
    """Raise ParseError unless the last size is the longest message."""
    if function == "Barrier":
        return
    if last > longest:
        lines.refuse(f"{function} goes past the longest message of {longest} bytes")
    # IMB leaves out a message that is too short for an element of the reduction.
    if last < longest and not (function in REDUCTIONS and longest < LARGEST_ELEMENT_BYTES):
        lines.refuse(f"the table of {function} ends before {longest} bytes, the longest message")
