"""Rounds of pairs of few nodes or with a slow one, out of those of a job of four."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from netproof.measurement.case import Curve
from netproof.session.measured import Launch


def among(launches: Iterable[Launch], nodes: Sequence[str]) -> Iterator[Launch]:
    """A launch for each pair of these nodes alone."""
    for one in launches:
        for pair, curve in zip(one.pairs, one.curves, strict=True):
            if {*pair} <= {*nodes}:
                places = [one.ranks.index(node) for node in pair]
                yield dataclasses.replace(
                    one,
                    pairs=(pair,),
                    curves=(curve,),
                    ranks=pair,
                    used={name: tuple(it[at] for at in places) for name, it in one.used.items()},
                    loads=tuple(load for load in one.loads if load.node in pair),
                )


def slowed(launch: Launch, node: str, large: float, small: float = 1.0) -> Launch:
    """Return a launch in which a node's small and large messages take so many times as long."""

    def changed(nodes: tuple[str, str], curve: Curve) -> Curve:
        *first, last = curve.time_us
        times = (*(small * time for time in first), large * last)
        return dataclasses.replace(curve, time_us=times) if node in nodes else curve

    return dataclasses.replace(launch, curves=tuple(map(changed, launch.pairs, launch.curves)))
