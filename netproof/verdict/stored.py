"""The verdict as it is stored with its session, and warnings that earlier sessions had too.

A session is judged when it comes into the store, and its verdict is read from then on. Digests show
whether today's bounds are the same. What was measured is not in the document: it is read from the
session, and only where it is asked for.

A warning that comes with every session hides a new one. It recurs if the same criterion warned of
the same case at the same size in each of the last sessions that ran the case, ``LEAST`` at least.
An earlier session is rejudged from its curves by today's settings, unless a verdict by these is
stored.
"""

from __future__ import annotations

import dataclasses
import os
import typing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netproof import codec
from netproof.criteria import Finding, Level
from netproof.criteria.registry import BY_FINDING
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve
from netproof.measurement.landmark_table import EagerLimit
from netproof.measurement.landmarks import Landmarks
from netproof.pairs import verdict as pairs
from netproof.pairs.verdict import PairsVerdict
from netproof.session import packed, session
from netproof.session.again import MeasuredAgain
from netproof.session.measured import Measured
from netproof.session.session import CheckResult, Session
from netproof.site.matrix import Matrix
from netproof.site.partition import ScoreBaseline
from netproof.verdict import rejudge
from netproof.verdict.engine import Key, companion_keys
from netproof.verdict.judge import (
    complete,
    findings_along,
    measured_again,
    subject,
)
from netproof.verdict.options import EARLIER_SESSIONS, SESSIONS
from netproof.verdict.rejudge import StoredBounds
from netproof.verdict.verdict import NEVER_RAN, CaseVerdict, Verdict

if TYPE_CHECKING:
    from netproof.store import Store, StoredSession
    from netproof.store.questions import StoredCurves

FORMAT = 3
"""Version of the document; raised when a key changes its meaning or goes."""

MOST_BYTES = 4_000_000_000
"""Size limit of the document, unpacked: 100,000 cases with all their findings."""

_APART = ("cases", "pairs", "compared_with")
"""Parts of a verdict that are stored in their own form, or never."""

_KEY = ("benchmark", "function", "ranks", "path", "direction", "partition", "environment")

COLUMNS = (
    *(*_KEY, "result", "phase", "complete", "failed_job"),
    *(one.name for one in dataclasses.fields(Landmarks)),
)
"""Columns of the table of cases that a stored verdict is compared with."""


@dataclass(frozen=True)
class StoredVerdict:
    """The document of a verdict.

    ``at``: when it was judged, UTC, to the second; ``partition``: the only one that was to run,
    empty for all of the system; ``full``: with the tests of ``checks/full``; ``unread``,
    ``differences``, ``beyond_nodes``: as in ``JudgedSession``; ``verdict``: its parts without
    ``cases`` and ``pairs``; ``cases``, ``pairs``: without what was measured, each case with the
    digest of its ``entries`` in the file of references, and if flagged its ``nodes``.
    """

    at: str
    system: str
    partition: str
    full: bool
    report_sha256: str
    bounds: StoredBounds
    baseline: ScoreBaseline | None
    unread: tuple[str, ...]
    differences: tuple[str, ...]
    beyond_nodes: tuple[str, ...]
    verdict: dict[str, Any]
    pairs: tuple[dict[str, Any], ...]
    cases: tuple[dict[str, Any], ...]

    def warnings(self) -> dict[Key, list[Finding]]:
        """Return the warnings along the curve of each case, by its key, without comparisons."""
        compared = {name for name, criterion in BY_FINDING.items() if criterion.compare}
        return {
            codec.decode(Case, one["case"], "case").key(): [
                codec.decode(Finding, finding, "findings")
                for finding in one.get("findings", ())
                if finding["level"] == Level.WARN and finding["criterion"] not in compared
            ]
            for one in self.cases
        }

    def bounds_that_differ(self, matrix: Matrix, references: Path) -> tuple[str, ...]:
        """Return the differences of today's bounds from its own, a few words each.

        Raise NetproofError where the system's file of references cannot be used.
        """
        now = StoredBounds.of(matrix, references)
        found = [*self.bounds.differences(now)]
        if now.references != self.bounds.references:
            entries = rejudge.of_file(references, self.system)
            cases = [codec.decode(Case, one["case"], "case") for one in self.cases]
            other = [
                str(case)
                for case, one in zip(cases, self.cases, strict=True)
                if rejudge.digest_of_entries(entries, case) != one["entries"]
            ]
            if other:
                named = "; ".join(other[: rejudge.NAMED])
                more = " and others" if len(other) > rejudge.NAMED else ""
                count = "1 case" if len(other) == 1 else f"{len(other)} cases"
                found.append(f"the references of {count} ({named}{more})")
        return tuple(found)

    def on(
        self, session: Session, rows: Sequence[Mapping[str, Any]], curves: StoredCurves
    ) -> Verdict:
        """Return the verdict on its session; ``rows``: its rows of ``COLUMNS``.

        Raise NetproofError where it has not all parts.
        """
        known = typing.get_type_hints(Verdict)
        if odd := (known.keys() - set(_APART)) ^ self.verdict.keys():
            raise NetproofError(f"its parts are not those of a verdict: {', '.join(sorted(odd))}")
        parts = {
            name: codec.decode(known[name], value, name) for name, value in self.verdict.items()
        }
        measurements, by_key = _Measurements(session, curves), {_key(row): row for row in rows}
        cases = []
        for values in self.cases:
            plain = {name: one for name, one in values.items() if name not in ("entries", "nodes")}
            judged = codec.decode(CaseVerdict, plain, "cases")
            nodes = codec.decode(tuple[str, ...], values["nodes"], "nodes")
            row = by_key.get(_key(vars(judged.case)), {})
            known_of = {"row": row, "measurements": measurements, "stored_nodes": nodes}
            cases.append(StoredCase(judged, **known_of))
        of_pairs = typing.get_type_hints(PairsVerdict)
        measured = [rounds for rounds, _ in pairs.rounds_of(session)] if self.pairs else []
        rounds_judged = tuple(
            PairsVerdict(
                rounds=rounds,
                **{
                    name: codec.decode(of_pairs[name], value, f"pairs.{name}")
                    for name, value in values.items()
                    if name in of_pairs
                },
            )
            for rounds, values in zip(measured, self.pairs, strict=True)
        )
        return Verdict(cases=tuple(cases), pairs=rounds_judged, **parts)


