"""A case: what was or should be measured, and in which configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from netproof.errors import NetproofError

WHAT: dict[str, Callable[[Case], str]] = {}
"""What a case measures, in words, by benchmark; ``netproof.benchmarks.registry`` fills it."""


@dataclass(frozen=True, order=True)
class Case:
    """One (configuration, benchmark, function, ranks, ranks a node, path, direction).

    ``partition`` is ReFrame's, without the system; ``benchmark`` is the name of one of
    ``netproof.benchmarks``; ``function`` one of its functions, NetPIPE's being the protocols
    ``tcp`` and ``mpi``; ``path`` says ``between`` nodes or ``inside`` one; ``direction`` is
    ``oneway`` or ``bidirectional`` for NetPIPE, and ``oneway`` where functions define theirs.
    """

    system: str
    partition: str
    environment: str
    benchmark: str
    function: str
    ranks: int
    ranks_per_node: int
    path: str = "between"
    direction: str = "oneway"

    def __str__(self) -> str:
        return f"{self.system}:{self.partition} {self.environment} {self.what()}"

    def what(self) -> str:
        """What is measured, whatever the configuration: ``IMB Alltoall 16 ranks``.

        Raises NetproofError for a benchmark that is not known.
        """
        if self.benchmark not in WHAT:
            raise NetproofError(
                f"{self.benchmark!r} is no benchmark; those are {', '.join(WHAT) or 'not loaded'}"
            )
        return WHAT[self.benchmark](self)

    def key(self) -> tuple[str, str, str, str, str, int, str, str]:
        """What tells cases of a session apart; the ranks a node follow from the partition."""
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
