"""Intel MPI Benchmarks (IMB): functions and commands of IMB-MPI1; output of 2018 to 2021 read.

Of -P2P, -NBC, -RMA and -EXT, which no run starts, the output is read too. Bandwidth is computed
from bytes and time, never taken from ``Mbytes/sec``. The number of messages per call is that of
the benchmark's own rate: 1 for PingPong and PingPing (the rate of one of its two messages), 2 for
Sendrecv, 4 for Exchange. The column serves as a check: a rate that does not follow from bytes and
time is an error. Its megabytes are 10⁶ bytes since IMB 2018, and 2²⁰ or 10⁶ before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from netproof.benchmarks.collectives import CROSSING
from netproof.benchmarks.fixed import (
    Header,
    Layout,
    Lines,
    Row,
    TableError,
    check_means,
    check_order,
    is_rate,
    row_in,
    take_header,
)
from netproof.benchmarks.interface import (
    BOTH_DIRECTIONS,
    Function,
    ListedSizes,
    MpiBenchmark,
    Nodes,
    Output,
    Table,
    Words,
    up_to_fault,
)
from netproof.errors import ParseError
from netproof.measurement.case import MEBI, Case, Curve

MEGA = 10**6
SMALLEST_TIMED_BYTES = 4
"""Size below which a collective may do nothing at all, and IMB prints a time of 0.00."""

SIZE_COLUMN, COUNT_COLUMN = "#bytes", "#repetitions"
RATE_COLUMN, MESSAGES = "Mbytes/sec", "Msg/sec"
TIME, DEFECTS, _GROUP = "t[usec]", "defects", "Group"
LEAST, MOST, MEAN = RANGE = ("t_min[usec]", "t_max[usec]", "t_avg[usec]")
PURE, OVERALL, COMPUTE, OVERLAP = ("t_pure[usec]", "t_ovrl[usec]", "t_CPU[usec]", "overlap[%]")
_ONE, _SEVERAL = (TIME, RATE_COLUMN), (*RANGE, RATE_COLUMN)
_WHOLE = frozenset({SIZE_COLUMN, COUNT_COLUMN, MESSAGES, _GROUP})

SINGLE_TRANSFER = frozenset(
    f"Ping{name}{source}"
    for name in ("Pong", "Ping")
    for source in ("", "SpecificSource", "AnySource")
)
POINT_TO_POINT = {**dict.fromkeys(SINGLE_TRANSFER, 1), "Sendrecv": 2, "Exchange": 4}
"""Messages per call that a rate counts."""

MESSAGE_RATE = frozenset({"Uniband", "Biband"})
_MEASURED = (
    *("Bcast", "Allgather", "Allgatherv", "Gather", "Gatherv", "Scatter", "Scatterv"),
    *("Alltoall", "Alltoallv", "Reduce", "Reduce_scatter", "Reduce_scatter_block", "Allreduce"),
)
COLLECTIVE = frozenset((*_MEASURED, "Reduce_local"))
_PLAIN = ("Bcast", "Allgather", "Alltoall", "Reduce_scatter", "Allreduce")
"""Collectives of a plain acceptance run."""

_PASSIVE = "Truly_passive_put"
_NON_BLOCKING = [
    f"I{name.lower()}" for name in (*_MEASURED, "Barrier") if name != "Reduce_scatter_block"
]
_ONE_SIDED = (
    *("Unidir_Get", "Unidir_Put", "Bidir_Get", "Bidir_Put"),
    *("Unidir_get", "Unidir_put", "Bidir_get", "Bidir_put", "Put_local", "Get_local"),
    *("Accumulate", "Get_accumulate", "Fetch_and_op", "Compare_and_swap"),
    *("Put_all_local", "Get_all_local", "One_put_all", "One_get_all"),
)
"""One-sided functions whose rate is that of one message."""

_OF_P2P = ("Unirandom", "Birandom", "Corandom", "SendRecv_Replace", "Stencil2D", "Stencil3D")
_OF_ALL = ("All_put_all", "All_get_all", "Exchange_put", "Exchange_get", "Window")
"""Functions of -RMA and -EXT with a range of times and no rate."""

FUNCTIONS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    **dict.fromkeys((*COLLECTIVE, "Barrier", *_OF_ALL), (RANGE,)),
    **dict.fromkeys((f"{name}_pure" for name in _NON_BLOCKING), (RANGE,)),
    **dict.fromkeys(_NON_BLOCKING, ((OVERALL, PURE, COMPUTE, OVERLAP),)),
    **dict.fromkeys(POINT_TO_POINT, (_SEVERAL,)),
    **dict.fromkeys(SINGLE_TRANSFER, (_SEVERAL, _ONE, (*_ONE, MESSAGES))),
    **dict.fromkeys(MESSAGE_RATE, ((RATE_COLUMN, MESSAGES),)),
    **dict.fromkeys(_OF_P2P, ((TIME, RATE_COLUMN, MESSAGES),)),
    **dict.fromkeys(_ONE_SIDED, (_SEVERAL, _ONE, RANGE)),
    _PASSIVE: ((PURE, OVERALL),),
}
"""Columns of figures that a function's table may have."""

