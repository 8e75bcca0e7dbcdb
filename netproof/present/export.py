"""``netproof store export``: a session as CSV, JSON, or NetPIPE files with gnuplot scripts."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from netproof.benchmarks import registry
from netproof.errors import NetproofError
from netproof.measurement.case import BITS_PER_BYTE, MEBI, Case, Curve
from netproof.present import terminal
from netproof.present.wording import counted
from netproof.store import Store, StoredSession, questions

_NAME = re.compile(r"[\w.+-]+")
_US_PER_S = 1e6
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def export(store: Path, name: str, form: str, folder: Path) -> None:
    """Write a session into ``folder``, which has to be new or empty, and print what was written.

    ``name``: as ``Store.find`` takes it. Raises NetproofError where the session cannot be read, or
    ``folder`` holds files already, and OSError where it cannot be written.
    """
    opened = Store(store)
    stored = opened.find(name)
    with terminal.working(f"writing session {stored.name}"):
        texts, left_out = _WRITERS[form](opened, stored)
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise NetproofError(f"{folder}: is not empty; name a new folder")
        for file, text in texts.items():
            (folder / file).write_text(text, newline="")
    count = counted(len(texts), "file")
    terminal.say(f"session {stored.name} of {stored.system}: {count} in {folder}")
    if left_out:
        have = counted(left_out, "case has", "cases have")
        terminal.say(f"{have} no rate as NetPIPE has one, and no file")


def netpipe_text(curve: Curve, *, bidirectional: bool) -> str:
    """Return a curve in the columns of NetPIPE 3.7.2's ``-o``: bytes, Mbps of 2²⁰ bit/s, seconds.

    ``bidirectional``: bytes and rate count both directions, as NetPIPE's do. Raises NetproofError
    for a time that would be written as 0.
    """
    lines = []
    for size, time_us in zip(curve.sizes, curve.time_us, strict=True):
        seconds = time_us / _US_PER_S
        if f"{seconds:.8f}" == f"{0:.8f}":
            raise NetproofError(f"{time_us} µs at {size} bytes is shorter than NetPIPE writes")
        moved = 2 * size if bidirectional else size
        rate = moved * BITS_PER_BYTE / MEBI / seconds
        lines.append(f"{moved:8.0f} {rate:f} {seconds:12.8f}\n")
    return "".join(lines)


def _gnuplot_text(
    curves: Mapping[str, str], *, title: str, columns: str, x_label: str, output: str
) -> str:
    """Return a gnuplot script after the NetPIPE how-to: one line for each of ``curves``.

    ``curves``: name to file. ``columns``: what to plot, ``1:2`` for rate over size; the first is on
    a logarithmic scale.
    """
    plots = ", \\\n".join(
        f" {_quoted(file)} using {columns} title {_quoted(name)} with linespoints"
        for name, file in curves.items()
    )
    return f"""\
# gnuplot {output.removesuffix(".svg")}.gp writes {output}
set terminal svg size 1200,800 noenhanced background 'white'
set output {_quoted(output)}
set title {_quoted(title)}
set xlabel {_quoted(x_label)}
set ylabel 'Throughput (Mbps of 2^20 bit/s)'
set logscale x
set format x '%g'
set key outside right top
set grid
plot \\
{plots}
"""


def _csv(store: Store, stored: StoredSession) -> tuple[dict[str, str], int]:
    texts = {}
    place = dict(part.split("=", 1) for part in stored.place.parts)
    for name, table in questions.tables(store, stored).items():
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*place, *table.column_names])
        for row in table.to_pylist(maps_as_pydicts="strict"):
            writer.writerow([*place.values(), *map(_cell, row.values())])
        texts[f"{name}.csv"] = text.getvalue()
    return texts, 0


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=_plain)
    return _plain(value) if isinstance(value, datetime) else csv_cell(value)


def csv_cell(value: Any) -> Any:
    """Return a value for a CSV cell: text that a spreadsheet takes for a formula gets a '.

    Numbers stay numbers, below 0 too. After OWASP's page on CSV injection.
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _plain(value: datetime) -> str:
    return value.isoformat(timespec="microseconds") + "Z"


def _json(store: Store, stored: StoredSession) -> tuple[dict[str, str], int]:
    tables = {
        name: table.to_pylist(maps_as_pydicts="strict")
        for name, table in questions.tables(store, stored).items()
    }
    document = {"system": stored.system, "session": stored.name, "tables": tables}
    text = json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False, default=_plain)
    return {f"{stored.name}.json": text + "\n"}, 0


def _netpipe(store: Store, stored: StoredSession) -> tuple[dict[str, str], int]:
    texts: dict[str, str] = {}
    medians: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    left_out = 0
    for result in questions.load(store, stored).results:
        if result.case is None or result.measured is None:
            continue
        case = result.case
        if not registry.function_of(case).single:
            left_out += 1
            continue
        stem, measured = _stem(case), result.measured
        curves = {f"{stem}.np": measured.curve}
        curves |= {f"{stem}.{one.number}.np": one.curve for one in measured.launches}
        for name, curve in curves.items():
            texts[name] = netpipe_text(curve, bidirectional=case.direction == "bidirectional")
        line = f"{case.environment} {case.benchmark} {case.function}"
        medians[case.partition, case.path, case.direction][line] = f"{stem}.np"
    if not texts:
        of_mpi = (one for several in registry.MPI_BENCHMARKS for one in several.functions)
        like = [one.name for one in of_mpi if one.single]
        raise NetproofError(
            f"session {stored.name}: has no case of NetPIPE, {' or '.join(like)} that is complete"
        )
    for (partition, path, direction), named in medians.items():
        both = ", both directions counted" if direction == "bidirectional" else ""
        where = f"{stored.system}:{partition}, {path} nodes{both}, session {stored.name}"
        for kind, title, columns, x_label in (
            ("throughput", "Throughput over size", "1:2", "Size (bytes)"),
            ("signature", "Network signature", "3:2", "Time (s)"),
        ):
            name = f"{kind}-{partition}-{path}-{direction}"
            labels = {"title": f"{title}, {where}", "columns": columns, "x_label": x_label}
            texts[f"{name}.gp"] = _gnuplot_text(named, **labels, output=f"{name}.svg")
    return texts, left_out


def _stem(case: Case) -> str:
    parts = [case.partition, case.environment, case.benchmark, case.function]
    if registry.of(case).by_protocol:
        parts += [case.path, case.direction]
    stem = "-".join(parts)
    if not _NAME.fullmatch(stem):
        raise NetproofError(f"{case}: {stem!r} makes no file's name")
    return stem


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_WRITERS = {"csv": _csv, "json": _json, "netpipe": _netpipe}
"""Each returns texts by the names of their files, and how many cases the format cannot hold."""
