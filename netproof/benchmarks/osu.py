"""OSU Micro-Benchmarks (OMB) 3 to 7: output of one of its MPI programs read into a curve.

Each program prints one table. ``osu_latency`` prints one-way µs, from which bandwidth is computed;
``osu_bw`` and ``osu_bibw`` MB/s (10⁶), the latter of both directions together; ``osu_mbw_mr`` MB/s
and messages per second of all pairs together. The time of a message is its share: bytes over MB/s,
or 1e6 over the messages per second. Collectives print the ranks' mean, with ``-f`` also the fastest
and the slowest rank, whose time is the collective's; a curve without ``-f`` says that it is a mean.
The time of a non-blocking one is that without computation beside it, ``Pure Comm.``.
Only ``osu_mbw_mr`` prints the number of ranks.

OMB prints no last line and no largest size. A table that stops at the end of a line is therefore
read as it is. What follows it must not be a launcher's message about a killed program: in a run
nothing may follow, and ``logs`` knows what may in a log. In a run the requested sizes show whether
it is complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from netproof.benchmarks.collectives import CROSSING
from netproof.benchmarks.fixed import (
    ROUNDED_TO_ZERO,
    Header,
    Layout,
    Lines,
    Row,
    TableError,
    check_means,
    check_order,
    row_in,
    take_header,
)
from netproof.benchmarks.interface import (
    BOTH_DIRECTIONS,
    Function,
    MpiBenchmark,
    Nodes,
    Output,
    Table,
    Words,
)
from netproof.measurement.case import MEBI, Case

SIZE, ITERATIONS, VALIDATION = "# Size", "Iterations", "Validation"
MEAN, LATENCY, LEAST, MOST = "Avg Latency(us)", "Latency (us)", "Min Latency(us)", "Max Latency(us)"
RATE, MESSAGES = "MB/s", "Messages/s"
BANDWIDTH, BOTH_BANDWIDTH = "Bandwidth (MB/s)", "Bi-Bandwidth (MB/s)"
OVERALL, COMPUTE, PURE, OVERLAP = "Overall(us)", "Compute(us)", "Pure Comm.(us)", "Overlap(%)"
LEAST_PURE, MOST_PURE = "Min Comm.(us)", "Max Comm.(us)"
TAILS = tuple(f"P{percent} Tail Lat(us)" for percent in (50, 90, 99))
RATE_TAILS = tuple(f"P{percent} Tail BW(MB/s)" for percent in (50, 90, 99))
"""Columns that ``-z`` of release 7.5 adds: shown by ``--parse``, and not judged."""
_STEPS = ("Coll. Init(us)", "MPI_Test(us)", "MPI_Wait(us)")

_PAIR = {
    "latency": "latency",
    "bandwidth": "bw",
    "bi-directional bandwidth": "bibw",
    "bidirectional bandwidth": "bibw",
    "multiple bandwidth / message rate": "mbw_mr",
    "multi latency": "multi_lat",
    "multi-threaded latency": "latency_mt",
    "multi-process latency": "latency_mp",
}
_ONE_SIDED = {
    **{"_put": "put", "_get": "get", "_accumulate": "acc", "_get_accumulate": "get_acc"},
    **{"_fetch_and_op": "fop", "_compare_and_swap": "cas"},
}
_COLLECTIVE = re.compile(
    r"(non-blocking )?(neighborhood )?(allreduce|allgatherv?|all-?to-?all[vw]?|barrier|broadcast"
    r"|gatherv?|reduce(?:_scatter(?:_block)?)?|scatterv?)(?: personalized exchange)?( persistent)?"
    r" latency"
)

MEAN_OF_RANKS = "mean of the ranks"
"""Remark on curves of collectives without ``-f``."""

PARTS_OF_ALL = ("Allgather", "Alltoall")
"""Collectives in which each rank has a message of every rank in its memory."""
MOST_MEMORY = 512 * MEBI
"""Bytes per rank above which OMB leaves out sizes of these, unless ``-M`` says otherwise."""

_HEAD = re.compile(
    r"# OSU (?:One Sided )?MPI(_[A-Za-z_]+)?(?:-([A-Z]+(?: MANAGED)?))? (\S.*?) [Tt]est v(\S+) *"
)
_VERSION = re.compile(r"[3-7](?:\.[0-9]{1,3}){1,3}(?:[-+~._]?[A-Za-z][A-Za-z0-9.+~-]{0,20})?")
_TYPE = re.compile(r"# Datatype: (?P<type>MPI_[A-Z0-9_]+)\.")
_PAIRS = re.compile(r"# \[ pairs: ([0-9]{1,9}) \] \[ window size: ([0-9]{1,9}) \]")
_BEFORE_HEADER = re.compile(
    rf"{_TYPE.pattern}"
    r"|# Window creation: (?P<window>MPI_[A-Za-z_]+)"
    r"|# Synchronization: (?P<synchronization>MPI_[A-Za-z_/]+)"
    r"|# (?:Send Buffer|Rank 0 Memory) on (?P<memory>.+) and (?:Receive Buffer|Rank 1 Memory) on"
    r" (?P<other_memory>.+)"
    r"|# Overall = Coll\. Init \+ Compute \+ MPI_Test \+ MPI_Wait"
    r"|# Number of forked processes in (?:sender|receiver): [0-9]{1,9}"
    r"|# Setting number of validation warmup iterations to [0-9]{1,9}\."
    r"|Dimensions size = [0-9 ]{1,99}"
    r"|# (?! *Size\b|OSU )[A-Z][a-z]+ [a-z]+ .*"
)
"""Facts of a test, and sentences that somebody added before the header."""
_WRONG = re.compile(r"DATA VALIDATION ERROR: .*")
_GUESSED = {
    (LATENCY,): "latency",
    (BANDWIDTH,): "bw",
    (BOTH_BANDWIDTH,): "bibw",
    (RATE, MESSAGES): "mbw_mr",
}
"""Functions by the columns that only they, or those like them, have."""

_LARGEST, _LARGEST_COLLECTIVE = 4 * MEBI, MEBI
"""Largest sizes in bytes that OMB measures by default."""


_ROW = re.compile(
    r"(?: *[0-9]+(?= +[-0-9ni])| +[0-9.]+)(?: +-?(?:[0-9][0-9.]*|nan|inf))*(?: +[A-Z][a-z]+)? *"
)
"""A row of figures, also one that something damaged."""


def _between_two(function: str) -> bool:
    """Check whether messages go between two ranks, or the two of each pair."""
    return "lat" in function or "bw" in function


def _layouts(function: str) -> Iterator[Layout]:
    """Yield the layouts of the tables of ``function``; release 3 has columns of 20 characters."""
    several: list[tuple[str, ...]] = [(MEAN,), (MEAN, LEAST, MOST, ITERATIONS), (LATENCY,)]
    if function == "mbw_mr":
        several = [(RATE, MESSAGES), (RATE,)]
    elif "bw" in function:
        several = [(BANDWIDTH,), (BOTH_BANDWIDTH,)]
    elif "lat" in function:
        several = [(LATENCY,), (MEAN,)]
    elif function.startswith("i"):
        steps = (OVERALL, COMPUTE, *_STEPS, PURE)
        several = [(OVERALL, COMPUTE, PURE), steps, (*steps, LEAST_PURE, MOST_PURE)]
        several = [(*columns, OVERLAP) for columns in several]
    size = () if "barrier" in function else ((SIZE, "<10.0f"),)
    tails = RATE_TAILS if "bw" in function else TAILS
    for columns in [*several, *((*columns, *tails) for columns in several)]:
        for width in (18, 20):
            formats = {one: f">{width}.2f" for one in columns} | {ITERATIONS: ">12.0f"}
            figures = (*size, *((one, formats[one]) for one in columns))
            yield figures
            yield (*figures, (VALIDATION, f">{width}"))


def _rates(row_values: Mapping[str, float]) -> list[float]:
    """Return the one rate that makes the time, none where a time is printed."""
    rates = (MESSAGES, BANDWIDTH, BOTH_BANDWIDTH, RATE)
    return [row_values[name] for name in rates if name in row_values][:1]


def _time_us(size: int, values: Mapping[str, float]) -> float:
    """Return µs per call, of the slowest rank where it is known, or per message of a rate."""
    if rates := _rates(values):
        units = 1e6 if MESSAGES in values else size
        return units / (rates[0] or ROUNDED_TO_ZERO)
    names = (MOST, MOST_PURE, PURE, MEAN, LATENCY)
    return next(values[name] for name in names if name in values)


def _output(lines: Lines, header: Header, table: Table, version: str | None = None) -> Output:
    """Return the output of a program whose rows come next, of a ``table`` without them.

    Its facts: ``device``, memory of the messages, empty for the host's; ``datatype``, None of
    releases that do not print it.
    """
    function = table.function
    rows = _read_rows(lines, function, header)
    columns, last = rows[0].values, rows[-1].size
    one = any(name in function for name in ("barrier", "fop_", "cas_"))
    # A collective that no run measures has no more.
    of = BENCHMARK.known(function) or Function(function)
    extremes = (LEAST, MEAN) if MOST in columns else None
    if MOST_PURE in columns:
        extremes = (LEAST_PURE, PURE)
    mean = "" if _between_two(function) or extremes else MEAN_OF_RANKS
    at_least = tuple(row.size for row in rows if 0 in _rates(row.values))
    overlaps = [row.values[OVERLAP] for row in rows] if OVERLAP in columns else None
    table = replace(
        table,
        ranks=2 if of.pair else table.ranks,
        rows=rows,
        messages=1 if of.rated else 0,
        extremes=extremes,
        remark=", ".join(filter(None, (mean, table.remark))),
        at_least=at_least,
        facts={**table.facts, "time_at_least_bytes": at_least, "overlap_percent": overlaps},
    )
    whole = one or last >= (_LARGEST if _between_two(function) else _LARGEST_COLLECTIVE)
    following = "" if one else str(max(2 * last, 1))
    own = (BENCHMARK, lines.path, (table,), version)
    return Output(*own, ended=False, whole=whole, next_word=following)


def _read_named(lines: Lines) -> Output:
    """Return the output from OMB's name to its last row."""
    head = lines.expect(_HEAD, "OMB's name, an MPI test and its version", TableError)
    first_line, version = lines.number, head[4]
    if not _VERSION.fullmatch(version):
        lines.refuse(f"version {version} is not one of OMB 3 to 7", TableError)
    function = function_of(head[3], head[1] or "")
    if function is None:
        lines.refuse("a test of OMB that is not read here", TableError)
    ranks = None
    if function == "mbw_mr":
        ranks = 2 * int(lines.expect(_PAIRS, "the pairs and the window of osu_mbw_mr")[1])
        if not ranks:
            lines.refuse("no pair measures nothing")
    reason = f"is no header that OMB prints for {function} and that is read here"
    facts: dict[str, str] = {}
    while (stated := lines.match(_BEFORE_HEADER)) or lines.skip_blank():
        named = {name: word for name, word in stated.groupdict().items() if word} if stated else {}
        # Collectives do not say where buffers are.
        if named.keys() & facts.keys() or ("memory" in named and not _between_two(function)):
            lines.refuse(reason)
        facts |= named
    header = take_header(lines, _layouts(function), may_lack=False)
    if header is None:
        lines.refuse(reason, TableError)
    # Releases 7.1 to 7.3 print it here.
    if "type" not in facts and (stated := lines.match(_TYPE)):
        facts |= stated.groupdict()
    device = head[2] or ""
    if device and "memory" in facts:
        device += f", from {facts['memory']} to {facts['other_memory']}"
    remark = ", ".join(filter(None, (*map(facts.get, ("window", "synchronization")), device)))
    own: dict[str, Any] = {"device": device, "datatype": facts.get("type")}
    table = Table(lines.path, function, ranks, (), first_line, remark=remark, facts=own)
    return _output(lines, header, table, version)


