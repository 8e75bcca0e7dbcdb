"""Judge nodes after every round of pairs: which are cleared, accused or undecided.

Accusations err in at most ``error`` of healthy runs, over all nodes, pairs, groups, quantities and
rounds: each kind and quantity has its share, each node its part of that (Bonferroni), and each
round what ``nominal_levels`` gives it. A node is cleared if it is hardly slower by what counts.
"""

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
from netproof.measurement.interval import CONFIDENCE
from netproof.pairs.model import (
    LEAST_NODES,
    Fit,
    Floats,
    Kind,
    Pair,
    PairObservation,
    PairTable,
    Posterior,
    Thing,
    table_of,
    tails,
)
from netproof.pairs.search import (
    LEAST_ROUNDS,
    MOST_THINGS,
    Search,
    alternatives,
    chance,
    contrasts,
    contrasts_of_nodes,
    explained,
    nominal_levels,
    posterior,
)
from netproof.pairs.topology import Topology
from netproof.site.pair_settings import DEFAULTS, PairQuantity, PairSettings


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
        shares = [
            f"{100 * share:,.0f}" if share >= 10 else f"{100 * share:.3g}"
            for share in (self.ratio, *self.interval)
        ]
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
    def good(self) -> list[str]:
        """Cleared nodes that no accusation has."""
        taken = {node for accusation in self.accusations for node in accusation.nodes}
        cleared = (name for name, node in self.nodes.items() if node.state is State.CLEARED)
        return [name for name in cleared if name not in taken]

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
    ``explanation``: None if the noise is not known; ``clears``: False if nodes need not be
    cleared by it, and it only accuses.
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
    clears: bool = True

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
    first, *others = (one.alternatives for one in several)
    return tuple(name for name in first if all(name in one for one in others))


