"""Effective bisection bandwidth: the rate of pairs of nodes while all of them send at once.

In a round of pairs half of the nodes send to the other half, each to one, at the same time.
Partners are drawn for each round. The mean rate of a pair over such bisections is the effective
bisection bandwidth (Hoefler, Schneider and Lumsdaine, "Multistage switches are not crossbars",
CLUSTER 2008). A non-blocking network has the line rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from netproof.measurement import interval
from netproof.measurement.disturbance import DisturbanceSettings, disturbed
from netproof.measurement.interval import Interval
from netproof.session.pair_rounds import PairLaunch, PairRounds

LEAST_PAIRS = 2
"""One pair alone is no bisection."""


@dataclass(frozen=True)
class Bisection:
    """Bisection bandwidth in the rounds of a job.

    ``mb_s``: mean rate per pair in the median round; ``share``: of the line rate, with its 95 %
    ``interval`` over rounds, None for one; ``worst``: the share of the worst round; ``rounds`` that
    count, each of ``pairs`` at once; ``within`` and ``across``: the median share of pairs below one
    leaf switch, and of pairs across leaves, None without such pairs.
    """

    mb_s: float
    share: float
    interval: Interval | None
    worst: float
    rounds: int
    pairs: int
    within: float | None = None
    across: float | None = None

    def __str__(self) -> str:
        """Return the sentence."""
        over = f"{self.rounds} round{'s' if self.rounds > 1 else ''} of {self.pairs} pairs at once"
        if self.interval is not None:
            over = f"95% interval {self.interval[0]:.1%} to {self.interval[1]:.1%} over {over}"
        parts = [
            f"effective bisection bandwidth {self.mb_s:.4g} MB/s a pair, {self.share:.1%} of the"
            f" line rate ({over}; the worst {self.worst:.1%})"
        ]
        if self.within is not None and self.across is not None:
            parts.append(f"pairs below one leaf {self.within:.1%}, across leaves {self.across:.1%}")
        return "; ".join(parts)


def of_rounds(
    rounds: PairRounds, line_rate_mb_s: float | None, settings: DisturbanceSettings
) -> Bisection | None:
    """Return the bisection bandwidth of a job's rounds; None without a usable round.

    Only undisturbed rounds count in which all nodes but at most one were measured at once.
    ``line_rate_mb_s``: of a node's link.
    """
    if not line_rate_mb_s:
        return None
    whole = len(rounds.nodes) // 2
    counted = [
        one
        for one in rounds.launches
        if not (one.alone or one.both_ways)
        and len(one.pairs) == whole >= LEAST_PAIRS
        and not disturbed(one.loads, settings)
    ]
    if not counted:
        return None
    rates = [fmean(pair.rate_mb_s for pair in one.pairs) for one in counted]
    shares = [rate / line_rate_mb_s for rate in rates]
    leaf = {node: name for name, nodes in rounds.leaves.items() for node in nodes}
    below = _of_pairs(counted, leaf, together=True)
    between = _of_pairs(counted, leaf, together=False)
    return Bisection(
        median(rates),
        median(shares),
        interval.of_median(shares),
        min(shares),
        len(counted),
        whole,
        median(below) / line_rate_mb_s if below else None,
        median(between) / line_rate_mb_s if between else None,
    )


def _of_pairs(
    launches: Sequence[PairLaunch], leaf: Mapping[str, str], *, together: bool
) -> list[float]:
    """Return the rates in MB/s of pairs below one leaf, or across two."""
    return [
        pair.rate_mb_s
        for one in launches
        for pair in one.pairs
        if all(node in leaf for node in pair.nodes)
        and (leaf[pair.nodes[0]] == leaf[pair.nodes[1]]) is together
    ]
