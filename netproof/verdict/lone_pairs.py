"""What pairs of nodes say each by itself, where too few nodes were measured to compare pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from netproof.localization.observations import LEAST_NODES, Pair
from netproof.measurement import interval
from netproof.measurement.disturbance import DisturbanceSettings, disturbed
from netproof.measurement.interval import Interval, Side
from netproof.session.pair_rounds import PairLaunch, PairRounds


@dataclass(frozen=True)
class LonePair:
    """Medians over the launches of a pair that nothing disturbed, or over all if each was.

    ``share``: of the line rate, None where that is not known, with its 95 % ``interval``;
    ``disturbed``: whether every launch was; ``streams_mb_s``: from its first node to its second,
    and back, None where no stream was measured.
    """

    nodes: Pair
    latency_us: float
    rate_mb_s: float
    share: float | None
    interval: Interval | None
    launches: int
    disturbed: bool
    streams_mb_s: tuple[float | None, float | None]

    @property
    def rate(self) -> str:
        """Its nodes and its rate, in words."""
        what = f"{self.rate_mb_s:.4g} MB/s"
        if self.share is not None:
            what += f", {self.share:.1%} of the line rate"
        count = f"{self.launches} launch{'' if self.launches == 1 else 'es'}"
        over = f"over {count}{', each disturbed' if self.disturbed else ''}"
        if self.interval is not None:
            over = f"95% interval {self.interval[0]:.1%} to {self.interval[1]:.1%} {over}"
        return f"{' – '.join(self.nodes)} {what} ({over})"

    def __str__(self) -> str:
        """In a sentence."""
        there, back = self.streams_mb_s
        streams = ""
        if there is not None and back is not None:
            streams = f", streams of {there:.4g} MB/s there and {back:.4g} MB/s back"
        return f"{self.rate}, latency {self.latency_us:.3g} µs{streams}"

    def side_of(self, least: float) -> Side:
        """Return on which side of the ``least`` share its own share lies; astride if unknown."""
        if self.share is None or self.disturbed:
            return Side.ASTRIDE
        return interval.side(self.interval or (self.share, self.share), least, math.inf)


def of_rounds(
    rounds: PairRounds, line_rate_mb_s: float | None, settings: DisturbanceSettings
) -> tuple[LonePair, ...]:
    """Return each pair that was measured, if the job has too few nodes to compare pairs; else none.

    ``line_rate_mb_s``: of a node's link.
    """
    if len(rounds.nodes) >= LEAST_NODES:
        return ()
    by_pair: dict[Pair, list[PairLaunch]] = {}
    for one in rounds.launches:
        for pair in one.pairs:
            by_pair.setdefault((min(pair.nodes), max(pair.nodes)), []).append(one)
    return tuple(
        _lone(pair, several, line_rate_mb_s, settings)
        for pair, several in sorted(by_pair.items())
        if not all(one.stream for one in several)
    )


def _lone(
    nodes: Pair,
    several: list[PairLaunch],
    line_rate_mb_s: float | None,
    settings: DisturbanceSettings,
) -> LonePair:
    calm = [one for one in several if not disturbed(one.loads, settings)]
    measured = [one.pairs[0] for one in calm if not one.stream]
    counted = measured or [one.pairs[0] for one in several if not one.stream]
    rates = [pair.rate_mb_s for pair in counted]
    shares = [rate / line_rate_mb_s for rate in rates] if line_rate_mb_s else []
    streams = [one.pairs[0] for one in calm or several if one.stream]
    there, back = ([one.rate_mb_s for one in streams if one.nodes[0] == node] for node in nodes)
    return LonePair(
        nodes,
        median(pair.time_us for pair in counted),
        median(rates),
        median(shares) if shares else None,
        interval.of_median(shares),
        len(counted),
        not measured,
        (median(there) if there else None, median(back) if back else None),
    )
