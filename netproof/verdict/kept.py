"""The verdict as a store keeps it with its session: what was said, and by which bounds.

It is judged once, when the session comes into the store, and read from then on. What it depends on
is kept with it: what was to run, the settings of the criteria, the file of references and the
entries of each case in it, the version of netproof. A reader thereby knows whether today's bounds
are still those.
"""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netproof.criteria import Finding, Level
from netproof.errors import NetproofError
from netproof.intake import json_reading, records
from netproof.localization.accused import Judgement
from netproof.localization.recovery import Alone
from netproof.session.session import Session
from netproof.site.matrix import Matrix
from netproof.verdict import anew, pairs
from netproof.verdict.bisection import Bisection
from netproof.verdict.judged import Judged, Verdict
from netproof.verdict.kept_bounds import (
    KeptBounds,
    KeptCase,
    digest_of_entries,
    known_flaws,
    of_matrix,
    sha256_of,
)
from netproof.verdict.kept_fit import (
    KeptContradiction,
    along_curve,
    insist_on_faults,
    insist_on_fit,
)
from netproof.verdict.pairs import JudgedPairs
from netproof.verdict.subject import Ruling
from netproof.verdict.verdict import cases_of, complete, measured_again

if TYPE_CHECKING:
    from netproof.store import Store, StoredSession

FORMAT = 1
"""Of what is kept; raised when a key changes its meaning or goes."""

JUDGED_BY = 8
"""Raised when the same session and bounds can get another verdict than before."""

MOST_BYTES = 400_000_000
"""Of what is kept, unpacked: 100,000 cases with all their findings."""

NAMED = 3
"""Cases that a sentence names."""

_APART = ("cases", "pairs", "alongside")
"""What of a verdict is kept in a form of its own, and what is never kept."""


class LaterFormat(NetproofError):
    """A kept verdict that only a later netproof can read."""


@dataclass(frozen=True)
class KeptPairs:
    """What was said of the rounds of pairs of one job, as ``JudgedPairs`` has it.

    ``beside`` is its ``alongside``, by the key that stores have.
    """

    partition: str
    environment: str
    judgement: Judgement
    alone: tuple[Alone, ...]
    beside: Mapping[str, str]
    bisection: Bisection | None = None
    least: float | None = None
    path: Finding | None = None


