"""Trace red cases to culprits: the causes that explain them, merged, worst first."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from netproof.diagnosis.causes import CAUSES, Cause
from netproof.diagnosis.evidence import (
    Collected,
    Evidence,
    Place,
    PlaceKind,
    RedCase,
    Sure,
)
from netproof.diagnosis.evidence_for import CauseName, Found
from netproof.site.hostlist import fold


class Began(StrEnum):
    """When a fault began, as far as earlier sessions show.

    ``THIS``: the session before did not have it; ``EARLIER``: all from ``session`` on have it;
    ``AT_LEAST``: all sessions examined have it; ``NOT_KNOWN``: with the reason.
    """

    THIS = "this session"
    EARLIER = "earlier"
    AT_LEAST = "at least"
    NOT_KNOWN = "not known"


@dataclass(frozen=True)
class Since:
    """First ``session`` with the fault, and ``sessions`` in a row that have it, with this one."""

    began: Began
    why: str = ""
    session: str = ""
    started: datetime | None = None
    sessions: int = 1

    def __str__(self) -> str:
        first = f"session {self.session} of {self.started:%Y-%m-%d %H:%M}" if self.started else ""
        row = f"since {first}, {self.sessions} sessions in a row; {self.why}"
        return {
            Began.THIS: f"in this session for the first time; {self.why}",
            Began.EARLIER: row,
            Began.AT_LEAST: f"at least {row}",
            Began.NOT_KNOWN: f"not known: {self.why}",
        }[self.began]


NO_EARLIER = Since(Began.NOT_KNOWN, "there is no earlier session to look at")


@dataclass(frozen=True)
class Culprit:
    """A fault at one place.

    ``headline``, ``advice``, ``rules_out``: a sentence each; ``evidence``: that of the cause first;
    ``alternatives``: other explanations, and ``distinguish_by`` the measurement that distinguishes
    them; ``consequences``: failed cases that it explains.
    """

    cause: CauseName
    place: Place
    headline: str
    sure: Sure
    why: str
    evidence: tuple[Evidence, ...]
    alternatives: tuple[str, ...]
    distinguish_by: str
    advice: str
    rules_out: str
    consequences: int = 0
    since: Since = NO_EARLIER

    def same(self, other: Culprit) -> bool:
        """Check whether both are the same cause at the same place."""
        mine, its = self.place, other.place
        return (self.cause, mine.kind, mine.name) == (other.cause, its.kind, its.name)


@dataclass
class _Suspect:
    """A cause at a place while its evidence is merged."""

    cause: Cause
    found: Found
    evidence: list[Evidence]
    alternatives: list[str]
    distinguish_by: str
    red: list[RedCase]


def find_culprits(seen: Collected) -> tuple[Culprit, ...]:
    """Return the culprits of a partition, worst first, one for each place."""
    suspects = [
        _Suspect(
            cause,
            one,
            list(one.evidence),
            list(one.alternatives),
            one.distinguish_by,
            list(one.red),
        )
        for cause in CAUSES
        if not cause.residual
        for one in cause.rule(seen)
    ]
    suspects = _merged(suspects)
    explained = _consequences(suspects, seen.red)
    failed = () if any(_stops_jobs(one) for one in suspects) else seen.failed_jobs
    rest = tuple(one for one in seen.red if id(one) not in explained)
    for cause in CAUSES:
        if not cause.residual:
            continue
        left = dataclasses.replace(seen, red=rest, failed_jobs=failed)
        for one in cause.rule(left):
            suspects.append(
                _Suspect(
                    cause,
                    one,
                    list(one.evidence),
                    list(one.alternatives),
                    one.distinguish_by,
                    list(one.red),
                )
            )
            taken = {id(case) for case in one.red}
            rest = tuple(case for case in rest if id(case) not in taken)
    return tuple(_culprit(one) for one in sorted(suspects, key=_badness))


def _merged(suspects: Sequence[_Suspect]) -> list[_Suspect]:
    """Keep the most specific suspect of each place, with the others as evidence or alternatives."""
    kept: list[_Suspect] = []
    for one in suspects:
        several = [other for other in kept if _covers(other, one)]
        explaining = next((o for o in several if one.cause.name in o.cause.explains), None)
        alike = next((o for o in several if one.cause.name in o.cause.alike), None)
        if explaining is not None:
            explaining.evidence += [e for e in one.evidence if e not in explaining.evidence]
        elif alike is not None:
            alike.evidence += [e for e in one.evidence if e not in alike.evidence]
            alike.alternatives.append(_headline(one))
            alike.distinguish_by = alike.distinguish_by or alike.cause.distinguish_by
        else:
            kept.append(one)
    return kept


def _covers(one: _Suspect, other: _Suspect) -> bool:
    """Check whether both may have one reason: the same place, or a node and a pair with it."""
    mine, its = one.found.place, other.found.place
    if not mine.nodes or not its.nodes:
        return False
    if {*mine.nodes} == {*its.nodes}:
        return True
    either = its.kind in (PlaceKind.PAIR, PlaceKind.SETTING) and len(its.nodes) == 2
    return either and len(mine.nodes) == 1 and mine.nodes[0] in its.nodes


def _consequences(suspects: Sequence[_Suspect], red: Sequence[RedCase]) -> set[int]:
    """Assign red cases to the suspects that explain them; return the ids of those explained.

    A setting explains nothing if inter-node cases are red without its nodes too.
    """
    explained: set[int] = set()
    for suspect in suspects:
        place, name = suspect.found.place, suspect.cause.name
        if name is CauseName.OTHER_NETWORK:
            mine = [one for one in red if one.case.environment in place.environments]
        else:
            mine = [one for one in red if _touches(suspect, one)]
        if name is CauseName.SETTING:
            outside = [one for one in red if one.of_network and not _touches(suspect, one)]
            mine = [] if outside else mine
        suspect.red += mine
        explained |= {id(one) for one in mine}
    return explained


def _touches(suspect: _Suspect, red: RedCase) -> bool:
    if suspect.cause.of_network and red.measured and not red.of_network:
        return False
    if not red.nodes:
        return _stops_jobs(suspect)
    nodes = {*suspect.found.place.nodes} & {*red.nodes}
    return len(nodes) > 1 if suspect.found.place.kind is PlaceKind.PAIR else bool(nodes)


def _stops_jobs(suspect: _Suspect) -> bool:
    """Check whether the cause makes jobs fail."""
    return suspect.cause.name in (
        CauseName.LINK_DOWN,
        CauseName.LINK_FLAPPED,
        CauseName.MTU,
        CauseName.NO_TCP,
        CauseName.CRASHES,
    )


def _badness(suspect: _Suspect) -> tuple[int, int, int]:
    """Return the sort key: no traffic first, then slowness, then mere differences; then cause."""
    name = suspect.cause.name
    if name in (CauseName.NODE_DIED, CauseName.LINK_DOWN, CauseName.OTHER_NETWORK):
        harm = 0
    elif name is CauseName.UNEXPLAINED:
        harm = 3
    else:
        harmless = name is CauseName.SETTING and not (suspect.alternatives or suspect.red)
        harm = 2 if harmless else 1
    order = next(place for place, cause in enumerate(CAUSES) if cause.name is name)
    return harm, order, -len(suspect.red)


def _headline(suspect: _Suspect) -> str:
    place = suspect.found.place
    shown = str(place) if place.kind is not PlaceKind.ENVIRONMENT else place.name
    if place.kind is PlaceKind.SETTING:
        shown = fold(place.nodes)
    return suspect.cause.headline.format(place=shown, detail=suspect.found.detail)


def _culprit(suspect: _Suspect) -> Culprit:
    place, cause = suspect.found.place, suspect.cause
    node = ", ".join(place.nodes) if 0 < len(place.nodes) <= 2 else place.name
    return Culprit(
        cause.name,
        place,
        _headline(suspect),
        suspect.found.sure,
        suspect.found.why,
        tuple(suspect.evidence),
        tuple(dict.fromkeys(suspect.alternatives)),
        suspect.distinguish_by,
        cause.advice.format(node=node),
        cause.rules_out.format(node=node),
        len(suspect.red),
    )