class _Measurements:
    """The measurements of a session by case, read on demand."""

    def __init__(self, session: Session, curves: StoredCurves) -> None:
        self.session, self.curves = session, curves

    @cached_property
    def results(self) -> dict[Key, CheckResult]:
        return {one.case.key(): one for one in self.session.results if one.case is not None}

    @cached_property
    def again(self) -> Mapping[Key, MeasuredAgain]:
        return measured_again(self.session)


class StoredCase(CaseVerdict):
    """A case of a stored verdict; its measurement is read from the session on request.

    Its landmarks and outcome are those of the table of cases, ``row``; ``stored_nodes``: those of
    its first launch, if a finding is flagged.
    """

    row: Mapping[str, Any]
    measurements: _Measurements
    stored_nodes: tuple[str, ...]

    def __init__(self, judged: CaseVerdict, **known: Any) -> None:
        own = {k: v for k, v in vars(judged).items() if k not in ("result", "measured", "again")}
        vars(self).update(own, **known)

    @cached_property
    def result(self) -> CheckResult | None:
        """ReFrame's last result of the case, or None."""
        return self.measurements.results.get(self.case.key())

    @cached_property
    def measured(self) -> Measured | None:
        """Measurement; None where it was not complete."""
        return None if self.result is None else complete(self.result)

    @cached_property
    def again(self) -> MeasuredAgain | None:
        """Repeats at single sizes, or None."""
        return self.measurements.again.get(self.case.key())

    @property
    def ran(self) -> bool:
        """Whether ReFrame ran it, with any result."""
        return self.row.get("result", NEVER_RAN[0]) not in NEVER_RAN

    @property
    def failed_job(self) -> str | None:
        """Name of the failed test that it waited for, or None."""
        return self.row.get("failed_job")

    @property
    def nodes(self) -> tuple[str, ...]:
        """Nodes of its first launch, if a finding is flagged."""
        return self.stored_nodes

    @property
    def complete(self) -> bool:
        """Whether it was measured whole."""
        return bool(self.row.get("complete"))

    @cached_property
    def landmarks(self) -> Landmarks | None:
        """Landmarks of its curve; None where it was not measured whole."""
        if not self.complete:
            return None
        values = {one.name: self.row[one.name] for one in dataclasses.fields(Landmarks)}
        limit = values["eager_limit"]
        values["eager_limit"] = None if limit is None else EagerLimit(**limit)
        values["undefined"] = tuple(values["undefined"].items())
        values["intervals"] = tuple(tuple(one.values()) for one in values["intervals"])
        return Landmarks(**values)

    def repeated(self) -> tuple[Curve, tuple[Curve, ...]] | None:
        """Return its curve and those of its repeats, where it has flags that were repeated."""
        return self.measurements.curves.repeated(self.case) if self.flags() else None


