"""``netproof parse``: outputs of benchmarks as JSON, or what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from netproof.benchmarks import imb, netpipe
from netproof.benchmarks.outputs import read, text_of
from netproof.errors import NetproofError, ParseError

READ, FAULTY = 0, 2
"""Exit statuses of ``netproof parse``."""

UNITS = {"sizes": "bytes", "time": "us", "bandwidth": "MB/s of 10^6 bytes"}


def run(paths: Iterable[Path], *, bidirectional: bool, out: TextIO, err: TextIO) -> int:
    """Write a list to ``out``, an object for each file that was read; faults to ``err``.

    Returns 2 if any file could not be read, is not what a benchmark prints, or says that a
    measurement failed (such a file is in the list all the same), else 0.
    """
    entries: list[dict[str, Any]] = []
    faults: list[str] = []
    for path in paths:
        try:
            output = read(text_of(path), str(path), bidirectional=bidirectional)
        except NetproofError as fault:
            faults.append(str(fault))
            continue
        if isinstance(output, imb.ImbOutput):
            entries.append(_imb_entry(output, faults))
        else:
            entries.append(_netpipe_entry(output))
    out.write(json.dumps(entries, indent=1, allow_nan=False) + "\n")
    for sentence in faults:
        err.write(f"netproof: {sentence}\n")
    return FAULTY if faults else READ


def _imb_entry(output: imb.ImbOutput, faults: list[str]) -> dict[str, Any]:
    tables = []
    for table in output.tables:
        try:
            bandwidth = table.curve().bandwidth_mb_s
        except ParseError as fault:
            faults.append(str(fault))
            bandwidth = None
        tables.append(
            {
                "function": table.function,
                "ranks": table.ranks,
                "waiting": table.waiting,
                "groups": table.groups,
                "group": table.group,
                "mode": table.mode,
                "lines": [table.first_line, table.last_line],
                "sizes_bytes": [row.size for row in table.rows],
                "repetitions": [row.repetitions for row in table.rows],
                "time_us": [row.time_us for row in table.rows],
                "time_min_us": _column(row.t_min_us for row in table.rows),
                "time_avg_us": _column(row.t_avg_us for row in table.rows),
                "bandwidth_mb_s": bandwidth,
                "messages_s": _column(row.messages_s for row in table.rows),
                "defects": _column(row.defects for row in table.rows),
                "failures": [
                    {"line": f.line, "size_bytes": f.size, "text": f.text} for f in table.failures
                ],
            }
        )
    return {
        "file": output.path,
        "benchmark": "IMB-MPI1",
        "version": output.version,
        "printed_megabyte_bytes": output.megabyte,
        "processes": output.processes,
        "units": UNITS,
        "tables": tables,
        "preamble": output.preamble,
        "epilogue": output.epilogue,
    }


def _column(values: Iterable[float | None]) -> list[float | None] | None:
    """Return the values, or None where the table has no such column."""
    column = list(values)
    return column if any(value is not None for value in column) else None


def _netpipe_entry(output: netpipe.NetpipeOutput) -> dict[str, Any]:
    curve = output.curve()
    return {
        "file": output.path,
        "benchmark": "NetPIPE",
        "version": output.release,
        "bidirectional": output.bidirectional,
        "units": UNITS,
        "sizes_bytes": curve.sizes,
        "time_us": curve.time_us,
        "bandwidth_mb_s": curve.bandwidth_mb_s,
        "bandwidth_both_ways_mb_s": output.both_ways_mb_s,
        "preamble": output.preamble,
    }
