"""The shape of one curve: inversion, jump, dropout, dip, decline; and its roughness, a figure.

Inversion, jump and dropout wait for large factors, since one launch is noise, and what they flag is
measured again. A dip is small, and takes launches whose interval confirms it. A decline lasts to
the largest message, and is smaller where launches confirm it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from statistics import median

from netproof.criteria.findings import (
    FLAGGED,
    AtSizes,
    Below,
    Bounds,
    CannotJudgeError,
    Finding,
    Level,
    figure,
    in_common,
    ranges_in_words,
    rate_in_words,
    then,
    undefined,
)
from netproof.criteria.interface import CaseCurves, Criterion
from netproof.measurement import interval as intervals
from netproof.measurement.case import Curve, medians

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

NOTED_DROPOUT = Below(0.75)
"""Shares that judged files note; a library's change of protocol often has one of these."""

DIP = Below(0.9, 0.8)
"""Shares of the rate that both neighbouring sizes let expect.

NVIDIA's and AMD's own harnesses fail a dip of 5 % between neighbouring sizes of one run.
"""


DECLINE, DECLINE_ALONE = Bounds(1.5), 1.5
"""How many times the best rate is that of the largest messages, by the whole interval.

Between nodes the rate rises to that of the line. Inside one it falls where messages outgrow a
cache. The second is the value that warns where one launch of files has no interval.
"""

DECLINE_TO = 128 * 1024
"""Bytes of a largest message that shows whether a rate stays down.

Libraries change their protocol at up to 64 KiB, and their rate recovers above.
"""

STEP = 1.2
"""Sizes within this factor are no neighbours, but those of NetPIPE's perturbation."""

LATENCIES = 2.0
"""A message limited by line or memory takes so many latencies or more, beyond Hockney's n½."""

ROUNDING = 1e-9
"""Relative error of a quotient of two printed figures."""


def inversion(case: CaseCurves, settings: Bounds) -> Iterable[Finding]:
    """Return the largest ratio of a message's time to a larger one's, and rates printed as 0.

    max over s of t(s) / min over s' ≥ s of t(s'), a pure number, 1 for a curve that never
    falls. ``size`` is that of the slow message, ``compared_sizes`` that of the faster one.
    """
    if not case.has_sizes:
        return ()
    rounded = sorted(
        (_rounded_to_zero(launch, size, case) for launch, size in case.at_least),
        key=lambda one: one.level is Level.FAIL,
    )
    worst_rounded = {one.size: one for one in rounded}.values()
    try:
        times = settings.times(case.first, at_least=2)
    except CannotJudgeError as error:
        return (undefined("inversion", case.where, str(error)), *worst_rounded)
    at_each = _inversions(times)
    size, (value, (faster,)) = _largest(at_each)
    several = _flagged_sizes(at_each, settings)
    whole = settings.finding(
        value,
        f"a message of {size} bytes took {figure(times[size])} µs, {value:.3g} times the"
        f" {figure(times[faster])} µs of one of {faster} bytes",
        case.layer.advice(
            f"look for lost packets or a full buffer between {size} and {faster} bytes"
        ),
        basis=several and f"messages of {several} took longer than larger ones",
        size=size,
        compared_sizes=(faster,),
    )
    return (whole, *worst_rounded)


def _largest(at_each: AtSizes) -> tuple[int, tuple[float, tuple[int, ...]]]:
    return max(at_each.items(), key=lambda found: found[1][0])


def _flagged_sizes(at_each: AtSizes, settings: Bounds) -> str:
    """Return the flagged sizes in words, empty for one or none."""
    if settings.level(_largest(at_each)[1][0])[0] not in FLAGGED:
        return ""
    flagged = [one for one, (value, _) in at_each.items() if settings.level(value)[0] in FLAGGED]
    return ranges_in_words(flagged, [*at_each]) if len(flagged) > 1 else ""


def _inversions(times: Mapping[int, float]) -> AtSizes:
    """Return each size's time over the least of its own and all larger ones'."""
    found: AtSizes = {}
    fastest = max(times)
    for size in [*times][::-1]:
        fastest = min(size, fastest, key=times.__getitem__)
        found[size] = times[size] / times[fastest], (fastest,)
    return dict(reversed(found.items()))


