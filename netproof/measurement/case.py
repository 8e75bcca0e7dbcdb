"""A case: an expected or completed measurement, and its configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from netproof.errors import NetproofError

WHAT: dict[str, Callable[[Case], str]] = {}
"""A case's name by benchmark; ``netproof.benchmarks.registry`` fills it."""


@dataclass(frozen=True, order=True)
class Case:
    """One (configuration, benchmark, function, ranks, ranks per node, path, direction).

    ``partition`` is ReFrame's, without the system; ``benchmark`` is the name of one of
    ``netproof.benchmarks``; ``function`` one of its functions, for NetPIPE the protocols ``tcp``
    and ``mpi``; ``path`` is ``inter-node`` or ``intra-node``; ``direction`` is ``oneway`` or
    ``bidirectional`` for NetPIPE, and ``oneway`` where functions define theirs.
    """

    system: str
    partition: str
    environment: str
    benchmark: str
    function: str
    ranks: int
    ranks_per_node: int
    path: str = "inter-node"
    direction: str = "oneway"

    def __str__(self) -> str:
        return f"{self.system}:{self.partition} {self.environment} {self.what()}"

    def what(self) -> str:
        """Return the name of the measurement without configuration: ``IMB Alltoall 16 ranks``.

        Raise NetproofError for an unknown benchmark.
        """
        if self.benchmark not in WHAT:
            raise NetproofError(
                f"{self.benchmark!r} is no benchmark; those are {', '.join(WHAT) or 'not loaded'}"
            )
        return WHAT[self.benchmark](self)

    def key(self) -> tuple[str, str, str, str, str, int, str, str]:
        """Return the key of a case within a session; the partition implies the ranks per node."""
        return (
            self.system,
            self.partition,
            self.environment,
            self.benchmark,
            self.function,
            self.ranks,
            self.path,
            self.direction,
        )
