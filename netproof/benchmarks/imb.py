"""Intel MPI Benchmarks (IMB-MPI1): functions and commands; output of 2018 to 2021 read into tables.

Bandwidth is computed from bytes and time, never taken from ``Mbytes/sec``. The number of messages
per call is that of the benchmark's own rate: 1 for PingPong and PingPing (the rate of one of its
two messages), 2 for Sendrecv, 4 for Exchange. The column serves as a check: a rate that does not
follow from bytes and time is an error. Its megabytes are 10⁶ bytes since IMB 2018, and 2²⁰ or 10⁶
before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from netproof.benchmarks.collectives import LEAST_CROSSING, between
from netproof.benchmarks.fixed import UNITS, Lines, numbers
from netproof.benchmarks.interface import (
    BOTH_DIRECTIONS,
    Function,
    MpiBenchmark,
    Output,
    Printed,
)
from netproof.benchmarks.message_sizes import ListedSizes
from netproof.errors import ParseError
from netproof.measurement.case import Case
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
    ranks: int
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


@dataclass(frozen=True)
class ImbOutput(Output):
    """The output of one run of IMB-MPI1.

    ``megabyte`` is the bytes in its ``Mbytes/sec``; ``processes`` those it was started with;
    ``longest`` the largest message in bytes that it was to measure, None with a file of lengths.
    ``preamble`` and ``epilogue``: lines that the MPI library or the launcher printed before and
    after.
    """

    benchmark: ClassVar[str] = "imb"
    path: str
    version: str
    megabyte: int
    processes: int
    longest: int | None
    tables: tuple[ImbTable, ...]
    preamble: tuple[str, ...] = ()
    epilogue: tuple[str, ...] = ()

    def table(self, function: str, ranks: int) -> ImbTable:
        """Return the one table of ``function`` at ``ranks``; ParseError unless there is one."""
        found = [t for t in self.tables if (t.function, t.ranks) == (function, ranks)]
        if len(found) != 1:
            there = ", ".join(f"{t.function} at {t.ranks}" for t in self.tables)
            raise ParseError(
                self.path,
                found[1].first_line if found else 0,
                "",
                f"holds {len(found)} tables of {function} at {ranks} ranks, not one ({there})",
            )
        return found[0]

    def printed(self) -> list[Printed]:
        """Return a curve for each table."""
        return [
            Printed(
                table.function, table.ranks, table.curve, groups=table.groups, group=table.group
            )
            for table in self.tables
        ]

    def document(self, faults: list[str]) -> dict[str, Any]:
        """Return plain values for ``json``, with a sentence in ``faults`` for each failed table."""
        tables = []
        for table in self.tables:
            try:
                bandwidth = table.curve().bandwidth_mb_s
            except ParseError as fault:
                faults.append(str(fault))
                bandwidth = None
            tables.append(
                {
                    "function": table.function,
                    "ranks": table.ranks,
                    "waiting": table.waiting,
                    "groups": table.groups,
                    "group": table.group,
                    "mode": table.mode,
                    "lines": [table.first_line, table.last_line],
                    "sizes_bytes": [row.size for row in table.rows],
                    "repetitions": [row.repetitions for row in table.rows],
                    "time_us": [row.time_us for row in table.rows],
                    "time_min_us": _column(row.t_min_us for row in table.rows),
                    "time_avg_us": _column(row.t_avg_us for row in table.rows),
                    "bandwidth_mb_s": bandwidth,
                    "messages_s": _column(row.messages_s for row in table.rows),
                    "defects": _column(row.defects for row in table.rows),
                    "failures": [
                        {"line": f.line, "size_bytes": f.size, "text": f.failure}
                        for f in table.failures
                    ],
                }
            )
        return {
            "file": self.path,
            "benchmark": "IMB-MPI1",
            "version": self.version,
            "printed_megabyte_bytes": self.megabyte,
            "processes": self.processes,
            "units": UNITS,
            "tables": tables,
            "preamble": self.preamble,
            "epilogue": self.epilogue,
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


_RULE = re.compile(r"#-{40,}")

_BANNER = re.compile(r"# {4}Intel ?\(R\) MPI Benchmarks (\S.*), MPI-1 part *")

_NAME = re.compile(r"^# {4}Intel ?\(R\) MPI Benchmarks ", re.MULTILINE)

_MACHINE = re.compile(
    r"# (?:Date|Machine|System|Release|Version|MPI Version|MPI Thread Environment) *:.*"
)

_DYNAMIC = re.compile(r"# New default behavior from Version 3\.2 on:")

_CALLED = re.compile(r"# Calling sequence was: *")

_REMARK = re.compile(r"# [a-z\"].*")

_COMMAND = re.compile(r"#( .*)?")

_USER_LENGTHS = re.compile(r"# Message lengths were user defined")

_LEAST = re.compile(r"# Minimum message length in bytes: {3}([0-9]{1,15})")

_MOST = re.compile(r"# Maximum message length in bytes: {3}([0-9]{1,15})")

_HASH = re.compile(r"# *")

_TYPES = re.compile(r"# MPI_(?:Datatype|Datatype for reductions|Op) *: {3}MPI_[A-Z0-9_]+ *")

_LIST = re.compile(r"# List of Benchmarks to run:")

_LISTED = re.compile(r"# (?:\(Multi-\))?([A-Za-z_]+) *")

_WINDOW = re.compile(
    r"Warning: (?:Uniband|Biband) window size will be changed in future\. "
    r"To set it use -window_size <int>\. Default is 64"
)

_TITLE = re.compile(r"# Benchmarking (Multi-)?([A-Za-z_]+) *")

_PROCESSES = re.compile(r"# #processes = ([0-9]{1,15}) *")

_MAPPED = re.compile(r"# #processes = ([0-9]{1,15}); rank order \(rowwise\): *")

_RANK_ROW = re.compile(r"# (?: +[0-9]{1,15})+ *")

_GROUPS = re.compile(
    r"# \( ([0-9]{1,15}) groups of ([0-9]{1,15}) processes each running simultaneous \) *"
)

_GROUP_ROW = re.compile(r"# Group +([0-9]{1,15}): ((?: +[0-9]{1,15})+) *")

_WAITING = re.compile(r"# \( ([0-9]{1,15}) additional process(?:es)? waiting in MPI_Barrier\) *")

_INVALID = re.compile(r"# !! Benchmark (\S+) invalid for ([0-9]{1,15}) processes !! *")

_CHECKED = re.compile(r"!!!! {2}ALL BENCHMARKS SUCCESSFUL !!!! ?")

_END = re.compile(r"# All processes entering MPI_Finalize")

_OWN = re.compile(
    rf"{_BANNER.pattern}|{_TITLE.pattern}|{_PROCESSES.pattern}|{_END.pattern}"
    rf"| *{SIZE_COLUMN}\b| *{COUNT_COLUMN}\b"
)
"""Lines that must not precede or follow IMB's output: a file has one output."""


