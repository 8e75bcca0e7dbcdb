"""Criterion 3: a message that took longer than a larger one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from netproof.criteria.findings import (
    AtSize,
    Bounds,
    Finding,
    Level,
    finding_at,
    greatest,
    rate_in_words,
    undefined,
)
from netproof.criteria.interface import AgainAtSizes, CaseCurves, Criterion
from netproof.criteria.points import Points, times_of
from netproof.measurement.curve import Curve

ROUNDING = 1e-9
"""Relative error of a quotient of two printed figures."""


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
    """Return the largest ratio of a message's time to a larger one's (criterion 3).

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
    """Return each size's time over the least of its own and all larger ones'."""
    found = []
    fastest = None
    for size, time in reversed(points.at.items()):
        if fastest is None or time <= points.at[fastest]:
            fastest = size
        found.append(AtSize(size, time / points.at[fastest], (fastest,)))
    return found[::-1]


def rounded_to_zero(curve: Curve, size: int, *, where: str) -> Finding:
    """Judge a size whose rate was printed as 0, where ``curve`` has the least possible time.

    It fails if a larger message took less, by whatever factor: where sizes double, rounding cannot
    do that, and the true time has no upper limit. Otherwise its time is not known.
    """
    assert curve.bandwidth_mb_s is not None
    place = curve.sizes.index(size)
    least = curve.time_us[place]
    reason = (
        f"at {size} bytes the rate, below {rate_in_words(curve.bandwidth_mb_s[place])}, was printed"
        f" as 0: a message took {least:.4g} µs or longer"
    )
    fastest = min(range(place, len(curve.sizes)), key=curve.time_us.__getitem__)
    factor = least / curve.time_us[fastest]
    if factor <= 1 + ROUNDING:
        return replace(undefined("inversion", where, f"{reason}; how long is not known"), size=size)
    return Finding(
        "inversion",
        Level.FAIL,
        where,
        f"{reason}, at least {factor:.3g} times the {curve.time_us[fastest]:.4g} µs of one of "
        f"{curve.sizes[fastest]} bytes; look for lost packets or a timer that small messages wait "
        "for",
        size=size,
        value=factor,
        bound=1.0,
        compared_sizes=(curve.sizes[fastest],),
    )


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
