"""Tables of IMB-MPI1, and its functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from netproof.benchmarks.fixed import UNITS
from netproof.benchmarks.interface import (
    Output,
    Printed,
)
from netproof.errors import ParseError
from netproof.measurement.curve import Curve
from netproof.measurement.units import bandwidth_mb_s

MEGA = 10**6

SMALLEST_TIMED_BYTES = 4
"""Size below which a collective may do nothing at all, and IMB prints a time of 0.00."""

POINT_TO_POINT = {
    "PingPong": 1,
    "PingPongSpecificSource": 1,
    "PingPongAnySource": 1,
    "PingPing": 1,
    "PingPingSpecificSource": 1,
    "PingPingAnySource": 1,
    "Sendrecv": 2,
    "Exchange": 4,
}
"""Messages per call that a rate counts."""

SINGLE_TRANSFER = frozenset(name for name in POINT_TO_POINT if name.startswith("PingP"))

MESSAGE_RATE = frozenset({"Uniband", "Biband"})

REDUCTIONS = frozenset(
    {"Reduce", "Reduce_local", "Reduce_scatter", "Reduce_scatter_block", "Allreduce"}
)

COLLECTIVE = REDUCTIONS | {
    "Bcast",
    "Allgather",
    "Allgatherv",
    "Gather",
    "Gatherv",
    "Scatter",
    "Scatterv",
    "Alltoall",
    "Alltoallv",
}

LARGEST_ELEMENT_BYTES = 16

FUNCTIONS = frozenset(POINT_TO_POINT) | MESSAGE_RATE | COLLECTIVE | {"Barrier"}


@dataclass(frozen=True)
class ImbRow:
    """One size of a table: bytes, µs, and the printed rate in the file's own megabytes per second.

    ``t_us`` in tables with one time column, ``t_min_us``, ``t_max_us`` and ``t_avg_us`` in the
    others, ``messages_s`` (messages per second, over all pairs) for Uniband and Biband; ``defects``
    where IMB was built to check its results. None where a table has no such column.
    """

    line: int
    size: int
    repetitions: int
    t_us: float | None = None
    t_min_us: float | None = None
    t_max_us: float | None = None
    t_avg_us: float | None = None
    printed_bandwidth: float | None = None
    messages_s: float | None = None
    defects: float | None = None

    @property
    def time_us(self) -> float:
        """Return the time per call in µs: of the slowest rank, or of one message of a rate."""
        if self.messages_s is not None:
            return 1e6 / self.messages_s
        time = self.t_us if self.t_us is not None else self.t_max_us
        assert time is not None
        return time


@dataclass(frozen=True)
class FailedSize:
    """A size that IMB could not measure, with IMB's message (``text``)."""

    line: int
    size: int
    text: str


@dataclass(frozen=True)
class ImbTable:
    """One function at one number of ranks.

    ``ranks`` is IMB's #processes, with ``-multi`` those of one group; ``groups``: how many ran at
    once; ``group``: the rows' group, None where the rows cover all; ``waiting``: ranks that took no
    part. ``first_line`` is the title's, ``last_line`` the last row's.
    """

    path: str
    function: str
    ranks: int
    waiting: int
    groups: int
    group: int | None
    rows: tuple[ImbRow, ...]
    failures: tuple[FailedSize, ...]
    first_line: int
    last_line: int

    @property
    def mode(self) -> str:
        """Return ``multi`` where several groups ran at once, else ``single``."""
        return "multi" if self.groups > 1 else "single"

    def curve(self) -> Curve:
        """Return times and bandwidths by size; ParseError for a failed size or a wrong result.

        Time is µs per call of the slowest rank (one way for PingPong), bandwidth MB/s (10⁶) from
        bytes and time; collectives and Barrier have no bandwidth. Tables that have them also give
        the fastest rank's time and the mean. For Uniband and Biband, µs per message is 1e6 over the
        message rate of all pairs together, and bandwidth is bytes times that rate.
        """
        for failure in self.failures:
            raise ParseError(
                self.path,
                failure.line,
                failure.text,
                f"{self.function} at {self.ranks} ranks failed at {failure.size} bytes",
            )
        for row in self.rows:
            if row.defects:
                raise ParseError(
                    self.path,
                    row.line,
                    f"defects {row.defects}",
                    f"{self.function} at {self.ranks} ranks moved wrong data at {row.size} bytes",
                )
        bandwidth = None
        if self.function in POINT_TO_POINT or self.function in MESSAGE_RATE:
            messages = POINT_TO_POINT.get(self.function, 1)
            bandwidth = tuple(bandwidth_mb_s(messages * row.size, row.time_us) for row in self.rows)
        ranged = all(row.t_max_us is not None for row in self.rows)
        return Curve(
            sizes=tuple(row.size for row in self.rows),
            time_us=tuple(row.time_us for row in self.rows),
            bandwidth_mb_s=bandwidth,
            time_min_us=tuple(row.t_min_us for row in self.rows) if ranged else None,
            time_avg_us=tuple(row.t_avg_us for row in self.rows) if ranged else None,
        )


