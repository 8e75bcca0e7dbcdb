"""``netproof parse``: outputs of benchmarks as JSON, or their faults."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from netproof.benchmarks.outputs import read, text_of
from netproof.errors import NetproofError

READ, FAULTY = 0, 2
"""Exit statuses of ``netproof parse``."""


def run(paths: Iterable[Path], *, bidirectional: bool, out: TextIO, err: TextIO) -> int:
    """Write a list to ``out``, an object for each file that was read; faults to ``err``.

    Returns 2 if a file could not be read, is not a benchmark's output, or reports a failed
    measurement; else 0. A file with a failed measurement is in the list all the same.
    """
    entries: list[dict[str, Any]] = []
    faults: list[str] = []
    for path in paths:
        try:
            output = read(text_of(path), str(path), bidirectional=bidirectional)
        except NetproofError as fault:
            faults.append(str(fault))
            continue
        entries.append(output.document(faults))
    out.write(json.dumps(entries, indent=1, allow_nan=False) + "\n")
    for sentence in faults:
        err.write(f"netproof: {sentence}\n")
    return FAULTY if faults else READ