_OF_PAIRS = SINGLE_TRANSFER | MESSAGE_RATE | {*_ONE_SIDED, _PASSIVE}
"""Functions that leave an odd process out."""

_ELEMENT_BYTES = (4, 1)
"""Sizes of MPI_FLOAT, and of MPI_BYTE and MPI_CHAR."""

_FACTS = {"messages_s": MESSAGES, "defects": DEFECTS, "overlap_percent": OVERLAP}
"""Columns that JSON has besides."""

GUESSED = ("PingPong", "Sendrecv", "Exchange", "Uniband", "Barrier")
"""Functions that columns and rates tell apart from others, where a table has no title."""

_FAILURE = re.compile(
    r" *([0-9]{1,15}(?: +[0-9]{1,15})?) ((?:out-of-mem\.|time-out\.|int-overflow\.?);.*)"
)

_TRUNCATED = re.compile(r"Attention, msg size [0-9]{1,15} truncated to [0-9]{1,15}")
_TAIL = re.compile(r"\[ [0-9., ]+ \]")
"""Percentiles of a size, with ``-show_tail``."""

_RULE = re.compile(r"#-{40,}")
_HASH = re.compile(r"# *")
_TITLE = re.compile(r"# Benchmarking (Multi-)?([A-Za-z_0-9]+)(?: \([0-9]+(?: x [0-9]+)+\))? *")
_PROCESSES = re.compile(r"# #processes = ([0-9]{1,15}) *")
_MAPPED = re.compile(r"# #processes = ([0-9]{1,15}); rank order \(rowwise\): *")
_RANK_ROW = re.compile(r"# (?: +[0-9]{1,15})+ *")
_GROUPS = re.compile(
    r"# \( ([0-9]{1,15}) groups of ([0-9]{1,15}) processes each running simultaneous \) *"
)

_GROUP_ROW = re.compile(r"# Group +([0-9]{1,15}): ((?: +[0-9]{1,15})+) *")
_WAITING = re.compile(r"# \( ([0-9]{1,15}) additional process(?:es)? waiting in MPI_Barrier\) *")
_MODE = re.compile(r"# {4}MODE: ((?:NON-)?AGGREGATE) *")
_BANNER = re.compile(
    r"# {4}Intel ?\(R\) MPI Benchmarks ((20[0-9]{2}|[2-4])(?:\.[0-9]{1,3})*"
    r"(?: Update [0-9]{1,2})?), (MPI-(?:1|2|NBC|RMA)|IMB-P2P) part *"
)
_PART_OF = {"MPI-1": "MPI1", "MPI-2": "EXT", "MPI-NBC": "NBC", "MPI-RMA": "RMA", "IMB-P2P": "P2P"}

