"""Recorded sessions, and their cases with longer times or with other figures."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from netproof.measurement.case import Case
from netproof.session import session
from netproof.session.measured import Launch, Measured
from netproof.session.session import CheckResult, Session
from netproof.site.matrix import Matrix
from netproof.verdict.power import with_times

SESSIONS = Path(__file__).resolve().parents[2] / "data" / "sessions"


@functools.cache
def recorded(name: str) -> Session:
    return session.load(SESSIONS / f"{name}.json")


def result_in(name: str, function: str, environment: str = "") -> CheckResult:
    """Return the first result on a function in a recorded session."""
    return next(
        one
        for one in recorded(name).results
        if one.measured
        and one.case.function == function
        and environment in ("", one.case.environment)
    )


def matrix_of(measured: Session | Iterable[Case]) -> Matrix:
    """Return a matrix of these cases, or of those of a session, without further settings."""
    if isinstance(measured, Session):
        measured = dict.fromkeys(one.case for one in measured.results if one.case is not None)
    return Matrix(tuple(measured), (), True, {}, {}, None, frozenset())


def with_results(stored: Session, change: Callable[[CheckResult], CheckResult | None]) -> Session:
    """Return a session with each result changed; None leaves one out."""
    return dataclasses.replace(stored, results=tuple(filter(None, map(change, stored.results))))


Factor = float | Callable[[int], float]
"""By how much times are longer, at all sizes or at each."""


def with_figures(measured: Measured, **figures: Any) -> Measured:
    """Return a copy with another ``curve`` or other ``landmarks``."""
    made = dataclasses.replace(measured)
    vars(made).update(figures)
    return made


def slowed(launch: Launch, factor: Factor) -> Launch:
    """Return a launch of one curve that takes so many times as long."""
    curve = launch.curve
    times = [
        time * (factor(size) if callable(factor) else factor)
        for size, time in zip(curve.sizes, curve.time_us, strict=True)
    ]
    return dataclasses.replace(launch, curves=(with_times(curve, times),))


def slower(measured: Measured, factor: Factor) -> Measured:
    return measured.with_launches([slowed(one, factor) for one in measured.launches])
