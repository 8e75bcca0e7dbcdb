"""Values of sessions that references are derived from, and why a case has none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from netproof.errors import NetproofError
from netproof.measurement import twin
from netproof.measurement.landmark_table import LANDMARKS
from netproof.session import session
from netproof.session.measured import Measured
from netproof.session.session import CheckResult, Session
from netproof.verdict.limits import TIME_AT, variables

LEAST_SESSIONS = 3
"""Fewest values for a median absolute deviation."""

TWIN_ITSELF = "twin_mb_s"
"""Bandwidth of the healthy twin, which belongs to the machine and gets no reference."""


def insist_on_sessions(sessions: Sequence[Session]) -> None:
    """Raise NetproofError for fewer than ``LEAST_SESSIONS`` sessions, or one given twice."""
    seen: dict[Any, Path] = {}
    for stored in sessions:
        identity = stored.info.get("uuid", stored.path)
        if identity in seen:
            raise NetproofError(
                f"{stored.path}: is the session of {seen[identity]} once more; each counts once"
            )
        seen[identity] = stored.path
    if len(sessions) < LEAST_SESSIONS:
        raise NetproofError(
            f"{len(sessions)} of at least {LEAST_SESSIONS} sessions: fewer tell no spread; run"
            " 'reframe -c checks -r' again, on another day or other nodes"
        )


def results_of(stored: Session, system: str, partition: str | None) -> dict[tuple, CheckResult]:
    """Return a session's cases of a system, by key; the last run of each counts."""
    found = {
        result.case.key(): result
        for result in stored.results
        if result.case is not None
        and result.system == system
        and partition in (None, result.partition)
    }
    if not found:
        where = f"{system}:{partition}" if partition else system
        raise NetproofError(f"{stored.path}: has no case of {where}")
    return found


def unfit(sessions: Sequence[Session], results: Sequence[CheckResult | None]) -> str:
    """Return why a case makes no references; empty where it does."""
    for stored, result in zip(sessions, results, strict=True):
        if result is None:
            return f"{stored.path.name} does not have it"
        if result.result not in session.GOOD_RESULTS:
            phase = f" in {result.phase}" if result.phase else ""
            return f"{result.result}{phase} in {stored.path.name}"
        if result.measured is None:
            return f"nothing was measured in {stored.path.name}"
    first = results[0].measured
    for stored, result in zip(sessions[1:], results[1:], strict=True):
        for extras in ("partition_extras", "environment_extras"):
            before, now = first[extras], result.measured[extras]
            for key in sorted(before.keys() | now.keys()):
                if before.get(key) != now.get(key):
                    return (
                        f"{key} was {before.get(key)!r} in"
                        f" {sessions[0].path.name} and {now.get(key)!r} in {stored.path.name}"
                    )
    return ""


def unsettled_in(sessions: Sequence[Session], reasons: Sequence[Sequence[str]]) -> str:
    """Return the session that has not settled a case, and its first reason; empty for none."""
    for stored, several in zip(sessions, reasons, strict=True):
        if several:
            more = f"; and {len(several) - 1} more" if len(several) > 1 else ""
            return f"inconclusive in {stored.path.name}: {several[0]}{more}"
    return ""


def values_of(
    measured: Sequence[Measured], *, per_size: bool
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Return each variable's values by session; a reason for one that only some define."""
    several = [_of_session(one, per_size=per_size) for one in measured]
    values, left = {}, {}
    for variable in dict.fromkeys(name for one in several for name in one):
        found = [one[variable] for one in several if variable in one]
        if len(found) == len(several):
            values[variable] = found
        else:
            left[variable] = f"{len(found)} of {len(several)} sessions define it"
    return values, left


def _of_session(measured: Measured, *, per_size: bool) -> dict[str, float]:
    """Return a session's variables of a case, without the twin's bandwidth."""
    found = {name: getattr(measured.landmarks, name) for name in LANDMARKS}
    values = {
        name: 100 * value if LANDMARKS[name].per_cent else value
        for name, value in found.items()
        if name != TWIN_ITSELF and value is not None
    }
    of_case = variables(measured)
    values |= {name: of_case[name][0] for name in twin.VARIABLES if name in of_case}
    if per_size:
        points = zip(measured.curve.sizes, measured.curve.time_us, strict=True)
        values |= {f"{TIME_AT}{size}": time for size, time in points}
    return values


def system_of(sessions: Sequence[Session]) -> str:
    """Return the only system of sessions; NetproofError where there are several, or none."""
    systems = {result.system for stored in sessions for result in stored.results}
    if len(systems) != 1:
        found = ", ".join(sorted(systems)) or "none"
        raise NetproofError(
            f"the sessions hold results of {len(systems)} systems ({found}); name one with --system"
        )
    return systems.pop()
