"""Counts of each node's interfaces over a session, and nodes that lose more than others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from netproof.criteria import Level
from netproof.criteria.counters import (
    LOOPBACK,
    MORE,
    TIMES,
    CountedSettings,
    Share,
    carrier_changes,
    sent_again,
)
from netproof.criteria.findings import FLAGGED, Finding
from netproof.criteria.settings import Settings
from netproof.errors import grouped
from netproof.measurement.counters import CARRIER, INTERFACE, Counters, added
from netproof.measurement.disturbance import disturbed
from netproof.pairs.losses import LEAST_NODES, Resent, port_losses
from netproof.session.pair_rounds import PairRounds
from netproof.site.partition import Partition
from netproof.verdict.engine import Subject

LOSES, LOST_ONCE = "retransmissions", "burst of retransmissions"
"""Criteria of findings on a node's port: shown by most launches, or by few."""

LOSES_TO = "retransmissions to one node"
"""Criterion of a finding on what a node sends to one other, shown by most launches."""

ALL_LOSE = "retransmissions on all nodes"
"""Criterion of a finding on a whole partition."""

SHOWN = 1e-5
"""Shares of segments below this are shown alike."""

_COUNTERS = ("tx_bytes", "rx_bytes", "rx_errs", "tx_errs", "rx_drop", "tx_drop", CARRIER)


@dataclass(frozen=True)
class InterfaceTotals:
    """Counts of an interface over all launches of a partition's cases.

    ``counted``: sums by counter, None where a launch's is not known; ``rail``: whether it is under
    test; ``again``: what TCP sent again on the node.
    """

    partition: str
    node: str
    interface: str
    counted: Mapping[str, int | None]
    rail: bool
    again: Share

    @property
    def faults(self) -> tuple[int | None, int | None, int | None]:
        """Errors and drops of both directions, and changes of its carrier; None where not known."""
        one = self.counted
        errors, drops = (_sum(one[f"rx_{what}"], one[f"tx_{what}"]) for what in ("errs", "drop"))
        return errors, drops, one[CARRIER]


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


@dataclass(frozen=True)
class Seen:
    """A launch of a case or of rounds of pairs that was counted.

    ``rails``: interfaces under test; ``busy``: nodes that something else loaded; ``partners``: whom
    a node sent to, if not all others.
    """

    partition: str
    counters: Counters
    rails: tuple[str, ...]
    settings: Settings
    busy: frozenset[str]
    partners: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def of_cases(subjects: Iterable[Subject]) -> list[Seen]:
    """Return the counted launches of cases, those paired with them, and those that crashed."""
    return [
        Seen(
            *(subject.case.partition, one.counters, subject.rails, subject.settings),
            frozenset(() if one.undisturbed else one.counters.sources),
        )
        for subject in subjects
        for one in (*subject.data.counted, *subject.data.counted_alongside)
    ]


def of_rounds(several: Iterable[PairRounds], partitions: Mapping[str, Partition]) -> list[Seen]:
    """Return the counted launches of rounds of pairs, on partitions that the site has."""
    found = []
    for rounds in several:
        here = partitions.get(rounds.partition)
        if here is None:
            continue
        rails, settings = here.rails_or_interface(), here.settings()
        for launch in rounds.launches:
            if launch.counters is not None:
                of_nodes, limits = launch.loads, settings.disturbance
                busy = frozenset(load.node for load in of_nodes if disturbed((load,), limits))
                partners = {
                    node: tuple(other for other in pair if other != node)
                    for pair in launch.pairs
                    for node in pair
                }
                one = Seen(rounds.partition, launch.counters, rails, settings, busy, partners)
                found.append(one)
    return found


def carriers_in_rounds(several: Iterable[Seen]) -> tuple[Finding, ...]:
    """Return a finding on each carrier that came or went while rounds of pairs ran."""
    found: list[Finding] = []
    for partition, launches in _by_partition(several).items():
        counted = (one.counters for one in launches)
        rails, bounds = launches[0].rails, launches[0].settings.carrier_change
        found += carrier_changes(counted, rails, f"pairs on {partition}", bounds)
    return tuple(one for one in found if one.level in FLAGGED)


def all_lose(several: Iterable[Seen]) -> tuple[Finding, ...]:
    """Return a finding on each partition on which every node of rounds sends too much again.

    No node stands out then, and comparing nodes shows nothing of what slows all.
    """
    found = []
    quiet = _by_partition(one for one in several if not one.busy)
    for partition, launches in sorted(quiet.items()):
        bounds: CountedSettings = launches[0].settings.retransmission
        shares = _shares_by_node(added(one.counters for one in launches)).values()
        if len(shares) < 2 or bounds.fail is None:
            continue
        lose = [one.value for one in shares if (one.count or 0) >= bounds.least]
        if len(lose) < len(shares) or min(lose) <= bounds.fail:
            continue
        least, most = _percent(min(lose)), _percent(max(lose))
        where = "all of them: look at the switch's buffers, its flow control and its drops"
        if len(lose) < 3:
            where = "them: look at their ports and cables, and at the switch's buffers and drops"
        why = (
            f"all {len(lose)} nodes send {least if least == most else f'{least} to {most}'} of"
            f" their segments again, bound {_percent(bounds.fail)}; packets are lost between"
            f" {where}"
        )
        on, value = f"pairs on {partition}", min(lose)
        found.append(Finding(ALL_LOSE, Level.FAIL, on, why, value=value, bound=bounds.fail))
    return tuple(found)


