"""The matrix of a system that will run, and how long it should take."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.present import documents
from netproof.present.terminal import TableColumn, parts, print_table, say
from netproof.present.wording import duration, not_available
from netproof.site import folders, site
from netproof.site.matrix import (
    Matrix,
    PlannedJob,
    domain_of,
    environments_in,
    jobs,
    matrix,
    partitions_in,
)
from netproof.site.partition import pair_environments, time_limit_s
from netproof.site.site_file import insist
from netproof.store import Store
from netproof.store.durations import Expected, Past, expected_seconds, past, session_seconds


@dataclass(frozen=True)
class ShownMatrix:
    """The matrix of a system with its jobs, and how long each should take.

    ``mpi``: the site's name of each environment's library; ``limits_s``: how long a job of each
    partition may last, None without limit; ``pairs_in``: the environments in which the nodes of a
    partition are measured in pairs; ``unknown``: why no time is known at all, None if a store was
    read; ``sessions``: how many it had.
    """

    system: str
    path: Path
    matrix: Matrix
    jobs: dict[PlannedJob, tuple[Case, ...]]
    expected: dict[PlannedJob, Expected]
    mpi: dict[str, str]
    limits_s: dict[str, int | None]
    pairs_in: dict[str, tuple[str, ...]]
    sessions: int
    unknown: str | None

    def too_long(self) -> Iterator[tuple[PlannedJob, float, float]]:
        """Yield the jobs that should take longer than their partition's ``time_limit``, in s."""
        for job, one in self.expected.items():
            limit_s = self.limits_s[job.partition]
            if one.seconds is not None and limit_s and one.seconds > limit_s:
                yield job, one.seconds, limit_s

    def seconds(self) -> float | None:
        """Return how long all should take in seconds, None where the time of a job is not known."""
        return session_seconds(self.expected, self.matrix)


def shown(asked: str | None, store: Path | None, *, full: bool) -> ShownMatrix:
    """Return what will run on a system or a partition. Raises NetproofError for an unknown one.

    A store that is missing or cannot be read leaves times unknown, with the reason.
    """
    found = site.survey(folders.of_site())
    name, _, partition = (asked or site.here(found)).partition(":")
    insist(found.faults)
    configuration = found.configuration
    expected = matrix(configuration, name, [partition] if partition else [], all_functions=full)
    if not expected.cases:
        raise NetproofError(f"{asked or name}: no environment there has a benchmark")
    several = jobs(expected)
    known, unknown = Past(), None
    if store is None:
        unknown = "no store was named (--store, NETPROOF_STORE)"
    else:
        try:
            known = past(Store(store), expected)
        except NetproofError as error:
            unknown = str(error)
        else:
            unknown = "; ".join(known.unread) or None
            if not known.sessions and unknown is None:
                unknown = f"{store}: holds no session of {name}"
    entries = partitions_in(configuration, name)
    environments = environments_in(configuration, name)
    return ShownMatrix(
        name,
        found.paths[name],
        expected,
        several,
        expected_seconds(several, known),
        {one: entry["extras"]["mpi"] for one, entry in environments.items()},
        {one: time_limit_s(entry) for one, entry in entries.items()},
        {
            one: pair_environments(
                shown.pair_settings(),
                [
                    (
                        called,
                        environments[called].get("features", []),
                        environments[called]["extras"],
                    )
                    for called in entries[one]["environs"]
                    if called in environments
                ],
            )
            for one, shown in expected.partitions.items()
        },
        known.sessions,
        unknown,
    )


def document(found: ShownMatrix) -> dict[str, Any]:
    """Return plain values for ``json``; times in seconds."""
    return {
        "format": documents.FORMAT,
        "system": found.system,
        "file": str(found.path),
        "cases": len(found.matrix.cases),
        "expected_seconds": found.seconds(),
        "sessions": found.sessions,
        "not_known": found.unknown,
        "partitions": [
            {
                "partition": name,
                **partition.model_dump(exclude={"baseline", "criteria", "retired"}),
                "pairs_in": list(found.pairs_in[name]),
            }
            for name, partition in found.matrix.partitions.items()
        ],
        "jobs": [
            {
                "partition": job.partition,
                "environment": job.environment,
                "mpi": found.mpi[job.environment],
                "benchmark": job.benchmark,
                "ranks": job.ranks,
                "contention_domain": domain_of(job, found.matrix),
                "expected_seconds": found.expected[job].seconds,
                "time_limit_s": found.limits_s[job.partition],
                "why": found.expected[job].why,
                "cases": [documents.of_case(case) for case in cases],
            }
            for job, cases in found.jobs.items()
        ],
        "absences": [dataclasses.asdict(absence) for absence in found.matrix.absences],
    }


def print_matrix(found: ShownMatrix, out: Console) -> None:
    """Print the partitions, the jobs of each with their cases and times, absences, total time."""
    count = len(found.matrix.cases)
    say(out, f"{found.system}, of {found.path}: {count} cases in {len(found.jobs)} jobs", "bold")
    out.print()
    _print_partitions(found, out)
    out.print()
    _print_jobs(found, out)
    _print_pairs(found, out)
    for sentence in not_available(found.matrix.absences):
        say(out, f"not available: {sentence}")
    out.print()
    _print_times(found, out)