def _read_pasted(lines: Lines, named: str | None) -> Output:
    """Return the output that has OMB's first line no more; TableError where none is likely.

    ``named``: the function, if the user says which it is; its header may be missing.
    """

    def read(function: str) -> Output:
        header = take_header(lines, _layouts(function), may_lack=named is not None)
        others = (SIZE, VALIDATION, *TAILS, *RATE_TAILS)
        columns = [name for name, _ in header.layout if name not in others] if header else []
        if header is None or not (named or _GUESSED.get(tuple(columns)) == function):
            lines.refuse(f"is no header that OMB prints for {function}", TableError)
        number, datatype = lines.number, lines.match(_TYPE)
        facts = {"device": "", "datatype": datatype[1] if datatype else None}
        return _output(lines, header, Table(lines.path, function, None, (), number, facts=facts))

    if named:
        return read(named)
    return BENCHMARK.guessed(lines, tuple(_GUESSED.values()), read)


def function_of(title: str, one_sided: str) -> str | None:
    """Return the function that a title names, as its program without ``osu_``; None if unknown.

    ``one_sided``: what follows MPI in its name, such as ``_Put``, empty without.
    """
    title = " ".join(title.lower().split())
    if one_sided:
        stem, suffix = _ONE_SIDED.get(one_sided.lower()), _PAIR.get(title)
        return f"{stem}_{suffix}" if stem and suffix in ("latency", "bw", "bibw") else None
    pair = _PAIR.get(title.removesuffix(" persistent"))
    if pair:
        return f"{pair}_persistent" if title.endswith(" persistent") else pair
    found = _COLLECTIVE.fullmatch(title)
    if found is None:
        return None
    name = found[3].replace("-", "").replace("broadcast", "bcast")
    first = f"{'i' if found[1] else ''}{'neighbor_' if found[2] else ''}"
    return f"{first}{name}{'_persistent' if found[4] else ''}"


