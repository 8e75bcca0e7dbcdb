"""OSU Micro-Benchmarks (OMB) 3 to 7: output of one of its MPI programs read into a curve.

Each program prints one table. ``osu_latency`` prints one-way µs, from which bandwidth is computed;
``osu_bw`` and ``osu_bibw`` MB/s (10⁶), the latter of both directions together; ``osu_mbw_mr`` MB/s
and messages per second of all pairs together. The time of a message is its share: bytes over MB/s,
or 1e6 over the messages per second. Collectives print the ranks' mean, with ``-f`` also the fastest
and the slowest rank, whose time is the collective's; a curve without ``-f`` says that it is a mean.
Only ``osu_mbw_mr`` prints the number of ranks. The time of a collective that does not block is that
of its communication alone.

OMB prints no last line and no largest size. A table that stops at the end of a line is therefore
read as it is. Only what ``time`` prints, and counters of cards, may follow it: a launcher's message
about a killed program must not pass for an epilogue. In a run the requested sizes show whether it
is complete.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from netproof.benchmarks.collectives import LEAST_CROSSING
from netproof.benchmarks.fixed import UNITS, Lines, numbers
from netproof.benchmarks.interface import (
    BOTH_DIRECTIONS,
    Function,
    MpiBenchmark,
    Output,
    Printed,
)
from netproof.errors import ParseError
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve
from netproof.measurement.units import MEBI, bandwidth_mb_s

_COLLECTIVES = {
    "allreduce": "allreduce",
    "all-to-all personalized exchange": "alltoall",
    "all-to-all": "alltoall",
    "all-to-allv personalized exchange": "alltoallv",
    "all-to-allv": "alltoallv",
    "allgather": "allgather",
    "allgatherv": "allgatherv",
    "broadcast": "bcast",
    "gather": "gather",
    "gatherv": "gatherv",
    "reduce": "reduce",
    "reduce_scatter": "reduce_scatter",
    "scatter": "scatter",
    "scatterv": "scatterv",
}
_BLOCKING = {f"{title} latency": name for title, name in _COLLECTIVES.items()}
_NON_BLOCKING = {f"non-blocking {title}": f"i{name}" for title, name in _BLOCKING.items()}
_ONE_SIDED = {
    "_put latency": "put_latency",
    "_put bandwidth": "put_bw",
    "_put bi-directional bandwidth": "put_bibw",
    "_get latency": "get_latency",
    "_get bandwidth": "get_bw",
    "_accumulate latency": "acc_latency",
}
TITLES = {
    "latency": "latency",
    "bandwidth": "bw",
    "bi-directional bandwidth": "bibw",
    "multiple bandwidth / message rate": "mbw_mr",
    "multi latency": "multi_lat",
    "barrier latency": "barrier",
    **_BLOCKING,
    **_NON_BLOCKING,
    **_ONE_SIDED,
}
"""Functions by their titles in the output, in small letters."""

MEAN_OF_RANKS = "mean of the ranks"
"""Remark on curves of collectives without ``-f``."""

PARTS_OF_ALL = ("Allgather", "Alltoall")
"""Collectives in which each rank has a message of every rank in its memory."""
MOST_MEMORY = 512 * MEBI
"""Bytes per rank above which OMB leaves out sizes of these, unless ``-M`` says otherwise."""

ROUNDED_TO_ZERO = 0.005
"""Rate, in MB/s or messages per second, below which 0.00 is printed."""

FIGURES = r"^([0-9]+ +[0-9]+\.[0-9]+| +[0-9]+\.[0-9]+)( |$)"
"""Beginning of a row of figures, for ``grep -E``: the run came at least that far."""

_FIRST, _WIDTH, _COUNT_WIDTH, _LONE_WIDTH = 10, 18, 12, 17
"""Widths of the size, of a figure, of the iterations, and of Barrier's first figure."""
_SIZE, _ITERATIONS, _VALIDATION = "# Size", "Iterations", "Validation"
_RANGE = ("Min Latency(us)", "Max Latency(us)", _ITERATIONS)
_MEAN, _LATENCY, _RATE, _MESSAGES = "Avg Latency(us)", "Latency (us)", "MB/s", "Messages/s"
_BANDWIDTH = "Bandwidth (MB/s)"
_OVERALL, _OVERLAP = "Overall(us)", "Overlap(%)"
_OVERLAPPED = (_OVERALL, "Compute(us)", "Pure Comm.(us)", _OVERLAP)
_TIMES = (_RANGE[1], _MEAN, _LATENCY, "Pure Comm.(us)")
_PASSED, _FAILED = "Pass", "Fail"

