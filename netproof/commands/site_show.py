"""The matrix of a system that will run, and how long it should take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from netproof.errors import NetproofError, grouped, listed
from netproof.present import documents
from netproof.present.document import EVERY, Block, Cell, DataTable
from netproof.present.wording import counted, duration, not_available
from netproof.site import folders, site
from netproof.site.matrix import domain_of, jobs, matrix, slurm_job
from netproof.site.partition import job_limit_s, pair_environments
from netproof.site.site import insist
from netproof.store import Store
from netproof.store.durations import Past, expected_seconds, past, session_seconds

_PARTITIONS = (
    *("partition", "switch", "card", "Mbit/s", "MTU", "interface", "nodes", "ranks", "a node"),
    "contention domain",
)


class ShownMatrix:
    """The matrix of a system or of one partition, its jobs, and how long each should take.

    ``unknown``: why no time is known, None if a store was read: one that is missing or cannot be
    read leaves times unknown; ``seconds``: how long all should take, None where the time of a job
    is not known. Raises NetproofError for an unknown system or partition.
    """

    def __init__(self, asked: str | None, store: Path | None, *, full: bool) -> None:
        configuration, paths, faults = site.survey(folders.of_site())
        self.system, _, partition = (asked or site.here(configuration, paths)).partition(":")
        insist(faults)
        several = [partition] if partition else []
        self.matrix = matrix(configuration, self.system, several, all_functions=full)
        if not self.matrix.cases:
            raise NetproofError(f"{asked or self.system}: no environment there has a benchmark")
        self.path, self.jobs = paths[self.system], jobs(self.matrix)
        known = Past()
        self.unknown: str | None = "no store was named (--store, NETPROOF_STORE)"
        if store is not None:
            try:
                known = past(Store(store), self.matrix)
            except NetproofError as error:
                self.unknown = str(error)
            else:
                self.unknown = "; ".join(known.unread) or None
                if not known.sessions and self.unknown is None:
                    self.unknown = f"{store}: holds no session of {self.system}"
        self.sessions, self.expected = known.sessions, expected_seconds(self.jobs, known)

        self.seconds = session_seconds(self.expected, self.matrix)

    def mpi(self, environment: str) -> str:
        """Return the site's name of an environment's library."""
        return str(self.matrix.environments[environment]["extras"]["mpi"])

    def pairs_in(self, partition: str) -> tuple[str, ...]:
        """Return the environments in which the nodes of a partition are measured in pairs."""
        named, known = self.matrix.entries[partition]["environs"], self.matrix.environments
        there = [(one, known[one]) for one in named if one in known]
        features = [(one, entry.get("features", []), entry["extras"]) for one, entry in there]
        return pair_environments(self.matrix.partitions[partition].pair_settings(), features)


def document(found: ShownMatrix) -> dict[str, Any]:
    """Return plain values for ``json``; times in seconds."""
    return {
        "system": found.system,
        "file": str(found.path),
        "cases": len(found.matrix.cases),
        "expected_seconds": found.seconds,
        "sessions": found.sessions,
        "not_known": found.unknown,
        "partitions": [
            {
                "partition": name,
                **partition.model_dump(exclude={"baseline", "criteria", "retired"}),
                "pairs_in": list(found.pairs_in(name)),
            }
            for name, partition in found.matrix.partitions.items()
        ],
        "jobs": [
            {
                **documents.some(job, "partition", "environment", "benchmark", "ranks"),
                "mpi": found.mpi(job.environment),
                "contention_domain": domain_of(job, found.matrix),
                **documents.some(found.expected[job], "why", "expected_seconds=seconds"),
                "time_limit_s": job_limit_s(found.matrix.entries[job.partition]),
                "cases": documents.plain(cases),
            }
            for job, cases in found.jobs.items()
        ],
        "absences": documents.plain(found.matrix.absences),
    }


def blocks(found: ShownMatrix) -> Iterator[Block]:
    """Yield the partitions, the jobs of each with their cases and times, absences, total time."""
    count = len(found.matrix.cases)
    where = f"{found.system}, of {found.path}"
    yield Cell(f"{where}: {count} cases in {len(found.jobs)} jobs", "strong")
    rows = [
        (
            *(name, one.switch, f"{one.nic}, {one.driver}", str(one.link_mbit_s), str(one.mtu)),
            *(one.interface, str(one.nodes), ", ".join(map(str, one.rank_counts))),
            *(str(one.ranks_per_node), one.contention_domain),
        )
        for name, one in found.matrix.partitions.items()
    ]
    yield from ("", DataTable(_PARTITIONS, rows, (3, 4, 6, 8)), "", _jobs(found), "")
    yield Cell(
        "cases of a job, and how long it should take; ~ as similar jobs, ? not known, - no job",
        "faint",
    )
    by_names = grouped((found.pairs_in(name), name) for name in found.matrix.partitions)
    for names, several in by_names.items():
        those = "none: no environment has IMB, or rounds is 0"
        where = f"in {', '.join(names)}" if names else those
        yield f"rounds of pairs on {', '.join(several)}: {where}"
    yield from (f"not available: {one}" for one in not_available(found.matrix.absences))
    yield ""
    yield from _times(found)


def _jobs(found: ShownMatrix) -> DataTable:
    """Return a row per configuration, a column per kind of job: its cases and its time."""
    whats = dict.fromkeys(job.what() for job in found.jobs)
    by_place: dict[tuple[str, str], dict[str, str]] = defaultdict(lambda: dict.fromkeys(whats, "-"))
    for job, cases in found.jobs.items():
        expected, takes = found.expected[job], "?"
        if expected.seconds is not None:
            takes = f"{'' if expected.measured else '~'}{duration(expected.seconds)}"
        by_place[job.partition, job.environment][job.what()] = f"{len(cases)}, {takes}"
    rows = [(*place, found.mpi(place[1]), *cells.values()) for place, cells in by_place.items()]
    return DataTable(("partition", "environment", "MPI", *whats), rows, EVERY[3:], heads=3)


def _times(found: ShownMatrix) -> Iterator[Block]:
    if found.unknown:
        yield Cell(f"how long it should take is not known: {found.unknown}", "warned")
        return
    alike = grouped((one.why, job) for job, one in found.expected.items() if not one.measured)
    for why, several in alike.items():
        yield Cell(f"{listed([*map(str, several)])}: {why}", "warned")
    takes: dict[tuple[str, str], float] = defaultdict(float)
    for part, one in found.expected.items():
        takes[slurm_job(part, found.matrix), part.partition] += one.seconds or 0.0
    for (named, partition), seconds in takes.items():
        limit_s = job_limit_s(found.matrix.entries[partition])
        if limit_s and seconds > limit_s:
            yield Cell(
                f"{named} should take {duration(seconds)}, and jobs of {partition} have"
                f" {duration(limit_s)}: Slurm would end it",
                "failed",
            )
    if found.seconds is None:
        known = {job: one for job, one in found.expected.items() if one.seconds is not None}
        least = session_seconds(known, found.matrix)
        alongside = f"; what is known of it takes {duration(least)}" if least and known else ""
        yield Cell(f"how long it should take is not known{alongside}", "strong")
        return
    domains: dict[str, float] = defaultdict(float)
    for job, one in found.expected.items():
        domains[domain_of(job, found.matrix)] += one.seconds or 0
    spoken = ""
    if len(domains) > 1:
        each = ", ".join(f"{name} {duration(seconds)}" for name, seconds in domains.items())
        spoken = f", contention domains in parallel: {each}"
    sessions = counted(found.sessions, "session")
    yield Cell(f"should take {duration(found.seconds)}, by {sessions}{spoken}", "strong")