def document(verdict: Verdict, matrix: Matrix, references: Path, **known: Any) -> bytes:
    """Return the stored form of a verdict that was judged just now.

    ``references``: the folder of the files; ``known``: the remaining fields of ``StoredVerdict``.
    Raise NetproofError where the system's file changed meanwhile and cannot be used.
    """
    system = matrix.cases[0].system
    bounds = StoredBounds.of(matrix, references)
    entries = rejudge.of_file(references, system)
    head = {
        "format": FORMAT,
        "cases": len(verdict.cases),
        "at": moment(),
        "system": system,
        **known,
        "bounds": codec.encode(bounds),
        "baseline": codec.encode(matrix.baseline),
        "verdict": {
            one.name: codec.encode(getattr(verdict, one.name))
            for one in dataclasses.fields(verdict)
            if one.name not in _APART
        },
        "pairs": [
            {
                one.name: codec.encode(getattr(judged, one.name))
                for one in dataclasses.fields(judged)
                if one.name != "rounds"
            }
            for judged in verdict.pairs
        ],
    }
    cases = (
        {
            "entries": rejudge.digest_of_entries(entries, one.case),
            "nodes": () if one.level is Level.PASS else one.nodes,
            **codec.encode(dataclasses.replace(one, result=None, measured=None, again=None)),
        }
        for one in verdict.cases
    )
    return packed.packed([head, *cases])


def read(store: Store, stored: StoredSession) -> StoredVerdict | None:
    """Return the stored verdict on a session; None where it has none.

    Raise NetproofError, which names the file, where it is damaged, of another format, or on
    another session.
    """
    from netproof.store import folder as store_folder
    from netproof.store.folder import VERDICT
    from netproof.store.ingest import report_sha256

    if not store.has_verdict(stored):
        return None
    content = store_folder.verify(store.path(stored), VERDICT)
    with _naming(store, stored):
        head, *cases = packed.unpacked(content, VERDICT, MOST_BYTES)
        if not isinstance(head, dict) or type(head.get("format")) is not int:
            raise NetproofError("it does not say its format")
        if (stated := head.pop("format")) != FORMAT:
            raise NetproofError(f"it is of format {stated}, and this netproof reads {FORMAT}")
        if head.get("cases") != len(cases):
            raise NetproofError(f"it has {len(cases)} cases, and not {head.get('cases')}")
        found = codec.decode(StoredVerdict, {**head, "cases": cases}, VERDICT)
        if found.report_sha256 != report_sha256(store, stored):
            raise NetproofError("it is on another session's report")
        return found


def on_session(
    session: Session, store: Store, stored: StoredSession
) -> tuple[StoredVerdict, Verdict] | None:
    """Return the stored verdict on a session, in both forms; None where it has none.

    Raise NetproofError, which names the file, as ``read``, and where it contradicts the session.
    """
    found = read(store, stored)
    if found is None:
        return None
    from netproof.store import questions

    rows = questions.cases(store, stored, COLUMNS)
    with _naming(store, stored):
        return found, found.on(session, rows, questions.StoredCurves(store, stored))


@contextmanager
def _naming(store: Store, stored: StoredSession) -> Iterator[None]:
    """Let errors name the file of a stored verdict."""
    from netproof.store.folder import VERDICT, Damaged

    try:
        yield
    except Damaged:
        raise
    except (NetproofError, AttributeError, KeyError, TypeError, ValueError) as error:
        path = store.path(stored) / VERDICT
        raise NetproofError(
            f"{path}: the stored verdict cannot be used: {error}; move {path.parent} out of the"
            " store and add the session's report again"
        ) from error


def moment() -> str:
    """Return the time, UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _key(row: Mapping[str, Any]) -> Key:
    return tuple(row[name] for name in _KEY)


LEAST = 3
"""Fewest sessions that make a warning recurring."""
NEAR = 2.0
"""Sizes within this factor are the same: a finding can move by a step of the grid."""


@dataclass(frozen=True)
class Recurring:
    """Recurring warnings of a session, each with its case.

    ``sessions``: how many had them, the least of any.
    """

    sessions: int
    warnings: tuple[tuple[Case, Finding], ...]

    @cached_property
    def _identities(self) -> set[int]:
        return {id(finding) for _, finding in self.warnings}

    def has(self, finding: Finding) -> bool:
        """Check whether the finding is one of them."""
        return id(finding) in self._identities


NOTHING = Recurring(0, ())

Warnings = Mapping[Key, Sequence[Finding]]
"""Warnings along the curves of a session's cases, by their keys."""

