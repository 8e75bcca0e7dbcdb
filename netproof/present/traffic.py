"""Each node's interface counters, and the MPI libraries' transports, in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from rich.console import Console

from netproof.present.tables import EVERY, DataTable, print_table
from netproof.present.terminal import say
from netproof.session import transport
from netproof.session.session import CheckResult
from netproof.verdict.traffic import InterfaceTotals

NOT_KNOWN = "not known"

MOST_NODES = 32
"""Nodes up to which all interfaces are shown; beyond, only those with faults in their counters."""


def print_traffic(traffic: Sequence[InterfaceTotals], out: Console) -> None:
    """Print a row for each interface, if any was counted."""
    rows = list(traffic)
    left = 0
    if len({(one.partition, one.node) for one in rows}) > MOST_NODES:
        rows = [one for one in rows if one.amiss()]
        left = len(traffic) - len(rows)
    if not traffic:
        return
    out.print()
    say(out, "what the nodes' interfaces counted", "bold")
    if rows:
        head = ("partition", "node", "interface", "sent MB", "received MB")
        head += ("errors", "dropped", "carrier changes", "sent again")
        cells = [
            (
                *(one.partition, one.node, f"{one.interface}{'' if one.rail else ' (other)'}"),
                *(megabytes(one.counted[name]) for name in ("tx_bytes", "rx_bytes")),
                *map(count, (one.errors(), one.drops(), one.carrier_changes())),
                sent_again(one) if one.rail else "",
            )
            for one in rows
        ]
        print_table(DataTable(head, cells, EVERY[3:]).columns(), out)
    if left:
        say(out, f"{left} more interfaces without errors, drops and carrier changes", "dim")


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


def print_transports(results: Sequence[CheckResult], out: Console) -> None:
    """Print what each configuration's MPI library says of its transport, or why it is not known.

    The first of its jobs that reports it speaks for the others.
    """
    by_place: dict[str, list[transport.ReportedTransport]] = defaultdict(list)
    for result in results:
        if result.transport is not None:
            by_place[f"{result.partition} {result.environment}"].append(result.transport)
    for place, several in by_place.items():
        one = next((one for one in several if one.said), several[0])
        out.print()
        say(out, f"{place}: its MPI library on its transport", "bold")
        for line in transport.telling(one.said) or (f"{NOT_KNOWN}: {one.absent}",):
            say(out, line, "dim")
