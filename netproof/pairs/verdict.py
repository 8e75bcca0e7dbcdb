"""Nodes judged by the rounds of pairs of a job; the same inside the job and afterwards.

In a round of pairs half of the nodes send to the other half, each to one, at the same time. The
mean rate of a pair over such rounds is the effective bisection bandwidth (Hoefler, Schneider and
Lumsdaine, "Multistage switches are not crossbars", CLUSTER 2008): a non-blocking network has the
line rate.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from netproof.criteria import Finding, Level
from netproof.criteria.counters import path
from netproof.criteria.interface import CountedLaunch
from netproof.errors import counted, grouped
from netproof.measurement import interval
from netproof.measurement.disturbance import (
    DisturbanceSettings,
    disturbed,
    others_share,
)
from netproof.measurement.interval import Interval, Side
from netproof.measurement.links import Link
from netproof.pairs import accusation
from netproof.pairs.accusation import Effect, Judgement, State
from netproof.pairs.alone import Alone, Way, measured_alone, slow_uplink, slow_ways
from netproof.pairs.model import LEAST_NODES, LEAST_PAIRS, Pair, PairObservation, Topology
from netproof.pairs.rounds import Mode, pairs_that_never_met, rounds_of_all
from netproof.session.measured import Launch
from netproof.session.pair_rounds import PairRounds
from netproof.session.session import Session
from netproof.site.matrix import Matrix
from netproof.site.partition import DEFAULTS, PairQuantity, PairSettings, Partition
from netproof.site.slurm import fold

MOST_NAMED = 6
"""Most pairs that never met whose nodes are named: all of a partition of four nodes."""


@dataclass(frozen=True)
class Bisection:
    """Bisection bandwidth in the rounds of a job.

    ``mb_s``: mean rate per pair in the median round; ``share``: of the line rate, with its 95 %
    ``interval`` over rounds, None for one; ``worst``: the share of the worst round; ``rounds`` that
    count, each of ``pairs`` at once; ``within`` and ``across``: the median share of pairs below one
    leaf switch, and of pairs across leaves, None without such pairs.
    """

    mb_s: float
    share: float
    interval: Interval | None
    worst: float
    rounds: int
    pairs: int
    within: float | None = None
    across: float | None = None

    def __str__(self) -> str:
        """Return the sentence."""
        rounds = f"{counted(self.rounds, 'round')} of {self.pairs} pairs at once"
        text = (
            f"effective bisection bandwidth {self.mb_s:.4g} MB/s per pair, {self.share:.1%} of the"
            f" line rate ({_over(self.interval, rounds)}; the worst {self.worst:.1%})"
        )
        if self.within is not None and self.across is not None:
            text += f"; pairs below one leaf {self.within:.1%}, across leaves {self.across:.1%}"
        return text


@dataclass(frozen=True)
class LonePair:
    """Medians over the launches of a pair that nothing disturbed, or over all if each was.

    ``share``: of the line rate, None where that is not known, with its 95 % ``interval``;
    ``disturbed``: whether every launch was; ``streams_mb_s``: from its first node to its second,
    and back, None where no stream was measured.
    """

    nodes: Pair
    latency_us: float
    rate_mb_s: float
    share: float | None
    interval: Interval | None
    launches: int
    disturbed: bool
    streams_mb_s: tuple[float | None, float | None]

    @property
    def rate(self) -> str:
        """Its nodes and its rate, in words."""
        share = "" if self.share is None else f", {self.share:.1%} of the line rate"
        launches = counted(self.launches, "launch", "launches")
        launches += ", each disturbed" if self.disturbed else ""
        over = f"over {launches}" if self.interval is None else _over(self.interval, launches)
        return f"{' – '.join(self.nodes)} {self.rate_mb_s:.4g} MB/s{share} ({over})"

    def __str__(self) -> str:
        """Return the sentence."""
        there, back = self.streams_mb_s
        streams = ""
        if there is not None and back is not None:
            streams = f", streams of {there:.4g} MB/s there and {back:.4g} MB/s back"
        return f"{self.rate}, latency {self.latency_us:.3g} µs{streams}"


def _over(ends: Interval | None, what: str) -> str:
    return what if ends is None else f"95% interval {ends[0]:.1%} to {ends[1]:.1%} over {what}"


def bisection_of(
    rounds: PairRounds, line_rate_mb_s: float | None, settings: DisturbanceSettings
) -> Bisection | None:
    """Return the bisection bandwidth of a job's rounds; None without a usable round.

    Only undisturbed rounds count in which all nodes but at most one were measured at once.
    ``line_rate_mb_s``: of a node's link.
    """
    whole = len(rounds.nodes) // 2
    counted = [
        one
        for one in rounds.launches
        if not (one.alone or one.both_ways)
        and len(one.pairs) == whole >= LEAST_PAIRS
        and not disturbed(one.loads, settings)
    ]
    if not counted or not line_rate_mb_s:
        return None
    rates = [fmean(one.rates_mb_s) for one in counted]
    shares = [rate / line_rate_mb_s for rate in rates]
    leaf = Topology(rounds.leaves).leaf_of
    # Pairs whose leaves are known, by whether these are two.
    by_place: dict[bool, list[float]] = defaultdict(list)
    for one in counted:
        for pair, rate in zip(one.pairs, one.rates_mb_s, strict=True):
            if None not in (ends := {leaf.get(node) for node in pair}):
                by_place[len(ends) > 1].append(rate / line_rate_mb_s)
    within, across = (median(by_place[far]) if by_place[far] else None for far in (False, True))
    middle, ends_of = median(shares), interval.of_median(shares)
    worst, count = min(shares), len(counted)
    return Bisection(median(rates), middle, ends_of, worst, count, whole, within, across)


def lone_pairs_of(
    rounds: PairRounds, line_rate_mb_s: float | None, settings: DisturbanceSettings
) -> tuple[LonePair, ...]:
    """Return each pair that was measured, if the job has too few nodes to compare pairs; else none.

    ``line_rate_mb_s``: of a node's link.
    """
    if len(rounds.nodes) >= LEAST_NODES:
        return ()
    by_pair = grouped(
        ((min(pair), max(pair)), one) for one in rounds.launches for pair in one.pairs
    )
    found = []
    for nodes, several in sorted(by_pair.items()):
        quiet = [one for one in several if not disturbed(one.loads, settings)]
        measured = [one for one in quiet if not one.stream]
        counted = measured or [one for one in several if not one.stream]
        if not counted:
            continue
        rates = [one.rates_mb_s[0] for one in counted]
        shares = [rate / line_rate_mb_s for rate in rates] if line_rate_mb_s else []
        streams = [one for one in quiet or several if one.stream]
        there, back = (
            [one.rates_mb_s[0] for one in streams if one.pairs[0][0] == node] for node in nodes
        )
        found.append(
            LonePair(
                nodes,
                median(one.times_us[0] for one in counted),
                median(rates),
                median(shares) if shares else None,
                interval.of_median(shares),
                len(counted),
                not measured,
                (median(there) if there else None, median(back) if back else None),
            )
        )
    return tuple(found)


@dataclass(frozen=True)
class PairsVerdict:
    """Verdict on the rounds of one job.

    ``alone``: suspects that were measured while all others were silent; ``busy``: what else
    ran on each node that was never undisturbed; ``bisection``: None where no round shows it, and
    ``least``: the share of the line rate that it has to have; ``path``: which interfaces carried
    what was sent, None where not counted; ``lone``: pairs by themselves, if too few nodes to
    compare; ``quantities``: those by which nodes have to be cleared.
    """

    rounds: PairRounds
    judgement: Judgement
    alone: tuple[Alone, ...]
    busy: Mapping[str, str] = dataclasses.field(default_factory=dict)
    bisection: Bisection | None = None
    least: float | None = None
    path: Finding | None = None
    lone: tuple[LonePair, ...] = ()
    quantities: tuple[PairQuantity, ...] = DEFAULTS.quantities

    @property
    def where(self) -> str:
        """Partition and environment."""
        return f"{self.rounds.partition} {self.rounds.environment}"

    def __str__(self) -> str:
        """Return the line on the nodes' states."""
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
        """Figures of lone pairs, and why there is no more; empty where pairs are compared."""
        if not self.lone:
            return ""
        return (
            f"too few nodes to compare with each other ({len(self.rounds.nodes)}); what a pair"
            f" alone tells: {'; '.join(map(str, self.lone))}"
        )

    def _not_loaded(self) -> str:
        """Return which uplinks too few nodes sent over at once to compare them, or empty."""
        loaded = [pair for one in self.rounds.launches if one.both_ways for pair in one.pairs]
        leaf = Topology(self.rounds.leaves).leaf_of
        ends = [{leaf.get(node) for node in pair} for pair in loaded]
        there = {name for both in ends if len(both) > 1 for name in both}
        left = [name for name, nodes in self.rounds.leaves.items() if nodes and name not in there]
        named = f"; uplinks with too few nodes to be loaded: {fold(left)}"
        return named if loaded and left else ""

    def accusations(self) -> tuple[str, ...]:
        """Return a sentence for each accusation, with the result of measuring it alone."""
        found = []
        for one in self.judgement.accusations:
            alone = [it.recovery for it in self.alone if {*it.pair} & {*one.nodes}]
            said = [str(one), *(f"measured alone it {it}" for it in dict.fromkeys(alone))]
            found.append(f"{self.where}: {'; '.join(said)}")
        return tuple(found)

    def faults(self) -> tuple[str, ...]:
        """Return a sentence for each incomplete round, and for a narrow bisection."""
        return tuple(f"{self.where}: {what}" for what in self.what_failed())

    def what_failed(self) -> tuple[str, ...]:
        """Return the faults without the place."""
        found = [f"rounds of pairs: {fault}" for fault in self.rounds.faults]
        found += self.asked(Side.BEYOND).values()
        if self.path is not None and self.path.level is Level.FAIL:
            found.append(self.path.reason)
        return tuple(found)

    def asked(self, side: Side) -> dict[tuple[str, ...], str]:
        """Return what is on that side of the share of the line rate that the site asks for.

        A sentence for each lone pair, by its nodes, and for the bisection, by ().
        """
        found: list[tuple[tuple[str, ...], str, float | None, Interval | None]] = [
            (one.nodes, one.rate, None if one.disturbed else one.share, one.interval)
            for one in self.lone
        ]
        if self.bisection is not None:
            found.append(((), str(self.bisection), self.bisection.share, self.bisection.interval))
        sentences = {}
        for nodes, what, share, ends in found if self.least is not None else ():
            there = Side.ASTRIDE
            if share is not None:
                there = interval.side(ends or (share, share), self.least or 0.0, math.inf)
            if there is side:
                sentences[nodes] = f"{what}, and at least {self.least:.1%} is asked for"
        return sentences

    def undecided_nodes(self) -> tuple[str, ...]:
        """Return the nodes that are neither cleared nor accused."""
        return self._in(State.UNDECIDED)

    def undecided_for(self) -> dict[str, tuple[str, ...]]:
        """Each reason for which nodes are neither cleared nor accused, to these nodes."""
        by_reason: dict[str, list[str]] = defaultdict(list)
        for node in self.undecided_nodes():
            by_reason[self.busy.get(node, self.judgement.nodes[node].reason)].append(node)
        return {reason: tuple(nodes) for reason, nodes in by_reason.items()}

    def undecided(self) -> tuple[str, ...]:
        """Return a sentence for each reason for which nodes are neither cleared nor accused."""
        each = self.undecided_for().items()
        found = [f"{fold(nodes)} undecided: {reason}" for reason, nodes in each]
        found += self.asked(Side.ASTRIDE).values()
        loaded = any(one.both_ways for one in self.rounds.launches)
        if loaded and PairQuantity.BOTH_WAYS not in self.judgement.noise:
            found.append(
                "uplinks undecided: too few undisturbed rounds in which both nodes of each pair"
                " sent"
            )
        if self.bisection is None and self.least is not None and not self.lone:
            found.append(
                "no round in which all pairs measured at once, and at least"
                f" {self.least:.1%} of the line rate is asked of a bisection"
            )
        return tuple(f"{self.where}: {one}" for one in found)

    def not_judged(self) -> dict[PairQuantity, float]:
        """Return the factor below which a quantity that clears no node shows nothing.

        It is at least a doubling, and more if the noise of the rounds allows no less.
        """
        factors: dict[PairQuantity, float] = {}
        for node in () if self.lone else self.cleared():
            for one in self.judgement.nodes[node].effects:
                low, high = one.interval
                end = high if one.quantity is PairQuantity.LATENCY else 1 / low
                if one.quantity not in self.quantities:
                    factors[one.quantity] = max(factors.get(one.quantity, 2.0), end)
        return factors

    def unjudged(self) -> tuple[PairQuantity, ...]:
        """Return the quantities in which no round shows anything of the nodes that are cleared."""
        if not self.cleared():
            return ()
        known = {one.quantity for node in self.judgement.nodes.values() for one in node.effects}
        return tuple(one for one in PairQuantity if one.of_nodes and one not in known)

    def never_met(self) -> str:
        """Return which pairs of nodes no round had, which may be slow with each other; or empty."""
        launches = (one for one in self.rounds.launches if not one.stream)
        met = {frozenset(pair) for one in launches for pair in one.pairs}
        of = math.comb(len(self.rounds.nodes), 2)
        if of - len(met) > MOST_NAMED:
            return f"{of - len(met):,} of {of:,} pairs of nodes never met"
        never = pairs_that_never_met(self.rounds.nodes, met)
        return f"{', '.join(map(' – '.join, never))} never met" if never else ""

    def cleared(self) -> tuple[str, ...]:
        """Return the cleared nodes."""
        return self._in(State.CLEARED)

    def slow_ways(
        self, settings: PairSettings, disturbance: DisturbanceSettings
    ) -> dict[str, dict[Way, Effect]]:
        """Return the effects of both directions of each accused node that is slow in one only."""
        found = slow_ways(streams(self.rounds, disturbance), self.judgement, settings)
        return {node: ways for node, ways in found.items() if ways}

    def _in(self, state: State) -> tuple[str, ...]:
        return tuple(node for node, one in self.judgement.nodes.items() if one.state is state)


