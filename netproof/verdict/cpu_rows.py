"""What each case of a session cost the CPUs, alongside the same over TCP."""

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
    """A case, and what it cost the node that it cost most.

    ``of_tcp``: its CPU seconds a GB over those of the same case over TCP, None where it is not
    compared with TCP or either is not known.
    """

    case: Case
    cost: NodeCost
    of_tcp: float | None = None


@dataclass(frozen=True)
class CpuRows:
    """Those whose cost is known; ``unknown``: why that of others is not, to how many these are."""

    rows: tuple[CpuRow, ...]
    unknown: Mapping[str, int]


def cpu_rows(verdict: Verdict) -> CpuRows:
    """What the measured cases of a session cost, in its order."""
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
