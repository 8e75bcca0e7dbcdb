"""What the rounds of pairs of a job say of its nodes; the same inside the job and afterwards."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from netproof.criteria import Finding, Level
from netproof.criteria.interface import CountedLaunch
from netproof.criteria.paths import path
from netproof.localization import recovery
from netproof.localization.accusation import judge as judge_observations
from netproof.localization.accused import Accusation, Effect, Judgement, State
from netproof.localization.choosing import Mode
from netproof.localization.observations import PairObservation, PairQuantity
from netproof.localization.recovery import Alone
from netproof.localization.rounds import tournament
from netproof.localization.streams import SlowWay, Stream, slow_ways
from netproof.localization.topology import Topology
from netproof.measurement import interval
from netproof.measurement.disturbance import (
    DisturbanceSettings,
    NodeLoad,
    disturbed,
    others_share,
)
from netproof.measurement.interval import Side
from netproof.measurement.links import Link
from netproof.measurement.payload import Payload
from netproof.session.pair_rounds import PairRounds
from netproof.session.session import Session
from netproof.site.hostlist import fold
from netproof.site.matrix import Matrix
from netproof.site.pair_settings import PairSettings
from netproof.site.partition import Partition
from netproof.verdict import bisection, lone_pairs
from netproof.verdict.bisection import Bisection
from netproof.verdict.lone_pairs import LonePair


@dataclass(frozen=True)
class JudgedPairs:
    """The rounds of one job, judged.

    ``judgement``: what becomes of each node; ``alone``: of suspects that were measured while all
    others were silent; ``alongside``: what else ran on a node, of each that was never undisturbed;
    ``bisection``: what pairs get while all of them send, None where no round tells it, and
    ``least``: the share of the line rate that the site asks of it; ``path``: which interfaces
    carried what they sent, None where nothing was counted; ``lone``: what each pair says by itself,
    empty unless there are too few nodes to compare pairs.
    """

    rounds: PairRounds
    judgement: Judgement
    alone: tuple[Alone, ...]
    alongside: Mapping[str, str] = dataclasses.field(default_factory=dict)
    bisection: Bisection | None = None
    least: float | None = None
    path: Finding | None = None
    lone: tuple[LonePair, ...] = ()

    @property
    def where(self) -> str:
        """Partition and environment."""
        return f"{self.rounds.partition} {self.rounds.environment}"

    def __str__(self) -> str:
        """What became of the nodes, in a line."""
        if self.lone:
            return f"{self.where}: {self.too_few}"
        states = [one.state for one in self.judgement.nodes.values()]
        known = (state for state in State if state is not State.NOT_COMPARED)
        counts = ", ".join(f"{states.count(state)} {state}" for state in known)
        launches = self.rounds.launches
        rounds = len({one.round for one in launches if not one.alone})
        return (
            f"{self.where}: of {len(states)} nodes {counts}, after {rounds} rounds of pairs in"
            f" {len(launches)} launches{'' if self.bisection is None else f'; {self.bisection}'}"
            f"{self._not_loaded()}"
        )

    @property
    def too_few(self) -> str:
        """What the lone pairs say, and why there is no more; empty where pairs are compared."""
        if not self.lone:
            return ""
        return (
            f"too few nodes to compare with each other ({len(self.rounds.nodes)}); what a pair"
            f" alone tells: {'; '.join(map(str, self.lone))}"
        )

    def _not_loaded(self) -> str:
        """The uplinks of which too few nodes sent at once to compare them, "" for none."""
        loaded = [one for one in self.rounds.launches if one.both_ways]
        leaf = {node: name for name, nodes in self.rounds.leaves.items() for node in nodes}
        there = {
            leaf.get(node)
            for one in loaded
            for pair in one.pairs
            if len({leaf.get(node) for node in pair.nodes}) > 1
            for node in pair.nodes
        }
        left = [name for name, nodes in self.rounds.leaves.items() if nodes and name not in there]
        if not loaded or not left:
            return ""
        return f"; uplinks with too few nodes to be loaded: {fold(left)}"

    def as_json(self) -> dict[str, Any]:
        """What was found, as plain values for ``json``; ratios are of the others' time or rate."""
        return {
            "partition": self.rounds.partition,
            "environment": self.rounds.environment,
            "launches": len(self.rounds.launches),
            "nodes": {
                name: {
                    "state": one.state.value,
                    "effects": [_effect(effect) for effect in one.effects],
                    "reason": self.alongside.get(name, one.reason),
                }
                for name, one in self.judgement.nodes.items()
            },
            "accusations": [
                {
                    "kind": one.kind.value,
                    "name": one.name,
                    "nodes": list(one.nodes),
                    "effects": [_effect(effect) for effect in one.effects],
                    "alternatives": list(one.alternatives),
                    "sentence": str(one),
                }
                for one in self.judgement.accusations
            ],
            "alone": [
                {
                    "pair": list(one.pair),
                    "recovery": one.recovery.value,
                    "effects": [_effect(effect) for effect in one.effects],
                    "reason": one.reason,
                }
                for one in self.alone
            ],
            "lone_pairs": [dataclasses.asdict(one) for one in self.lone],
            "bisection": None if self.bisection is None else dataclasses.asdict(self.bisection),
            "faults": list(self.rounds.faults),
        }

    def accusations(self) -> tuple[str, ...]:
        """A sentence for each accusation, with what measuring it alone said."""
        return tuple(f"{self.where}: {self._sentence(one)}" for one in self.judgement.accusations)

    def _sentence(self, accusation: Accusation) -> str:
        several = [one for one in self.alone if set(one.pair) & set(accusation.nodes)]
        told = dict.fromkeys(f"measured alone it {one.recovery}" for one in several)
        return "; ".join([str(accusation), *told])

    def faults(self) -> tuple[str, ...]:
        """A sentence for each round that is not complete, and one where bisections are narrow."""
        return tuple(f"{self.where}: {what}" for what in self.what_failed())

    def what_failed(self) -> tuple[str, ...]:
        """The same without the place."""
        found = [f"rounds of pairs: {fault}" for fault in self.rounds.faults]
        if self._bisection_is(Side.BEYOND):
            found.append(self._asked_of_bisection())
        found += map(self.asked_of_lone, self.lone_on(Side.BEYOND))
        if self.path is not None and self.path.level is Level.FAIL:
            found.append(self.path.reason)
        return tuple(found)

    def _bisection_is(self, side: Side) -> bool:
        if self.bisection is None or self.least is None:
            return False
        ends = self.bisection.interval or (self.bisection.share, self.bisection.share)
        return interval.side(ends, self.least, math.inf) is side

    def _asked_of_bisection(self) -> str:
        return f"{self.bisection}, and at least {self.least:.1%} is asked for"

    def lone_on(self, side: Side) -> list[LonePair]:
        """Return the lone pairs on that side of the least share; none where no share is asked."""
        if self.least is None:
            return []
        return [one for one in self.lone if one.side_of(self.least) is side]

    def asked_of_lone(self, one: LonePair) -> str:
        """Return what a lone pair gets and the share that it has to get, in a sentence."""
        return f"{one.rate}, and at least {self.least:.1%} is asked for"

    def undecided_nodes(self) -> tuple[str, ...]:
        """The nodes that are neither cleared nor accused."""
        return self._in(State.UNDECIDED)

    def undecided_for(self) -> dict[str, tuple[str, ...]]:
        """Each reason for which nodes are neither cleared nor accused, to these nodes."""
        by_reason: dict[str, list[str]] = defaultdict(list)
        for node in self.undecided_nodes():
            by_reason[self.alongside.get(node, self.judgement.nodes[node].reason)].append(node)
        return {reason: tuple(nodes) for reason, nodes in by_reason.items()}

    def undecided(self) -> tuple[str, ...]:
        """A sentence for each reason for which nodes are neither cleared nor accused."""
        found = [
            f"{self.where}: {fold(nodes)} undecided: {reason}"
            for reason, nodes in self.undecided_for().items()
        ]
        if self._bisection_is(Side.ASTRIDE):
            found.append(f"{self.where}: {self._asked_of_bisection()}")
        found += [f"{self.where}: {self.asked_of_lone(one)}" for one in self.lone_on(Side.ASTRIDE)]
        if self._uplinks_unknown():
            found.append(
                f"{self.where}: uplinks undecided: too few undisturbed rounds in which both nodes"
                " of each pair sent"
            )
        if self.bisection is None and self.least is not None and not self.lone:
            found.append(
                f"{self.where}: no round in which all pairs measured at once, and at least"
                f" {self.least:.1%} of the line rate is asked of a bisection"
            )
        return tuple(found)

    def _uplinks_unknown(self) -> bool:
        if not any(one.both_ways for one in self.rounds.launches):
            return False
        return not any(
            one.quantity is PairQuantity.BOTH_WAYS and one.share is not None
            for one in self.judgement.noise
        )

    def cleared(self) -> tuple[str, ...]:
        """The nodes that were cleared."""
        return self._in(State.CLEARED)

    def streamed(self) -> frozenset[str]:
        """The nodes that sent or received a stream alone."""
        pairs = (pair for one in self.rounds.launches if one.stream for pair in one.pairs)
        return frozenset(node for pair in pairs for node in pair.nodes)

    def slow_ways(
        self, settings: PairSettings, disturbance: DisturbanceSettings
    ) -> tuple[SlowWay, ...]:
        """Of accused nodes that are slow in one direction only, which it is."""
        several = [
            Stream(*pair.nodes, pair.rate_mb_s, bool(disturbed(one.loads, disturbance)))
            for one in self.rounds.launches
            if one.stream
            for pair in one.pairs
        ]
        return slow_ways(several, self.judgement, settings.accusation())

    def _in(self, state: State) -> tuple[str, ...]:
        return tuple(node for node, one in self.judgement.nodes.items() if one.state is state)


