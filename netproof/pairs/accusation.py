"""Judge nodes after every round of pairs: which are cleared, accused or undecided.

Accusations err in at most ``error`` of healthy runs, over all nodes, pairs, groups, quantities and
rounds: each kind and quantity has its share, each node its part of that (Bonferroni), and each
round what ``nominal_levels`` gives it. A node is cleared if it is hardly slower by what counts.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
import scipy

from netproof.measurement.interval import CONFIDENCE
from netproof.pairs.model import (
    LEAST_NODES,
    Bools,
    Fit,
    Floats,
    Kind,
    Pair,
    PairObservation,
    PairTable,
    Posterior,
    Topology,
    named,
    table_of,
)
from netproof.pairs.search import (
    LEAST_ROUNDS,
    alternatives,
    chance,
    contrasts,
    explained,
    nominal_levels,
    posterior,
    posterior_of_node,
    unusual,
)
from netproof.pairs.search import (
    fit as fit_of,
)
from netproof.site.partition import DEFAULTS, PairQuantity, PairSettings


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

    def __str__(self) -> str:
        sentence = f"{named(self.kind, self.name)}: {'; '.join(map(str, self.effects))}"
        if self.kind is Kind.PAIR and not self.alternatives:
            sentence += "; both nodes are fine with others"
        if self.alternatives:
            sentence += f"; fits equally well: {', or '.join(self.alternatives)}"
        return sentence


@dataclass(frozen=True)
class Judgement:
    """Judgement of a partition by the rounds so far.

    ``rounds``: usable ones; ``noise``: relative noise of one measurement of each quantity where
    it is known; ``suspects``: undecided nodes that look slow, worst first; ``suspected_pairs``:
    pairs that were slow whenever measured, and are not accused.
    """

    rounds: int
    nodes: Mapping[str, NodeState]
    accusations: tuple[Accusation, ...]
    noise: Mapping[PairQuantity, float]
    suspects: tuple[str, ...]
    suspected_pairs: tuple[Pair, ...]

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
        switches = (one for one in self.accusations if one.kind is Kind.SWITCH)
        hidden = {node for one in switches for node in one.nodes}
        open_ = (name for name, one in self.nodes.items() if one.state is State.UNDECIDED)
        return not self.suspected_pairs and hidden.issuperset(open_)


@dataclass(frozen=True)
class QuantityVerdict:
    """Judgement in one quantity, nodes by number.

    ``accused``: each with the effect in this quantity; ``cleared``: by node; ``estimates``:
    logarithms by which each node is slower, NaN if not known, with their ``errors``; ``fit``: None
    if the noise is not known; ``clears``: False if nodes need not be cleared by it, and it only
    accuses.
    """

    quantity: PairQuantity
    table: PairTable
    clears: bool
    cleared: Bools
    estimates: Floats
    errors: Floats
    fit: Fit | None = None
    accused: tuple[Accusation, ...] = ()
    suspects: tuple[int, ...] = ()
    suspected_pairs: tuple[tuple[int, int], ...] = ()

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
    by_thing: dict[str, list[Accusation]] = defaultdict(list)
    for verdict in verdicts:
        # Bidirectional rates accuse switches and uplinks only: nodes are judged by the others.
        for one in _grouped(verdict):
            if verdict.quantity.of_nodes or one.kind in (Kind.SWITCH, Kind.UPLINK):
                by_thing[named(one.kind, one.name)].append(one)
    # One quantity may not tell a leaf switch from its uplink: the one stands that another accuses.
    for thing, several in list(by_thing.items()):
        for instead in _common_alternatives(several):
            if instead in by_thing and not all(
                thing in one.alternatives for one in by_thing[instead]
            ):
                by_thing[instead] += by_thing.pop(thing)
                break
    return tuple(
        replace(
            several[0],
            effects=tuple(effect for one in several for effect in one.effects),
            alternatives=_common_alternatives(several),
        )
        for several in by_thing.values()
    )


def _common_alternatives(several: Sequence[Accusation]) -> tuple[str, ...]:
    first, *others = (one.alternatives for one in several)
    return tuple(name for name in first if all(name in one for one in others))


def _grouped(verdict: QuantityVerdict) -> list[Accusation]:
    """Return the accusations, nodes that are fine among themselves as one group."""
    single, fit, table = verdict.accused_nodes, verdict.fit, verdict.table
    whole = list(verdict.accused)
    if fit is None or len(single) < 2 or not verdict.quantity.of_nodes:
        return whole
    numbers = [number for number, name in enumerate(table.names) if name in single]
    inside = np.isin(table.one, numbers) & np.isin(table.other, numbers)
    if inside.sum() < 2:
        return whole
    off = (table.slowness - fit.levels[table.round])[inside]
    pairs = zip(fit.things, fit.effects, strict=True)
    least = min(float(effect) for thing, effect in pairs if thing.name in single)
    deviate = float(scipy.special.stdtrit(fit.freedom, 0.99))
    if float(np.median(off)) + fit.scale / math.sqrt(len(off)) * deviate >= least / 2:
        return whole
    names = tuple(table.names[number] for number in numbers)
    middle = sorted(single.values(), key=lambda one: one.effects[0].ratio)[len(single) // 2]
    rest = [one for one in whole if one not in single.values()]
    return [*rest, Accusation(Kind.GROUP, ", ".join(names), names, middle.effects, ())]


def _known(verdict: QuantityVerdict) -> Iterator[tuple[State, Effect | None, str]]:
    """Yield state, effect and reason of each node in one quantity.

    One by which nodes need not be cleared leaves only those undecided that look slow, or may be so
    by ``FAR`` times.
    """
    quantity, fit, table = verdict.quantity, verdict.fit, verdict.table
    if fit is None:
        why = f"too few rounds to know the noise of the {quantity}"
        yield from ((State.UNDECIDED, None, why) for _ in table.names)
        return
    halves = verdict.errors * float(scipy.special.stdtrit(fit.freedom, (1 + CONFIDENCE) / 2))
    sure, hardly = verdict.cleared, False
    if not verdict.clears:
        sure = verdict.estimates + halves < math.log(FAR)
        sure[list(verdict.suspects)] = False
        hardly = bool((fit.effects < math.log(2) / 2).all())
    columns = (table.measured, verdict.estimates, halves, sure)
    rows = zip(table.names, *(column.tolist() for column in columns), strict=True)
    for name, rounds, estimate, half, clear in rows:
        state = State.CLEARED if clear else State.UNDECIDED
        if (accused := verdict.accused_nodes.get(name)) is not None:
            (effect,) = accused.effects
            yield State.ACCUSED, effect, f"{quantity}: {effect}"
        elif not rounds:
            yield State.UNDECIDED, None, f"{quantity}: not measured"
        elif math.isnan(estimate):
            state = State.CLEARED if hardly else State.UNDECIDED
            yield state, None, f"{quantity}: measured only with what is slow"
        else:
            effect = effect_of(quantity, estimate, estimate - half, estimate + half, rounds)
            more = "" if clear else f", not sure enough after {rounds} rounds"
            yield state, effect, f"{quantity}: {effect}{more}"


FAR = 10.0
"""Factor by which a node must not be slower even in what it need not be cleared by."""

ENOUGH_NODES = 8
"""Least number of nodes whose own scatter is distinguished from noise."""

SHARES = {Kind.NODE: 0.8, Kind.PAIR: 0.1, Kind.SWITCH: 0.05, Kind.UPLINK: 0.05}
"""Share of the error for each kind of thing."""

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
    """Judge each of ``nodes`` by all observations so far."""
    tables = {one: table_of(observations, nodes, one, topology) for one in PairQuantity}
    tables = {quantity: table for quantity, table in tables.items() if table.rows}
    shared = len(tables)
    every = [judge_table(one, of, settings, quantities=shared) for of, one in tables.items()]
    accusations = _accusations(every)
    verdicts = [one for one in every if one.quantity.of_nodes]
    slow = {
        node: " or ".join((named(one.kind, one.name), *one.alternatives)) + " is slow"
        for one in accusations
        if one.kind is not Kind.NODE or one.alternatives
        for node in one.nodes
    }
    compared = any(verdict.clears for verdict in verdicts)
    measured = {node for seen in observations for node in seen.nodes}
    states: dict[str, NodeState] = {}
    for name, *several in zip(nodes, *map(_known, verdicts), strict=True):
        found = {state for state, _, _ in several}
        state = State.CLEARED if found == {State.CLEARED} else State.UNDECIDED
        state = State.ACCUSED if State.ACCUSED in found else state
        effects = tuple(effect for _, effect, _ in several if effect is not None)
        reasons = [reason for one, _, reason in several if one is state]
        if not compared:
            state, reasons = State.UNDECIDED, ["not measured alongside another pair"]
        reasons += [slow[name]] if name in slow else []
        if len(nodes) < LEAST_NODES and name in measured:
            state, effects = State.NOT_COMPARED, ()
            reasons = [f"too few nodes to compare with each other ({len(nodes)})"]
        states[name] = NodeState(state, effects, "; ".join(dict.fromkeys(reasons)))
    suspects = (nodes[number] for one in verdicts for number in one.suspects)
    pairs = (pair for one in verdicts for pair in one.suspected_pairs)
    return Judgement(
        max((verdict.table.rounds for verdict in verdicts), default=0),
        states,
        accusations,
        {one.quantity: one.fit.scale for one in every if one.fit is not None},
        tuple(dict.fromkeys(one for one in suspects if states[one].state is State.UNDECIDED)),
        tuple(dict.fromkeys((nodes[one], nodes[other]) for one, other in pairs)),
    )


def judge_table(
    table: PairTable,
    quantity: PairQuantity,
    settings: PairSettings = DEFAULTS,
    *,
    quantities: int = 1,
) -> QuantityVerdict:
    """Judge one of so many quantities that share the error."""
    clears, count = settings.clears(quantity), len(table.names)
    fit = explained(table)
    if fit is None:
        unknown = np.full(count, math.nan)
        return QuantityVerdict(quantity, table, clears, unknown > 0, unknown, unknown)
    counts, (estimates, errors) = settings.counts(quantity), _estimates(fit)
    hidden = np.isnan(estimates) & (table.measured > 0)
    if hidden.any():
        # What is too small to count takes rounds that other nodes are known by.
        much = fit.effects >= counts / 2
        less = fit_of(table, [*itertools.compress(fit.things, much)], fit.effects[much])
        if less is not None:
            for mine, of_less in zip((estimates, errors), _estimates(less), strict=True):
                mine[hidden] = of_less[hidden]
    scatter = _scatter(fit, estimates / errors, counts)
    looks = max(settings.rounds, table.rounds)
    clearing = nominal_levels(settings.missed, looks)[table.rounds - 1]
    bound = (counts - estimates) / errors
    cleared = np.nan_to_num(scipy.special.stdtr(fit.freedom, -bound), nan=1.0) <= clearing
    # A node that is far from the others in some round is judged by the shape of the noise.
    odd = np.bincount(table.nodes_of_rows, np.tile((1 - fit.weights) * (fit.owner < 0), 2), count)
    for number in np.flatnonzero(odd > _ODD):
        where = posterior_of_node(fit, int(number))
        cleared[number] = where is not None and _at_least(where, fit, counts) <= clearing
    among = Counter(thing.kind for thing in table.groups)
    # Of pairs, all that the rounds of a run can show.
    among |= {Kind.NODE: count, Kind.PAIR: looks * (count // 2)}
    accused = []
    for place, thing in enumerate(fit.things):
        error = settings.error / quantities * SHARES[thing.kind] / max(among[thing.kind], 1)
        where = posterior(fit, place)
        if (
            where is not None
            and not (thing.kind is Kind.NODE and cleared[thing.nodes[0]])
            and _counts(fit, place, clearing, counts)
            and chance(fit, place, scatter) <= nominal_levels(error, looks)[table.rounds - 1]
        ):
            instead = (" and ".join(map(str, others)) for others in alternatives(fit, place))
            effect = _effect(where, fit.freedom, quantity, len(contrasts(fit, place)[0]))
            its = tuple(table.names[number] for number in thing.nodes)
            accused.append(Accusation(thing.kind, thing.name, its, (effect,), tuple(instead)))
    suspects = _suspects(fit, estimates, errors, cleared, counts)
    pairs = _suspected_pairs(fit, {(one.kind, one.name) for one in accused}, counts)
    known = (cleared, estimates, errors, fit, tuple(accused), suspects, pairs)
    return QuantityVerdict(quantity, table, clears, *known)


def _estimates(fit: Fit) -> tuple[Floats, Floats]:
    """Return the slowness of each node, by number, and its standard error."""
    rows, count = np.tile(np.arange(fit.table.rows), 2), len(fit.table.names)
    values = np.tile(fit.weights * fit.left, 2)
    score, information = fit.added(fit.table.nodes_of_rows, count, rows, values)
    known = information > 1e-6
    estimates, errors = np.full(count, math.nan), np.full(count, math.nan)
    estimates[known] = score[known] / information[known]
    errors[known] = fit.scale / np.sqrt(information[known])
    for place, thing in enumerate(fit.things):
        if thing.kind is Kind.NODE:
            estimates[thing.nodes[0]] = fit.effects[place]
            variance = fit.scale**2 * fit.covariance[place, place]
            errors[thing.nodes[0]] = math.sqrt(max(variance, 1e-12))
    return estimates, errors


def _scatter(fit: Fit, standard: Floats, counts: float) -> float:
    """Return the scatter of nodes that are not clearly slow, in standard errors; 1 for noise."""
    slow = [
        thing.nodes[0]
        for thing, effect in zip(fit.things, fit.effects, strict=True)
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


def _counts(fit: Fit, place: int, level: float, counts: float) -> bool:
    """Check whether a thing's slowness counts, beyond what others explain; one round does not.

    It counts if it is nearer to what counts than to nothing, and may be as slow as that.
    """
    if len(np.unique(fit.table.round[fit.things[place].rows])) < LEAST_ROUNDS:
        return False
    where = posterior(fit, place, beyond=True)
    if where is None or where.quantile(0.5) <= counts / 2:
        return False
    return _at_least(where, fit, counts) > level


def _at_least(where: Posterior, fit: Fit, counts: float) -> float:
    """Return the probability that an effect counts, with as little known of the noise as is."""
    deviate = float(scipy.special.ndtri_exp(min(where.log_at_least(counts), -1e-12)))
    return float(scipy.special.stdtr(fit.freedom, deviate))


def _effect(where: Posterior, freedom: float, quantity: PairQuantity, rounds: int) -> Effect:
    tail, middle = (1 - CONFIDENCE) / 2, where.quantile(0.5)
    wider = float(
        scipy.special.stdtrit(freedom, 1 - tail) / scipy.special.stdtrit(math.inf, 1 - tail)
    )
    low = middle - wider * (middle - where.quantile(tail))
    high = middle + wider * (where.quantile(1 - tail) - middle)
    return effect_of(quantity, middle, low, high, rounds)


def _suspects(
    fit: Fit, estimates: Floats, errors: Floats, cleared: Bools, counts: float
) -> tuple[int, ...]:
    """Return uncleared nodes that look slow, worst first: those found so far, then the slowest."""
    found = {
        number: math.inf if thing.kind is Kind.NODE else 0.0
        for thing in fit.things
        if not thing.shared
        for number in thing.nodes
        if not cleared[number]
    }
    slowest = np.where(cleared, -math.inf, np.nan_to_num(estimates / errors, nan=-math.inf))
    least = max(2.0, unusual(len(estimates)))
    for number in np.flatnonzero((slowest >= least) & (estimates > counts / 2)):
        found.setdefault(int(number), float(slowest[number]))
    return tuple(sorted(found, key=lambda number: (-found[number], number)))


def _suspected_pairs(
    fit: Fit, accused: set[tuple[Kind, str]], counts: float
) -> tuple[tuple[int, int], ...]:
    """Return pairs, not accused, that were always far too slow for what is known of their nodes."""
    table = fit.table
    far = (fit.weights < 0.5) & (fit.left > counts / 2) & (fit.owner < 0)
    rows = (np.bincount(table.pair, ~far, table.pairs) == 0)[table.pair]
    ends = np.sort(np.stack([table.one, table.other], 1)[rows], axis=1).tolist()
    pairs = (one for one in fit.things if one.kind is Kind.PAIR and one.key not in accused)
    found = {*map(tuple, ends), *(thing.nodes for thing in pairs)}
    return tuple(sorted((one, other) for one, other in found))