def _rounded_to_zero(curve: Curve, size: int, case: CaseCurves) -> Finding:
    """Judge a size whose rate was printed as 0, where ``curve`` has the least possible time.

    It fails if a larger message took less, by whatever factor: where sizes double, rounding cannot
    do that, and the true time has no upper limit. Otherwise its time is not known.
    """
    place = curve.sizes.index(size)
    least, rates = curve.time_us[place], curve.bandwidth_mb_s or curve.time_us
    reason = (
        f"at {size} bytes the rate, below {rate_in_words(rates[place])}, was printed as 0."
        f" A message took {least:.4g} µs or longer"
    )
    fastest = min(range(place, len(curve.sizes)), key=curve.time_us.__getitem__)
    factor, faster = least / curve.time_us[fastest], curve.sizes[fastest]
    if factor <= 1 + ROUNDING:
        return undefined("inversion", case.where, f"{reason}; how long is not known", size=size)
    reason += (
        f", at least {factor:.3g} times the {curve.time_us[fastest]:.4g} µs of one of {faster}"
        " bytes"
    )
    advice = "look for lost packets or a timer that small messages wait for"
    reason += then(case.layer.advice(advice))
    found = Finding("inversion", Level.FAIL, case.where, reason, size, value=factor, bound=1.0)
    return replace(found, compared_sizes=(faster,))


def jump(case: CaseCurves, settings: Bounds) -> Finding | None:
    """Return the most that time grew faster than the size in one step.

    max over neighbouring sizes of (t₂/t₁) / (s₂/s₁), a pure number, at least 1. ``size`` is
    the larger one of the step, ``compared_sizes`` the smaller.
    """
    if not case.has_sizes:
        return None
    times = settings.times(case.first, at_least=2)
    at_each = _jumps(times)
    size, (value, (before,)) = _largest(at_each)
    several = _flagged_sizes(at_each, settings)
    return settings.finding(
        value,
        f"from {before} to {size} bytes time went from"
        f" {figure(times[before])} to {figure(times[size])} µs, {value:.3g} times what"
        " the size explains",
        case.layer.advice(f"look for congestion or a change of protocol at {size} bytes"),
        basis=several and f"time jumped at {several}",
        size=size,
        compared_sizes=(before,),
    )


def _jumps(times: Mapping[int, float]) -> AtSizes:
    """Return, at each size but the first, how much faster time grew than the size; 1 at least."""
    return {
        size: (max(1.0, time / time_before / (size / before)), (before,))
        for (before, time_before), (size, time) in pairwise(times.items())
    }


def roughness(case: CaseCurves, settings: Bounds) -> Finding | None:
    """Return the total variation of log₂ t less its net rise, in octaves.

    0 for a curve that never falls; summed as twice all falls, which is the same and exact.
    ``size`` is the size of the deepest fall, None without a fall.
    """
    if not case.has_sizes:
        return None
    logs = {size: math.log2(t) for size, t in settings.times(case.first, at_least=2).items()}
    falls = [(logs[one] - logs[two], two) for one, two in pairwise(logs) if logs[two] < logs[one]]
    value = 2 * math.fsum(fall for fall, _ in falls)
    deepest = max(falls, key=lambda fall: fall[0])[1] if falls else None
    reason = f"time falls by {value / 2:.3g} octaves in all along the curve, roughness {value:.3g}"
    if deepest is not None:
        reason += f", most at {deepest} bytes"
    return settings.finding(value, reason, size=deepest)


def dropout(case: CaseCurves, settings: Bounds) -> Sequence[Finding]:
    """Return the sizes whose bandwidth is far below what both sides reach.

    bw(s) / min(best at smaller sizes, best at larger sizes): each size flagged, or the nearest;
    ``compared_sizes``: where the sides are at their best. After the e325 Opteron NetPIPE report.
    """
    if case.first.bandwidth_mb_s is None:
        return ()
    rates = settings.rates(case.first, at_least=3)
    at_each = _dropouts(rates)
    flagged = [size for size, one in at_each.items() if settings.level(one[0])[0] in FLAGGED]
    findings = []
    for size in flagged or [min(at_each, key=lambda one: at_each[one][0])]:
        value, (left, right) = at_each[size]
        findings.append(
            settings.finding(
                value,
                f"at {size} bytes the bandwidth is {rate_in_words(rates[size])}, "
                f"{value:.2g} of the lesser of {rate_in_words(rates[left])} at {left}"
                f" bytes and {rate_in_words(rates[right])} at {right} bytes",
                "measure the sizes around it, and "
                + case.layer.advice("look at socket buffers and flow control"),
                size=size,
                compared_sizes=(left, right),
            )
        )
    return findings


