"""The Slurm jobs that a matrix takes: each measures several cases, and runs whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass

from netproof.benchmarks import registry
from netproof.measurement.case import Case
from netproof.site.matrix import Matrix


@dataclass(frozen=True, order=True)
class PlannedJob:
    """One job of ``netproof.run.rfm``: what it measures on its ``ranks``.

    ``default``: whether its functions are those of a plain run; others have a job of their own.
    """

    partition: str
    environment: str
    benchmark: str
    ranks: int
    default: bool = True

    def __str__(self) -> str:
        return f"{self.partition} {self.environment} {self.what()}"

    def what(self) -> str:
        """Return the measurement without its configuration: ``IMB on 16 ranks``."""
        return registry.named(self.benchmark).job_what(self.ranks, default=self.default)


def job_of(case: Case, fewest_ranks: int) -> PlannedJob:
    """Return the job of a case; ``fewest_ranks``: the least rank count of its partition."""
    where = (case.partition, case.environment)
    if registry.of(case).by_protocol:
        return PlannedJob(*where, case.benchmark, 2)
    function = registry.function_of(case)
    ranks = fewest_ranks if function.pair else case.ranks
    return PlannedJob(*where, case.benchmark, ranks, function.default)


def jobs(matrix: Matrix) -> dict[PlannedJob, tuple[Case, ...]]:
    """Return every job of the matrix with its cases, both in the matrix' order."""
    found: dict[PlannedJob, list[Case]] = {}
    for case in matrix.cases:
        fewest = min(matrix.partitions[case.partition].rank_counts)
        found.setdefault(job_of(case, fewest), []).append(case)
    return {job: tuple(cases) for job, cases in found.items()}


def nodes_of(job: PlannedJob, matrix: Matrix) -> int:
    """Return how many nodes the job asks Slurm for."""
    if registry.named(job.benchmark).by_protocol:
        return 2
    return job.ranks // matrix.partitions[job.partition].ranks_per_node


def domain_of(job: PlannedJob, matrix: Matrix) -> str:
    """Return the contention domain, in which one job runs at a time."""
    return matrix.partitions[job.partition].contention_domain