def _effect(effect: Effect) -> dict[str, Any]:
    return {
        "quantity": effect.quantity.value,
        "ratio": effect.ratio,
        "interval": list(effect.interval),
        "rounds": effect.rounds,
    }


def observations(
    rounds: PairRounds, settings: PairSettings, disturbance: DisturbanceSettings
) -> tuple[PairObservation, ...]:
    """What each pair measured in each round; those whose nodes were disturbed are marked.

    Streams are none of them: their times are of one direction. What was measured while both nodes
    sent tells neither latency nor rate of a node.
    """
    found = []
    latency, rate = (
        one in settings.quantities for one in (PairQuantity.LATENCY, PairQuantity.RATE)
    )
    for one in rounds.launches:
        by_node: dict[str, list[NodeLoad]] = defaultdict(list)
        for load in one.loads:
            by_node[load.node].append(load)
        for pair in () if one.stream else one.pairs:
            loads = [load for node in sorted(pair.nodes) for load in by_node[node]]
            found.append(
                PairObservation(
                    one.round,
                    pair.nodes,
                    pair.time_us if latency and not one.both_ways else None,
                    pair.rate_mb_s if rate and not one.both_ways else None,
                    one.alone,
                    bool(disturbed(loads, disturbance)),
                    pair.rate_mb_s if one.both_ways else None,
                )
            )
    return tuple(found)


