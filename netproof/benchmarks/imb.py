"""Intel MPI Benchmarks (IMB-MPI1): the functions that are run, and how."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from netproof.benchmarks.collectives import LEAST_CROSSING, between
from netproof.benchmarks.imb_reading import is_one, read
from netproof.benchmarks.imb_tables import MESSAGE_RATE, ImbOutput
from netproof.benchmarks.interface import (
    BOTH_DIRECTIONS,
    Function,
    MpiBenchmark,
)
from netproof.benchmarks.message_sizes import ListedSizes
from netproof.errors import ParseError
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve

FIGURES = r"^ +[0-9]+ +[0-9]+(\.[0-9]+)?( |$)"
"""Beginning of a row of figures, for ``grep -E``: the run came at least that far."""


DEFAULT_WINDOW = 64

_WINDOW_ASKED = re.compile(r"^#.* -window_size ([0-9]{1,9})\b", re.MULTILINE)


def _to_next(nodes: Sequence[str]) -> int:
    return between(zip(nodes, [*nodes[1:], nodes[0]], strict=True))


def _to_other_half(nodes: Sequence[str]) -> int:
    half = len(nodes) // 2
    return between(zip(nodes[:half], nodes[half : 2 * half], strict=True))


CROSSING: Mapping[str, Callable[[Sequence[str]], int]] = {
    "PingPong": lambda nodes: 2 * _to_other_half(nodes),
    "PingPing": lambda nodes: 2 * _to_other_half(nodes),
    "Sendrecv": _to_next,
    "Exchange": lambda nodes: 2 * _to_next(nodes),
    "Uniband": _to_other_half,
    "Biband": lambda nodes: 2 * _to_other_half(nodes),
    **LEAST_CROSSING,
}
"""The least messages that cross between nodes in a call, from the node of each rank."""


def window(printed: str) -> int:
    """Return the messages that Uniband and Biband send for each one that they count."""
    asked = _WINDOW_ASKED.search(printed)
    return int(asked[1]) if asked else DEFAULT_WINDOW


def _single(name: str, *, default: bool = False, ping_pong: bool = False) -> Function:
    """Return a function between two ranks, whose rate is that of one message."""
    return Function(
        "imb", name, pair=True, rated=True, single=True, default=default, ping_pong=ping_pong
    )


def _collective(name: str, least_bytes: int = 1, *, default: bool = False) -> Function:
    return Function("imb", name, least_bytes=least_bytes, default=default, collective=name)


def _both_ways(
    name: str, *, pairs: bool = False, in_turn: float = 1.0, default: bool = False
) -> Function:
    """Return a function that counts both directions: Sendrecv two messages, Exchange four."""
    factor = BOTH_DIRECTIONS
    return Function(
        "imb",
        name,
        pairs=pairs,
        default=default,
        rated=True,
        link_factor=factor,
        in_turn=in_turn,
    )


class Imb(MpiBenchmark):
    """Functions of IMB-MPI1; link factors follow its User Guide's "Bandwidth calculation"."""

    number = 2
    name = "imb"
    label = "IMB"
    output_of = "IMB-MPI1"
    features: ClassVar[Mapping[str, str]] = {"imb": "Intel MPI Benchmarks (IMB-MPI1)"}
    figures = FIGURES
    pairs_function = "PingPong"
    sizes = ListedSizes
    several_pairs = ("-multi", "1")
    both_ways_function = "PingPing"
    stream_function = "Uniband"
    stream_window = DEFAULT_WINDOW
    arguments_meaning = "further arguments of IMB-MPI1, for instance its time limits"
    few_calls = ("-iter", "10")
    functions = (
        _single("PingPong", default=True, ping_pong=True),
        _single("PingPing"),
        _both_ways("Sendrecv", default=True),
        _both_ways("Exchange", in_turn=2.0),
        Function("imb", "Uniband", pairs=True, rated=True),
        _both_ways("Biband", pairs=True),
        _collective("Bcast", default=True),
        _collective("Allgather", default=True),
        _collective("Allgatherv"),
        _collective("Gather"),
        _collective("Gatherv"),
        _collective("Scatter"),
        _collective("Scatterv"),
        _collective("Alltoall", default=True),
        _collective("Alltoallv"),
        _collective("Reduce", 4),
        _collective("Reduce_scatter", 4, default=True),
        _collective("Reduce_scatter_block", 4),
        _collective("Allreduce", 4, default=True),
        Function("imb", "Barrier", least_bytes=None, default=True),
    )

    def program(self, function: str) -> str:
        """Return the one program that has all functions."""
        return "IMB-MPI1"

    def command(
        self,
        function: Function,
        ranks: int,
        sizes: Sequence[int],
        size_file: str,
        arguments: Sequence[str],
    ) -> list[str]:
        """Return the command; ``-npmin`` avoids measurements on fewer ranks first."""
        listed = [] if function.least_bytes is None else ["-msglen", size_file]
        return ["IMB-MPI1", "-npmin", str(ranks), *listed, *arguments, function.name]

    def read_launch(self, text: str, path: Path, case: Case) -> Curve:
        """Return the curve of the one table of the output."""
        output = read(text, str(path))
        if len(output.tables) != 1:
            found = ", ".join(f"{table.function} on {table.ranks}" for table in output.tables)
            raise ParseError(
                str(path), 0, "", f"one table was asked for, and there are: {found or 'none'}"
            )
        table = output.tables[0]
        if (table.function, table.ranks) != (case.function, case.ranks):
            raise ParseError(
                str(path),
                table.first_line,
                f"{table.function} on {table.ranks} ranks",
                f"{case.function} on {case.ranks} ranks was asked for",
            )
        return table.curve()

    def least_run(self) -> list[str]:
        """Return the command of one barrier on two ranks."""
        return self.start("Barrier", 2)

    def start(self, function: str, ranks: int) -> list[str]:
        """Return the command of one barrier on all ranks."""
        return ["IMB-MPI1", "-npmin", str(ranks), "-iter", "1", "Barrier"]

    def sent(
        self, case: Case, printed: str, said: str, nodes: Sequence[str]
    ) -> Mapping[int, int] | str:
        """Return each size's repetitions times the messages per call that cross between nodes."""
        rows = self.read(printed, "", bidirectional=False, repeated=True).tables[0].rows
        if case.function == "Barrier" or len(set(nodes)) == 1:
            return {}
        crossing = CROSSING[case.function](nodes)
        if case.function in MESSAGE_RATE:
            crossing *= window(printed)
        sent: Counter[int] = Counter()
        for row in rows:
            sent[row.size] += crossing * row.repetitions
        return sent

    def read_pairs(
        self, text: str, path: str, function: str, pairs: int
    ) -> tuple[list[Curve], int]:
        """Return the curves of ``-multi 1``'s tables, or of the one of a single pair.

        And the bytes that all pairs had to send between nodes.
        """
        tables = read(text, path).tables
        expected = [None] if pairs == 1 else list(range(pairs))
        if [table.group for table in tables] != expected or any(
            table.function != function for table in tables
        ):
            reason = f"{function} of {pairs} pairs was asked for, and is not there"
            raise ParseError(path, 0, "", reason)
        crossing = CROSSING[function](("one", "other"))
        if function in MESSAGE_RATE:
            crossing *= window(text)
        moved = sum(row.size * row.repetitions for table in tables for row in table.rows)
        return [table.curve() for table in tables], crossing * moved

    def read_repetitions(
        self, text: str, path: str, function: str, ranks: int, size: int
    ) -> tuple[float, ...]:
        """Return the time in µs of each row of one size, in the order of measurement.

        Times as ``ImbRow.time_us``. ParseError where the output has another function, other ranks
        or another size.
        """
        output = self.read(text, path, bidirectional=False, repeated=True)
        table = output.table(function, ranks)
        for failure in table.failures:
            raise ParseError(path, failure.line, failure.text, f"{function} failed")
        for row in table.rows:
            if row.size != size or row.defects:
                reason = f"{size} bytes were asked for, without a defect"
                raise ParseError(path, row.line, f"{row.size} bytes", reason)
        return tuple(row.time_us for row in table.rows)

    def is_one(self, text: str) -> bool:
        """Check for IMB's name."""
        return is_one(text)

    def read(
        self, text: str, path: str, *, bidirectional: bool, repeated: bool = False
    ) -> ImbOutput:
        """Return the tables; each function has its own direction.

        ``repeated``: the same size may have been measured several times in a row.
        """
        return read(text, path, repeated=repeated)


BENCHMARK = Imb()
