"""IMB's tables: columns, rows and groups, read exactly, or by words where blanks are missing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from netproof.benchmarks.fixed import Lines, TableError, numbers
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


@dataclass(frozen=True)
class ImbRow:
    """One size of a table: bytes, µs, and the printed rate in the file's own megabytes per second.

    ``t_us`` in tables with one time column, ``t_min_us``, ``t_max_us`` and ``t_avg_us`` in the
    others, ``messages_s`` (messages per second, over all pairs) for Uniband and Biband; ``defects``
    where IMB was built to check its results. None where a table has no such column. ``failure``:
    IMB's message about a size that it could not measure.
    """

    line: int
    size: int
    repetitions: int
    t_us: float | None = None
    t_min_us: float | None = None
    t_max_us: float | None = None
    t_avg_us: float | None = None
    printed_bandwidth: float | None = None
    messages_s: float | None = None
    defects: float | None = None
    failure: str = ""

    @property
    def time_us(self) -> float:
        """Return the time per call in µs: of the slowest rank, or of one message of a rate."""
        if self.messages_s is not None:
            return 1e6 / self.messages_s
        time = self.t_us if self.t_us is not None else self.t_max_us
        assert time is not None
        return time


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
    rows: tuple[ImbRow, ...]
    failures: tuple[ImbRow, ...]
    first_line: int
    last_line: int

    @property
    def mode(self) -> str:
        """Return ``multi`` where several groups ran at once, else ``single``."""
        return "multi" if self.groups > 1 else "single"

    def curve(self) -> Curve:
        """Return times and bandwidths by size; ParseError for a failed size or a wrong result.

        Time is µs per call of the slowest rank (one way for PingPong), bandwidth MB/s (10⁶) from
        bytes and time; collectives and Barrier have no bandwidth. Tables that have them also give
        the fastest rank's time and the mean. For Uniband and Biband, µs per message is 1e6 over the
        message rate of all pairs together, and bandwidth is bytes times that rate.
        """
        for failure in self.failures:
            raise ParseError(
                self.path,
                failure.line,
                failure.failure,
                f"{self.function} at {self.ranks} ranks failed at {failure.size} bytes",
            )
        for row in self.rows:
            if row.defects:
                raise ParseError(
                    self.path,
                    row.line,
                    f"defects {row.defects}",
                    f"{self.function} at {self.ranks} ranks moved wrong data at {row.size} bytes",
                )
        bandwidth = None
        if self.function in POINT_TO_POINT or self.function in MESSAGE_RATE:
            messages = POINT_TO_POINT.get(self.function, 1)
            bandwidth = tuple(bandwidth_mb_s(messages * row.size, row.time_us) for row in self.rows)
        ranged = all(row.t_max_us is not None for row in self.rows)
        return Curve(
            sizes=tuple(row.size for row in self.rows),
            time_us=tuple(row.time_us for row in self.rows),
            bandwidth_mb_s=bandwidth,
            time_min_us=tuple(row.t_min_us for row in self.rows) if ranged else None,
            time_avg_us=tuple(row.t_avg_us for row in self.rows) if ranged else None,
        )

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
            "mode": self.mode,
            "lines": [self.first_line, self.last_line],
            "sizes_bytes": [row.size for row in self.rows],
            "repetitions": [row.repetitions for row in self.rows],
            "time_us": [row.time_us for row in self.rows],
            "time_min_us": _column(row.t_min_us for row in self.rows),
            "time_avg_us": _column(row.t_avg_us for row in self.rows),
            "bandwidth_mb_s": bandwidth,
            "messages_s": _column(row.messages_s for row in self.rows),
            "defects": _column(row.defects for row in self.rows),
            "failures": [
                {"line": f.line, "size_bytes": f.size, "text": f.failure} for f in self.failures
            ],
        }


def _column(values: Iterable[float | None]) -> list[float | None] | None:
    """Return the values, or None where the table has no such column."""
    column = list(values)
    return column if any(value is not None for value in column) else None


SIZE_COLUMN, COUNT_COLUMN = "#bytes", "#repetitions"

RATE_COLUMN, _MESSAGES = "Mbytes/sec", "Msg/sec"

_TIME, _DEFECTS, _GROUP = "t[usec]", "defects", "Group"

_RANGE = ("t_min[usec]", "t_max[usec]", "t_avg[usec]")

_WHOLE = frozenset({SIZE_COLUMN, COUNT_COLUMN, _MESSAGES, _GROUP})

_WIDTH = 13

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
    """Functions that have these columns, the group's apart; ``bare``: blanks were stripped."""

    functions: tuple[str, ...]
    columns: tuple[str, ...]
    by_group: bool
    bare: bool


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
    members: list[int | None] = list(range(place.groups)) if header.by_group else [None]
    entries: dict[int | None, list[ImbRow]] = {group: [] for group in members}
    while _size_follows(lines, header.by_group):
        for group in members:
            entry = _read_entry(lines, header, group)
            entries[group].append(entry)
            _check_order(lines, function, entries[group], doubling=doubling, repeated=repeated)
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


