"""CPU costs of cases on their nodes, as a table."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from netproof.present.tables import (
    DataTable,
    TableColumn,
    benchmark_name,
    case_columns,
    fitting,
    print_table,
)
from netproof.present.terminal import say
from netproof.present.wording import counted
from netproof.verdict.explain import CpuRow, CpuRows

LEGEND = (
    "of the node that it cost most, less starting and ending: cores: CPU seconds a second; user:"
    " share of these outside the kernel; irq: cores that the node's machine took for interrupts"
    " meanwhile, * where several of its nodes are one machine; asleep: share of the time in which"
    " a rank neither ran nor could have run, 0 % is polling or working without a pause; s/GB and"
    " µs/msg: CPU time for 10⁹ bytes and for a message that the node sent or received; of TCP: s/GB"
    " over that of TCP between the same ranks"
)

LEAST_SECONDS = 0.2
"""Seconds of a case's launches below which figures a second are not shown."""

_RANKS = {"user": 2, "irq": 2, "µs/msg": 1}
"""Columns that are dropped first where not all fit, the highest rank first."""


def figures(row: CpuRow) -> dict[str, str]:
    """Return the figures of a row, by the heading of their column."""
    cost, irq, user = row.cost, None, None
    if cost.interrupts_s is not None and (cost.seconds or 0) >= LEAST_SECONDS:
        irq = cost.interrupts_s / cost.seconds
    if cost.user_s is not None and cost.system_s is not None:
        user = cost.user_s / ((cost.user_s + cost.system_s) or 1)

    def shown(value: float | None, form: str, unit: str = "") -> str:
        return "-" if value is None else f"{value:{form}}{unit}"

    # Of a shorter time, CPU seconds in ticks of 10 ms make cores that the node does not have.
    short = cost.seconds is not None and cost.seconds < LEAST_SECONDS
    return {
        "cores": shown(None if short else cost.cores, ".2f"),
        "user": shown(user, ".0%"),
        "irq": shown(irq, ".2f", "*" if cost.sharing > 1 else ""),
        "asleep": shown(cost.asleep_share, ".0%"),
        "s/GB": shown(cost.s_per_gb, ".3g"),
        "µs/msg": shown(cost.us_per_message, ".3g"),
        "of TCP": shown(row.of_tcp, ".2f", " times"),
    }


def _unknown(rows: CpuRows) -> list[str]:
    """Return why costs are not known, a sentence each."""
    return [f"not known of {counted(count, 'case')}: {why}" for why, count in rows.unknown.items()]


def view(costs: CpuRows) -> dict[str, Any]:
    """Return what a page shows: a row for each case whose cost is known, and why others have none.

    At least one is known.
    """
    head = ("case", "partition", "environment", "ranks", "node", *figures(costs.rows[0]))
    rows = [
        (
            *(benchmark_name(row.case), row.case.partition, row.case.environment),
            *(str(row.case.ranks), row.cost.node, *figures(row).values()),
        )
        for row in costs.rows
    ]
    legend = f"{LEGEND[0].upper()}{LEGEND[1:]}."
    return {"legend": legend, "table": DataTable(head, rows), "unknown": _unknown(costs)}


def print_cpu(rows: CpuRows, out: Console) -> None:
    """Print a row for each case whose cost is known, if any."""
    if not rows.rows:
        return
    out.print()
    say(out, "what it costs the CPU", "bold")
    values = list(map(figures, rows.rows))
    columns = case_columns(row.case for row in rows.rows)
    columns += [
        TableColumn(name, [one[name] for one in values], _RANKS.get(name, 0)) for name in values[0]
    ]
    print_table(fitting(columns, out.width), out)
    for sentence in _unknown(rows):
        say(out, sentence)
    say(out, LEGEND, "dim")
