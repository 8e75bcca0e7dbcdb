"""CPU costs of cases on their nodes, as a table."""

from __future__ import annotations

from collections.abc import Iterator

from netproof.present.document import Block, Cell, DataTable, Sentences
from netproof.present.tables import CASE, case_cells
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

_RANKS = {"node": 3, "user": 2, "irq": 2, "µs/msg": 1}
"""Columns that are dropped first where not all fit, the highest rank first."""


def figures(row: CpuRow) -> dict[str, str]:
    """Return the figures of a row, by the heading of their column."""
    cost, irq, user = row.cost, None, None
    if cost.interrupts_s is not None and cost.seconds and cost.seconds >= LEAST_SECONDS:
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


def blocks(costs: CpuRows) -> Iterator[Block]:
    """Yield a row for each case whose cost is known, and why others have none; nothing without."""
    rows, unknown = costs
    if not rows:
        return
    head = (*CASE, "node", *figures(rows[0]))
    cells = [(*case_cells(one.case), one.cost.node, *figures(one).values()) for one in rows]
    yield Cell("what it costs the CPU", "heading")
    yield DataTable(head, cells, (3, *range(5, len(head))), ranks=_RANKS)
    others = [f"not known of {counted(count, 'case')}: {why}" for why, count in unknown.items()]
    yield Sentences([*others, f"{LEGEND[0].upper()}{LEGEND[1:]}."])
