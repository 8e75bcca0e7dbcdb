"""Noise of stored sessions, and the time of one more night."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from netproof.history import judging
from netproof.present.history import document
from netproof.store import Store, questions
from netproof.store.tables import KEY

LANDMARKS = ("latency_us", "peak_mb_s", *(f"rate_{kib}_kib_mb_s" for kib in (1, 4, 16, 64)))
LEAST_SESSIONS = 8


def record(store: Path, system: str) -> dict[str, Any]:
    """Return the deviations of nights from their series' median: logarithms, by series.

    A series counts if it has a value in every measured session, and in at least 8.
    """
    opened = Store(store)
    columns = ", ".join(["session", *KEY, *LANDMARKS])
    found = questions.ask(
        opened,
        opened.sessions(system),
        ["cases"],
        f"select {columns} from cases order by session",
    ).to_pylist()
    by_series: dict[str, dict[str, float]] = {}
    for row in found:
        for name in LANDMARKS:
            if row[name] is not None:
                case = " ".join(str(row[column]) for column in KEY)
                by_series.setdefault(f"{case} {name}", {})[row["session"]] = row[name]
    sessions = sorted({session for values in by_series.values() for session in values})
    if len(sessions) < LEAST_SESSIONS:
        raise SystemExit(f"{store}: {len(sessions)} sessions, at least {LEAST_SESSIONS} are needed")
    deviations = {}
    for name, values in sorted(by_series.items()):
        if len(values) == len(sessions):
            logs = np.log([values[session] for session in sessions])
            off = logs - np.median(logs)
            if np.median(np.abs(off)) > 0:
                deviations[name] = [round(float(value), 5) for value in off]
    return {"sessions": sessions, "deviations": deviations}


@dataclass(frozen=True)
class HistoryTime:
    """Seconds of a store's history in a process of its own, by the clock and of the CPU.

    ``document``: digest of the history.
    """

    clock_s: float
    cpu_s: float
    document: str


def _follow(folder: Path, results: Any) -> None:
    clock_s, cpu_s = time.perf_counter(), time.process_time()
    verdict = judging.judge(Store(folder))
    clock_s, cpu_s = time.perf_counter() - clock_s, time.process_time() - cpu_s
    text = json.dumps(document(verdict, series=True))
    results.put(HistoryTime(clock_s, cpu_s, hashlib.sha256(text.encode()).hexdigest()))


def timed_history(folder: Path) -> HistoryTime:
    """Time a store's history from opening to verdict, without the start of Python."""
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    process = context.Process(target=_follow, args=(folder, results))
    process.start()
    process.join()
    if process.exitcode != 0:
        raise SystemExit(f"ci/history-benchmark: a history ended with {process.exitcode}")
    return results.get()


def added_night(folder: Path, least: int = 1) -> dict[str, HistoryTime]:
    """Time the last night of a store, with the stored history of earlier nights and without it.

    A copy of hard links is used, and the store stays as it is. Each way runs ``least`` times; the
    least CPU time counts.
    """
    sessions = Store(folder).sessions()
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        copy = Path(scratch) / "store"
        Store.create(copy)
        for stored in sessions:
            shutil.copytree(folder / stored.place, copy / stored.place, copy_function=os.link)
        store, last = Store(copy), copy / sessions[-1].place
        history, aside = store.followed(sessions[-1].system), Path(scratch) / "last"
        last.rename(aside)
        timed_history(copy)
        before = history.read_bytes()
        aside.rename(last)
        found: dict[str, list[HistoryTime]] = {"one night more": [], "from the first night": []}
        for _ in range(least):
            history.write_bytes(before)
            found["one night more"].append(timed_history(copy))
            history.unlink()
            found["from the first night"].append(timed_history(copy))
        return {name: min(several, key=lambda one: one.cpu_s) for name, several in found.items()}


def print_added_night(folder: Path, least: int) -> int:
    """Print the table of ``added_night``; return 0 if both ways agree."""
    found = added_night(folder, least)
    one, all_nights = found.values()
    print("| what is followed | seconds | of CPU |\n| --- | --- | --- |")
    for name, timed in found.items():
        print(f"| {name} | {timed.clock_s:.2f} | {timed.cpu_s:.2f} |")
    same = one.document == all_nights.document
    print(
        f"\n{len(Store(folder).sessions())} nights; ratio {all_nights.clock_s / one.clock_s:.1f},"
        f" of CPU {all_nights.cpu_s / one.cpu_s:.1f}; the results are"
        f" {'the same' if same else 'NOT THE SAME'}"
    )
    return 0 if same else 1
