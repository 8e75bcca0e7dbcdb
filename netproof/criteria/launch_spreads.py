"""Criterion 13: how far the launches of one case lie apart at a size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from netproof.criteria.findings import (
    AtSize,
    Bounds,
    Finding,
    common_sizes,
    finding_at,
    greatest,
    undefined,
)
from netproof.criteria.interface import CaseCurves, Criterion
from netproof.criteria.points import times_of
from netproof.measurement.curve import Curve


@dataclass(frozen=True)
class LaunchSpreadSettings(Bounds):
    """``warn`` and ``fail`` from this ratio on.

    An order of magnitude warns, as it fails between configurations. Nothing fails by default: the
    ratio does not show which of the launches is the network.
    """

    warn: float | None = 10.0


def launch_spread(
    launches: Sequence[Curve],
    *,
    where: str,
    settings: LaunchSpreadSettings = LaunchSpreadSettings(),
) -> Finding:
    """Return the largest ratio, of all sizes, of the slowest launch to the fastest one.

    A pure number, 1 where all take the same. After the "erratic throughput" of the Myri-10G
    report. ``launches``: of one case, over the same sizes. Undefined for fewer than two.
    """
    if len(launches) < 2:
        return undefined("launch spread", where, "one launch has no spread")
    readings = [times_of(curve, settings) for curve in launches]
    for number, points in enumerate(readings, 1):
        if points.fault is not None:
            return undefined("launch spread", where, f"in launch {number}, {points.fault}")
    sizes = sorted(set.intersection(*(set(points.at) for points in readings)))
    if not sizes:
        return undefined("launch spread", where, "its launches have no size in common")
    at_sizes = []
    for size in sizes:
        times = [points.at[size] for points in readings]
        at_sizes.append(AtSize(size, max(times) / min(times)))
    worst = greatest(at_sizes)
    times = [points.at[worst.size] for points in readings]
    level, bound = settings.level(worst.value)
    found = finding_at(
        "launch spread",
        level,
        bound,
        where,
        worst,
        f"at {worst.size} bytes {len(launches)} launches took {min(times):.4g} to"
        f" {max(times):.4g} µs, {worst.value:.3g} times apart",
        "look at what else used the nodes and the network meanwhile, and where the ranks ran",
    )
    return replace(found, common=common_sizes(sizes))


def _judge(case: CaseCurves, settings: Any) -> tuple[Finding, ...]:
    if case.curve.sizes == (0,) or len(case.launches) < 2:
        return ()
    return (launch_spread(case.launches, where=case.where, settings=settings.launch_spread),)


CRITERION = Criterion(
    13,
    {"launch_spread": LaunchSpreadSettings()},
    {"launch spread": "launch_spread"},
    _judge,
    of_launches=True,
)
