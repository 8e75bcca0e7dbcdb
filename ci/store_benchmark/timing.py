"""Time and memory of an answer, in a process of its own."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from ci.store_benchmark.ways import QUESTIONS, WAYS

REPEATS = 5
BYTES_IN_MIB = 2**20


def _forget(folder: Path) -> None:
    """Drop the store's files from the page cache."""
    for path in folder.rglob("*.parquet"):
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def _timed(question: Callable[[Path], Any], folder: Path, results: Any) -> None:
    started = time.perf_counter()
    answer = question(folder)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    results.put((seconds, peak, len(answer)))


def measure(question: Callable[[Path], Any], folder: Path, *, cold: bool) -> tuple[float, int, int]:
    """Return seconds, peak memory in bytes and rows of one question in a fresh process."""
    if cold:
        _forget(folder)
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    process = context.Process(target=_timed, args=(question, folder, results))
    process.start()
    process.join()
    if process.exitcode != 0:
        raise RuntimeError(f"{question.__name__} ended with {process.exitcode}")
    return results.get()


def ask(folder: Path, *, naive: bool) -> list[dict[str, Any]]:
    """Time every question in every way: the median of warm repeats, and once with cold files."""
    found = []
    for name, ways in QUESTIONS.items():
        for way, question in zip(WAYS, ways, strict=False):
            ours = way == WAYS[0]
            if not (ours or naive):
                continue
            cold = measure(question, folder, cold=True) if ours else None
            warm = [measure(question, folder, cold=False) for _ in range(REPEATS if ours else 1)]
            found.append(
                {
                    "question": name,
                    "way": way,
                    "seconds": round(median(seconds for seconds, _, _ in warm), 3),
                    "slowest_s": round(max(seconds for seconds, _, _ in warm), 3),
                    "cold_s": round(cold[0], 3) if cold else None,
                    "peak_mib": round(max(peak for _, peak, _ in warm) / BYTES_IN_MIB),
                    "rows": warm[0][2],
                }
            )
            print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    return found
