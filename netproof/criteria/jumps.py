"""Criterion 4: a step in which time grew faster than the size."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from netproof.criteria.findings import AtSize, Bounds, Finding, finding_at, greatest, undefined
from netproof.criteria.interface import AgainAtSizes, CaseCurves, Criterion
from netproof.criteria.points import Points, times_of
from netproof.measurement.curve import Curve


@dataclass(frozen=True)
class JumpSettings(Bounds):
    """``warn`` and ``fail`` at time growing this many times faster than the size.

    On the same 254 curves the median is 1.2, the 95th percentile 2.3, the 99th 6.1.
    """

    warn: float | None = 4.0
    fail: float | None = 10.0


def jump(curve: Curve, *, where: str, settings: JumpSettings = JumpSettings()) -> Finding:
    """Return the most that time grew faster than the size in one step (criterion 4).

    max over neighbouring sizes of (t₂/t₁) / (s₂/s₁), a pure number, at least 1. ``size`` is
    the larger one of the step, ``compared_sizes`` the smaller.
    """
    points = times_of(curve, settings, at_least=2)
    if points.fault is not None:
        return undefined("jump", where, points.fault)
    worst = greatest(jump_at_sizes(points))
    level, bound = settings.level(worst.value)
    before = worst.compared[0]
    return finding_at(
        "jump",
        level,
        bound,
        where,
        worst,
        f"from {before} to {worst.size} bytes time went from {points.at[before]:.4g} to "
        f"{points.at[worst.size]:.4g} µs, {worst.value:.3g} times what the size explains",
        f"look for congestion or a change of protocol at {worst.size} bytes",
    )


def jump_at_sizes(points: Points) -> list[AtSize]:
    """Return, at each size but the first, how much faster time grew than the size; 1 at least."""
    steps = list(points.at.items())
    return [
        AtSize(size, max(1.0, time / time_before / (size / before)), (before,))
        for (before, time_before), (size, time) in pairwise(steps)
    ]


def _judge(case: CaseCurves, settings: Any) -> tuple[Finding, ...]:
    if case.curve.sizes == (0,):
        return ()
    return (jump(case.first, where=case.where, settings=settings.jump),)


CRITERION = Criterion(
    4,
    {"jump": JumpSettings()},
    {"jump": "jump"},
    _judge,
    again=AgainAtSizes(
        times_of, jump_at_sizes, "time grew {} times more than the size from the one before"
    ),
)
