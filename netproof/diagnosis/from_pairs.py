"""Evidence from rounds of pairs, and the slow direction that streams show."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from netproof.benchmarks import registry
from netproof.diagnosis.evidence import Evidence, EvidenceSource, Place, PlaceKind, Sign, Sure
from netproof.diagnosis.partition_view import PartitionView
from netproof.localization.accused import Accusation
from netproof.localization.observations import PairQuantity
from netproof.localization.recovery import Recovery
from netproof.localization.searching import Kind
from netproof.measurement.disturbance import disturbed
from netproof.measurement.interval import Side
from netproof.verdict.pairs import JudgedPairs


def of_pairs(view: PartitionView) -> Iterator[Evidence]:
    """Yield the accusations by rounds of pairs, and lone pairs below the bisection asked for."""
    error = view.pair_settings.accusation().error
    why = f"at most {1000 * error:.3g} in 1,000 healthy runs accuse anyone"
    for one in view.pairs:
        for accusation in one.judgement.accusations:
            yield Evidence(
                EvidenceSource.PAIRS,
                Sign.SLOW,
                _accused(view, accusation),
                f"{accusation.name}: {'; '.join(map(str, accusation.effects))}"
                f" (rounds of pairs, {one.rounds.environment})",
                Sure.STATISTICAL,
                why,
                one.rounds.environment,
                accusation.effects,
                _recovery(one, accusation),
                accusation.alternatives,
                accusation.kind,
            )
        for lone in one.lone_on(Side.BEYOND):
            yield Evidence(
                EvidenceSource.PAIRS,
                Sign.SLOW,
                view.several(lone.nodes),
                f"{one.asked_of_lone(lone)} (rounds of pairs, {one.rounds.environment})",
                Sure.STATISTICAL,
                "all of the interval is below the share that the site asks for ('bisection')",
                one.rounds.environment,
                asserted=False,
            )


def _accused(view: PartitionView, accusation: Accusation) -> Place:
    kind = {
        Kind.NODE: PlaceKind.NODE,
        Kind.PAIR: PlaceKind.PAIR,
        Kind.SWITCH: PlaceKind.LEAF,
        Kind.UPLINK: PlaceKind.UPLINK,
        Kind.GROUP: PlaceKind.GROUP,
    }[accusation.kind]
    interface = view.interface if kind in (PlaceKind.NODE, PlaceKind.PAIR) else ""
    return Place(kind, accusation.name, accusation.nodes, interface)


def of_directions(view: PartitionView, found: Sequence[Evidence]) -> list[Evidence]:
    """Return the direction in which accused nodes are slow, as streams show it.

    The rounds' own streams come first, else those of cases between two nodes. PingPong's time is
    the mean of both directions: at shares ``both`` of the rate and ``known`` in one direction, the
    other has 1 / (2 / both - 1 / known).
    """
    fine = 1 - view.pair_settings.accusation().slower
    directions = list(_of_rounds(view, found))
    asked = frozenset[str]().union(*(one.streamed() for one in view.pairs))
    for one in found:
        rate = next(
            (effect for effect in one.effects if effect.quantity is PairQuantity.RATE), None
        )
        if one.kind is not Kind.NODE or one.alternatives or rate is None:
            continue
        (node,) = one.place.nodes
        if node in asked:
            continue
        shares = list(_streams(view, node))
        for sends in (True, False):
            known = [share for from_it, share in shares if from_it is sends]
            if not known:
                continue
            share = statistics.median(known)
            this, other = ("sends", "receives") if sends else ("receives", "sends")
            rest = 2 / rate.interval[0] - 1 / share
            if share >= fine:
                slow = other
            elif rest > 0 and 1 / rest >= fine:
                slow = this
            else:
                continue
            directions.append(
                Evidence(
                    EvidenceSource.CURVES,
                    Sign.ONE_WAY,
                    one.place,
                    f"only what {node} {slow} is slow: streams that it {this} reach"
                    f" {100 * share:.0f} % of the line rate",
                    Sure.LIKELY,
                    "rounds of pairs go both ways, and streams one",
                    setting=slow,
                )
            )
            break
    return directions


def _of_rounds(view: PartitionView, found: Sequence[Evidence]) -> Iterator[Evidence]:
    """Yield the slow direction of accused nodes, by the streams of their rounds."""
    places = {
        (one.environment, one.place.nodes): one.place
        for one in found
        if one.source is EvidenceSource.PAIRS and one.kind is Kind.NODE and not one.alternatives
    }
    for pairs in view.pairs:
        for one in pairs.slow_ways(view.pair_settings, view.settings.disturbance):
            environment = pairs.rounds.environment
            place = places.get((environment, (one.node,)))
            if place is not None:
                yield Evidence(
                    EvidenceSource.PAIRS,
                    Sign.ONE_WAY,
                    place,
                    f"only what {one.node} {one.way} is slow: {one.effect}; what it"
                    f" {one.way.other}: {one.rest} (streams, {environment})",
                    Sure.STATISTICAL,
                    "streams go one way, and those of cleared nodes were measured with them",
                    environment,
                    (one.effect,),
                    setting=one.way.value,
                )


def _streams(view: PartitionView, node: str) -> Iterator[tuple[bool, float]]:
    """Yield whether the node sends, and the share of the line rate, per stream of two nodes."""
    settings = view.settings.disturbance
    for one in view.ran:
        if one.measured is None or one.case.path != "between" or one.case.ranks != 2:
            continue
        rate, line = one.measured.landmarks.asymptotic_mb_s, one.measured.line_rate_mb_s
        if not registry.function_of(one.case).streams or not rate or not line:
            continue
        if any(disturbed(launch.loads, settings) for launch in one.measured.launches):
            continue
        nodes = one.measured.launches[0].nodes()
        if len(nodes) == 2 and node in nodes:
            yield nodes[0] == node, min(1.0, rate / line)


def _recovery(pairs: JudgedPairs, accusation: Accusation) -> Recovery | None:
    """Return how an accused thing does alone; undecided if its pairs disagree."""
    several = {one.recovery for one in pairs.alone if {*one.pair} & {*accusation.nodes}}
    if not several:
        return None
    return several.pop() if len(several) == 1 else Recovery.UNDECIDED