@dataclass(frozen=True)
class Kept:
    """A verdict as it was kept with its session.

    ``report_sha256``: of the report of the session; ``at``: when it was judged, UTC, to the
    second; ``unread``: why an earlier session could not be looked into, a sentence each;
    ``others``: all of the verdict that is not of single cases and not of rounds of pairs.
    """

    format: int
    report_sha256: str
    at: str
    bounds: KeptBounds
    unread: tuple[str, ...]
    others: dict[str, Any]
    cases: tuple[KeptCase, ...]
    pairs: tuple[KeptPairs, ...]

    @property
    def system(self) -> str:
        """The system that was judged."""
        return self.bounds.matrix.cases[0].system

    def is_of(self, system: str, partition: str, full: bool) -> bool:
        """Whether it is on what was to run on the system, on that partition alone if one is given.

        ``full`` as ``Bounds`` has it.
        """
        asked = (system, partition, full)
        return asked == (self.system, self.bounds.partition, self.bounds.full)

    def verdict(self, session: Session) -> Verdict:
        """The verdict on the session that it was kept with; Contradiction where it is on another.

        What was measured is taken from the session, of cases and of rounds of pairs, which is
        never kept twice. So is what can be had of it at once, tests that failed and cases that were
        left, and has to be what is kept. Whatever fails in a part has to be among the faults, and
        no part may be missing.
        """
        ran, cases = cases_of(session, self.bounds.matrix)
        if tuple(one.case for one in self.cases) != tuple(cases):
            raise KeptContradiction("its cases are not those that the session was judged on")
        again = measured_again(session)
        judged = []
        for one in self.cases:
            key = one.case.key()
            result = ran.get(key)
            measured = None if result is None else complete(result)
            insist_on_fit(one, result, measured is not None)
            found = Judged(
                one.case, result, one.faults, one.expected, one.rulings, measured, again.get(key)
            )
            if found.level is not one.level:
                raise KeptContradiction(
                    f"{one.case}: it says {one.level}, and what it found says {found.level}"
                )
            judged.append(found)
        verdict = Verdict(
            cases=tuple(judged), pairs=tuple(self._judged_pairs(session)), **self._others()
        )
        insist_on_faults(verdict, session, self.bounds.matrix)
        return verdict

    def _others(self) -> dict[str, Any]:
        known = records.hints(Verdict)
        names = known.keys() - set(_APART)
        if missing := names - self.others.keys():
            raise KeptContradiction(f"it says nothing of {', '.join(sorted(missing))}")
        if odd := self.others.keys() - names:
            raise KeptContradiction(f"it says something of {sorted(odd)[0]!r}, which nobody knows")
        return {
            name: records.from_json(known[name], value, name) for name, value in self.others.items()
        }

    def _judged_pairs(self, session: Session) -> Iterator[JudgedPairs]:
        """What was said of the rounds of pairs, with the rounds that the session has."""
        measured = [rounds for rounds, _ in pairs.rounds_of(session)]
        told = [(one.partition, one.environment, set(one.judgement.nodes)) for one in self.pairs]
        if told != [(one.partition, one.environment, set(one.nodes)) for one in measured]:
            raise KeptContradiction("its rounds of pairs are not those of the session")
        for one, rounds in zip(self.pairs, measured, strict=True):
            yield JudgedPairs(
                rounds, one.judgement, one.alone, one.beside, one.bisection, one.least, one.path
            )

    def warnings(self) -> dict[tuple[Any, ...], tuple[Ruling, ...]]:
        """The warnings along the curve of each case, by its key; none of a comparison."""
        return {
            one.case.key(): tuple(
                ruling
                for ruling in one.rulings
                if ruling.level is Level.WARN and along_curve(ruling.finding.criterion)
            )
            for one in self.cases
        }

    def judges_as(self, matrix: Matrix) -> bool:
        """Whether the criteria of one case say the same by a matrix of today's."""
        today = of_matrix(matrix)
        here = matrix.partitions.keys()
        return (
            self._made_by_this()
            and here <= self.settings_by_partition().keys()
            and all(today[name] == self.settings_by_partition()[name] for name in here)
            and known_flaws(matrix) == known_flaws(self.bounds.matrix)
        )

    def settings_by_partition(self) -> Mapping[str, Any]:
        """The settings of the criteria, and the name of the switch, by partition."""
        return self.bounds.settings

    def _made_by_this(self) -> bool:
        return (self.bounds.netproof, self.bounds.judged_by) == (_version(), JUDGED_BY)

    def differences(self, matrix: Matrix, references: Path) -> tuple[str, ...]:
        """In what today's bounds are not those that it was judged by, a few words each.

        ``matrix``: what was to run, by today's configuration; ``references``: the folder of the
        files. Raises NetproofError where the system's file cannot be used.
        """
        return (
            *self._other_version(),
            *self._other_matrix(matrix),
            *self._other_settings(matrix),
            *self._other_references(references),
        )

    def _other_version(self) -> Iterator[str]:
        if not self._made_by_this():
            yield f"netproof {self.bounds.netproof} judged it, and this is {_version()}"

    def _other_matrix(self, matrix: Matrix) -> Iterator[str]:
        then, now = self.bounds.matrix, matrix
        were, are = {case.key() for case in then.cases}, {case.key() for case in now.cases}
        if were != are:
            yield f"{len(are - were)} cases more are expected and {len(were - are)} no more"
        elif then.cases != now.cases:
            yield "the order of cases, or their ranks on a node"
        parts = (
            ("what is not available", then.absences, now.absences),
            ("which environments are known to be gone", then.retired, now.retired),
            ("the known flaws", known_flaws(then), known_flaws(now)),
            ("the score baseline", then.baseline, now.baseline),
        )
        yield from (name for name, one, other in parts if one != other)

    def _other_settings(self, matrix: Matrix) -> Iterator[str]:
        today = of_matrix(matrix)
        for name in today.keys() | self.bounds.settings.keys():
            then, now = self.bounds.settings.get(name), today.get(name)
            if then is None or now is None:
                yield f"whether {name} was to run"
            elif then != now:
                keys = [key for key in now if now[key] != then.get(key)]
                yield f"{', '.join(keys) or 'the criteria'} of {name}"

    def _other_references(self, folder: Path) -> Iterator[str]:
        path = folder / f"{self.system}.yaml"
        if sha256_of(path) == self.bounds.references_sha256:
            return
        entries = anew.of_file(folder, self.system)
        other = [
            one.case for one in self.cases if digest_of_entries(entries, one.case) != one.entries
        ]
        if other:
            first = "; ".join(map(str, other[:NAMED]))
            more = " and others" if len(other) > NAMED else ""
            count = "1 case" if len(other) == 1 else f"{len(other)} cases"
            yield f"the references of {count} ({first}{more})"