def is_one(text: str) -> bool:
    """Check for IMB's name, which its output has."""
    return _NAME.search(text) is not None


def read(text: str, path: str, *, repeated: bool = False) -> ImbOutput:
    """Read the standard output of one run of IMB-MPI1.

    ``repeated``: a list of lengths may have asked for the same size several times in a row.

    Raise ParseError, with the line, for anything that IMB does not print, impossible numbers, and
    sizes that do not increase. Likewise without IMB's last line or an announced benchmark, and
    where a table stops before the longest message without a reason. Lines of the MPI library, the
    launcher or a shell before IMB's name or after its last line are stored.
    """
    lines = Lines(text, path)
    preamble = _read_foreign(lines)
    version = _read_banner(lines)
    megabytes = _Megabytes(version)
    longest, announced = _read_preamble(lines)
    tables: dict[tuple[str, int, int, int | None], ImbTable] = {}
    while not lines.match(_END):
        if lines.match(_CHECKED):
            lines.skip_blank()
            lines.expect(_END, "IMB's last line")
            break
        if found := lines.match(_INVALID):
            lines.refuse(f"IMB did not run {found[1]}: start it with ranks that it can use")
        for table in _read_table(lines, megabytes, longest, repeated=repeated):
            other = tables.setdefault(_key(table), table)
            if other is not table:
                lines.refuse(
                    f"a second table of {table.function} at {table.ranks} ranks, "
                    f"the first begins at line {other.first_line}"
                )
            if table.function not in announced:
                lines.refuse(f"{table.function} is not in the list of benchmarks to run")
        lines.skip_blank()
    found = list(tables.values())
    _check_all_there(lines, announced, found)
    epilogue = tuple(line for line in lines.rest(_OWN) if line.strip())
    processes = _read_processes(path, found)
    return ImbOutput(
        path,
        version,
        megabytes.candidates[0],
        processes,
        longest,
        tuple(found),
        preamble,
        epilogue,
    )


