"""The shape of one curve: inversion (3), jump (4), roughness (5), dropout (6)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from netproof.criteria.findings import (
    FLAGGED,
    AtSize,
    Below,
    Bounds,
    Finding,
    Level,
    bandwidths_of,
    greatest,
    rate_in_words,
    times_of,
    undefined,
    undefined_if_unreadable,
)
from netproof.criteria.interface import CaseCurves, Criterion
from netproof.measurement.curve import Curve

INVERSION = Bounds(2.0, 10.0)
"""Multiples of a larger message's time.

On 254 public curves of InfiniBand and RoCE clusters the median is 1.04, the 95th percentile 2.8,
and all above 10 were one broken MPI transport.
"""

JUMP = Bounds(4.0, 10.0)
"""How many times faster than the size time grows.

On the same 254 curves the median is 1.2, the 95th percentile 2.3, the 99th 6.1.
"""

ROUGHNESS = Bounds()
"""Octaves; nothing is asserted by default."""

DROPOUT = Below(0.5, 0.1)
"""Shares of the lesser of the best bandwidths on either side."""

ROUNDING = 1e-9
"""Relative error of a quotient of two printed figures."""


@undefined_if_unreadable("inversion")
def inversion(curve: Curve, *, where: str, settings: Bounds = INVERSION) -> Finding:
    """Return the largest ratio of a message's time to a larger one's (criterion 3).

    max over s of t(s) / min over s' ≥ s of t(s'), a pure number, 1 for a curve that never
    falls. ``size`` is that of the slow message, ``compared_sizes`` that of the faster one.
    """
    times = times_of(curve, settings, at_least=2)
    worst = greatest(inversion_at_sizes(times))
    faster = worst.compared[0]
    return settings.finding(
        "inversion",
        where,
        worst.value,
        f"a message of {worst.size} bytes took {times[worst.size]:.4g} µs, "
        f"{worst.value:.3g} times the {times[faster]:.4g} µs of one of {faster} bytes",
        f"look for lost packets or a full buffer between {worst.size} and {faster} bytes",
        size=worst.size,
        compared_sizes=worst.compared,
    )


def inversion_at_sizes(times: Mapping[int, float]) -> list[AtSize]:
    """Return each size's time over the least of its own and all larger ones'."""
    found = []
    fastest = None
    for size, time in reversed(times.items()):
        if fastest is None or time <= times[fastest]:
            fastest = size
        found.append(AtSize(size, time / times[fastest], (fastest,)))
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
        return undefined("inversion", where, f"{reason}; how long is not known", size=size)
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


@undefined_if_unreadable("jump")
def jump(curve: Curve, *, where: str, settings: Bounds = JUMP) -> Finding:
    """Return the most that time grew faster than the size in one step (criterion 4).

    max over neighbouring sizes of (t₂/t₁) / (s₂/s₁), a pure number, at least 1. ``size`` is
    the larger one of the step, ``compared_sizes`` the smaller.
    """
    times = times_of(curve, settings, at_least=2)
    worst = greatest(jump_at_sizes(times))
    before = worst.compared[0]
    return settings.finding(
        "jump",
        where,
        worst.value,
        f"from {before} to {worst.size} bytes time went from {times[before]:.4g} to "
        f"{times[worst.size]:.4g} µs, {worst.value:.3g} times what the size explains",
        f"look for congestion or a change of protocol at {worst.size} bytes",
        size=worst.size,
        compared_sizes=worst.compared,
    )


def jump_at_sizes(times: Mapping[int, float]) -> list[AtSize]:
    """Return, at each size but the first, how much faster time grew than the size; 1 at least."""
    return [
        AtSize(size, max(1.0, time / time_before / (size / before)), (before,))
        for (before, time_before), (size, time) in pairwise(times.items())
    ]


@undefined_if_unreadable("roughness")
def roughness(curve: Curve, *, where: str, settings: Bounds = ROUGHNESS) -> Finding:
    """Return the total variation of log₂ t less its net rise, in octaves (criterion 5).

    0 for a curve that never falls; summed as twice all falls, which is the same and exact.
    ``size`` is the size of the deepest fall, None where there is none.
    """
    logs = [(size, math.log2(time)) for size, time in times_of(curve, settings, at_least=2).items()]
    falls = [
        (before - after, size) for (_, before), (size, after) in pairwise(logs) if after < before
    ]
    value = 2 * math.fsum(fall for fall, _ in falls)
    deepest = max(falls, key=lambda fall: fall[0])[1] if falls else None
    reason = f"time falls by {value / 2:.3g} octaves in all along the curve, roughness {value:.3g}"
    if deepest is not None:
        reason += f", most at {deepest} bytes"
    return settings.finding("roughness", where, value, reason, size=deepest)


@undefined_if_unreadable("dropout", several=True)
def dropout(curve: Curve, *, where: str, settings: Bounds = DROPOUT) -> tuple[Finding, ...]:
    """Return the sizes whose bandwidth is far below what both sides reach (criterion 6).

    bw(s) / min(best at smaller sizes, best at larger sizes): each size flagged, or the nearest;
    ``compared_sizes``: where the sides are at their best. After the e325 Opteron NetPIPE report.
    """
    rates = bandwidths_of(curve, settings, at_least=3)
    findings = []
    for found in dropout_at_sizes(rates):
        left, right = found.compared
        findings.append(
            settings.finding(
                "dropout",
                where,
                found.value,
                f"at {found.size} bytes the bandwidth is {rate_in_words(rates[found.size])}, "
                f"{found.value:.2g} of the lesser of {rate_in_words(rates[left])} at {left}"
                f" bytes and {rate_in_words(rates[right])} at {right} bytes",
                "measure the sizes around it, and look at socket buffers and flow control",
                size=found.size,
                compared_sizes=found.compared,
            )
        )
    flagged = tuple(one for one in findings if one.level in FLAGGED)
    return flagged or (min(findings, key=lambda one: one.value),)


def dropout_at_sizes(rates: Mapping[int, float]) -> list[AtSize]:
    """Return each inner size's bandwidth over the lesser of the best on either side."""
    points = list(rates.items())
    found = []
    for i, (size, rate) in enumerate(points[1:-1], 1):
        left = max(points[:i], key=lambda point: point[1])
        right = max(points[i + 1 :], key=lambda point: point[1])
        found.append(AtSize(size, rate / min(left[1], right[1]), (left[0], right[0])))
    return found


