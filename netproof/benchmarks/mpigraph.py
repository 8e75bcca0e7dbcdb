"""mpiGraph: the rate from each rank to each other, all ranks at once, read into one size.

The time of a message is that of the slowest pair; those of the fastest and the mean stand beside
it. Its MB are 2²⁰ bytes. The largest and the mean rate that it prints check the matrix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from netproof.benchmarks.fixed import Lines, Row, TableError, numbers
from netproof.benchmarks.interface import (
    BOTH_WAYS,
    Benchmark,
    Function,
    Output,
    Table,
    up_to_fault,
)
from netproof.measurement.case import MEBI

_START = re.compile(r"START mpiGraph(?: v(\S+))? *")
_ASKED = ("MsgSize", "Times", "Window", "Procs")
_PROGRESS = re.compile(r"[0-9]+ of [0-9]+ \([0-9.]+%\) *|Gathering results *| *")
_LARGEST, _MEAN = re.compile(r"(Send|Recv) max +(\S+) *"), re.compile(r"(Send|Recv) avg +(\S+) *")
_NAMES = re.compile(r"(Send|Recv)((?: +\S+:[0-9]+)+) *")
_ROW = re.compile(r"(\S+:[0-9]+) (to|from)((?: +[0-9.]+)+) *")
_END = re.compile(r"END mpiGraph *")
MOST_RANKS = 65536


class MpiGraph(Benchmark):
    """mpiGraph, which no check starts."""

    number = 8
    name = "mpigraph"
    label = "mpiGraph"
    only_read = tuple(Function(name, rated=True) for name in ("send", "recv"))
    heads = re.compile(r"(?P<program>START mpiGraph)")
    several_tables = True

    def read_next(self, lines: Lines, before: Sequence[str], **_: Any) -> Output:
        """Return both matrices of a run, to its last line."""
        start = lines.expect(_START, "`START mpiGraph`")
        asked = {}
        for name in _ASKED:
            found = lines.expect(re.compile(rf"{name} +([0-9]{{1,12}}) *"), name)
            asked[name] = int(found[1])
        if not asked["MsgSize"] or not 2 <= asked["Procs"] <= MOST_RANKS:
            lines.refuse("messages of no bytes, or fewer than 2 ranks")
        while lines.match(_PROGRESS):
            pass
        tables, fault = up_to_fault(lines, _tables(lines, asked["MsgSize"], asked["Procs"]))
        sent = tables[0]
        one, other = sent.facts["slowest"]
        rate, mean = (asked["MsgSize"] / us for us in (sent.rows[0].time_us, sent.facts["mean_us"]))
        note = (
            f"{lines.path}:{sent.first_line}: the slowest pair is {one} to {other}, {rate:.0f} MB/s"
            f" where the mean is {mean:.0f}"
        )
        return Output(self, lines.path, tables, start[1], asked, note=note, fault=fault)


def _tables(lines: Lines, size: int, ranks: int) -> Iterator[Table]:
    yield (sent := _table(lines, "Send", size, ranks))
    received = _table(lines, "Recv", size, ranks)
    if sent.facts["nodes"] != received.facts["nodes"]:
        lines.refuse("both matrices have the same ranks", TableError)
    lines.expect(_END, "`END mpiGraph`")
    yield received


def _table(lines: Lines, kind: str, size: int, ranks: int) -> Table:
    def figure(pattern: re.Pattern[str], what: str) -> float:
        found = lines.expect(pattern, f"`{kind} {what}`")
        if found[1] != kind:
            lines.refuse(f"expected `{kind} {what}`")
        return numbers(lines, [found[2]], [what])[0]

    most, mean = figure(_LARGEST, "max"), figure(_MEAN, "avg")
    lines.skip_blank()
    heads = lines.expect(_NAMES, f"the ranks of `{kind}`")
    names = heads[2].split()
    if heads[1] != kind or len(names) != ranks:
        lines.refuse(f"expected {ranks} ranks of `{kind}`")
    first = lines.number
    rates: dict[tuple[str, str], float] = {}
    for place, name in enumerate(names):
        row = lines.expect(_ROW, f"the rates of {name}")
        if (row[1], row[2]) != (name, "to" if kind == "Send" else "from"):
            lines.refuse(f"expected the rates of {name}")
        figures = numbers(lines, row[3].split(), names)
        for other, rate in enumerate(figures):
            if (rate == 0) is not (other == place):
                lines.refuse(f"a rate of {rate} between {name} and {names[other]}")
            if other != place:
                rates[name, names[other]] = rate
    lines.skip_blank()
    made = len(rates) / sum(1 / rate for rate in rates.values())
    if abs(max(rates.values()) - most) > 0.001 + 1e-6 * most or abs(made - mean) > 1e-4 * mean:
        lines.refuse(f"rates have the mean {made:.3f} and not {mean:.3f}, or another largest")
    slowest = min(rates, key=lambda pair: rates[pair])

    def us(rate: float) -> float:
        return size / (rate * MEBI) * 1e6

    values = {"fastest": us(max(rates.values())), "mean": us(made)}
    facts = {
        "nodes": names,
        "slowest": slowest,
        "mean_us": us(made),
        "pairs_mb_s": [rate * MEBI / 1e6 for rate in rates.values()],
    }
    rows = (Row(lines.number, size, values, us(rates[slowest])),)
    own = (lines.path, kind.lower(), ranks, rows, first, 1, ("fastest", "mean"))
    return Table(*own, direction=BOTH_WAYS, facts=facts)


BENCHMARK = MpiGraph()
