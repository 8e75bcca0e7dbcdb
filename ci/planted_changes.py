"""Changes to plant into a session's measured cases.

``plants`` are the rows of docs/validation/power.md; ``growing`` have sizes from mild to gross,
to see from which size on they are found.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from netproof.benchmarks import registry
from netproof.measurement.case import Case
from netproof.session.measured import Measured
from netproof.site.matrix import Matrix
from netproof.verdict import power
from netproof.verdict.power import Changed

KIB = 1024

LESS_BANDWIDTH = (0.05, 0.1, 0.2)
"""Lost shares of the bandwidth; the references' tolerance is half of each."""

FACTORS = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
"""Factors on the time by growing changes."""


@dataclass(frozen=True)
class Plant:
    """A change: the cases concerned, and its effect on the curves of their launches.

    ``floor``: least tolerance of references derived from the other sessions; None: the references
    as they stand. ``launches``: number of first launches that have it; None for all.
    """

    name: str
    concerns: Callable[[Case], bool]
    changing: Callable[[Measured], Changed]
    floor: float | None = None
    launches: int | None = None

    def into(self, measured: Measured) -> Measured:
        """Return a case's measurement with the change."""
        changed = self.changing(measured)
        launches = [
            dataclasses.replace(one, curve=changed(one.curve))
            if self.launches is None or place < self.launches
            else one
            for place, one in enumerate(measured.launches)
        ]
        return measured.with_launches(launches)


def longer(times: Callable[[int], float]) -> Callable[[Measured], Changed]:
    """Return a change by which messages take a factor of their size longer."""
    return lambda measured: (
        lambda curve: power.with_times(
            curve,
            [time * times(size) for size, time in zip(curve.sizes, curve.time_us, strict=True)],
        )
    )


def less_bandwidth(share: float) -> Callable[[Measured], Changed]:
    """Return a change by which each byte takes longer, so that large messages lose ``share``.

    Functions without bytes, such as Barrier, stay as they are.
    """

    def changing(measured: Measured) -> Changed:
        if not any(measured.curve.sizes):
            return lambda curve: curve
        return power.slower_by_the_byte(measured, 1 / (1 - share))

    return changing


def asking_above(size: int) -> Callable[[Measured], Changed]:
    """Return a change by which messages above ``size`` are announced: two more latencies."""

    def changing(measured: Measured) -> Changed:
        more = 2 * (measured.landmarks.latency_us or 0.0)
        return lambda curve: power.with_times(
            curve,
            [
                time + (more if one > size else 0.0)
                for one, time in zip(curve.sizes, curve.time_us, strict=True)
            ],
        )

    return changing


def _imb(case: Case) -> bool:
    return case.benchmark == "imb"


def _over(protocol: str) -> Callable[[Case], bool]:
    def concerns(case: Case) -> bool:
        return (case.benchmark, case.function, case.path) == ("netpipe", protocol, "inter-node")

    return concerns


def _in_turns(case: Case) -> bool:
    return _between(case) and registry.function_of(case).ping_pong


def _at(size: int, times: float) -> Callable[[int], float]:
    return lambda other: times if other == size else 1.0


def _everywhere(times: float) -> Callable[[int], float]:
    return lambda size: times


def _below(limit: int, times: float) -> Callable[[int], float]:
    return lambda size: times if size < limit else 1.0


def _between(case: Case) -> bool:
    return case.path == "inter-node"


def plants(matrix: Matrix) -> tuple[Plant, ...]:
    """Return the table's changes for the configurations of a matrix.

    A change in one MPI library is in the last one whose collectives were measured.
    """
    last, of_baseline = _last_with_imb(matrix), _of_baseline(matrix)

    return (
        Plant(
            "IMB of the score baseline 3 times slower",
            lambda case: _imb(case) and of_baseline(case),
            longer(_everywhere(3)),
        ),
        Plant(
            "every latency below 1 KiB 5 times longer",
            _between,
            longer(_below(KIB, 5)),
        ),
        Plant(
            "Alltoall 4 times slower from 32 to 64 KiB, one MPI",
            lambda case: _imb(case) and case.function == "Alltoall" and case.environment == last,
            longer(lambda size: 4.0 if 32 * KIB <= size <= 64 * KIB else 1.0),
        ),
        Plant("NetPIPE over MPI 20 times slower at 2 KiB", _over("mpi"), longer(_at(2 * KIB, 20))),
        Plant("NetPIPE over MPI 6 times slower at 16 KiB", _over("mpi"), longer(_at(16 * KIB, 6))),
        Plant("every latency below 1 KiB doubled", _between, longer(_below(KIB, 2))),
        Plant(
            "an eager limit of 64 bytes, one MPI",
            lambda case: case.environment == last and _in_turns(case),
            asking_above(64),
        ),
        *(
            Plant(
                f"{share:.0%} less bandwidth between nodes",
                _between,
                less_bandwidth(share),
                floor=share / 2,
            )
            for share in LESS_BANDWIDTH
        ),
        Plant(
            "every latency below 1 KiB doubled",
            _between,
            longer(_below(KIB, 2)),
            floor=0.5,
        ),
    )


def growing(matrix: Matrix) -> dict[str, tuple[Plant, ...]]:
    """Return changes by kind, each with all ``FACTORS``, for the references as they stand."""
    last, of_baseline = _last_with_imb(matrix), _of_baseline(matrix)
    kinds: dict[str, Callable[[float], Plant]] = {
        "every latency below 1 KiB": lambda times: Plant("", _between, longer(_below(KIB, times))),
        "each byte between nodes": lambda times: Plant("", _between, less_bandwidth(1 - 1 / times)),
        "NetPIPE over TCP at 16 KiB": lambda times: Plant(
            "", _over("tcp"), longer(_at(16 * KIB, times))
        ),
        "NetPIPE over MPI at 2 KiB": lambda times: Plant(
            "", _over("mpi"), longer(_at(2 * KIB, times))
        ),
        "NetPIPE over MPI, one way": lambda times: Plant(
            "",
            lambda case: _over("mpi")(case) and case.direction == "oneway",
            longer(_everywhere(times)),
        ),
        "IMB of the score baseline": lambda times: Plant(
            "", lambda case: _imb(case) and of_baseline(case), longer(_everywhere(times))
        ),
        "Alltoall from 32 to 64 KiB, one MPI": lambda times: Plant(
            "",
            lambda case: _imb(case) and case.function == "Alltoall" and case.environment == last,
            longer(lambda size: times if 32 * KIB <= size <= 64 * KIB else 1.0),
        ),
        "half of all messages, the longer ones": lambda times: Plant(
            "", _between, longer(lambda size: times if size > 4 * KIB else 1.0)
        ),
        "the first launch of each case": lambda times: Plant(
            "", _between, longer(_everywhere(times)), launches=1
        ),
    }
    return {
        name: tuple(
            dataclasses.replace(made(times), name=f"{name}, {times:g} times") for times in FACTORS
        )
        for name, made in kinds.items()
    }


def _last_with_imb(matrix: Matrix) -> str:
    environments = [case.environment for case in matrix.cases if _imb(case)]
    return environments[-1] if environments else ""


def _of_baseline(matrix: Matrix) -> Callable[[Case], bool]:
    baseline = matrix.baseline
    return lambda case: (
        baseline is not None
        and (case.partition, case.environment) == (baseline.partition, baseline.environment)
    )