def _of_first(
    judge: Callable[..., Finding], key: str
) -> Callable[[CaseCurves, Any], tuple[Finding, ...]]:
    """Return what judges the first launches of a case by the settings of a key."""

    def judged(case: CaseCurves, settings: Any) -> tuple[Finding, ...]:
        if not case.has_sizes:
            return ()
        return (judge(case.first, where=case.where, settings=getattr(settings, key)),)

    return judged


def _dropouts(case: CaseCurves, settings: Any) -> tuple[Finding, ...]:
    if case.first.bandwidth_mb_s is None:
        return ()
    return dropout(case.first, where=case.where, settings=settings.dropout)


CRITERIA = (
    Criterion(
        3,
        {"inversion": INVERSION},
        {"inversion": "inversion"},
        _of_first(inversion, "inversion"),
        at_sizes=inversion_at_sizes,
        sentence="a message took {} times as long as a larger one",
    ),
    Criterion(
        4,
        {"jump": JUMP},
        {"jump": "jump"},
        _of_first(jump, "jump"),
        at_sizes=jump_at_sizes,
        sentence="time grew {} times more than the size from the one before",
    ),
    Criterion(
        5,
        {"roughness": ROUGHNESS},
        {"roughness": "roughness"},
        _of_first(roughness, "roughness"),
    ),
    Criterion(
        6,
        {"dropout": DROPOUT},
        {"dropout": "dropout"},
        _dropouts,
        read=bandwidths_of,
        at_sizes=dropout_at_sizes,
        sentence="the bandwidth is {} of what both sides reach",
    ),
)