_MACHINE = re.compile(r"#(?!bytes|.*#processes| Benchmarking )(?: .*)?")
"""A line on the machine, the command or the data's types."""

_USER_LENGTHS = "# Message lengths were user defined"
_LENGTH = re.compile(r"# (?:Min|Max)imum message length in bytes: {3}([0-9]{1,15})")
_RANGE = re.compile(r".* -msglog ([0-9]{1,2}):.*")
"""Range of sizes in IMB's command, as powers of two."""

_LIST = re.compile(r"# List of Benchmarks to run:")
_LISTED = re.compile(r"# (?:\(Multi-\))?([A-Za-z_0-9]+) *")
_WINDOW = re.compile(
    r"Warning: (?:Uniband|Biband) window size will be changed in future\. "
    r"To set it use -window_size <int>\. Default is 64"
    r"|Invalid benchmark name \S+"
)

_INVALID = re.compile(r"# !! Benchmark (\S+) (?:is )?invalid for ([0-9]{1,15}) processes !! *")
_CHECKED = re.compile(r"!!!! {2}ALL BENCHMARKS SUCCESSFUL !!!! ?")
_END = re.compile(r"# All processes entering MPI_Finalize")


_Lengths = tuple[int, int, int]
"""Bytes of messages: the least, the next where that is 0, and the longest."""