def _read_foreign(lines: Lines) -> tuple[str, ...]:
    """Return the lines before IMB's name; ParseError where they are part of an output."""
    preamble = tuple(line for line in lines.skip_to(_RULE, _BANNER) if line.strip())
    for line in preamble:
        if _OWN.match(line):
            lines.refuse(f"a part of another output stands before IMB's name: {line[:80]!r}")
    return preamble


def _key(table: ImbTable) -> tuple[str, int, int, int | None]:
    return table.function, table.ranks, table.groups, table.group


def _check_all_there(lines: Lines, announced: list[str], tables: list[ImbTable]) -> None:
    """Raise ParseError unless each announced function is there, up to all processes."""
    for name in announced:
        mine = [table for table in tables if table.function == name]
        if not mine:
            lines.refuse(f"announced and not there: {name}")
        # Pairs leave an odd process out, and after a failure IMB may stop before more ranks.
        if name in SINGLE_TRANSFER | MESSAGE_RATE or any(table.failures for table in mine):
            continue
        if mine[-1].waiting or mine[-1].groups > 1:
            lines.refuse(f"{name} with all processes at once is not there")


def _read_processes(path: str, tables: list[ImbTable]) -> int:
    """Return the processes that IMB was started with, on which all tables must agree."""
    processes = max(table.groups * table.ranks + table.waiting for table in tables)
    for table in tables:
        counted = table.groups * table.ranks + table.waiting
        # Since 2019 Uniband and Biband do not count an odd process among the waiting ones.
        forgotten = table.function in MESSAGE_RATE and processes % 2
        if counted != processes and not (forgotten and counted == processes - 1):
            raise ParseError(
                path,
                table.first_line,
                f"{table.function} at {table.ranks} ranks",
                f"{counted} processes, those that wait included, where other tables have "
                f"{processes}",
            )
    return processes


def _read_banner(lines: Lines) -> str:
    lines.skip_blank()
    lines.expect(_RULE, "the rule above IMB's name")
    version = lines.expect(_BANNER, "IMB's name and version, MPI-1 part")[1]
    if not VERSION.fullmatch(version):
        lines.refuse("no version of IMB that is known here, such as 2021.11 or 2019 Update 6")
    lines.expect(_RULE, "the rule below IMB's name")
    return version


def _read_preamble(lines: Lines) -> tuple[int | None, list[str]]:
    """Return the longest message in bytes, None with a file of lengths; functions to come."""
    while lines.match(_MACHINE):
        pass
    lines.skip_blank()
    if lines.match(_DYNAMIC):
        lines.skip_blank()
        while lines.match(_REMARK):
            pass
        lines.skip_blank()
    lines.expect(_CALLED, "the calling sequence")
    lines.skip_blank()
    lines.expect(_COMMAND, "the command line")
    while lines.match(_COMMAND):
        pass
    lines.skip_blank()
    longest = None
    if not lines.match(_USER_LENGTHS):
        lines.expect(_LEAST, "the minimum message length")
        longest = int(lines.expect(_MOST, "the maximum message length")[1])
    while lines.match(_TYPES) or lines.match(_HASH):
        pass
    lines.skip_blank()
    lines.expect(_LIST, "the list of benchmarks to run")
    lines.skip_blank()
    announced = []
    while found := lines.match(_LISTED):
        if found[1] not in FUNCTIONS:
            lines.refuse("no benchmark of IMB-MPI1 that is known here")
        announced.append(found[1])
    if not announced:
        lines.expect(_LISTED, "a benchmark's name")
    while lines.match(_WINDOW):
        pass
    lines.skip_blank()
    return longest, announced


