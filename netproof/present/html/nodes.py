"""The part of a report on nodes: maps of their pairs, and the state of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from netproof.pairs.accusation import State
from netproof.present.document import Block, Cell, DataTable
from netproof.present.html.report import Report
from netproof.present.traffic import NOT_KNOWN, sent_again
from netproof.present.wording import counted
from netproof.verdict.nodes import NodeFinding
from netproof.verdict.traffic import InterfaceTotals
from netproof.verdict.verdict import Verdict

MOST_NODES = 64
"""Nodes of a partition up to which all are in its table; beyond, only those with remarks."""

NONE = "–"
_HEAD = ("node", "rounds of pairs", "effect", "what differs", "interfaces", "sent again")


def blocks(report: Report, only: str = "") -> Iterator[Block]:
    """Yield maps and table of each partition with known nodes, in the site's order.

    ``only``: the only partition, or empty for all.
    """
    for partition in [only] if only else report.judged.matrix.partitions:
        maps = report.maps.get(partition, [])
        table, left = _table(report.judged.verdict, partition)
        if maps or table is not None:
            yield Cell(partition, "heading")
            yield from [maps] if maps else []
            yield from [table] if table is not None else []
            yield from [left] if left else []


def _table(verdict: Verdict, partition: str) -> tuple[DataTable | None, str]:
    """Return the nodes with their states and findings; of many only those with findings."""
    states: dict[str, list[str]] = defaultdict(list)
    effects: dict[str, list[str]] = defaultdict(list)
    amiss: set[str] = set()
    for one in verdict.pairs:
        if one.rounds.partition != partition:
            continue
        for node, state in one.judgement.nodes.items():
            states[node].append(f"{one.rounds.environment}: {state.state}")
            effects[node] += map(str, state.effects)
            amiss |= {node} if state.state is not State.CLEARED else set()
    findings: dict[str, list[NodeFinding]] = defaultdict(list)
    for finding in verdict.nodes:
        for node in finding.nodes if finding.partition == partition else ():
            findings[node].append(finding)
    traffic: dict[str, list[InterfaceTotals]] = defaultdict(list)
    for totals in verdict.traffic:
        if totals.partition == partition:
            traffic[totals.node].append(totals)
    for covered in verdict.coverage:
        if covered.partition != partition:
            continue
        for word in ("unmeasured", "down", "drained"):
            for node in getattr(covered, word):
                states[node].append("not measured" if word == "unmeasured" else word)
                amiss.add(node)
    names = list(dict.fromkeys([*states, *sorted({*findings, *traffic})]))
    if not names:
        return None, ""
    amiss |= set(findings)
    amiss |= {
        node
        for node, several in traffic.items()
        if any(each.rail and each.amiss() for each in several)
    }
    shown = names if len(names) <= MOST_NODES else [node for node in names if node in amiss]
    rows = [
        (
            node,
            *(
                "\n".join(several) or NONE
                for several in (
                    states[node],
                    effects[node],
                    map(_differs, findings[node]),
                    map(_counted, traffic[node]),
                )
            ),
            next((sent_again(each) for each in traffic[node] if each.rail), NONE),
        )
        for node in shown
    ]
    more = len(names) - len(shown)
    left = f"{counted(more, 'more node')} without findings" if more else ""
    return DataTable(_HEAD, rows), left


def _differs(finding: NodeFinding) -> str:
    """Return the fact with the node's own value and that of the others."""
    if finding.value is None or finding.others is None:
        return finding.fact
    return f"{finding.fact}: {finding.value}, others {finding.others}"


def _counted(totals: InterfaceTotals) -> str:
    counts = {
        "errors": totals.errors(),
        "dropped": totals.drops(),
        "carrier changes": totals.carrier_changes(),
    }
    changed = ", ".join(
        f"{name} {NOT_KNOWN}" if count is None else f"{count:,} {name}"
        for name, count in counts.items()
        if count != 0
    )
    return f"{totals.interface}: {changed or 'nothing amiss'}"