class _Reader:
    """Tables of one output of IMB; what its banner says holds for all of them.

    ``repeated``: the same size may occur several times in a row.
    """

    def __init__(self, lines: Lines, *, repeated: bool = False) -> None:
        self._lines, self._repeated = lines, repeated
        self._version: str | None = None
        self._part = "MPI1"
        self._lengths: _Lengths | None = None
        self._doubling = True
        self._megabytes: tuple[int, ...] = (MEBI, MEGA)
        """Bytes of a printed megabyte that fit all rates so far."""

    def run(self) -> Output:
        """Return the output from IMB's name to its last line."""
        lines = self._lines
        parts = f"{', '.join(_PART_OF)} part"
        what = f"IMB's name, a version such as 2021.11 or 2019 Update 6, and one of {parts}"
        banner = lines.expect(_BANNER, what, TableError)
        self._version, self._part = banner[1], _PART_OF[banner[3]]
        if int(banner[2]) >= 2018:
            self._megabytes = (MEGA,)
        lines.expect(_RULE, "the rule below IMB's name")
        self._lengths, announced = _read_preamble(lines)
        self._doubling = self._lengths is not None
        tables, fault = up_to_fault(lines, self._tables(announced))
        return replace(self._output(tables), fault=fault)

    def pasted(self, named: str | None) -> Output:
        """Return the output that has IMB's banner no more: a table from its title or header on.

        Sizes have to double. ``named``: what the user says that it is; without that and a title it
        is one of ``GUESSED`` whose rows would look as these do.
        """
        lines = self._lines
        title = lines.match(_TITLE)
        number = lines.number + (title is None)
        if title is not None:
            named = _known(lines, title[2])
        place = None
        if title is not None or _PROCESSES.fullmatch(lines.peek() or ""):
            place = self._place(named or "", number, multi=title is not None and bool(title[1]))
        lines.match(_RULE)
        every = self._megabytes

        def read(function: str) -> Output:
            self._megabytes = every
            header = _read_header(lines, function, may_lack=named is not None)
            ranks = 2 if function in SINGLE_TRANSFER else None
            empty = place or Table(lines.path, function, ranks, (), number)
            tables = self._rows(replace(empty, function=function), header)
            here = lines.number
            lines.skip_blank()
            ended = lines.match(_END) is not None
            if not ended:
                lines.go_to(here + 1)
            return replace(self._output(tables), ended=ended)

        return read(named) if named else BENCHMARK.guessed(lines, GUESSED, read)

    def _output(self, tables: Sequence[Table]) -> Output:
        last, path = tables[-1], self._lines.path
        processes = _read_processes(path, tables)
        facts = {"printed_megabyte_bytes": self._megabytes[0], "processes": processes}
        following = "" if "arrier" in last.function else str(max(2 * last.rows[-1].size, 1))
        own = (BENCHMARK, path, tuple(tables), self._version, facts, f"IMB-{self._part}")
        return Output(*own, next_word=following)

    def _tables(self, announced: Sequence[str]) -> Iterator[Table]:
        """Yield the tables of a run, each when it is known to be whole."""
        lines, tables, doubted = self._lines, list[Table](), list[Table]()
        seen: dict[tuple[object, ...], int] = {}
        while not lines.match(_END):
            if lines.match(_CHECKED):
                lines.skip_blank()
                lines.expect(_END, "IMB's last line")
                break
            if invalid := lines.match(_INVALID):
                reason = f"IMB did not run {invalid[1]}: start it with ranks that it can use"
                lines.refuse(reason, TableError)
            lines.expect(_RULE, "the rule above a table, or IMB's last line")
            yield from doubted
            title = lines.expect(_TITLE, "the name of a benchmark")
            function = _known(lines, title[2])
            empty = self._place(function, lines.number, multi=bool(title[1]))
            header = _read_header(lines, function)
            doubted = self._rows(empty, header)
            for one in doubted:
                if self._lengths is not None:
                    _check_ends(lines, function, one.rows, self._lengths)
                kind = (one.function, one.ranks, one.groups, one.group, one.remark)
                first = seen.setdefault(kind, one.first_line)
                if first != one.first_line:
                    reason = f"a second table of {one.function} at {one.ranks} ranks"
                    lines.refuse(f"{reason}, the first begins at line {first}")
                if one.function not in announced:
                    lines.refuse(f"{one.function} is not in the list of benchmarks to run")
            tables += doubted
            # With a list of lengths only the line that follows shows that a table is whole.
            if self._lengths is not None:
                yield from doubted
                doubted = []
            lines.skip_blank()
        _check_all_there(lines, announced, tables)
        yield from doubted

    def _place(self, function: str, first_line: int, *, multi: bool) -> Table:
        """Return a table without rows, with its groups, the ranks of each, and its mode."""
        lines, groups = self._lines, 1
        if multi:
            groups, ranks = _read_groups(lines)
        else:
            if found := lines.match(_MAPPED):
                while lines.match(_RANK_ROW) or lines.match(_HASH):
                    pass
                lines.skip_blank()
            else:
                found = lines.expect(_PROCESSES, "the number of processes")
            if not (ranks := int(found[1])):
                lines.refuse("a benchmark of 0 processes")
        if function in SINGLE_TRANSFER and ranks != 2 and self._part == "MPI1":
            lines.refuse(f"{function} runs between 2 ranks")
        waiting = int(found[1]) if (found := lines.match(_WAITING)) else 0
        if not lines.match(_RULE) and self._version is not None:
            lines.refuse_next("the rule", "expected the rule below a table's title", ParseError)
        remark = "" if self._part != "P2P" else "IMB-P2P"
        while (mode := lines.match(_MODE)) or lines.match(_HASH):
            remark = mode[1].lower() if mode else remark
        own = (lines.path, function, ranks, (), first_line)
        return Table(*own, groups=groups, waiting=waiting, remark=remark)

    def _rows(self, empty: Table, header: Header) -> list[Table]:
        """Return ``empty`` with the rows that follow, one per group if that leads."""
        lines, function = self._lines, empty.function
        columns = {name for name, _ in header.layout}
        members: Iterable[int | None] = range(empty.groups) if _GROUP in columns else [None]
        entries: dict[int | None, list[Row]] = {group: [] for group in members}
        while True:
            if _GROUP in columns:
                lines.skip_blank()
            line = lines.peek() or ""
            if not line.strip() or (_GROUP in columns and line.startswith("#")):
                break
            for group, mine in entries.items():
                entry = _read_entry(lines, function, header, group)
                if mine:
                    doubles = "IMB" if self._doubling and mine[-1].size else ""
                    check_order(lines, mine[-1].size, entry.size, doubles, again=self._repeated)
                mine.append(entry)
                self._check_rate(function, entry)
                lines.match(_TAIL)
        if not all(entries.values()):
            lines.refuse(f"the table of {function} has no rows")
        tables = []
        for group, rows in entries.items():
            measured = [row.values for row in rows if row.values]
            facts: dict[str, object] = {
                "waiting": empty.waiting,
                "groups": empty.groups,
                "group": group,
                "mode": "multi" if empty.groups > 1 else "single",
                "repetitions": [int(values[COUNT_COLUMN]) for values in measured],
                **{
                    key: [values[name] for values in measured] if name in columns else None
                    for key, name in _FACTS.items()
                },
                "failures": [
                    {"line": row.line, "size_bytes": row.size, "text": row.failure}
                    for row in rows
                    if not row.values
                ],
            }
            messages = POINT_TO_POINT.get(function, 1) if {RATE_COLUMN, MESSAGES} & columns else 0
            extremes = (LEAST, MEAN) if MEAN in columns else None
            of_group = replace(empty, rows=tuple(rows), group=group, facts=facts)
            tables.append(replace(of_group, messages=messages, extremes=extremes))
        return tables

    def _check_rate(self, function: str, row: Row) -> None:
        """Raise ParseError unless the row's rate follows from its bytes and its time."""
        rate = row.values.get(RATE_COLUMN)
        if rate is None:
            return
        every, moved = self._megabytes, POINT_TO_POINT.get(function, 1) * row.size
        counted = row.values.get(MESSAGES)

        def fits(unit: int) -> bool:
            if counted is None:
                return is_rate(rate, 0.005, moved / unit, row.time_us / 1e6, 0.005e-6)
            slack = 0.005 + row.size * 0.5 / unit + 1e-9 * rate
            return abs(rate - row.size * counted / unit) <= slack

        fitting = tuple(filter(fits, every))
        if not fitting:
            units = " or ".join({MEGA: "10^6", MEBI: "2^20"}[unit] for unit in every)
            self._lines.refuse(
                f"{RATE_COLUMN} does not follow from bytes and time in megabytes of {units} bytes, "
                f"as IMB {self._version or 'of any release'} prints them"
            )
        self._megabytes = fitting


