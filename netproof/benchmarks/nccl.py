"""nccl-tests and rccl-tests: what their programs print, and what ``-J`` writes, read into curves.

Times are µs of one collective between GPUs; the bandwidth is the bus bandwidth: bytes over time
times a factor of the collective and the ranks. What is printed checks them: each rate, the mean of
all bus bandwidths, and the number of sizes that the first line announces. Between rows only NCCL's
own lines of information may stand.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from netproof.benchmarks.fixed import Lines, Row, TableError, half_a_unit, is_rate, number
from netproof.benchmarks.interface import GUESS, Benchmark, Function, Output, Table
from netproof.errors import ParseError

_SHARE = {
    "all_reduce": 2.0,
    **dict.fromkeys(("all_gather", "reduce_scatter", "gather", "scatter"), 1.0),
    **dict.fromkeys(("alltoall", "alltoallv"), 1.0),
    **dict.fromkeys(("broadcast", "reduce", "sendrecv", "hypercube"), 0.0),
}
"""The bus bandwidth over bytes and time, in units of (n - 1)/n on n ranks; 0: it is 1."""
_MPI = {"reduce_scatter": "Reduce_scatter_block", "broadcast": "Bcast"} | {
    name: name.replace("_", "").capitalize()
    for name in ("all_reduce", "all_gather", "alltoall", "gather", "scatter", "reduce")
}

_TESTS = re.compile(r"(?:# )?(nccl|rccl)-tests:? [vV]ersion (\S+).*")
_STARTING = re.compile(r"# Collective test starting: (\w+)_perf")
_SWEEP = re.compile(
    r"#? ?nThread \d{1,6} nGpus \d{1,6} minBytes (\d{1,15}) maxBytes (\d{1,15}) "
    r"step: (\d{1,15})\((bytes|factor)\) .*"
)
_RANK = re.compile(
    r"#? +Rank +(\d{1,9}) (?:Group +\d{1,9} )?Pid +\d+ on +(\S+) device +\d+ \[\w[\w:.]*\] (.*)"
)
_REDUCED = re.compile(r"#? ?Reducing maxBytes to (\d{1,15}) due to memory limitation *")
_HEADER = re.compile(
    r"#? +size +count +type(?: +redop)?(?: +root)? +time +algbw +busbw +(#wrong|error)"
    r" +time +algbw +busbw +(?:#wrong|error) *"
)
_INFO = re.compile(r"\S*[\w.-]+:\d+:\d+ \[\d+\] NCCL INFO .*")
_OWN = re.compile(
    rf"{_INFO.pattern}|[NR]CCL version \S.*"
    r"|#? *(?:Using devices|out-of-place +in-place|\(B\) +\(elements\).*)? *"
    r"|#(?! +Rank| +size| nThread| Avg| Out of| Reducing| (?:nccl|rccl)-tests)(?: .*)?"
)
"""A line of NCCL's, or a comment, also one that lost its sign."""
_ROW = re.compile(
    r" *(\d{1,15}) +\d+ +((?:u?int(?:8|32|64)|float(?:8|16)?|half|double|bfloat16|f(?:p)?8\w{0,10})"
    r"(?: +(?:sum|prod|min|max|avg|mulsum|none))?(?: +-?\d{1,6})?)((?: +[-+.eNA/\d]{1,20}){8}) *"
)
"""A size, its type, operation and root, and four figures out of place and four in place."""
_ERROR = re.compile(r"[0-9.]+e[-+][0-9]+|N/A")
"""The largest error of releases that do not count wrong values."""
_BOUNDS = re.compile(r"#? ?Out of bounds values : \d+ (OK|FAILED) *")
_AVERAGE = re.compile(r"#? ?Avg bus bandwidth +: (\S+) *")
_CONCLUDED = re.compile(r"#(?: Collective test concluded: \w+)? *")
_PROGRAM = re.compile(r"\b(\w+?)_perf\b")

MOST_SIZES = 100_000
HOW = ("", "in place")
_ONE = "build nccl-tests with MPI=1, or give it the GPUs of a node with -g"


