"""Measure how well changes in nightly series are found, on histories with known answers.

docs/validation/history.md has the results. Also the noise of stored sessions, and the time of one
more night.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ci.evaluation.histories import (
    AFTER,
    BEFORE,
    CUSUM,
    FULL,
    NETPROOF,
    NORMAL,
    PELT,
    REAL,
    SEEN,
    SMOKE,
    Floats,
    Method,
    Noise,
    Rate,
    Size,
    bad_nights,
    by_netproof,
    changed,
    drift,
    found,
    histories,
    otava,
    step,
)
from netproof.errors import NetproofError
from netproof.history import judging
from netproof.history.changes import controlled, expected_false_alarms
from netproof.history.followers import follow_all
from netproof.present.history import document
from netproof.store import Store, questions
from netproof.store.tables import KEY

STEPS = (0.02, 0.05, 0.10, 0.20)
DRIFTS = ((0.05, 60), (0.10, 60))
"""Relative size, and nights until it is reached."""
BAD_NIGHTS = (0.10, 0.20, 0.50, 1.00)
WITHIN = (3, 4, 7)
POOLS = (2, 4, 8)
POOLED = (
    ("normal", False, "normal, each its own"),
    ("normal", True, "normal, half of it shared"),
    ("recorded", True, "recorded, of the same nights"),
)
COLD = (5, 9)
COLD_STEPS = (0.10, 0.20, 0.50)


@dataclass(frozen=True)
class Job:
    """A row of a table: ``head`` holds its first cells, ``cells`` computes the others.

    ``cells`` takes the threshold at which ``method`` has the rate ``TARGET`` on ``noise``.
    """

    table: str
    head: tuple[str, ...]
    cells: Callable[[float], tuple[str, ...]]
    method: Method = NETPROOF
    noise: Noise = NORMAL


def percent(share: float) -> str:
    """Format a share for a table."""
    return f"{100 * share:.1f} %"


def by_method(
    method: Method, noise: Noise, size: Size, before: int, threshold: float
) -> tuple[str, ...]:
    """Return false alarms per year, and how a step of 5 % is found."""
    rate = method.rate(noise, size, threshold, before, seed=4)
    change = changed(before, AFTER, step(0.05))
    return rate.a_year(), *by_change(method, noise, size, change, threshold)


def by_change(
    method: Method, noise: Noise, size: Size, change: Floats, threshold: float
) -> tuple[str, ...]:
    """Return how a method finds a change."""
    nights_to = found(method, threshold, noise, size, change)
    return (*(percent(nights_to.within(nights)) for nights in WITHIN), nights_to.median)


def cold(size: Size, nights: int, off: float, threshold: float) -> tuple[str, ...]:
    """Return how netproof finds a step after few nights, with the threshold of many."""
    few = replace(size, null_nights=10 - nights, null_series=20 * size.null_series)
    rate = NETPROOF.rate(NORMAL, few, threshold, nights, seed=5)
    change = changed(nights, AFTER, step(off))
    return rate.a_year(), *by_change(NETPROOF, NORMAL, size, change, threshold)


def by_bad_night(noise: Noise, size: Size, off: float, threshold: float) -> tuple[str, ...]:
    """Return how single bad nights were reported."""
    nights = bad_nights(threshold, noise, size, off)
    return f"{nights.as_such} of {nights.series}", f"{nights.as_step} of {nights.series}"


def noisier(size: Size, threshold: float) -> tuple[str, ...]:
    """Return false alarms in the 60 nights after the noise doubled."""
    values = histories(NORMAL, size.series, BEFORE + 60, 6, None)
    values[:, BEFORE:] **= 2
    alarms = [
        night for alarms in by_netproof(values, threshold) for night, _ in alarms if night >= BEFORE
    ]
    first, later = (
        Rate(sum(low <= night - BEFORE < low + 30 for night in alarms), 30 * len(values))
        for low in (0, 30)
    )
    return first.a_year(), later.a_year()


def over_all(noise: Noise, size: Size, _: float) -> tuple[str, ...]:
    """Return false alarms that ``controlled`` lets through on many unchanged series."""
    nights, series = 30, size.null_series
    values = histories(noise, series, 90 + nights, 7, None).tolist()
    let_through: list[frozenset[int]] = [frozenset()]
    p_values = []
    for night in range(90, 90 + nights):
        followed = follow_all([row[: night + 1] for row in values])
        p_values += [one.p_value for one in followed]
        let_through.append(controlled(dict(enumerate(one.p_value for one in followed))))
    new = sum(len(tonight - before) for before, tonight in pairwise(let_through))
    shares = (f"{np.mean(np.array(p_values) <= p):.1e}" for p in (1e-2, 1e-3, 1e-4))
    return str(new), f"{expected_false_alarms(series, nights):.1f}", *shares


def jobs(size: Size, otava_python: str | None) -> list[Job]:
    """Return all rows of all tables."""
    methods = [
        (CUSUM, NORMAL, BEFORE),
        *((NETPROOF, NORMAL, nights) for nights in (BEFORE, 90, 40, 20)),
        (PELT, NORMAL, BEFORE),
        *([(otava(otava_python), NORMAL, SEEN)] if otava_python else []),
        (NETPROOF, REAL, BEFORE),
    ]
    rows = [
        Job(
            "methods",
            (method.name, noise.name, str(before)),
            partial(by_method, method, noise, size, before),
            method,
            noise,
        )
        for method, noise, before in methods
    ]
    for name, shared, words in POOLED:
        for pool in POOLS:
            noise = Noise(name, pool, shared)
            cells = partial(by_method, NETPROOF, noise, size, BEFORE)
            # Pooled normal noise stays normal, with the same threshold.
            threshold_of = NORMAL if name == "normal" else noise
            rows.append(Job("pools", (str(pool), words), cells, noise=threshold_of))
    changes = [(f"step of {percent(off)}", step(off), AFTER) for off in STEPS]
    changes += [
        (f"drift of {percent(off)} over {over} nights", drift(off, over), 2 * over)
        for off, over in DRIFTS
    ]
    for noise in (NORMAL, REAL):
        for name, shape, after in changes:
            change = changed(BEFORE, after, shape)
            cells = partial(by_change, NETPROOF, noise, size, change)
            rows.append(Job("changes", (name, noise.name), cells, noise=noise))
        for off in BAD_NIGHTS:
            cells = partial(by_bad_night, noise, size, off)
            rows.append(Job("bad nights", (percent(off), noise.name), cells, noise=noise))
        cells = partial(over_all, noise, size)
        rows.append(Job("control", (noise.name, str(size.null_series)), cells))
    rows += [
        Job("cold", (f"step of {percent(off)}", str(nights)), partial(cold, size, nights, off))
        for nights in COLD
        for off in COLD_STEPS
    ]
    return [*rows, Job("noisier", ("from 2 % to 4 %",), partial(noisier, size))]


_FOUND = (*(f"within {nights} nights" for nights in WITHIN), "median nights")
HEADS = {
    "methods": ("method", "noise", "nights before", "false alarms a series and year", *_FOUND),
    "pools": ("series", "noise", "false alarms a pool and year", *_FOUND),
    "changes": ("change", "noise", *_FOUND),
    "cold": ("change", "nights before", "false alarms a series and year", *_FOUND),
    "bad nights": ("off by", "noise", "reported as such", "reported as a step"),
    "noisier": ("noise", "false alarms a series and year, nights 1 to 30", "31 to 60"),
    "control": (
        *("noise", "series", "false alarms in 30 nights", "expected at most"),
        *(f"p up to {p}" for p in ("0.01", "0.001", "0.0001")),
    ),
}


def _calibrated(task: tuple[Method, Noise, Size]) -> float:
    method, noise, size = task
    return method.calibrated(noise, size)


def _cells(task: tuple[Job, float]) -> tuple[str, ...]:
    job, threshold = task
    return job.cells(threshold)


def tables(done: Sequence[tuple[Job, tuple[str, ...]]]) -> str:
    """Return the rows as Markdown, a table for each kind."""
    lines = []
    for name, head in HEADS.items():
        lines += [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
        lines += [
            f"| {' | '.join((*job.head, *cells))} |" for job, cells in done if job.table == name
        ]
        lines.append("")
    return "\n".join(lines)


def results(rows: Sequence[Job], size: Size) -> list[tuple[str, ...]]:
    """Return the cells of all rows, after calibrating each method on each of its noises."""
    methods = {(row.method.name, row.noise): row.method for row in rows}
    with multiprocessing.Pool(os.cpu_count()) as processes:
        tasks = [(method, noise, size) for (_, noise), method in methods.items()]
        found_ = processes.map(_calibrated, tasks, chunksize=1)
        thresholds = dict(zip(methods, found_, strict=True))
        for (name, noise), threshold in thresholds.items():
            print(f"{name}, {noise}: threshold {threshold:.3g}", file=sys.stderr)
        given = [(row, thresholds[row.method.name, row.noise]) for row in rows]
        return processes.map(_cells, given, chunksize=1)


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, the noise of a store, or the time of one more night."""
    parser = argparse.ArgumentParser(prog="ci/history-benchmark", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="fewer series: about a minute")
    parser.add_argument("--otava", metavar="PYTHON", help="a Python with apache-otava")
    commands = parser.add_subparsers(dest="command")
    recording = commands.add_parser("noise", help="print the noise of stored sessions")
    recording.add_argument("store", type=Path)
    recording.add_argument("system")
    adding = commands.add_parser("night", help="time the last night of a store, and all of them")
    adding.add_argument("store", type=Path)
    adding.add_argument("--least", type=int, default=1, metavar="N", help="the shortest of N runs")
    options = parser.parse_args(arguments)
    if options.command == "night":
        return print_added_night(options.store, options.least)
    if options.command == "noise":
        try:
            print(json.dumps(record(options.store, options.system), indent=0))
        except NetproofError as error:
            raise SystemExit(f"ci/history-benchmark: {error}") from error
        return 0
    if options.otava and shutil.which(options.otava) is None:
        parser.error(f"--otava: {options.otava} is no program")
    size = SMOKE if options.smoke else FULL
    rows = jobs(size, options.otava)
    done = results(rows, size)
    print(tables(list(zip(rows, done, strict=True))))
    return 0
