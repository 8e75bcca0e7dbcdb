"""OMB's tests by their titles, and the columns and rows of their tables.

Releases 4 to 7 print columns of 18 characters, release 3 of 20. A row is as exact as its header:
where mail or a web page collapsed the blanks of both, words and their decimals are compared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from netproof.benchmarks.fixed import Lines, TableError, numbers

SIZE, ITERATIONS, VALIDATION, FAILED = "# Size", "Iterations", "Validation", "Fail"
MEAN, LATENCY, LEAST, MOST = "Avg Latency(us)", "Latency (us)", "Min Latency(us)", "Max Latency(us)"
RATE, MESSAGES = "MB/s", "Messages/s"
BANDWIDTH, BOTH_BANDWIDTH = "Bandwidth (MB/s)", "Bi-Bandwidth (MB/s)"
OVERALL, COMPUTE, PURE, OVERLAP = "Overall(us)", "Compute(us)", "Pure Comm.(us)", "Overlap(%)"
LEAST_PURE, MOST_PURE = "Min Comm.(us)", "Max Comm.(us)"
_STEPS = ("Coll. Init(us)", "MPI_Test(us)", "MPI_Wait(us)")

_ONE_TIME = [(LATENCY,), (MEAN,)]
_OF_RANKS = [(MEAN,), (MEAN, LEAST, MOST, ITERATIONS), (LATENCY,)]
_OVERLAPPED = [
    (OVERALL, COMPUTE, PURE, OVERLAP),
    (OVERALL, COMPUTE, *_STEPS, PURE, OVERLAP),
    (OVERALL, COMPUTE, *_STEPS, PURE, LEAST_PURE, MOST_PURE, OVERLAP),
]
_BYTES_A_SECOND = [(BANDWIDTH,), (BOTH_BANDWIDTH,)]

_PAIR = {
    "latency": "latency",
    "bandwidth": "bw",
    "bi-directional bandwidth": "bibw",
    "bidirectional bandwidth": "bibw",
    "multiple bandwidth / message rate": "mbw_mr",
    "multi latency": "multi_lat",
    "multi-threaded latency": "latency_mt",
    "multi-process latency": "latency_mp",
    "latency persistent": "latency_persistent",
    "bandwidth persistent": "bw_persistent",
    "bi-directional bandwidth persistent": "bibw_persistent",
}
_ONE_SIDED = {
    "_put": "put",
    "_get": "get",
    "_accumulate": "acc",
    "_get_accumulate": "get_acc",
    "_fetch_and_op": "fop",
    "_compare_and_swap": "cas",
}
_NAMED_ALIKE = (
    *("allreduce", "allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw", "barrier"),
    *("gather", "gatherv", "reduce", "reduce_scatter", "reduce_scatter_block", "scatter"),
    "scatterv",
)
_COLLECTIVES = {
    "all-to-all": "alltoall",
    "all-to-allv": "alltoallv",
    "all-to-allw": "alltoallw",
    "broadcast": "bcast",
    **{name: name for name in _NAMED_ALIKE},
}
_COLLECTIVE = re.compile(
    r"(non-blocking )?(neighborhood )?([a-z_-]+)(?: personalized exchange)?( persistent)? latency"
)

_FIRST, _COUNT_WIDTH = 10, 12
"""Widths of the size and of the iterations."""
_WIDTHS = (18, 20)
_LONE_WIDTHS = (13, 17, 18, 20)
"""Widths of the first figure in a row without a size."""

ROW = re.compile(r" *[0-9]+(?: +-?(?:[0-9][0-9.]*|nan|inf))+(?: +[A-Z][a-z]+)? *")
"""A row of figures, also one that something damaged."""
LONE_ROW = re.compile(r" +[0-9.]+(?: +-?(?:[0-9][0-9.]*|nan|inf))*(?: +[A-Z][a-z]+)? *")


def between_two(function: str) -> bool:
    """Check whether messages go between two ranks, or the two of each pair."""
    return "lat" in function or "bw" in function


def of_one_size(function: str) -> bool:
    """Check for a test that measures one size, or no message."""
    return any(name in function for name in ("barrier", "fop_", "cas_"))


def function_of(title: str, one_sided: str) -> str | None:
    """Return the function that a title names, as its program without ``osu_``; None if unknown.

    ``one_sided``: what follows MPI in its name, such as ``_Put``, empty without.
    """
    title = " ".join(title.lower().split())
    if one_sided:
        stem = _ONE_SIDED.get(one_sided.lower())
        what = {"latency": "latency", "bandwidth": "bw", "bi-directional bandwidth": "bibw"}
        return f"{stem}_{what[title]}" if stem and title in what else None
    if title in _PAIR:
        return _PAIR[title]
    found = _COLLECTIVE.fullmatch(title)
    if found is None or found[3] not in _COLLECTIVES:
        return None
    neighbours = "neighbor_" if found[2] else ""
    persistent = "_persistent" if found[4] else ""
    return f"{'i' if found[1] else ''}{neighbours}{_COLLECTIVES[found[3]]}{persistent}"


@dataclass(frozen=True)
class OsuRow:
    """One size: bytes, and its columns by their names; ``valid``: result of OMB's check."""

    line: int
    size: int
    values: Mapping[str, float]
    valid: bool = True


