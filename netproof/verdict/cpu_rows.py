"""CPU cost of each case of a session, compared with the same over TCP."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from netproof.benchmarks import registry
from netproof.measurement.case import Case
from netproof.measurement.cpu_use import NodeCost, costliest
from netproof.verdict.judged import Verdict


@dataclass(frozen=True)
class CpuRow:
    """CPU cost of a case on its costliest node.

    ``of_tcp``: its CPU seconds per GB over those of the same case over TCP, None where it is not
    compared with TCP or either is not known.
    """

    case: Case
    cost: NodeCost
    of_tcp: float | None = None


@dataclass(frozen=True)
class CpuRows:
    """Rows of known costs; ``unknown``: number of other cases by the reason."""

    rows: tuple[CpuRow, ...]
    unknown: Mapping[str, int]


def cpu_rows(verdict: Verdict) -> CpuRows:
    """Return the CPU costs of the measured cases of a session, in its order."""
    costs = {
        judged.case.key(): (judged.case, costliest(judged.measured.cpu_costs))
        for judged in verdict.cases
        if judged.measured is not None
    }
    rows: list[CpuRow] = []
    unknown: dict[str, int] = {}
    for case, cost in costs.values():
        if cost.cpu_s is None:
            why = cost.why("cpu_s")
            unknown[why] = unknown.get(why, 0) + 1
            continue
        over_tcp = registry.of(case).compared_over_tcp(case.function)
        of_tcp = None
        if over_tcp is not None:
            _, other = costs.get(dataclasses.replace(case, function=over_tcp).key(), (None, None))
            if other is not None and other.s_per_gb and cost.s_per_gb is not None:
                of_tcp = cost.s_per_gb / other.s_per_gb
        rows.append(CpuRow(case, cost, of_tcp))
    return CpuRows(tuple(rows), unknown)