def _read_table(
    lines: Lines, megabytes: _Megabytes, longest: int | None, *, repeated: bool
) -> list[ImbTable]:
    """Return one table, or with ``-multi 1`` one per group."""
    lines.expect(_RULE, "the rule above a table, or IMB's last line")
    title = lines.expect(_TITLE, "the name of a benchmark")
    first_line, function = lines.number, title[2]
    if function not in FUNCTIONS:
        lines.refuse("no benchmark of IMB-MPI1 that is known here")
    groups, ranks = _read_ranks(lines, multi=title[1] is not None)
    if function in SINGLE_TRANSFER and ranks != 2:
        lines.refuse(f"{function} runs between 2 ranks")
    waiting = lines.match(_WAITING)
    lines.expect(_RULE, "the rule below a table's title")
    columns, by_group, bare = _read_header(lines, function)
    members: list[int | None] = list(range(groups)) if by_group else [None]
    entries: dict[int | None, list[ImbRow]] = {group: [] for group in members}
    while _size_follows(lines, by_group):
        for group in members:
            entry = _read_entry(lines, function, columns, group, megabytes, bare=bare)
            entries[group].append(entry)
            doubling = longest is not None
            _check_order(lines, function, entries[group], doubling=doubling, repeated=repeated)
    tables = []
    for group, mine in entries.items():
        if not mine:
            lines.refuse(f"the table of {function} has no rows")
        rows = tuple(entry for entry in mine if not entry.failure)
        failures = tuple(entry for entry in mine if entry.failure)
        if longest is not None and not failures:
            _check_end(lines, function, rows[-1].size, longest)
        tables.append(
            ImbTable(
                path=lines.path,
                function=function,
                ranks=ranks,
                waiting=int(waiting[1]) if waiting else 0,
                groups=groups,
                group=group,
                rows=rows,
                failures=failures,
                first_line=first_line,
                last_line=mine[-1].line,
            )
        )
    return tables


def _read_ranks(lines: Lines, *, multi: bool) -> tuple[int, int]:
    """Return the groups that run at once, and the ranks of each."""
    if not multi:
        if found := lines.match(_MAPPED):
            while lines.match(_RANK_ROW) or lines.match(_HASH):
                pass
            lines.skip_blank()
        else:
            found = lines.expect(_PROCESSES, "the number of processes")
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
        lines.match(_HASH)
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


class _Megabytes:
    """Megabyte of the printed rates, narrowed down row by row."""

    def __init__(self, version: str) -> None:
        found = VERSION.fullmatch(version)
        assert found
        self.version = version
        self.candidates: tuple[int, ...] = (MEGA,) if int(found[1]) >= 2018 else (MEBI, MEGA)

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
                f"as IMB {self.version} prints them"
            )
        self.candidates = fitting


def _read_header(lines: Lines, function: str) -> tuple[tuple[str, ...], bool, bool]:
    """Return a table's columns without the group's, whether that one is there, and ``bare``.

    ``bare``: whether something removed the leading blanks.
    """
    line = lines.take("the header of a table")
    for columns in _layouts(function):
        for by_group in (False, True):
            whole = (_GROUP, *columns) if by_group else columns
            if line.strip(" ") == "".join(f"{name:>{_WIDTH}}" for name in whole).strip(" "):
                return columns, by_group, not line.startswith(" ")
    lines.refuse(f"is no header that IMB prints for {function}")


def _size_follows(lines: Lines, by_group: bool) -> bool:
    """Check that another size's row follows; with groups, take the empty line above the rows."""
    if by_group:
        lines.skip_blank()
        line = lines.peek()
        return line is not None and not line.startswith("#")
    line = lines.peek()
    return line is not None and bool(line.strip())


def _read_entry(
    lines: Lines,
    function: str,
    columns: tuple[str, ...],
    group: int | None,
    megabytes: _Megabytes,
    *,
    bare: bool,
) -> ImbRow:
    """Return one row, or IMB's message in place of a size that failed; ``bare``: as its header."""
    line = lines.take("a row of the table")
    if _TRUNCATED.fullmatch(line):
        lines.refuse("IMB measured another size than it was asked for: shorten -msglen")
    if found := _FAILURE.fullmatch(line):
        return ImbRow(lines.number, _failed_size(lines, found, group), 0, failure=found[2])
    row = _read_row(lines, line, columns, group, bare=bare)
    _check_times(lines, function, row)
    megabytes.check(lines, function, row)
    return row


def _failed_size(lines: Lines, found: re.Match[str], group: int | None) -> int:
    values = [int(token) for token in found[1].split()]
    if group is None and len(values) == 1:
        return values[0]
    if group is not None and len(values) == 2 and values[0] == group:
        return values[1]
    lines.refuse("a failure of no size or group that was expected here")


