"""Rounds of pairs of a job of few nodes, out of those of a job of four."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

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
