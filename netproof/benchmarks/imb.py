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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from netproof.benchmarks.collectives import LEAST_CROSSING, between
from netproof.benchmarks.fixed import UNITS, Lines, TableError, printed_lines
from netproof.benchmarks.imb_tables import (
    COUNT_COLUMN,
    DEFECTS,
    FUNCTIONS,
    HASH,
    MESSAGE_RATE,
    RULE,
    SINGLE_TRANSFER,
    SIZE_COLUMN,
    VERSION,
    ImbTable,
    Megabytes,
    read_bare,
    read_table,
    time_us,
)
from netproof.benchmarks.interface import (
    BOTH_DIRECTIONS,
    GUESS,
    Function,
    MpiBenchmark,
    Output,
    Printed,
)
from netproof.benchmarks.message_sizes import ListedSizes
from netproof.errors import ParseError
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve


@dataclass(frozen=True)
class ImbOutput(Output):
    """The output of one run of IMB-MPI1.

    ``megabyte`` is the bytes in its ``Mbytes/sec``; ``processes`` those it was started with;
    ``longest`` the largest message in bytes that it was to measure, None with a file of lengths.
    ``preamble`` and ``epilogue``: lines that the MPI library or the launcher printed before and
    after. ``version``: None for a table without IMB's banner, ``ended``: IMB's last line is there.
    """

    benchmark: ClassVar[str] = "imb"
    path: str
    version: str | None
    megabyte: int
    processes: int | None
    longest: int | None
    tables: tuple[ImbTable, ...]
    ended: bool = True
    guess: str = ""
    preamble: tuple[str, ...] = ()
    epilogue: tuple[str, ...] = ()

    def goes_on_with(self, line: str) -> bool:
        """Check for a row of the size that follows the last."""
        last = self.tables[-1]
        following = str(max(2 * (*last.rows, *last.failures)[-1].size, 1))
        return last.function != "Barrier" and line.split()[:1] == [following]

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
                table.function,
                table.ranks,
                table.curve,
                groups=table.groups,
                group=table.group,
                remark=GUESS if self.guess else "",
            )
            for table in self.tables
        ]

    def document(self, faults: list[str]) -> dict[str, Any]:
        """Return plain values for ``json``, with a sentence in ``faults`` for each failed table."""
        return {
            "file": self.path,
            "benchmark": "IMB-MPI1",
            "version": self.version,
            "printed_megabyte_bytes": self.megabyte,
            "processes": self.processes,
            "units": UNITS,
            "tables": [table.document(faults) for table in self.tables],
            "preamble": self.preamble,
            "epilogue": self.epilogue,
        }


_BANNER = re.compile(r"# {4}Intel ?\(R\) MPI Benchmarks (\S.*), MPI-1 part *")

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

_TYPES = re.compile(r"# MPI_(?:Datatype|Datatype for reductions|Op) *: {3}MPI_[A-Z0-9_]+ *")

_LIST = re.compile(r"# List of Benchmarks to run:")

_LISTED = re.compile(r"# (?:\(Multi-\))?([A-Za-z_]+) *")

_WINDOW = re.compile(
    r"Warning: (?:Uniband|Biband) window size will be changed in future\. "
    r"To set it use -window_size <int>\. Default is 64"
)

_INVALID = re.compile(r"# !! Benchmark (\S+) invalid for ([0-9]{1,15}) processes !! *")

_CHECKED = re.compile(r"!!!! {2}ALL BENCHMARKS SUCCESSFUL !!!! ?")

_END = re.compile(r"# All processes entering MPI_Finalize")


def _read_run(lines: Lines, *, repeated: bool) -> ImbOutput:
    """Return the output from IMB's name to its last line."""
    version = _read_banner(lines)
    megabytes = Megabytes(version)
    longest, announced = _read_preamble(lines)
    tables: dict[tuple, ImbTable] = {}
    while not lines.match(_END):
        if lines.match(_CHECKED):
            lines.skip_blank()
            lines.expect(_END, "IMB's last line")
            break
        if found := lines.match(_INVALID):
            reason = f"IMB did not run {found[1]}: start it with ranks that it can use"
            lines.refuse(reason, TableError)
        for table in read_table(lines, megabytes, longest, repeated=repeated):
            other = tables.setdefault(
                (table.function, table.ranks, table.groups, table.group), table
            )
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
    processes = _read_processes(lines.path, found)
    unit = megabytes.candidates[0]
    return ImbOutput(lines.path, version, unit, processes, longest, tuple(found))