def _read_row(
    lines: Lines, line: str, columns: tuple[str, ...], group: int | None, *, bare: bool
) -> ImbRow:
    names = columns if group is None else (_GROUP, *columns)
    values = dict(zip(names, numbers(lines, line.split(), names), strict=True))
    printed = "".join(
        f"{value:{_WIDTH}.{0 if name in _WHOLE else 2}f}" for name, value in values.items()
    )
    # A row without leading blanks may have lost digits, unless its header lacks them too.
    if line.strip(" ") != printed.strip(" ") or not (bare or line.startswith(" ")):
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
        lines.refuse(f"{size} bytes after {before}: sizes must increase")
    if doubling and before and size != 2 * before:
        lines.refuse(f"{size} bytes after {before}: IMB's sizes double, a row is missing")


FIGURES = r"^ +[0-9]+ +[0-9]+(\.[0-9]+)?( |$)"
"""Beginning of a row of figures, for ``grep -E``: the run came at least that far."""


DEFAULT_WINDOW = 64

_WINDOW_ASKED = re.compile(r"^#.* -window_size ([0-9]{1,9})\b", re.MULTILINE)


def _to_next(nodes: Sequence[str]) -> int:
    return between(zip(nodes, [*nodes[1:], nodes[0]], strict=True))


def _to_other_half(nodes: Sequence[str]) -> int:
    half = len(nodes) // 2
    return between(zip(nodes[:half], nodes[half : 2 * half], strict=True))


CROSSING: Mapping[str, Callable[[Sequence[str]], int]] = {
    "PingPong": lambda nodes: 2 * _to_other_half(nodes),
    "PingPing": lambda nodes: 2 * _to_other_half(nodes),
    "Sendrecv": _to_next,
    "Exchange": lambda nodes: 2 * _to_next(nodes),
    "Uniband": _to_other_half,
    "Biband": lambda nodes: 2 * _to_other_half(nodes),
    **LEAST_CROSSING,
}
"""The least messages that cross between nodes in a call, from the node of each rank."""


def window(printed: str) -> int:
    """Return the messages that Uniband and Biband send for each one that they count."""
    asked = _WINDOW_ASKED.search(printed)
    return int(asked[1]) if asked else DEFAULT_WINDOW


def _single(name: str, *, default: bool = False, ping_pong: bool = False) -> Function:
    """Return a function between two ranks, whose rate is that of one message."""
    return Function(
        "imb", name, pair=True, rated=True, single=True, default=default, ping_pong=ping_pong
    )


def _collective(name: str, least_bytes: int = 1, *, default: bool = False) -> Function:
    return Function("imb", name, least_bytes=least_bytes, default=default, collective=name)


def _both_ways(
    name: str, *, pairs: bool = False, in_turn: float = 1.0, default: bool = False
) -> Function:
    """Return a function that counts both directions: Sendrecv two messages, Exchange four."""
    factor = BOTH_DIRECTIONS
    return Function(
        "imb",
        name,
        pairs=pairs,
        default=default,
        rated=True,
        link_factor=factor,
        in_turn=in_turn,
    )


