"""The expected matrix of a run: every case that a site's configuration and the checks require.

Slurm jobs measure it, in parts that a night may leave out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from netproof.benchmarks import registry
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.site import folders
from netproof.site.partition import (
    Partition,
    ScoreBaseline,
    score_baseline,
    tcp_environments,
)
from netproof.site.site import gather

NO_REASON = "not among its features"


@dataclass(frozen=True, order=True)
class Absence:
    """A benchmark that an environment of a partition lacks, with the site's reason, if any."""

    partition: str
    environment: str
    benchmark: str
    reason: str


@dataclass(frozen=True)
class Matrix:
    """The ``cases`` that have to run, and the declared ``absences``, which are reported, no fault.

    ``whole``: whether all partitions were requested; ``known``: the known flaws by environment;
    ``baseline``: None where its partition was not requested; ``retired``: (partition, environment)
    that the site no longer has; ``not_over_tcp``: environments whose MPI does not go over TCP;
    ``entries``, ``environments``: all of the system's partitions and environments, by name, as the
    site's file has them.
    """

    cases: tuple[Case, ...]
    absences: tuple[Absence, ...]
    whole: bool
    partitions: dict[str, Partition]
    known: dict[str, dict[str, str]]
    baseline: ScoreBaseline | None
    retired: frozenset[tuple[str, str]]
    not_over_tcp: frozenset[str] = frozenset()
    entries: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    environments: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    def configurations(self) -> frozenset[tuple[str, str]]:
        """Return every (partition, environment) that is to run."""
        return frozenset((case.partition, case.environment) for case in self.cases)


def of_site(asked: str, *, full: bool) -> tuple[str, str, dict[str, Any], Matrix]:
    """Return names of system and partition, the site's configuration, and the expected matrix.

    ``asked``: ``SYSTEM[:PARTITION]``; ``full``: as ``all_functions`` of ``matrix``.
    """
    name, _, partition = asked.partition(":")
    folder = folders.of_site()
    configuration = gather(folder)
    several = [partition] if partition else []
    try:
        expected = matrix(configuration, name, several, all_functions=full)
    except NetproofError as error:
        raise NetproofError(f"{folder}: {error}") from None
    return name, partition, configuration, expected


def matrix(
    configuration: dict[str, Any],
    system: str,
    partitions: Collection[str] = (),
    *,
    all_functions: bool = False,
) -> Matrix:
    """Return the matrix expected on ``system``, from the configuration by ``site.gather``.

    ``partitions``: all where it is empty; ``all_functions``: not only those of a plain run. Raises
    NetproofError for a system or a partition that the configuration does not have.
    """
    systems = {entry["name"]: entry for entry in configuration["systems"]}
    if system not in systems:
        raise NetproofError(
            f"the configuration has no system {system!r}; it has {', '.join(systems)}: source the"
            " activate of its folder"
        )
    entries = {entry["name"]: entry for entry in systems[system]["partitions"]}
    for name in partitions:
        if name not in entries:
            raise NetproofError(
                f"system {system} has no partition {name!r}; it has {', '.join(entries)}"
            )
    environments = {
        one["name"]: one for one in configuration["environments"] if system in one["target_systems"]
    }
    cases: list[Case] = []
    absent: list[Absence] = []
    asked = {name: entry for name, entry in entries.items() if not partitions or name in partitions}
    by_name = {name: Partition.model_validate(entry["extras"]) for name, entry in asked.items()}
    for name, entry in asked.items():
        partition = by_name[name]
        there = [
            (environment, environments[environment].get("features", []), extras)
            for environment in entry["environs"]
            for extras in [environments[environment]["extras"]]
        ]
        with_tcp = tcp_environments(there)
        for environment, features, extras in there:
            reasons = extras.get("absent", {})
            lacking = (one for one in registry.FEATURES if one not in features)
            reasons = {**reasons, **{one: reasons.get(one, NO_REASON) for one in lacking}}
            absent += [Absence(name, environment, *lacks) for lacks in reasons.items()]
            where = (system, name, environment)
            for benchmark in registry.STARTED:
                over_tcp = benchmark.over_tcp.values()
                cases += [
                    case
                    for case in benchmark.cases(
                        where,
                        partition.rank_counts,
                        partition.ranks_per_node,
                        all_functions=all_functions,
                    )
                    if benchmark.feature(case.function) in features
                    and (environment in with_tcp or case.function not in over_tcp)
                ]
    return Matrix(
        tuple(cases),
        tuple(absent),
        not partitions,
        by_name,
        {name: entry["extras"]["known"] for name, entry in environments.items()},
        score_baseline(list(asked.values())),
        frozenset(
            (partition or name, gone)
            for name, entry in asked.items()
            for partition, _, gone in (one.rpartition(":") for one in entry["extras"]["retired"])
        ),
        frozenset(
            name for name, entry in environments.items() if not entry["extras"]["mpi_over_tcp"]
        ),
        entries,
        environments,
    )


@dataclass(frozen=True, order=True)
class PlannedJob:
    """The part of a job that is one benchmark in one environment, on its ``ranks``.

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
        fewest = matrix.partitions[case.partition].fewest_ranks
        found.setdefault(job_of(case, fewest), []).append(case)
    return {job: tuple(cases) for job, cases in found.items()}


def nodes_of(job: PlannedJob, matrix: Matrix) -> int:
    """Return how many nodes the job asks Slurm for."""
    partition = matrix.partitions[job.partition]
    if registry.named(job.benchmark).by_protocol:
        return min(2, partition.nodes)
    return job.ranks // partition.ranks_per_node


def slurm_job(part: PlannedJob, matrix: Matrix) -> str:
    """Return the job that measures it, next to its other parts: ``gige MPI on 16 ranks``."""
    alone = registry.named(part.benchmark).by_protocol or not part.default
    if alone or matrix.partitions[part.partition].job_limit_s:
        return f"{part.partition} {part.what()}"
    return f"{part.partition} MPI on {part.ranks} ranks"


def domain_of(job: PlannedJob, matrix: Matrix) -> str:
    """Return the contention domain, in which one job runs at a time."""
    return matrix.partitions[job.partition].contention_domain