def _check_all_there(lines: Lines, announced: Sequence[str], tables: Sequence[Table]) -> None:
    """Raise ParseError unless each announced function is there, up to all processes."""
    for name in announced:
        mine = [table for table in tables if table.function == name]
        if not mine:
            lines.refuse(f"announced and not there: {name}")
        # After a failure IMB may stop before more ranks.
        failed = any(row.failure for table in mine for row in table.rows)
        if name not in _OF_PAIRS and not failed and (mine[-1].waiting or mine[-1].groups > 1):
            lines.refuse(f"{name} with all processes at once is not there")


def _read_processes(path: str, tables: Sequence[Table]) -> int | None:
    """Return the processes that IMB was started with, on which all tables must agree."""
    counts = [one.ranks and one.groups * one.ranks + one.waiting for one in tables]
    processes = max((count for count in counts if count is not None), default=None)
    for table, counted in zip(tables, counts, strict=True):
        # Since 2019 Uniband and Biband do not count an odd process among the waiting ones.
        forgotten = table.function in MESSAGE_RATE and processes is not None and processes % 2
        if counted != processes and not (forgotten and counted == (processes or 0) - 1):
            found = f"{table.function} at {table.ranks} ranks"
            reason = f"{counted} processes, those that wait included, where other tables have"
            raise ParseError(path, table.first_line, found, f"{reason} {processes}")
    return processes