def _merge(by_key: dict[tuple[Kind, str], list[Accusation]]) -> None:
    """Where one of two things would do, leave the one that another quantity accuses alone.

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
    if not any(verdict.clears for verdict in verdicts):
        state, reasons = State.UNDECIDED, ["not measured alongside another pair"]
    if group is not None:
        slow = (named(group.kind, group.name), *group.alternatives)
        reasons.append(f"{' or '.join(slow)} is slow")
    effects = tuple(effect for _, effect, _ in several if effect is not None)
    return NodeState(name, state, effects, "; ".join(dict.fromkeys(reasons)))


def _known(verdict: QuantityVerdict, number: int, name: str) -> tuple[State, Effect | None, str]:
    """Return state, effect and reason of a node in one quantity.

    One by which nodes need not be cleared leaves only those undecided that look slow, or may be so
    by ``FAR`` times.
    """
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
        hardly = rounds and not verdict.clears and (explanation.effects < math.log(2) / 2).all()
        return State.CLEARED if hardly else State.UNDECIDED, None, f"{quantity}: {why}"
    half = error * float(scipy.special.stdtrit(explanation.freedom, (1 + CONFIDENCE) / 2))
    effect = effect_of(quantity, estimate, estimate - half, estimate + half, rounds)
    if verdict.clears:
        sure = verdict.cleared[number]
    else:
        sure = number not in verdict.suspects and estimate + half < math.log(FAR)
    if sure:
        return State.CLEARED, effect, f"{quantity}: {effect}"
    return State.UNDECIDED, effect, f"{quantity}: {effect}, not sure enough after {rounds} rounds"


FAR = 10.0
"""Factor by which a node must not be slower even in what it need not be cleared by."""

ENOUGH_NODES = 8
"""Least number of nodes whose own scatter is distinguished from noise."""

_SHARES = {Kind.NODE: 0.8, Kind.PAIR: 0.1, Kind.SWITCH: 0.05, Kind.UPLINK: 0.05}

_CLIP = 2.5

_CLIPPED_VARIANCE = 0.9553
"""Variance of a standard normal variable cut off at ``_CLIP``."""

_ODD = 0.3


def judge(
    observations: Sequence[PairObservation],
    nodes: Sequence[str],
    topology: Topology | None = None,
    settings: PairSettings = DEFAULTS,
) -> Judgement:
    """Judge each of ``nodes`` by all observations so far; NetproofError for a name twice."""
    if len(set(nodes)) != len(nodes):
        raise NetproofError("nodes: a name is there twice")
    tables = [(one, table_of(observations, nodes, one)) for one in PairQuantity]
    tables = [(quantity, table) for quantity, table in tables if table.rows]
    verdicts = [
        judge_table(table, quantity, topology, settings, quantities=len(tables))
        for quantity, table in tables
    ]
    accusations = _accusations(verdicts)
    # Bidirectional rates accuse switches and uplinks only: nodes are judged by the others.
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


def judge_table(
    table: PairTable,
    quantity: PairQuantity,
    topology: Topology | None = None,
    settings: PairSettings = DEFAULTS,
    *,
    quantities: int = 1,
) -> QuantityVerdict:
    """Judge one of so many quantities that share the error."""
    count = len(table.names)
    search = Search(table, topology, settings.disturbed_share, settings.resolution)
    explanation = explained(search, min(MOST_THINGS, max(count // 2, 1)))
    if explanation is None:
        unknown, none = np.full(count, math.nan), np.zeros(count, dtype=bool)
        noise = Noise(quantity, None, 0.0, 0.0, 0.0)
        nothing = (None, (), none, unknown, unknown, (), (), noise)
        return QuantityVerdict(quantity, table, *nothing, settings.clears(quantity))
    counts = settings.counts(quantity)
    estimates, errors = _estimates(explanation)
    scatter = _scatter(explanation, estimates / errors, counts)
    clearing = _level(settings.missed, settings, table.rounds)
    bound = (counts - estimates) / errors
    cleared = np.nan_to_num(scipy.special.stdtr(explanation.freedom, -bound), nan=1.0) <= clearing
    # A node that is far from the others in some round is judged by the shape of the noise.
    odd = np.bincount(
        table.nodes_of_rows, np.tile((1 - explanation.weights) * (explanation.owner < 0), 2), count
    )
    numbers = np.flatnonzero(odd > _ODD)
    if len(numbers):
        found, scales = contrasts_of_nodes(explanation, numbers)
        chances = tails(found, scales, explanation.shape, counts)
        deviates = -scipy.special.ndtri(np.clip(chances, 1e-300, 1 - 1e-12))
        cleared[numbers] = scipy.special.stdtr(explanation.freedom, -deviates) <= clearing
    accused = []
    for thing in explanation.things:
        if thing.kind is Kind.NODE and cleared[thing.nodes[0]]:
            continue
        where = posterior(explanation, thing)
        if (
            where is not None
            and _counts(thing, explanation, clearing, counts)
            and chance(explanation, thing, scatter)
            <= _accusing_level(thing.kind, search, settings, quantities, table.rounds)
        ):
            effect = _effect(where, thing, explanation, quantity)
            names = tuple(table.names[number] for number in thing.nodes)
            instead = tuple(
                " and ".join(named(other.kind, other.name) for other in several)
                for several in alternatives(search, explanation, thing)
            )
            accused.append(Accusation(thing.kind, thing.name, names, (effect,), instead))
    inflated = math.sqrt(max(scatter**2 - 1, 0.0)) * float(np.nan_to_num(errors).mean())
    disturbed = explanation.shape.wide + explanation.shape.disturbed
    return QuantityVerdict(
        quantity,
        table,
        explanation,
        tuple(accused),
        cleared,
        estimates,
        errors,
        _suspects(explanation, estimates, errors, cleared, counts),
        _suspected_pairs(explanation, {one.key for one in accused}, counts),
        Noise(quantity, explanation.scale, inflated, explanation.freedom, disturbed),
        settings.clears(quantity),
    )


def _level(error: float, settings: PairSettings, rounds: int) -> float:
    return nominal_levels(error, max(settings.rounds, rounds))[rounds - 1]


def _accusing_level(
    kind: Kind, search: Search, settings: PairSettings, quantities: int, rounds: int
) -> float:
    """Return the level at which one thing of a kind is accused, after the newest of ``rounds``."""
    nodes = len(search.table.names)
    if kind is Kind.NODE:
        among = nodes
    elif kind is Kind.PAIR:
        # All pairs that the rounds of a run can show.
        among = max(settings.rounds, rounds) * (nodes // 2)
    else:
        among = sum(thing.kind is kind for thing in search.groups)
    error = settings.error / quantities * _SHARES[kind] / max(among, 1)
    return _level(error, settings, rounds)


def _estimates(explanation: Fit) -> tuple[Floats, Floats]:
    """Return the slowness of each node, by number, and its standard error."""
    table = explanation.table
    rows = np.tile(np.arange(table.rows), 2)
    count = len(table.names)
    score, information = explanation.added(
        table.nodes_of_rows, count, rows, np.tile(explanation.weights * explanation.left, 2)
    )
    known = information > 1e-6
    estimates = np.full(count, math.nan)
    errors = np.full(count, math.nan)
    estimates[known] = score[known] / information[known]
    errors[known] = explanation.scale / np.sqrt(information[known])
    covariance = explanation.scale**2 * np.linalg.pinv(explanation.information)
    for place, thing in enumerate(explanation.things):
        if thing.kind is Kind.NODE:
            estimates[thing.nodes[0]] = explanation.effects[place]
            errors[thing.nodes[0]] = math.sqrt(max(covariance[place, place], 1e-12))
    return estimates, errors


def _scatter(explanation: Fit, standard: Floats, counts: float) -> float:
    """Return the scatter of nodes that are not clearly slow, in standard errors; 1 for noise."""
    slow = [
        thing.nodes[0]
        for thing, effect in zip(explanation.things, explanation.effects, strict=True)
        if thing.kind is Kind.NODE and effect > counts / 2
    ]
    standard = np.delete(standard, slow)
    standard = standard[np.isfinite(standard)]
    if len(standard) < ENOUGH_NODES:
        return 1.0
    scale = 1.0
    for _ in range(12):
        clipped = np.clip(standard / scale, -_CLIP, _CLIP)
        scale = max(scale * math.sqrt(float(np.mean(clipped**2)) / _CLIPPED_VARIANCE), 1e-3)
    return max(scale, 1.0)


def _counts(thing: Thing, explanation: Fit, level: float, counts: float) -> bool:
    """Check whether a thing's slowness counts, beyond what others explain; one round does not.

    It counts if it is nearer to what counts than to nothing, and may be as slow as that.
    """
    if len(np.unique(explanation.table.round[thing.rows])) < LEAST_ROUNDS:
        return False
    where = posterior(explanation, thing, beyond=True)
    if where is None or where.quantile(0.5) <= counts / 2:
        return False
    deviate = -float(scipy.special.ndtri_exp(min(where.log_at_least(counts), -1e-12)))
    return float(scipy.special.stdtr(explanation.freedom, -deviate)) > level


def _effect(where: Posterior, thing: Thing, explanation: Fit, quantity: PairQuantity) -> Effect:
    tail = (1 - CONFIDENCE) / 2
    middle = where.quantile(0.5)
    freedom = explanation.freedom
    wider = float(scipy.special.stdtrit(freedom, 1 - tail)) / float(
        scipy.special.stdtrit(math.inf, 1 - tail)
    )
    low = middle - wider * (middle - where.quantile(tail))
    high = middle + wider * (where.quantile(1 - tail) - middle)
    rounds = len(contrasts(explanation, thing)[0])
    return effect_of(quantity, middle, low, high, rounds)


def _suspects(
    explanation: Fit,
    estimates: Floats,
    errors: Floats,
    cleared: NDArray[np.bool_],
    counts: float,
) -> tuple[int, ...]:
    """Return uncleared nodes that look slow, worst first: those found so far, then the slowest."""
    found = {
        number: math.inf if thing.kind is Kind.NODE else 0.0
        for thing in explanation.things
        if thing.kind in (Kind.NODE, Kind.PAIR)
        for number in thing.nodes
        if not cleared[number]
    }
    slowest = np.where(cleared, -math.inf, np.nan_to_num(estimates / errors, nan=-math.inf))
    least = max(2.0, 0.7 * math.sqrt(2 * math.log(max(len(estimates), 2))))
    for number in np.flatnonzero((slowest >= least) & (estimates > counts / 2)):
        found.setdefault(int(number), float(slowest[number]))
    return tuple(sorted(found, key=lambda number: (-found[number], number)))


def _suspected_pairs(
    explanation: Fit,
    accused: set[tuple[Kind, str]],
    counts: float,
) -> tuple[tuple[int, int], ...]:
    """Return pairs, not accused, that were always far too slow for what is known of their nodes."""
    table = explanation.table
    far = (explanation.weights < 0.5) & (explanation.left > counts / 2) & (explanation.owner < 0)
    rows = (np.bincount(table.pair, ~far, table.pairs) == 0)[table.pair]
    found = {tuple(sorted(ends)) for ends in np.stack([table.one, table.other], 1)[rows].tolist()}
    found |= {
        thing.nodes
        for thing in explanation.things
        if thing.kind is Kind.PAIR and thing.key not in accused
    }
    return tuple(sorted(found))
