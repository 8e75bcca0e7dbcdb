"""In which direction a slow node is slow: what it sends, what it receives, or both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

import scipy

from netproof.localization.accused import (
    DEFAULTS,
    AccusationSettings,
    Effect,
    Judgement,
    State,
    effect_of,
)
from netproof.localization.observations import PairQuantity
from netproof.localization.searching import Kind
from netproof.measurement.interval import CONFIDENCE

LEAST = 2
"""Streams of a kind at least: of one it is not known how far such ones lie apart."""


class Way(StrEnum):
    """One of the two directions of a node's link, by what the node does."""

    SENDS = "sends"
    RECEIVES = "receives"

    @property
    def other(self) -> Way:
        """The other one."""
        return Way.RECEIVES if self is Way.SENDS else Way.SENDS


@dataclass(frozen=True)
class Stream:
    """A stream while all others were silent: who sent to whom, and its rate in MB/s."""

    sender: str
    receiver: str
    rate_mb_s: float
    disturbed: bool = False


@dataclass(frozen=True)
class SlowWay:
    """The direction in which a node is slow; ``effect``: compared with streams of cleared nodes.

    ``rest``: of the other direction, which is not.
    """

    node: str
    way: Way
    effect: Effect
    rest: Effect


def slow_ways(
    streams: Sequence[Stream],
    judgement: Judgement,
    settings: AccusationSettings = DEFAULTS,
) -> tuple[SlowWay, ...]:
    """Of each accused node that is slow in one direction only, which it is.

    A PingPong's time has both directions in halves. If only one is slow, the ``ratio`` of both
    leaves it 1 / (2 / ratio - 1) of its rate. A direction is slow where it surely lost more than
    half of that, and is not where it surely lost less, at an error of ``settings.missed`` each.
    Where that cannot be told of both, or the other surely lost what counts, nothing is said.
    """
    calm = [one for one in streams if not one.disturbed and one.rate_mb_s > 0]
    taken = {node for accusation in judgement.accusations for node in accusation.nodes}
    good = {name for name, one in judgement.nodes.items() if one.state is State.CLEARED} - taken
    controls = [math.log(one.rate_mb_s) for one in calm if {one.sender, one.receiver} <= good]
    found = []
    for accusation in judgement.accusations:
        ratio = next(
            (one.ratio for one in accusation.effects if one.quantity is PairQuantity.RATE), None
        )
        if accusation.kind is not Kind.NODE or ratio is None or not 0 < ratio < 1:
            continue
        (node,) = accusation.nodes
        ways = {
            Way.SENDS: [
                math.log(one.rate_mb_s)
                for one in calm
                if one.sender == node and one.receiver in good
            ],
            Way.RECEIVES: [
                math.log(one.rate_mb_s)
                for one in calm
                if one.receiver == node and one.sender in good
            ],
        }
        groups = [controls, *ways.values()]
        if min(map(len, groups)) < LEAST:
            continue
        found += _slow_way(node, ways, controls, math.log(2 / ratio - 1) / 2, settings)
    return tuple(found)


def _slow_way(
    node: str,
    ways: dict[Way, list[float]],
    controls: list[float],
    bar: float,
    settings: AccusationSettings,
) -> list[SlowWay]:
    groups = [controls, *ways.values()]
    freedom = sum(map(len, groups)) - len(groups)
    squares = sum((value - fmean(several)) ** 2 for several in groups for value in several)
    scale = max(math.sqrt(squares / freedom), settings.resolution)
    slow, effects = [], {}
    for way, values in ways.items():
        loss = fmean(controls) - fmean(values)
        error = scale * math.sqrt(1 / len(values) + 1 / len(controls))
        half = error * float(scipy.special.stdtrit(freedom, (1 + CONFIDENCE) / 2))
        effects[way] = effect_of(PairQuantity.RATE, loss, loss - half, loss + half, len(values))
        far = error * float(scipy.special.stdtrit(freedom, 1 - settings.missed))
        if loss - far > bar:
            slow.append(way)
        elif loss + far >= bar or loss - far > settings.counts(PairQuantity.RATE):
            return []
    if len(slow) != 1:
        return []
    (way,) = slow
    return [SlowWay(node, way, effects[way], effects[way.other])]
