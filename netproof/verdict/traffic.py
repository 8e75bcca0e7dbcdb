"""What each node's interfaces counted over a session, and which node loses more than the others."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from netproof.criteria import Level
from netproof.criteria.counted import (
    LOOPBACK,
    RetransmissionSettings,
    Share,
    carrier_changes,
    finding_of,
    sent_again,
)
from netproof.criteria.findings import Finding
from netproof.criteria.interface import CountedLaunch
from netproof.criteria.settings import Settings
from netproof.measurement.counters import CARRIER, INTERFACE, Counters
from netproof.measurement.disturbance import disturbed
from netproof.measurement.payload import Payload
from netproof.session.pair_rounds import PairRounds
from netproof.site.partition import Partition
from netproof.verdict.subject import Subject

_COUNTERS = ("tx_bytes", "rx_bytes", "rx_errs", "tx_errs", "rx_drop", "tx_drop", CARRIER)


@dataclass(frozen=True)
class InterfaceTotals:
    """What an interface of a node counted over all launches of a partition's cases.

    ``counted``: counter to its sum, None where one launch's is not known; ``rail``: whether it is
    under test; ``again``: of the node, what TCP sent again.
    """

    partition: str
    node: str
    interface: str
    counted: Mapping[str, int | None]
    rail: bool
    again: Share

    def carrier_changes(self) -> int | None:
        """How often its carrier came or went."""
        return self.counted[CARRIER]

    def amiss(self) -> bool:
        """Whether it counted errors, drops or carrier changes, or that is not known."""
        return any(one != 0 for one in (self.errors(), self.drops(), self.carrier_changes()))

    def errors(self) -> int | None:
        """Errors of both directions."""
        return _sum(self.counted["rx_errs"], self.counted["tx_errs"])

    def drops(self) -> int | None:
        """Drops of both directions."""
        return _sum(self.counted["rx_drop"], self.counted["tx_drop"])


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


@dataclass(frozen=True)
class Seen:
    """A launch that was counted: of a case, or of rounds of pairs.

    ``rails``: the interfaces under test; ``calm``: whether nothing disturbed it.
    """

    partition: str
    counters: Counters
    rails: tuple[str, ...]
    settings: Settings
    calm: bool


def of_cases(subjects: Iterable[Subject]) -> list[Seen]:
    """The launches of cases that were counted, those next to them, and those that crashed."""
    return [
        Seen(
            subject.case.partition,
            counters,
            subject.rails,
            subject.settings,
            not disturbed(launch.loads, subject.settings.disturbance),
        )
        for subject in subjects
        for launch in subject.measured.launches
        for counters in (launch.counters, *(peer.counters for peer in launch.peers))
        if counters is not None
    ] + [
        Seen(subject.case.partition, crash.counters, subject.rails, subject.settings, calm=False)
        for subject in subjects
        for crash in subject.measured.all_crashes()
        if crash.counters is not None
    ]


def of_rounds(several: Iterable[PairRounds], partitions: Mapping[str, Partition]) -> list[Seen]:
    """The launches of rounds of pairs that were counted, on partitions that the site has."""
    found = []
    for rounds in several:
        here = partitions.get(rounds.partition)
        if here is None:
            continue
        rails, settings = here.rails_or_interface(), here.settings()
        found += [
            Seen(
                rounds.partition,
                launch.counters,
                rails,
                settings,
                not disturbed(launch.loads, settings.disturbance),
            )
            for launch in rounds.launches
            if launch.counters is not None
        ]
    return found


def carriers_in_rounds(several: Iterable[Seen]) -> tuple[Finding, ...]:
    """Carriers that came or went while rounds of pairs ran, a finding each."""
    by_partition: dict[str, list[Seen]] = defaultdict(list)
    for seen in several:
        by_partition[seen.partition].append(seen)
    return tuple(
        finding
        for partition, launches in by_partition.items()
        for finding in carrier_changes(
            [
                CountedLaunch(number, one.counters, Payload(0), one.calm)
                for number, one in enumerate(launches, 1)
            ],
            launches[0].rails,
            f"pairs on {partition}",
            launches[0].settings.carrier_change,
        )
        if finding.level in (Level.WARN, Level.FAIL)
    )


def totals(several: Iterable[Seen]) -> tuple[InterfaceTotals, ...]:
    """The interfaces of all nodes, by partition, node and name; loopback and idle ones left out."""
    counted: dict[tuple[str, str, str], dict[str, int | None]] = {}
    rails: set[tuple[str, str, str]] = set()
    again: dict[tuple[str, str], Share] = {}
    for seen in several:
        for node in seen.counters.nodes:
            share, place = sent_again(seen.counters, node.node), (seen.partition, node.node)
            again[place] = again[place] + share if place in again else share
            for source in node.of_kind(INTERFACE):
                key = (*place, source.name)
                sums = counted.setdefault(key, dict.fromkeys(_COUNTERS, 0))
                for name in _COUNTERS:
                    value = seen.counters.of_source(source, name)
                    sums[name] = _sum(sums[name], value)
                if source.name in seen.rails:
                    rails.add(key)
    return tuple(
        InterfaceTotals(*key, sums, key in rails, again[key[:2]])
        for key, sums in sorted(counted.items())
        if key in rails or (key[2] != LOOPBACK and any(value != 0 for value in sums.values()))
    )


def standing_out(several: Sequence[Seen]) -> tuple[Finding, ...]:
    """The nodes of which TCP loses more than of the partition's others, a finding each.

    What all nodes have in common is the switch's, or the machine's on which they are emulated. So
    a node's share of segments sent again, over the partition's undisturbed launches if there are
    any, is held against the median of the other nodes', by ``beyond`` and ``times``. It warns.
    """
    by_partition: dict[str, list[Seen]] = defaultdict(list)
    for seen in several:
        by_partition[seen.partition].append(seen)
    found = []
    for partition, launches in sorted(by_partition.items()):
        calm = [one for one in launches if one.calm] or launches
        bounds: RetransmissionSettings = launches[0].settings.retransmission
        nodes: dict[str, Share] = {}
        for one in calm:
            for node in one.counters.nodes:
                share = sent_again(one.counters, node.node)
                nodes[node.node] = nodes[node.node] + share if node.node in nodes else share
        known = {name: one for name, one in nodes.items() if one.of}
        for name, one in sorted(known.items()):
            others = [other.value for key, other in known.items() if key != name]
            if not others or one.count < bounds.least:
                continue
            usual = statistics.median(others)
            if one.value > bounds.times * usual and one.value - usual > bounds.beyond:
                interface = ", ".join(launches[0].rails)
                found.append(
                    finding_of(
                        "retransmissions",
                        Level.WARN,
                        f"{partition} {name} {interface}",
                        f"{one.count:,} of {one.of:,} segments sent again in this session"
                        f" ({100 * one.value:.2g} %), and {100 * usual:.2g} % by the other nodes:"
                        " look at this node's port, cable and card",
                        value=one.value - usual,
                        bound=bounds.beyond,
                        node=name,
                        interface=interface,
                    )
                )
    return tuple(found)
