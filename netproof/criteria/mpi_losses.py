"""Criterion 9: MPI's loss of bandwidth over TCP."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from netproof.criteria.findings import (
    AtSize,
    Bounds,
    Finding,
    Level,
    common_sizes,
    finding_at,
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


SHOWN = MpiLossSettings(warn=None, fail=None)
"""Bounds that assert nothing."""

AT_A_SIZE = MpiLossSettings(warn=None, fail=0.75)
"""Bounds at one size: MPI may take four times as long as TCP; copies and latency explain less."""


ADVICE = "look at the library's TCP buffers and at copies that it makes"


def loss(mpi_mb_s: float, tcp_mb_s: float) -> float:
    """Return 1 - bw_MPI / bw_TCP, the share of TCP's bandwidth that MPI loses; negative is a gain.

    Both in one unit. Raises NetproofError for a TCP bandwidth that is not positive and an MPI
    bandwidth that is negative. After the e325 Opteron NetPIPE report.
    """
    if not (math.isfinite(tcp_mb_s) and tcp_mb_s > 0 and math.isfinite(mpi_mb_s) and mpi_mb_s >= 0):
        raise NetproofError(
            f"no loss of MPI at {mpi_mb_s} over TCP at {tcp_mb_s}: bandwidths are above 0"
        )
    return 1 - mpi_mb_s / tcp_mb_s


def losses(
    mpi: Curve, tcp: Curve, settings: MpiLossSettings = SHOWN
) -> tuple[tuple[int, float], ...]:
    """Return the loss of MPI over TCP at each common size, as (bytes, loss).

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
    at_a_size: MpiLossSettings = SHOWN,
    launches: tuple[Sequence[Curve], Sequence[Curve]] = ((), ()),
) -> tuple[Finding, Finding]:
    """Return MPI's loss of TCP's bandwidth, at the peaks and at the worst size (criterion 9).

    Both curves are from the same two nodes in the same job, in the same direction. The first
    finding compares the loss between the peaks, which may lie at different sizes, with
    ``settings``; the second the largest loss at a common size with ``at_a_size``. ``launches``:
    whose medians the curves are. A failure that only a part of an interval reaches is inconclusive,
    and a size whose whole interval fails decides.
    """
    try:
        at_sizes = losses(mpi, tcp, at_a_size)
    except NetproofError as error:
        return (
            undefined("MPI loss at the peak", where, str(error)),
            undefined("MPI loss at a size", where, str(error)),
        )
    at_the_peak = _at_the_peak(mpi, tcp, where, settings, launches)
    if not at_sizes:
        return at_the_peak, undefined(
            "MPI loss at a size", where, "MPI and TCP have no size in common"
        )
    compared = [(AtSize(size, lost), _interval_at(size, *launches)) for size, lost in at_sizes]
    failing = [one for one in compared if at_a_size.level(one[0].value, one[1])[0] is Level.FAIL]
    worst, within = max(failing or compared, key=lambda one: one[0].value)
    common = common_sizes([size for size, _ in at_sizes])
    level, bound = at_a_size.level(worst.value, within)
    spoken = "" if within is None else f" (95% interval {within[0]:.1%} to {within[1]:.1%})"
    at_one = finding_at(
        "MPI loss at a size",
        level,
        bound,
        where,
        worst,
        f"at {worst.size} bytes MPI loses {worst.value:.1%}{spoken} of TCP's bandwidth, the most"
        f" {common}",
        ADVICE,
    )
    return at_the_peak, replace(at_one, common=common, interval=within)


def _at_the_peak(
    mpi: Curve,
    tcp: Curve,
    where: str,
    settings: MpiLossSettings,
    launches: tuple[Sequence[Curve], Sequence[Curve]],
) -> Finding:
    found = []
    for label, curve in (("MPI", mpi), ("TCP", tcp)):
        points = bandwidths_of(curve, settings)
        if points.fault is not None:
            reason = f"no peak of {label}: {points.fault}"
            return undefined("MPI loss at the peak", where, reason)
        found.append(max(points.at.items(), key=lambda point: (point[1], -point[0])))
    (mpi_size, mpi_peak), (tcp_size, tcp_peak) = found
    peaks = AtSize(mpi_size, loss(mpi_peak, tcp_peak), (tcp_size,))
    level, bound = settings.level(peaks.value)
    between = _loss_interval(*launches, settings)
    spoken = ""
    if between is not None:
        spoken = f" (95% interval {between[0]:.1%} to {between[1]:.1%})"
        level, bound = settings.level(peaks.value, between)
    finding = finding_at(
        "MPI loss at the peak",
        level,
        bound,
        where,
        peaks,
        f"MPI peaks at {rate_in_words(mpi_peak)} ({mpi_size} bytes), TCP at"
        f" {rate_in_words(tcp_peak)} ({tcp_size} bytes), a loss of {peaks.value:.1%}{spoken}",
        ADVICE,
    )
    return replace(finding, interval=between)


def _interval_at(
    size: int, mpi: Sequence[Curve], tcp: Sequence[Curve]
) -> tuple[float, float] | None:
    """Return the interval of MPI's loss at a size in bytes."""
    times = []
    for several in (tcp, mpi):
        places = [one.sizes.index(size) for one in several if size in one.sizes]
        if len(places) < len(several):
            return None
        times.append([one.time_us[place] for one, place in zip(several, places, strict=True)])
    ratio = intervals.of_ratio(*times)
    return None if ratio is None else (1 - ratio[1], 1 - ratio[0])


def _loss_interval(
    mpi: Sequence[Curve], tcp: Sequence[Curve], settings: MpiLossSettings
) -> tuple[float, float] | None:
    peaks: list[list[float]] = []
    for several in (mpi, tcp):
        points = [bandwidths_of(curve, settings) for curve in several]
        if any(one.fault is not None for one in points):
            return None
        peaks.append([max(one.at.values()) for one in points])
    ratio = intervals.of_ratio(*peaks)
    return None if ratio is None else (1 - ratio[1], 1 - ratio[0])


def _judge(case: CaseCurves, settings: Any) -> tuple[Finding, ...]:
    if not case.over_tcp:
        return ()
    tcp = case.others.get(TCP)
    if tcp is None:
        reason = "its run over TCP in the same job is not complete"
        return (undefined("MPI loss at the peak", case.where, reason),)
    own, at_a_size = settings.mpi_loss, settings.mpi_loss_at_size
    if case.inside:
        own, at_a_size = settings.mpi_loss_inside, settings.mpi_loss_at_size_inside
    return mpi_loss(
        case.curve,
        tcp.curve,
        where=case.where,
        settings=own,
        at_a_size=at_a_size,
        launches=(case.launches, tcp.launches),
    )


TCP, MPI = "tcp", "mpi"
"""NetPIPE's names of the two."""

CRITERION = Criterion(
    9,
    {
        "mpi_loss": MpiLossSettings(),
        "mpi_loss_inside": SHOWN,
        "mpi_loss_at_size": AT_A_SIZE,
        "mpi_loss_at_size_inside": SHOWN,
    },
    {"MPI loss at the peak": "mpi_loss", "MPI loss at a size": "mpi_loss_at_size"},
    _judge,
    of_launches=True,
    others=lambda operation: (TCP,) if operation == MPI else (),
    rests_on=lambda operation, finding: (TCP,),
)
