"""The part of a report on CPU costs of cases on their nodes."""

from __future__ import annotations

from dataclasses import dataclass

from netproof.present import cpu
from netproof.present.html.html import DataTable, text_table
from netproof.present.html.material import Report
from netproof.present.tables import benchmark_name
from netproof.verdict.explain import cpu_rows


@dataclass(frozen=True)
class CpuView:
    """The table with its legend; ``unknown``: why the cost of other cases is not known."""

    legend: str
    table: DataTable
    unknown: list[str]


def view(report: Report) -> CpuView | None:
    """Return the known costs; None without any."""
    found = cpu_rows(report.judged.verdict)
    if not found.rows:
        return None
    head = ("case", "partition", "environment", "ranks", "node", *cpu.figures(found.rows[0]))
    rows = [
        (
            benchmark_name(row.case),
            row.case.partition,
            row.case.environment,
            str(row.case.ranks),
            row.cost.node,
            *cpu.figures(row).values(),
        )
        for row in found.rows
    ]
    legend = f"{cpu.LEGEND[0].upper()}{cpu.LEGEND[1:]}."
    return CpuView(legend, text_table(head, rows), cpu.unknown_in_words(found))
