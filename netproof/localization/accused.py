"""Answers of localization: the state of each node, and what is accused, over all quantities."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from netproof.errors import NetproofError
from netproof.localization.observations import (
    LEAST_NODES,
    Floats,
    Pair,
    PairObservation,
    PairQuantity,
    PairTable,
)
from netproof.localization.searching import Fit, Kind
from netproof.measurement.interval import CONFIDENCE


@dataclass(frozen=True)
class AccusationSettings:
    """Slowness that counts, and the errors allowed.

    ``slower``: least share by which a rate is lower; ``slower_latency``: the same of one over a
    time, so that 0.25 is a time a third longer, since small messages scatter far more; ``error``:
    largest share of healthy runs with an accusation; ``missed``: probability of clearing a node
    that is slower by just that; ``rounds``: over which both are spent, and the most of mode quick;
    ``disturbed_share``: expected share of disturbed measurements, a tenth of that of noise wider
    than the rest; ``resolution``: least relative difference that is believed. Raises NetproofError
    if one is out of its range.
    """

    slower: float = 0.10
    slower_latency: float = 0.25
    error: float = 0.001
    missed: float = 0.01
    rounds: int = 16
    disturbed_share: float = 0.01
    resolution: float = 0.001

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name != "rounds" and not 0 < value < 1:
                raise NetproofError(f"{name} is {value}, and has to be between 0 and 1")
        if self.rounds < 2:
            raise NetproofError(f"rounds is {self.rounds}, and has to be at least 2")

    def counts(self, quantity: PairQuantity) -> float:
        """Return the least slowness of a quantity that counts, a logarithm."""
        latency = quantity is PairQuantity.LATENCY
        return -math.log1p(-(self.slower_latency if latency else self.slower))


DEFAULTS = AccusationSettings()


class State(StrEnum):
    """State of a node; ``NOT_COMPARED``: too few nodes were measured to compare it."""

    CLEARED = "cleared"
    ACCUSED = "accused"
    UNDECIDED = "undecided"
    NOT_COMPARED = "not compared"


@dataclass(frozen=True)
class Effect:
    """Ratio to the others' rate or time, with its 95 % interval, seen in so many rounds."""

    quantity: PairQuantity
    ratio: float
    interval: tuple[float, float]
    rounds: int

    def __str__(self) -> str:
        of = "time" if self.quantity is PairQuantity.LATENCY else self.quantity
        shares = [f"{100 * share:.3g}" for share in (self.ratio, *self.interval)]
        return f"{shares[0]} % of the others' {of}, {shares[1]} to {shares[2]} %"


@dataclass(frozen=True)
class NodeState:
    """State of a node, with the reason and its known effects, at most one per quantity."""

    node: str
    state: State
    effects: tuple[Effect, ...]
    reason: str


@dataclass(frozen=True)
class Accusation:
    """Something slow, with its nodes and an effect per quantity.

    ``alternatives``: explanations that fit equally well.
    """

    kind: Kind
    name: str
    nodes: tuple[str, ...]
    effects: tuple[Effect, ...]
    alternatives: tuple[str, ...]

    @property
    def key(self) -> tuple[Kind, str]:
        """Key of the slow thing: equal keys are the same thing."""
        return self.kind, self.name

    def __str__(self) -> str:
        sentence = f"{named(self.kind, self.name)}: {'; '.join(map(str, self.effects))}"
        if self.kind is Kind.PAIR and not self.alternatives:
            sentence += "; both nodes are fine with others"
        if self.alternatives:
            sentence += f"; fits equally well: {', or '.join(self.alternatives)}"
        return sentence


def named(kind: Kind, name: str) -> str:
    """Return kind and name; an uplink's name has its kind."""
    return name if kind is Kind.UPLINK else f"{kind} {name}"


@dataclass(frozen=True)
class Noise:
    """Scatter of healthy measurements, estimated from the run itself.

    ``share``: relative noise of one measurement, None if it is not known, from ``freedom`` degrees
    of freedom; ``nodes_share``: scatter of healthy nodes beyond it; ``disturbed``: share of
    measurements that are far from the others, or wider.
    """

    quantity: PairQuantity
    share: float | None
    nodes_share: float
    freedom: float
    disturbed: float