def totals(several: Sequence[Seen]) -> tuple[InterfaceTotals, ...]:
    """Return the interfaces of all nodes in order; without loopback and idle ones."""
    found = []
    for partition, launches in sorted(_by_partition(several).items()):
        counted: dict[tuple[str, str], dict[str, int | None]] = {}
        rails: set[tuple[str, str]] = set()
        by_rails = grouped((seen.rails, seen.counters) for seen in launches)
        sums_of = [(names, one) for names, them in by_rails.items() for one in added(them)]
        for names, counters in sums_of:
            for node in counters.sources:
                for source in counters.of_kind(node, INTERFACE):
                    place = (node, source.name)
                    sums = counted.setdefault(place, dict.fromkeys(_COUNTERS, 0))
                    rails |= {place} if source.name in names else set()
                    for name in _COUNTERS:
                        sums[name] = _sum(sums[name], counters.of_source(source, name))
        shares = _shares_by_node(one for _, one in sums_of)
        found += [
            InterfaceTotals(partition, *place, sums, place in rails, shares[place[0]])
            for place, sums in sorted(counted.items())
            if place in rails or (place[1] != LOOPBACK and any(one != 0 for one in sums.values()))
        ]
    return tuple(found)


def _by_partition(several: Iterable[Seen]) -> dict[str, list[Seen]]:
    return grouped((one.partition, one) for one in several)


def _shares_by_node(several: Iterable[Counters]) -> dict[str, Share]:
    shares: dict[str, Share] = {}
    for counters in several:
        for node in counters.sources:
            share = sent_again(counters, node)
            shares[node] = shares[node] + share if node in shares else share
    return shares


def standing_out(several: Sequence[Seen]) -> tuple[Finding, ...]:
    """Return a finding on each node whose port loses more than those of the partition's others.

    Losses between undisturbed nodes, if there are any, are compared with the other nodes' median,
    by ``MORE`` and ``TIMES``. It warns, as LOSES where most launches show it, else as LOST_ONCE.
    TCP also sends again what a node whose CPUs are taken acknowledges late: of a node that was
    never undisturbed, a loss is LOST_ONCE up to the share that fails a case.
    """
    found = []
    for partition, launches in sorted(_by_partition(several).items()):
        sent = [*_resent(launches)]
        quiet = [one for one, busy in sent if not busy]
        known = {one.node for one in quiet}
        if len(known) < LEAST_NODES:
            known = set()
        everything = [one for one, _ in sent] if {one.node for one, _ in sent} > known else []
        ports = [one for one in port_losses(everything, MORE) if one.node not in known]
        bounds: CountedSettings = launches[0].settings.retransmission
        interface = ", ".join(launches[0].rails)
        for port in (*port_losses(quiet, MORE), *ports):
            more = port.share - port.usual
            if port.share <= TIMES * port.usual or more <= MORE or port.count < bounds.least:
                continue
            shown = f"{port.seen} of {port.launches} launches show it"
            shown += "" if port.node in known else ", in which something else ran"
            either = f", or that of {', '.join(port.or_of)}" if port.or_of else ""
            whose, rest = f"its port{either}", "those of the other nodes"
            look = "look at this node's port, cable and card"
            if port.to:
                whose, rest = f"what it sends to {port.to}", "all else that these two ports carry"
                look = "look at the route, the ARP entries and the switch's hashing between the two"
            sure = port.node in known or (bounds.fail is not None and port.share > bounds.fail)
            name = LOST_ONCE if not (port.persists and sure) else LOSES_TO if port.to else LOSES
            why = (
                f"{whose} loses {_percent(port.share)} of segments, and {rest}"
                f" {_percent(port.usual)}, by what the nodes had to send again; {shown}: {look}"
            )
            where, against = f"{partition} {port.node} {interface}", " ".join(port.or_of) or None
            finding = Finding(name, Level.WARN, where, why, value=more, bound=MORE)
            finding = replace(finding, node=port.node, interface=interface)
            found.append(replace(finding, against=port.to or against))
    return tuple(found)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share >= SHOWN else "next to nothing"


def _resent(launches: Iterable[Seen]) -> Iterator[tuple[Resent, bool]]:
    """Yield what each node of each launch sent again, and to whom, and whether either was busy."""
    for number, one in enumerate(launches):
        names = tuple(one.counters.sources)
        for name in names:
            share = sent_again(one.counters, name)
            if share.count is None or share.of is None:
                continue
            partners = one.partners.get(name)
            nodes = (name, *partners) if partners else names
            busy = not one.busy.isdisjoint(nodes)
            yield Resent(number, name, nodes, share.count, share.of), busy
