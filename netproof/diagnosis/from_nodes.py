"""Evidence from what nodes report, and the nodes on which launches die."""

from __future__ import annotations

from collections.abc import Iterator

from netproof.criteria import Level
from netproof.diagnosis.evidence import Evidence, EvidenceSource, Place, PlaceKind, Sign, Sure
from netproof.diagnosis.partition_view import LEAST_LAUNCHES, PartitionView, count_of
from netproof.session.measured import Crash
from netproof.verdict.nodes import UP, NodeFinding, NodeFindingKind

LINK_FACTS = ("link_mbit_s", "duplex")
"""Facts of a node about the speed of its link."""


def of_nodes(view: PartitionView) -> Iterator[Evidence]:
    """Yield the findings on facts that nodes reported."""
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
    """Yield the nodes that Slurm lost under a job, which it then requeued."""
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
    """Yield a node if it alone has ranks that die first."""
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
    """Return the sign of a finding on nodes; None if it only says that a fact is unknown."""
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