@dataclass(frozen=True)
class Header:
    """Columns of a table without the size's; ``width``: of a column, None where not as printed."""

    columns: tuple[str, ...]
    width: int | None
    sized: bool


def _layouts(function: str) -> list[tuple[str, ...]]:
    """Return the columns, without the size's, that OMB prints for ``function``."""
    bare: list[tuple[str, ...]]
    if function == "mbw_mr":
        bare = [(RATE, MESSAGES), (RATE,)]
    elif "bw" in function:
        bare = _BYTES_A_SECOND
    elif "lat" in function:
        bare = _ONE_TIME
    elif function.startswith("i"):
        bare = _OVERLAPPED
    else:
        bare = _OF_RANKS
    return bare + [(*columns, VALIDATION) for columns in bare]


def header_of(line: str, function: str) -> Header | None:
    """Return the header that a line is for ``function``, None for any other line."""
    sized = "barrier" not in function
    collapsed = None
    for columns in _layouts(function):
        for width in _WIDTHS:
            widths = [_COUNT_WIDTH if name == ITERATIONS else width for name in columns]
            named = [f"{name:>{wide}}" for name, wide in zip(columns, widths, strict=True)]
            if sized:
                forms = [f"{SIZE:<{_FIRST}}{''.join(named)}"]
            else:
                forms = [f"# {columns[0]}{''.join(named[1:])}", "".join(named)]
            if line.rstrip() in forms:
                return Header(columns, width, sized)
            if any(line.split() == form.split() for form in forms):
                collapsed = Header(columns, None, sized)
    return collapsed


def read_rows(lines: Lines, function: str, header: Header) -> tuple[OsuRow, ...]:
    """Return the rows up to the first line that is none; ParseError for an impossible one."""
    rows: list[OsuRow] = []
    pattern = ROW if header.sized else LONE_ROW
    while (line := lines.peek()) is not None and pattern.fullmatch(line):
        lines.take("a row")
        if rows and not rows[-1].valid:
            lines.refuse("a row after one whose data were wrong, at which OMB ends")
        row = _read_row(lines, line, header)
        if rows:
            _check_order(lines, function, rows[-1].size, row.size)
        rows.append(row)
    if not rows:
        lines.take("a row of the table")
        lines.refuse(f"is no row of {function}: the table has none", TableError)
    return tuple(rows)


