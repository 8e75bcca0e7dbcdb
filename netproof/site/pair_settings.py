"""Settings of a site for rounds of pairs, with defaults."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ClassVar, TypeVar

from pydantic import AfterValidator, Field

from netproof.intake.models import Several, Written

M = TypeVar("M", bound=Written)

_MEANINGS = tomllib.loads(Path(__file__).with_name("keys.toml").read_bytes().decode())


def meaning(part: str) -> Callable[[type[M]], type[M]]:
    """Return what gives the fields of a model their meaning, by a part of ``keys.toml``."""

    def given(model: type[M]) -> type[M]:
        for name, text in _MEANINGS[part].items():
            model.model_fields[name].description = text
        return model

    return given


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
Words = Annotated[tuple[_Word, ...], Field(strict=False)]


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


@meaning("pairs")
class PairSettings(Written):
    """Rounds of pairs on a partition."""

    slower: _Share = 0.10
    slower_latency: _Share = 0.25
    error: _Share = 0.001
    missed: _Share = 0.01
    rounds: Annotated[int, AfterValidator(_rounds)] = 16
    quantities: Several[Annotated[PairQuantity, Field(strict=False), AfterValidator(_of_nodes)]] = (
        tuple(one for one in PairQuantity if one.of_nodes)
    )
    bisection: _Share | None = None
    together: Annotated[int, Field(ge=0)] = 0
    arguments: Words = ()
    stream_arguments: Words = ("-iter", "8")
    environments: Words = ()

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