def _read_rows(lines: Lines, function: str, header: Header) -> tuple[Row, ...]:
    """Return the rows up to the first line that is none; ParseError for an impossible one."""
    rows: list[Row] = []
    while lines.match(_ROW):
        values, valid = row_in(lines, header, program="OMB")
        if valid not in ("", "Pass", "Fail"):
            lines.refuse(f"{VALIDATION} is {valid}, and not Pass or Fail")
        size = int(values.pop(SIZE, 0))
        _check_figures(lines, size, values)
        wrong = f"{VALIDATION} Fail" if valid == "Fail" else ""
        row = Row(lines.number, size, values, _time_us(size, values), wrong)
        if rows and rows[-1].failure:
            lines.refuse("a row after one whose data were wrong, at which OMB ends")
        if rows:
            check_order(lines, rows[-1].size, size, "OMB")
        rows.append(row)
    if not rows:
        lines.refuse_next("a row", f"is no row of {function}: the table has none")
    if rows[-1].failure:
        lines.skip_blank()
        lines.match(_WRONG)
    return tuple(rows)


def _check_figures(lines: Lines, size: int, values: Mapping[str, float]) -> None:
    """Raise ParseError for impossible or contradictory figures."""
    for name, value in values.items():
        rounded = name in (RATE, *RATE_TAILS)
        rounded = rounded or (name in (BANDWIDTH, BOTH_BANDWIDTH, MESSAGES) and size > 0)
        if value == 0 and not rounded and name not in (OVERLAP, COMPUTE, *_STEPS):
            lines.refuse(f"{name} is 0, which nothing takes")
    if not size and {BANDWIDTH, BOTH_BANDWIDTH, RATE} & values.keys() and MESSAGES not in values:
        lines.refuse("a rate of messages of 0 bytes, which OMB does not measure")
    if MESSAGES in values:
        # Two printed decimals each, and a margin for the rounding of the bounds themselves.
        made = size * values[MESSAGES] / 1e6
        margin = 0.005 + size * 0.005e-6 + 1e-9 * made
        if abs(values[RATE] - made) > margin:
            lines.refuse(f"{RATE} does not follow from bytes and {MESSAGES}: {made:.2f} would")
    check_means(lines, values, (LEAST, MOST, MEAN))
    # Its mean is of another run than its ends, and may lie outside.
    if MOST_PURE in values and values[LEAST_PURE] > values[MOST_PURE]:
        lines.refuse("expected min <= max")
    if OVERLAP in values:
        # All times have two decimals.
        waited, pure = values[OVERALL] - values[COMPUTE], values[PURE]
        bounds = [
            100 - 100 * (waited + of_waited) / (pure + of_pure)
            for of_waited in (-0.01, 0.01)
            for of_pure in (-0.005, 0.005)
        ]
        if not max(0, min(bounds)) - 0.006 <= values[OVERLAP] <= max(0, *bounds) + 0.006:
            made = 100 - 100 * waited / pure
            lines.refuse(f"{OVERLAP} does not follow from the times: {made:.2f}")