@dataclass(frozen=True)
class ImbOutput(Output):
    """The output of one run of IMB-MPI1.

    ``megabyte`` is the bytes in its ``Mbytes/sec``; ``processes`` those it was started with;
    ``longest`` the largest message in bytes that it was to measure, None with a file of lengths.
    ``preamble`` and ``epilogue``: lines that the MPI library or the launcher printed before and
    after.
    """

    benchmark: ClassVar[str] = "imb"
    path: str
    version: str
    megabyte: int
    processes: int
    longest: int | None
    tables: tuple[ImbTable, ...]
    preamble: tuple[str, ...] = ()
    epilogue: tuple[str, ...] = ()

    def table(self, function: str, ranks: int) -> ImbTable:
        """Return the one table of ``function`` at ``ranks``; ParseError unless there is one."""
        found = [t for t in self.tables if (t.function, t.ranks) == (function, ranks)]
        if len(found) != 1:
            there = ", ".join(f"{t.function} at {t.ranks}" for t in self.tables)
            raise ParseError(
                self.path,
                found[1].first_line if found else 0,
                "",
                f"holds {len(found)} tables of {function} at {ranks} ranks, not one ({there})",
            )
        return found[0]

    def printed(self) -> list[Printed]:
        """Return a curve for each table."""
        return [
            Printed(
                table.function, table.ranks, table.curve, groups=table.groups, group=table.group
            )
            for table in self.tables
        ]

    def document(self, faults: list[str]) -> dict[str, Any]:
        """Return plain values for ``json``, with a sentence in ``faults`` for each failed table."""
        tables = []
        for table in self.tables:
            try:
                bandwidth = table.curve().bandwidth_mb_s
            except ParseError as fault:
                faults.append(str(fault))
                bandwidth = None
            tables.append(
                {
                    "function": table.function,
                    "ranks": table.ranks,
                    "waiting": table.waiting,
                    "groups": table.groups,
                    "group": table.group,
                    "mode": table.mode,
                    "lines": [table.first_line, table.last_line],
                    "sizes_bytes": [row.size for row in table.rows],
                    "repetitions": [row.repetitions for row in table.rows],
                    "time_us": [row.time_us for row in table.rows],
                    "time_min_us": _column(row.t_min_us for row in table.rows),
                    "time_avg_us": _column(row.t_avg_us for row in table.rows),
                    "bandwidth_mb_s": bandwidth,
                    "messages_s": _column(row.messages_s for row in table.rows),
                    "defects": _column(row.defects for row in table.rows),
                    "failures": [
                        {"line": f.line, "size_bytes": f.size, "text": f.text}
                        for f in table.failures
                    ],
                }
            )
        return {
            "file": self.path,
            "benchmark": "IMB-MPI1",
            "version": self.version,
            "printed_megabyte_bytes": self.megabyte,
            "processes": self.processes,
            "units": UNITS,
            "tables": tables,
            "preamble": self.preamble,
            "epilogue": self.epilogue,
        }


def _column(values: Iterable[float | None]) -> list[float | None] | None:
    """Return the values, or None where the table has no such column."""
    column = list(values)
    return column if any(value is not None for value in column) else None
