"""NetPIPE over TCP and over MPI: functions, sizes and names; output of 3.7.2 and of 5.x read.

NetPIPE 3.7.2 counts 2²⁰ bits to its Mbps and prints times with two decimals of a µs. Bandwidth is
computed from bytes and time; the Mbps only check the row. Likewise with NetPIPE 5.x, whose Gbit/s
(10⁹) have three decimals, too few for small messages. Its rates are those of its average, longest
and shortest time, the last taken as at least 1 µs. What it prints has rounded sizes from a
megabyte on: they are those of the run that visits the smaller ones, which are exact.

In bidirectional mode (``-2``, ``--bidir`` of 5.x) the bytes of the ``-o`` file count both
directions, so that a message is half of them, while printed lines count one; the rate counts both
directions in either. Here a size is always one message's and a bandwidth one direction's, with
``both_ways_mb_s`` in addition.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from netproof.benchmarks.fixed import (
    Lines,
    Row,
    TableError,
    check_order,
    half_a_unit,
    is_rate,
    numbers,
)
from netproof.benchmarks.interface import (
    BOTH_WAYS,
    ITS_OWN,
    ONE_WAY,
    Benchmark,
    Function,
    MessageSizes,
    Nodes,
    Output,
    Sizes,
    Table,
    Where,
)
from netproof.errors import NetproofError, ParseError, listed
from netproof.measurement.case import BITS_PER_BYTE, MEBI, Case, Curve, bandwidth_mb_s, us

MOST_SAMPLES = 8000
"""Sizes, less 3, after which NetPIPE 3.7.2 stops."""

SHORTEST_US_5 = 1.0
"""Least value in µs of NetPIPE 5.x's shortest time."""

MOST_PERTURBATIONS = 8
"""Most frequent steps between sizes that are tried as the perturbation."""

LEAST_DOUBLING = 8
"""Doubling sizes from which a file is another benchmark's and lacks none."""

LEAST_DOUBLING_5 = 3
"""Doubling sizes from which a file of 5.x was run with ``--fac2``."""

FILE_COLUMNS_3 = ("bytes", "Mbps", "seconds")
FILE_COLUMNS_5 = ("bytes", "average Gbps", "minimum Gbps", "maximum Gbps", "average usec")
COLUMNS = re.compile(r" *[0-9]+(?: +[-0-9.a-zA-Z]+){2,4} *")
PRINTED_ROW = re.compile(
    r" *([0-9]{1,15}): +([0-9]{1,15}) bytes +([0-9]{1,15}) times --> +(\S+) Mbps in +(\S+) usec"
)

_UNFINISHED = re.compile(r" *[0-9]{1,15}: +[0-9]{1,15} bytes +[0-9]{1,15} times --> ?")
_LOOP = re.compile(r"Now starting (?:the )?main loop")
_ROW_2 = re.compile(
    r" *([0-9]{1,15}): +([0-9]{1,15}) bytes +([0-9]{1,15}) +times --> +(\S+) Mbps in +(\S+) sec *"
)
"""A row of NetPIPE 2.4, in seconds, and of MPICH's, which begins at 0 bytes."""

LOOP_5 = re.compile(r"Start testing with [0-9]+ trials for each message size")
_UNITS = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_ROW_5 = re.compile(
    r" *([0-9]{1,15}): +([0-9]{1,3}(?:\.[0-9]{3})?) +([KMG]?)B +[0-9]{1,10} times -->"
    r" +([0-9]{1,7}\.[0-9]{3}) +([KMGT]?)bps  in  +([0-9]{1,7}\.[0-9]{3}) +([num]?)secs *"
)

_END_5 = re.compile(
    r"Completed with +max bandwidth +([0-9]{1,7}\.[0-9]{3}) +([KMGT]?)bps +.* latency *"
)

HIGHEST_5 = (5, 10)
"""How many of its highest rates 5.x averages on its last line, without and with perturbation."""
_BOTH_WAYS = re.compile(
    r"Passing data in both directions simultaneously\."
    r"|Bidirectional mode using [0-9]+ pairs of processes\. *"
)


_Printed = tuple[float, float]
"""A printed number and its error."""


def _output(
    lines: Lines, release: str, rows: Sequence[Row], *, bidirectional: bool, ended: bool = False
) -> Output:
    """Return a run of ``release`` "3" or "5", whose rows have the one-way time of a message."""
    both_ways = [2 * bandwidth_mb_s(row.size, row.time_us) for row in rows]
    table = Table(
        *(lines.path, "netpipe", 2, tuple(rows), rows[0].line, 1),
        direction=BOTH_WAYS if bidirectional else ONE_WAY,
        facts={"bandwidth_both_ways_mb_s": both_ways if bidirectional else None},
    )
    own = (BENCHMARK, lines.path, (table,), release, {"bidirectional": bidirectional})
    return Output(*own, ended=ended, next_word=f"{len(rows)}:")