def observations(
    launches: Iterable[Launch], disturbance: DisturbanceSettings
) -> tuple[PairObservation, ...]:
    """Return what each pair measured in each round, marked where its nodes were disturbed.

    Streams are none of them: their times are of one direction. What was measured while both nodes
    sent tells neither latency nor rate of a node.
    """
    found = []
    for one in launches:
        by_node = grouped((load.node, load) for load in one.loads)
        figures = () if one.stream else zip(one.pairs, one.times_us, one.rates_mb_s, strict=True)
        for pair, time_us, rate_mb_s in figures:
            loads = [load for node in sorted(pair) for load in by_node[node]]
            found.append(
                PairObservation(
                    one.round,
                    pair,
                    None if one.both_ways else time_us,
                    None if one.both_ways else rate_mb_s,
                    one.alone,
                    bool(disturbed(loads, disturbance)),
                    rate_mb_s if one.both_ways else None,
                )
            )
    return tuple(found)


def lone_observations(
    rounds: PairRounds, disturbance: DisturbanceSettings
) -> tuple[PairObservation, ...]:
    """Return what pairs measured that were alone in their launch."""
    lone = (one for one in rounds.launches if len(one.pairs) == 1 and not one.both_ways)
    return observations(lone, disturbance)


def streams(rounds: PairRounds, disturbance: DisturbanceSettings) -> list[tuple[Pair, float]]:
    """Return the undisturbed streams: who sent to whom, and MB/s."""
    return [
        found
        for one in rounds.launches
        if one.stream and not disturbed(one.loads, disturbance)
        for found in zip(one.pairs, one.rates_mb_s, strict=True)
    ]


