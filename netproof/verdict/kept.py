"""The verdict as it is stored with its session, and the bounds that it was judged by.

It is judged once, when the session comes into the store, and read from then on. Its bounds are
stored with it: the matrix, the settings of the criteria, a digest of the references and of each
case's entries, the version of netproof. They show whether today's bounds are still the same.
"""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import typing
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netproof import codec
from netproof.criteria import Finding, Level
from netproof.errors import NetproofError
from netproof.intake import json_reading
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
from netproof.verdict.lone_pairs import LonePair
from netproof.verdict.pairs import JudgedPairs
from netproof.verdict.subject import Ruling
from netproof.verdict.verdict import cases_of, complete, measured_again

if TYPE_CHECKING:
    from netproof.store import Store, StoredSession

FORMAT = 1
"""Version of the stored form; raised when a key changes its meaning or goes."""

JUDGED_BY = 9
"""Raised when the same session and bounds can get another verdict than before."""

MOST_BYTES = 400_000_000
"""Size limit of the stored form, unpacked: 100,000 cases with all their findings."""

NAMED = 3
"""Cases that a sentence names."""

_APART = ("cases", "pairs", "alongside")
"""Parts of a verdict that are stored in their own form, or never."""


@dataclass(frozen=True)
class KeptPairs:
    """Verdict on the rounds of pairs of one job, as in ``JudgedPairs``.

    ``beside`` is its ``alongside``, by the key in stores.
    """

    partition: str
    environment: str
    judgement: Judgement
    alone: tuple[Alone, ...]
    beside: Mapping[str, str]
    bisection: Bisection | None = None
    least: float | None = None
    path: Finding | None = None
    lone: tuple[LonePair, ...] = ()


@dataclass(frozen=True)
class Kept:
    """A verdict as it is stored with its session.

    ``report_sha256``: of the session's report; ``at``: when it was judged, UTC, to the second;
    ``unread``: why an earlier session could not be read, a sentence each; ``others``: all parts of
    the verdict but ``cases`` and ``pairs``.
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
        """Judged system."""
        return self.bounds.matrix.cases[0].system

    def is_of(self, system: str, partition: str, full: bool) -> bool:
        """Check whether it is on this system, or on this partition alone if one is given.

        ``full``: as in ``KeptBounds``.
        """
        asked = (system, partition, full)
        return asked == (self.system, self.bounds.partition, self.bounds.full)

    def verdict(self, session: Session) -> Verdict:
        """Return the verdict on its session; KeptContradiction where it is on another.

        Measurements of cases and of rounds of pairs are taken from the session, and not stored
        twice. Failed tests and skipped cases are compared with the session's. Whatever fails in a
        part has to be among the faults, and no part may be missing.
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
        known = typing.get_type_hints(Verdict)
        names = known.keys() - set(_APART)
        if missing := names - self.others.keys():
            raise KeptContradiction(f"it says nothing of {', '.join(sorted(missing))}")
        if odd := self.others.keys() - names:
            raise KeptContradiction(f"it says something of {sorted(odd)[0]!r}, which nobody knows")
        return {name: codec.decode(known[name], value, name) for name, value in self.others.items()}

    def _judged_pairs(self, session: Session) -> Iterator[JudgedPairs]:
        """Yield the verdicts on rounds of pairs, with the session's rounds."""
        measured = [rounds for rounds, _ in pairs.rounds_of(session)]
        stored = [(one.partition, one.environment, set(one.judgement.nodes)) for one in self.pairs]
        if stored != [(one.partition, one.environment, set(one.nodes)) for one in measured]:
            raise KeptContradiction("its rounds of pairs are not those of the session")
        for one, rounds in zip(self.pairs, measured, strict=True):
            yield JudgedPairs(
                rounds,
                one.judgement,
                one.alone,
                one.beside,
                one.bisection,
                one.least,
                one.path,
                one.lone,
            )

    def warnings(self) -> dict[tuple[Any, ...], tuple[Ruling, ...]]:
        """Return the warnings along the curve of each case, by its key, without comparisons."""
        return {
            one.case.key(): tuple(
                ruling
                for ruling in one.rulings
                if ruling.level is Level.WARN and along_curve(ruling.finding.criterion)
            )
            for one in self.cases
        }

    def judges_as(self, matrix: Matrix) -> bool:
        """Check whether today's matrix has the same criteria and settings for single cases."""
        today = of_matrix(matrix)
        here = matrix.partitions.keys()
        return (
            self._made_by_this()
            and here <= self.settings_by_partition().keys()
            and all(today[name] == self.settings_by_partition()[name] for name in here)
            and known_flaws(matrix) == known_flaws(self.bounds.matrix)
        )

    def settings_by_partition(self) -> Mapping[str, Any]:
        """Return the settings of the criteria, and the name of the switch, by partition."""
        return self.bounds.settings

    def _made_by_this(self) -> bool:
        return (self.bounds.netproof, self.bounds.judged_by) == (_version(), JUDGED_BY)

    def differences(self, matrix: Matrix, references: Path) -> tuple[str, ...]:
        """Return the differences of today's bounds from its own, a few words each.

        ``matrix``: by today's configuration; ``references``: the folder of the files. Raises
        NetproofError where the system's file cannot be used.
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
    """Return the stored form of a verdict that was judged just now.

    ``references``: the folder of the files; the rest as in ``KeptBounds`` and ``Kept``. Raises
    NetproofError where the system's file changed meanwhile and cannot be used.
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
            one.name: codec.encode(getattr(verdict, one.name))
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
                one.lone,
            )
            for one in verdict.pairs
        ),
    )
    text = json.dumps(codec.encode(kept), allow_nan=False, separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0)


def of_session(
    session: Session, store: Store, stored: StoredSession
) -> tuple[Kept, Verdict] | None:
    """Read the stored verdict on a session, in both forms; None where it has none.

    Raises NetproofError, which names the file, where it is damaged, of another format, or
    contradicts the session.
    """
    kept = read(store, stored)
    if kept is None:
        return None
    with _naming(store, stored):
        return kept, kept.verdict(session)


def read(store: Store, stored: StoredSession) -> Kept | None:
    """Read the stored verdict on a session, as ``of_session`` without the session."""
    from netproof.store.folder import VERDICT
    from netproof.store.ingest import report_sha256

    content = store.verdict(stored)
    if content is None:
        return None
    with _naming(store, stored):
        document = json_reading.json_value(_unpacked(content), VERDICT, _LIMITS)
        if not isinstance(document, dict) or type(document.get("format")) is not int:
            raise KeptContradiction("it does not say its format")
        if document["format"] != FORMAT:
            raise KeptContradiction(
                f"it is of format {document['format']}, and this netproof reads {FORMAT}"
            )
        kept = codec.decode(Kept, document, VERDICT)
        if not kept.bounds.matrix.cases:
            raise KeptContradiction("nothing was to run by it")
        if kept.report_sha256 != report_sha256(store, stored):
            raise KeptContradiction("it is on another session's report")
        return kept


_LIMITS = dataclasses.replace(
    json_reading.JSON_LIMITS, characters=MOST_BYTES, values=MOST_BYTES // 10
)


class _naming:
    """Context in which errors name the file of a stored verdict."""

    def __init__(self, store: Store, stored: StoredSession) -> None:
        from netproof.store.folder import VERDICT

        self.path = store.path(stored) / VERDICT

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, NetproofError):
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
    """Return the time, UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _version() -> str:
    return version("netproof")