def _read_preamble(lines: Lines) -> tuple[_Lengths | None, list[str]]:
    """Return the lengths of messages, None with a file of them, and functions to come."""
    announced: list[str] = []
    preamble: list[str] = []
    while not _RULE.fullmatch(lines.peek() or "") and not _INVALID.fullmatch(lines.peek() or ""):
        if lines.skip_blank() or lines.match(_WINDOW):
            continue
        if not lines.match(_LIST):
            what = "a table" if announced else "the list of benchmarks to run"
            preamble.append(lines.expect(_MACHINE, what)[0])
            continue
        while lines.skip_blank() or lines.match(_HASH):
            pass
        while found := lines.match(_LISTED):
            announced.append(_known(lines, found[1], ParseError))
    if not announced:
        lines.expect(_LISTED, "the list of benchmarks to run")
    if _USER_LENGTHS in preamble:
        return None, announced
    lengths = [int(found[1]) for found in map(_LENGTH.fullmatch, preamble) if found]
    ranges = [2 ** int(found[1]) for found in map(_RANGE.fullmatch, preamble) if found]
    if len(lengths) < 2:
        reason = "the least and the largest message length are not there"
        lines.refuse_next("a table", reason, ParseError)
    return (lengths[0], ranges[-1] if ranges else 1, lengths[1]), announced


def _known(lines: Lines, function: str, fault: type[ParseError] = TableError) -> str:
    if function not in FUNCTIONS:
        lines.refuse("no benchmark of IMB that is known here", fault)
    return function


def _read_groups(lines: Lines) -> tuple[int, int]:
    """Return the groups that run at once, and the ranks of each."""
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


def _layouts(function: str) -> Iterator[Layout]:
    """Yield the layouts that IMB prints for ``function``, with and without check of results."""
    sized = "arrier" not in function
    size = (SIZE_COLUMN,) if sized else ()
    for group in ((), (_GROUP,)):
        for checked in ((), (DEFECTS,))[: 1 + sized]:
            for columns in FUNCTIONS[function]:
                whole = (*group, *size, COUNT_COLUMN, *columns, *checked)
                yield tuple((name, f">13.{0 if name in _WHOLE else 2}f") for name in whole)


def _read_header(lines: Lines, function: str, *, may_lack: bool = True) -> Header:
    header = take_header(lines, _layouts(function), may_lack=may_lack)
    return header or lines.refuse(f"is no header that IMB prints for {function}")


def _read_entry(lines: Lines, function: str, header: Header, group: int | None) -> Row:
    """Return one row, or IMB's message in place of a size that failed.

    Its time is that of the slowest rank, or of one message of a rate.
    """
    line = lines.take("a row of the table")
    if _TRUNCATED.fullmatch(line):
        lines.refuse("IMB measured another size than it was asked for: shorten -msglen")
    if found := _FAILURE.fullmatch(line):
        *groups, size = map(int, found[1].split())
        if groups != [one for one in (group,) if one is not None]:
            lines.refuse("a failure of no size or group that was expected here")
        return Row(lines.number, size, {}, failure=found[2])
    values, _ = row_in(lines, header, program="IMB")
    if values.pop(_GROUP, group) != group:
        lines.refuse(f"expected the row of group {group}")
    size = int(values.pop(SIZE_COLUMN, 0))
    if not values[COUNT_COLUMN]:
        lines.refuse("0 repetitions measure nothing")
    if values.get(MESSAGES) == 0:
        lines.refuse("a rate of 0 messages per second")
    collective = function not in POINT_TO_POINT and "arrier" not in function
    may_be_nothing = collective and size < SMALLEST_TIMED_BYTES
    if 0 in [values.get(name) for name in (TIME, PURE, *RANGE)] and not may_be_nothing:
        lines.refuse(f"a time of 0 for {function} at {size} bytes")
    check_means(lines, values, RANGE)
    if OVERLAP in values:
        # Each time has two decimals.
        longer = max(values[PURE], values[COMPUTE], 0.01)
        share = 100 * (values[PURE] + values[COMPUTE] - values[OVERALL]) / longer
        if abs(values[OVERLAP] - min(max(share, 0), 100)) > 0.006 + 1.5 / longer * 1.02:
            lines.refuse(f"{OVERLAP} does not follow from the times: {share:.2f}")
    wrong = values.get(DEFECTS)
    failure = f"defects {wrong}" if wrong else ""
    time_us = next((values[name] for name in (TIME, MOST, PURE) if name in values), 0.0)
    if MESSAGES in values and (function not in POINT_TO_POINT or TIME not in values):
        time_us = 1e6 / values[MESSAGES]
    return Row(lines.number, size, values, time_us, failure)


