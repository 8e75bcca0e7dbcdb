"""CPU costs of cases on their nodes, as a table."""

from __future__ import annotations

from rich.console import Console

from netproof.present.tables import TableColumn, benchmark_name, fitting, print_table, say
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

NONE = "-"


def figures(row: CpuRow) -> dict[str, str]:
    """Return the figures of a row, by the heading of their column."""
    cost = row.cost
    irq = None
    if cost.interrupts_s is not None and cost.seconds:
        irq = f"{cost.interrupts_s / cost.seconds:.2f}{'*' if cost.sharing > 1 else ''}"
    user = None
    if cost.user_s is not None and cost.system_s is not None:
        user = cost.user_s / ((cost.user_s + cost.system_s) or 1)
    return {
        "cores": _in(".2f", cost.cores),
        "user": _in(".0%", user),
        "irq": irq or NONE,
        "asleep": _in(".0%", cost.asleep_share),
        "s/GB": _in(".3g", cost.s_per_gb),
        "µs/msg": _in(".3g", cost.us_per_message),
        "of TCP": NONE if row.of_tcp is None else f"{row.of_tcp:.2f} times",
    }


def _in(form: str, value: float | None) -> str:
    return NONE if value is None else format(value, form)


def unknown_in_words(rows: CpuRows) -> list[str]:
    """Return why costs are not known, a sentence each."""
    return [f"not known of {counted(count, 'case')}: {why}" for why, count in rows.unknown.items()]


_RANKS = {"user": 2, "irq": 2, "µs/msg": 1}
"""Columns that are dropped first where not all fit, the highest rank first."""


def print_cpu(rows: CpuRows, out: Console) -> None:
    """Print a row for each case whose cost is known, if any."""
    if not rows.rows:
        return
    out.print()
    say(out, "what it costs the CPU", "bold")
    cases = [row.case for row in rows.rows]
    values = list(map(figures, rows.rows))
    columns = [
        TableColumn("partition", [case.partition for case in cases], right=False),
        TableColumn("environment", [case.environment for case in cases], right=False),
        TableColumn("benchmark", list(map(benchmark_name, cases)), right=False),
        TableColumn("ranks", [str(case.ranks) for case in cases]),
        *(
            TableColumn(name, [one[name] for one in values], rank=_RANKS.get(name, 0))
            for name in values[0]
        ),
    ]
    print_table(fitting(columns, out.width), out)
    for sentence in unknown_in_words(rows):
        say(out, sentence)
    say(out, LEGEND, "dim")
