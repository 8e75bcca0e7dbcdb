"""Each node's interface counters, and the MPI libraries' transports, in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from netproof.present.document import EVERY, Block, Cell, DataTable, Sentences
from netproof.session import transport
from netproof.session.session import CheckResult
from netproof.verdict.traffic import InterfaceTotals

NOT_KNOWN = "not known"

MOST_NODES = 32
"""Nodes up to which all interfaces are shown; beyond, only those with faults in their counters."""


def blocks(traffic: Sequence[InterfaceTotals], results: Sequence[CheckResult]) -> Iterator[Block]:
    """Yield a row for each interface that was counted, and what MPI libraries say of transports."""
    rows = list(traffic)
    if len({(one.partition, one.node) for one in rows}) > MOST_NODES:
        rows = [one for one in rows if one.amiss()]
    if traffic:
        yield Cell("what the nodes' interfaces counted", "heading")
    head = ["partition", "node", "interface", "sent MB", "received MB"]
    head += ["errors", "dropped", "carrier changes", "sent again"]
    cells = [
        (
            *(one.partition, one.node, f"{one.interface}{'' if one.rail else ' (other)'}"),
            *(megabytes(one.counted[name]) for name in ("tx_bytes", "rx_bytes")),
            *map(count, (one.errors(), one.drops(), one.carrier_changes())),
            sent_again(one) if one.rail else "",
        )
        for one in rows
    ]
    yield DataTable(head, cells, EVERY[3:])
    left = len(traffic) - len(rows)
    if left:
        yield Cell(f"{left} more interfaces without errors, drops and carrier changes", "faint")
    by_place: dict[str, list[transport.ReportedTransport]] = defaultdict(list)
    for result in results:
        if result.transport is not None:
            by_place[f"{result.partition} {result.environment}"].append(result.transport)
    for place, several in by_place.items():
        # The first of its jobs that reports it speaks for the others.
        one = next((one for one in several if one.said), several[0])
        lines = transport.telling(one.said) or (f"{NOT_KNOWN}: {one.absent}",)
        yield Sentences(lines, f"{place}: its MPI library on its transport", "faint")


def count(value: int | None) -> str:
    """Return a count, or that it is not known."""
    return NOT_KNOWN if value is None else f"{value:,}"


def megabytes(value: int | None) -> str:
    """Return bytes in 10⁶, or that they are not known."""
    return NOT_KNOWN if value is None else f"{value / 1e6:,.1f}"


def sent_again(totals: InterfaceTotals) -> str:
    """Return the retransmitted segments of the node, and their share."""
    again = totals.again
    if again.count is None:
        return NOT_KNOWN
    return f"{again.count:,} ({100 * again.value:.2g} %)"