class Imb(MpiBenchmark):
    """Functions of IMB-MPI1; link factors follow its User Guide's "Bandwidth calculation"."""

    number = 2
    name = "imb"
    label = "IMB"
    output_of = "IMB-MPI1"
    features: ClassVar[Mapping[str, str]] = {"imb": "Intel MPI Benchmarks (IMB-MPI1)"}
    figures = FIGURES
    pairs_function = "PingPong"
    sizes = ListedSizes
    several_pairs = ("-multi", "1")
    both_ways_function = "PingPing"
    stream_function = "Uniband"
    stream_window = DEFAULT_WINDOW
    arguments_meaning = "further arguments of IMB-MPI1, for instance its time limits"
    few_calls = ("-iter", "10")
    functions = (
        _single("PingPong", default=True, ping_pong=True),
        _single("PingPing"),
        _both_ways("Sendrecv", default=True),
        _both_ways("Exchange", in_turn=2.0),
        Function("imb", "Uniband", pairs=True, rated=True),
        _both_ways("Biband", pairs=True),
        _collective("Bcast", default=True),
        _collective("Allgather", default=True),
        _collective("Allgatherv"),
        _collective("Gather"),
        _collective("Gatherv"),
        _collective("Scatter"),
        _collective("Scatterv"),
        _collective("Alltoall", default=True),
        _collective("Alltoallv"),
        _collective("Reduce", 4),
        _collective("Reduce_scatter", 4, default=True),
        _collective("Reduce_scatter_block", 4),
        _collective("Allreduce", 4, default=True),
        Function("imb", "Barrier", least_bytes=None, default=True),
    )

    def program(self, function: str) -> str:
        """Return the one program that has all functions."""
        return "IMB-MPI1"

    def command(
        self,
        function: Function,
        ranks: int,
        sizes: Sequence[int],
        size_file: str,
        arguments: Sequence[str],
    ) -> list[str]:
        """Return the command; ``-npmin`` avoids measurements on fewer ranks first."""
        listed = [] if function.least_bytes is None else ["-msglen", size_file]
        return ["IMB-MPI1", "-npmin", str(ranks), *listed, *arguments, function.name]

    def read_launch(self, text: str, path: Path, case: Case) -> Curve:
        """Return the curve of the one table of the output."""
        output = read(text, str(path))
        if len(output.tables) != 1:
            found = ", ".join(f"{table.function} on {table.ranks}" for table in output.tables)
            raise ParseError(
                str(path), 0, "", f"one table was asked for, and there are: {found or 'none'}"
            )
        table = output.tables[0]
        if (table.function, table.ranks) != (case.function, case.ranks):
            raise ParseError(
                str(path),
                table.first_line,
                f"{table.function} on {table.ranks} ranks",
                f"{case.function} on {case.ranks} ranks was asked for",
            )
        return table.curve()

    def least_run(self) -> list[str]:
        """Return the command of one barrier on two ranks."""
        return self.start("Barrier", 2)

    def start(self, function: str, ranks: int) -> list[str]:
        """Return the command of one barrier on all ranks."""
        return ["IMB-MPI1", "-npmin", str(ranks), "-iter", "1", "Barrier"]

    def sent(
        self, case: Case, printed: str, said: str, nodes: Sequence[str]
    ) -> Mapping[int, int] | str:
        """Return each size's repetitions times the messages per call that cross between nodes."""
        rows = self.read(printed, "", bidirectional=False, repeated=True).tables[0].rows
        if case.function == "Barrier" or len(set(nodes)) == 1:
            return {}
        crossing = CROSSING[case.function](nodes)
        if case.function in MESSAGE_RATE:
            crossing *= window(printed)
        sent: Counter[int] = Counter()
        for row in rows:
            sent[row.size] += crossing * row.repetitions
        return sent

    def read_pairs(
        self, text: str, path: str, function: str, pairs: int
    ) -> tuple[list[Curve], int]:
        """Return the curves of ``-multi 1``'s tables, or of the one of a single pair.

        And the bytes that all pairs had to send between nodes.
        """
        tables = read(text, path).tables
        expected = [None] if pairs == 1 else list(range(pairs))
        if [table.group for table in tables] != expected or any(
            table.function != function for table in tables
        ):
            reason = f"{function} of {pairs} pairs was asked for, and is not there"
            raise ParseError(path, 0, "", reason)
        crossing = CROSSING[function](("one", "other"))
        if function in MESSAGE_RATE:
            crossing *= window(text)
        moved = sum(row.size * row.repetitions for table in tables for row in table.rows)
        return [table.curve() for table in tables], crossing * moved

    def read_repetitions(
        self, text: str, path: str, function: str, ranks: int, size: int
    ) -> tuple[float, ...]:
        """Return the time in µs of each row of one size, in the order of measurement.

        Times as ``ImbRow.time_us``. ParseError where the output has another function, other ranks
        or another size.
        """
        output = self.read(text, path, bidirectional=False, repeated=True)
        table = output.table(function, ranks)
        for failure in table.failures:
            raise ParseError(path, failure.line, failure.failure, f"{function} failed")
        for row in table.rows:
            if row.size != size or row.defects:
                reason = f"{size} bytes were asked for, without a defect"
                raise ParseError(path, row.line, f"{row.size} bytes", reason)
        return tuple(row.time_us for row in table.rows)

    def is_one(self, text: str) -> bool:
        """Check for IMB's name."""
        return is_one(text)

    def read(
        self, text: str, path: str, *, bidirectional: bool, repeated: bool = False
    ) -> ImbOutput:
        """Return the tables; each function has its own direction.

        ``repeated``: the same size may have been measured several times in a row.
        """
        return read(text, path, repeated=repeated)


BENCHMARK = Imb()
