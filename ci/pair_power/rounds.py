"""Simulated rounds of pairs with a known fault.

A pair measures the rate of the slowest part of its path, times noise, times the drift of the whole
machine in that round.
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from netproof.pairs.model import Kind, PairTable
from netproof.pairs.rounds import tournament
from netproof.pairs.topology import UPLINK_OF, Topology

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SESSIONS = Path(__file__).resolve().parents[2] / "tests/data/sessions"
RECORDED = ("healthy.json", "two-switches.json", "ranges.json")
FROM_BYTES = 65536
"""Least size at which a recorded time shows a rate."""
NOISE = 0.05
DRIFT = 0.1
"""Drift of the whole machine from round to round, in logarithms."""

ROUNDS = 16


@cache
def recorded() -> Floats:
    """Return how launches' times of large messages deviate from others, in logarithms, over √2.

    They are of two-rank inter-node cases in recorded sessions of healthy switches, at each size:
    both orders of each two launches, so that slower and faster are as frequent.
    """
    off = []
    for name in RECORDED:
        document = json.loads((SESSIONS / name).read_text())
        for test in (test for run in document["runs"] for test in run["testcases"]):
            case, measured = test.get("netproof_case"), test.get("netproof_measured")
            if not case or not measured or case["path"] != "inter-node" or case["ranks"] != 2:
                continue
            curves = [launch["curve"] for launch in measured["launches"]]
            for one, other in itertools.permutations(curves, 2):
                both = zip(one["sizes"], one["time_us"], other["time_us"], strict=True)
                off += [math.log(a / b) / math.sqrt(2) for s, a, b in both if s >= FROM_BYTES]
    return np.array(off)


def noise(name: str, count: int, random: np.random.Generator) -> Floats:
    """Draw noise of ``count`` measurements, in logarithms.

    ``normal``; ``disturbed``: one in a hundred is also up to 10 times slower; ``recorded``: drawn
    from the testbed's.
    """
    if name == "recorded":
        return random.choice(recorded(), size=count)
    off = random.normal(scale=NOISE, size=count)
    if name == "disturbed":
        hit = random.random(count) < 0.01
        off = off + hit * random.uniform(0, math.log(10), size=count)
    return off


@cache
def leaves_of(nodes: int) -> Topology:
    """Return a tree with as many leaves as nodes per leaf, and a spine."""
    size = max(2, 2 ** (round(math.log2(nodes)) // 2))
    members = [f"n{number}" for number in range(nodes)]
    leaves = {
        f"leaf{first // size}": tuple(members[first : first + size])
        for first in range(0, nodes, size)
    }
    return Topology(leaves, dict.fromkeys(leaves, "spine"))


@dataclass(frozen=True)
class Fault:
    """A fault: ``count`` nodes, a pair or the first leaf's uplink are slower by a share."""

    kind: str
    count: int
    slower: float

    @property
    def words(self) -> str:
        """The fault in words."""
        if self.kind == "node":
            return "1 node" if self.count == 1 else f"{self.count} nodes"
        return f"1 {self.kind}"

    def true(self) -> set[tuple[Kind, str]]:
        """Return the culprits to accuse."""
        if self.kind == "node":
            return {(Kind.NODE, f"n{number}") for number in range(self.count)}
        if self.kind == "pair":
            return {(Kind.PAIR, "n0 – n1")}
        return {(Kind.UPLINK, UPLINK_OF + "leaf0")} if self.kind == "uplink" else set()

    def slowness(self, one: Ints, other: Ints, leaf: int) -> Floats:
        """Return pairs' slowness in logarithms; faulty nodes and leaves have the least numbers."""
        if self.kind == "node":
            hit = (one < self.count) | (other < self.count)
        elif self.kind == "pair":
            hit = one + other == 1
        else:
            hit = (one < leaf) != (other < leaf)
        return -math.log1p(-self.slower) * hit


HEALTHY = Fault("nothing", 0, 0.0)


def rounds_of(nodes: int, fault: Fault, noise_name: str, random: np.random.Generator) -> PairTable:
    """Measure random rounds of all nodes, without repeating a pair where possible."""
    half = nodes // 2
    one, other = (np.concatenate(ends) for ends in _pairs(nodes, random))
    number = np.repeat(np.arange(ROUNDS), half)
    slowness = noise(noise_name, len(one), random) + random.normal(scale=DRIFT, size=ROUNDS)[number]
    if fault.slower:
        leaf = len(leaves_of(nodes).leaves["leaf0"])
        slowness = slowness + fault.slowness(one, other, leaf)
    return PairTable(tuple(f"n{n}" for n in range(nodes)), number, one, other, slowness)


def _pairs(nodes: int, random: np.random.Generator) -> tuple[list[Ints], list[Ints]]:
    """Draw both ends of the pairs of each round."""
    if nodes <= ROUNDS:
        turns = tournament([str(number) for number in range(nodes)])
        rounds = []
        while len(rounds) < ROUNDS:
            names = random.permutation(nodes)
            rounds += [
                names[np.array(turns[turn].pairs, dtype=int)]
                for turn in random.permutation(len(turns))
            ]
        return [pairs[:, 0] for pairs in rounds[:ROUNDS]], [
            pairs[:, 1] for pairs in rounds[:ROUNDS]
        ]
    ones, others = [], []
    met = np.zeros(0, dtype=np.int64)
    while len(ones) < ROUNDS:
        order = random.permutation(nodes)
        one, other = order[::2], order[1::2]
        while True:
            codes = np.minimum(one, other) * nodes + np.maximum(one, other)
            again = np.flatnonzero(np.isin(codes, met))
            if not len(again):
                break
            for place, with_ in zip(again, random.integers(len(one), size=len(again)), strict=True):
                other[[place, with_]] = other[[with_, place]]
        met = np.concatenate([met, codes])
        ones.append(one)
        others.append(other)
    return ones, others


def first_rounds(table: PairTable, count: int) -> PairTable:
    """Return the first rounds of a table."""
    rows = int(np.searchsorted(table.round, count))
    return PairTable(
        table.names, table.round[:rows], table.one[:rows], table.other[:rows], table.slowness[:rows]
    )