_NAME = re.compile(r"^# OSU MPI(?:_\w+)?(?:-[A-Z]+(?: MANAGED)?)? ", re.MULTILINE)
_HEAD = re.compile(r"# OSU MPI(?:_(\w+))?(?:-([A-Z]+(?: MANAGED)?))? (\S.*) [Tt]est v(\S+)")
_VERSION = re.compile(r"[3-7](?:\.[0-9]{1,3}){1,3}(?:[-_a-z][\w.-]{0,20})?")
_TYPE = re.compile(r"# Datatype: (MPI_[A-Z0-9_]+)\.")
_PAIRS = re.compile(r"# \[ pairs: ([0-9]{1,9}) \] \[ window size: ([0-9]{1,9}) \]")
_BUFFERS = re.compile(r"# Send Buffer on (.+) and Receive Buffer on (.+)")
_ANY = re.compile(r"#.*")
_SAYS = re.compile(r"# (?:Overall = |Window creation: |Synchronization: ).*")
_EPILOGUE = re.compile(r"(?:real|user|sys) +[0-9]+m[0-9.]+s|\w+ (?:tx|rx) [0-9]+")
"""Lines of ``time`` and of a vendor's counters of cards, which say nothing of a failure."""
_WRONG = re.compile(r"DATA VALIDATION ERROR: .*")
_ROW = re.compile(r"(?:[0-9]| +[0-9.]+(?: |$)).*")
_OWN = re.compile(
    r"# OSU MPI|# Size\b|# (?:Avg )?Latency ?\(us\)|# Bandwidth|[0-9]+ +[0-9]+\.[0-9]"
)
"""Lines that must not precede OMB's output: a file has one output."""


@dataclass(frozen=True)
class OsuRow:
    """One size: bytes, and its columns by their names; ``valid``: result of OMB's check."""

    line: int
    size: int
    values: Mapping[str, float]
    valid: bool = True


