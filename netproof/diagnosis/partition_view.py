"""View of a verdict on one partition, for the sources of evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netproof.criteria import Finding, Level
from netproof.criteria.paths import PATH
from netproof.diagnosis.evidence import Place, PlaceKind
from netproof.measurement.disturbance import NodeLoad
from netproof.session.node_facts import Node
from netproof.session.rank_use import RankUse
from netproof.site.hostlist import fold
from netproof.verdict.judging import JudgedSession
from netproof.verdict.traffic import ALL_LOSE, LOSES, LOST_ONCE, InterfaceTotals

LEAST_LAUNCHES = 3
"""Fewest launches that distinguish a node's behaviour from a single event."""


class PartitionView:
    """The verdict on one partition: cases, rounds of pairs, findings, totals, nodes."""

    def __init__(self, judged: JudgedSession, partition: str) -> None:
        verdict = judged.verdict
        self.name = partition
        self.site = judged.matrix.partitions[partition]
        self._not_over_tcp = judged.matrix.not_over_tcp
        self.rails = self.site.rails_or_interface()
        self.interface = ", ".join(self.rails)
        self.cases = [one for one in verdict.cases if one.case.partition == partition]
        self.ran = [one for one in self.cases if one.result is not None]
        self.pairs = [one for one in verdict.pairs if one.rounds.partition == partition]
        self.findings = [one for one in verdict.nodes if one.partition == partition]
        self.coverage = [one for one in verdict.coverage if one.partition == partition]
        self.left = [one for one in verdict.left if one.case.partition == partition]
        self.totals = [one for one in verdict.traffic if one.partition == partition]
        standing_out = [
            one for one in verdict.standing_out if one.where.startswith(f"{partition} {one.node} ")
        ]
        self.lossy = [one for one in standing_out if one.criterion == LOSES]
        self.all_lose = [
            one
            for one in verdict.standing_out
            if (one.criterion, one.where) == (ALL_LOSE, f"pairs on {partition}")
        ]
        self.lost_once = [one for one in standing_out if one.criterion == LOST_ONCE]
        self.crashing = [
            one.finding.why
            for one in verdict.launched
            if one.partition == partition and one.finding.level is Level.FAIL
        ]
        self.tests = [one for one in verdict.failed_tests if one.partition == partition]
        made = judged.provenance
        self.described: list[Node] = (
            [] if made is None else [one.node for one in made.nodes if one.partition == partition]
        )
        self.requeued = [
            one for one in (() if made is None else made.requeued) if one.partition == partition
        ]
        self.nodes = self._named()

    def _named(self) -> tuple[str, ...]:
        named = [node for one in self.pairs for node in one.rounds.nodes]
        named += [node for one in self.coverage for node in one.measured]
        named += [node.node for node in self.described]
        return tuple(sorted(set(named)))

    def loses_from(self) -> float:
        """Return the share of retransmitted segments from which a node counts as losing."""
        settings = self.site.settings().retransmission
        return settings.warn if settings.warn is not None else settings.beyond

    def node(self, name: str, *, interface: bool = True) -> Place:
        """Return a node as a place, with or without its interface."""
        return Place(PlaceKind.NODE, name, (name,), self.interface if interface else "")

    def several(self, nodes: Sequence[str]) -> Place:
        """Return nodes as a place: a node, a pair, a group, or all of the partition."""
        if len(nodes) == 1:
            return self.node(nodes[0])
        if len(nodes) > 2 and {*nodes} >= {*self.nodes}:
            return Place(PlaceKind.WHOLE, f"all nodes of {self.name}", tuple(nodes), self.interface)
        kind = PlaceKind.PAIR if len(nodes) == 2 else PlaceKind.GROUP
        return Place(kind, fold(nodes), tuple(nodes), self.interface)

    def findings_of(self, criterion: str) -> Iterator[Finding]:
        """Yield the findings of a criterion on all cases."""
        for one in self.ran:
            for ruling in one.rulings:
                if ruling.finding.criterion == criterion:
                    yield ruling.finding

    def paths(self) -> list[Finding]:
        """Return the findings on the path of messages, of cases and of rounds of pairs."""
        of_pairs = [one.path for one in self.pairs if one.path is not None]
        return [*self.findings_of(PATH), *of_pairs]

    def line_rate_mb_s(self, environment: str) -> float:
        """Return the line rate in MB/s of one link of a node for MPI of an environment."""
        return self.site.link(over_tcp=environment not in self._not_over_tcp).line_rate_mb_s()

    def rail_totals(self) -> list[InterfaceTotals]:
        """Return the session's totals of the interfaces that should carry messages."""
        return [one for one in self.totals if one.rail]

    def launches(self) -> Iterator[tuple[Sequence[NodeLoad], Sequence[RankUse]]]:
        """Yield the nodes' loads and the ranks' CPU use per launch, rounds of pairs included."""
        for pairs in self.pairs:
            for launch in pairs.rounds.launches:
                yield launch.loads, launch.ranks
        for one in self.ran:
            for launch in one.measured.launches if one.measured is not None else ():
                yield launch.loads, launch.ranks


def count_of(count: int, one: str, several: str | None = None) -> str:
    """Return a count in words, such as ``2 cases``."""
    return f"1 {one}" if count == 1 else f"{count} {several or f'{one}s'}"