def _check_ends(lines: Lines, function: str, rows: Sequence[Row], lengths: _Lengths) -> None:
    """Raise ParseError unless the first size is the least message and the last the longest."""
    least, doubling_from, longest = lengths
    # One element is all that these move, whatever the longest message is.
    if "arrier" in function or function in ("Fetch_and_op", "Compare_and_swap"):
        return
    first, last = rows[0].size, rows[-1].size
    reduces = "educe" in function or "ccumulate" in function
    if first != least:
        lines.refuse(f"the table of {function} begins at {first} bytes, and not at {least}")
    second = rows[1].size if first == 0 and len(rows) > 1 else doubling_from
    # A reduction begins at one element.
    elements = _ELEMENT_BYTES if reduces else (1,)
    if second not in [max(doubling_from, one) for one in elements]:
        reason = f"{second} bytes follow 0, and not {doubling_from}: a row is missing"
        raise ParseError(lines.path, rows[1].line, "", reason)
    if any(not row.values for row in rows):
        return
    if last > longest:
        lines.refuse(f"{function} goes past the longest message of {longest} bytes")
    # IMB leaves out a message that is too short for an element of the reduction.
    if last < longest and not (reduces and longest < max(_ELEMENT_BYTES)):
        lines.skip_blank()
        reason = f"the table of {function} ends before {longest} bytes, the longest message"
        lines.refuse_next(f"the row of {max(2 * last, 1)} bytes", reason, ParseError)


DEFAULT_WINDOW = 64
_WINDOW_ASKED = re.compile(r"^#.* -window_size ([0-9]{1,9})\b", re.MULTILINE)

_both_ways = partial(Function, rated=True, link_factor=BOTH_DIRECTIONS)