@dataclass(frozen=True)
class OsuOutput(Output):
    """The output of one OMB program.

    ``ranks``: None where it does not print them; ``device``: memory of the messages, empty for the
    host's; ``datatype``: None of releases that do not print it. ``preamble``: lines that the MPI
    library or the launcher printed before.
    """

    benchmark: ClassVar[str] = "osu"
    path: str
    version: str
    function: str
    ranks: int | None
    device: str
    datatype: str | None
    rows: tuple[OsuRow, ...]
    first_line: int
    preamble: tuple[str, ...] = ()

    @property
    def full(self) -> bool:
        """Check whether it has the fastest and the slowest rank."""
        return _RANGE[1] in self.rows[0].values

    @property
    def remark(self) -> str:
        """Return what else distinguishes its curve from others of the function."""
        function = BENCHMARK.function(self.function)
        mean = not (function.pair or function.pairs)
        said = [MEAN_OF_RANKS] if mean and not self.full else []
        return ", ".join([*said, *([self.device] if self.device else [])])

    @property
    def at_least(self) -> tuple[int, ...]:
        """Return the sizes whose rate was printed as 0.00: their ``time_us`` is a lower limit."""
        return tuple(
            row.size
            for row in self.rows
            if 0 in (row.values.get(_MESSAGES), row.values.get(_BANDWIDTH))
        )

    def time_us(self, row: OsuRow) -> float:
        """Return µs per call, of the slowest rank where it is known, or per message of a rate."""
        values = row.values
        if _MESSAGES in values:
            return 1e6 / (values[_MESSAGES] or ROUNDED_TO_ZERO)
        if _BANDWIDTH in values:
            return row.size / (values[_BANDWIDTH] or ROUNDED_TO_ZERO)
        return next(values[name] for name in _TIMES if name in values)

    def curve(self) -> Curve:
        """Return times in µs, bandwidths in MB/s (10⁶); ParseError where the data arrived wrong."""
        for row in self.rows:
            if not row.valid:
                raise ParseError(
                    self.path,
                    row.line,
                    f"{_VALIDATION} {_FAILED}",
                    f"{self.function} moved wrong data at {row.size} bytes",
                )
        bandwidth = None
        if BENCHMARK.function(self.function).rated:
            bandwidth = tuple(bandwidth_mb_s(row.size, self.time_us(row)) for row in self.rows)
        least = mean = None
        if self.full:
            least = tuple(row.values[_RANGE[0]] for row in self.rows)
            mean = tuple(row.values[_MEAN] for row in self.rows)
        return Curve(
            sizes=tuple(row.size for row in self.rows),
            time_us=tuple(self.time_us(row) for row in self.rows),
            bandwidth_mb_s=bandwidth,
            time_min_us=least,
            time_avg_us=mean,
        )

    def printed(self) -> list[Printed]:
        """Return its one curve."""
        pair = BENCHMARK.function(self.function).pair
        ranks = 2 if pair else self.ranks
        return [
            Printed(self.function, ranks, self.curve, remark=self.remark, at_least=self.at_least)
        ]

    def document(self, faults: list[str]) -> dict[str, Any]:
        """Return plain values for ``json``, with a sentence in ``faults`` for wrong data."""
        bandwidth = None
        try:
            bandwidth = self.curve().bandwidth_mb_s
        except ParseError as fault:
            faults.append(str(fault))
        return {
            "file": self.path,
            "benchmark": "OSU Micro-Benchmarks",
            "version": self.version,
            "function": self.function,
            "ranks": 2 if BENCHMARK.function(self.function).pair else self.ranks,
            "device": self.device,
            "datatype": self.datatype,
            "units": UNITS,
            "lines": [self.first_line, self.rows[-1].line],
            "sizes_bytes": [row.size for row in self.rows],
            "time_us": [self.time_us(row) for row in self.rows],
            "time_at_least_bytes": self.at_least,
            "time_min_us": [row.values[_RANGE[0]] for row in self.rows] if self.full else None,
            "time_avg_us": [row.values[_MEAN] for row in self.rows] if self.full else None,
            "bandwidth_mb_s": bandwidth,
            "remark": self.remark,
            "preamble": self.preamble,
        }