def _dropouts(rates: Mapping[int, float]) -> AtSizes:
    """Return each inner size's bandwidth over the lesser of the best on either side."""
    sizes = list(rates)
    found: AtSizes = {}
    for place, size in enumerate(sizes[1:-1], 1):
        sides = sizes[:place], sizes[place + 1 :]
        left, right = (max(side, key=rates.__getitem__) for side in sides)
        found[size] = rates[size] / min(rates[left], rates[right]), (left, right)
    return found


def dips(case: CaseCurves, settings: Below) -> Iterator[Finding]:
    """Yield the sizes whose rate is below what both neighbours let expect, as launches confirm.

    The value is the time expected on the line between both neighbours, over the time taken: the
    share of the rate. All of its interval over the launches is beyond the bound. So is, in each
    launch, the share by the line through two smaller sizes alone, and by that through two larger
    ones: a step that stays, as of another protocol, lies on one of these. Medians over launches at
    two paces may have one pace at one size and the other at the next, so they do not show it.
    Sizes that latency limits are left out, and so is the largest. ``compared_sizes``: the
    neighbours.
    """
    if not case.has_sizes:
        return
    each, common = case.each(replace(settings, least_size=min(4, settings.least_size)))
    sizes = tuple(common) if len(each) > 1 else ()
    rows = [[times[size] for size in sizes] for times in each]
    middle = dict(zip(sizes, medians(rows), strict=True))
    latency = min(middle.values(), default=0.0)
    for size, smaller, larger in _with_neighbours(sizes):
        expected = _between(middle, smaller[0], larger[0], size)
        if size < settings.least_size or expected < LATENCIES * latency:
            continue
        shares = [_between(times, smaller[0], larger[0], size) / times[size] for times in each]
        interval = intervals.of_median(shares)
        if not interval or settings.level(interval[1])[0] not in FLAGGED:
            continue
        by_one_side = [_by_one_side(times, smaller, larger, size) / times[size] for times in each]
        decided = settings.level(max(interval[1], intervals.most(by_one_side)))
        if decided[0] in FLAGGED:
            value = median(shares)
            yield settings.finding(
                value,
                f"at {size} bytes a message took {figure(middle[size])} µs, and by its"
                f" neighbours of {smaller[0]} and {larger[0]} bytes"
                f" {figure(value * middle[size])} µs is expected: {value:.3g} of the rate",
                "measure the sizes around it, and "
                + case.layer.advice(
                    "look at buffers and segment sizes of the library and the link"
                ),
                interval=interval,
                decided=decided,
                size=size,
                compared_sizes=(smaller[0], larger[0]),
            )


@lru_cache(maxsize=256)
def _with_neighbours(sizes: tuple[int, ...]) -> list[tuple[int, list[int], list[int]]]:
    """Return the sizes that have three neighbours or four, the nearest first, on either side.

    Each is a ``STEP`` further than the one before.
    """
    found = []
    for size in sizes:
        smaller, larger = [size], [size]
        for one in reversed(sizes):
            if one * STEP <= smaller[-1]:
                smaller.append(one)
        for one in sizes:
            if one >= STEP * larger[-1]:
                larger.append(one)
        if min(len(smaller), len(larger)) > 1 and max(len(smaller), len(larger)) > 2:
            found.append((size, smaller[1:3], larger[1:3]))
    return found


def _between(times: Mapping[int, float], smaller: int, larger: int, size: int) -> float:
    """Return the time in µs on the line between two sizes."""
    part = (size - smaller) / (larger - smaller)
    return times[smaller] + part * (times[larger] - times[smaller])


