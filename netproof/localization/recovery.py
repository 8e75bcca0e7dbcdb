"""Concurrent against alone: a slow port stays slow, what was shared with others recovers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

import scipy

from netproof.localization.accused import (
    DEFAULTS,
    Accusation,
    AccusationSettings,
    Effect,
    Judgement,
    State,
    effect_of,
)
from netproof.localization.observations import Pair, PairObservation, PairQuantity
from netproof.measurement.interval import CONFIDENCE


class Recovery(StrEnum):
    """What became of a slow pair when all others were silent."""

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


def alone(
    observations: Sequence[PairObservation],
    judgement: Judgement,
    settings: AccusationSettings = DEFAULTS,
) -> tuple[Alone, ...]:
    """Of each accused pair, node or group that was measured alone: whether it stays slow.

    It stays slow where it surely lost more than half of what it loses among others, and recovers
    where it surely lost less, at an error of ``settings.missed`` each.
    """
    seen = [one for one in observations if one.alone and not one.disturbed]
    found = []
    for pair in dict.fromkeys(tuple(sorted(one.nodes)) for one in seen):
        about = _accusation_of(pair, judgement)
        if about is not None:
            found.append(_judged((pair[0], pair[1]), about, seen, judgement, settings))
    return tuple(found)


def _accusation_of(pair: Sequence[str], judgement: Judgement) -> Accusation | None:
    for accusation in judgement.accusations:
        inside = {*pair} & {*accusation.nodes}
        if len(inside) == (2 if len(accusation.nodes) == 2 else 1):
            return accusation
    return None


def _judged(
    pair: Pair,
    about: Accusation,
    seen: Sequence[PairObservation],
    judgement: Judgement,
    settings: AccusationSettings,
) -> Alone:
    effects: list[Effect] = []
    told: dict[Recovery, str] = {}
    for concurrent in about.effects:
        # A pair alone shares nothing, and one way at a time shows all that its links carry.
        quantity = concurrent.quantity if concurrent.quantity.of_nodes else PairQuantity.RATE
        values: dict[Pair, list[float]] = defaultdict(list)
        for one in seen:
            slowness = one.slowness(quantity)
            if slowness is not None:
                values[min(one.nodes), max(one.nodes)].append(slowness)
        controls = [several for others, several in values.items() if _is_control(others, judgement)]
        mine = values.get(pair, [])
        groups = [several for several in [mine, *controls] if several]
        freedom = sum(map(len, groups)) - len(groups)
        if not mine or not controls or freedom < 1:
            told[Recovery.UNDECIDED] = (
                f"{quantity}: too few launches alone, of this pair or of pairs of cleared nodes"
            )
            continue
        # What healthy pairs differ by, alone as among others, is no recovery and no loss.
        squares = sum((value - fmean(several)) ** 2 for several in groups for value in several)
        scale = max(math.sqrt(squares / freedom), settings.resolution)
        count = sum(map(len, controls))
        loss = fmean(mine) - fmean(value for several in controls for value in several)
        error = scale * math.sqrt(1 / len(mine) + 1 / count)
        half = error * float(scipy.special.stdtrit(freedom, (1 + CONFIDENCE) / 2))
        effect = effect_of(quantity, loss, loss - half, loss + half, len(mine))
        effects.append(effect)
        bar = _loss(concurrent) / 2
        far = error * float(scipy.special.stdtrit(freedom, 1 - settings.missed))
        if loss - far > bar:
            recovery = Recovery.STAYS
        elif loss + far < bar:
            recovery = Recovery.RECOVERS
        else:
            recovery = Recovery.UNDECIDED
        told[recovery] = f"{quantity}: {effect} alone, {concurrent} among others"
    if Recovery.STAYS in told:
        recovery = Recovery.STAYS
    elif [*told] == [Recovery.RECOVERS]:
        recovery = Recovery.RECOVERS
    else:
        recovery = Recovery.UNDECIDED
    return Alone(pair, recovery, tuple(effects), "; ".join(told.values()))


def _is_control(pair: Pair, judgement: Judgement) -> bool:
    return (
        all(
            node in judgement.nodes and judgement.nodes[node].state is State.CLEARED
            for node in pair
        )
        and _accusation_of(pair, judgement) is None
    )


def _loss(effect: Effect) -> float:
    return abs(math.log(effect.ratio))
