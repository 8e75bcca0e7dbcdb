"""Criterion 22: whether a library asks before it sends messages that are short.

A message up to the eager limit is sent at once. A longer one is announced, and sent when the
receiver has answered: two latencies more, so three instead of one. All libraries in common use send
some KiB at once. Where the limit is set far too low, nothing else shows it: such a curve is smooth,
and its long messages have the rate that they always had.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, NamedTuple

from netproof.criteria.findings import AtSize, Bounds, Finding, Level, finding_at, undefined
from netproof.criteria.interface import CaseCurves, Criterion
from netproof.criteria.points import times_of
from netproof.errors import NetproofError
from netproof.measurement import interval as intervals
from netproof.measurement.curve import Curve

NEAR = 8
"""Sizes up to this factor below and above a step are looked at, and at least so many of each."""
FEWEST = 3

ADVICE = "look at the library's eager limit: up to it a message is sent without asking first"


@dataclass(frozen=True)
class EarlyRendezvousSettings(Bounds):
    """``warn`` and ``fail`` from so many latencies on.

    In latencies, of which a rendezvous takes three for one. ``below``: from this size in bytes on a
    library may have them. Raises NetproofError where no size is left below.
    """

    fail: float | None = 2.5
    below: int = 2048

    def __post_init__(self) -> None:
        """Refuse what the class says it refuses."""
        super().__post_init__()
        if self.below <= FEWEST * self.least_size:
            raise NetproofError(
                f"{type(self).__name__}: below={self.below} leaves no size from"
                f" least_size={self.least_size} on"
            )


class _Step(NamedTuple):
    """Between two neighbouring sizes.

    ``shorter`` and ``longer``: the sizes near it on either side; ``shortest``: those whose time is
    the latency.
    """

    below: int
    above: int
    shorter: tuple[int, ...]
    longer: tuple[int, ...]
    shortest: tuple[int, ...]


def early_rendezvous(
    curve: Curve,
    launches: Sequence[Curve],
    *,
    where: str,
    settings: EarlyRendezvousSettings = EarlyRendezvousSettings(),
) -> Finding:
    """The largest step up in the time of short messages, in latencies, with the latency itself.

    A pure number, 1 where there is none, 3 of a rendezvous. The step is from a size, or the median
    time of those from an eighth of it on if that is longer, to the least time of all sizes up to
    eight times as long: no message that is asked for can be faster. What bytes take by the chord of
    the whole curve is subtracted; sizes whose bytes take longer than a latency are left out. The
    latency is the median time of the shortest messages. ``launches``: over the same sizes;
    ``curve``: their median, in which the step is found. The interval is that of the median over the
    launches.
    """
    points = times_of(curve, settings)
    if points.fault is not None:
        return undefined("early rendezvous", where, points.fault)
    steps = {step: _height(curve, step) for step in _steps(curve, tuple(points.at), settings)}
    if not steps:
        told = (
            f"not judged, which takes {FEWEST} sizes up to one below {settings.below} bytes and"
            f" {FEWEST} longer ones whose bytes take less than a latency"
        )
        return Finding("early rendezvous", Level.SHOWN, where, told)
    step = max(steps, key=lambda one: steps[one])
    for number, launch in enumerate(launches, 1):
        if (fault := times_of(launch, settings).fault) is not None:
            return undefined("early rendezvous", where, f"in launch {number}, {fault}")
    within = intervals.of_median([_height(launch, step) for launch in launches])
    level, bound = settings.level(steps[step], within)
    told = "" if within is None else f" (95% interval {within[0]:.3g} to {within[1]:.3g})"
    found = finding_at(
        "early rendezvous",
        level,
        bound,
        where,
        AtSize(step.above, steps[step], (step.below,)),
        f"from {step.below} to {step.above} bytes the time of a message goes from one latency to"
        f" {steps[step]:.3g}{told}, without what its bytes take, and stays; the largest such step"
        f" below {settings.below} bytes",
        ADVICE,
    )
    return replace(found, interval=within)


def _steps(
    curve: Curve, sizes: Sequence[int], settings: EarlyRendezvousSettings
) -> Iterator[_Step]:
    """Those that can be judged; ``sizes``: the curve's, without those left out."""
    for place, below in enumerate(sizes[:-1]):
        if below >= settings.below:
            return
        shorter = tuple(one for one in sizes[: place + 1] if below <= NEAR * one)
        shortest = tuple(one for one in sizes[: place + 1] if one <= NEAR * sizes[0])
        most = median(_times(curve, shortest))
        longer = tuple(
            one
            for one in sizes[place + 1 :]
            if one <= NEAR * below and _per_byte(curve) * (one - below) <= most
        )
        if min(len(shorter), len(longer)) >= FEWEST:
            yield _Step(below, sizes[place + 1], shorter, longer, shortest)


def _height(curve: Curve, step: _Step) -> float:
    """How many latencies a longer message took where a shorter one took one; 1 at least."""
    shorter = _times(curve, step.shorter, step.below)
    before = max(median(shorter), shorter[-1])
    after = min(_times(curve, step.longer, step.below))
    return 1 + max(0.0, (after - before) / median(_times(curve, step.shortest)))


def _times(curve: Curve, sizes: Sequence[int], as_of: int | None = None) -> list[float]:
    """The times of some sizes in µs, as if all had so many bytes where that is asked for."""
    at, per_byte = dict(zip(curve.sizes, curve.time_us, strict=True)), _per_byte(curve)
    return [at[one] - (0 if as_of is None else per_byte * (one - as_of)) for one in sizes]


def _per_byte(curve: Curve) -> float:
    """µs that a byte more takes along the whole curve, 0 at least."""
    if len(curve.sizes) < 2:
        return 0.0
    chord = (curve.time_us[-1] - curve.time_us[0]) / (curve.sizes[-1] - curve.sizes[0])
    return max(0.0, chord)


def _judge(case: CaseCurves, settings: Any) -> tuple[Finding, ...]:
    if not case.ping_pong or case.inside:
        return ()
    own = settings.early_rendezvous
    return (early_rendezvous(case.curve, case.launches, where=case.where, settings=own),)


CRITERION = Criterion(
    22,
    {"early_rendezvous": EarlyRendezvousSettings()},
    {"early rendezvous": "early_rendezvous"},
    _judge,
    of_launches=True,
)
