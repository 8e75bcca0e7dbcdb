"""Measures how well changes in nightly series are found, on histories with known answers.

A history is made of a level, noise and a change that begins on a known night. Every method is
brought to the same rate of false alarms on histories without a change first: one in 1,000
series-nights. docs/history.md has the results.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import ruptures
from numpy.typing import NDArray

from netproof.errors import NetproofError
from netproof.history import judging
from netproof.history.changes import Change, ChangeKind, DetectionSettings
from netproof.history.control import controlled, expected_false_alarms
from netproof.history.detection import follow_all
from netproof.history.night import MAD_OF_NORMAL
from netproof.history.pooling import pooled
from netproof.present import history_documents
from netproof.store import Store, questions
from netproof.store.columns import KEY

Floats = NDArray[np.float64]

RECORDED = Path(__file__).resolve().parents[1] / "tests/data/history/noise.json"
LANDMARKS = ("latency_us", "peak_mb_s", *(f"rate_{kib}_kib_mb_s" for kib in (1, 4, 16, 64)))
LEAST_SESSIONS = 8

NOISE = 0.02
"""Relative noise of a night."""

BEFORE = 180
"""Nights before a change, where nothing else is said."""

AFTER = 30
"""Nights within which a change has to be found."""

TARGET = 1e-3
"""False alarms a series and night that every method is brought to."""

STEPS = (0.02, 0.05, 0.10, 0.20)
DRIFTS = ((0.05, 60), (0.10, 60))
"""Relative size, and the nights that it takes to get there."""

BAD_NIGHTS = (0.10, 0.20, 0.50, 1.00)
WITHIN = (3, 4, 7)
POOLS = (2, 4, 8)
SHARED = 0.5
"""Share of the variance that the series of a pool have in common, where they have any."""

POOLED = (
    ("normal", False, "normal, each its own"),
    ("normal", True, "normal, half of it shared"),
    ("recorded", True, "recorded, of the same nights"),
)
COLD = (5, 9)
COLD_STEPS = (0.10, 0.20, 0.50)
NIGHTS_A_YEAR = 365
SEED = 20061


@dataclass(frozen=True)
class Size:
    """How much is generated: series without a change and their nights, series with one."""

    null_series: int
    null_nights: int
    series: int


FULL = Size(400, 300, 1000)
SMOKE = Size(100, 100, 200)


@dataclass(frozen=True)
class Noise:
    """Where the noise comes from: ``name``; series in a pool, and whether nights are shared."""

    name: str
    pool: int = 1
    shared: bool = False

    def drawn(self, series: int, nights: int, seed: int) -> Floats:
        """Deviations of logarithms: series x pool x nights."""
        random = np.random.default_rng([SEED, seed, self.pool, self.shared])
        shape = (series, self.pool, nights)
        if self.name == "normal":
            own = random.normal(size=shape)
            if self.shared:
                common = random.normal(size=(series, 1, nights))
                own = math.sqrt(SHARED) * common + math.sqrt(1 - SHARED) * own
            return NOISE * own
        rows = recorded()
        which = np.stack([random.permutation(len(rows))[: self.pool] for _ in range(series)])
        # Nights are drawn one by one, since sessions that followed each other within minutes
        # say nothing of how nights follow each other; a pool's series have the same ones.
        sessions = random.integers(
            rows.shape[1], size=(series, 1 if self.shared else self.pool, nights)
        )
        return NOISE * rows[which[:, :, np.newaxis], sessions]


@cache
def recorded() -> Floats:
    """The recorded deviations, series x sessions, in standard deviations of each series."""
    document = json.loads(RECORDED.read_text())
    off = np.array(list(document["deviations"].values()))
    spread = MAD_OF_NORMAL * np.median(np.abs(off), axis=1)
    return off / spread[:, np.newaxis]


def histories(noise: Noise, series: int, nights: int, seed: int, change: Floats | None) -> Floats:
    """Values, series x nights, with the ``change`` in logarithms added to all of a pool.

    Every other series has it downwards.
    """
    logs = noise.drawn(series, nights, seed)
    if change is not None:
        side = np.where(np.arange(series) % 2, -1.0, 1.0)[:, np.newaxis, np.newaxis]
        logs = logs + np.log1p(side * change)
    values = np.exp(logs)
    if noise.pool == 1:
        return values[:, 0]
    return np.array([pooled(several.tolist()) for several in values])


def changed(before: int, after: int, shape: Callable[[Floats], Floats]) -> Floats:
    """A relative change that is 0 before a night, and from there on what ``shape`` says."""
    return np.concatenate([np.zeros(before), shape(np.arange(float(after)))])


def step(size: float) -> Callable[[Floats], Floats]:
    """A step by a relative size."""
    return lambda nights: np.full(len(nights), size)


def drift(size: float, over: int) -> Callable[[Floats], Floats]:
    """A drift by a relative size over so many nights, which stays there."""
    return lambda nights: size * np.minimum((nights + 1) / over, 1.0)


def bad_night(size: float) -> Callable[[Floats], Floats]:
    """One bad night."""
    return lambda nights: np.where(nights == 0, size, 0.0)


Alarms = Callable[[Floats, float], list[list[tuple[int, int]]]]
"""Histories and a threshold to, for each, the alarms: night, and 1 for up or -1 for down."""


def by_netproof(values: Floats, threshold: float) -> list[list[tuple[int, int]]]:
    """What ``follow_all`` says; the threshold is the p-value of the alarm."""
    return [
        [
            (change.found, _side(change))
            for change in changes
            if change.kind is not ChangeKind.BAD_NIGHT
        ]
        for changes in _followed(values, threshold)
    ]


def _followed(values: Floats, threshold: float) -> list[tuple[Change, ...]]:
    settings = DetectionSettings(alarm=threshold)
    return [followed.changes for followed in follow_all(values.tolist(), settings)]


def _side(change: Change) -> int:
    return 1 if change.size > 0 else -1


def by_cusum(values: Floats, threshold: float) -> list[list[tuple[int, int]]]:
    """Page's two-sided CUSUM tuned to a step of 5 %, told the true level and noise.

    It begins anew after an alarm; the threshold is its negative, so that less is stricter.
    """
    off = np.log(values) / NOISE
    slack = 0.05 / NOISE / 2
    sums = np.zeros((2, len(values)))
    alarms: list[list[tuple[int, int]]] = [[] for _ in values]
    for night in range(values.shape[1]):
        for place, side in enumerate((1, -1)):
            sums[place] = np.maximum(sums[place] + side * off[:, night] - slack, 0.0)
        for number in np.flatnonzero(sums.max(axis=0) > -threshold):
            alarms[number].append((night, 1 if sums[0, number] > sums[1, number] else -1))
            sums[:, number] = 0.0
    return alarms


NEW = 7
"""Nights back from tonight within which a change has to begin to be one of tonight's."""

