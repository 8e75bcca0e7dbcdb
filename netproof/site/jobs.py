"""The Slurm jobs that a matrix takes: each measures several cases, and runs whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass

from netproof.benchmarks import registry
from netproof.measurement.case import Case
from netproof.site.matrix import Matrix


@dataclass(frozen=True, order=True)
class PlannedJob:
    """One job of ``netproof.run.rfm``, by what it measures.

    ``benchmark``: its name. ``ranks``: of the job; the functions for two ranks go
    with the least count. ``default``: whether its functions are those of a plain run; the others
    have a job of their own.
    """

    partition: str
    environment: str
    benchmark: str
    ranks: int
    default: bool = True

    def __str__(self) -> str:
        return f"{self.partition} {self.environment} {self.what()}"

    def what(self) -> str:
        """What is measured, whatever the configuration: ``IMB on 16 ranks``."""
        return registry.named(self.benchmark).job_what(self.ranks, default=self.default)


def job_of(case: Case, fewest_ranks: int) -> PlannedJob:
    """The job that measures a case; ``fewest_ranks``: the least rank count of its partition."""
    where = (case.partition, case.environment)
    if registry.of(case).by_protocol:
        return PlannedJob(*where, case.benchmark, 2)
    function = registry.function_of(case)
    ranks = fewest_ranks if function.pair else case.ranks
    return PlannedJob(*where, case.benchmark, ranks, function.default)


def jobs(matrix: Matrix) -> dict[PlannedJob, tuple[Case, ...]]:
    """Every job that the matrix takes, to its cases; both in the matrix' order."""
    found: dict[PlannedJob, list[Case]] = {}
    for case in matrix.cases:
        fewest = min(matrix.partitions[case.partition].rank_counts)
        found.setdefault(job_of(case, fewest), []).append(case)
    return {job: tuple(cases) for job, cases in found.items()}


def nodes_of(job: PlannedJob, matrix: Matrix) -> int:
    """How many nodes the job asks Slurm for."""
    if registry.named(job.benchmark).by_protocol:
        return 2
    return job.ranks // matrix.partitions[job.partition].ranks_per_node


def domain_of(job: PlannedJob, matrix: Matrix) -> str:
    """The contention domain, in which one job runs at a time."""
    return matrix.partitions[job.partition].contention_domain