@dataclass(frozen=True)
class Judgement:
    """Judgement of a partition by the rounds so far.

    ``rounds``: usable ones; ``suspects``: undecided nodes that look slow, worst first;
    ``suspected_pairs``: pairs that were slow whenever measured, and are not accused;
    ``disturbed``: observations left out as such.
    """

    rounds: int
    nodes: Mapping[str, NodeState]
    accusations: tuple[Accusation, ...]
    noise: tuple[Noise, ...]
    suspects: tuple[str, ...]
    suspected_pairs: tuple[Pair, ...]
    disturbed: int

    @property
    def decided(self) -> bool:
        """True if no pair is suspected, and no node undecided but those of a slow leaf.

        More rounds cannot decide these.
        """
        hidden = {
            node
            for accusation in self.accusations
            if accusation.kind is Kind.SWITCH
            for node in accusation.nodes
        }
        return not self.suspected_pairs and all(
            node.state is not State.UNDECIDED or name in hidden for name, node in self.nodes.items()
        )


@dataclass(frozen=True)
class QuantityVerdict:
    """Judgement in one quantity, nodes by number.

    ``accused``: each with the effect in this quantity; ``cleared``: by node; ``estimates``:
    logarithms by which each node is slower, NaN if not known, with their ``errors``;
    ``explanation``: None if the noise is not known.
    """

    quantity: PairQuantity
    table: PairTable
    explanation: Fit | None
    accused: tuple[Accusation, ...]
    cleared: NDArray[np.bool_]
    estimates: Floats
    errors: Floats
    suspects: tuple[int, ...]
    suspected_pairs: tuple[tuple[int, int], ...]
    noise: Noise

    @cached_property
    def half_width(self) -> float:
        """Half of a 95 % interval, in standard errors."""
        freedom = self.explanation.freedom
        return float(scipy.special.stdtrit(freedom, (1 + CONFIDENCE) / 2))

    @cached_property
    def accused_nodes(self) -> dict[str, Accusation]:
        """The accusation of each node that is itself accused."""
        nodes = (one for one in self.accused if one.kind is Kind.NODE)
        return {one.name: one for one in nodes if not one.alternatives}


def effect_of(
    quantity: PairQuantity, middle: float, low: float, high: float, rounds: int
) -> Effect:
    """Return the effect of a slowness in logarithms, with its interval, as a rate or a time."""
    if quantity is not PairQuantity.LATENCY:
        middle, low, high = -middle, -high, -low
    ratio, *ends = (math.exp(log) if log < 700 else math.inf for log in (middle, low, high))
    return Effect(quantity, ratio, (ends[0], ends[1]), rounds)


def judgement_on(
    nodes: Sequence[str],
    verdicts: Sequence[QuantityVerdict],
    observations: Sequence[PairObservation],
) -> Judgement:
    """Return the judgement of a partition by the verdicts on its quantities.

    Bidirectional rates accuse switches and uplinks only: nodes are judged by the others.
    """
    accusations = _accusations(verdicts)
    shared = [one for one in verdicts if not one.quantity.of_nodes]
    verdicts = [one for one in verdicts if one.quantity.of_nodes]
    groups = {
        node: accusation
        for accusation in accusations
        if accusation.kind is not Kind.NODE or accusation.alternatives
        for node in accusation.nodes
    }
    states = {
        name: _state(number, name, verdicts, groups.get(name)) for number, name in enumerate(nodes)
    }
    if len(nodes) < LEAST_NODES:
        why = f"too few nodes to compare with each other ({len(nodes)})"
        for name in {node for seen in observations for node in seen.nodes} & states.keys():
            states[name] = NodeState(name, State.NOT_COMPARED, (), why)
    undecided = {name for name, node in states.items() if node.state is State.UNDECIDED}
    suspects: dict[str, None] = {}
    pairs: dict[Pair, None] = {}
    for verdict in verdicts:
        suspects |= dict.fromkeys(nodes[n] for n in verdict.suspects if nodes[n] in undecided)
        pairs |= dict.fromkeys((nodes[one], nodes[other]) for one, other in verdict.suspected_pairs)
    return Judgement(
        rounds=max((verdict.table.rounds for verdict in verdicts), default=0),
        nodes=states,
        accusations=accusations,
        noise=tuple(verdict.noise for verdict in (*verdicts, *shared)),
        suspects=tuple(suspects),
        suspected_pairs=tuple(pairs),
        disturbed=sum(seen.disturbed for seen in observations),
    )


