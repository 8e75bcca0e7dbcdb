"""Criterion 9: what MPI loses of TCP's bandwidth."""

from __future__ import annotations

import math
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
    rate_in_words,
    undefined,
)
from netproof.criteria.interface import CaseCurves, Criterion
from netproof.criteria.points import bandwidths_of
from netproof.errors import NetproofError
from netproof.measurement import interval as intervals
from netproof.measurement.curve import Curve


@dataclass(frozen=True)
class MpiLossSettings(Bounds):
    """``warn`` and ``fail`` at this loss.

    The e325 Opteron NetPIPE report has 12 % on a tuned GigE, 22 % on an untuned one, and 44 to
    51 % where MPI copies every message once more.
    """

    warn: float | None = 0.2
    fail: float | None = 0.5


AT_EVERY_SIZE = MpiLossSettings(warn=None, fail=None)
"""The loss at one size is shown, not asserted: at small sizes it is the latency of MPI."""


def loss(mpi_mb_s: float, tcp_mb_s: float) -> float:
    """1 - bw_MPI / bw_TCP: what MPI loses of the bandwidth of TCP; negative is a gain.

    Both in one unit. Raises NetproofError for a TCP bandwidth that is not positive and an MPI
    bandwidth that is negative. After the e325 Opteron NetPIPE report.
    """
    if not (math.isfinite(tcp_mb_s) and tcp_mb_s > 0 and math.isfinite(mpi_mb_s) and mpi_mb_s >= 0):
        raise NetproofError(
            f"no loss of MPI at {mpi_mb_s} over TCP at {tcp_mb_s}: bandwidths are above 0"
        )
    return 1 - mpi_mb_s / tcp_mb_s


def losses(
    mpi: Curve, tcp: Curve, settings: MpiLossSettings = AT_EVERY_SIZE
) -> tuple[tuple[int, float], ...]:
    """The loss of MPI over TCP at each size that both have, as (bytes, loss).

    Raises NetproofError where one of them has no bandwidth to compare.
    """
    sides = []
    for label, curve in (("MPI", mpi), ("TCP", tcp)):
        points = bandwidths_of(curve, settings)
        if points.fault is not None:
            raise NetproofError(f"no loss of MPI over TCP: of {label}, {points.fault}")
        sides.append(points.at)
    common = sorted(sides[0].keys() & sides[1].keys())
    return tuple((size, loss(sides[0][size], sides[1][size])) for size in common)


def mpi_loss(
    mpi: Curve,
    tcp: Curve,
    *,
    where: str,
    settings: MpiLossSettings = MpiLossSettings(),
    at_every_size: MpiLossSettings = AT_EVERY_SIZE,
    launches: tuple[Sequence[Curve], Sequence[Curve]] = ((), ()),
) -> tuple[Finding, Finding]:
    """What MPI loses of TCP's bandwidth, at the peaks and at the worst size (criterion 9).

    Both curves from the same two nodes in the same job, in the same direction. The first
    finding holds the loss between the peaks, which may lie at different sizes, against
    ``settings``; the second the largest loss at a common size against ``at_every_size``.
    ``launches``: those that the curves are medians of, for the interval of the first: a failure
    that only a part of it reaches is inconclusive.
    """
    try:
        at_sizes = losses(mpi, tcp, at_every_size)
    except NetproofError as error:
        return (
            undefined("MPI loss at the peak", where, str(error)),
            undefined("MPI loss at a size", where, str(error)),
        )
    (mpi_size, mpi_peak), (tcp_size, tcp_peak) = (
        max(bandwidths_of(curve, settings).at.items(), key=lambda point: (point[1], -point[0]))
        for curve in (mpi, tcp)
    )
    peaks = AtSize(mpi_size, loss(mpi_peak, tcp_peak), (tcp_size,))
    level, bound = settings.level(peaks.value)
    advice = "look at the library's TCP buffers and at copies that it makes"
    between = _loss_interval(*launches, settings)
    told = ""
    if between is not None:
        told = f" (95% interval {between[0]:.1%} to {between[1]:.1%})"
        level, bound = settings.level(peaks.value, between)
    at_the_peak = finding_at(
        "MPI loss at the peak",
        level,
        bound,
        where,
        peaks,
        f"MPI peaks at {rate_in_words(mpi_peak)} ({mpi_size} bytes), TCP at"
        f" {rate_in_words(tcp_peak)} ({tcp_size} bytes), a loss of {peaks.value:.1%}{told}",
        advice,
    )
    at_the_peak = replace(at_the_peak, interval=between)
    if not at_sizes:
        return at_the_peak, undefined(
            "MPI loss at a size", where, "MPI and TCP have no size in common"
        )
    worst = greatest([AtSize(size, lost) for size, lost in at_sizes])
    common = common_sizes([size for size, _ in at_sizes])
    level, bound = at_every_size.level(worst.value)
    at_a_size = finding_at(
        "MPI loss at a size",
        level,
        bound,
        where,
        worst,
        f"at {worst.size} bytes MPI loses {worst.value:.1%} of TCP's bandwidth, the most {common}",
        advice,
    )
    return at_the_peak, replace(at_a_size, common=common)


def _loss_interval(
    mpi: Sequence[Curve], tcp: Sequence[Curve], settings: MpiLossSettings
) -> tuple[float, float] | None:
    peaks: list[list[float]] = []
    for several in (mpi, tcp):
        points = [bandwidths_of(curve, settings) for curve in several]
        if any(one.fault is not None for one in points):
            return None
        peaks.append([max(one.at.values()) for one in points])
    kept = intervals.of_ratio(*peaks)
    return None if kept is None else (1 - kept[1], 1 - kept[0])


def _judge(case: CaseCurves, settings: Any) -> tuple[Finding, ...]:
    if not case.over_tcp:
        return ()
    if case.tcp is None:
        reason = "its run over TCP in the same job is not complete"
        return (undefined("MPI loss at the peak", case.where, reason),)
    own = settings.mpi_loss_inside if case.inside else settings.mpi_loss
    return mpi_loss(
        case.curve,
        case.tcp.curve,
        where=case.where,
        settings=own,
        at_every_size=replace(AT_EVERY_SIZE, least_size=own.least_size),
        launches=(case.launches, case.tcp.launches),
    )


CRITERION = Criterion(
    9,
    {"mpi_loss": MpiLossSettings(), "mpi_loss_inside": AT_EVERY_SIZE},
    {"MPI loss at the peak": "mpi_loss", "MPI loss at a size": None},
    _judge,
    of_launches=True,
)
