"""The part of a report on nodes: maps of their pairs, and the state of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from netproof.localization.accused import State
from netproof.present.html.curves import FigureView
from netproof.present.html.html import DataTable, script_json, text_table
from netproof.present.html.material import Report
from netproof.present.html.pair_map import PairMap
from netproof.present.traffic import NOT_KNOWN
from netproof.present.wording import counted
from netproof.verdict.nodes import NodeFinding
from netproof.verdict.traffic import InterfaceTotals
from netproof.verdict.verdict import Verdict

MOST_NODES = 64
"""Nodes of a partition up to which all are in its table; beyond, only those with remarks."""

NONE = "–"
_HEAD = ("node", "rounds of pairs", "effect", "what differs", "interfaces", "sent again")


@dataclass(frozen=True)
class NodesOfPartition:
    """A partition's maps and its table; ``left``: on nodes that are not in it, or empty."""

    partition: str
    maps: tuple[FigureView, ...]
    nodes: DataTable | None
    left: str


def view(report: Report) -> tuple[NodesOfPartition, ...]:
    """Return the partitions with known nodes, in the site's order."""
    verdict = report.judged.verdict
    found = []
    for partition in report.judged.matrix.partitions:
        maps = tuple(_figure(report, one) for one in report.maps.get(partition, ()) if one.rows)
        nodes, left = _table(verdict, partition)
        if maps or nodes is not None:
            found.append(NodesOfPartition(partition, maps, nodes, left))
    return tuple(found)


def _figure(report: Report, one: PairMap) -> FigureView:
    return FigureView(
        title=one.title,
        specification=script_json(one.for_page(report.looks)),
        sentences=one.sentences,
        missing=(),
        files={suffix.upper(): f"charts/{one.name}.{suffix}" for suffix in report.files},
        data=one.table(),
    )


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
            effects[node] += [str(effect) for effect in state.effects]
            amiss |= {node} if state.state is not State.CLEARED else set()
    findings: dict[str, list[NodeFinding]] = defaultdict(list)
    for finding in verdict.nodes:
        for node in finding.nodes if finding.partition == partition else ():
            findings[node].append(finding)
    traffic: dict[str, list[InterfaceTotals]] = defaultdict(list)
    for totals in verdict.traffic:
        if totals.partition == partition:
            traffic[totals.node].append(totals)
    covered = [one for one in verdict.coverage if one.partition == partition]
    for one in covered:
        for word in ("unmeasured", "down", "drained"):
            for node in getattr(one, word):
                states[node].append("not measured" if word == "unmeasured" else word)
                amiss.add(node)
    names = list(dict.fromkeys([*states, *sorted({*findings, *traffic})]))
    if not names:
        return None, ""
    amiss |= {*findings} | {node for node, several in traffic.items() if _amiss(several)}
    shown = names if len(names) <= MOST_NODES else [node for node in names if node in amiss]
    rows = [
        (
            node,
            "\n".join(states[node]) or NONE,
            "\n".join(effects[node]) or NONE,
            "\n".join(map(_differs, findings[node])) or NONE,
            "\n".join(map(_counted, traffic[node])) or NONE,
            _again(traffic[node]),
        )
        for node in shown
    ]
    more = len(names) - len(shown)
    left = f"{counted(more, 'more node')} without findings" if more else ""
    return text_table(_HEAD, rows), left


def _amiss(several: Sequence[InterfaceTotals]) -> bool:
    return any(one.amiss() for one in several if one.rail)


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


def _again(several: Sequence[InterfaceTotals]) -> str:
    again = next((one.again for one in several if one.rail), None)
    if again is None:
        return NONE
    if again.count is None:
        return NOT_KNOWN
    return f"{again.count:,} ({100 * again.value:.2g} %)"
