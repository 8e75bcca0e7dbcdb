"""From tables of latency and of rate to one judgement on a partition, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy

from netproof.localization.accused import (
    MOST_THINGS,
    Accusation,
    Effect,
    Judgement,
    NodeState,
    QuantityVerdict,
    State,
    effect_of,
    named,
)
from netproof.localization.observations import Pair, PairObservation
from netproof.localization.pair_table import LEAST_NODES
from netproof.localization.searching import Kind, Thing
from netproof.measurement.interval import CONFIDENCE


def judgement_on(
    nodes: Sequence[str],
    verdicts: Sequence[QuantityVerdict],
    observations: Sequence[PairObservation],
) -> Judgement:
    """The judgement of a partition by the tables of its quantities, each with its verdict.

    What is measured both ways accuses switches and uplinks only: of nodes the others tell.
    """
    accusations = _accusations(nodes, verdicts)
    both_ways = [one for one in verdicts if not one.quantity.of_nodes]
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
        noise=tuple(verdict.noise for verdict in (*verdicts, *both_ways)),
        suspects=tuple(suspects),
        suspected_pairs=tuple(pairs),
        disturbed=sum(seen.disturbed for seen in observations),
        said=_said(verdicts),
    )


def _accusations(
    nodes: Sequence[str], verdicts: Sequence[QuantityVerdict]
) -> tuple[Accusation, ...]:
    """What is accused in any quantity, one for each thing."""
    by_thing: dict[tuple[Kind, str], _Accusing] = {}
    for verdict in verdicts:
        if verdict.quantity.of_nodes:
            accused = _grouped(verdict)
        else:
            accused = [
                (item.thing, item.effect, item.alternatives)
                for item in verdict.accused
                if item.thing.kind in (Kind.SWITCH, Kind.UPLINK)
            ]
        for thing, effect, alternatives in accused:
            by_thing.setdefault(thing.key, []).append((thing, effect, alternatives))
    _merge(by_thing)
    return tuple(
        Accusation(
            kind,
            name,
            tuple(nodes[number] for number in several[0][0].nodes),
            tuple(effect for _, effect, _ in several),
            # What one quantity tells apart is told apart.
            tuple(
                other
                for other in several[0][2]
                if all(other in alternatives for _, _, alternatives in several)
            ),
        )
        for (kind, name), several in by_thing.items()
    )


_Accusing = list[tuple[Thing, Effect, tuple[str, ...]]]


def _merge(by_thing: dict[tuple[Kind, str], _Accusing]) -> None:
    """Two things of which one would do: the one that another quantity tells from the other.

    One quantity may not tell a leaf switch from its uplink, and another accuses the uplink alone.
    """
    names = {named(*key): key for key in by_thing}
    for key, several in list(by_thing.items()):
        for other in several[0][2]:
            instead = names.get(other)
            if (
                instead in by_thing
                and all(other in alternatives for _, _, alternatives in several)
                and not all(named(*key) in alternatives for *_, alternatives in by_thing[instead])
            ):
                by_thing[instead] += by_thing.pop(key)
                break


def _grouped(verdict: QuantityVerdict) -> list[tuple[Thing, Effect, tuple[str, ...]]]:
    """The accused, nodes that are fine among themselves as one group."""
    single = verdict.accused_nodes
    whole = [(item.thing, item.effect, item.alternatives) for item in verdict.accused]
    explanation = verdict.explanation
    if explanation is None or len(single) < 2:
        return whole
    fitted, table = explanation.fit, verdict.table
    numbers = sorted(single)
    inside = np.isin(table.one, numbers) & np.isin(table.other, numbers)
    if inside.sum() < 2:
        return whole
    off = (table.slowness - fitted.levels[table.round])[inside]
    places = [p for p, thing in enumerate(explanation.things) if thing.nodes[0] in single]
    least = min(float(fitted.effects[p]) for p in places if explanation.things[p].kind is Kind.NODE)
    error = fitted.scale / math.sqrt(len(off)) * float(scipy.special.stdtrit(fitted.freedom, 0.99))
    if float(np.median(off)) + error >= least / 2:
        return whole
    name = ", ".join(table.names[number] for number in numbers)
    group = Thing(Kind.GROUP, name, tuple(numbers), np.flatnonzero(inside))
    middle = sorted(single.values(), key=lambda item: item.effect.ratio)[len(single) // 2]
    kept = [row for row in whole if row[0].kind is not Kind.NODE or row[2]]
    return [*kept, (group, middle.effect, ())]


def _state(
    number: int, name: str, verdicts: Sequence[QuantityVerdict], group: Accusation | None
) -> NodeState:
    effects = []
    states = []
    reasons = []
    for verdict in verdicts:
        known = _known(verdict, number)
        states.append(known[0])
        reasons.append(known[2])
        if known[1] is not None:
            effects.append(known[1])
    if State.ACCUSED in states:
        state = State.ACCUSED
    elif states and all(one is State.CLEARED for one in states):
        state = State.CLEARED
    else:
        state = State.UNDECIDED
    told = [reason for one, reason in zip(states, reasons, strict=True) if one is state]
    if not verdicts:
        told = ["not measured alongside another pair"]
    if group is not None:
        slow = (named(group.kind, group.name), *group.alternatives)
        told.append(f"{' or '.join(slow)} is slow")
    return NodeState(name, state, tuple(effects), "; ".join(dict.fromkeys(told)))


def _known(verdict: QuantityVerdict, number: int) -> tuple[State, Effect | None, str]:
    """State, effect and reason of a node in one quantity."""
    quantity, explanation = verdict.quantity, verdict.explanation
    if explanation is None:
        return State.UNDECIDED, None, f"too few rounds to know the noise of the {quantity}"
    accused = verdict.accused_nodes.get(number)
    if accused is not None:
        return State.ACCUSED, accused.effect, f"{quantity}: {accused.effect}"
    rounds = int(verdict.table.measured[number])
    estimate, error = float(verdict.estimates[number]), float(verdict.errors[number])
    if not rounds or math.isnan(estimate):
        why = "not measured" if not rounds else "measured only with what is slow"
        return State.UNDECIDED, None, f"{quantity}: {why}"
    half = error * float(scipy.special.stdtrit(explanation.fit.freedom, (1 + CONFIDENCE) / 2))
    effect = effect_of(quantity, estimate, estimate - half, estimate + half, rounds)
    if verdict.cleared[number]:
        return State.CLEARED, effect, f"{quantity}: {effect}"
    return State.UNDECIDED, effect, f"{quantity}: {effect}, not sure enough after {rounds} rounds"


def _said(verdicts: Sequence[QuantityVerdict]) -> tuple[str, ...]:
    said = []
    for verdict in verdicts:
        explanation = verdict.explanation
        if explanation is not None and len(explanation.things) >= MOST_THINGS:
            said.append(
                f"{verdict.quantity}: more than {MOST_THINGS} things look slow;"
                " the nodes may not be alike"
            )
    if verdicts and all(verdict.explanation is not None for verdict in verdicts):
        if not any(verdict.accused for verdict in verdicts):
            said.append("no node, pair or group stands out from the others")
        said.append("what slows all pairs alike cannot be seen from pairs")
    return tuple(said)
