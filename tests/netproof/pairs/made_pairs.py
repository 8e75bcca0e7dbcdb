"""Rounds of pairs on a made cluster, in which it is known what is slow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from netproof.pairs.accusation import Judgement, judge
from netproof.pairs.model import UPLINK_OF, PairObservation, Topology
from netproof.pairs.rounds import Mode, Pairs, next_round
from netproof.session.measured import Launch
from netproof.session.pair_rounds import planned
from netproof.site.partition import DEFAULTS, PairSettings

Slower = Callable[[str, str, int], float]
"""The share of its rate that a pair has in a round."""


def names(count: int) -> list[str]:
    return [f"n{number}" for number in range(count)]


def slow_nodes(share: float, *nodes: str) -> Slower:
    return lambda one, other, _: share if {one, other} & {*nodes} else 1.0


def slow_pair(share: float, *pair: str) -> Slower:
    return lambda one, other, _: share if {one, other} == {*pair} else 1.0


def slow_on_the_way(share: float, topology: Topology, what: str) -> Slower:
    return lambda one, other, _: share if what in way(topology, one, other) else 1.0


def way(topology: Topology, one: str, other: str) -> tuple[str, ...]:
    """The switches and uplinks between two nodes; () if nothing joins them."""
    leaves = (topology.leaf_of.get(one), topology.leaf_of.get(other))
    lines = [() if leaf is None else topology.above(leaf) for leaf in leaves]
    top = next((switch for switch in lines[0] if switch in lines[1]), None)
    below = [switch for line in lines for switch in line[: line.index(top)]] if top else []
    ends = (name for switch in below for name in (switch, UPLINK_OF + switch))
    return (*ends, top) if top else ()


def healthy(_one: str, _other: str, _number: int) -> float:
    return 1.0


def tree(leaves: int, size: int) -> Topology:
    nodes = names(leaves * size)
    return Topology(
        {f"leaf{n}": tuple(nodes[n * size : (n + 1) * size]) for n in range(leaves)},
        {f"leaf{n}": "spine" for n in range(leaves)},
    )


class Cluster:
    """Measures rounds: rates with noise, and with what each whole round is off by."""

    def __init__(
        self, slower: Slower = healthy, *, noise: float = 0.02, drift: float = 0.2, seed: int = 1
    ) -> None:
        self.slower, self.noise, self.drift = slower, noise, drift
        self.random = np.random.default_rng(seed)
        self.seen: list[PairObservation] = []

    def measure(self, step: Launch, *, latency: bool = False) -> None:
        number = len({seen.round for seen in self.seen})
        level = self.drift * self.random.normal()
        for one, other in step.pairs:
            off = math.exp(level + self.noise * self.random.normal())
            rate = 100 * self.slower(one, other, number) * off
            time_us = 50 * math.exp(0.05 * self.random.normal()) if latency else None
            self.seen.append(PairObservation(number, (one, other), time_us, rate, alone=step.alone))

    def measure_both_ways(self, step: Launch) -> None:
        """Rates while both nodes of each pair send at once."""
        number = len({seen.round for seen in self.seen})
        for one, other in step.pairs:
            rate = 100 * self.slower(one, other, number)
            rate *= math.exp(self.noise * self.random.normal())
            self.seen.append(PairObservation(number, (one, other), both_ways_mb_s=rate))

    def all(self, rounds: Iterable[Pairs]) -> list[PairObservation]:
        for pairs in rounds:
            self.measure(planned(pairs, ""))
        return self.seen

    def run(
        self,
        nodes: list[str],
        *,
        mode: Mode = Mode.QUICK,
        topology: Topology | None = None,
        settings: PairSettings = DEFAULTS,
        latency: bool = False,
    ) -> Judgement:
        """As the job does it: rounds until no more is needed."""
        judgement = judge(self.seen, nodes, topology, settings)
        while step := next_round(
            mode, nodes, self.seen, judgement, topology=topology, settings=settings
        ):
            self.measure(step, latency=latency)
            judgement = judge(self.seen, nodes, topology, settings)
        return judgement
