"""What pairs of nodes measured in the launches of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from netproof.errors import NetproofError

Pair = tuple[str, str]


class PairQuantity(StrEnum):
    """What a pair measures: the time of a small message in µs, the rate of a large one in MB/s.

    ``BOTH_WAYS``: the rate while both nodes send, which loads what pairs share as far as it can.
    """

    LATENCY = "latency"
    RATE = "rate"
    BOTH_WAYS = "rate both ways"

    @property
    def of_nodes(self) -> bool:
        """Whether nodes are judged by it, and not only what several pairs share."""
        return self is not PairQuantity.BOTH_WAYS


@dataclass(frozen=True)
class PairObservation:
    """What one pair of nodes measured in one launch.

    ``round``: the launch's number, the same for all of its pairs; ``time_us`` of a small message
    and ``rate_mb_s`` of a large one, None where it was not measured; ``alone``: all other nodes
    were silent; ``disturbed``: something else loaded its nodes, so that it says nothing of the
    network; ``both_ways_mb_s``: the rate in each direction while both nodes send. Raises
    NetproofError where a pair is one node, nothing was measured, or a figure is not above 0 and
    finite.
    """

    round: int
    nodes: Pair
    time_us: float | None = None
    rate_mb_s: float | None = None
    alone: bool = False
    disturbed: bool = False
    both_ways_mb_s: float | None = None

    def __post_init__(self) -> None:
        fault = None
        if self.nodes[0] == self.nodes[1]:
            fault = "a pair is two different nodes"
        elif self.time_us is None and self.rate_mb_s is None and self.both_ways_mb_s is None:
            fault = "neither a time nor a rate"
        for name in ("time_us", "rate_mb_s", "both_ways_mb_s"):
            value = getattr(self, name)
            if fault is None and value is not None and not 0 < value < math.inf:
                fault = f"{name} is {value}, and has to be above 0 and finite"
        if fault is not None:
            raise NetproofError(f"round {self.round}, {self.nodes[0]} – {self.nodes[1]}: {fault}")

    def slowness(self, quantity: PairQuantity) -> float | None:
        """The logarithm of the time, or of one over the rate: larger is slower."""
        if quantity is PairQuantity.LATENCY:
            return None if self.time_us is None else math.log(self.time_us)
        rate = self.rate_mb_s if quantity is PairQuantity.RATE else self.both_ways_mb_s
        return None if rate is None else -math.log(rate)
