"""Evidence from interface and TCP counters: carriers, damage, losses, and other networks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from netproof.criteria import Finding, Level
from netproof.criteria.counters import DAMAGE
from netproof.criteria.paths import PATH
from netproof.diagnosis.evidence import Evidence, EvidenceSource, Place, PlaceKind, Sign, Sure
from netproof.diagnosis.partition_view import PartitionView, count_of


def of_counters(view: PartitionView) -> Iterator[Evidence]:
    """Yield carrier changes, damaged packets, and nodes that lose more than the others."""
    for one in view.rail_totals():
        changes = one.carrier_changes()
        if changes:
            times = "once" if changes == 1 else f"{changes} times"
            yield Evidence(
                EvidenceSource.COUNTERS,
                Sign.CARRIER_CHANGED,
                Place(PlaceKind.NODE, one.node, (one.node,), one.interface),
                f"the carrier of {one.node} {one.interface} came or went {times} while its"
                " jobs ran",
                Sure.SEEN,
                "the kernel counted it",
            )
    for finding in _flagged(view, *DAMAGE):
        yield Evidence(
            EvidenceSource.COUNTERS,
            Sign.DAMAGED,
            Place(PlaceKind.NODE, finding.node, (finding.node,), finding.interface or ""),
            finding.reason,
            Sure.SEEN,
            "the interface counted it",
        )
    yield from _of_losses(view)


def _of_losses(view: PartitionView) -> Iterator[Evidence]:
    """Yield nodes whose ports lose more than others, together where either may be at fault.

    If all nodes lose, yield them together.
    """
    for finding in view.all_lose:
        yield Evidence(
            EvidenceSource.COUNTERS,
            Sign.LOSS,
            view.several(view.nodes),
            finding.reason,
            Sure.SEEN,
            "the kernel of every node counted it",
        )
    reported: set[tuple[str, ...]] = set()
    for finding in view.lossy:
        names = tuple(sorted({finding.node, *(finding.against or "").split()}))
        if names in reported:
            continue
        reported.add(names)
        yield Evidence(
            EvidenceSource.COUNTERS,
            Sign.LOSS,
            view.several(names),
            f"{finding.node}: {finding.reason.partition(': look at')[0]}",
            Sure.LIKELY,
            "TCP counts at the sender what was lost on the way, and this port explains it best",
            alternatives=tuple(f"the port of {name}" for name in names) if names[1:] else (),
        )


def _flagged(view: PartitionView, *criteria: str) -> list[Finding]:
    """Return the failures of these criteria that name a node, one per criterion and node."""
    found: dict[tuple[str, str | None], Finding] = {}
    for name in criteria:
        for finding in view.findings_of(name):
            if finding.level is Level.FAIL and finding.node is not None:
                found.setdefault((name, finding.node), finding)
    return list(found.values())


def of_paths(view: PartitionView) -> Iterator[Evidence]:
    """Yield environments whose messages took another network, grouped by interface."""
    went: dict[str, dict[str, list[Finding]]] = defaultdict(lambda: defaultdict(list))
    for one in view.ran:
        for ruling in one.rulings:
            finding = ruling.finding
            if finding.criterion == PATH and ruling.level is Level.FAIL:
                went[finding.interface or ""][one.case.environment].append(finding)
    rounds = {one.rounds.environment: one.path for one in view.pairs if one.path is not None}
    for environment, finding in rounds.items():
        if finding.level is Level.FAIL:
            went[finding.interface or ""][environment].append(finding)
    for interface, environments in went.items():
        names = sorted(environments)
        several = [finding for name in names for finding in environments[name]]
        over = interface or "no interface that is known"
        cases = sum(finding not in rounds.values() for finding in several)
        parts = [count_of(cases, "case")] if cases else []
        parts += ["rounds of pairs"] if cases < len(several) else []
        worst = min(several, key=lambda one: one.value if one.value is not None else 1.0)
        yield Evidence(
            EvidenceSource.PATH,
            Sign.OTHER_PATH,
            Place(PlaceKind.ENVIRONMENT, ", ".join(names), (), interface, tuple(names)),
            f"in {' and '.join(parts)} of {', '.join(names)} messages went over"
            f" {over} and not over {view.interface}: {worst.reason}",
            Sure.SEEN,
            "the interfaces counted the bytes",
            names[0] if len(names) == 1 else "",
        )
