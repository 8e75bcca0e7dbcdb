"""What nodes say of themselves, as evidence, and on which of them launches die."""

from __future__ import annotations

from collections.abc import Iterator

from netproof.criteria import Level
from netproof.diagnosis.evidence import Evidence, EvidenceSource, Place, PlaceKind, Sign, Sure
from netproof.diagnosis.partition_view import LEAST_LAUNCHES, PartitionView, count_of
from netproof.session.measured import Crash
from netproof.verdict.node_findings import NodeFinding, NodeFindingKind
from netproof.verdict.nodes import UP

LINK_FACTS = ("link_mbit_s", "duplex")
"""Facts of a node that say how fast its link is."""


def of_nodes(view: PartitionView) -> Iterator[Evidence]:
    """What nodes say of themselves."""
    for one in view.findings:
        sign = _sign_of(one)
        if sign is None:
            continue
        place = view.several(one.nodes)
        if one.kind in (NodeFindingKind.PATH, NodeFindingKind.TCP) and len(one.nodes) == 2:
            place = Place(PlaceKind.PAIR, " to ".join(one.nodes), one.nodes, view.interface)
        if sign is Sign.SETTING:
            on = f"{one.fact} on {place.name}"
            place = Place(PlaceKind.SETTING, on, one.nodes)
        yield Evidence(
            EvidenceSource.HOST,
            sign,
            place,
            one.why,
            Sure.SEEN,
            "the nodes say so themselves",
            one.environment,
            asserted=one.level is Level.FAIL,
            setting=one.value or "" if sign is Sign.NO_TCP else one.fact,
        )


def of_requeues(view: PartitionView) -> Iterator[Evidence]:
    """The nodes that Slurm lost under a job, which it then requeued."""
    for one in view.requeued:
        for node in one.died:
            yield Evidence(
                EvidenceSource.HOST,
                Sign.DIED,
                view.node(node.name, interface=False),
                str(one),
                Sure.SEEN,
                "Slurm says so",
            )


def of_crashes(view: PartitionView) -> Iterator[Evidence]:
    """A node on which ranks die first, where no other has any."""
    crashes: list[Crash] = [crash for one in view.pairs for crash in one.rounds.crashes]
    for one in view.ran:
        crashes += one.measured.crashes if one.measured is not None else ()
    named = [crash for crash in crashes if crash.nodes]
    on = {node for crash in named for node in crash.nodes}
    if len(on) == 1 and len(named) >= LEAST_LAUNCHES and len(view.nodes) > 1:
        (node,) = on
        yield Evidence(
            EvidenceSource.CURVES,
            Sign.CRASHES,
            view.node(node, interface=False),
            f"{count_of(len(named), 'launch', 'launches')} died, and each on {node}",
            Sure.LIKELY,
            "no launch died on another node",
        )


def _sign_of(finding: NodeFinding) -> Sign | None:
    """What a finding on nodes is a sign of; None where it only says what is not known."""
    if finding.fact == "state":
        changed = finding.kind is NodeFindingKind.CHANGED
        return Sign.CARRIER_CHANGED if changed and finding.value == UP else Sign.NO_CARRIER
    if finding.kind is NodeFindingKind.NOT_KNOWN:
        return None
    if finding.fact in ("mtu", "path"):
        return Sign.MTU
    if finding.fact == "tcp":
        return Sign.NO_TCP
    return Sign.LINK if finding.fact in LINK_FACTS else Sign.SETTING
