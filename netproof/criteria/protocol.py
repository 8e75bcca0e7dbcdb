"""Protocol: a rendezvous for short messages.

A message up to the eager limit is sent at once. A longer one is announced, and sent when the
receiver has answered: three latencies instead of one. All libraries in use send some KiB at once. A
limit that is far too low shows nowhere else: long messages have their usual rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import NamedTuple

from netproof.criteria.findings import Bounds, Finding, Level
from netproof.criteria.interface import CaseCurves, Criterion
from netproof.measurement import interval as intervals
from netproof.measurement.case import Curve

NEAR = 8
"""Largest factor between a step and the sizes that are compared below and above it."""
FEWEST = 3
"""Fewest sizes that are compared on either side."""
EXPECTED_FROM = 2048
"""Size in bytes from which on a rendezvous is expected, as of all libraries in use."""

EARLY_RENDEZVOUS = Bounds(None, 2.5)
"""Latencies from which on a step is flagged; a rendezvous takes three instead of one."""


class _Step(NamedTuple):
    """Step between two sizes; ``shortest``: sizes whose time is the latency; others near it."""

    below: int
    above: int
    shorter: tuple[int, ...]
    longer: tuple[int, ...]
    shortest: tuple[int, ...]


def early_rendezvous(case: CaseCurves, settings: Bounds) -> Finding | None:
    """Return the largest step up in the time of short messages, as 1 plus its latencies.

    1 without a step, 3 for a rendezvous. The step is from the time of a size, or the median from an
    eighth of that size on if longer, to the least time of all sizes up to eight times as long, less
    what bytes take by the chord of the curve.
    """
    if not case.ping_pong or case.inside:
        return None
    times, per_byte = settings.times(case.curve), _per_byte(case.curve)
    steps = {step: _height(times, per_byte, step) for step in _steps(times, per_byte)}
    if not steps:
        reason = (
            f"not judged, which takes {FEWEST} sizes up to one below {EXPECTED_FROM} bytes and"
            f" {FEWEST} longer ones whose bytes take less than a latency"
        )
        return Finding("early rendezvous", Level.SHOWN, case.where, reason)
    step = max(steps, key=steps.__getitem__)
    each = zip(case.each(settings)[0], map(_per_byte, case.launches), strict=True)
    interval = intervals.of_median([_height(*launch, step) for launch in each])
    return settings.finding(
        steps[step],
        f"from {step.below} to {step.above} bytes the time of a message goes from one latency to"
        f" {steps[step]:.3g}, without what its bytes take, and stays",
        "look at the library's eager limit: up to it a message is sent without asking first",
        basis=f"no step below {EXPECTED_FROM} bytes is larger",
        interval=interval,
        size=step.above,
        compared_sizes=(step.below,),
    )


def _steps(times: Mapping[int, float], per_byte: float) -> Iterator[_Step]:
    """Yield the steps that can be judged, by the times at sizes that are not skipped."""
    sizes = tuple(times)
    for place, below in enumerate(sizes[:-1]):
        if below >= EXPECTED_FROM:
            return
        shorter = tuple(one for one in sizes[: place + 1] if below <= NEAR * one)
        shortest = tuple(one for one in sizes[: place + 1] if one <= NEAR * sizes[0])
        most = median([times[one] for one in shortest])
        longer = tuple(
            one
            for one in sizes[place + 1 :]
            if one <= NEAR * below and per_byte * (one - below) <= most
        )
        if min(len(shorter), len(longer)) >= FEWEST:
            yield _Step(below, sizes[place + 1], shorter, longer, shortest)


def _height(times: Mapping[int, float], per_byte: float, step: _Step) -> float:
    """Return the latencies that a longer message took where a shorter took one; 1 at least.

    ``times``: by size, compared as if all had the same bytes, of which each takes ``per_byte`` µs.
    """
    shorter, longer = (
        [times[one] - per_byte * (one - step.below) for one in sizes]
        for sizes in (step.shorter, step.longer)
    )
    before, after = max(median(shorter), shorter[-1]), min(longer)
    return 1 + max(0.0, (after - before) / median([times[one] for one in step.shortest]))


def _per_byte(curve: Curve) -> float:
    """Return the µs per further byte along the whole curve, 0 at least."""
    if len(curve.sizes) < 2:
        return 0.0
    chord = (curve.time_us[-1] - curve.time_us[0]) / (curve.sizes[-1] - curve.sizes[0])
    return max(0.0, chord)


CRITERIA = (
    Criterion(
        "early rendezvous",
        "early_rendezvous",
        EARLY_RENDEZVOUS,
        early_rendezvous,
        sets=("fail",),
        of_all_sizes=True,
        of_launches=True,
    ),
)
