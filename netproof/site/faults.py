"""Faults in the files of a site: each with its place, its key and a remedy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from netproof.errors import NetproofError, without_middle


class SiteError(NetproofError):
    """A site's file that cannot be used; the text names file, place, key and remedy."""

    def __init__(self, path: Path | str, place: str, key: str, reason: str) -> None:
        self.path = str(path)
        self.place, self.key, self.reason = map(without_middle, (place, key, reason))
        super().__init__(f"{path}: {self.place}: {self.key}: {self.reason}")


class SiteFile:
    """A site's file while it is read: every fault of it is collected, not just the first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.faults: list[SiteError] = []

    def refuse(self, place: str, key: str, reason: str) -> None:
        """Add a fault."""
        self.faults.append(SiteError(self.path, place, key, reason))


def insist(faults: Sequence[SiteError]) -> None:
    """Raise the first fault, if any, and say how many more there are."""
    if len(faults) > 1:
        first = faults[0]
        more = f"{len(faults) - 1} more {'fault' if len(faults) == 2 else 'faults'}"
        raise SiteError(
            first.path,
            first.place,
            first.key,
            f"{first.reason}; and {more}, which 'netproof site check' reports",
        )
    if faults:
        raise faults[0]
