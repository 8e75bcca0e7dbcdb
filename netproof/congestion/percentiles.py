"""Percentiles of the times of single calls, and pauses: calls that stand out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import scipy

from netproof.congestion.tails import BOTH_WAYS, WATCH_S, Tail
from netproof.measurement.counters import CARRIER, INTERFACE, TCP
from netproof.measurement.disturbance import disturbed
from netproof.measurement.interval import CONFIDENCE, Interval, Side, side

LEVELS = (50.0, 90.0, 99.0, 99.9, 99.99)
BOUNDED = 99.9
"""The percentile that a site may bound."""

PAUSE_TIMES = 10
"""Least time of a pause, in medians, whatever the site sets."""

LEAST_SILENCE_S = 5 * WATCH_S
"""Seconds without a new call that cannot result from when the output was read."""


@dataclass(frozen=True)
class Percentile:
    """The time in µs that this many in 100 calls do not exceed, by nearest rank.

    ``interval``: 95 %, by order statistics; infinite above where too few calls are beyond.
    """

    level: float
    value_us: float
    interval_us: Interval


@dataclass(frozen=True)
class Pause:
    """A time in which nothing came through: its end in seconds since the epoch, and its µs.

    ``in_call``: it was a call's, there and back; else no call was printed, since the benchmark
    waited between two of them.
    """

    until: float
    took_us: float
    in_call: bool


@dataclass(frozen=True)
class TailFigures:
    """Result of a long launch.

    ``percentiles``: by level, where there are enough calls; ``pauses``: the longest first;
    ``paused_share``: their share of the whole time; ``carriers``: changes of carriers by node and
    interface; ``sent_again``: segments by node, None where it is not known; ``disturbed``: reasons;
    ``most``: bound of the 99.9th percentile in medians, and ``side``: of its interval.
    """

    calls: int
    mean_us: float
    longest_us: float
    percentiles: Mapping[float, Percentile]
    pauses: tuple[Pause, ...]
    paused_share: float
    carriers: tuple[tuple[str, str, int], ...]
    sent_again: tuple[tuple[str, int | None], ...]
    disturbed: tuple[str, ...]
    most: float | None
    side: Side | None

    @property
    def beyond(self) -> bool:
        """Check whether the 99.9th percentile exceeds its bound, undisturbed."""
        return self.side is Side.BEYOND and not self.disturbed

    @property
    def undecided(self) -> bool:
        """Check whether it has a bound, and is inconclusive."""
        bounded = self.most is not None
        return bounded and (bool(self.disturbed) or self.side in (None, Side.ASTRIDE))


def percentile(ordered: Sequence[float], level: float) -> Percentile | None:
    """Return a percentile of sorted times; None where it would be the longest of them."""
    count, share = len(ordered), level / 100
    rank = math.ceil(round(share * count, 6))
    if rank >= count:
        return None
    low, high = (int(scipy.stats.binom.ppf(tail, count, share)) for tail in _TAILS)
    return Percentile(
        level,
        ordered[rank - 1],
        (ordered[max(low, 1) - 1], ordered[high] if high < count else math.inf),
    )


_TAILS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)


def figures(tail: Tail) -> TailFigures:
    """Return the result of a long launch, by the settings of its partition."""
    partition, times = tail.where, tail.times_us
    settings, ordered = partition.load_settings(), sorted(times)
    found = {level: percentile(ordered, level) for level in LEVELS}
    known = {level: one for level, one in found.items() if one is not None}
    middle = known[50.0].value_us if 50.0 in known else ordered[len(ordered) // 2]
    from_us = max(settings.pause_us, PAUSE_TIMES * middle)
    pauses = sorted(_pauses(tail, from_us), key=lambda one: one.took_us, reverse=True)
    bounded = known.get(BOUNDED)
    most = settings.most_999th
    where = None
    if most is not None and bounded is not None:
        low, high = bounded.interval_us
        where = side((low / middle, high / middle), 0, most)
    return TailFigures(
        len(times),
        fmean(times),
        ordered[-1],
        known,
        tuple(pauses),
        sum(one.took_us for one in pauses) / 1e6 / tail.took_s if tail.took_s else 0.0,
        _carriers(tail),
        _sent_again(tail),
        tuple(disturbed(tail.launch.loads, partition.settings().disturbance)),
        most,
        where,
    )


def _pauses(tail: Tail, from_us: float) -> Iterator[Pause]:
    """Yield calls from ``from_us`` on, and times between calls in which none was printed."""
    long = {place: BOTH_WAYS * time for place, time in enumerate(tail.times_us) if time >= from_us}
    for place, took_us in long.items():
        yield Pause(tail.moment(place), took_us, in_call=True)
    usual_s = tail.took_s / len(tail.times_us)
    least_s = max(LEAST_SILENCE_S, PAUSE_TIMES * usual_s)
    for (before, seen), (after, now) in itertools.pairwise(tail.watched):
        told_us = max((long.get(place, 0.0) for place in range(seen, now)), default=0.0)
        silent_s = after - before
        if silent_s >= least_s and told_us < 1e6 * silent_s / 2:
            yield Pause(after, 1e6 * silent_s, in_call=False)


def _carriers(tail: Tail) -> tuple[tuple[str, str, int], ...]:
    counters = tail.launch.counters
    if counters is None:
        return ()
    return tuple(
        (node.node, source.name, changes)
        for node in counters.nodes
        for source in node.of_kind(INTERFACE)
        if (changes := counters.of_source(source, CARRIER))
    )


def _sent_again(tail: Tail) -> tuple[tuple[str, int | None], ...]:
    counters = tail.launch.counters
    if counters is None:
        return ()
    return tuple(
        (node.node, counters.value(node.node, TCP, "", "Tcp.RetransSegs"))
        for node in counters.nodes
    )
