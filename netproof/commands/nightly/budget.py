"""Choice of a night's jobs: those that waited longest; the others are deferred."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from netproof.session.left import Left
from netproof.site.jobs import PlannedJob, domain_of
from netproof.site.matrix import Matrix
from netproof.store.durations import Expected, Past


def left_for_another_night(
    expected: Mapping[PlannedJob, Expected], past: Past, matrix: Matrix, budget_s: float
) -> dict[PlannedJob, Left]:
    """Return the jobs in ``expected`` that do not fit into ``budget_s`` seconds, and why.

    Jobs of a contention domain run one after the other and domains in parallel, so each domain has
    all of the budget. The jobs that ran longest ago come first; never is longest. A job that does
    not fit makes room for later ones. The first job runs in any case, also where it takes more than
    the budget, or an unknown time, and then alone.
    """
    domains: dict[str, list[PlannedJob]] = {}
    for job in expected:
        domains.setdefault(domain_of(job, matrix), []).append(job)
    left: dict[PlannedJob, Left] = {}
    for several in domains.values():
        room_s = budget_s
        for turn, job in enumerate(sorted(several, key=lambda job: _turn(job, expected, past))):
            seconds = expected[job].seconds
            if turn == 0:
                room_s = 0.0 if seconds is None else room_s - seconds
            elif seconds is None or seconds > room_s:
                left[job] = Left(_why(job, seconds, room_s, past), planned=True)
            else:
                room_s -= seconds
    return left


def _turn(
    job: PlannedJob, expected: Mapping[PlannedJob, Expected], past: Past
) -> tuple[datetime, bool]:
    # Among jobs that never ran, one of unknown duration comes first.
    return past.tried.get(job, datetime.min), expected[job].seconds is not None


def _why(job: PlannedJob, seconds: float | None, room_s: float, past: Past) -> str:
    last = past.measured.get(job)
    when = f"last measured {last:%Y-%m-%d}" if last else "never measured"
    if seconds is None:
        return f"{job.what()}, {when}; nobody knows yet how long it takes"
    room = max(room_s, 0.0)
    return f"{job.what()}, {when}; takes about {minutes(seconds)}, and {minutes(room)} were left"


def minutes(seconds: float) -> str:
    """Return a time as people write it: ``40 s``, ``12 min``, ``2 h 5 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    whole = round(seconds / 60)
    return f"{whole} min" if whole < 120 else f"{whole // 60} h {whole % 60} min"
