"""The body of ``netproof store check``: reads all of a store and names damaged files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from netproof.errors import NetproofError
from netproof.present import tables
from netproof.store import checksums, questions
from netproof.store.folder import Store, StoredSession
from netproof.verdict import kept

SOUND, FAULTY = 0, 2
"""Exit statuses: all is as written; something is damaged or cannot be checked."""


@dataclass(frozen=True)
class CheckedStore:
    """Result of reading all of a session: whether it has checksums, and its faults by file."""

    stored: StoredSession
    verified: bool
    faults: tuple[str, ...]


def check(store: Store, stored: StoredSession) -> CheckedStore:
    """Read every file of a session, and compare it with its checksum, if any."""
    folder = store.path(stored)
    try:
        verified, found = checksums.faults(folder, store.files(stored))
    except checksums.Damaged as error:
        return CheckedStore(stored, False, (str(error),))
    except OSError as error:
        return CheckedStore(stored, False, (f"{folder}: cannot be read: {error.strerror}",))
    if not found:
        try:
            kept.of_session(questions.opened(store, stored), store, stored)
        except kept.LaterFormat:
            pass
        except NetproofError as error:
            return CheckedStore(stored, verified, (str(error),))
    return CheckedStore(stored, verified, tuple(map(str, found)))


def run(folder: Path) -> int:
    """Check the store in ``folder``, print each fault and the counts, and return the exit status.

    0: all is as it was written, as far as sessions have checksums; 2: something is damaged, or
    there is no store.
    """
    out, err = tables.console(), tables.console(stderr=True)
    try:
        store = Store(folder)
        sessions = store.sessions()
    except NetproofError as error:
        tables.say(err, f"netproof: {error}", "red")
        return FAULTY
    done = []
    for number, stored in enumerate(sessions, 1):
        with tables.working(f"reading session {number} of {len(sessions)}"):
            done.append(check(store, stored))
        for fault in done[-1].faults:
            tables.say(out, fault, "red")
    damaged = [one for one in done if one.faults]
    unverified = [one for one in done if not one.faults and not one.verified]
    if unverified:
        tables.say(
            out,
            f"{len(unverified)} sessions were stored before there were checksums: they can be read,"
            f" but not checked against what was written: {_some(unverified)}",
            "yellow",
        )
    tables.say(
        out,
        f"{len(done)} sessions: {len(done) - len(damaged) - len(unverified)} verified,"
        f" {len(unverified)} unverified, {len(damaged)} damaged",
    )
    return FAULTY if damaged else SOUND


def _some(several: list[CheckedStore]) -> str:
    names = [one.stored.name for one in several]
    return f"{', '.join(names[:3])}{' and others' if len(names) > 3 else ''}"
