"""Intended changes: who accepted them, why, and from which session on.

Each is a small file of its own in the store, ``accepted/SYSTEM/SESSION-….json``, renamed into place
and never changed; to revoke an acceptance, remove its file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from netproof import codec
from netproof.errors import NetproofError
from netproof.history.selection import Selection
from netproof.history.series import Series
from netproof.intake import disk
from netproof.store import Store, StoredSession
from netproof.store.folder import ACCEPTED

FORMAT = 1
"""Format of an acceptance's file; raised when a key changes its meaning or goes."""


@dataclass(frozen=True)
class Acceptance:
    """Acceptance of a new level of the series that ``covers`` has, from ``session`` on.

    ``at``: when it was recorded, UTC. Raise NetproofError without a reason or a name, and where it
    covers everything without saying so.
    """

    system: str
    session: str
    reason: str
    name: str
    at: str
    covers: Selection

    def __post_init__(self) -> None:
        StoredSession(self.session, self.system)
        for what in ("reason", "name"):
            if not getattr(self, what).strip():
                raise NetproofError(f"an acceptance needs a {what}: give --{what}")
        if self.covers.everything:
            raise NetproofError(
                "an acceptance says what it covers: an expression for cases (--case . for all of"
                " them), SYSTEM:PARTITION, --environment or --quantity"
            )

    @property
    def first(self) -> StoredSession:
        """Return the first session at the new level."""
        return StoredSession(self.session, self.system)

    def __str__(self) -> str:
        return (
            f"{self.covers} from session {self.session} on: {self.reason} ({self.name}, {self.at})"
        )


def put(store: Store, acceptance: Acceptance) -> Path:
    """Write an acceptance to the store and return its file.

    Raise NetproofError where the store does not have its session, or cannot be written.
    """
    if not store.path(acceptance.first).is_dir():
        raise NetproofError(
            f"{store.folder}: has no session {acceptance.session} of {acceptance.system}"
        )
    content = (json.dumps({"format": FORMAT, **asdict(acceptance)}, indent=1) + "\n").encode()
    digest = hashlib.sha256(content).hexdigest()[:8]
    name = f"{acceptance.session}-{digest}.json"
    target = store.folder / ACCEPTED / acceptance.system / name
    store.replace(target, content, "accept")
    return target


def load(store: Store, system: str) -> tuple[Acceptance, ...]:
    """Return all acceptances of a system, in order of their sessions.

    Raise NetproofError, with the file, where one is damaged or foreign.
    """
    found = [_read(path, system) for path in store.acceptances(system)]
    return tuple(sorted(found, key=lambda one: (one.session, one.at)))


def nights(
    acceptances: Sequence[Acceptance], sessions: Sequence[StoredSession], followed: Series
) -> frozenset[int]:
    """Return which of ``sessions`` begin an intended level, by their place.

    Where the session of an acceptance is not among them, the next one after it counts.
    """
    found = set()
    for one in acceptances:
        if one.first < sessions[0] or not one.covers.covers(followed):
            continue
        later = [night for night, stored in enumerate(sessions) if stored >= one.first]
        found.update(later[:1])
    return frozenset(found)


def _read(path: Path, system: str) -> Acceptance:
    try:
        values = disk.json_file(path)
        stated = values.pop("format", None) if isinstance(values, dict) else None
        if stated != FORMAT:
            raise NetproofError(
                f"format: found {stated!r}, expected {FORMAT}, the only format known here"
            )
        found = codec.decode(Acceptance, values, "")
        if found.system != system or not path.name.startswith(f"{found.session}-"):
            raise NetproofError(f"it is of session {found.session} of {found.system}")
    except (NetproofError, OSError, ValueError) as error:
        why = str(error) if isinstance(error, NetproofError) else repr(error)
        raise NetproofError(
            f"{path}: no acceptance can be read from it: {why}; remove it and accept again"
        ) from error
    return found