Earlier = Session | Warnings
"""An earlier session to be rejudged, or the warnings of its stored verdict."""


def earlier_reports(read: Session, system: str) -> tuple[list[Session], list[str]]:
    """Return the system's newest other sessions in the folder of reports, and reading errors."""
    found: list[Session] = []
    folder = os.environ.get("RFM_REPORT_FILE") or None
    if folder is None:
        return found, []
    unread = [*session.left_out(Path(folder).parent)]
    for path in session.reports(Path(folder).parent):
        if len(found) == EARLIER_SESSIONS:
            break
        if path.resolve() == read.path.resolve():
            continue
        try:
            other = session.load(path)
        except NetproofError as error:
            unread.append(str(error))
            continue
        if any(result.system == system for result in other.results):
            found.append(other)
    return found, unread


def sessions_before(
    stored: Session, bounds: StoredBounds, earlier: Sequence[Session]
) -> list[Earlier]:
    """Return the sessions of the system that began before this one, the newest first.

    They are from ``earlier``, which are reports, or from the store of a stored session. A stored
    verdict is returned if its cases were judged by ``bounds``; else the session, to be rejudged.
    Raise NetproofError where one cannot be read.
    """
    if stored.path.is_dir():
        from netproof.store import Store, questions

        store, this = Store.holding(stored.path)
        before = [one for one in store.sessions(this.system) if one.start < this.start]
        found: list[Earlier] = []
        for one in reversed(before[-EARLIER_SESSIONS:]):
            past = read(store, one)
            if past is not None and past.bounds.judge_cases_as(bounds):
                found.append(past.warnings())
            else:
                found.append(questions.load(store, one))
        return found
    began = stored.info.get("time_start_unix")
    if began is None:
        return []
    return [one for one in earlier if one.info.get("time_start_unix", began) < began]


def recurring(
    cases: Sequence[CaseVerdict], matrix: Matrix, earlier: Sequence[Earlier], most: int = SESSIONS
) -> Recurring:
    """Return the warnings that each of the earlier sessions which ran the case had too.

    ``earlier``: of the same system, the newest first; the ``most`` newest are read, and only if
    something warns. A session without the case does not count. One in which the case was not
    complete, or the criterion could not judge, did not warn.
    """
    warned = [
        (judged, finding)
        for judged in cases
        for finding in judged.findings
        if finding.level is Level.WARN
    ]
    if not warned:
        return NOTHING
    keys = {judged.case.key() for judged, _ in warned}
    needed = keys.union(*(companion_keys(judged.case) for judged, _ in warned))
    before = [
        _warnings(one, matrix, keys, needed) if isinstance(one, Session) else one
        for one in earlier[:most]
    ]
    found, fewest = [], most
    for judged, finding in warned:
        having = [several[key] for several in before if (key := judged.case.key()) in several]
        if len(having) < LEAST:
            continue
        if all(any(_same(finding, other) for other in several) for several in having):
            found.append((judged.case, finding))
            fewest = min(fewest, len(having))
    return Recurring(fewest, tuple(found)) if found else NOTHING


def _warnings(session: Session, matrix: Matrix, keys: set[Key], needed: set[Key]) -> Warnings:
    """Return the warnings along the curves of the session's cases, by their keys."""
    # The last run of each case counts.
    ran = {r.case.key(): r for r in session.results if r.case is not None}
    subjects = [subject(ran[key], matrix) for key in needed if key in ran and ran[key].measured]
    findings = findings_along(subjects, session)
    return {
        key: [finding for finding in findings.get(key, ()) if finding.level is Level.WARN]
        for key in keys
        if key in ran
    }


def _same(mine: Finding, its: Finding) -> bool:
    if mine.criterion != its.criterion:
        return False
    of = BY_FINDING.get(mine.criterion)
    if of is not None and of.of_peaks:
        return True
    if mine.size is None or its.size is None:
        return mine.size == its.size
    return max(mine.size, its.size) <= NEAR * min(mine.size, its.size)