def topology(rounds: PairRounds) -> Topology | None:
    """The tree of switches as the job's rounds know it; None where Slurm knows none."""
    return Topology(rounds.leaves, rounds.parents) if rounds.leaves else None


def settings_of(rounds: PairRounds, settings: PairSettings) -> tuple[Mode, PairSettings]:
    """The mode, and the settings with the number of rounds that it makes."""
    mode = Mode(rounds.mode)
    if mode is Mode.FULL:
        settings = settings.model_copy(update={"rounds": max(2, len(tournament(rounds.nodes)))})
    return mode, settings


def judge(
    rounds: PairRounds,
    settings: PairSettings,
    disturbance: DisturbanceSettings,
    link: Link | None = None,
) -> JudgedPairs:
    """Judge the rounds of a job; ``link``: of each node, without which bisections have no share."""
    _, settings = settings_of(rounds, settings)
    accusing = settings.accusation()
    seen = observations(rounds, settings, disturbance)
    judgement = judge_observations(seen, rounds.nodes, topology(rounds), accusing)
    alone = tuple(recovery.alone(seen, judgement, accusing))
    line_rate = None if link is None else link.line_rate_mb_s()
    return JudgedPairs(
        rounds,
        judgement,
        alone,
        _never_calm(rounds, disturbance),
        bisection.of_rounds(rounds, line_rate, disturbance),
        settings.bisection,
        lone=lone_pairs.of_rounds(rounds, line_rate, disturbance),
    )


def _never_calm(rounds: PairRounds, settings: DisturbanceSettings) -> dict[str, str]:
    """The nodes that something disturbed in every launch, with what it took of them at most.

    It is one reason for all of them, however many there are.
    """
    shares: dict[str, list[float | None]] = {}
    for one in rounds.launches:
        for load in one.loads:
            share = others_share([load]) if disturbed([load], settings) else None
            shares.setdefault(load.node, []).append(share)
    most = {
        node: f"{100 * max(several):.0f}" for node, several in shares.items() if None not in several
    }
    if not most:
        return {}
    least, largest = min(most.values(), key=int), max(most.values(), key=int)
    share = largest if least == largest else f"{least} to {largest}"
    of_each = "" if least == largest else ", by node"
    reason = (
        "in each of its launches something else ran alongside, with up to"
        f" {share} % of the CPUs{of_each}"
    )
    return dict.fromkeys(most, reason)


def of_session(session: Session, matrix: Matrix) -> tuple[JudgedPairs, ...]:
    """The rounds of every job of a session, judged by the settings of today.

    Those of a partition that the site has no more are judged by the settings of then.
    """
    found = []
    for rounds, extras in rounds_of(session):
        here = matrix.partitions.get(rounds.partition)
        if here is None:
            here = Partition.model_validate(extras)
        disturbance = here.settings().disturbance
        link = here.link(over_tcp=rounds.environment not in matrix.not_over_tcp)
        judged = judge(rounds, here.pair_settings(), disturbance, link)
        found.append(dataclasses.replace(judged, path=path_of_rounds(rounds, here)))
    return tuple(found)


def path_of_rounds(rounds: PairRounds, here: Partition) -> Finding | None:
    """Criterion 16 on the launches of the rounds that were counted."""
    settings = here.settings()
    launches = [
        CountedLaunch(
            one.number,
            one.counters,
            Payload(one.payload),
            not disturbed(one.loads, settings.disturbance),
        )
        for one in rounds.launches
        if one.counters is not None
    ]
    where = f"pairs on {rounds.partition} {rounds.environment}"
    return path(launches, here.rails_or_interface(), where, settings.path)


def rounds_of(session: Session) -> tuple[tuple[PairRounds, Mapping[str, Any]], ...]:
    """The rounds of every job of a session, and what the site said of their partition then."""
    found = {}
    for result in session.results:
        if result.pairs is not None:
            rounds = result.rounds
            # A test that ReFrame ran again stands as it ended.
            found[rounds.partition, rounds.environment] = rounds, result.pairs["partition_extras"]
    return tuple(found.values())
