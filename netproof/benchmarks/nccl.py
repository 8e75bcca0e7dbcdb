"""nccl-tests and rccl-tests: what their programs print, and what ``-J`` writes, read into curves.

Times are µs of one collective between GPUs; the bandwidth is the bus bandwidth, that of bytes over
time times a factor of the collective and the ranks, which compares with what a link carries. Both
are computed from bytes and times, and what is printed checks them: each rate, the mean of all bus
bandwidths on the last line, and the number of sizes that the first line announces. NCCL's own lines
of information may stand between rows, nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from netproof.benchmarks.fixed import Lines, Row, TableError, number, printed_lines
from netproof.benchmarks.interface import GUESS, Benchmark, Function, Output, Table
from netproof.errors import ParseError

_OF_ALL = {"all_reduce": ("Allreduce", 2.0), "all_gather": ("Allgather", 1.0)}
_OF_ALL |= {"reduce_scatter": ("Reduce_scatter_block", 1.0), "alltoall": ("Alltoall", 1.0)}
_OF_ALL |= {"gather": ("Gather", 1.0), "scatter": ("Scatter", 1.0), "alltoallv": ("", 1.0)}
"""MPI's name of a collective; its factor in units of (n - 1)/n on n ranks."""
_WHOLE = {"broadcast": "Bcast", "reduce": "Reduce", "sendrecv": "", "hypercube": ""}
"""Those whose factor is 1."""

_TESTS = re.compile(r"# (nccl|rccl)-tests version (\S+).*")
_STARTING = re.compile(r"# Collective test starting: (\w+)_perf")
_SWEEP = re.compile(
    r"#? ?nThread \d{1,6} nGpus \d{1,6} minBytes (\d{1,15}) maxBytes (\d{1,15}) "
    r"step: (\d{1,15})\((bytes|factor)\) .*"
)
_RANK = re.compile(
    r"#? +Rank +(\d{1,9}) (?:Group +(\d{1,9}) )?Pid +\d+ on +(\S+) device +\d+ \[\w[\w:.]*\] (.*)"
)
_HEADER = re.compile(
    r"#? +size +count +type( +redop)?( +root)? +time +algbw +busbw +(#wrong|error)"
    r" +time +algbw +busbw +(?:#wrong|error) *"
)
_OWN = re.compile(r"[\w.-]+:\d+:\d+ \[\d+\] NCCL INFO .*|(?:NCCL|RCCL) version \S.*")
_COMMENT = re.compile(r"#(?! +Rank| +size| nThread| Avg| Out of| (?:nccl|rccl)-tests)(?: .*)?| *")
_ROW = re.compile(r" *\d+ +\d+ +[a-z]\w* .*")
_BOUNDS = re.compile(r"#? ?Out of bounds values : (\d+) (OK|FAILED) *")
_AVERAGE = re.compile(r"#? ?Avg bus bandwidth +: (\S+) *")
_CONCLUDED = re.compile(r"#(?: Collective test concluded: \w+)? *")
_PROGRAM = re.compile(r"\b(\w+?)_perf\b")

MOST_SIZES = 100_000


def _factor(function: str, ranks: int) -> float:
    """Return the bus bandwidth over bytes and time."""
    if function in _WHOLE:
        return 1.0
    return _OF_ALL[function][1] * (ranks - 1) / ranks


def _steps(least: int, most: int, step: int, unit: str) -> list[int]:
    """Return the sizes in bytes that a run asks for."""
    sizes = [least]
    while len(sizes) < MOST_SIZES:
        following = sizes[-1] * step if unit == "factor" else sizes[-1] + step
        if not sizes[-1] < following <= most:
            break
        sizes.append(following)
    return sizes


def _place(devices: Sequence[tuple[str, str]], amd: bool) -> str:
    """Return what was measured, from each rank's host and device."""
    hosts = len({host for host, _ in devices})
    where = "inside one node" if hosts == 1 else f"on {hosts} nodes"
    return f"{'ROCm' if amd else 'CUDA'} device memory, {len(devices)} GPUs {where}"


def _decimals(token: str) -> float:
    """Return half a unit of the last place of a printed number."""
    mantissa, _, exponent = token.partition("e")
    return 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