def _layouts(function: str) -> list[tuple[str, ...]]:
    """Return the headers that IMB prints for ``function``, with and without check of results."""
    if function == "Barrier":
        return [(COUNT_COLUMN, *_RANGE)]
    bare: list[tuple[str, ...]]
    if function in MESSAGE_RATE:
        bare = [(SIZE_COLUMN, COUNT_COLUMN, RATE_COLUMN, _MESSAGES)]
    elif function in COLLECTIVE:
        bare = [(SIZE_COLUMN, COUNT_COLUMN, *_RANGE)]
    else:
        bare = [(SIZE_COLUMN, COUNT_COLUMN, *_RANGE, RATE_COLUMN)]
        if function in SINGLE_TRANSFER:
            bare.append((SIZE_COLUMN, COUNT_COLUMN, _TIME, RATE_COLUMN))
    return bare + [(*columns, _DEFECTS) for columns in bare]


class Megabytes:
    """Megabyte of the printed rates, narrowed down row by row; ``version``: empty if unknown."""

    def __init__(self, version: str) -> None:
        found = VERSION.fullmatch(version)
        self.version = version
        newer = found is not None and int(found[1]) >= 2018
        self.candidates: tuple[int, ...] = (MEGA,) if newer else (MEBI, MEGA)

    def check(self, lines: Lines, table: str, row: ImbRow) -> None:
        """Raise ParseError unless the row's rate follows from its bytes and its time."""
        if row.printed_bandwidth is None:
            return
        if row.messages_s is not None:
            least = row.size * max(row.messages_s - 0.5, 0)
            most = row.size * (row.messages_s + 0.5)
        else:
            moved = POINT_TO_POINT[table] * row.size * 1e6
            least = moved / (row.time_us + 0.005)
            most = moved / (row.time_us - 0.005) if row.time_us > 0.005 else float("inf")
        # Two printed decimals, and a margin for the rounding of the bounds themselves.
        margin = 0.005 + 1e-9 * row.printed_bandwidth
        fitting = tuple(
            unit
            for unit in self.candidates
            if least / unit - margin <= row.printed_bandwidth <= most / unit + margin
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
        matching: dict[tuple[str, ...], list[str]] = {}
        for function in functions:
            for columns in _layouts(function):
                whole = (_GROUP, *columns) if by_group else columns
                if line.strip(" ") == "".join(f"{name:>{_WIDTH}}" for name in whole).strip(" "):
                    matching.setdefault(columns, []).append(function)
        for columns, there in matching.items():
            return _Header(tuple(there), columns, by_group, not line.startswith(" "))
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


def _read_entry(lines: Lines, header: _Header, group: int | None) -> ImbRow:
    """Return one row, or IMB's message in place of a size that failed."""
    line = lines.take("a row of the table")
    if _TRUNCATED.fullmatch(line):
        lines.refuse("IMB measured another size than it was asked for: shorten -msglen")
    if found := _FAILURE.fullmatch(line):
        return ImbRow(lines.number, _failed_size(lines, found, group), 0, failure=found[2])
    row = _read_row(lines, line, header, group)
    _check_times(lines, header.functions[0], row)
    return row


def _failed_size(lines: Lines, found: re.Match[str], group: int | None) -> int:
    values = [int(token) for token in found[1].split()]
    if group is None and len(values) == 1:
        return values[0]
    if group is not None and len(values) == 2 and values[0] == group:
        return values[1]
    lines.refuse("a failure of no size or group that was expected here")


def _read_row(lines: Lines, line: str, header: _Header, group: int | None) -> ImbRow:
    names = header.columns if group is None else (_GROUP, *header.columns)
    values = dict(zip(names, numbers(lines, line.split(), names), strict=True))
    printed = "".join(
        f"{value:{_WIDTH}.{0 if name in _WHOLE else 2}f}" for name, value in values.items()
    )
    # A row without leading blanks may have lost digits, unless its header lacks them too.
    exact = line.strip(" ") == printed.strip(" ") and line.startswith(" ")
    if not exact and not (header.bare and line.split() == printed.split()):
        lines.refuse(f"is no row of {_WIDTH} wide columns as IMB prints them")
    if group is not None and values[_GROUP] != group:
        lines.refuse(f"expected the row of group {group}")
    least, most, mean = (values.get(name) for name in _RANGE)
    return ImbRow(
        line=lines.number,
        size=int(values.get(SIZE_COLUMN, 0)),
        repetitions=int(values[COUNT_COLUMN]),
        t_us=values.get(_TIME),
        t_min_us=least,
        t_max_us=most,
        t_avg_us=mean,
        printed_bandwidth=values.get(RATE_COLUMN),
        messages_s=values.get(_MESSAGES),
        defects=values.get(_DEFECTS),
    )


def _check_times(lines: Lines, function: str, row: ImbRow) -> None:
    if not row.repetitions:
        lines.refuse("0 repetitions measure nothing")
    if row.messages_s == 0:
        lines.refuse("a rate of 0 messages a second")
    times = [t for t in (row.t_us, row.t_min_us, row.t_max_us, row.t_avg_us) if t is not None]
    may_be_nothing = function in COLLECTIVE and row.size < SMALLEST_TIMED_BYTES
    if 0 in times and not may_be_nothing:
        lines.refuse(f"a time of 0 for {function} at {row.size} bytes")
    if row.t_min_us is not None and row.t_max_us is not None and row.t_avg_us is not None:
        # The mean is a sum of floats: it may round up where its terms do not.
        slack = 0.01 + 1e-9 * row.t_max_us
        if not row.t_min_us <= row.t_avg_us + slack or not row.t_avg_us <= row.t_max_us + slack:
            lines.refuse("expected t_min <= t_avg <= t_max")
        if row.t_min_us > row.t_max_us:
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


def _check_order(
    lines: Lines,
    function: str,
    entries: list[ImbRow],
    *,
    doubling: bool,
    repeated: bool,
) -> None:
    """Raise ParseError unless the last of ``entries`` may follow; IMB's own sizes double.

    ``repeated``: the same size may occur several times in a row.
    """
    if len(entries) < 2:
        return
    before, size = (entry.size for entry in entries[-2:])
    if function == "Barrier":
        lines.refuse("a second row of Barrier")
    if size < before or (size == before and not repeated):
        double = ", and IMB's double: a digit or a row is missing" if doubling else ""
        lines.refuse(f"{size} bytes after {before}: sizes must increase{double}")
    if doubling and before and size != 2 * before:
        lines.refuse(f"{size} bytes after {before}: IMB's sizes double, a row is missing")
