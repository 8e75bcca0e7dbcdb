"""Judges of the readers of benchmarks' outputs: NetPIPE's file and print, IMB's tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from ci.attacking.inputs import DATA, RIGHT, WRITTEN, Attack, Input, Judge, of_files
from netproof.benchmarks import imb, imb_tables, netpipe
from netproof.errors import NetproofError


def _ways_round(origin: str) -> bool:
    return "both-ways" in origin


def _netpipe(read: Callable[..., netpipe.NetpipeOutput]) -> Judge:
    @cache
    def truth(origin: str) -> dict[int, float]:
        output = read(Path(origin).read_text(), origin, bidirectional=_ways_round(origin))
        return dict(output.points)

    def judge(given: Input) -> str:
        both = _ways_round(given.origin)
        output = read(given.text, given.origin, bidirectional=both)
        known = truth(given.origin)
        if all(known.get(size) == time_us for size, time_us in output.points):
            there = [size for size, _ in output.points]
            between = [size for size in known if there[0] <= size <= there[-1]]
            return RIGHT if there == between else f"lacks sizes: {sorted({*between} - {*there})}"
        # Nothing may follow the rows.
        lines = given.text.strip().split("\n")[-len(output.points) :]
        for line, point in zip(lines, output.points, strict=True):
            words = line.replace(":", " ").split()
            stated = (
                (int(words[0]) // (2 if both else 1), float(words[2]) * 1e6)
                if len(words) == 3
                else (int(words[1]), float(words[-2]))
            )
            if stated[0] != point[0] or abs(stated[1] - point[1]) > 0.011:
                return f"{line!r} says {stated}, and read was {point}"
        return WRITTEN

    return judge


def _imb() -> Judge:
    def rows(output: imb.ImbOutput) -> dict[tuple, tuple]:
        return {
            (table.function, table.ranks, table.group, row.size): (
                imb_tables.time_us(row),
                row.values["#repetitions"],
            )
            for table in output.tables
            for row in table.rows
        }

    @cache
    def truth(origin: str) -> dict[tuple, tuple]:
        return rows(imb.BENCHMARK.read(Path(origin).read_text(), origin))

    def judge(given: Input) -> str:
        output = imb.BENCHMARK.read(given.text, given.origin)
        if rows(output).items() <= truth(given.origin).items():
            return RIGHT
        lines = given.text.split("\n")
        for table in output.tables:
            for row in table.rows:
                words = [float(word) for word in lines[row.line - 1].split()]
                time_us = (
                    row.values["Msg/sec"]
                    if row.values.get("Msg/sec") is not None
                    else imb_tables.time_us(row)
                )
                sizes = () if table.function == "Barrier" else (row.size,)
                if not {*sizes, row.values["#repetitions"], time_us} <= set(words):
                    return f"line {row.line} says {words}, and read was {row}"
        return WRITTEN

    return judge


def _reads(read: Callable[..., Any], path: Path) -> bool:
    more = {} if "imb" in path.parts else {"bidirectional": _ways_round(path.name)}
    try:
        read(path.read_text(), str(path), **more)
    except NetproofError:
        return False
    return True


def attacks(_folder: Path) -> tuple[Attack, ...]:
    """Return the attacks on the parsers of benchmarks' outputs, by recorded outputs."""
    fine = [
        path for path in sorted((DATA / "netpipe" / "3.7.2").glob("*")) if "hung" not in path.name
    ]
    file, printed = netpipe.read_file, netpipe.BENCHMARK.read
    files = [path for path in fine if path.suffix == ".out" and _reads(file, path)]
    prints = [path for path in fine if path.suffix == ".stderr" and _reads(printed, path)]
    tables = [
        path for path in sorted((DATA / "imb").rglob("*.txt")) if _reads(imb.BENCHMARK.read, path)
    ]
    return (
        Attack("NetPIPE file", of_files(files), _netpipe(file)),
        Attack("NetPIPE print", of_files(prints), _netpipe(printed)),
        Attack("IMB output", of_files(tables), _imb()),
    )