def read(text: str, path: str) -> OsuOutput:
    """Read the standard output of one OMB program.

    Raise ParseError, with the line, for an unknown test or header, a table without rows, sizes that
    do not double, contradictory columns, impossible figures, and foreign lines from the table on.
    Lines of the MPI library, the launcher or a shell before OMB's name are stored.
    """
    lines = Lines(text, path)
    preamble = tuple(line for line in lines.skip_to(_HEAD, _ANY) if line.strip())
    for line in preamble:
        if _OWN.match(line):
            lines.refuse(f"a part of another output stands before OMB's name: {line[:80]!r}")
    lines.skip_blank()
    head = lines.expect(_HEAD, "OMB's name, test and version")
    first_line = lines.number
    if not _VERSION.fullmatch(head[4]):
        lines.refuse(f"version {head[4]} is not one of OMB 3 to 7")
    function = TITLES.get((f"_{head[1]} {head[3]}" if head[1] else head[3]).lower())
    if function is None:
        lines.refuse(
            "a test of OMB that is not read here; those are osu_"
            f"{', osu_'.join(dict.fromkeys(TITLES.values()))}"
        )
    while lines.match(_SAYS) or lines.skip_blank():
        pass
    ranks = _read_ranks(lines) if function == "mbw_mr" else None
    datatype = lines.match(_TYPE)
    # Collectives have no such line, nor has any test since 7.4.
    two_sides = function in ("latency", "bw", "bibw", "mbw_mr", "multi_lat")
    buffers = lines.match(_BUFFERS) if two_sides else None
    columns = _read_header(lines, function)
    # Releases 7.1 to 7.3 print it here, except for collectives.
    datatype = datatype or lines.match(_TYPE)
    rows = _read_rows(lines, function, columns)
    lines.skip_blank()
    if not rows[-1].valid and lines.match(_WRONG):
        lines.skip_blank()
    while lines.match(_EPILOGUE):
        lines.skip_blank()
    if lines.peek() is not None:
        lines.take("nothing")
        lines.refuse(
            "is no row that OMB prints: it has no last line, so nothing may follow its rows"
        )
    device = head[2] or ""
    if device and buffers:
        device += f", from {buffers[1]} to {buffers[2]}"
    return OsuOutput(
        path,
        head[4],
        function,
        ranks,
        device,
        datatype[1] if datatype else None,
        rows,
        first_line,
        preamble,
    )


def _read_ranks(lines: Lines) -> int:
    pairs = int(lines.expect(_PAIRS, "the pairs and the window of osu_mbw_mr")[1])
    if not pairs:
        lines.refuse("no pair measures nothing")
    return 2 * pairs


def _layouts(function: str) -> list[tuple[str, ...]]:
    """Return the columns, without the size's, that OMB prints for ``function``."""
    bare: list[tuple[str, ...]]
    if function in ("latency", "multi_lat", "put_latency", "get_latency", "acc_latency"):
        bare = [(_LATENCY,), (_MEAN,)]
    elif function in ("bw", "bibw", "put_bw", "put_bibw", "get_bw"):
        bare = [(_BANDWIDTH,)]
    elif function in _NON_BLOCKING.values():
        bare = [_OVERLAPPED]
    elif function == "mbw_mr":
        bare = [(_RATE, _MESSAGES)]
    else:
        bare = [(_MEAN,), (_MEAN, *_RANGE)]
    return bare + [(*columns, _VALIDATION) for columns in bare]


def _width(name: str) -> int:
    return _COUNT_WIDTH if name == _ITERATIONS else _WIDTH


def _read_header(lines: Lines, function: str) -> tuple[str, ...]:
    line = lines.take("the header of the table")
    for columns in _layouts(function):
        if function == "barrier":
            printed = f"# {columns[0]}"
        else:
            printed = f"{_SIZE:<{_FIRST}}{columns[0]:>{_width(columns[0])}}"
        printed += "".join(f"{name:>{_width(name)}}" for name in columns[1:])
        if line == printed:
            return columns
    lines.refuse(f"is no header that OMB prints for {function} and that is read here")


def _read_rows(lines: Lines, function: str, columns: tuple[str, ...]) -> tuple[OsuRow, ...]:
    rows: list[OsuRow] = []
    while (line := lines.peek()) is not None and _ROW.fullmatch(line):
        if rows and not rows[-1].valid:
            lines.take("a row")
            lines.refuse("a row after one whose data were wrong, at which OMB ends")
        row = _read_row(lines, lines.take("a row"), function, columns)
        if rows:
            _check_order(lines, function, rows[-1].size, row.size)
        rows.append(row)
    if not rows:
        lines.take("a row of the table")
        lines.refuse(f"is no row of {function}: the table has none")
    return tuple(rows)