SEEN = 90
"""Nights that a library is shown."""


def by_ruptures(values: Floats, threshold: float) -> list[list[tuple[int, int]]]:
    """PELT on the newest nights, every night anew; the threshold is the negative penalty."""
    search = ruptures.KernelCPD(kernel="linear", min_size=2, jump=1)
    found = []
    for row in np.log(values) / NOISE:
        alarms: list[tuple[int, int]] = []
        for night in range(SEEN, len(row)):
            seen = row[night + 1 - SEEN : night + 1]
            places = search.fit(seen).predict(pen=-threshold)[:-1]
            if places and places[-1] > SEEN - NEW and (not alarms or night - alarms[-1][0] >= NEW):
                rises = seen[places[-1] :].mean() > seen[: places[-1]].mean()
                alarms.append((night, 1 if rises else -1))
        found.append(alarms)
    return found


OTAVA = """
import json, sys
from otava.analysis import compute_change_points
asked = json.load(sys.stdin)
new, seen, found = asked["new"], asked["seen"], []
for row in asked["rows"]:
    alarms = []
    for night in range(seen, len(row)):
        points, _ = compute_change_points(
            row[night + 1 - seen : night + 1], window_len=30, max_pvalue=asked["p"]
        )
        begun = [point for point in points if point.index > seen - new]
        if begun and (not alarms or night - alarms[-1][0] >= new):
            stats = begun[-1].stats
            alarms.append((night, 1 if stats.mean_2 > stats.mean_1 else -1))
    found.append(alarms)
print(json.dumps(found))
"""


