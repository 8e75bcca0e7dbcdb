"""How long jobs should take, and when each was measured last, by the sessions of a store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Any

from netproof.errors import grouped
from netproof.measurement.case import Case
from netproof.site.matrix import Matrix, PlannedJob, domain_of, job_of, jobs
from netproof.store import Store

SESSIONS = 60
"""How many of a system's newest sessions are looked into."""

TAKEN = 5
"""Sessions, the newest that measured a job whole, whose median is its time."""


@dataclass(frozen=True)
class Past:
    """Durations of jobs in the newest sessions of a system, the newest first.

    ``launches_s``: of each job the sums over its launches, where it was measured whole; ``tried``:
    when the last session began that ran the job, ``measured``: and that measured one of its cases,
    UTC; ``overhead_s``: of a job beyond its launches, by Slurm, queue and repeats; ``sessions``:
    their number; ``unread``: those that are damaged and left out, a sentence each.
    """

    launches_s: dict[PlannedJob, list[float]] = field(default_factory=dict)
    tried: dict[PlannedJob, datetime] = field(default_factory=dict)
    measured: dict[PlannedJob, datetime] = field(default_factory=dict)
    overhead_s: list[float] = field(default_factory=list)
    sessions: int = 0
    unread: tuple[str, ...] = ()


@dataclass(frozen=True)
class Expected:
    """How long a job should take, None where nothing is known; ``why``: what that is from.

    ``measured``: whether from sessions that measured the job itself, whole.
    """

    seconds: float | None
    why: str
    measured: bool = False


def past(store: Store, matrix: Matrix) -> Past:
    """Return the durations of the matrix' jobs; NetproofError where the store cannot be read."""
    from netproof.store import questions
    from netproof.store.tables import KEY

    system = matrix.cases[0].system
    sessions = [*store.sessions(system)[-SESSIONS:]]
    if not sessions:
        return Past()
    wanted = {job: [case.key() for case in cases] for job, cases in jobs(matrix).items()}
    table, faults = questions.each(store, lambda these: questions.seconds(store, these), sessions)
    rows = grouped((row["session"], row) for row in table.to_pylist())
    sessions = [stored for stored in sessions if stored not in faults]
    unread = tuple(f"{stored.name} is left out: {why}" for stored, why in faults.items())
    found = Past(sessions=len(sessions), unread=unread)
    for stored in reversed(sessions):
        here: dict[PlannedJob, dict[Any, float | None]] = defaultdict(dict)
        for row in rows[stored.name]:
            if row["result"] != "skip" and row["partition"] in matrix.partitions:
                # Ranks per node do not tell cases apart.
                case = Case(system, ranks_per_node=0, **{name: row[name] for name in KEY})
                job = job_of(case, matrix.partitions[case.partition].fewest_ranks)
                here[job][case.key()] = row["wall_s"]
        for job, cases in here.items():
            found.tried.setdefault(job, stored.start)
            if any(wall_s is not None for wall_s in cases.values()):
                found.measured.setdefault(job, stored.start)
        took = {}
        for job, cases in here.items():
            known = [one for key in wanted.get(job, ()) if (one := cases.get(key)) is not None]
            if job in wanted and len(known) == len(wanted[job]):
                took[job] = sum(known)
                found.launches_s.setdefault(job, []).append(took[job])
        if took and set(took) == set(here):
            domains = grouped((domain_of(job, matrix), seconds) for job, seconds in took.items())
            fullest = max(domains.values(), key=sum)
            beyond_s = rows[stored.name][0]["session_s"] - sum(fullest)
            found.overhead_s.append(max(0.0, beyond_s) / len(fullest))
    return found


def expected_seconds(wanted: Iterable[PlannedJob], known: Past) -> dict[PlannedJob, Expected]:
    """Return how long each job should take, with what Slurm and the queue took before.

    A job that no session measured whole is expected to take what the like takes: of the same
    benchmark and rank count on its partition, else on others.
    """
    overhead_s = median(known.overhead_s[:TAKEN]) if known.overhead_s else 0.0
    typical_s = {job: median(values[:TAKEN]) for job, values in known.launches_s.items()}
    expected = {}
    for job in wanted:
        if job in typical_s:
            count = len(known.launches_s[job][:TAKEN])
            why = f"median of {count} sessions" if count > 1 else "as in the one session"
            expected[job] = Expected(typical_s[job] + overhead_s, why, measured=True)
            continue
        expected[job] = _as_the_like(job, typical_s, overhead_s)
    return expected


def _as_the_like(
    job: PlannedJob, typical_s: Mapping[PlannedJob, float], overhead_s: float
) -> Expected:
    alike = [other for other in typical_s if other.what() == job.what()]
    if not alike:
        return Expected(None, "not known: nothing like it was ever measured")

    def distance(other: PlannedJob) -> int:
        elsewhere = other.partition != job.partition
        return elsewhere + (elsewhere and other.environment != job.environment)

    least = min(map(distance, alike))
    nearest = sorted(other for other in alike if distance(other) == least)
    seconds = median(typical_s[other] for other in nearest) + overhead_s
    named = ", ".join(f"{other.partition} {other.environment}" for other in nearest)
    return Expected(seconds, f"never measured whole: as others of {named}")


def session_seconds(expected: Mapping[PlannedJob, Expected], matrix: Matrix) -> float | None:
    """Return how long a session of these jobs should take, None where one is not known.

    Jobs of a domain run in turn, domains side by side.
    """
    domains: dict[str, float] = defaultdict(float)
    for job, one in expected.items():
        if one.seconds is None:
            return None
        domains[domain_of(job, matrix)] += one.seconds
    return max(domains.values(), default=0.0)
