"""The verdict as it is stored with its session, and the bounds that it was judged by.

A session is judged when it comes into the store, and its verdict is read from then on. Digests show
whether today's bounds are the same. What was measured is not in the document: it is read from the
session, and only where it is asked for.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from netproof import codec
from netproof.criteria import Finding, Level
from netproof.criteria.registry import BY_FINDING
from netproof.errors import NetproofError, counted, listed
from netproof.intake import disk
from netproof.measurement.case import Case
from netproof.pairs import verdict as pairs
from netproof.pairs.verdict import PairsVerdict
from netproof.session.session import Session
from netproof.site.matrix import Matrix
from netproof.site.partition import ScoreBaseline
from netproof.store import folder as store_folder
from netproof.store.folder import VERDICT, Damaged, Store, StoredSession
from netproof.verdict.engine import Key
from netproof.verdict.judge import last_results
from netproof.verdict.references import Entries, NotThere, entries_of
from netproof.verdict.verdict import CaseVerdict, Verdict

FORMAT = 8
"""Version of the document; raised when a key changes its meaning or goes."""

MOST_BYTES = 4_000_000_000
"""Size limit of the document, unpacked: 100,000 cases with all their findings."""

_APART = ("cases", "pairs", "compared_with")
"""Parts of a verdict that are stored in their own form, or never."""

_ENTRIES = "entries"

JUDGED_BY = 10
"""Raised when the same session and bounds can get another verdict than before."""

_OF_SITE = (
    *("switch", "interface", "link_mbit_s", "mtu", "nodes"),
    *("may_differ", "clock_offset_ms", "coverage_percent"),
)
"""Keys of a partition that a verdict depends on, besides its rails and rounds of pairs."""


def _bounds(matrix: Matrix, references: Path) -> dict[str, Any]:
    """Return today's bounds as ``StoredVerdict`` has them; ``references``: the folder of the files.

    Raise NetproofError where the system's file cannot be read.
    """
    here = {case.environment for case in matrix.cases}
    known = {name: flaws for name, flaws in matrix.known.items() if name in here and flaws}
    parts = {
        "the expected cases": matrix.cases,
        "what is not available": matrix.absences,
        "which environments are known to be gone": sorted(matrix.retired),
        "the known flaws": known,
        "the score baseline": matrix.baseline,
    }
    settings = {
        name: {
            **{key: getattr(one, key) for key in _OF_SITE},
            "rails": one.rails_or_interface(),
            # Environments say where they are measured, which is no bound.
            "pairs": one.pair_settings().model_dump(mode="json", exclude={"environments"}),
            **vars(one.settings()),
        }
        for name, one in matrix.partitions.items()
    }
    path = references / f"{matrix.cases[0].system}.yaml"
    try:
        content = disk.read_bytes(path)
    except OSError as error:
        raise NetproofError(f"{path}: cannot be read: {error.strerror}") from error
    return {
        "netproof": (version("netproof"), JUDGED_BY),
        "matrix": {name: _digest(value) for name, value in parts.items()},
        "settings": {
            name: {key: _digest(value) for key, value in of_partition.items()}
            for name, of_partition in settings.items()
        },
        "references": hashlib.sha256(content).hexdigest(),
    }


def _digest_of_entries(entries: Entries, case: Case) -> str:
    try:
        return _digest(entries(case))
    except NotThere:
        return "none"


def _digest(value: Any) -> str:
    plain = json.dumps(value, default=codec.encode, sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class StoredVerdict:
    """The document of a verdict.

    ``at``: when it was judged, UTC, to the second; ``partition``: the only one that was to run,
    empty for all of the system; ``full``: with the tests of ``checks/full``; ``netproof``: its
    version, and ``JUDGED_BY``; ``matrix``, ``settings``, ``references``: digests of the bounds: of
    each part of the matrix, by its name in a sentence, of each key of each partition, and of the
    file; ``culprits``, ``next_step``: the summary of its diagnosis; ``verdict``: its parts without
    ``cases`` and ``pairs``; ``cases``, ``pairs``: without what was measured; each case has also the
    digest of its ``entries`` in the file of references.
    """

    at: str
    system: str
    partition: str
    full: bool
    report_sha256: str
    netproof: tuple[str, int]
    matrix: dict[str, str]
    settings: dict[str, dict[str, str]]
    references: str
    baseline: ScoreBaseline | None
    culprits: tuple[str, ...]
    next_step: str
    verdict: dict[str, Any]
    pairs: tuple[dict[str, Any], ...]
    cases: tuple[dict[str, Any], ...]

    @property
    def judged(self) -> str:
        """When it was judged, to the minute."""
        return f"{self.at[:10]} {self.at[11:16]} UTC"

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
        now, found = _bounds(matrix, references), []
        if self.netproof != now["netproof"]:
            found = [f"netproof {self.netproof[0]} judged it, and this is {now['netproof'][0]}"]
        found += [name for name, one in now["matrix"].items() if self.matrix.get(name) != one]
        for name in sorted(self.settings.keys() | now["settings"].keys()):
            then, today = self.settings.get(name), now["settings"].get(name)
            if then is None or today is None:
                found.append(f"whether {name} was to run")
            elif then != today:
                keys = [key for key in today if today[key] != then.get(key)]
                found.append(f"{', '.join(keys) or 'the criteria'} of {name}")
        if now["references"] != self.references:
            entries = entries_of(references, self.system)
            cases = [codec.decode(Case, one["case"], "case") for one in self.cases]
            other = [
                str(case)
                for case, one in zip(cases, self.cases, strict=True)
                if _digest_of_entries(entries, case) != one[_ENTRIES]
            ]
            if other:
                found.append(f"the references of {counted(len(other))} ({listed(other)})")
        return tuple(found)

    def on(self, session: Session) -> Verdict:
        """Return the verdict on its session; NetproofError where it has not all parts."""
        known = typing.get_type_hints(Verdict)
        if odd := (known.keys() - set(_APART)) ^ self.verdict.keys():
            raise NetproofError(f"its parts are not those of a verdict: {', '.join(sorted(odd))}")
        parts = {
            name: codec.decode(known[name], value, name) for name, value in self.verdict.items()
        }
        results = cache(lambda: last_results(session))
        cases = tuple(
            dataclasses.replace(codec.decode(CaseVerdict, one, "cases"), results=results)
            for one in ({k: v for k, v in each.items() if k != _ENTRIES} for each in self.cases)
        )
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
        return Verdict(cases=cases, pairs=rounds_judged, **parts)


def document(verdict: Verdict, matrix: Matrix, references: Path, **known: Any) -> bytes:
    """Return the stored form of a verdict that was judged just now.

    ``references``: the folder of the files; ``known``: the remaining fields of ``StoredVerdict``.
    Raise NetproofError where the system's file changed meanwhile and cannot be used.
    """
    system = matrix.cases[0].system
    entries = entries_of(references, system)
    head = {
        "format": FORMAT,
        "cases": len(verdict.cases),
        "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "system": system,
        **known,
        **_bounds(matrix, references),
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
            _ENTRIES: _digest_of_entries(entries, one.case),
            **codec.encode(dataclasses.replace(one, results=dict)),
        }
        for one in verdict.cases
    )
    return store_folder.packed([head, *cases])


def read(store: Store, stored: StoredSession) -> StoredVerdict | None:
    """Return the stored verdict on a session; None where it has none.

    Raise NetproofError, which names the file, where it is damaged, of another format, or on
    another session.
    """
    from netproof.store.ingest import report_sha256

    if not store.has_verdict(stored):
        return None
    content = store_folder.verify(store.path(stored), VERDICT)
    with _naming(store, stored):
        head, *cases = store_folder.unpacked(content, VERDICT, MOST_BYTES)
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
    with _naming(store, stored):
        return found, found.on(session)


@contextmanager
def _naming(store: Store, stored: StoredSession) -> Iterator[None]:
    """Let errors name the file of a stored verdict."""
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
