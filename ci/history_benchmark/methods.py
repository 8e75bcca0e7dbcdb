"""Methods that find changes: netproof's, and others to compare."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import numpy as np
import ruptures

from ci.history_benchmark.histories import NOISE, Floats
from netproof.history.changes import Change, ChangeKind
from netproof.history.followers import follow_all

Alarms = Callable[[Floats, float], list[list[tuple[int, int]]]]
"""From histories and a threshold to each one's alarms: night, and 1 for up or -1 for down."""


def by_netproof(values: Floats, threshold: float) -> list[list[tuple[int, int]]]:
    """Return alarms of ``follow_all``; the threshold is the p-value of the alarm."""
    return [
        [
            (change.found, _side(change))
            for change in changes
            if change.kind is not ChangeKind.BAD_NIGHT
        ]
        for changes in followed(values, threshold)
    ]


def followed(values: Floats, threshold: float) -> list[tuple[Change, ...]]:
    """Return the changes that netproof finds in each series."""
    return [followed.changes for followed in follow_all(values.tolist(), alarm=threshold)]


def _side(change: Change) -> int:
    return 1 if change.size > 0 else -1


def by_cusum(values: Floats, threshold: float) -> list[list[tuple[int, int]]]:
    """Run Page's two-sided CUSUM tuned to a step of 5 %, given the true level and noise.

    It restarts after an alarm; the threshold is its negative, so that less is stricter.
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
"""Nights within which a change has to begin to count as tonight's."""
SEEN = 90
"""Nights shown to a library."""


def by_ruptures(values: Floats, threshold: float) -> list[list[tuple[int, int]]]:
    """Run PELT on the newest nights, every night; the threshold is the negative penalty."""
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
    """Run Apache Otava on the newest nights, every night; the threshold is its p-value."""
    asked = {"rows": values.tolist(), "p": threshold, "new": NEW, "seen": SEEN}
    run = subprocess.run(
        [python, "-c", OTAVA], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    return [[(night, side) for night, side in alarms] for alarms in json.loads(run.stdout)]