class _Run:
    """Facts that a run prints of itself, and its rows.

    ``devices``: host and GPU of each rank, and ``asked``: sizes in bytes, empty if unknown;
    ``sweeps``: rows by their type, operation and root, and ``HOW``; ``average``: of all bus
    bandwidths, in GB/s.
    """

    def __init__(self, path: str, version: str | None, first: int = 0) -> None:
        self.path, self.version, self.first = path, version, first
        self.devices: list[tuple[str, str]] = []
        self.asked: list[int] = []
        self.sweeps: dict[tuple[tuple[str, ...], str], list[Row]] = {}
        self.average = 0.0

    def ask(self, least: int, most: int, step: int, unit: str) -> None:
        """Set the sizes in bytes that the run asks for."""
        last, following = -1, least
        while last < following <= max(least, most) and len(self.asked) < MOST_SIZES:
            self.asked.append(following)
            last, following = following, following * step if unit == "factor" else following + step

    def factor(self, function: str, measured: float | None = None) -> float:
        """Return the bus bandwidth over bytes and time; of any number of ranks, the nearest one."""
        ranks = len(self.devices) or 2
        if not self.devices and measured is not None and _SHARE[function]:
            ranks = max(2, round(1 / max(1 - measured / _SHARE[function], 1 / MOST_SIZES)))
        return _SHARE[function] * (ranks - 1) / ranks if _SHARE[function] else 1.0

    def guess(self, measured: float | None) -> str:
        """Return a function whose rates have that factor; alltoall has those of all_gather."""
        several = ["all_gather", "broadcast"]
        if any({"sum", "prod"} & {*key} for key, _ in self.sweeps):
            several = ["all_reduce", "reduce_scatter", "reduce"]
        return min(several, key=lambda name: abs((measured or 9) - self.factor(name, measured)))

    def output(self, function: str, factor: float, *, amd: bool = False, note: str = "") -> Output:
        """Return the output; ParseError unless all sizes are there, and have this mean."""
        amd = amd or any("AMD" in name for _, name in self.devices)
        place = f"{'ROCm' if amd else 'CUDA'} device memory"
        if self.devices:
            hosts = len({host for host, _ in self.devices})
            where = "inside one node" if hosts == 1 else f"on {hosts} nodes"
            place += f", {len(self.devices)} GPUs {where}"
        rates, tables, line = [], [], self.first
        kinds = {key for key, _ in self.sweeps}
        for (key, how), rows in self.sweeps.items():
            line = rows[-1].line
            rates += [row.values["busbw"] for row in rows]
            self._check_sizes([row.size for row in rows], line)
            # Rounding to ranks makes some equal, or nothing.
            mine = tuple({row.size: row for row in rows if row.size}.values())
            each = [row.values.get("times_us") for row in mine]
            words = (place, " ".join(key) if len(kinds) > 1 else "", GUESS if note else "", how)
            own = (self.path, function, len(self.devices) or None, mine, self.first, factor)
            remark, facts = ", ".join(filter(None, words)), {"times_us": each} if any(each) else {}
            tables += [Table(*own, remark=remark, facts=facts)] if mine else []
        mean = math.fsum(rates) / len(rates) if rates else 0.0
        if not tables or abs(self.average - mean) > 0.006 + 0.0005 * mean:
            reason = f"the mean of the rows' bus bandwidths is {mean:.4g}: a row is missing"
            raise TableError(self.path, line, f"{self.average}", reason)
        return Output(BENCHMARK, self.path, tuple(tables), self.version, note=note)

    def _check_sizes(self, sizes: Sequence[int], line: int) -> None:
        reason, pairs = "", pairwise(sizes)
        if self.asked and len(sizes) != len(self.asked):
            reason = f"{len(sizes)} sizes are there, and {len(self.asked)} were asked for"
        elif not self.asked and len({b // a if a and not b % a else a - b for a, b in pairs}) > 1:
            reason = "sizes have no constant step: a row is missing"
        elif list(sizes) != sorted(sizes) or any(map(int.__gt__, sizes, self.asked)):
            reason = "sizes increase, and none is above the one that was asked for"
        if reason:
            raise TableError(self.path, line, "", reason)
        self.asked = self.asked or list(sizes)

    def read_rows(self, lines: Lines, *, counts: bool) -> float | None:
        """Read a table's rows; return the bus bandwidth over bytes and time, None if unknown.

        ``counts``: wrong values are counted.
        """
        factors: list[float] = []
        while not _BOUNDS.fullmatch(lines.peek() or ""):
            if lines.match(_OWN):
                continue
            if not (found := lines.match(_ROW)):
                reason = "is no row that nccl-tests prints: give its output alone"
                lines.refuse_next("a row of the table, or its last lines", reason)
            tokens, key = found[3].split(), tuple(found[2].split())
            for how, figures in zip(HOW, (tokens[:4], tokens[4:]), strict=True):
                if figures[:3] != ["N/A"] * 3:
                    row = self._row(lines, int(found[1]), figures, counts=counts)
                    self.sweeps.setdefault((key, how), []).append(row)
                    rate = row.size / 1e3 / row.time_us
                    # Rates of few digits say little.
                    factors += [row.values["busbw"] / rate] if rate >= 1 else []
        if not self.sweeps:
            lines.refuse("the table has no row", TableError)
        return sorted(factors)[len(factors) // 2] if factors else None

    def _row(self, lines: Lines, size: int, figures: Sequence[str], *, counts: bool) -> Row:
        """Return a row; ParseError unless its rate follows from bytes and time."""
        time, rate, bus = (
            number(lines, f"{float(token):f}" if "e+" in token else token, name)
            for token, name in zip(figures, ("time", "algbw", "busbw"), strict=False)
        )
        if not time:
            lines.refuse("a time of 0, which no collective takes")
        slack, error = half_a_unit(figures[0]), half_a_unit(figures[1])
        # Releases before 2021 count one rank's part of some collectives.
        parts = (size / part / 1e3 for part in (1, len(self.devices) or 1))
        if not any(is_rate(rate, error, part, time, slack) for part in parts):
            lines.refuse(
                f"algbw does not follow from bytes and time: {size / 1e3 / time:.2f} would"
            )
        wrong = 0.0 if _ERROR.fullmatch(figures[3]) else number(lines, figures[3], "#wrong")
        failure = f"#wrong {figures[3]}" if wrong and counts else ""
        return Row(lines.number, size, {"busbw": bus}, time, failure)


class Nccl(Benchmark):
    """Programs of nccl-tests and rccl-tests, which no check starts."""

    number = 4
    name = "nccl"
    label = "NCCL"
    output_of = "nccl-tests"
    only_read = tuple(Function(name, rated=True, collective=_MPI.get(name, "")) for name in _SHARE)
    several_tables = True
    chatter = _INFO
    heads = re.compile(
        r"(?P<program># (?:nccl|rccl)-tests version )"
        r"|(?P<columns>#? ?nThread \d+ nGpus |# Collective test starting|#? +size +count +type )"
    )

    def read_next(
        self, lines: Lines, before: Sequence[str], function: str | None = None, **_: Any
    ) -> Output:
        """Return a run from the version, the sizes or the header on, to the mean of its rates."""
        first, amd, starting = lines.number + 1, False, ""
        run = _Run(lines.path, None, first)
        while not (header := lines.match(_HEADER)):
            if tests := lines.match(_TESTS):
                amd, run.version = tests[1] == "rccl", tests[2]
            elif started := lines.match(_STARTING):
                starting = started[1]
            elif reduced := lines.match(_REDUCED):
                run.asked = [size for size in run.asked if size <= int(reduced[1])]
            elif sweep := lines.match(_SWEEP):
                if run.asked:
                    lines.refuse(f"is of another run: {_ONE}")
                run.ask(int(sweep[1]), int(sweep[2]), int(sweep[3]), sweep[4])
            elif found := lines.match(_RANK):
                run.devices.append((found[2], found[3]))
                if not run.asked or int(found[1]) != len(run.devices) - 1:
                    lines.refuse(f"is of another run: {_ONE}")
            elif not lines.match(_OWN):
                reason = "is no line that nccl-tests prints before its table"
                lines.refuse_next("the header of the table", reason)
        if run.asked and len(run.devices) < 2:
            lines.refuse(f"one GPU has no bus: {_ONE}", TableError)
        measured = run.read_rows(lines, counts=header[1] == "#wrong")
        if lines.expect(_BOUNDS, "`# Out of bounds values`")[1] == "FAILED":
            lines.refuse("results were wrong", TableError)
        run.average = number(lines, lines.expect(_AVERAGE, "`# Avg bus bandwidth`")[1], "busbw")
        while lines.match(_CONCLUDED):
            pass
        said = {one for line in before for one in _PROGRAM.findall(line)} & _SHARE.keys()
        named = starting or function or (said.pop() if len(said) == 1 else "")
        note = ""
        if not named:
            named = run.guess(measured)
            note = self.guess_note(f"{lines.path}:{first}", named, "rates")
        if named not in _SHARE:
            lines.refuse(f"{named}_perf is no program of nccl-tests that is read", TableError)
        factor = run.factor(named, measured)
        if measured is not None and abs(measured - factor) > 0.02 * max(measured, factor):
            lines.refuse(f"busbw is {measured:.3g} of the rate, and of {named} it is {factor:.3g}")
        return run.output(named, factor, amd=amd, note=note)

    def read_document(self, content: Any, path: str) -> Output | None:
        """Return what ``-J`` wrote."""
        if not isinstance(content, dict) or not {"nccl_version", "config"} <= content.keys():
            return None
        if "end_time" not in content:
            raise ParseError(path, 0, "", "has no end_time: the run broke off")
        config, run = content["config"], _Run(path, str(content["nccl_version"]))
        (function,) = {one for word in content["args"] for one in _PROGRAM.findall(word)}
        run.devices = [(one["hostname"], one["device_info"]) for one in config["devices"]]
        factor = run.factor(function)
        for entry in content["results"]:
            size, key = int(entry["size"]), (entry["type"], entry["redop"], str(entry["root"]))
            for how, name in zip(HOW, ("out_of_place", "in_place"), strict=True):
                if (figures := entry.get(name)) is None:
                    continue
                time, bus = float(figures.get("time", figures.get("cpu_time"))), figures["bus_bw"]
                if not time > 0 or not math.isclose(bus, factor * size / 1e3 / time, rel_tol=1e-3):
                    reason = f"bus_bw of {size} bytes does not follow from bytes and time"
                    raise ParseError(path, 0, f"{bus}", reason)
                values = {"busbw": bus}
                if each := entry.get(f"{name}_per_iter"):
                    values["times_us"] = each["times_us"]
                wrong = figures.get("nwrong")
                row = Row(0, size, values, time, f"nwrong {wrong}" if wrong else "")
                run.sweeps.setdefault((key, how), []).append(row)
        unit = "factor" if "step_factor" in config else "bytes"
        least, most, step = (
            int(config[key]) for key in ("minimum_bytes", "maximum_bytes", f"step_{unit}")
        )
        run.ask(least, most, step, unit)
        run.average = float(content["average_bus_bandwidth"]["bandwidth"])
        return run.output(function, factor)


BENCHMARK = Nccl()
