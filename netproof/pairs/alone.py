"""Pairs measured alone: whether a node stays slow, which direction is, and what is between leaves.

A slow port stays slow while all others are silent; what was shared with others recovers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean

import scipy

from netproof.errors import grouped
from netproof.measurement.interval import CONFIDENCE
from netproof.pairs.accusation import SHARES, Accusation, Effect, Judgement, State, effect_of
from netproof.pairs.model import Kind, Pair, PairObservation, Topology, table_of
from netproof.site.partition import DEFAULTS, PairQuantity, PairSettings


class Recovery(StrEnum):
    """State of a slow pair while all others are silent."""

    STAYS = "stays slow"
    RECOVERS = "recovers"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Alone:
    """A slow pair alone: ``effects`` compared with pairs of cleared nodes, alone too."""

    pair: Pair
    recovery: Recovery
    effects: tuple[Effect, ...]
    reason: str


def measured_alone(
    observations: Sequence[PairObservation],
    judgement: Judgement,
    settings: PairSettings = DEFAULTS,
) -> tuple[Alone, ...]:
    """Return, for each accused pair, node or group measured alone, whether it stays slow.

    It stays slow if it certainly loses more than half of what it loses among others, and recovers
    if it certainly loses less, at an error of ``settings.missed`` each.
    """
    alone = (one for one in observations if one.alone and not one.disturbed)
    seen = grouped(((min(one.nodes), max(one.nodes)), one) for one in alone)
    accused = {pair: _accusation_of(pair, judgement) for pair in seen}
    good = [
        several
        for pair, several in seen.items()
        if accused[pair] is None
        and all(judgement.nodes[node].state is State.CLEARED for node in pair)
    ]
    judged = ((pair, about) for pair, about in accused.items() if about)
    return tuple(_judged(pair, about, seen[pair], good, settings) for pair, about in judged)


def _accusation_of(pair: Pair, judgement: Judgement) -> Accusation | None:
    for accusation in judgement.accusations:
        inside = {*pair} & {*accusation.nodes}
        if len(inside) == (2 if len(accusation.nodes) == 2 else 1):
            return accusation
    return None


def _judged(
    pair: Pair,
    about: Accusation,
    seen: Sequence[PairObservation],
    good: Sequence[Sequence[PairObservation]],
    settings: PairSettings,
) -> Alone:
    effects: list[Effect] = []
    reasons: dict[Recovery, str] = {}
    for concurrent in about.effects:
        # A pair alone shares nothing, and one way at a time shows all that its links carry.
        quantity = concurrent.quantity if concurrent.quantity.of_nodes else PairQuantity.RATE
        mine, *controls = (
            [value for one in several if (value := one.slowness(quantity)) is not None]
            for several in (seen, *good)
        )
        controls = [several for several in controls if several]
        if not mine or not controls or len(mine) + sum(map(len, controls)) <= 1 + len(controls):
            reasons[Recovery.UNDECIDED] = (
                f"{quantity}: too few launches alone, of this pair or of pairs of cleared nodes"
            )
            continue
        effect, least, most = _loss(quantity, mine, controls, settings, settings.missed)
        effects.append(effect)
        bar = abs(math.log(concurrent.ratio)) / 2
        recovery = Recovery.RECOVERS if most < bar else Recovery.UNDECIDED
        recovery = Recovery.STAYS if least > bar else recovery
        reasons[recovery] = f"{quantity}: {effect} alone, {concurrent} among others"
    recovery = next(iter(reasons)) if len(reasons) == 1 else Recovery.UNDECIDED
    recovery = Recovery.STAYS if Recovery.STAYS in reasons else recovery
    return Alone(pair, recovery, tuple(effects), "; ".join(reasons.values()))


def _loss(
    quantity: PairQuantity,
    mine: Sequence[float],
    controls: Sequence[Sequence[float]],
    settings: PairSettings,
    error: float,
    others: Sequence[Sequence[float]] = (),
) -> tuple[Effect, float, float]:
    """Return the effect of slownesses against those of controls, and its least and most loss.

    ``controls``, ``others``: launches that are alike in each, whose scatter is the noise, as that
    of ``mine``; least and most are logarithms, at that error each.
    """
    groups = [mine, *controls, *others]
    together = [value for several in controls for value in several]
    freedom = sum(map(len, groups)) - len(groups)
    squares = sum((value - fmean(several)) ** 2 for several in groups for value in several)
    scale = max(math.sqrt(squares / freedom), settings.resolution)
    loss = fmean(mine) - fmean(together)
    width = scale * math.sqrt(1 / len(mine) + 1 / len(together))
    half = width * float(scipy.special.stdtrit(freedom, (1 + CONFIDENCE) / 2))
    far = width * float(scipy.special.stdtrit(freedom, 1 - error))
    effect = effect_of(quantity, loss, loss - half, loss + half, len(mine))
    return effect, loss - far, loss + far


LEAST_STREAMS = 2
"""Least number of streams of a kind: the scatter of a single one is not known."""


class Way(StrEnum):
    """One of the two directions of a node's link, by what the node does."""

    SENDS = "sends"
    RECEIVES = "receives"