def _read_row(lines: Lines, line: str, function: str, columns: tuple[str, ...]) -> OsuRow:
    tokens, valid, shown = line.split(), True, columns
    end = ""
    if columns[-1] == _VALIDATION:
        word = tokens.pop() if tokens else ""
        if word not in (_PASSED, _FAILED):
            lines.refuse(f"{_VALIDATION} is {word}, and not {_PASSED} or {_FAILED}")
        valid, shown, end = word == _PASSED, columns[:-1], f"{word:>{_WIDTH}}"
    names = shown if function == "barrier" else (_SIZE, *shown)
    found = dict(zip(names, numbers(lines, tokens, names), strict=True))
    size = int(found.pop(_SIZE, 0))
    printed = "" if function == "barrier" else f"{size:<{_FIRST}d}"
    for place, (name, value) in enumerate(found.items()):
        width = _LONE_WIDTH if function == "barrier" and not place else _width(name)
        printed += f"{value:{width}.{0 if name == _ITERATIONS else 2}f}"
    if line != printed + end:
        lines.refuse("is no row of columns as OMB prints them")
    row = OsuRow(lines.number, size, found, valid)
    _check_figures(lines, row)
    return row


def _check_figures(lines: Lines, row: OsuRow) -> None:
    """Raise ParseError for impossible or contradictory figures."""
    values = row.values
    for name, value in values.items():
        rounded = name in (_RATE, _OVERLAP) or (name in (_BANDWIDTH, _MESSAGES) and row.size)
        if value == 0 and not rounded:
            lines.refuse(f"{name} is 0, which nothing takes")
    if _MESSAGES in values:
        # Two printed decimals each, and a margin for the rounding of the bounds themselves.
        made = row.size * values[_MESSAGES] / 1e6
        margin = 0.005 + row.size * 0.005e-6 + 1e-9 * made
        if abs(values[_RATE] - made) > margin:
            lines.refuse(f"{_RATE} does not follow from bytes and {_MESSAGES}: {made:.2f} would")
    if _RANGE[1] in values:
        least, most, mean = values[_RANGE[0]], values[_RANGE[1]], values[_MEAN]
        # The mean is a sum of floats: it may round up where its terms do not.
        slack = 0.01 + 1e-9 * most
        if not least <= mean + slack or not mean <= most + slack or least > most:
            lines.refuse("expected min <= avg <= max")


def _check_order(lines: Lines, function: str, before: int, size: int) -> None:
    if function == "barrier":
        lines.refuse("a second row of barrier")
    if size <= before:
        lines.refuse(f"{size} bytes after {before}: sizes must increase")
    if size != max(2 * before, 1):
        lines.refuse(f"{size} bytes after {before}: OMB's sizes double, a row is missing")


