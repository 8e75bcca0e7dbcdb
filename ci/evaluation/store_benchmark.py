"""Make stores of many nights, and time what a history asks of a night.

A night has 6 switches, 7 environments, 8 functions, 3 rank counts, 24 sizes and 3 launches:
72,576 rows of curves. The times are made up; everything else, the writing included, is the
store's own code. docs/validation/store.md has the results.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from netproof.site.partition import ScoreBaseline
from netproof.store import Store, StoredSession, questions
from netproof.store.folder import MARKER
from netproof.store.tables import KEY, TABLES

SYSTEM = "generated"
SWITCHES = ("edge-a", "edge-b", "fast-ethernet", "gige", "roce", "spine")
ENVIRONMENTS = ("impi-gcc", "impi-icx", "mpich-clang", "mpich-gcc", "mvapich", "ompi-clang", "ompi")
FUNCTIONS = (
    *("Allgather", "Allreduce", "Alltoall", "Bcast", "Exchange", "PingPong"),
    *("Reduce_scatter", "Sendrecv"),
)
WITH_BANDWIDTH = ("Exchange", "PingPong", "Sendrecv")
RANKS = (16, 32, 64)
RANKS_PER_NODE = 2
SIZES = 2 ** np.arange(24)
LAUNCHES = 3
NOISE = 0.02
FIRST_NIGHT = datetime(2023, 11, 21, 1, 0, 0)

CASES = tuple(itertools.product(FUNCTIONS, RANKS, SWITCHES, ENVIRONMENTS))
"""In the order of the store's rows."""

ROWS_A_NIGHT = len(CASES) * LAUNCHES * len(SIZES)


def stored(night: int) -> StoredSession:
    """Return the place of a night's session."""
    start = FIRST_NIGHT + timedelta(days=night)
    return StoredSession(f"{start:%Y%m%dT%H%M%S}-{night:08x}", SYSTEM)