_one_message = partial(Function, pair=True, rated=True, single=True)
_stream = partial(Function, pair=True, rated=True)
# One message's share of the time of both directions carries half of it each way.
_both_ways = partial(_stream, link_factor=BOTH_DIRECTIONS, in_turn=1 / BOTH_DIRECTIONS)
_collective = partial(Function, default=True)


class Osu(MpiBenchmark):
    """MPI programs of OMB; a run needs 5.4 or newer, where every test takes sizes."""

    number = 3
    name = "osu"
    label = "OSU"
    output_of = "the OSU Micro-Benchmarks"
    features: ClassVar[Mapping[str, str]] = {"osu": "OSU Micro-Benchmarks (OMB)"}
    probes: ClassVar[Mapping[str, str]] = {"osu_bw": "osu"}
    figures = r"^([0-9]+ +[0-9]+\.[0-9]+| +[0-9]+\.[0-9]+)( |$)"
    programs_are = "osu_{}"
    starting = "osu_barrier -i 1 -x 0"
    arguments_meaning = "further arguments of the OSU Micro-Benchmarks, for instance `-i 100 -x 10`"
    few_calls = ("-i", "10", "-x", "1")
    functions = (
        _one_message("latency", default=True, ping_pong=True),
        _stream("bw", default=True),
        _both_ways("bibw", default=True),
        Function("mbw_mr", pairs=True, default=True, rated=True),
        _collective("allreduce", collective="Allreduce", least_bytes=4),
        _collective("alltoall", collective="Alltoall"),
        _collective("allgather", collective="Allgather"),
        _collective("bcast", collective="Bcast"),
        _collective("reduce_scatter", collective="Reduce_scatter", least_bytes=4),
        _collective("barrier", least_bytes=None),
    )
    only_read = (
        *(_one_message(f"latency_{how}", ping_pong=True) for how in ("mt", "mp", "persistent")),
        *(_one_message(f"{how}_latency") for how in ("put", "get")),
        *(Function(f"{how}_latency", pair=True) for how in ("acc", "get_acc", "fop", "cas")),
        *(_stream(name) for name in ("put_bw", "get_bw", "bw_persistent")),
        *(_both_ways(name) for name in ("put_bibw", "bibw_persistent")),
        Function("multi_lat", pairs=True, rated=True, single=True),
    )
    heads = re.compile(
        r"(?P<program># OSU (?!MPI\S* (?:Init|Hello World) Test)\S.* [Tt]est v)"
        r"|(?P<columns># Size +(?:Avg Latency ?\(|Latency ?\(|B|MB/s|Overall))"
    )

    def command(
        self, function: Function, ranks: int, sizes: Sequence[int], size_file: str, arguments: Words
    ) -> list[str]:
        """Return the command: ``-f`` prints a collective's slowest rank, ``-M`` keeps all sizes."""
        full = [] if function.rated else ["-f"]
        asked = [] if function.least_bytes is None else ["-m", f"{sizes[0]}:{sizes[-1]}"]
        if function.collective in PARTS_OF_ALL and sizes[-1] * ranks > MOST_MEMORY:
            asked += ["-M", str(sizes[-1] * ranks)]
        return [self.program(function.name), *asked, *full, *arguments]

    def parts(self, sizes: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Split sizes into the calls of ``-m LEAST:MOST`` that measure exactly them."""
        left, runs = sorted(set(sizes)), []
        while left:
            run = [left[0]]
            while 2 * run[-1] in left:
                run.append(2 * run[-1])
            runs.append(tuple(run))
            left = [size for size in left if size not in run]
        return tuple(runs)

    def sent(self, case: Case, printed: str, said: str, nodes: Nodes) -> Mapping[int, int] | str:
        """Return each size's repetitions from its row; only rows of collectives have them."""
        function = self.function(case.function)
        if function.least_bytes is None or len(set(nodes)) == 1:
            return {}
        rows = self.read(printed, "").tables[0].rows
        if not function.collective or ITERATIONS not in rows[0].values:
            return f"{self.program(case.function)} does not print how often it sends"
        crossing = CROSSING[function.collective](nodes)
        return {row.size: crossing * int(row.values[ITERATIONS]) for row in rows}

    def read_next(
        self, lines: Lines, before: Sequence[str], function: str | None = None, **_: Any
    ) -> Output:
        """Return a table from OMB's name on, or one that was pasted from its header on."""
        named = (lines.peek() or "").startswith("# OSU ")
        return _read_named(lines) if named else _read_pasted(lines, function)


BENCHMARK = Osu()