class Imb(MpiBenchmark):
    """Functions of IMB-MPI1; link factors follow its User Guide's "Bandwidth calculation"."""

    number = 2
    name = "imb"
    label = "IMB"
    output_of = "IMB-MPI1"
    features: ClassVar[Mapping[str, str]] = {"imb": "Intel MPI Benchmarks (IMB-MPI1)"}
    probes: ClassVar[Mapping[str, str]] = {"IMB-MPI1": "imb"}
    figures = r"^ +[0-9]+ +[0-9]+(\.[0-9]+)?( |$)"
    programs_are = "IMB-MPI1"
    starting = "IMB-MPI1 -npmin {ranks} -iter 1 Barrier"
    heads = re.compile(
        r"(?P<program># {4}Intel ?\(R\) MPI Benchmarks )"
        r"|(?P<table># Benchmarking )"
        rf"|(?P<columns># #processes = | *{SIZE_COLUMN} +{COUNT_COLUMN}\b| *{COUNT_COLUMN} +t_min)"
    )
    several_tables = True
    pairs_function = "PingPong"
    sizes = ListedSizes
    several_pairs = ("-multi", "1")
    both_ways_function = "PingPing"
    stream_function = "Uniband"
    stream_window = DEFAULT_WINDOW
    arguments_meaning = "further arguments of IMB-MPI1, for instance its time limits"
    few_calls = ("-iter", "10")
    functions = (
        Function("PingPong", pair=True, rated=True, single=True, default=True, ping_pong=True),
        Function("PingPing", pair=True, rated=True, single=True),
        _both_ways("Sendrecv", default=True),
        _both_ways("Exchange", in_turn=2.0),
        Function("Uniband", pairs=True, rated=True),
        _both_ways("Biband", pairs=True),
        *(
            Function(name, least_bytes=least, default=name in _PLAIN, collective=name)
            for name in _MEASURED
            for least in [4 if "educe" in name else 1]
        ),
        Function("Barrier", least_bytes=None, default=True),
    )

    def readable(self) -> Collection[str]:
        """Return the functions of all its programs."""
        return FUNCTIONS

    def command(
        self, function: Function, ranks: int, sizes: Sequence[int], size_file: str, arguments: Words
    ) -> list[str]:
        """Return the command; ``-npmin`` avoids measurements on fewer ranks first."""
        listed = [] if function.least_bytes is None else ["-msglen", size_file]
        return ["IMB-MPI1", "-npmin", str(ranks), *listed, *arguments, function.name]

    def sent(self, case: Case, printed: str, said: str, nodes: Nodes) -> Mapping[int, int] | str:
        """Return each size's repetitions times the messages per call that cross between nodes."""
        table = self.read(printed, "", repeated=True).tables[0]
        if case.function == "Barrier" or len(set(nodes)) == 1:
            return {}
        return self._moved(case.function, printed, [table], nodes)

    def _moved(
        self, function: str, printed: str, tables: Sequence[Table], nodes: Sequence[str]
    ) -> Counter[int]:
        """Return the messages of each size that must cross between nodes, those of each rank."""
        crossing = CROSSING[function](nodes)
        if function in MESSAGE_RATE:
            asked = _WINDOW_ASKED.search(printed)
            crossing *= int(asked[1]) if asked else DEFAULT_WINDOW
        sent: Counter[int] = Counter()
        for row in (row for table in tables for row in table.rows):
            sent[row.size] += crossing * int(row.values[COUNT_COLUMN])
        return sent

    def read_pairs(
        self, text: str, path: str, function: str, pairs: int
    ) -> tuple[tuple[Curve, ...], int]:
        """Return the curves of ``-multi 1``'s tables, or of the one of a single pair.

        And the bytes that all pairs had to send between nodes.
        """
        tables = self.read(text, path).tables
        expected = [(function, group) for group in ([None] if pairs == 1 else range(pairs))]
        if [(table.function, table.group) for table in tables] != expected:
            reason = f"{function} of {pairs} pairs was asked for, and is not there"
            raise ParseError(path, 0, "", reason)
        moved = self._moved(function, text, tables, ("one", "other"))
        total = sum(size * count for size, count in moved.items())
        return tuple(table.curve() for table in tables), total

    def read_repetitions(
        self, text: str, path: str, function: str, ranks: int, size: int
    ) -> tuple[float, ...]:
        """Return the time in µs of each row of one size, in the order of measurement.

        ParseError where the output has another function, other ranks or another size.
        """
        rows = self.read(text, path, repeated=True).table(function, ranks).rows
        for row in rows:
            if row.size != size or row.failure:
                reason = f"{size} bytes were asked for, without a failure"
                raise ParseError(path, row.line, row.failure or f"{row.size} bytes", reason)
        return tuple(row.time_us for row in rows)

    def read_next(
        self,
        lines: Lines,
        before: Sequence[str],
        function: str | None = None,
        repeated: bool = False,
        **_: Any,
    ) -> Output:
        """Return a run from its banner on, or a table that was pasted without.

        ``repeated``: a list of lengths may have asked for the same size several times in a row.
        """
        named = self.heads.match(lines.peek() or "")
        whole = function is None if named is None else named.lastgroup == "program"
        reader = _Reader(lines, repeated=repeated)
        return reader.run() if whole else reader.pasted(function)


BENCHMARK = Imb()