def _accusations(verdicts: Sequence[QuantityVerdict]) -> tuple[Accusation, ...]:
    """Return what is accused in any quantity, one accusation per thing."""
    by_key: dict[tuple[Kind, str], list[Accusation]] = defaultdict(list)
    for verdict in verdicts:
        accused = _grouped(verdict) if verdict.quantity.of_nodes else verdict.accused
        for one in accused:
            if verdict.quantity.of_nodes or one.kind in (Kind.SWITCH, Kind.UPLINK):
                by_key[one.key].append(one)
    _merge(by_key)
    return tuple(
        replace(
            several[0],
            effects=tuple(effect for one in several for effect in one.effects),
            alternatives=_common_alternatives(several),
        )
        for several in by_key.values()
    )


def _common_alternatives(several: Sequence[Accusation]) -> tuple[str, ...]:
    """Return the alternatives of an accusation that no quantity excludes."""
    return tuple(
        other
        for other in several[0].alternatives
        if all(other in one.alternatives for one in several)
    )


def _merge(by_key: dict[tuple[Kind, str], list[Accusation]]) -> None:
    """Of two things of which one would do, leave the one that another quantity accuses alone.

    One quantity may not tell a leaf switch from its uplink, and another accuses the uplink alone.
    """
    keys = {named(*key): key for key in by_key}
    for key, several in list(by_key.items()):
        for other in _common_alternatives(several):
            instead = keys.get(other)
            if instead in by_key and not all(
                named(*key) in one.alternatives for one in by_key[instead]
            ):
                by_key[instead] += by_key.pop(key)
                break


def _grouped(verdict: QuantityVerdict) -> list[Accusation]:
    """Return the accusations, nodes that are fine among themselves as one group."""
    single, explanation, table = verdict.accused_nodes, verdict.explanation, verdict.table
    whole = list(verdict.accused)
    if explanation is None or len(single) < 2:
        return whole
    numbers = [number for number, name in enumerate(table.names) if name in single]
    inside = np.isin(table.one, numbers) & np.isin(table.other, numbers)
    if inside.sum() < 2:
        return whole
    off = (table.slowness - explanation.levels[table.round])[inside]
    least = min(
        float(effect)
        for thing, effect in zip(explanation.things, explanation.effects, strict=True)
        if thing.kind is Kind.NODE and thing.name in single
    )
    deviate = float(scipy.special.stdtrit(explanation.freedom, 0.99))
    error = explanation.scale / math.sqrt(len(off)) * deviate
    if float(np.median(off)) + error >= least / 2:
        return whole
    names = tuple(table.names[number] for number in numbers)
    middle = sorted(single.values(), key=lambda one: one.effects[0].ratio)[len(single) // 2]
    rest = [one for one in whole if one.kind is not Kind.NODE or one.alternatives]
    return [*rest, Accusation(Kind.GROUP, ", ".join(names), names, middle.effects, ())]


def _state(
    number: int, name: str, verdicts: Sequence[QuantityVerdict], group: Accusation | None
) -> NodeState:
    several = [_known(verdict, number, name) for verdict in verdicts]
    states = {state for state, _, _ in several}
    if State.ACCUSED in states:
        state = State.ACCUSED
    else:
        state = State.CLEARED if states == {State.CLEARED} else State.UNDECIDED
    reasons = [reason for one, _, reason in several if one is state]
    if not verdicts:
        reasons = ["not measured alongside another pair"]
    if group is not None:
        slow = (named(group.kind, group.name), *group.alternatives)
        reasons.append(f"{' or '.join(slow)} is slow")
    effects = tuple(effect for _, effect, _ in several if effect is not None)
    return NodeState(name, state, effects, "; ".join(dict.fromkeys(reasons)))


def _known(verdict: QuantityVerdict, number: int, name: str) -> tuple[State, Effect | None, str]:
    """Return state, effect and reason of a node in one quantity."""
    quantity, explanation = verdict.quantity, verdict.explanation
    if explanation is None:
        return State.UNDECIDED, None, f"too few rounds to know the noise of the {quantity}"
    accused = verdict.accused_nodes.get(name)
    if accused is not None:
        (effect,) = accused.effects
        return State.ACCUSED, effect, f"{quantity}: {effect}"
    rounds = int(verdict.table.measured[number])
    estimate, error = float(verdict.estimates[number]), float(verdict.errors[number])
    if not rounds or math.isnan(estimate):
        why = "not measured" if not rounds else "measured only with what is slow"
        return State.UNDECIDED, None, f"{quantity}: {why}"
    half = error * verdict.half_width
    effect = effect_of(quantity, estimate, estimate - half, estimate + half, rounds)
    if verdict.cleared[number]:
        return State.CLEARED, effect, f"{quantity}: {effect}"
    return State.UNDECIDED, effect, f"{quantity}: {effect}, not sure enough after {rounds} rounds"