class Nights:
    """Tables of successive nights; constant parts are made once."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(20061)
        self.constant = {
            "cases": self._key(1),
            "launches": self._key(LAUNCHES),
            "curves": self._key(LAUNCHES * len(SIZES)),
        }
        latency = {name: 4.0 + 3.0 * n for n, name in enumerate(SWITCHES)}
        steps = {name: 1.0 + n for n, name in enumerate(FUNCTIONS)}
        self.typical = np.array(
            [
                steps[function]
                * (np.log2(ranks) * latency[switch] + SIZES / (120.0 * (1 + len(environment) / 9)))
                for function, ranks, switch, environment in CASES
            ]
        )
        self.with_bandwidth = np.array([case[0] in WITH_BANDWIDTH for case in CASES])

    def _key(self, repeats: int) -> dict[str, pa.Array]:
        function, ranks, switch, environment = zip(*CASES, strict=True)
        several = {
            "benchmark": ["imb"] * len(CASES),
            "function": function,
            "ranks": ranks,
            "path": ["inter-node"] * len(CASES),
            "direction": ["oneway"] * len(CASES),
            "partition": switch,
            "environment": environment,
            "ranks_per_node": [RANKS_PER_NODE] * len(CASES),
        }
        taken = pa.array(np.repeat(np.arange(len(CASES)), repeats))
        schema = TABLES["cases"]
        return {
            name: pa.array(values, schema.field(name).type).take(taken)
            for name, values in several.items()
        }

    def tables(self, night: int) -> dict[str, pa.Table]:
        """Return the store's tables of one night."""
        place = stored(night)
        shape = (len(CASES), LAUNCHES, len(SIZES))
        noise = self.random.lognormal(0.0, NOISE, shape)
        # IMB prints two decimals.
        times = np.round(self.typical[:, np.newaxis, :] * noise, 2)
        middle = np.median(times, axis=1)
        rates = np.where(self.with_bandwidth[:, np.newaxis], SIZES / middle, np.nan)
        return {
            "sessions": self._sessions(place),
            "cases": self._cases(place, middle, rates),
            "launches": self._launches(place),
            "curves": self._curves(times),
            "tests": _table("tests", {}),
            "repeats": _table("repeats", {}),
            "repeat_curves": _table("repeat_curves", {}),
            "nodes": self._nodes(),
        }

    def _sessions(self, place: StoredSession) -> pa.Table:
        uuid = f"{place.name[-8:]}-0000-4000-8000-000000000000"
        return _table(
            "sessions",
            {
                "uuid": [uuid],
                "started": [place.start],
                "ended": [place.start + timedelta(hours=5)],
                "host": ["login-1"],
                "user": ["nightly"],
                "command": ["reframe -c checks -r"],
                "cases": [len(CASES)],
                "measured": [len(CASES)],
                "labels": [{}],
                "reframe": ["4.10.4"],
                "mpi": [{name: name for name in ENVIRONMENTS}],
                "files": [[]],
                "differences": [[]],
                "unknown": [{}],
                "report": [f"run-{place.name}.json"],
                "report_sha256": ["0" * 64],
            },
        )

    def _cases(self, place: StoredSession, middle: np.ndarray, rates: np.ndarray) -> pa.Table:
        count = len(CASES)
        peak = np.max(rates, axis=1)
        defined = ~np.isnan(peak)
        at = np.argmax(np.nan_to_num(rates), axis=1)
        half = np.argmax(np.nan_to_num(rates) >= np.nan_to_num(peak)[:, np.newaxis] / 2, axis=1)
        names = [f"Imb{function} %ranks={ranks}" for function, ranks, _, _ in CASES]
        switches = [switch for _, _, switch, _ in CASES]
        libraries = [environment for _, _, _, environment in CASES]
        masked = {
            "peak_mb_s": peak,
            "peak_size": SIZES[at],
            "half_power_size": SIZES[half],
            **{
                f"rate_{kib}_kib_mb_s": rates[:, 10 + n * 2] for n, kib in enumerate((1, 4, 16, 64))
            },
            "asymptotic_mb_s": peak,
            "half_performance_bytes": np.full(count, 1500.0),
            "line_rate_share": peak / 125.0,
        }
        return _table(
            "cases",
            {
                **self.constant["cases"],
                "check": names,
                "attempts": [1] * count,
                "result": ["pass"] * count,
                "phase": [""] * count,
                "reason": [""] * count,
                "seconds": np.round(self.random.uniform(1, 2, count), 3),
                "nodes": [["login-1"]] * count,
                "folder": [f"/scratch/output/{place.name}/{name}" for name in names],
                "jobid": [str(100000 + n) for n in range(count)],
                "seed": self.random.integers(1, 2**31, count),
                "launches": [LAUNCHES] * count,
                "crashes": [[]] * count,
                "switch": switches,
                "nic": ["card"] * count,
                "driver": ["driver 1.2"] * count,
                "link_mbit_s": [1000.0] * count,
                "mtu": [1500] * count,
                "mpi": libraries,
                "line_rate_mb_s": [125.0] * count,
                "latency_us": np.median(middle[:, :6], axis=1),
                **{
                    name: pa.array(values, mask=~defined).cast(TABLES["cases"].field(name).type)
                    for name, values in masked.items()
                },
                "undefined": [{}] * count,
                "intervals": [[]] * count,
                "partition_extras": [json.dumps({"switch": switch}) for switch in switches],
                "environment_extras": [json.dumps({"mpi": library}) for library in libraries],
                "complete": [True] * count,
            },
        )

    def _launches(self, place: StoredSession) -> pa.Table:
        rows = len(CASES) * LAUNCHES
        counts = np.repeat([ranks for _, ranks, _, _ in CASES], LAUNCHES)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        used = int(offsets[-1])
        rank = (np.arange(used) - np.repeat(offsets[:-1], counts)).astype(np.int32)
        names = pa.array([f"node-{n}" for n in range(max(RANKS) // RANKS_PER_NODE)])
        wall = np.repeat(np.round(self.random.uniform(2, 5, rows), 3), counts)
        kind = TABLES["launches"].field("ranks_used").type.value_type
        structs = pa.StructArray.from_arrays(
            [
                pa.array(rank, pa.int64()),
                names.take(pa.array(rank // RANKS_PER_NODE)),
                pa.array(wall),
                pa.array(np.round(wall * self.random.uniform(0.9, 1.0, used), 3)),
                *(pa.nulls(used, kind.field(name).type) for name in ("scheduled", "system_s")),
            ],
            fields=list(kind),
        )
        began = np.datetime64(place.start, "us") + np.arange(rows) * np.timedelta64(5_000_000, "us")
        return _table(
            "launches",
            {
                **self.constant["launches"],
                "launch": np.tile(np.arange(1, LAUNCHES + 1, dtype=np.int32), len(CASES)),
                "position": self.random.permutation(rows).astype(np.int32),
                "started": began,
                "wall_s": self.random.uniform(2, 5, rows),
                "extra": [False] * rows,
                "ranks_used": pa.ListArray.from_arrays(pa.array(offsets), structs),
            },
        )

    def _curves(self, times: np.ndarray) -> pa.Table:
        sizes = np.tile(SIZES, len(CASES) * LAUNCHES)
        without = np.repeat(~self.with_bandwidth, LAUNCHES * len(SIZES))
        flat = times.ravel()
        launch = np.repeat(np.arange(1, LAUNCHES + 1, dtype=np.int32), len(SIZES))
        return _table(
            "curves",
            {
                **self.constant["curves"],
                "launch": np.tile(launch, len(CASES)),
                "size_bytes": sizes,
                "time_us": flat,
                "bandwidth_mb_s": pa.array(sizes / flat, mask=without),
            },
        )

    def _nodes(self) -> pa.Table:
        found = list(itertools.product(SWITCHES, ENVIRONMENTS, range(max(RANKS) // RANKS_PER_NODE)))
        settings = {f"net.ipv4.setting_{n}": "4096 131072 33554432" for n in range(28)}
        features = {f"feature-{n}": "off [fixed]" for n in range(60)}
        return _table(
            "nodes",
            {
                "partition": [switch for switch, _, _ in found],
                "environment": [environment for _, environment, _ in found],
                "job": ["ImbLaunches"] * len(found),
                "jobid": ["100000"] * len(found),
                "node": [f"node-{node}" for _, _, node in found],
                "kernel": ["6.1.0-26-amd64"] * len(found),
                "interface": ["eth1"] * len(found),
                "mtu": [1500] * len(found),
                "offloads": [features] * len(found),
                "coalescing": [{}] * len(found),
                "sysctls": [settings] * len(found),
                "programs": [{"IMB-MPI1": "0" * 64}] * len(found),
                "absent": [{}] * len(found),
                **{name: [{}] * len(found) for name in ("memory", "rings", "pci", "mitigations")},
            },
        )


def _table(name: str, given: dict[str, Any]) -> pa.Table:
    """Return a table of the store; columns not in ``given`` are null, or the table is empty."""
    rows = len(next(iter(given.values()))) if given else 0
    schema = TABLES[name]
    return pa.Table.from_arrays(
        [
            pa.array(given[column.name], column.type)
            if column.name in given
            else pa.nulls(rows, column.type)
            for column in schema
        ],
        schema=schema,
    )


def make(folder: Path, nights: int, seconds: float) -> int:
    """Add nights until there are ``nights`` or ``seconds`` are over; return their number."""
    started = time.monotonic()
    store = Store.create(folder)
    generator = Nights()
    there = len(store.sessions())
    while there < nights and time.monotonic() - started < seconds:
        # Each night has its own random numbers, so that stores made in parts are equal.
        generator.random = np.random.default_rng(there)
        store.put(stored(there), generator.tables(there))
        there += 1
    return there


BASELINE = ScoreBaseline("gige", "ompi")


def values_of_newest(folder: Path) -> Any:
    """Read the values that the history follows of the newest session's cases, with the score."""
    store = Store(folder)
    return questions.nightly(store, [store.newest()], BASELINE)


def _everything(folder: Path) -> Any:
    import pandas

    return pandas.concat(
        pandas.read_parquet(path, partitioning=None).assign(
            session=path.parent.name.partition("=")[2]
        )
        for path in sorted(folder.glob("system=*/month=*/session=*/curves.parquet"))
    )


def _last(folder: Path) -> Any:
    import pandas

    path = max(folder.glob("system=*/month=*/session=*/curves.parquet"))
    return pandas.read_parquet(path, partitioning=None)


def _medians(frame: Any) -> Any:
    return frame.groupby([*KEY, "size_bytes"], observed=True).time_us.median().reset_index()


def _scores(frame: Any) -> Any:
    medians = _medians(frame[frame.size_bytes >= 4])
    match = ["benchmark", "function", "ranks", "path", "direction", "size_bytes"]
    base = medians[
        (medians.partition == BASELINE.partition) & (medians.environment == BASELINE.environment)
    ]
    pairs = medians.merge(base[[*match, "time_us"]], on=match, suffixes=("", "_base"))
    pairs["ratio"] = np.log(pairs.time_us_base / pairs.time_us)
    return np.exp(pairs.groupby(list(KEY)).ratio.mean()).reset_index()


def pandas_scores(folder: Path) -> Any:
    """Read all files, select the newest session, and compute scores."""
    frame = _everything(folder)
    return _scores(frame[frame.session == frame.session.max()])


def pandas_scores_of_file(folder: Path) -> Any:
    """Read the newest session's file alone, and compute scores."""
    return _scores(_last(folder))


QUESTIONS: dict[str, tuple[Callable[[Path], Any], ...]] = {
    "values of a night": (values_of_newest, pandas_scores, pandas_scores_of_file),
}
WAYS = ("netproof", "pandas, all files", "pandas, newest file")


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


def main(arguments: Sequence[str] | None = None) -> int:
    """Make a store, or time queries of one; print JSON."""
    parser = argparse.ArgumentParser(prog="ci/store-benchmark", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make", help="add nights to a generated store")
    making.add_argument("store", type=Path)
    making.add_argument("--nights", type=int, required=True)
    making.add_argument("--seconds", type=float, default=float("inf"), help="stop after these")
    asking = commands.add_parser("ask", help="time the questions")
    asking.add_argument("store", type=Path)
    asking.add_argument("--pandas", action="store_true", help="alongside the naive way")
    options = parser.parse_args(arguments)
    if options.command == "make":
        there = make(options.store, options.nights, options.seconds)
        print(f"{there} nights, {there * ROWS_A_NIGHT} rows of curves")
        return 0
    if not (options.store / MARKER).exists():
        print(f"ci/store-benchmark: {options.store} is no store; make one first", file=sys.stderr)
        return 2
    nights = len(Store(options.store).sessions())
    size = sum(path.stat().st_size for path in options.store.rglob("*.parquet"))
    asked = ask(options.store, naive=options.pandas)
    document = {
        "nights": nights,
        "rows": nights * ROWS_A_NIGHT,
        "store_mib": round(size / BYTES_IN_MIB),
        "questions": asked,
    }
    print(json.dumps(document, indent=1))
    return 0
