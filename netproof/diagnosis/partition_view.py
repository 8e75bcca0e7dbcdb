"""View of a judged session on one partition, for the rules and the sources of evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netproof.criteria import Finding, Level
from netproof.criteria.counters import MORE, PATH
from netproof.diagnosis.evidence import Evidence, EvidenceSource, Place, PlaceKind, RedCase, Sign
from netproof.measurement.disturbance import NodeLoad
from netproof.measurement.landmark_table import LATENCY_BELOW
from netproof.session.measured import RankUse
from netproof.session.node_facts import Node
from netproof.site.hostlist import fold
from netproof.site.pair_settings import PairQuantity
from netproof.verdict.limits import size_of
from netproof.verdict.session_verdict import JudgedSession
from netproof.verdict.traffic import ALL_LOSE, LOSES, LOSES_TO, LOST_ONCE
from netproof.verdict.verdict import CaseVerdict

LEAST_LAUNCHES = 3
"""Fewest launches that distinguish a node's behaviour from a single event."""


class PartitionView:
    """The verdict on one partition: cases, rounds of pairs, findings, totals, nodes.

    ``measured``: cases with a curve; ``passed``: cases, each with its nodes; ``red``: failed cases;
    ``failed_jobs``: jobs that did not finish or crashed too often, a sentence each; ``losing``:
    share of retransmitted segments per node; ``loses_from``, ``loses_much_from``: shares that warn
    and fail; ``cleared``: nodes cleared by rounds of pairs, in the quantities ``cleared_by``;
    ``evidence``: as it is gathered.
    """

    def __init__(self, judged: JudgedSession, partition: str) -> None:
        verdict, made = judged.verdict, judged.provenance
        self.system, self.name = judged.matrix.cases[0].system, partition
        self.site = judged.matrix.partitions[partition]
        self.settings, self.pair_settings = self.site.settings(), self.site.pair_settings()
        self._not_over_tcp = judged.matrix.not_over_tcp
        self.interface = ", ".join(self.site.rails_or_interface())
        self.cases = [one for one in verdict.cases if one.case.partition == partition]
        self.ran = [one for one in self.cases if one.result is not None]
        self.measured = [one for one in self.ran if one.measured is not None]
        self.passed = {one.case: self._ran_on(one) for one in self.measured if one.passed}
        self.pairs = [one for one in verdict.pairs if one.rounds.partition == partition]
        self.findings = [one for one in verdict.nodes if one.partition == partition]
        self.coverage = [one for one in verdict.coverage if one.partition == partition]
        self.skipped = [one for one in verdict.skipped if one.case.partition == partition]
        self.totals = [one for one in verdict.traffic if one.partition == partition]
        self.rails = [one for one in self.totals if one.rail]
        self._standing_out = verdict.standing_out
        self.lossy = [*self._stands_out(LOSES), *self._stands_out(LOSES_TO)]
        self.lost_once = self._stands_out(LOST_ONCE)
        everywhere = (ALL_LOSE, f"pairs on {partition}")
        self.all_lose = [
            one for one in verdict.standing_out if (one.criterion, one.where) == everywhere
        ]
        self.described: list[Node] = [
            one.node for one in (made.nodes if made else ()) if one.partition == partition
        ]
        self.requeued = [
            one for one in (made.requeued if made else ()) if one.partition == partition
        ]
        names = {node for one in self.pairs for node in one.rounds.nodes}
        names |= {node for one in self.coverage for node in one.measured}
        self.nodes = tuple(sorted(names | {node.node for node in self.described}))
        self.failed_jobs = (
            *(str(one) for one in verdict.failed_tests if one.partition == partition),
            *(
                one.finding.why
                for one in verdict.launched
                if one.partition == partition and one.finding.level is Level.FAIL
            ),
        )
        self.red = tuple(self._red(one) for one in self.ran if one.failed)
        self.losing = {one.node: one.again.value for one in self.rails if one.again.of}
        bounds = self.settings.retransmission
        self.loses_from = bounds.warn if bounds.warn is not None else MORE
        self.loses_much_from = bounds.fail if bounds.fail is not None else self.loses_from
        self.cleared = sorted({node for one in self.pairs for node in one.cleared()})
        self.cleared_by = self.pair_settings.quantities
        self.evidence: list[Evidence] = []

    def _stands_out(self, criterion: str) -> list[Finding]:
        return [
            one
            for one in self._standing_out
            if one.criterion == criterion and one.where.startswith(f"{self.name} {one.node} ")
        ]

    def of(self, *signs: Sign) -> tuple[Evidence, ...]:
        """Return the evidence of these signs."""
        return tuple(one for one in self.evidence if one.sign in signs)

    def asked(self) -> frozenset[EvidenceSource]:
        """Return the sources that have any evidence."""
        there = {
            EvidenceSource.PAIRS: any(one.rounds.launches for one in self.pairs),
            EvidenceSource.COUNTERS: self.totals,
            EvidenceSource.PATH: self.paths(),
            EvidenceSource.HOST: self.described,
            EvidenceSource.LOAD: any(loads for loads, _ in self.launches()),
            EvidenceSource.CURVES: self.measured,
        }
        return frozenset(source for source, found in there.items() if found)

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
            yield from (found for found in one.findings if found.criterion == criterion)

    def paths(self) -> list[Finding]:
        """Return the findings on the path of messages, of cases and of rounds of pairs."""
        of_pairs = [one.path for one in self.pairs if one.path is not None]
        return [*self.findings_of(PATH), *of_pairs]

    def line_rate_mb_s(self, environment: str) -> float:
        """Return the line rate in MB/s of one link of a node for MPI of an environment."""
        return self.site.link(over_tcp=environment not in self._not_over_tcp).line_rate_mb_s()

    def launches(self) -> Iterator[tuple[Sequence[NodeLoad], Sequence[RankUse]]]:
        """Yield the nodes' loads and the ranks' CPU use per launch, rounds of pairs included."""
        several = [one.rounds for one in self.pairs] + [one.measured for one in self.measured]
        for one in several:
            for launch in one.launches:
                yield launch.loads, launch.ranks

    def _red(self, judged: CaseVerdict) -> RedCase:
        fails = [one.reason for one in judged.findings if one.level is Level.FAIL]
        measured = judged.measured is not None
        return RedCase(
            judged.case,
            self._ran_on(judged),
            measured,
            [*judged.faults, *fails][0],
            measured and judged.case.path == "inter-node",
            _quantity(judged),
        )

    def _ran_on(self, judged: CaseVerdict) -> tuple[str, ...]:
        """Return the nodes of a case; if unmeasured those of its job, () if unknown."""
        if judged.measured is not None:
            several = (node for launch in judged.measured.launches for node in launch.nodes())
            return tuple(dict.fromkeys(several))
        # If a job ended early, ReFrame reports the host of ReFrame itself.
        known = {*self.nodes, *(node for one in self.coverage for node in one.usable)}
        return tuple(node for node in judged.result.nodes if node in known)


def _quantity(judged: CaseVerdict) -> PairQuantity:
    """Return latency if a case failed at short messages alone, else rate.

    A message is short if the link carries more within the case's own latency.
    """
    if judged.measured is None or judged.faults:
        return PairQuantity.RATE
    latency_us, rate_mb_s = judged.measured.landmarks.latency_us, judged.measured.line_rate_mb_s
    short = LATENCY_BELOW
    if latency_us is not None and rate_mb_s is not None:
        short = max(short, latency_us * rate_mb_s)
    sizes: list[int | None] = []
    for finding in judged.findings:
        if finding.level is Level.FAIL:
            variable = finding.variable
            sizes += [size_of(variable)] if variable else finding.sizes() or [None]
    of_latency = all(size is not None and size < short for size in sizes)
    return PairQuantity.LATENCY if of_latency else PairQuantity.RATE


def count_of(count: int, one: str, several: str | None = None) -> str:
    """Return a count in words, such as ``2 cases``."""
    return f"1 {one}" if count == 1 else f"{count} {several or f'{one}s'}"