def _print_partitions(found: ShownMatrix, out: Console) -> None:
    named = list(found.matrix.partitions.items())
    several = [partition for _, partition in named]

    def column(heading: str, of: Any, *, right: bool = False) -> TableColumn:
        return TableColumn(heading, [str(of(one)) for one in several], right=right)

    print_table(
        [
            TableColumn("partition", [name for name, _ in named], right=False),
            column("switch", lambda one: one.switch),
            column("card", lambda one: f"{one.nic}, {one.driver}"),
            column("Mbit/s", lambda one: one.link_mbit_s, right=True),
            column("MTU", lambda one: one.mtu, right=True),
            column("interface", lambda one: one.interface),
            column("nodes", lambda one: one.nodes, right=True),
            column("ranks", lambda one: ", ".join(map(str, one.rank_counts))),
            column("a node", lambda one: one.ranks_per_node, right=True),
            column("contention domain", lambda one: one.contention_domain),
        ],
        out,
    )


def _print_jobs(found: ShownMatrix, out: Console) -> None:
    """Print a row per configuration, a column per kind of job: its cases and its time."""
    whats = list(dict.fromkeys(job.what() for job in found.jobs))
    by_place: dict[tuple[str, str], dict[str, PlannedJob]] = defaultdict(dict)
    for job in found.jobs:
        by_place[job.partition, job.environment][job.what()] = job
    cells: dict[str, list[str]] = defaultdict(list)
    for here in by_place.values():
        for what in whats:
            cells[what].append(_cell(found, here[what]) if what in here else "-")
    columns = [
        TableColumn("partition", [place[0] for place in by_place], right=False),
        TableColumn("environment", [place[1] for place in by_place], right=False),
        TableColumn("MPI", [found.mpi[place[1]] for place in by_place], right=False),
    ]
    jobs_of = [TableColumn(what, cells[what]) for what in whats]
    for part in parts(columns, jobs_of, out.width):
        print_table(part, out)
        out.print()
    say(
        out,
        "cases of a job, and how long it should take; ~ as similar jobs, ? not known, - no job",
        "dim",
    )


def _cell(found: ShownMatrix, job: PlannedJob) -> str:
    cases, expected = len(found.jobs[job]), found.expected[job]
    if expected.seconds is None:
        return f"{cases}, ?"
    return f"{cases}, {'' if expected.measured else '~'}{duration(expected.seconds)}"


def _print_pairs(found: ShownMatrix, out: Console) -> None:
    """Print where all nodes are measured in pairs."""
    by_names: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for partition, names in found.pairs_in.items():
        by_names[names].append(partition)
    for names, several in by_names.items():
        where = ", ".join(several)
        those = (
            f"in {', '.join(names)}" if names else "none: no environment has IMB, or rounds is 0"
        )
        say(out, f"rounds of pairs on {where}: {those}")


def _print_times(found: ShownMatrix, out: Console) -> None:
    if found.unknown:
        say(out, f"how long it should take is not known: {found.unknown}", "yellow")
        return
    alike: dict[str, list[PlannedJob]] = defaultdict(list)
    for job, one in found.expected.items():
        if not one.measured:
            alike[one.why].append(job)
    for why, several in alike.items():
        say(out, f"{_together(several, found.jobs)}: {why}", "yellow")
    for job, seconds, limit_s in found.too_long():
        say(
            out,
            f"{job} should take {duration(seconds)}, and {job.partition} has a"
            f" time_limit of {duration(limit_s)}: Slurm would end it",
            "red",
        )
    total = found.seconds()
    if total is None:
        known = {job: one for job, one in found.expected.items() if one.seconds is not None}
        least = session_seconds(known, found.matrix)
        alongside = f"; what is known of it takes {duration(least)}" if least and known else ""
        say(out, f"how long it should take is not known{alongside}", "bold")
        return
    domains: dict[str, float] = defaultdict(float)
    for job, one in found.expected.items():
        domains[domain_of(job, found.matrix)] += one.seconds or 0
    spoken = ""
    if len(domains) > 1:
        each = ", ".join(f"{name} {duration(seconds)}" for name, seconds in domains.items())
        spoken = f", contention domains in parallel: {each}"
    sessions = f"{found.sessions} session{'' if found.sessions == 1 else 's'}"
    say(out, f"should take {duration(total)}, by {sessions}{spoken}", "bold")


def _together(several: Iterable[PlannedJob], every: Iterable[PlannedJob]) -> str:
    """Return jobs by partition where it has no others, else by configuration."""
    expected, shown = defaultdict(set), defaultdict(set)
    for job in every:
        expected[job.partition].add(job)
    for job in several:
        shown[job.partition].add(job)
    parts = []
    for partition, here in shown.items():
        if here == expected[partition]:
            parts.append(partition)
            continue
        by_environment: dict[str, list[str]] = defaultdict(list)
        for job in sorted(here):
            by_environment[job.environment].append(job.what())
        parts += [f"{partition} {name} {', '.join(w)}" for name, w in by_environment.items()]
    return "; ".join(parts)