def topology(rounds: PairRounds) -> Topology | None:
    """Return the tree of switches of the job's rounds; None where Slurm knows none."""
    return Topology(rounds.leaves, rounds.parents) if rounds.leaves else None


def settings_of(rounds: PairRounds, settings: PairSettings) -> tuple[Mode, PairSettings]:
    """Return the mode, and the settings with the number of rounds that it makes."""
    mode, every = Mode(rounds.mode), max(2, rounds_of_all(len(rounds.nodes)))
    full = settings.model_copy(update={"rounds": every})
    return mode, full if mode is Mode.FULL else settings


def judge(
    rounds: PairRounds,
    settings: PairSettings,
    disturbance: DisturbanceSettings,
    link: Link | None = None,
) -> PairsVerdict:
    """Judge the rounds of a job; ``link``: of each node, without which bisections have no share."""
    _, settings = settings_of(rounds, settings)
    seen = observations(rounds.launches, disturbance)
    switches, lone = topology(rounds), lone_observations(rounds, disturbance)
    judgement = accusation.judge(seen, rounds.nodes, switches, settings)
    alone = measured_alone(seen, judgement, settings)
    if not judgement.accusations and (
        between := slow_uplink(rounds.nodes, lone, switches, settings)
    ):
        judgement = dataclasses.replace(judgement, accusations=(between,))
    line_rate = None if link is None else link.line_rate_mb_s()
    return PairsVerdict(
        rounds,
        judgement,
        alone,
        _never_calm(rounds, disturbance),
        bisection_of(rounds, line_rate, disturbance),
        settings.bisection,
        lone=lone_pairs_of(rounds, line_rate, disturbance),
        quantities=settings.quantities,
    )


