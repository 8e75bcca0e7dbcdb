"""Which pairs to measure next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import permutations

import numpy as np

from netproof.errors import NetproofError
from netproof.localization.accused import DEFAULTS, AccusationSettings, Judgement, State
from netproof.localization.observations import Pair, PairObservation, PairQuantity
from netproof.localization.pair_table import LEAST_NODES
from netproof.localization.rounds import (
    PairRound,
    alone_rounds,
    evenly,
    longest_paths,
    random_round,
    shortest_paths,
    suspects_round,
    tournament,
)
from netproof.localization.searching import Kind
from netproof.localization.topology import Topology

LEAST_ROUNDS = 2
"""Rounds of a kind at least, so that every node meets two others."""


OF_FEW = 3
"""Launches of each pair, and each stream, where too few nodes are there to compare pairs."""


class Mode(StrEnum):
    """How rounds are chosen; with fewer than ``LEAST_NODES`` nodes, each pair ``OF_FEW`` times.

    Quick: at random, then suspects against cleared nodes, until nothing is undecided. Full: every
    pair once. Paths: across uplinks and within leaves, in turn, until nothing is undecided.
    """

    QUICK = "quick"
    FULL = "full"
    PATHS = "paths"


def next_round(
    mode: Mode,
    nodes: Sequence[str],
    observations: Sequence[PairObservation],
    judgement: Judgement,
    *,
    topology: Topology | None = None,
    settings: AccusationSettings = DEFAULTS,
    seed: int = 0,
    done: int | None = None,
) -> PairRound | None:
    """The next round, or None where no more is needed.

    ``done``: launches so far, failed ones included; by default the rounds of ``observations``.
    The same arguments give the same round. Raises NetproofError where mode paths has no topology.
    """
    if done is None:
        done = len({seen.round for seen in observations if not seen.alone})
    if len(nodes) < 2:
        return None
    if mode is Mode.FULL or len(nodes) < LEAST_NODES:
        rounds, times = tournament(nodes), OF_FEW if len(nodes) < LEAST_NODES else 1
        return rounds[done % len(rounds)] if done < times * len(rounds) else None
    random = np.random.default_rng([seed, done])
    least = LEAST_ROUNDS if mode is Mode.QUICK else 2 * LEAST_ROUNDS
    if done >= settings.rounds or (done >= least and judgement.decided):
        return None
    if mode is Mode.PATHS:
        if topology is None:
            raise NetproofError("mode paths needs a topology")
        return _of_paths(nodes, topology, settings, seed, done)
    before = [seen.nodes for seen in observations if not seen.alone]
    behind = _behind(judgement)
    if topology is not None and behind and done % 2:
        inside = shortest_paths(topology, nodes)
        if inside:
            return _filled(inside[(done // 2) % len(inside)], nodes, before, random)
    if done >= LEAST_ROUNDS and (judgement.suspects or judgement.suspected_pairs):
        cleared = {name for name, node in judgement.nodes.items() if node.state is State.CLEARED}
        return suspects_round(
            nodes,
            judgement.suspects,
            cleared,
            before,
            random,
            again=judgement.suspected_pairs,
        )
    return random_round(nodes, before, random)


def _behind(judgement: Judgement) -> list[str]:
    """Undecided nodes of a switch or uplink that is accused: across it nothing tells of them."""
    return [
        node
        for accusation in judgement.accusations
        if accusation.kind in (Kind.SWITCH, Kind.UPLINK)
        for node in accusation.nodes
        if judgement.nodes[node].state is State.UNDECIDED
    ]


def _filled(
    round_: PairRound, nodes: Sequence[str], before: Sequence[Pair], random: np.random.Generator
) -> PairRound:
    """The round with pairs of its idle nodes too."""
    rest = random_round(list(round_.idle), before, random)
    return PairRound((*round_.pairs, *rest.pairs), rest.idle, why=round_.why)


def _of_paths(
    nodes: Sequence[str],
    topology: Topology,
    settings: AccusationSettings,
    seed: int,
    done: int,
) -> PairRound | None:
    inside = shortest_paths(topology, nodes)
    # The first ones of as many as a run can have: those after them are not needed yet.
    number = (done // 2 if inside else done) % ((settings.rounds + 1) // 2)
    across = longest_paths(topology, nodes, number + 1, np.random.default_rng([seed]))
    if across and (done % 2 == 0 or not inside):
        return across[number]
    if not inside:
        return None
    return inside[(done // 2 if across else done) % len(inside)]


ACROSS_BOTH_WAYS = 3
"""Undisturbed rounds across uplinks while all send; two are too few for the stated error."""

MOST_BOTH_WAYS = 8
"""Rounds of pairs that send both ways at once, at most."""


def both_ways_round(
    nodes: Sequence[str],
    observations: Sequence[PairObservation],
    topology: Topology,
    *,
    made: int,
    seed: int = 0,
) -> PairRound | None:
    """The next round in which all pairs send both ways at once, or None where no more is needed.

    A PingPong sends one way at a time, so that several fill half of the uplink that they share.
    ``ACROSS_BOTH_WAYS`` rounds across the uplinks, and one within the leaves, by which a slow
    uplink is told from a slow leaf; further ones for those that were disturbed. As many nodes take
    part below each uplink. ``made``: such rounds so far.
    """
    random = np.random.default_rng([seed, made])
    taking = evenly(topology, nodes, random)
    across = longest_paths(topology, taking, 1, random)
    inside = shortest_paths(topology, nodes)
    leaf = topology.leaf_of
    below = Counter(leaf[node] for node in taking)
    # One pair shares no uplink with another, and of two uplinks all pairs cross both.
    if made >= MOST_BOTH_WAYS or not across or len(below) < 3 or min(below.values()) < 2:
        return None
    counts = {True: 0, False: 0}
    for number in {seen.round for seen in observations if seen.both_ways_mb_s is not None}:
        seen = [one for one in observations if one.round == number and not one.disturbed]
        if seen:
            counts[any(leaf[one.nodes[0]] != leaf[one.nodes[1]] for one in seen)] += 1
    if counts[True] and inside and not counts[False]:
        return inside[made % len(inside)]
    if counts[True] >= ACROSS_BOTH_WAYS:
        return None
    idle = set(nodes) - set(taking)
    return replace(across[0], idle=(*across[0].idle, *(node for node in nodes if node in idle)))


MOST_CONFIRMED = 4
"""Accusations that are measured alone at most, the first ones."""


def confirming_rounds(
    nodes: Sequence[str],
    judgement: Judgement,
    observations: Sequence[PairObservation],
    repeats: int = 3,
) -> tuple[PairRound, ...]:
    """What is accused, alone, and as many pairs of cleared nodes to compare with, in turn.

    Of a node, switch or uplink: a pair with a cleared node, one of those that were measured where
    there is one. () where nothing is accused or nothing is cleared.
    """
    good = _good(nodes, judgement)
    cleared = set(good)
    pairs: list[Pair] = []
    for accusation in judgement.accusations[:MOST_CONFIRMED]:
        if accusation.kind is Kind.PAIR:
            pairs.append((accusation.nodes[0], accusation.nodes[1]))
            continue
        slow = set(accusation.nodes)
        met = [
            seen.nodes
            for seen in observations
            if len(slow.intersection(seen.nodes)) == 1 and not cleared.isdisjoint(seen.nodes)
        ]
        if met:
            pairs.append(met[-1])
        elif good:
            pairs.append((accusation.nodes[0], good[0]))
    controls = list(zip(good[::2], good[1::2], strict=False))[: max(len(pairs), 2)]
    if not pairs or not controls:
        return ()
    return tuple(one for _ in range(repeats) for one in alone_rounds([*pairs, *controls], nodes))


def stream_rounds(
    nodes: Sequence[str], judgement: Judgement, repeats: int = 3
) -> tuple[PairRound, ...]:
    """Streams of each accused node to a cleared one and back, and one between two cleared ones.

    Each pair is of who sends and who receives. () where no node is accused of its rate, or fewer
    than two are cleared. Of too few nodes to compare, each sends to each of the others.
    """
    if len(nodes) < LEAST_NODES:
        return _streams(list(permutations(nodes, 2)), nodes, repeats)
    good = _good(nodes, judgement)
    accused = [
        accusation.nodes[0]
        for accusation in judgement.accusations[:MOST_CONFIRMED]
        if accusation.kind is Kind.NODE
        and any(effect.quantity is PairQuantity.RATE for effect in accusation.effects)
    ]
    if not accused or len(good) < 2:
        return ()
    pairs = [(good[0], good[1])]
    for node in accused:
        pairs += [(node, good[0]), (good[0], node)]
    return _streams(pairs, nodes, repeats)


def _streams(pairs: Sequence[Pair], nodes: Sequence[str], repeats: int) -> tuple[PairRound, ...]:
    return tuple(
        PairRound(
            (pair,),
            tuple(node for node in nodes if node not in pair),
            alone=True,
            why=f"{pair[0]} sends to {pair[1]}",
        )
        for _ in range(repeats)
        for pair in pairs
    )


def _good(nodes: Sequence[str], judgement: Judgement) -> list[str]:
    """The cleared nodes that no accusation has."""
    taken = {node for accusation in judgement.accusations for node in accusation.nodes}
    return [
        name for name in nodes if judgement.nodes[name].state is State.CLEARED and name not in taken
    ]
