"""Rounds of pairs of a job of few nodes, out of those of a job of four."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from netproof.session.pair_rounds import PairLaunch


def among(launches: Iterable[PairLaunch], nodes: Sequence[str]) -> Iterator[PairLaunch]:
    """A launch for each pair of these nodes alone."""
    for one in launches:
        for pair, curve in zip(one.pairs, one.curves, strict=True):
            if {*pair} <= {*nodes}:
                ranks = {use.node: use for use in one.ranks}
                yield dataclasses.replace(
                    one,
                    pairs=(pair,),
                    curves=(curve,),
                    ranks=tuple(
                        dataclasses.replace(ranks[node], rank=rank)
                        for rank, node in enumerate(pair)
                    ),
                    loads=tuple(load for load in one.loads if load.node in pair),
                )