class _Sweep:
    """Rows of one type, operation and root: out of place and in place."""

    def __init__(self) -> None:
        self.rows: tuple[list[Row], list[Row]] = ([], [])
        self.sizes: list[int] = []

    def tables(
        self, path: str, first: int, name: Mapping[str, Any], remark: str
    ) -> Iterator[Table]:
        """Yield a table of each, without sizes that rounding to ranks made equal or nothing."""
        for rows, how in zip(self.rows, ("", "in place"), strict=True):
            by_size = {row.size: row for row in rows if row.size}
            if not by_size:
                continue
            facts = {}
            if any("times_us" in row.values for row in by_size.values()):
                facts = {"times_us": [row.values.get("times_us") for row in by_size.values()]}
            yield Table(
                path,
                rows=tuple(by_size.values()),
                first_line=first,
                remark=", ".join(filter(None, (remark, how))),
                facts=facts,
                **name,
            )


class _Text:
    """What a program prints, read line by line."""

    def __init__(self, lines: Lines, before: Sequence[str], named: str | None) -> None:
        self.lines, self.named = lines, named
        self.function, self.version, self.amd = "", None, False
        self.before = before

    def read(self) -> Output:
        """Return the output up to the mean of its bus bandwidths."""
        lines = self.lines
        first = lines.number + 1
        self._read_names()
        sweep = lines.expect(_SWEEP, "the sizes, `# nThread 1 nGpus 1 minBytes …`")
        asked = _steps(*map(int, sweep.groups()[:3]), sweep[4])
        devices: list[tuple[str, str]] = []
        while not _HEADER.fullmatch(lines.peek() or ""):
            if found := lines.match(_RANK):
                if int(found[1]) != len(devices):
                    lines.refuse(f"expected rank {len(devices)}: several runs may be mixed")
                devices.append((found[3], found[4]))
            elif not (lines.match(_COMMENT) or lines.match(_OWN)):
                lines.take("the header of the table")
                lines.refuse("is no line that nccl-tests prints before its table", TableError)
        header = lines.expect(_HEADER, "the header of the table")
        if not devices:
            lines.refuse("no line names a rank and its device", TableError)
        self.wrong_counts = header[3] == "#wrong"
        sweeps, factors, rates = self._read_rows()
        for one in sweeps.values():
            if len(one.sizes) != len(asked):
                lines.refuse(
                    f"{len(one.sizes)} sizes are there, and {len(asked)} were asked for, from"
                    f" {asked[0]} to {asked[-1]} bytes",
                    TableError,
                )
            if any(size > most for size, most in zip(one.sizes, asked, strict=True)):
                lines.refuse("a size is larger than the one that was asked for", TableError)
        self._read_end(rates)
        return self._output(sweeps, factors, devices, first)

    def _read_names(self) -> None:
        lines = self.lines
        if found := lines.match(_TESTS):
            self.version, self.amd = found[2], found[1] == "rccl"
        if found := lines.match(_STARTING):
            self.function = found[1]
        while not _SWEEP.fullmatch(lines.peek() or "") and (
            lines.match(_COMMENT) or lines.match(_OWN)
        ):
            pass

    def _read_rows(self) -> tuple[dict[tuple, _Sweep], list[float], list[float]]:
        """Return sweeps, and of each row the bus bandwidth over bytes and time, and itself."""
        lines = self.lines
        sweeps: dict[tuple, _Sweep] = {}
        factors: list[float] = []
        rates: list[float] = []
        while not _BOUNDS.fullmatch(lines.peek() or ""):
            if lines.match(_OWN) or lines.match(_COMMENT):
                continue
            line = lines.take("a row of the table, or its last lines")
            tokens = line.split()
            if not _ROW.fullmatch(line) or not 11 <= len(tokens) <= 13:
                lines.refuse("is no row that nccl-tests prints: give its output alone", TableError)
            size = int(tokens[0])
            one = sweeps.setdefault(tuple(tokens[2:-8]), _Sweep())
            if one.sizes and size < one.sizes[-1]:
                lines.refuse(f"{size} bytes after {one.sizes[-1]}: sizes must not decrease")
            one.sizes.append(size)
            for which, figures in enumerate((tokens[-8:-4], tokens[-4:])):
                if figures[:3] == ["N/A"] * 3:
                    continue
                row, factor = self._row(size, figures)
                one.rows[which].append(row)
                factors += factor
                rates.append(row.values["busbw"])
        if not sweeps:
            lines.refuse("the table has no row", TableError)
        return sweeps, factors, rates

    def _row(self, size: int, figures: Sequence[str]) -> tuple[Row, list[float]]:
        lines = self.lines
        names = ("time", "algbw", "busbw")
        time, rate, bus = (
            number(lines, f"{float(token):f}" if "e+" in token else token, name)
            for token, name in zip(figures, names, strict=False)
        )
        if not time:
            lines.refuse("a time of 0, which no collective takes")
        slack = _decimals(figures[0])
        least = size / 1e3 / (time + slack) - _decimals(figures[1])
        most = size / 1e3 / max(time - slack, 1e-9) + _decimals(figures[1])
        if not least * (1 - 1e-6) - 1e-6 <= rate <= most * (1 + 1e-6) + 1e-6:
            lines.refuse(
                f"algbw does not follow from bytes and time: {size / 1e3 / time:.2f} would"
            )
        wrong = 0.0
        if figures[3] != "N/A" and not re.fullmatch(r"[0-9.]+e[-+][0-9]+", figures[3]):
            wrong = number(lines, figures[3], "#wrong")
        failure = f"#wrong {figures[3]}" if wrong and self.wrong_counts else ""
        row = Row(lines.number, size, {"busbw": bus}, time, failure)
        # Rates of few digits say little.
        return row, [bus / rate] if rate >= 1 else []

    def _read_end(self, rates: Sequence[float]) -> None:
        lines = self.lines
        bounds = lines.expect(_BOUNDS, "`# Out of bounds values`")
        if bounds[2] == "FAILED":
            lines.refuse("results were wrong", TableError)
        average = number(lines, lines.expect(_AVERAGE, "`# Avg bus bandwidth`")[1], "busbw")
        mean = math.fsum(rates) / len(rates)
        if abs(average - mean) > 0.006 + 0.005 * mean:
            lines.refuse(f"the mean of the rows' bus bandwidths is {mean:.4g}: a row is missing")
        while lines.match(_CONCLUDED):
            pass

    def _output(
        self,
        sweeps: dict[tuple, _Sweep],
        factors: list[float],
        devices: list[tuple[str, str]],
        first: int,
    ) -> Output:
        lines, ranks = self.lines, len(devices)
        function = self.function or self.named or ""
        guess = ""
        if not function:
            said = {found for line in self.before for found in _PROGRAM.findall(line)}
            known = said & {*_OF_ALL, *_WHOLE}
            function = known.pop() if len(known) == 1 else ""
        factor = sorted(factors)[len(factors) // 2] if factors else None
        if not function:
            reduces = any("sum" in key or "prod" in key for key in sweeps)
            function = _guessed(factor, ranks, reduces=reduces)
            guess = (
                f"{lines.path}:{first}: no line names the program of this table of nccl-tests; its"
                f" rates are those of {function}, which is a guess: say --from 'nccl {function}'"
            )
        if function not in _OF_ALL and function not in _WHOLE:
            lines.refuse(f"{function}_perf is no program of nccl-tests that is read", TableError)
        expected = _factor(function, ranks)
        if factor is not None and abs(factor - expected) > 0.02 * max(factor, expected):
            lines.refuse(
                f"busbw is {factor:.3g} of algbw, and of {function} on {ranks} ranks it is"
                f" {expected:.3g}"
            )
        name = {"function": function, "ranks": ranks, "messages": expected}
        return _whole(
            lines.path,
            self.version,
            sweeps,
            name,
            _place(devices, self.amd or "AMD" in devices[0][1]),
            first,
            guess,
        )


def _guessed(factor: float | None, ranks: int, *, reduces: bool) -> str:
    """Return a function whose rates have that factor; alltoall has the rates of all_gather."""
    candidates = ("all_reduce", "reduce_scatter", "reduce")
    if not reduces:
        candidates = ("all_gather", "broadcast")
    distance = {name: abs((factor or 1) - _factor(name, ranks)) for name in candidates}
    return min(distance, key=lambda name: distance[name])


def _whole(
    path: str,
    version: str | None,
    sweeps: Mapping[tuple, _Sweep],
    name: Mapping[str, Any],
    place: str,
    first: int = 0,
    guess: str = "",
) -> Output:
    tables = [
        table
        for key, sweep in sweeps.items()
        for table in sweep.tables(
            path,
            first,
            name,
            ", ".join(
                filter(
                    None,
                    (place, " ".join(key) if len(sweeps) > 1 else "", GUESS if guess else ""),
                )
            ),
        )
    ]
    if not tables:
        raise ParseError(path, first, "", "has no size above 0 bytes")
    return Output(
        "nccl",
        "nccl-tests",
        path,
        version,
        tuple(tables),
        several=True,
        ended=True,
        guess=guess,
    )


class Nccl(Benchmark):
    """Programs of nccl-tests and rccl-tests, which no check starts."""

    number = 4
    name = "nccl"
    label = "NCCL"
    output_of = "nccl-tests"
    only_read = tuple(
        Function("nccl", name, rated=True, collective=mpi)
        for name, mpi in (*((one, of[0]) for one, of in _OF_ALL.items()), *_WHOLE.items())
    )
    heads: ClassVar[re.Pattern[str]] = re.compile(
        r"(?P<program># (?:nccl|rccl)-tests version )"
        r"|(?P<columns>#? ?nThread \d+ nGpus |# Collective test starting)"
    )

    def program(self, function: str) -> str:
        """Return ``all_reduce_perf``."""
        return f"{function}_perf"

    def read_next(
        self,
        lines: Lines,
        before: Sequence[str],
        *,
        bidirectional: bool = False,
        function: str | None = None,
    ) -> Output:
        """Return a run from the version or the sizes on, to the mean of its rates."""
        output = _Text(lines, before, function).read()
        return Output(**{**vars(output), "preamble": printed_lines(before)})

    def read_document(self, content: Any, path: str) -> Output | None:
        """Return what ``-J`` wrote."""
        if not isinstance(content, dict) or not {"nccl_version", "config"} <= content.keys():
            return None
        try:
            return self._of_document(content, path)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            reason = f"is no result of nccl-tests that is read: {type(error).__name__} {error}"
            raise ParseError(path, 0, "", reason) from error

    def _of_document(self, content: Mapping[str, Any], path: str) -> Output:
        config = content["config"]
        if "end_time" not in content or "average_bus_bandwidth" not in content:
            raise ParseError(path, 0, "", "has no end_time: the run broke off")
        (function,) = {found for word in content["args"] for found in _PROGRAM.findall(word)}
        devices = [(one["hostname"], one["device_info"]) for one in config["devices"]]
        expected = _factor(function, len(devices))
        sweeps: dict[tuple, _Sweep] = {}
        rates = []
        for entry in content["results"]:
            one = sweeps.setdefault((entry["type"], entry["redop"], str(entry["root"])), _Sweep())
            one.sizes.append(int(entry["size"]))
            for which, how in enumerate(("out_of_place", "in_place")):
                figures = entry.get(how)
                if figures is None:
                    continue
                time = float(figures.get("time", figures.get("cpu_time")))
                if not time > 0 or not math.isclose(
                    figures["bus_bw"], expected * entry["size"] / 1e3 / time, rel_tol=1e-3
                ):
                    reason = f"bus_bw of {entry['size']} bytes does not follow from bytes and time"
                    raise ParseError(path, 0, str(figures["bus_bw"]), reason)
                values = {"busbw": figures["bus_bw"]}
                if each := entry.get(f"{how}_per_iter"):
                    values["times_us"] = each["times_us"]
                wrong = figures.get("nwrong")
                failure = f"nwrong {wrong}" if wrong else ""
                one.rows[which].append(Row(0, int(entry["size"]), values, time, failure))
                rates.append(figures["bus_bw"])
        unit = "factor" if "step_factor" in config else "bytes"
        asked = _steps(
            *(config[key] for key in ("minimum_bytes", "maximum_bytes", f"step_{unit}")), unit
        )
        mean = math.fsum(rates) / len(rates)
        said = content["average_bus_bandwidth"]["bandwidth"]
        if any(len(one.sizes) != len(asked) for one in sweeps.values()) or not math.isclose(
            mean, said, rel_tol=1e-3
        ):
            raise ParseError(path, 0, "", f"results are missing: {len(asked)} sizes were asked for")
        name = {"function": function, "ranks": len(devices), "messages": expected}
        place = _place(devices, "AMD" in devices[0][1])
        return _whole(path, str(content["nccl_version"]), sweeps, name, place)


BENCHMARK = Nccl()