def sizes(lower: int, upper: int, perturbation: int) -> tuple[int, ...]:
    """Return the message sizes that NetPIPE measures for ``-l``, ``-u`` and ``-p``, in bytes.

    5.x calls these ``--start``, ``--end`` and ``--pert``. From ``lower`` on two equal steps follow
    each other, then the step doubles. Around every size whose step exceeds the perturbation plus
    one, the sizes that much smaller and larger are measured too, the last possibly past ``upper``.
    Sizes are those of one message, also with ``-2``. A run stops earlier at a time of 1 s, and TCP
    with ``-2`` at the sum of its socket buffers. Raise NetproofError where NetPIPE would refuse, or
    its sizes would not increase (for a perturbation near half of a step, as with ``-l 10 -p 3``).
    """
    if lower < 1 or upper < lower or perturbation < 0:
        raise NetproofError(
            f"NetPIPE has no sizes from {lower} to {upper} bytes with perturbation {perturbation}: "
            "give 1 <= lower <= upper and a perturbation of 0 or more"
        )
    visited: list[int] = []
    length, step = lower, max(lower // 2, 1)
    turn = 1 if lower > 1 else 0
    while length <= upper and len(visited) < MOST_SAMPLES - 3:
        if turn > 2 and turn % 2:
            step *= 2
        if 0 < perturbation < step - 1:
            visited += [length - perturbation, length, length + perturbation]
        else:
            visited.append(length)
        length += step
        turn += 1
    if any(after <= before for before, after in pairwise(visited)):
        raise NetproofError(
            f"from {lower} bytes with perturbation {perturbation} NetPIPE's sizes do not increase: "
            "start at a power of two, with perturbation 3 or 0"
        )
    return tuple(visited)


def _runs(there: Sequence[int], upper: int) -> Iterator[tuple[int, ...]]:
    """Yield the sizes up to ``upper`` of each run of NetPIPE that may have begun with ``there``."""
    steps = Counter(after - before for before, after in pairwise(there))
    for perturbation in (0, *(step for step, _ in steps.most_common(MOST_PERTURBATIONS))):
        for lower in dict.fromkeys((there[0], there[0] + perturbation)):
            with contextlib.suppress(NetproofError):
                yield sizes(lower, upper, perturbation)


def _missing_sizes(there: Sequence[int], least_doubling: int) -> list[int] | None:
    """Return the sizes between the first and the last that NetPIPE would have measured too.

    ``there``: in bytes, increasing. Start and perturbation are those of the run that lacks fewest,
    of all that could have visited these sizes. ``least_doubling`` or more sizes that double
    throughout are complete: curves of IMB are exported in the columns of 3.7.2, and 5.x doubles on
    request. None where no run visits them.
    """
    doubling = all(after == 2 * before for before, after in pairwise(there))
    if len(there) < 3 or (doubling and len(there) >= least_doubling):
        return []
    within = (
        {size for size in run if there[0] <= size <= there[-1]} for run in _runs(there, there[-1])
    )
    lacking = (sorted(run.difference(there)) for run in within if run.issuperset(there))
    return min(lacking, key=len, default=None)


def read_file(text: str, path: str, *, bidirectional: bool) -> Output:
    """Read the file that NetPIPE writes with ``-o``, of 3.7.2 (3 columns) or 5.x (5 columns).

    The file has neither header nor end: compare its sizes with those asked for (``sizes``) to know
    that it is complete. Raise ParseError, with the line, for anything but such rows, times that are
    not positive, and sizes that do not increase or lack one. Likewise for a rate that does not
    follow from bytes and time, and odd bytes in a file called bidirectional.
    """
    lines = Lines(text, path)
    newer = len((lines.peek() or "").split()) == len(FILE_COLUMNS_5)
    named, columns = ("5.x", FILE_COLUMNS_5) if newer else ("3.7.2", FILE_COLUMNS_3)
    form = "{:9.0f} {:9.3f} {:9.3f} {:9.3f} {:7.2f}" if newer else "{:8.0f} {:f} {:12.8f}"
    points: list[Row] = []
    while lines.peek() is not None:
        line = lines.take("a row")
        moved, rate, *extremes, time = figures = numbers(lines, line.split(), columns)
        if line != form.format(*figures):
            lines.refuse(f"is no row as NetPIPE {named} writes it: {', '.join(columns)}")
        if newer:
            _check_rate(lines, moved, (rate, 0.0005), (time, 0.005), newer=True)
            least, most = extremes
            # Rates of the longest and the shortest time, which may have been below its least value.
            of_shortest = moved * BITS_PER_BYTE / 1000 / SHORTEST_US_5
            if least > rate or (most < rate and abs(most - of_shortest) > 0.0005 * (1 + 1e-9)):
                lines.refuse("expected minimum <= average <= maximum of the rates")
        else:
            _check_rate(lines, int(moved), (rate, 0.5e-6), (us(time), 0.5e-2))
            time = round(us(time), 2)
        if moved != int(moved):
            lines.refuse("a message of no whole number of bytes")
        if bidirectional and moved % 2:
            lines.refuse("an odd number of bytes is no two messages: the run was one way")
        _append(lines, points, int(moved) // 2 if bidirectional else int(moved), time)
    there = [row.size for row in points]
    missing = _missing_sizes(there, LEAST_DOUBLING_5 if newer else LEAST_DOUBLING)
    if missing is None:
        lines.refuse(f"lines are missing: no run of NetPIPE {named} measures these sizes alone")
    if missing:
        # Every line is a row.
        line_number, after = next((at, one) for at, one in enumerate(there, 1) if one > missing[0])
        several = listed([*map(str, missing)])
        reason = f"lines are missing: NetPIPE {named} measures {several} bytes before {after}"
        # All are even in the file of a bidirectional run.
        if not bidirectional and all(size % 2 == 0 for size in there):
            reason += "; a run both ways counts twice: say --bidirectional if it was one"
        raise ParseError(path, line_number, "", reason)
    return _output(lines, named[0], points, bidirectional=bidirectional)


def _read_rows_5(lines: Lines, bidirectional: bool) -> list[Row]:
    """Return the rows that 5.x printed, to its last line, with the sizes that it rounds."""
    printed: list[re.Match[str]] = []
    first = lines.number + 1
    while found := lines.match(_ROW_5):
        if int(found[1]) != len(printed) + 1:
            lines.refuse(f"is no row {len(printed) + 1}: a row is missing")
        printed.append(found)
    lines.skip_blank()
    end = lines.match(_END_5)
    if end is None or not printed:
        reason = "is no row of a run that only measures, as NetPIPE 5.x prints it"
        lines.refuse_next("`Completed with max bandwidth`, its last line", reason)
    best, error = _printed_5(end, 1)
    rates = sorted((_printed_5(found, 4) for found in printed), reverse=True)
    means = [[sum(one) / most for one in zip(*rates[:most], strict=True)] for most in HIGHEST_5]
    if not any(abs(mean - best) <= (error + slack) * (1 + 1e-9) for mean, slack in means):
        lines.refuse("its mean is not that of the highest rates: a row is missing", TableError)
    visited = _visited(printed)
    if visited is None:
        raise TableError(
            lines.path,
            first,
            printed[0][0],
            "no run of NetPIPE 5.x visits these sizes; if none is below a megabyte, where they are"
            " rounded, give the file that it wrote, np.out unless -o names another",
        )
    rows = []
    for number, (found, size) in enumerate(zip(printed, visited, strict=True), first):
        (rate, rate_error), (seconds, error) = (_printed_5(found, at) for at in (4, 6))
        bits = BITS_PER_BYTE * size
        ways = [way for way in (1, 2) if is_rate(rate, rate_error, way * bits, seconds, error)]
        if (2 if bidirectional else 1) not in ways:
            reason = f"the rate does not follow from {size} bytes and time"
            if ways:
                reason = "is a run both ways: say --bidirectional" if ways == [2] else "is one way"
            raise ParseError(lines.path, number, found[0], reason)
        time_us = round(us(seconds), 6)
        rows.append(Row(number, size, {f"{found[7]}secs": float(found[6])}, time_us))
    return rows


def _printed_5(row: re.Match[str], at: int) -> _Printed:
    """Return a number of three decimals, whose unit is in the next group."""
    unit = _UNITS[row[at + 1]]
    return float(row[at]) * unit, 0.0005 * unit


def _visited(printed: Sequence[re.Match[str]]) -> tuple[int, ...] | None:
    """Return the sizes in bytes that a run visits and 5.x prints so; None where none does."""
    known = [round(_printed_5(found, 2)[0]) for found in printed if found[3] in ("", "K")]
    if not known or known[0] < 1:
        return None
    end = int(_printed_5(printed[-1], 2)[0] * 1.001) + 1
    doubling = tuple(known[0] * 2**power for power in range(len(printed)))
    shown = [f"{float(found[2]):.3f}{found[3]}" for found in printed]
    for run in (doubling, *_runs(known, end)):
        visited = run[: len(printed)]
        units = (next((one for one in "GMK" if size >= _UNITS[one]), "") for size in visited)
        named = zip(visited, units, strict=True)
        if [f"{size / _UNITS[unit]:.3f}{unit}" for size, unit in named] == shown:
            return visited
    return None


def _append(lines: Lines, points: list[Row], size: int, time_us: float, least: int = 1) -> None:
    if size < least:
        lines.refuse("a message of 0 bytes, which NetPIPE does not measure")
    if points:
        check_order(lines, points[-1].size, size, "")
    points.append(Row(lines.number, size, {"usec": time_us}, time_us))


def _check_rate(
    lines: Lines, moved: float, rate: _Printed, time_us: _Printed, *, newer: bool = False
) -> None:
    """Raise ParseError unless a rate, in Mbps of 2²⁰ bit/s, ``newer`` in Gbit/s, follows."""
    if time_us[0] <= 0:
        lines.refuse("a time of 0, which no message takes")
    amount = moved * BITS_PER_BYTE / 1000 if newer else us(moved * BITS_PER_BYTE / MEBI)
    if not is_rate(*rate, amount, *time_us):
        made, unit = amount / time_us[0], "Gbit/s" if newer else "Mbps of 2^20 bit/s"
        reason = f"does not follow from {moved:.0f} bytes and time: {made:.6g} {unit} would"
        pairs = "; that of several pairs of ranks at once is not read"
        lines.refuse(f"the rate {reason}{pairs if newer and rate[0] > made else ''}")


PROTOCOLS = ("tcp", "mpi")
PATHS = ("inter-node", "intra-node")
"""Between two nodes, and between two ranks of one node."""

DIRECTIONS = (ONE_WAY, BOTH_WAYS)

LEAST_TRIALS = 3
"""Trials per size of NetPIPE 3.7.2; 7 where it was built with FINAL (netpipe.h)."""


class PerturbedSizes(MessageSizes):
    """Settings by which ``perturbation`` bytes below and above each size are measured too."""

    perturbation: Annotated[int, Field(ge=0)] = Field(
        default=0, description="bytes below and above each size that are measured too (-p)"
    )

    @field_validator("perturbation")
    @classmethod
    def _is_measured(cls, value: int) -> int:
        try:
            sizes(1, MEBI, value)
        except NetproofError:
            raise ValueError(
                f"with {value} NetPIPE's sizes would not increase from 1 byte on; they do with 3"
            ) from None
        return value


def perturbation_of(settings: MessageSizes) -> int:
    """Return the bytes below and above each size that a site has measured too, 0 for none."""
    return settings.perturbation if isinstance(settings, PerturbedSizes) else 0


_function = partial(Function, pair=True, default=True, rated=True, single=True)


class Netpipe(Benchmark):
    """NetPIPE over TCP (NPtcp) and over MPI (NPmpi)."""

    number = 1
    name = "netpipe"
    label = "NetPIPE"
    features: ClassVar[Mapping[str, str]] = {
        "netpipe-tcp": "NetPIPE over TCP (NPtcp)",
        "netpipe-mpi": "NetPIPE over MPI (NPmpi)",
    }
    probes: ClassVar[Mapping[str, str]] = {"NPtcp": "netpipe-tcp", "NPmpi": "netpipe-mpi"}
    figures = r"^ *[0-9]+ +[0-9]+\.[0-9]+ "
    suffix = "np"
    programs_are = "NP{}"
    starting = "NP{function} -l 1 -u 8 -p 0 -n 1 -o /dev/null"
    over_tcp: ClassVar[Mapping[str, str]] = {"mpi": "tcp"}
    sizes = PerturbedSizes
    by_protocol = True
    heads = re.compile(rf"(?P<program>{_LOOP.pattern}$|{LOOP_5.pattern})")
    functions = (_function("tcp"), _function("mpi", ping_pong=True))

    def case(self, where: Where, protocol: str, path: str, direction: str = ONE_WAY) -> Case:
        """Return the case of a protocol on a path in a direction."""
        per_node = 1 if path == "inter-node" else 2
        return Case(*where, self.name, protocol, 2, per_node, path, direction)

    def cases(
        self, where: Where, rank_counts: Sequence[int], ranks_per_node: int, *, all_functions: bool
    ) -> list[Case]:
        """Return each protocol on each path in each direction; without ranks, inside a node."""
        paths = PATHS if rank_counts else ("intra-node",)
        every = itertools.product(PROTOCOLS, paths, DIRECTIONS)
        return [self.case(where, *variant) for variant in every]

    def job_what(self, ranks: int, *, default: bool) -> str:
        """Return the name of the one job for all."""
        return self.label

    def title(self, function: str) -> str:
        """Return ``NetPIPE TCP``."""
        return f"NetPIPE {function.upper()}"

    def words(self, case: Case) -> str:
        """Return the same as in sentences: all of it is on two ranks."""
        return self.what(case)

    def what(self, case: Case) -> str:
        """Return ``NetPIPE tcp inter-node oneway``."""
        return f"NetPIPE {case.function} {case.path} {case.direction}"

    def subject(self, case: Case) -> str:
        """Return ``tcp-inter-node-oneway``."""
        return f"{case.function}-{case.path}-{case.direction}"

    def asked(self, case: Case, most_bytes: int, settings: MessageSizes = ITS_OWN) -> Sizes:
        """Return NetPIPE's own sizes, and those that a perturbation adds."""
        return sizes(1, most_bytes, perturbation_of(settings))

    def read_launch(self, text: str, path: Path, case: Case) -> Curve:
        """Read the file that ``-o`` wrote."""
        bidirectional = case.direction == "bidirectional"
        return read_file(text, str(path), bidirectional=bidirectional).curve()

    def sent(self, case: Case, printed: str, said: str, nodes: Nodes) -> Mapping[int, int] | str:
        """Return each size's repetitions in every trial, there and back."""
        if len(set(nodes)) == 1:
            return {}
        rows = [PRINTED_ROW.fullmatch(line) for line in said.splitlines()]
        sent = {int(row[2]): 2 * LEAST_TRIALS * int(row[3]) for row in rows if row is not None}
        return sent or "NetPIPE printed no row that says how often it sent"

    def is_one(self, text: str) -> bool:
        """Check for columns of figures from the first line on."""
        first = next((line for line in text.split("\n") if line.strip()), "")
        return COLUMNS.fullmatch(first) is not None

    def read_next(
        self, lines: Lines, before: Sequence[str], *, bidirectional: bool = False, **_: Any
    ) -> Output:
        """Return the run of 3.7.2, 2.4 or 5.x whose main loop begins here."""
        for number, earlier in enumerate(before, lines.number + 1 - len(before)):
            if _BOTH_WAYS.fullmatch(earlier) and not bidirectional:
                reason = "is a bidirectional run, read as one way"
                raise ParseError(lines.path, number, earlier, reason)
        if lines.match(LOOP_5):
            rows = _read_rows_5(lines, bidirectional)
            return _output(lines, "5", rows, bidirectional=bidirectional, ended=True)
        lines.expect(_LOOP, "NetPIPE's main loop")
        points: list[Row] = []
        release = "3"
        while (line := lines.peek()) is not None:
            if _UNFINISHED.fullmatch(line):
                lines.take("a row")
                lines.refuse("a size without its result: the run was cut short", TableError)
            older = _ROW_2.fullmatch(line)
            found = older or (PRINTED_ROW.fullmatch(line) if release == "3" else None)
            if not found:
                break
            lines.take("a row")
            number, size, repetitions = (int(found[at]) for at in (1, 2, 3))
            rate, time = numbers(lines, found.groups()[3:], ("Mbps", "sec" if older else "usec"))
            error = 0.005
            if older:
                release, time, error = "2", us(time), us(half_a_unit(found[5]))
                if number != len(points):
                    lines.refuse(f"is no row {len(points)}: a row is missing")
            elif line != (
                f"{len(points):3d}: {size:7d} bytes {repetitions:6d} times --> "
                f" {rate:8.2f} Mbps in {time:10.2f} usec"
            ):
                lines.refuse(f"is no row {len(points)} as NetPIPE 3.7.2 prints it")
            _check_rate(lines, size * (1 + bidirectional), (rate, 0.005), (time, error))
            _append(lines, points, size, time, least=0 if older else 1)
        if not points:
            lines.refuse_next("the first size", "is no row as NetPIPE 3.7.2 prints them")
        return _output(lines, release, points, bidirectional=bidirectional)

    def read(self, text: str, path: str, *, bidirectional: bool = False, **how: bool) -> Output:
        """Read what it printed, or what ``-o`` wrote."""
        if self.is_one(text):
            return read_file(text, path, bidirectional=bidirectional)
        return super().read(text, path, bidirectional=bidirectional)


BENCHMARK = Netpipe()
