"""CPU seconds of what is done for each node of a launch, and how they grow with the nodes.

Run ``ci/evaluate scale-nodes`` by hand. A recorded node's counters are those of all
nodes, with other digits on each. The exponent is that of the seconds over the counts: 1 is linear.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ci.evaluation.scale_sessions import exponent
from netproof.criteria.settings import Settings
from netproof.measurement.counters import Counters, counters
from netproof.pairs.accusation import judge
from netproof.pairs.model import PairObservation
from netproof.pairs.rounds import Mode, next_round, tournament
from netproof.verdict import traffic

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests/data/jobs/netpipe-twin/tcp-inter-node-oneway.1.err"
COUNTS = (1000, 3000, 9000)
ROUNDS, LAUNCHES = 4, 2
NOISE = 0.05


def text_of(names: Sequence[str]) -> str:
    """Return a step's standard error with the counters of all nodes."""
    lines = [one for one in RECORDED.read_text().splitlines() if "netproof counters on" in one]
    first, random = lines[0].partition("\t")[0], np.random.default_rng(1)
    made = []
    for name in names:
        digits = str(random.integers(10, 99))
        for line in (line for line in lines if line.startswith(f"{first}\t")):
            numbers = re.sub(r"(?<=\s)(\d)(?=\d{4})", rf"\g<1>{digits}", line.partition("\t")[2])
            made.append(f"netproof counters on {name}\t{numbers}")
    return "\n".join(made) + "\n"


def rounds(names: Sequence[str]) -> list[PairObservation]:
    """Measure some rounds, in which the first node is slow."""
    random = np.random.default_rng(2)
    return [
        PairObservation(number, pair, rate_mb_s=100 * slow * random.lognormal(0, NOISE))
        for number in range(ROUNDS)
        for pair in tournament(names, number)
        for slow in [0.5 if names[0] in pair else 1.0]
    ]


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of some work, and the least CPU seconds of three times."""
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        found = work()
        seconds.append(time.process_time() - begun)
    return found, min(seconds)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print CPU seconds of each step for each number of nodes."""
    parser = argparse.ArgumentParser(prog="ci/evaluate scale-nodes", description=__doc__)
    parser.add_argument("--nodes", type=lambda text: [*map(int, text.split(","))], default=COUNTS)
    asked = parser.parse_args(arguments)
    # As each command has it.
    gc.set_threshold(200_000, 50, 100)
    table: dict[str, list[float]] = {}
    for count in asked.nodes:
        names = [f"node{number:05}" for number in range(count)]
        text = text_of(names)
        read, seconds = timed(lambda: counters(Path("launch.err"), text, names))  # noqa: B023
        assert isinstance(read, Counters)
        seen = [traffic.Seen("one", read, ("eth0",), Settings.of_site({}, 0), True)] * LAUNCHES
        table.setdefault("read a launch's counters", []).append(seconds)
        pairs = rounds(names)
        _, seconds = timed(lambda: next_round(Mode.QUICK, names, pairs, judge(pairs, names)))  # noqa: B023
        table.setdefault("decide a round", []).append(seconds)
        steps = traffic.standing_out, traffic.totals, traffic.carriers_in_rounds, traffic.all_lose
        _, seconds = timed(lambda: [step(seen) for step in steps])  # noqa: B023
        table.setdefault(f"name who stands out in {LAUNCHES} launches", []).append(seconds)
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"CPU seconds by nodes; load average {load}")
    print(f"| step | {' | '.join(map(str, asked.nodes))} | exponent |")
    print("| --- |" + " ---: |" * (len(asked.nodes) + 1))
    for step, seconds_of_counts in table.items():
        cells = " | ".join(f"{one:.2f}" for one in seconds_of_counts)
        print(f"| {step} | {cells} | {exponent(asked.nodes, seconds_of_counts):.2f} |")
