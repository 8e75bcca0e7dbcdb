"""perftest (``ib_write_bw``, ``ib_send_lat`` and others): text and ``--out_json`` into curves.

Its MB and MiB are 2²⁰ bytes, its Gb 10⁹ bits. A rate is checked against the message rate, which
also says the unit of ``--out_json``. A bidirectional rate counts both directions. A latency is the
median, of half a round trip for sends and writes, and of a whole one for reads and atomics.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from netproof.benchmarks.fixed import Lines, Row, TableError, check_order, numbers
from netproof.benchmarks.interface import (
    BOTH_DIRECTIONS,
    GUESS,
    Benchmark,
    Function,
    Output,
    Table,
)
from netproof.errors import ParseError
from netproof.measurement.case import BITS_PER_BYTE, MEBI

_VERBS = ("send", "write", "read", "atomic")
_TITLE = re.compile(
    r" *(Send|RDMA_Write|RDMA_Read|(?:(?:CMP_AND_SWAP|FETCH_AND_ADD) )?Atomic"
    r"(?: CMP_AND_SWAP| FETCH_AND_ADD)?)"
    r"( with imm|_imm)? (Bidirectional )?(?:Post List )?(BW|Latency) Test *",
    re.IGNORECASE,
)
_RULE = re.compile(r" *-{40,} *")
_BANDWIDTH = ("#bytes", "#iterations", "peak", "average", "MsgRate[Mpps]")
_LATENCY = ("#bytes", "#iterations", "t_min", "t_max", "t_typical", "t_avg", "t_stdev", "99%")
_HEADER_BW = re.compile(
    r" *#bytes +#iterations +BW peak\[(Mi?B|Gb)/sec\] +BW average\[(?:Mi?B|Gb)/sec\]"
    r"( +MsgRate\[Mpps\])? *"
)
_HEADER_LAT = re.compile(
    r" *#bytes +#iterations +t_min\[usec\] +t_max\[usec\] +t_typical\[usec\]"
    r"( +t_avg\[usec\] +t_stdev\[usec\] +99% percentile\[usec\] +99\.9% percentile\[usec\])? *"
)
_HEADER_DURATION = re.compile(r" *#bytes +#iterations +t_avg\[usec\] +tps average *")
_FREQUENCY = re.compile(r" *(?:Conflicting CPU frequency values|Test integrity may be harmed).*")
_CUDA = re.compile(r".*(?:cuda|rocm|hip).*|.*\bGPU\b.*", re.IGNORECASE)
_ALLOCATED = re.compile(r"allocated .*\bGPU buffer")
_ROW = re.compile(r" *[0-9]+ +[0-9]+ +[-0-9.naif]+ .*")
_HEADERS = (_HEADER_BW, _HEADER_LAT, _HEADER_DURATION)
_OTHERS = ("ROCm", "MUSA", "CUDA")
_OF_JSON = {"BW_average": "average", "BW_peak": "peak", "MsgRate": "MsgRate[Mpps]"}
_OF_JSON |= {"percentile_99": "99%", "percentile_99.9": "99.9%", "t_99": "99%"}
_QUEUES = re.compile(r"Number of qps +: ([0-9]{1,6})$")
_MOST_LINES = 100
"""Lines from a title to its table."""
_LEAST, _LARGEST = 2, 8 * MEBI
"""Sizes in bytes from which to which ``-a`` goes; datagrams end with the MTU."""


def _name(verb: str, bidirectional: bool, what: str) -> str:
    """Return ``write_bw``, ``send_bibw``, ``read_lat``."""
    last = "atomic" if "atomic" in verb.lower() else verb.lower().removeprefix("rdma_")
    kind = "lat" if what.lower().startswith("lat") else "bibw" if bidirectional else "bw"
    return f"{last}_{kind}"


def _row(lines: Lines, line: str, unit: float | None, header: re.Match[str]) -> Row:
    """Return a row of text; ``unit``: bytes of what is a second's rate, None of latencies."""
    names: tuple[str, ...] = _BANDWIDTH if unit else (*_LATENCY, "99.9%")
    if header.re is _HEADER_DURATION:
        names = ("#bytes", "#iterations", "t_avg", "tps average")
    elif header[header.re.groups] is None:
        names = names[: 4 if unit else 5]
    values = dict(zip(names, numbers(lines, line.split(), names), strict=True))
    size = values.pop("#bytes")
    if size != int(size) or not size or not values["#iterations"]:
        lines.refuse("a row of no bytes or no iterations")
    try:
        return Row(lines.number, int(size), values, _time_us(int(size), values, unit))
    except ValueError as fault:
        lines.refuse(str(fault))


def _time_us(size: int, values: Mapping[str, float], unit: float | None) -> float:
    """Return µs of a message; ValueError where figures contradict each other."""
    if unit is None:
        least, most = values.get("t_min", 0.0), values.get("t_max", float("inf"))
        time = values.get("t_typical", values.get("t_avg", 0.0))
        if not time > 0:
            raise ValueError("a time of 0, which no message takes")
        # The mean is of all but the first and the last, the median of all.
        if not least <= time <= most or not least <= values.get("t_avg", time) <= most:
            raise ValueError("expected t_min <= t_typical <= t_max, and so the mean")
        if values.get("99%", time) > values.get("99.9%", most):
            raise ValueError("a 99th percentile above the 99.9th")
        return time
    rate, average = values.get("MsgRate[Mpps]", 0.0), values["average"] * unit
    made = rate * 1e6 * size
    slack = 0.006 * unit + 0.6 * size + 1e-6 * made
    if "MsgRate[Mpps]" in values and abs(made - average) > slack:
        raise ValueError(f"the average does not follow from MsgRate: {made / unit:.2f} would")
    if not average and not rate:
        raise ValueError("a rate of 0.00, and no message rate above 0 beside it")
    # Of a small rate, two decimals say less than the six of the message rate.
    return size / average * 1e6 if values["average"] >= rate else 1 / rate


