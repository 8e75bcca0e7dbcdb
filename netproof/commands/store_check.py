"""The body of ``netproof store check``: reads all of a store and names damaged files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from netproof.errors import NetproofError
from netproof.present import tables
from netproof.store import checksums, questions
from netproof.store.folder import VERDICT, Store, StoredSession
from netproof.verdict import stored as stored_verdicts

SOUND, FAULTY = 0, 2
"""Exit statuses: all is as written; something is damaged or cannot be checked."""


@dataclass(frozen=True)
class CheckedStore:
    """Result of reading all of a session: its faults by file."""

    stored: StoredSession
    faults: tuple[str, ...]


def check(store: Store, stored: StoredSession) -> CheckedStore:
    """Read every file of a session; compare it with its checksum and with the other files."""
    folder = store.path(stored)
    try:
        found = checksums.faults(folder, store.files(stored))
    except checksums.Damaged as error:
        return CheckedStore(stored, (str(error),))
    except OSError as error:
        return CheckedStore(stored, (f"{folder}: cannot be read: {error.strerror}",))
    if not found:
        try:
            session = questions.whole(store, stored)
            if (judged := stored_verdicts.on_session(session, store, stored)) is not None:
                stored_verdicts.insist_on_session(judged[1], session, folder / VERDICT)
        except NetproofError as error:
            return CheckedStore(stored, (str(error),))
    return CheckedStore(stored, tuple(map(str, found)))


def run(folder: Path) -> int:
    """Check the store in ``folder``, print each fault and the counts, and return the exit status.

    0: all is as it was written; 2: something is damaged, or there is no store.
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
    damaged = sum(bool(one.faults) for one in done)
    tables.say(out, f"{len(done)} sessions: {len(done) - damaged} verified, {damaged} damaged")
    return FAULTY if damaged else SOUND