def made(
    verdict: Verdict,
    matrix: Matrix,
    references: Path,
    *,
    partition: str,
    full: bool,
    unread: Sequence[str],
    report_sha256: str,
) -> bytes:
    """What is kept of a verdict that was judged just now.

    ``references``: the folder of the files; the rest as ``KeptBounds`` and ``Kept`` have it. Raises
    NetproofError where the system's file changed meanwhile, so that it cannot be used.
    """
    system = matrix.cases[0].system
    path = references / f"{system}.yaml"
    entries = anew.of_file(references, system)
    kept = Kept(
        FORMAT,
        report_sha256,
        moment(),
        KeptBounds(
            _version(),
            JUDGED_BY,
            partition,
            full,
            matrix,
            of_matrix(matrix),
            path,
            sha256_of(path),
        ),
        tuple(unread),
        {
            one.name: records.as_json(getattr(verdict, one.name))
            for one in dataclasses.fields(verdict)
            if one.name not in _APART
        },
        tuple(
            KeptCase(
                one.case,
                one.level,
                digest_of_entries(entries, one.case),
                one.faults,
                one.expected,
                one.rulings,
            )
            for one in verdict.cases
        ),
        tuple(
            KeptPairs(
                one.rounds.partition,
                one.rounds.environment,
                one.judgement,
                one.alone,
                one.alongside,
                one.bisection,
                one.least,
                one.path,
            )
            for one in verdict.pairs
        ),
    )
    text = json.dumps(records.as_json(kept), allow_nan=False, separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0)


def of_session(
    session: Session, store: Store, stored: StoredSession
) -> tuple[Kept, Verdict] | None:
    """What a store keeps of the verdict on a session that it has, and that verdict.

    None where it keeps none. Raises NetproofError, which names the file, where it is damaged or
    contradicts the session, and LaterFormat.
    """
    kept = read(store, stored)
    if kept is None:
        return None
    with _naming(store, stored):
        return kept, kept.verdict(session)


def read(store: Store, stored: StoredSession) -> Kept | None:
    """What a store keeps of the verdict on a session; as ``of_session``, but for the session."""
    from netproof.store.folder import VERDICT
    from netproof.store.ingest import report_sha256

    content = store.verdict(stored)
    if content is None:
        return None
    with _naming(store, stored):
        document = json_reading.json_value(_unpacked(content), VERDICT, _LIMITS)
        if not isinstance(document, dict) or type(document.get("format")) is not int:
            raise KeptContradiction("it does not say its format")
        if document["format"] > FORMAT:
            raise LaterFormat(
                f"{store.path(stored) / VERDICT} is of format {document['format']}, and this"
                f" netproof knows {FORMAT}"
            )
        kept = records.from_json(Kept, document, VERDICT)
        if not kept.bounds.matrix.cases:
            raise KeptContradiction("nothing was to run by it")
        if kept.report_sha256 != report_sha256(store, stored):
            raise KeptContradiction("it is on another session's report")
        return kept


_LIMITS = dataclasses.replace(
    json_reading.JSON_LIMITS, characters=MOST_BYTES, values=MOST_BYTES // 10
)


class _naming:
    """Within it, what is wrong with a kept verdict is told with its file."""

    def __init__(self, store: Store, stored: StoredSession) -> None:
        from netproof.store.folder import VERDICT

        self.path = store.path(stored) / VERDICT

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, NetproofError) and not isinstance(error, LaterFormat):
            raise NetproofError(
                f"{self.path}: the verdict that is kept cannot be used: {error}; move"
                f" {self.path.parent} out of the store and ingest the session's report again"
            ) from error


def _unpacked(content: bytes) -> str:
    try:
        with gzip.open(io.BytesIO(content)) as file:
            text = file.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise NetproofError(f"it has more than {MOST_BYTES} bytes")
        return text.decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise NetproofError(f"it cannot be unpacked: {error}") from error


def moment() -> str:
    """The time, UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _version() -> str:
    return version("netproof")
