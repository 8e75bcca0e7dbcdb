"""Simulated runs of one kind are a portion, with a file of its own."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ci.pair_power.rounds import HEALTHY, Fault
from ci.pair_power.runs import follow, quick

NODES = (4, 16, 64, 256, 1024, 4096)
SLOWER = (0.5, 0.2, 0.1)
SEED = 20157


@dataclass(frozen=True)
class Portion:
    """Runs of one kind, stored in one file."""

    way: str
    nodes: int
    fault: Fault
    noise: str
    runs: int

    @property
    def name(self) -> str:
        """Name of its file."""
        fault = self.fault
        of = f"{fault.kind}-{fault.count}-{fault.slower}" if fault.slower else "healthy"
        return f"{self.way}-{self.nodes}-{of}-{self.noise}"

    def seed(self) -> tuple[int, ...]:
        """Return the seed from which each run's follows by its number."""
        fault = self.fault
        kind = ("nothing", "node", "pair", "uplink").index(fault.kind)
        which = ("normal", "recorded", "disturbed").index(self.noise)
        way = ("random", "quick").index(self.way)
        return SEED, way, self.nodes, kind, fault.count, round(100 * fault.slower), which

    def simulate(self, seconds: float, before: dict[str, Any] | None = None) -> dict[str, Any]:
        """Simulate the runs missing in ``before``, or as many as ``seconds`` allow."""
        begun = time.monotonic()
        result = before or {
            "portion": asdict(self),
            "seed": list(self.seed()),
            "seconds": 0.0,
            "found": [],
            "right": [],
            "cleared": [],
            "rounds": [],
            "wrong": 0,
        }
        first = len(result["found"])
        for number in range(first, self.runs):
            if number >= first + LEAST_RUNS and time.monotonic() - begun > seconds:
                break
            seed = (*self.seed(), number)
            if self.way == "quick":
                run, count = quick(self.nodes, self.fault, self.noise, seed)
                result["rounds"].append(count)
            else:
                run = follow(self.nodes, self.fault, self.noise, seed)
            result["found"].append(run.found)
            result["right"].append(run.right)
            result["cleared"].append(run.cleared)
            result["wrong"] += run.wrong
        result["seconds"] = round(result["seconds"] + time.monotonic() - begun, 1)
        return result


AIMED_AT = 1024
LEAST_RUNS = 20


def portions() -> Iterator[Portion]:
    """Yield all portions of the campaign, the most wanted first."""
    aims = {4: 500, 16: 500, 64: 1000, 256: 500, AIMED_AT: 1000, 4096: 100}
    others = {4: 200, 16: 200, 64: 200, 256: 100, AIMED_AT: 100, 4096: 20}
    healthy = {4: 5000, 16: 5000, 64: 5000, 256: 3000, AIMED_AT: 3000, 4096: 300}
    less = {4: 3000, 16: 3000, 64: 3000, 256: 1000, AIMED_AT: 1000, 4096: 100}
    for slower in SLOWER:
        yield Portion("random", AIMED_AT, Fault("node", 1, slower), "normal", aims[AIMED_AT])
    for which, counts in (("normal", healthy), ("recorded", less), ("disturbed", less)):
        for nodes in NODES:
            yield Portion("random", nodes, HEALTHY, which, counts[nodes])
    for nodes in NODES:
        for slower in SLOWER:
            if nodes != AIMED_AT:
                yield Portion("random", nodes, Fault("node", 1, slower), "normal", aims[nodes])
    faults = [("uplink", 1), ("node", 2), ("node", 5)]
    for nodes, (kind, count), slower in itertools.product(NODES, faults, SLOWER):
        if count < nodes:
            yield Portion("random", nodes, Fault(kind, count, slower), "normal", others[nodes])
    for nodes, (kind, count), slower in itertools.product(NODES, [("node", 1), *faults], SLOWER):
        if count < nodes:
            yield Portion("random", nodes, Fault(kind, count, slower), "recorded", others[nodes])
    few = {4: 200, 16: 200, 64: 200, 256: 100, AIMED_AT: 50}
    for which in ("normal", "recorded"):
        for nodes, runs in few.items():
            yield Portion("quick", nodes, HEALTHY, which, runs)
            for slower in SLOWER:
                yield Portion("quick", nodes, Fault("pair", 1, slower), which, runs)


def results(folder: Path) -> dict[str, dict[str, Any]]:
    """Read the results by name of the portion."""
    return {
        portion.name: json.loads(file.read_text())
        for portion in portions()
        if (file := folder / f"{portion.name}.json").exists()
    }
