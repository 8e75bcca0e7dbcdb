"""Criterion 18: whether benchmarks that send the same message between the same two ranks agree.

NetPIPE over MPI, PingPong of IMB and latency of OMB send one message there and back, by one library
and over one link. Where one of them takes twice as long as another, that is not the network as it
is: something was in the way of one of them, or they did not measure the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from netproof.criteria.companions import beside, worst_of
from netproof.criteria.findings import Bounds, Finding, common_sizes, finding_at, undefined
from netproof.criteria.interface import Companion, Criterion
from netproof.criteria.points import times_of


@dataclass(frozen=True)
class AgreementSettings(Bounds):
    """``warn`` and ``fail`` above this multiple of another benchmark's time.

    ``launches``: of either side, below which nothing is asserted: they are of different jobs, and
    no further launches are made of them.
    """

    warn: float | None = None
    fail: float | None = 2.0
    launches: int = 3
    reached: ClassVar[Callable[[float, float], bool]] = operator.gt


def agreement(
    own: Companion,
    others: Mapping[str, Companion],
    *,
    where: str,
    settings: AgreementSettings = AgreementSettings(),
) -> Finding | None:
    """How many times as long as others a benchmark takes for the same message, the most of all.

    A pure number, 1 where all take the same. ``others``: of the same configuration, by the labels
    of their cases. A size fails where the whole interval of its ratio is above the bound, and is
    shown where only a part of it is. None without another benchmark.
    """
    if not others:
        return None
    mine = times_of(own.curve, settings)
    if mine.fault is not None:
        return undefined("agreement", where, mine.fault)
    compared = []
    for label, other in others.items():
        theirs = times_of(other.curve, settings)
        if theirs.fault is not None:
            return undefined("agreement", where, f"of {label}, {theirs.fault}")
        compared += beside((own, mine), (other, theirs), label, settings)
    if not compared:
        return undefined("agreement", where, "no other benchmark has a size in common with it")
    worst = worst_of(compared)
    spoken = worst.interval_in_words(settings.launches)
    found = finding_at(
        "agreement",
        worst.level,
        worst.bound,
        where,
        worst.ratio,
        f"a message of {worst.ratio.size} bytes took {worst.times_us[0]:.4g} µs,"
        f" {worst.ratio.value:.3g} times ({spoken}) the {worst.times_us[1]:.4g} µs of"
        f" {worst.label}, which sends the same",
        "look at what else ran during that job, and at the arguments of both benchmarks",
    )
    sizes = sorted({one.ratio.size for one in compared})
    return replace(found, against=worst.label, interval=worst.interval, common=common_sizes(sizes))


CRITERION = Criterion(18, {"agreement": AgreementSettings()}, {"agreement": "agreement"})