def by_otava(python: str, values: Floats, threshold: float) -> list[list[tuple[int, int]]]:
    """Apache Otava on the newest nights, every night anew; the threshold is its p-value."""
    asked = {"rows": values.tolist(), "p": threshold, "new": NEW, "seen": SEEN}
    run = subprocess.run(
        [python, "-c", OTAVA], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    return [[(night, side) for night, side in alarms] for alarms in json.loads(run.stdout)]


@dataclass(frozen=True)
class Rate:
    """False alarms among so many series-nights."""

    alarms: int
    nights: int

    def a_year(self) -> str:
        """False alarms a series and year, with their 95 % interval (of a Poisson's root)."""
        factor = NIGHTS_A_YEAR / self.nights
        low, high = (max(math.sqrt(self.alarms) + side * 0.98, 0.0) ** 2 for side in (-1, 1))
        return f"{self.alarms * factor:.2f} ({low * factor:.2f} to {high * factor:.2f})"


@dataclass(frozen=True)
class Method:
    """A way to find changes: thresholds near the right one, and what share of series it is given.

    ``logarithmic``: whether the threshold is one of p. ``part``: slow methods get fewer series.
    """

    name: str
    alarms: Alarms
    near: tuple[float, float]
    logarithmic: bool
    part: float = 1.0

    def rate(self, noise: Noise, size: Size, threshold: float, before: int, seed: int) -> Rate:
        """False alarms on histories without a change, after so many nights of them."""
        series = max(int(size.null_series * self.part), 1)
        values = histories(noise, series, before + size.null_nights, seed, None)
        found = sum(
            night >= before for alarms in self.alarms(values, threshold) for night, _ in alarms
        )
        return Rate(found, series * size.null_nights)

    def calibrated(self, noise: Noise, size: Size) -> float:
        """The threshold at which false alarms come at the rate of ``TARGET``, by the secant.

        Where ``near`` is one threshold it is that, whatever its rate.
        """
        if self.near[0] == self.near[1]:
            return self.near[0]
        scale = np.log if self.logarithmic else float
        back = math.exp if self.logarithmic else float
        points = []
        for threshold in self.near:
            rate = self.rate(noise, size, threshold, BEFORE, seed=1)
            points.append((scale(threshold), math.log(max(rate.alarms, 0.5) / rate.nights)))
        for _ in range(ROUNDS):
            points.sort(key=lambda point: abs(point[1] - math.log(TARGET)))
            (x, y), (other_x, other_y) = points[0], points[1]
            if x == other_x or y == other_y:
                break
            new = x + (math.log(TARGET) - y) * (x - other_x) / (y - other_y)
            new = min(max(new, x - STRIDE), x + STRIDE)
            rate = self.rate(noise, size, back(new), BEFORE, seed=1)
            points.append((new, math.log(max(rate.alarms, 0.5) / rate.nights)))
        return back(min(points, key=lambda point: abs(point[1] - math.log(TARGET)))[0])


ROUNDS, STRIDE = 2, 3.0
"""Steps of a calibration, and how far one goes at most, in the threshold's own scale."""


@dataclass(frozen=True)
class Found:
    """When a change was found: nights until the alarm, that night included; none: never."""

    nights: tuple[int | None, ...]

    def within(self, nights: int) -> float:
        """Share of the series in which it was found within so many nights."""
        return sum(n is not None and n <= nights for n in self.nights) / len(self.nights)

    @property
    def median(self) -> str:
        """Median nights until it was found."""
        ordered = sorted(math.inf if n is None else n for n in self.nights)
        middle = ordered[len(ordered) // 2]
        return "not found" if math.isinf(middle) else str(middle)


def found(
    method: Method,
    threshold: float,
    noise: Noise,
    size: Size,
    change: Floats,
) -> Found:
    """How a method finds a change in many series, half of them with it upwards, half downwards."""
    begin = int(np.flatnonzero(change)[0])
    series = max(int(size.series * method.part), 2)
    values = histories(noise, series, len(change), 2, change)
    nights: list[int | None] = []
    for number, alarms in enumerate(method.alarms(values, threshold)):
        side = -1 if number % 2 else 1
        right = [night for night, up in alarms if night >= begin and up == side]
        nights.append(min(right) - begin + 1 if right else None)
    return Found(tuple(nights))


@dataclass(frozen=True)
class BadNights:
    """What became of single bad nights: reported as such, and as steps."""

    series: int
    as_such: int
    as_step: int


def bad_nights(threshold: float, noise: Noise, size: Size, off: float) -> BadNights:
    """How ``follow_all`` takes single bad nights, upwards and downwards.

    A step is laid to the bad night where there is none in the same history without that night.
    """
    change = changed(BEFORE, 12, bad_night(min(off, 0.9)))
    values = histories(noise, size.series, len(change), 3, change)
    if off > 0.9:
        values[::2, BEFORE] *= (1 + off) / 1.9
    with_it = _followed(values, threshold)
    missing = [[*row[:BEFORE], None, *row[BEFORE + 1 :]] for row in values.tolist()]
    settings = DetectionSettings(alarm=threshold)
    without = [followed.changes for followed in follow_all(missing, settings)]
    return BadNights(
        len(values),
        sum(
            any(c.kind is ChangeKind.BAD_NIGHT and c.index == BEFORE for c in row)
            for row in with_it
        ),
        sum(_alarmed(a) and not _alarmed(b) for a, b in zip(with_it, without, strict=True)),
    )


def _alarmed(changes: Sequence[Change]) -> bool:
    return any(
        change.kind is not ChangeKind.BAD_NIGHT and change.found >= BEFORE for change in changes
    )


CUSUM = Method("CUSUM that is told level and noise", by_cusum, (-4.0, -2.5), False)
NETPROOF = Method("netproof", by_netproof, (1.5e-3, 4e-3), True)
PELT = Method("ruptures, PELT", by_ruptures, (-13.0, -11.0), False, 0.2)
NORMAL, REAL = Noise("normal"), Noise("recorded")


def otava(python: str) -> Method:
    """Apache Otava, of an environment of its own: it wants another numpy than netproof.

    As it comes, with p up to 0.001: to calibrate it takes hours.
    """
    return Method("Apache Otava, p up to 0.001", partial(by_otava, python), (1e-3, 1e-3), True, 0.1)


@dataclass(frozen=True)
class Job:
    """A row of a table: ``head`` its first cells, ``cells`` makes the others.

    ``cells`` is given the threshold at which the ``method`` has ``TARGET`` on ``noise``.
    """

    table: str
    head: tuple[str, ...]
    cells: Callable[[float], tuple[str, ...]]
    method: Method = NETPROOF
    noise: Noise = NORMAL


def percent(share: float) -> str:
    """A share as it stands in a table."""
    return f"{100 * share:.1f} %"


def by_method(
    method: Method, noise: Noise, size: Size, before: int, threshold: float
) -> tuple[str, ...]:
    """False alarms a year, and how a step of 5 % is found."""
    rate = method.rate(noise, size, threshold, before, seed=4)
    change = changed(before, AFTER, step(0.05))
    return rate.a_year(), *by_change(method, noise, size, change, threshold)


def by_change(
    method: Method, noise: Noise, size: Size, change: Floats, threshold: float
) -> tuple[str, ...]:
    """How a method finds a change."""
    said = found(method, threshold, noise, size, change)
    return (*(percent(said.within(nights)) for nights in WITHIN), said.median)


def cold(size: Size, nights: int, off: float, threshold: float) -> tuple[str, ...]:
    """How netproof finds a step after few nights, with the threshold of many."""
    few = replace(size, null_nights=10 - nights, null_series=20 * size.null_series)
    rate = NETPROOF.rate(NORMAL, few, threshold, nights, seed=5)
    change = changed(nights, AFTER, step(off))
    return rate.a_year(), *by_change(NETPROOF, NORMAL, size, change, threshold)


def by_bad_night(noise: Noise, size: Size, off: float, threshold: float) -> tuple[str, ...]:
    """What became of single bad nights."""
    said = bad_nights(threshold, noise, size, off)
    return f"{said.as_such} of {said.series}", f"{said.as_step} of {said.series}"


def noisier(size: Size, threshold: float) -> tuple[str, ...]:
    """False alarms in the 60 nights after the noise doubled."""
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
    """False alarms that ``controlled`` lets through on nights of many unchanged series."""
    nights, series = 30, size.null_series
    values = histories(noise, series, 90 + nights, 7, None).tolist()
    settings = DetectionSettings()
    let_through: list[frozenset[int]] = [frozenset()]
    p_values = []
    for night in range(90, 90 + nights):
        followed = follow_all([row[: night + 1] for row in values], settings)
        p_values += [one.p_value for one in followed]
        let_through.append(controlled(dict(enumerate(one.p_value for one in followed))))
    new = sum(len(tonight - before) for before, tonight in pairwise(let_through))
    shares = (f"{np.mean(np.array(p_values) <= p):.1e}" for p in (1e-2, 1e-3, 1e-4))
    return str(new), f"{expected_false_alarms(series, nights, settings):.1f}", *shares


def jobs(size: Size, otava_python: str | None) -> list[Job]:
    """All rows of all tables."""
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
    for name, shared, told in POOLED:
        for pool in POOLS:
            noise = Noise(name, pool, shared)
            cells = partial(by_method, NETPROOF, noise, size, BEFORE)
            # Normal noise stays normal, and its threshold what it was.
            threshold_of = NORMAL if name == "normal" else noise
            rows.append(Job("pools", (str(pool), told), cells, noise=threshold_of))
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


def _calibrated(asked: tuple[Method, Noise, Size]) -> float:
    method, noise, size = asked
    return method.calibrated(noise, size)


def _cells(asked: tuple[Job, float]) -> tuple[str, ...]:
    job, threshold = asked
    return job.cells(threshold)


def tables(done: Sequence[tuple[Job, tuple[str, ...]]]) -> str:
    """The rows as Markdown, a table for each kind."""
    lines = []
    for name, head in HEADS.items():
        lines += [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
        lines += [
            f"| {' | '.join((*job.head, *cells))} |" for job, cells in done if job.table == name
        ]
        lines.append("")
    return "\n".join(lines)


def results(rows: Sequence[Job], size: Size) -> list[tuple[str, ...]]:
    """The cells of all rows: the methods are calibrated first, each on each of its noises."""
    methods = {(row.method.name, row.noise): row.method for row in rows}
    with multiprocessing.Pool(os.cpu_count()) as processes:
        asked = [(method, noise, size) for (_, noise), method in methods.items()]
        found_ = processes.map(_calibrated, asked, chunksize=1)
        thresholds = dict(zip(methods, found_, strict=True))
        for (name, noise), threshold in thresholds.items():
            print(f"{name}, {noise}: threshold {threshold:.3g}", file=sys.stderr)
        given = [(row, thresholds[row.method.name, row.noise]) for row in rows]
        return processes.map(_cells, given, chunksize=1)


def record(store: Path, system: str) -> dict[str, Any]:
    """What nights of stored sessions are off their series' median: logarithms, by series.

    Series that have a value in every session in which any case was measured, and at least 8.
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
    """A history of a store in a process of its own: seconds, of the clock and of the CPU.

    ``document``: a hash of all that it says.
    """

    clock_s: float
    cpu_s: float
    document: str


def _follow(folder: Path, results: Any) -> None:
    clock_s, cpu_s = time.perf_counter(), time.process_time()
    verdict = judging.judge(Store(folder))
    clock_s, cpu_s = time.perf_counter() - clock_s, time.process_time() - cpu_s
    text = json.dumps(history_documents.document(verdict, series=True))
    results.put(HistoryTime(clock_s, cpu_s, hashlib.sha256(text.encode()).hexdigest()))


def timed_history(folder: Path) -> HistoryTime:
    """The history of a store, from opening it to the verdict, without the start of Python."""
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    process = context.Process(target=_follow, args=(folder, results))
    process.start()
    process.join()
    if process.exitcode != 0:
        raise SystemExit(f"ci/history-benchmark: a history ended with {process.exitcode}")
    return results.get()


def added_night(folder: Path, least: int = 1) -> dict[str, HistoryTime]:
    """What the last night of a store takes: with what was followed before it, and without.

    The store stays as it is: links to its sessions are followed, beside it. Each way is run
    ``least`` times, and the one with the least time of the CPU counts.
    """
    sessions = Store(folder).sessions()
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        copy = Path(scratch) / "store"
        Store.create(copy)
        for stored in sessions:
            shutil.copytree(folder / stored.place, copy / stored.place, copy_function=os.link)
        store, last = Store(copy), copy / sessions[-1].place
        kept, aside = store.followed(sessions[-1].system), Path(scratch) / "last"
        last.rename(aside)
        timed_history(copy)
        before = kept.read_bytes()
        aside.rename(last)
        found: dict[str, list[HistoryTime]] = {"one night more": [], "from the first night": []}
        for _ in range(least):
            kept.write_bytes(before)
            found["one night more"].append(timed_history(copy))
            kept.unlink()
            found["from the first night"].append(timed_history(copy))
        return {name: min(several, key=lambda one: one.cpu_s) for name, several in found.items()}


def print_added_night(folder: Path, least: int) -> int:
    """The table of ``added_night``; 0 where both ways say the same."""
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


def main() -> int:
    """Print the tables, the noise of a store, or what a night more takes."""
    parser = argparse.ArgumentParser(prog="ci/history-benchmark", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="fewer series: about a minute")
    parser.add_argument("--otava", metavar="PYTHON", help="a Python that has apache-otava")
    commands = parser.add_subparsers(dest="command")
    recording = commands.add_parser("noise", help="print the noise of stored sessions")
    recording.add_argument("store", type=Path)
    recording.add_argument("system")
    adding = commands.add_parser("night", help="time the last night of a store, and all of them")
    adding.add_argument("store", type=Path)
    adding.add_argument("--least", type=int, default=1, metavar="N", help="of N runs the shortest")
    arguments = parser.parse_args()
    if arguments.command == "night":
        return print_added_night(arguments.store, arguments.least)
    if arguments.command == "noise":
        try:
            print(json.dumps(record(arguments.store, arguments.system), indent=0))
        except NetproofError as error:
            raise SystemExit(f"ci/history-benchmark: {error}") from error
        return 0
    if arguments.otava and shutil.which(arguments.otava) is None:
        parser.error(f"--otava: {arguments.otava} is no program")
    size = SMOKE if arguments.smoke else FULL
    rows = jobs(size, arguments.otava)
    done = results(rows, size)
    print(tables(list(zip(rows, done, strict=True))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
