"""Criterion 19: whether a collective grows with the number of ranks, and as its work does.

On twice the ranks the messages on a node's link, or in a row from a rank, grow at most as with the
worst algorithm in use. Where the time grows by far more, the network or the library has a problem
that only many ranks show. Nor may the time shrink: fewer ranks have less to do, after the
guidelines of Träff, Gropp and Thakur.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from netproof.criteria.companions import AlongsideAnother, alongside, worst_of
from netproof.criteria.findings import Bounds, Finding, common_sizes, finding_at, undefined
from netproof.criteria.interface import Companion, Criterion
from netproof.criteria.points import times_of


@dataclass(frozen=True)
class GrowthSettings(Bounds):
    """``warn`` and ``fail`` above this multiple of what the ranks explain.

    ``launches``: the fewest of either side with which anything is asserted. They are of different
    jobs, and are not repeated.
    """

    warn: float | None = 4.0
    fail: float | None = 10.0
    launches: int = 3
    reached: ClassVar[Callable[[float, float], bool]] = operator.gt


def growth(
    own: Companion,
    fewer: Companion,
    *,
    where: str,
    against: str,
    explained: float,
    settings: GrowthSettings = GrowthSettings(),
) -> Finding:
    """Return how much a collective's time grows on more ranks, over what the ranks explain.

    A pure number, at most 1 where it grows as its work. ``fewer``: the same on fewer ranks, named
    ``against``; ``explained``: by how much its work grows, 1 or more. A size fails where the whole
    interval is above the bound, and is shown where only a part of it is.
    """

    def words(worst: AlongsideAnother) -> str:
        times = worst.times_us
        return (
            f"{worst.ratio.size} bytes took {times[0]:.4g} µs, {times[0] / times[1]:.3g} times the"
            f" {times[1]:.4g} µs of {against}; its ranks explain {explained:.3g} times, which"
            f" leaves {worst.ratio.value:.3g} times"
            f" ({worst.interval_in_words(settings.launches)})"
        )

    advice = (
        "look at congestion, at which algorithm the library takes on so many ranks, and at whether"
        " there are as many CPUs as ranks"
    )
    return _finding("growth", own, fewer, where, against, explained, settings, words, advice)


def monotony(
    own: Companion,
    more: Companion,
    *,
    where: str,
    against: str,
    settings: GrowthSettings = GrowthSettings(),
) -> Finding:
    """Return the largest ratio of a collective's time to that on more ranks, of all sizes.

    A pure number, at most 1 where time does not fall when ranks are added. ``more``: the same on
    more ranks, named ``against``. A size fails as in ``growth``.
    """

    def words(worst: AlongsideAnother) -> str:
        times = worst.times_us
        return (
            f"{worst.ratio.size} bytes took {times[0]:.4g} µs, {worst.ratio.value:.3g} times"
            f" ({worst.interval_in_words(settings.launches)}) the {times[1]:.4g} µs of {against},"
            " which has more to do"
        )

    advice = "look at the nodes of that job, and at which algorithm the library takes on few ranks"
    return _finding("monotony", own, more, where, against, 1.0, settings, words, advice)


def _finding(
    criterion: str,
    own: Companion,
    other: Companion,
    where: str,
    against: str,
    explained: float,
    settings: GrowthSettings,
    words: Callable[[AlongsideAnother], str],
    advice: str,
) -> Finding:
    """Compare a case with that on other ranks; ``words``: the worst size in words."""
    mine, theirs = times_of(own.curve, settings), times_of(other.curve, settings)
    for label, points in (("", mine), (f"of {against}, ", theirs)):
        if points.fault is not None:
            return undefined(criterion, where, f"{label}{points.fault}")
    compared = alongside((own, mine), (other, theirs), against, settings, explained)
    if not compared:
        return undefined(criterion, where, f"it has no size in common with {against}")
    worst = worst_of(compared)
    found = finding_at(
        criterion, worst.level, worst.bound, where, worst.ratio, words(worst), advice
    )
    sizes = sorted(one.ratio.size for one in compared)
    return replace(found, against=against, interval=worst.interval, common=common_sizes(sizes))


CRITERION = Criterion(
    19,
    {"growth": GrowthSettings(), "monotony": GrowthSettings()},
    {"growth": "growth", "monotony": "monotony"},
)
