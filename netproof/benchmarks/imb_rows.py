"""Rows of IMB's tables: headers, columns and the order of sizes."""

from __future__ import annotations

import re

from netproof.benchmarks.fixed import Lines, numbers
from netproof.benchmarks.imb_tables import (
    COLLECTIVE,
    LARGEST_ELEMENT_BYTES,
    MEGA,
    MESSAGE_RATE,
    POINT_TO_POINT,
    REDUCTIONS,
    SINGLE_TRANSFER,
    SMALLEST_TIMED_BYTES,
    FailedSize,
    ImbRow,
)
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


def read_header(lines: Lines, function: str) -> tuple[tuple[str, ...], bool, bool]:
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


def size_follows(lines: Lines, by_group: bool) -> bool:
    """Check that another size's row follows; with groups, take the empty line above the rows."""
    if by_group:
        lines.skip_blank()
        line = lines.peek()
        return line is not None and not line.startswith("#")
    line = lines.peek()
    return line is not None and bool(line.strip())


def read_entry(
    lines: Lines,
    function: str,
    columns: tuple[str, ...],
    group: int | None,
    megabytes: Megabytes,
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


def check_end(lines: Lines, function: str, last: int, longest: int) -> None:
    """Raise ParseError unless the last size is the longest message."""
    if function == "Barrier":
        return
    if last > longest:
        lines.refuse(f"{function} goes past the longest message of {longest} bytes")
    # IMB leaves out a message that is too short for an element of the reduction.
    if last < longest and not (function in REDUCTIONS and longest < LARGEST_ELEMENT_BYTES):
        lines.refuse(f"the table of {function} ends before {longest} bytes, the longest message")


def check_order(
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