def _read_row(lines: Lines, line: str, header: Header) -> OsuRow:
    tokens, valid, shown = line.split(), True, header.columns
    end = ""
    width = header.width or _WIDTHS[0]
    if header.columns[-1] == VALIDATION:
        word = tokens.pop()
        if word not in ("Pass", FAILED):
            lines.refuse(f"{VALIDATION} is {word}, and not Pass or {FAILED}")
        valid, shown, end = word == "Pass", header.columns[:-1], f"{word:>{width}}"
    names = (SIZE, *shown) if header.sized else shown
    found = dict(zip(names, numbers(lines, tokens, names), strict=True))
    size = int(found.pop(SIZE, 0))
    figures = [
        f"{value:{_COUNT_WIDTH}.0f}" if name == ITERATIONS else f"{value:{width}.2f}"
        for name, value in found.items()
    ]
    if header.sized:
        forms = [f"{size:<{_FIRST}d}{''.join(figures)}{end}"]
    else:
        first, rest = figures[0].strip(), "".join(figures[1:]) + end
        forms = [f"{first:>{wide}}{rest}" for wide in _LONE_WIDTHS]
    collapsed = header.width is None and line.split() == forms[0].split()
    if line not in forms and not collapsed:
        lines.refuse("is no row of columns as OMB prints them")
    row = OsuRow(lines.number, size, found, valid)
    _check_figures(lines, row)
    return row


def _check_figures(lines: Lines, row: OsuRow) -> None:
    """Raise ParseError for impossible or contradictory figures."""
    values = row.values
    for name, value in values.items():
        rounded = name == RATE or (name in (BANDWIDTH, BOTH_BANDWIDTH, MESSAGES) and row.size)
        if value == 0 and not rounded and name not in (OVERLAP, COMPUTE, *_STEPS):
            lines.refuse(f"{name} is 0, which nothing takes")
    if (
        not row.size
        and {BANDWIDTH, BOTH_BANDWIDTH, RATE} & values.keys()
        and MESSAGES not in values
    ):
        lines.refuse("a rate of messages of 0 bytes, which OMB does not measure")
    if MESSAGES in values:
        # Two printed decimals each, and a margin for the rounding of the bounds themselves.
        made = row.size * values[MESSAGES] / 1e6
        margin = 0.005 + row.size * 0.005e-6 + 1e-9 * made
        if abs(values[RATE] - made) > margin:
            lines.refuse(f"{RATE} does not follow from bytes and {MESSAGES}: {made:.2f} would")
    for least, mean, most in ((LEAST, MEAN, MOST), (LEAST_PURE, PURE, MOST_PURE)):
        if most in values:
            # The mean is a sum of floats: it may round up where its terms do not.
            slack = 0.01 + 1e-9 * values[most]
            in_order = values[least] - slack <= values[mean] <= values[most] + slack
            if not in_order or values[least] > values[most]:
                lines.refuse("expected min <= avg <= max")
    if OVERLAP in values:
        _check_overlap(lines, values)


def _check_overlap(lines: Lines, values: Mapping[str, float]) -> None:
    """Raise ParseError unless the overlap follows from the times, each with two decimals."""
    waited, pure = values[OVERALL] - values[COMPUTE], values[PURE]
    bounds = [
        100 - 100 * (waited + of_waited) / (pure + of_pure)
        for of_waited in (-0.01, 0.01)
        for of_pure in (-0.005, 0.005)
    ]
    least, most = (max(0, bound) for bound in (min(bounds), max(bounds)))
    if not least - 0.006 <= values[OVERLAP] <= most + 0.006:
        lines.refuse(f"{OVERLAP} does not follow from the times: {100 - 100 * waited / pure:.2f}")


def _check_order(lines: Lines, function: str, before: int, size: int) -> None:
    if "barrier" in function:
        lines.refuse(f"a second row of {function}")
    if size <= before:
        lines.refuse(f"{size} bytes after {before}: sizes must increase")
    if size != max(2 * before, 1):
        lines.refuse(f"{size} bytes after {before}: OMB's sizes double, a row is missing")
