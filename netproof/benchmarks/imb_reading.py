"""Intel MPI Benchmarks (IMB-MPI1) 2018 to 2021: its standard output read into tables.

Bandwidth is computed from bytes and time, never taken from ``Mbytes/sec``. The number of messages
per call is that of the benchmark's own rate: 1 for PingPong and PingPing (the rate of one of its
two messages), 2 for Sendrecv, 4 for Exchange. The column serves as a check: a rate that does not
follow from bytes and time is an error. Its megabytes are 10⁶ bytes since IMB 2018, and 2²⁰ or 10⁶
before.
"""

from __future__ import annotations

import re

from netproof.benchmarks.fixed import Lines, numbers
from netproof.benchmarks.imb_tables import (
    COLLECTIVE,
    FUNCTIONS,
    LARGEST_ELEMENT_BYTES,
    MEGA,
    MESSAGE_RATE,
    POINT_TO_POINT,
    REDUCTIONS,
    SINGLE_TRANSFER,
    SMALLEST_TIMED_BYTES,
    FailedSize,
    ImbOutput,
    ImbRow,
    ImbTable,
)
from netproof.errors import ParseError
from netproof.measurement.units import MEBI

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
    entries: dict[int | None, list[ImbRow | FailedSize]] = {group: [] for group in members}
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
        rows = tuple(entry for entry in mine if isinstance(entry, ImbRow))
        failures = tuple(entry for entry in mine if isinstance(entry, FailedSize))
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
) -> ImbRow | FailedSize:
    """Return one row, or IMB's message in place of a size that failed; ``bare``: as its header."""
    line = lines.take("a row of the table")
    if _TRUNCATED.fullmatch(line):
        lines.refuse("IMB measured another size than it was asked for: shorten -msglen")
    if found := _FAILURE.fullmatch(line):
        return FailedSize(lines.number, _failed_size(lines, found, group), found[2])
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
    entries: list[ImbRow | FailedSize],
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
