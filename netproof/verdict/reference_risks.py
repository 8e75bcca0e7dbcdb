"""Risks of buyer and seller by a system's references, from the scatter of its sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.measurement.landmark_table import LANDMARKS, Better
from netproof.measurement.landmarks import landmarks
from netproof.measurement.readings import LandmarkSettings
from netproof.session.measured import Measured
from netproof.session.session import Session
from netproof.site.partition import Partition
from netproof.verdict import derivable, risk
from netproof.verdict.limits import Limits
from netproof.verdict.references import XFAIL, NotThere, ReferenceFile
from netproof.verdict.risk import AcceptancePlan, OperatingCurve, Rule, Scatter

MARGINS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
"""Margins of an operating-characteristic curve, besides the one that is asked for."""


@dataclass(frozen=True)
class ReferenceRisk:
    """Risk by a bound of a case, or by a landmark that has none.

    ``agreed``: the reference's value, or else the sessions' median, in ``unit``; ``curve``: of the
    bound on the worse side, None without one; ``plan``: with small risks for both, None for the
    reason ``why``.
    """

    case: Case
    variable: str
    unit: str
    agreed: float
    scatter: Scatter
    curve: OperatingCurve | None
    plan: AcceptancePlan | None
    why: str = ""


@dataclass(frozen=True)
class NoRisk:
    """A case without risks, and why."""

    case: Case
    reason: str


def of_sessions(
    sessions: Sequence[Session],
    references: ReferenceFile,
    system: str,
    partition: str | None,
    margin: float,
    *,
    tries: int = 1000,
) -> tuple[list[ReferenceRisk], list[NoRisk]]:
    """Return the risks of each landmark with a better side, in each case of all sessions.

    ``margin``: the share by which a network is worse that must not pass. Raises NetproofError for
    fewer than ``derivable.LEAST_SESSIONS`` sessions, and as ``derivable.results_of`` does.
    """
    if len(sessions) < derivable.LEAST_SESSIONS:
        raise NetproofError(
            f"{len(sessions)} of at least {derivable.LEAST_SESSIONS} sessions: fewer do not tell"
            " how far sessions lie apart"
        )
    several = [derivable.results_of(stored, system, partition) for stored in sessions]
    found: list[ReferenceRisk] = []
    without: list[NoRisk] = []
    for key, first in several[0].items():
        results = [one.get(key) for one in several]
        measured = [one.measurement for one in results if one is not None and one.measured]
        if len(measured) < len(sessions):
            reason = f"{len(measured)} of {len(sessions)} sessions have measured it"
            without.append(NoRisk(first.case, reason))
            continue
        try:
            entries = references.find(first.name.split()[0], first.case)
        except NotThere:
            entries = {}
        extras = Partition.model_validate(first.measured["partition_extras"])
        confirm = extras.settings().confirm
        rule = Rule(
            min(len(one.first().launches) for one in measured),
            confirm.launches,
            confirm.most_launches,
        )
        for name, one in LANDMARKS.items():
            if one.better is Better.NEITHER or name == "twin_mb_s":
                continue
            values = [_of_launches(session, name) for session in measured]
            if not all(values):
                continue
            limits = entries.get(name)
            if limits is not None and limits[0] == XFAIL:
                continue
            found.append(_risk(first.case, name, values, limits, rule, margin, tries))
    return found, without


def _risk(
    case: Case,
    variable: str,
    values: Sequence[Sequence[float]],
    entry: Sequence | None,
    rule: Rule,
    margin: float,
    tries: int,
) -> ReferenceRisk:
    landmark = LANDMARKS[variable]
    larger = landmark.better is Better.LARGER
    scattering = risk.scatter(values)
    agreed = entry[0] if entry is not None and entry[0] else median(map(median, values))
    curve = None
    if entry is not None and entry[0]:
        limits = Limits.of_entry(entry)
        bound = (limits.low if larger else limits.high) / agreed
        if 0 < bound < 1 if larger else 1 < bound < float("inf"):
            margins = sorted({*MARGINS, margin})
            curve = risk.characteristic(bound, scattering, margins, rule, tries=tries)
    try:
        made, why = risk.plan(scattering, margin, launches=rule.launches, larger=larger), ""
    except NetproofError as error:
        made, why = None, str(error)
    return ReferenceRisk(case, variable, landmark.unit, agreed, scattering, curve, made, why)


def _of_launches(measured: Measured, variable: str) -> list[float]:
    """Return a landmark of each launch, in the reference's unit; empty where one lacks it."""
    scale = 100 if LANDMARKS[variable].per_cent else 1
    values = []
    for launch in measured.launches:
        if variable == "twin_share":
            found = measured.with_launches([launch]).landmarks
        else:
            settings = LandmarkSettings(peak_from=measured.peak_from)
            found = landmarks(launch.curve, measured.line_rate_mb_s, settings)
        value = getattr(found, variable)
        if value is None or value <= 0:
            return []
        values.append(scale * value)
    return values