def _never_calm(rounds: PairRounds, settings: DisturbanceSettings) -> dict[str, str]:
    """Return the nodes that were disturbed in every launch, with the largest share taken.

    It is one reason for all of them, however many there are.
    """
    loads = grouped((load.node, load) for one in rounds.launches for load in one.loads)
    most = {
        node: round(100 * others_share(several))
        for node, several in loads.items()
        if all(disturbed([load], settings) for load in several)
    }
    largest, least = max(most.values(), default=0), min(most.values(), default=0)
    share = f"{largest} %" if least == largest else f"{least} to {largest} %"
    by_node = ", by node" if least < largest else ""
    why = f"in each of its launches something else ran alongside, with up to {share} of the CPUs"
    return dict.fromkeys(most, why + by_node)


def of_session(session: Session, matrix: Matrix) -> tuple[PairsVerdict, ...]:
    """Return the verdicts on the rounds of every job, by the settings of today.

    Those of a partition that the site has no more are judged by the settings of then.
    """
    found = []
    for rounds, extras in rounds_of(session):
        here = matrix.partitions.get(rounds.partition) or Partition.model_validate(extras)
        disturbance = here.settings().disturbance
        link = here.link(over_tcp=rounds.environment not in matrix.not_over_tcp)
        judged = judge(rounds, here.pair_settings(), disturbance, link)
        found.append(dataclasses.replace(judged, path=path_of_rounds(rounds, here)))
    return tuple(found)


def path_of_rounds(rounds: PairRounds, here: Partition) -> Finding | None:
    """Return the finding on the path of the rounds that were counted."""
    settings, launches = here.settings(), []
    for one in rounds.launches:
        if one.counters is not None:
            quiet = not disturbed(one.loads, settings.disturbance)
            launches.append(CountedLaunch(one.number, one.counters, one.payload, quiet))
    where = f"pairs on {rounds.partition} {rounds.environment}"
    return path(launches, here.rails_or_interface(), where, settings.path)


def rounds_of(session: Session) -> tuple[tuple[PairRounds, Mapping[str, Any]], ...]:
    """Return the rounds of every job, and the site's extras of their partition then."""
    found = {}
    for result in session.with_pairs:
        if result.rounds is not None:
            # A test that ReFrame ran again stands as it ended.
            where = result.rounds.partition, result.rounds.environment, result.name
            found[where] = result.rounds, result.extras["partition_extras"]
    return tuple(found.values())