def doubling(sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return sizes in bytes as the calls of ``-m LEAST:MOST`` that measure exactly them."""
    left, runs = sorted(set(sizes)), []
    while left:
        run = [left[0]]
        while 2 * run[-1] in left:
            run.append(2 * run[-1])
        runs.append(tuple(run))
        left = [size for size in left if size not in run]
    return tuple(runs)


def _function(name: str, collective: str = "", least_bytes: int | None = 1) -> Function:
    return Function("osu", name, default=True, collective=collective, least_bytes=least_bytes)


def _one_sided(name: str) -> Function:
    factor = BOTH_DIRECTIONS if name.endswith("bibw") else 1.0
    rated = name.endswith("bw")
    return Function("osu", name, pair=True, rated=rated, link_factor=factor, in_turn=1 / factor)


class Osu(MpiBenchmark):
    """MPI programs of OMB; a run needs 5.4 or newer, where every test takes sizes."""

    number = 3
    name = "osu"
    label = "OSU"
    output_of = "the OSU Micro-Benchmarks"
    features: ClassVar[Mapping[str, str]] = {"osu": "OSU Micro-Benchmarks (OMB)"}
    figures = FIGURES
    arguments_meaning = "further arguments of the OSU Micro-Benchmarks, for instance `-i 100 -x 10`"
    few_calls = ("-i", "10", "-x", "1")
    functions = (
        Function(
            "osu", "latency", pair=True, default=True, rated=True, single=True, ping_pong=True
        ),
        Function("osu", "bw", pair=True, default=True, rated=True),
        # One message's share of both directions' time carries half of it each way.
        Function(
            "osu",
            "bibw",
            pair=True,
            default=True,
            rated=True,
            link_factor=BOTH_DIRECTIONS,
            in_turn=1 / BOTH_DIRECTIONS,
        ),
        Function("osu", "mbw_mr", pairs=True, default=True, rated=True),
        _function("allreduce", "Allreduce", 4),
        _function("alltoall", "Alltoall"),
        _function("allgather", "Allgather"),
        _function("bcast", "Bcast"),
        _function("reduce_scatter", "Reduce_scatter", 4),
        _function("barrier", least_bytes=None),
    )
    only_read = (
        Function("osu", "multi_lat", pairs=True),
        *map(_one_sided, _ONE_SIDED.values()),
        *(Function("osu", name) for name in (*_BLOCKING.values(), *_NON_BLOCKING.values())),
    )

    def program(self, function: str) -> str:
        """Return the function's program."""
        return f"osu_{function}"

    def command(
        self,
        function: Function,
        ranks: int,
        sizes: Sequence[int],
        size_file: str,
        arguments: Sequence[str],
    ) -> list[str]:
        """Return the command: ``-f`` prints a collective's slowest rank, ``-M`` keeps all sizes."""
        full = [] if function.rated else ["-f"]
        asked = [] if function.least_bytes is None else ["-m", f"{sizes[0]}:{sizes[-1]}"]
        if function.collective in PARTS_OF_ALL and sizes[-1] * ranks > MOST_MEMORY:
            asked += ["-M", str(sizes[-1] * ranks)]
        return [self.program(function.name), *asked, *full, *arguments]

    def parts(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Split sizes into doubling runs with a least and a most."""
        return doubling(sizes)

    def read_launch(self, text: str, path: Path, case: Case) -> Curve:
        """Return the curve of the case, with the slowest rank of a collective."""
        output = read(text, str(path))
        (printed,) = output.printed()
        ranks = case.ranks if printed.ranks is None else printed.ranks
        if (output.function, ranks, output.remark) != (case.function, case.ranks, ""):
            remark = f", {output.remark}" if output.remark else ""
            raise ParseError(
                str(path),
                output.first_line,
                f"{output.function} on {ranks} ranks{remark}",
                f"{case.function} on {case.ranks} ranks was asked for",
            )
        for row in output.rows:
            if row.size in output.at_least:
                raise ParseError(
                    str(path),
                    row.line,
                    f"{row.size} bytes at 0.00",
                    f"the rate is below {ROUNDED_TO_ZERO}, so that its time is not known: "
                    "look for lost packets or a timer that small messages wait for",
                )
        return output.curve()

    def least_run(self) -> list[str]:
        """Return the command of one message there and back."""
        return [self.program("latency"), "-m", "1:1", "-i", "1", "-x", "0"]

    def start(self, function: str, ranks: int) -> list[str]:
        """Return the command of one barrier."""
        return [self.program("barrier"), "-i", "1", "-x", "0"]

    def sent(
        self, case: Case, printed: str, said: str, nodes: Sequence[str]
    ) -> Mapping[int, int] | str:
        """Return each size's repetitions from its row; only rows of collectives have them."""
        function = self.function(case.function)
        if function.least_bytes is None or len(set(nodes)) == 1:
            return {}
        rows = self.read(printed, "", bidirectional=False).rows
        if not function.collective or _ITERATIONS not in rows[0].values:
            return f"{self.program(case.function)} does not print how often it sends"
        crossing = LEAST_CROSSING[function.collective](nodes)
        return {row.size: crossing * int(row.values[_ITERATIONS]) for row in rows}

    def is_one(self, text: str) -> bool:
        """Check for OMB's name."""
        return _NAME.search(text) is not None

    def read(self, text: str, path: str, *, bidirectional: bool) -> OsuOutput:
        """Return its table; each test has its own direction."""
        return read(text, path)


BENCHMARK = Osu()
