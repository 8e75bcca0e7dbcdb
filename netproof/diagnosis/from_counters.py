"""What interfaces and TCP counted, as evidence: carriers, damage, losses, and other networks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from netproof.criteria import Finding, Level
from netproof.criteria.counted import Share, sent_again
from netproof.diagnosis.evidence import Evidence, Place, PlaceKind, Sign, Source, Sure
from netproof.diagnosis.partition_view import LEAST_NODES, STANDS_OUT, PartitionView, count_of


def of_counters(view: PartitionView) -> Iterator[Evidence]:
    """Carriers that came and went, damaged packets, nodes that lose more than the others."""
    for one in view.rail_totals():
        changes = one.carrier_changes()
        if changes:
            times = "once" if changes == 1 else f"{changes} times"
            yield Evidence(
                Source.COUNTERS,
                Sign.CARRIER_CHANGED,
                Place(PlaceKind.NODE, one.node, (one.node,), one.interface),
                f"the carrier of {one.node} {one.interface} came or went {times} while launches"
                " ran",
                Sure.SEEN,
                "the kernel counted it",
            )
    for finding in _flagged(view, "interface errors", "drops"):
        yield Evidence(
            Source.COUNTERS,
            Sign.DAMAGED,
            Place(PlaceKind.NODE, finding.node, (finding.node,), finding.interface or ""),
            finding.reason,
            Sure.SEEN,
            "the interface counted it",
        )
    yield from _of_losses(view)


def _of_losses(view: PartitionView) -> Iterator[Evidence]:
    """The node that loses more than the others, or the nodes that may be it.

    TCP counts at the sender what it lost on the way to the receiver, so both ends of a lossy
    port's messages lose. Only launches on three nodes or more tell whose port it is.
    """
    lossy = [one for one in view.lossy if view.persists(one.node)]
    counted = {one.node for one in view.rail_totals()}
    if not lossy or len(counted) < LEAST_NODES:
        return
    names = sorted({one.node for one in lossy})
    rails = [one.again.value for one in view.rail_totals() if one.again.of]
    common = min(rails) >= view.loses_from()
    why = "TCP counts it at the sender, and the other nodes send less again"
    if len(names) > 1 or common:
        shares = _shares_among_many(view)
        worst = max(names, key=lambda name: shares.get(name, 0.0))
        others = max((share for name, share in shares.items() if name != worst), default=0.0)
        if shares.get(worst, 0.0) >= STANDS_OUT * others > 0:
            names = [worst]
            why = "of launches on three nodes or more it sends the most again"
        elif common:
            # All lose, and nobody stands out where it can be told.
            return
    place = view.node(names[0]) if len(names) == 1 else view.several(names)
    alternatives = tuple(f"the port of {name}" for name in names) if len(names) > 1 else ()
    for finding in lossy:
        if finding.node in names:
            sentence = f"{finding.node}: {finding.reason.partition(': look at')[0]}"
            yield Evidence(
                Source.COUNTERS,
                Sign.LOSS,
                place,
                sentence,
                Sure.LIKELY,
                why,
                alternatives=alternatives,
            )


def _shares_among_many(view: PartitionView) -> dict[str, float]:
    """Of each node the share that it sent again in launches on three nodes or more."""
    found: dict[str, Share] = {}
    for counters in view.counters():
        if len(counters.nodes) < LEAST_NODES:
            continue
        for node in counters.nodes:
            share, name = sent_again(counters, node.node), node.node
            found[name] = found[name] + share if name in found else share
    return {name: share.value for name, share in found.items() if share.of}


def _flagged(view: PartitionView, *criteria: str) -> list[Finding]:
    """What failed by these criteria and names a node, one for each of both."""
    found: dict[tuple[str, str | None], Finding] = {}
    for name in criteria:
        for finding in view.findings_of(name):
            if finding.level is Level.FAIL and finding.node is not None:
                found.setdefault((name, finding.node), finding)
    return list(found.values())


def of_paths(view: PartitionView) -> Iterator[Evidence]:
    """Environments whose messages took another network, together by interface."""
    went: dict[str, dict[str, list[Finding]]] = defaultdict(lambda: defaultdict(list))
    for one in view.ran:
        for ruling in one.rulings:
            finding = ruling.finding
            if finding.criterion == "path" and ruling.level is Level.FAIL:
                went[finding.interface or ""][one.case.environment].append(finding)
    for interface, environments in went.items():
        names = sorted(environments)
        several = [finding for name in names for finding in environments[name]]
        over = interface or "no interface that is known"
        worst = min(several, key=lambda one: one.value if one.value is not None else 1.0)
        yield Evidence(
            Source.PATH,
            Sign.OTHER_PATH,
            Place(PlaceKind.ENVIRONMENT, ", ".join(names), (), interface, tuple(names)),
            f"in {count_of(len(several), 'case')} of {', '.join(names)} messages went over"
            f" {over} and not over {view.interface}: {worst.reason}",
            Sure.SEEN,
            "the interfaces counted the bytes",
            names[0] if len(names) == 1 else "",
        )
