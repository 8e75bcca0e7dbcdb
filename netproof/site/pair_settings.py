"""Settings of a site for rounds of pairs, with defaults."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from netproof.intake.models import Several, Written


class PairQuantity(StrEnum):
    """Time of a small message in µs, or rate of a large one in MB/s.

    ``BOTH_WAYS``: the rate while both nodes send, which loads what pairs share as far as it can.
    """

    LATENCY = "latency"
    RATE = "rate"
    BOTH_WAYS = "rate both ways"

    @property
    def of_nodes(self) -> bool:
        """True if nodes are judged by it, and not only what several pairs share."""
        return self is not PairQuantity.BOTH_WAYS


_Share = Annotated[float, Field(gt=0, lt=1, title="a share between 0 and 1")]
_Word = Annotated[str, Field(pattern=r"^\S+$", title="a word")]


def _of_nodes(quantity: PairQuantity) -> PairQuantity:
    if not quantity.of_nodes:
        raise ValueError(
            f"found {quantity.value!r}, expected latency or rate: of nodes it says nothing"
        )
    return quantity


def _rounds(count: int) -> int:
    if count < 0 or count == 1:
        raise ValueError(f"found {count}, expected 2 or more, or 0 for no rounds of pairs")
    return count


class PairSettings(Written):
    """Rounds of pairs on a partition."""

    slower: _Share = Field(
        0.10,
        description="share by which a node's rate has to be lower than the others' to count",
    )
    slower_latency: _Share = Field(
        0.25,
        description="the same of one over its latency: 0.25 is a third longer",
    )
    error: _Share = Field(0.001, description="share of healthy runs that accuse anyone, at most")
    missed: _Share = Field(
        0.01,
        description="probability that a node which is slower by `slower` is cleared",
    )
    rounds: Annotated[int, AfterValidator(_rounds)] = Field(
        16, description="most rounds of mode `quick`; 0: nodes are not measured in pairs"
    )
    quantities: Several[Annotated[PairQuantity, Field(strict=False), AfterValidator(_of_nodes)]] = (
        Field(
            tuple(one for one in PairQuantity if one.of_nodes),
            description="what nodes have to be cleared by: latency, rate; from a doubling on the"
            " other accuses too",
        )
    )
    bisection: _Share | None = Field(
        None,
        description="share of the line rate that a pair has to get while all pairs measure at once;"
        " by default it is shown",
    )
    together: Annotated[int, Field(ge=0)] = Field(
        0, description="how many pairs measure at once at most; 0 for all"
    )
    arguments: Annotated[tuple[_Word, ...], Field(strict=False)] = Field(
        (), description="arguments of IMB-MPI1 here, in place of the partition's"
    )
    stream_arguments: Annotated[tuple[_Word, ...], Field(strict=False)] = Field(
        ("-iter", "8"), description="arguments of IMB-MPI1 for streams of accused nodes"
    )
    environments: Annotated[tuple[_Word, ...], Field(strict=False)] = Field(
        (), description="environments that make rounds of pairs, each its own; by default one"
    )

    disturbed_share: ClassVar[float] = 0.01
    """Expected share of disturbed measurements, a tenth of that of noise wider than the rest."""

    resolution: ClassVar[float] = 0.001
    """Least relative difference that is believed."""

    def counts(self, quantity: PairQuantity) -> float:
        """Return the least slowness of a quantity that counts, a logarithm.

        In a quantity that is not among ``quantities`` a doubling counts.
        """
        latency = quantity is PairQuantity.LATENCY
        counts = -math.log1p(-(self.slower_latency if latency else self.slower))
        return counts if self.clears(quantity) else max(counts, math.log(2))

    def clears(self, quantity: PairQuantity) -> bool:
        """Return whether nodes have to be cleared by a quantity; the others only accuse."""
        return quantity in self.quantities or not quantity.of_nodes


DEFAULTS = PairSettings.of_site({})