def slow_ways(
    streams: Sequence[tuple[Pair, float]],
    judgement: Judgement,
    settings: PairSettings = DEFAULTS,
) -> dict[str, dict[Way, Effect]]:
    """Return the effects of both directions of accused nodes, the slow one first.

    ``streams``: undisturbed ones from the first node of a pair to the second, made alone, and their
    rates in MB/s. A PingPong's time has both directions in halves: if only one is slow, the
    ``ratio`` of both leaves it 1 / (2 / ratio - 1) of its rate. A direction is slow if it certainly
    loses more than half of that, and is not if it certainly loses less, at an error of
    ``settings.missed`` each. Nothing is returned of a node if that is inconclusive for either, and
    {} if not just one is slow, or the other certainly loses what counts.
    """
    good = set(judgement.good)

    def slowness(senders: set[str], receivers: set[str]) -> list[float]:
        return [
            -math.log(rate)
            for (sender, receiver), rate in streams
            if sender in senders and receiver in receivers
        ]

    controls = slowness(good, good)
    found: dict[str, dict[Way, Effect]] = {}
    for accusation in judgement.accusations:
        rates = (one.ratio for one in accusation.effects if one.quantity is PairQuantity.RATE)
        if accusation.kind is not Kind.NODE or not 0 < (ratio := next(rates, 0.0)) < 1:
            continue
        (node,) = accusation.nodes
        sends, receives = slowness({node}, good), slowness(good, {node})
        if min(map(len, (controls, sends, receives))) < LEAST_STREAMS:
            continue
        rate, error = PairQuantity.RATE, settings.missed
        losses = {
            Way.SENDS: _loss(rate, sends, [controls], settings, error, [receives]),
            Way.RECEIVES: _loss(rate, receives, [controls], settings, error, [sends]),
        }
        bar, counts = math.log(2 / ratio - 1) / 2, settings.counts(PairQuantity.RATE)
        slow = [way for way, (_, least, _) in losses.items() if least > bar]
        rest = [way for way, (_, _, most) in losses.items() if most < bar]
        if len(slow) + len(rest) == len(losses):
            one_way = len(slow) == 1 and losses[rest[0]][1] <= counts
            found[node] = {way: losses[way][0] for way in (*slow, *rest)} if one_way else {}
    return found


LEAST_LONE = 3
"""Launches of a pair alone within two leaves, and across, that show what is between them."""


def two_by_two(nodes: Sequence[str], topology: Topology | None) -> bool:
    """Check whether the nodes are two of each of two leaves.

    All pairs of a round are across these or none is, so rounds do not show what is between them.
    """
    leaf = {} if topology is None else topology.leaf_of
    below = Counter(leaf[node] for node in nodes if node in leaf)
    return len(nodes) == 4 and sorted(below.values()) == [2, 2]


def across_and_within(
    lone: Sequence[PairObservation], topology: Topology
) -> tuple[list[float], list[float]]:
    """Return the slownesses of pairs across leaves, and within."""
    leaf = topology.leaf_of
    by_place: dict[bool, list[float]] = {True: [], False: []}
    for seen in lone:
        value = seen.slowness(PairQuantity.RATE)
        if value is not None and not seen.disturbed:
            by_place[len({leaf[node] for node in seen.nodes}) > 1].append(value)
    return by_place[True], by_place[False]


def slow_uplink(
    nodes: Sequence[str],
    lone: Sequence[PairObservation],
    topology: Topology | None,
    settings: PairSettings = DEFAULTS,
) -> Accusation | None:
    """Return the uplink of two leaves of two nodes, if pairs across certainly lose what counts.

    ``lone``: pairs while all others were silent, which share no uplink.
    """
    if topology is None or not two_by_two(nodes, topology):
        return None
    across, within = across_and_within(lone, topology)
    if min(len(across), len(within)) < LEAST_LONE:
        return None
    error = settings.error * SHARES[Kind.UPLINK]
    effect, least, _ = _loss(PairQuantity.RATE, across, [within], settings, error)
    if least <= settings.counts(PairQuantity.RATE):
        return None
    together = [replace(seen, round=1, alone=False) for seen in lone]
    things = table_of(together, nodes, PairQuantity.RATE, topology).groups
    crossed = [one for one in things if len(one.rows) == len(across)]
    if not crossed:
        # Slurm knows of no switch that joins the two.
        return None
    first, *others = sorted(crossed, key=lambda one: one.kind is not Kind.UPLINK)
    members = tuple(nodes[number] for number in first.nodes)
    return Accusation(first.kind, first.name, members, (effect,), tuple(map(str, others)))
