"""Unsettled cases of a session: inconclusive ones, and those measured while disturbed.

They become no reference, no baseline and no change in the history. For this a session is judged by
itself, with its own site's settings.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from netproof.criteria import Level
from netproof.errors import NetproofError
from netproof.session.session import CheckResult, Session
from netproof.site.partition import ScoreBaseline
from netproof.verdict import comparing, disturbing
from netproof.verdict.subject import Subject
from netproof.verdict.verdict import AGAINST, faults_of, of_references, rulings_along


@dataclass(frozen=True)
class Unsettled:
    """Open questions of a measured case.

    ``inconclusive``: a sentence each, without the case; ``disturbed``: what else the nodes did in
    launches that had to count, since too few were undisturbed; ``failed``: whether a part of the
    case failed all the same.
    """

    inconclusive: tuple[str, ...]
    disturbed: tuple[str, ...]
    failed: bool

    @property
    def all(self) -> tuple[str, ...]:
        """All open questions, a sentence each; empty where the case is settled."""
        if not self.disturbed:
            return self.inconclusive
        return (*self.inconclusive, f"the machine was disturbed: {'; '.join(self.disturbed)}")

    @property
    def why_no_value(self) -> tuple[str, ...]:
        """Why its figures are not usable; empty where they are.

        A failure counts whatever else is inconclusive.
        """
        return self.all if self.disturbed or not self.failed else ()


def of_session(session: Session) -> dict[tuple, Unsettled]:
    """Return the open questions of each measured case of a session, by its key.

    Raises NetproofError where the session's settings cannot be used.
    """
    # The last run of each case counts.
    ended = {r.case.key(): r for r in session.results if r.case is not None}
    ran = {key: r for key, r in ended.items() if r.measured}
    subjects = {key: _subject(session, result) for key, result in ran.items()}
    several = list(subjects.values())
    along = rulings_along(several, session)
    across = comparing.across(several, _baseline(ran.values()))
    found = {}
    for key, result in ran.items():
        of_values = of_references(result)
        rulings = (*of_values, *along[key], *across.get(key, ()))
        faults = () if any(one.level in AGAINST for one in of_values) else faults_of(result)[0]
        found[key] = Unsettled(
            tuple(one.reason for one in rulings if one.level is Level.INCONCLUSIVE),
            disturbing.disturbances(subjects[key]),
            bool(faults) or any(one.level is Level.FAIL for one in rulings),
        )
    return found


def _subject(session: Session, result: CheckResult) -> Subject:
    where = f"{session.path}: {result.case}"
    try:
        extras, others = result.measured["partition_extras"], result.measured["environment_extras"]
        measured = result.measurement
        subject = Subject.of_extras(measured, extras, others)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise NetproofError(f"{where}: cannot be judged: {error!r}") from error
    if measured.case != result.case:
        raise NetproofError(f"{where}: what was measured is of {subject.case}")
    return subject


def _baseline(results: Iterable[CheckResult]) -> ScoreBaseline | None:
    for result in results:
        environment = result.measured["partition_extras"].get("baseline")
        if environment:
            return ScoreBaseline(result.partition, environment)
    return None
