"""Criterion 3: a message that took longer than a larger one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from netproof.criteria.findings import AtSize, Bounds, Finding, finding_at, greatest, undefined
from netproof.criteria.interface import AgainAtSizes, CaseCurves, Criterion
from netproof.criteria.points import Points, times_of
from netproof.measurement.curve import Curve


@dataclass(frozen=True)
class InversionSettings(Bounds):
    """``warn`` and ``fail`` at this multiple of a larger message's time.

    On 254 public curves of InfiniBand and RoCE clusters the median is 1.04, the 95th
    percentile 2.8, and all above 10 were one broken MPI transport.
    """

    warn: float | None = 2.0
    fail: float | None = 10.0


def inversion(
    curve: Curve, *, where: str, settings: InversionSettings = InversionSettings()
) -> Finding:
    """The most that a message took over a larger one (criterion 3).

    max over s of t(s) / min over s' ≥ s of t(s'), a pure number, 1 for a curve that never
    falls. ``size`` is that of the slow message, ``compared_sizes`` that of the faster one.
    """
    points = times_of(curve, settings, at_least=2)
    if points.fault is not None:
        return undefined("inversion", where, points.fault)
    worst = greatest(inversion_at_sizes(points))
    level, bound = settings.level(worst.value)
    faster = worst.compared[0]
    return finding_at(
        "inversion",
        level,
        bound,
        where,
        worst,
        f"a message of {worst.size} bytes took {points.at[worst.size]:.4g} µs, "
        f"{worst.value:.3g} times the {points.at[faster]:.4g} µs of one of {faster} bytes",
        f"look for lost packets or a full buffer between {worst.size} and {faster} bytes",
    )


def inversion_at_sizes(points: Points) -> list[AtSize]:
    """At each size, its time over the least of its own and all larger ones."""
    found = []
    fastest = None
    for size, time in reversed(points.at.items()):
        if fastest is None or time <= points.at[fastest]:
            fastest = size
        found.append(AtSize(size, time / points.at[fastest], (fastest,)))
    return found[::-1]


def _judge(case: CaseCurves, settings: Any) -> tuple[Finding, ...]:
    if case.curve.sizes == (0,):
        return ()
    return (inversion(case.first, where=case.where, settings=settings.inversion),)


CRITERION = Criterion(
    3,
    {"inversion": InversionSettings()},
    {"inversion": "inversion"},
    _judge,
    again=AgainAtSizes(
        times_of, inversion_at_sizes, "a message took {} times as long as a larger one"
    ),
)
