"""A case: what was or should be measured, and in which configuration."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Case:
    """One (configuration, benchmark, function, ranks, ranks a node, path, direction).

    ``partition`` is ReFrame's, without the system; ``benchmark`` is ``imb`` or ``netpipe``;
    ``function`` an IMB function, or NetPIPE's protocol ``tcp`` or ``mpi``; ``path`` says
    ``between`` nodes or ``inside`` one; ``direction`` is ``oneway`` or ``bidirectional`` for
    NetPIPE, and ``oneway`` for IMB, whose functions define theirs.
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
        """What is measured, whatever the configuration: ``IMB Alltoall 16 ranks``."""
        if self.benchmark == "netpipe":
            return f"NetPIPE {self.function} {self.path} {self.direction}"
        return f"IMB {self.function} {self.ranks} ranks"

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