def _by_one_side(
    times: Mapping[int, float], smaller: Sequence[int], larger: Sequence[int], size: int
) -> float:
    """Return the longer of the times in µs by the smaller sizes alone, and by the larger ones.

    A side of one size has the slope of the other.
    """
    slopes = [
        max(0.0, (times[side[1]] - times[side[0]]) / (side[1] - side[0]))
        for side in (smaller, larger)
        if len(side) == 2
    ]
    below, above = slopes[0], slopes[-1]
    return max(
        times[smaller[0]] + below * (size - smaller[0]),
        times[larger[0]] - above * (larger[0] - size),
    )


def decline(case: CaseCurves, settings: Bounds) -> Finding | None:
    """Return where the rate falls and stays down to the largest message; None where it does not.

    The value is the best rate over that of all larger messages from some size on, two at least,
    where that is most. ``size``: the first from which on the rate is down by that, or the bound;
    ``others``: all larger ones; ``compared_sizes``: that of the best rate. Rates count up to the
    line rate, since a shaped link lets bursts pass. Within a node the end of a cache is no fault,
    and many pairs together reach it early: neither is judged.
    """
    if case.curve.bandwidth_mb_s is None or case.inside or case.ranks > 2:
        return None
    most = math.inf if case.line_rate_mb_s is None else case.line_rate_mb_s
    each = [
        {size: min(rate, most) for size, rate in settings.rates(curve).items()}
        for curve in case.launches
    ]
    sizes = in_common(each)
    if sizes[-1] < DECLINE_TO:
        return None
    rates = dict(zip(sizes, medians([[one[size] for size in sizes] for one in each]), strict=True))
    falls: AtSizes = {}
    peak = sizes[0]
    for place, size in enumerate(sizes[1:], 1):
        peak = max(peak, sizes[place - 1], key=rates.__getitem__)
        if sizes[-1] >= STEP * size:
            falls[size] = rates[peak] / max(rates[one] for one in sizes[place:]), (peak,)
    if not falls:
        return None
    since, (_, (peak,)) = _largest(falls)
    shares = [one[peak] / max(one[size] for size in sizes if size >= since) for one in each]
    interval, value = intervals.of_median(shares), median(shares)
    alone = DECLINE_ALONE if case.of_files else None
    warn = alone if interval is None else settings.warn
    sure = value if interval is None else min(value, interval[0])
    decided = replace(settings, warn=warn).level(sure)
    if decided[0] not in FLAGGED:
        return None
    down = next(size for size, (fall, _) in falls.items() if fall >= min(warn or value, value))
    return settings.finding(
        value,
        f"the bandwidth falls from {figure(rates[peak])} MB/s at {peak} bytes to"
        f" {figure(rates[sizes[-1]])} MB/s at {sizes[-1]} bytes, and stays down from {down}"
        f" bytes on: {value:.3g} times less",
        case.layer.advice(
            "look at the protocol of large messages, at memory that is registered again for each,"
            " and at flow control",
            "messages may outgrow a cache: look at the library's way of copying large ones",
        ),
        interval=interval,
        decided=decided,
        size=down,
        others=tuple(size for size in sizes if size > down),
        compared_sizes=(peak,),
    )


CRITERIA = (
    Criterion(
        "inversion",
        "inversion",
        INVERSION,
        inversion,
        at_sizes=_inversions,
        fewest_sizes=2,
        sentence="a message took {} times as long as a larger one",
    ),
    Criterion(
        "jump",
        "jump",
        JUMP,
        jump,
        at_sizes=_jumps,
        fewest_sizes=2,
        sentence="time grew {} times more than the size from the one before",
    ),
    Criterion(
        "roughness", "roughness", ROUGHNESS, roughness, sets=(), of_all_sizes=True, fewest_sizes=2
    ),
    Criterion(
        "dropout",
        "dropout",
        DROPOUT,
        dropout,
        # Messages of an emulated link that pass above its rate are the better side of any valley.
        sets=("warn", "fail", "least_size"),
        read=Bounds.rates,
        at_sizes=_dropouts,
        fewest_sizes=3,
        noted=NOTED_DROPOUT,
        sentence="the bandwidth is {} of what both sides reach",
    ),
    Criterion("dip", "dip", DIP, dips, of_launches=True),
    Criterion("decline", "decline", DECLINE, decline, sets=(), of_launches=True),
)