_stream = partial(Function, pair=True, rated=True)
_both_ways = partial(_stream, link_factor=BOTH_DIRECTIONS, in_turn=1 / BOTH_DIRECTIONS)


class Perftest(Benchmark):
    """Programs of perftest, which no check starts."""

    number = 5
    name = "perftest"
    label = "perftest"
    only_read = (
        *(_stream(f"{verb}_bw") for verb in _VERBS),
        *(_both_ways(f"{verb}_bibw") for verb in _VERBS),
        *(_stream(f"{verb}_lat", single=True, ping_pong=True) for verb in _VERBS),
    )
    heads = re.compile(
        r"(?i:(?P<program> *(?:Send|RDMA_|Atomic|CMP_AND_SWAP|FETCH_AND_ADD)[\w ]* Test *$))"
        r"|(?P<columns> *#bytes +#iterations +(?:BW|t_))"
    )

    def read_next(
        self, lines: Lines, before: Sequence[str], function: str | None = None, **_: Any
    ) -> Output:
        """Return a table from its title, or its header, on to the rule below it."""
        first, remark, guess = lines.number + 1, [], ""
        if title := lines.match(_TITLE):
            function = _name(title[1], bool(title[3]), title[4])
            remark += self._read_facts(lines, title)
            if any(map(_ALLOCATED.match, before)) and "device memory" not in remark:
                remark.append("device memory")
        header = next(filter(None, map(lines.match, _HEADERS)), None)
        if header is None:
            lines.refuse_next("the header of a table", "the table of this test does not follow")
        latency = header.re is not _HEADER_BW
        if function is None:
            function = "send_lat" if latency else "send_bw"
            guess = self.guess_note(f"{lines.path}:{first}", function)
            remark.append(GUESS)
        elif function.endswith("_lat") is not latency:
            lines.refuse(f"is no header that perftest prints for {function}", TableError)
        unit = None if latency else 1e9 / BITS_PER_BYTE if header[1] == "Gb" else float(MEBI)
        rows: list[Row] = []
        while found := lines.match(_FREQUENCY) or lines.match(_ROW):
            if found.re is _FREQUENCY:
                continue
            row = _row(lines, found[0], unit, header)
            if rows:
                check_order(lines, rows[-1].size, row.size, "perftest")
            rows.append(row)
        if not rows:
            lines.refuse_next("a row", "is no row of perftest: the table has none")
        ended = lines.match(_RULE) is not None
        if len(rows) > 1 and rows[0].size != _LEAST:
            reason = f"begins at {rows[0].size} bytes, and several sizes begin at {_LEAST}"
            raise TableError(lines.path, rows[0].line, "", reason)
        if len(rows) > 1 and rows[-1].size < _LARGEST and "UD" not in remark:
            lines.refuse(f"the table ends before {_LARGEST} bytes", TableError)
        output = self._output(lines.path, function, rows, first, remark)
        return replace(output, ended=ended, note=guess)

    def _read_facts(self, lines: Lines, title: re.Match[str]) -> list[str]:
        """Take the lines from a title to the header of its table; return what they tell apart."""
        remark = ["immediate data"] if title[2] else []
        for _ in range(_MOST_LINES):
            line = lines.peek()
            if line is None or any(one.fullmatch(line) for one in (*_HEADERS, _TITLE, _ROW)):
                break
            lines.take("the header of a table")
            pairs = (_QUEUES.match(part) for part in re.split(r" {2,}|\t+", line.strip()))
            queues = [int(found[1]) for found in pairs if found]
            if queues and queues[0] > 1:
                remark.append(f"{queues[0]} QPs")
            if "Connection type : UD" in line:
                remark.append("UD")
            if _CUDA.fullmatch(line) and "device memory" not in remark:
                remark.append("device memory")
        return remark

    def read_document(self, content: Any, path: str) -> Output | None:
        """Return what ``--out_json`` wrote."""
        if not isinstance(content, dict) or "test_info" not in content:
            return None
        facts, results = content["test_info"], content["results"]
        title = _TITLE.fullmatch(str(facts["test"]).replace("_", " ").replace("RDMA ", "RDMA_"))
        if title is None:
            raise ParseError(path, 0, str(facts["test"]), "is no test of perftest that is read")
        values = {_OF_JSON.get(key, str(key)): float(one) for key, one in results.items()}
        size = int(values.pop("MsgSize"))
        function = _name(title[1], bool(title[3]), title[4])
        units = (None,) if "average" not in values else (float(MEBI), 1e9 / BITS_PER_BYTE)
        times, reason = [], "a message of 0 bytes"
        for unit in units:
            try:
                times.append(_time_us(size, values, unit))
            except ValueError as fault:
                reason = str(fault)
        if not times or size < 1:
            raise ParseError(path, 0, "", reason)
        queues = facts.get("Number_of_qps", 1)
        remark = [f"{queues} QPs"] if queues != 1 else []
        if "cuda_device" in facts or "ON" in (facts.get(f"Use_{one}_memory") for one in _OTHERS):
            remark.append("device memory")
        row = Row(0, size, values, times[0])
        return self._output(path, function, [row], 0, remark)

    def _output(
        self, path: str, function: str, rows: Sequence[Row], first: int, remark: Sequence[str]
    ) -> Output:
        table = Table(path, function, 2, tuple(rows), first, 1, remark=", ".join(remark))
        last = rows[-1].size
        return Output(self, path, (table,), whole=last >= _LARGEST, next_word=str(2 * last))


BENCHMARK = Perftest()