def _read_pasted(lines: Lines) -> ImbOutput:
    """Return the output that has IMB's banner no more: a table from its title or header on."""
    start = lines.number + 1
    tables, megabyte, titled = read_bare(lines)
    here, first = lines.number, tables[0]
    lines.skip_blank()
    ended = lines.match(_END) is not None
    if not ended:
        lines.go_to(here + 1)
    guess = (
        f"{lines.path}:{start}: no line names the function of this table of IMB; its columns are"
        f" those of {first.function}, which is a guess"
    )
    return ImbOutput(
        lines.path,
        None,
        megabyte,
        None if first.ranks is None else first.ranks * first.groups + first.waiting,
        None,
        tuple(tables),
        ended,
        "" if titled else guess,
    )


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
    banner = lines.match(_BANNER)
    if banner is None:
        lines.take("IMB's name and version")
        lines.refuse("expected IMB's name and version, MPI-1 part", TableError)
    version = banner[1]
    if not VERSION.fullmatch(version):
        lines.refuse("no version of IMB that is known here, such as 2021.11 or 2019 Update 6")
    lines.expect(RULE, "the rule below IMB's name")
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
    while lines.match(_TYPES) or lines.match(HASH):
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
    heads = re.compile(
        r"(?P<program># {4}Intel ?\(R\) MPI Benchmarks )"
        r"|(?P<table># Benchmarking )"
        rf"|(?P<columns># #processes = | *{SIZE_COLUMN} +{COUNT_COLUMN}\b| *{COUNT_COLUMN} +t_min)"
    )
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
        output = self.read(text, str(path))
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
        rows = self.read(printed, "", repeated=True).tables[0].rows
        if case.function == "Barrier" or len(set(nodes)) == 1:
            return {}
        crossing = CROSSING[case.function](nodes)
        if case.function in MESSAGE_RATE:
            crossing *= window(printed)
        sent: Counter[int] = Counter()
        for row in rows:
            sent[row.size] += crossing * int(row.values[COUNT_COLUMN])
        return sent

    def read_pairs(
        self, text: str, path: str, function: str, pairs: int
    ) -> tuple[list[Curve], int]:
        """Return the curves of ``-multi 1``'s tables, or of the one of a single pair.

        And the bytes that all pairs had to send between nodes.
        """
        tables = self.read(text, path).tables
        expected = [None] if pairs == 1 else list(range(pairs))
        if [table.group for table in tables] != expected or any(
            table.function != function for table in tables
        ):
            reason = f"{function} of {pairs} pairs was asked for, and is not there"
            raise ParseError(path, 0, "", reason)
        crossing = CROSSING[function](("one", "other"))
        if function in MESSAGE_RATE:
            crossing *= window(text)
        moved = sum(
            row.size * int(row.values[COUNT_COLUMN]) for table in tables for row in table.rows
        )
        return [table.curve() for table in tables], crossing * moved

    def read_repetitions(
        self, text: str, path: str, function: str, ranks: int, size: int
    ) -> tuple[float, ...]:
        """Return the time in µs of each row of one size, in the order of measurement.

        Times as ``time_us``. ParseError where the output has another function, other ranks
        or another size.
        """
        output = self.read(text, path, repeated=True)
        table = output.table(function, ranks)
        for failure in table.failures:
            raise ParseError(path, failure.line, failure.failure, f"{function} failed")
        for row in table.rows:
            if row.size != size or row.values.get(DEFECTS):
                reason = f"{size} bytes were asked for, without a defect"
                raise ParseError(path, row.line, f"{row.size} bytes", reason)
        return tuple(map(time_us, table.rows))

    def read_next(
        self,
        lines: Lines,
        before: Sequence[str],
        *,
        bidirectional: bool = False,
        repeated: bool = False,
    ) -> ImbOutput:
        """Return a run from its banner on, or a table that was pasted without.

        ``repeated``: a list of lengths may have asked for the same size several times in a row.
        """
        named = self.heads.match(lines.peek() or "")
        whole = named is None or named.lastgroup == "program"
        output = _read_run(lines, repeated=repeated) if whole else _read_pasted(lines)
        foreign = (line for line in before if not RULE.fullmatch(line))
        return replace(output, preamble=printed_lines(foreign))


BENCHMARK = Imb()
