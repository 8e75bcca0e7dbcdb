"""Criterion 11: CPU seconds for a second of benchmark."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from netproof.criteria.findings import Bounds, Finding, bound_in_words, undefined
from netproof.criteria.interface import CaseCurves, Criterion
from netproof.criteria.points import READABLE
from netproof.errors import NetproofError


@dataclass(frozen=True)
class CpuCostSettings(Bounds):
    """``warn`` and ``fail`` at this many CPU seconds a second; by default nothing is asserted."""


def cpu_cost(
    cpu_seconds: Mapping[str, float],
    benchmark_seconds: float,
    *,
    where: str,
    settings: CpuCostSettings = CpuCostSettings(),
    notes: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Finding, ...]:
    """Return the CPU seconds per second of benchmark, a finding for each node (criterion 11).

    ``cpu_seconds``: used by the job on each node; ``benchmark_seconds``: how long the benchmark
    ran; ``notes``: what else is known of a node, by its name. 1 is one core all the time, as one
    busy-polling rank shows. After the network-adapter page. Raises NetproofError for seconds that
    are negative or no number.
    """
    for label, seconds in [*cpu_seconds.items(), (where, benchmark_seconds)]:
        if not math.isfinite(seconds) or seconds < 0:
            raise NetproofError(f"{label}: {seconds} s is no time used")
    if not cpu_seconds:
        return (undefined("CPU cost", where, "the job's resource use names no node"),)
    if benchmark_seconds < READABLE[0]:
        return (undefined("CPU cost", where, "the benchmark ran for 0 s"),)
    findings = []
    for node, seconds in cpu_seconds.items():
        value = seconds / benchmark_seconds
        level, bound = settings.level(value)
        more = f"; {notes[node]}" if notes.get(node) else ""
        findings.append(
            Finding(
                "CPU cost",
                level,
                where,
                f"node {node} spent {seconds:.3g} CPU s in {benchmark_seconds:.3g} s of "
                f"benchmark, {value:.0%} of a core{bound_in_words(level, bound)}{more}",
                value=value,
                bound=bound,
            )
        )
    return tuple(findings)


def _judge(case: CaseCurves, settings: Any) -> tuple[Finding, ...]:
    if case.cpu_seconds is None:
        return ()
    return cpu_cost(
        case.cpu_seconds,
        case.seconds,
        where=case.where,
        settings=settings.cpu_cost,
        notes=case.cpu_notes,
    )


CRITERION = Criterion(
    11, {"cpu_cost": CpuCostSettings()}, {"CPU cost": "cpu_cost"}, _judge, of_launches=True
)
