"""The verdict on a session; importing this package, with its options and statuses, is cheap."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

EARLIER_SESSIONS = 10
"""Earlier sessions that a missing configuration is looked for in."""

SESSIONS = 10
"""Earlier sessions that need to have had a warning, or as many as there are."""

MAX_AGE_DAYS = 30.0
"""Default of the days between two sessions beyond which the stored one is marked."""


@dataclass(frozen=True)
class StoredOptions:
    """Sessions of a store that may be compared with.

    ``max_age_days``: age beyond which one is marked; ``leave_out_marked``: whether results that are
    marked, for their age or versions, are left out. An older result without a mark then replaces
    one, if available.
    """

    store: Path
    max_age_days: float = MAX_AGE_DAYS
    leave_out_marked: bool = False


PASSED, FAILED, CANNOT, INCONCLUSIVE = 0, 1, 2, 3
"""Exit statuses of all verbs; interrupts and broken pipes end them as a signal would. ``CANNOT``:
faulty arguments or environment; ``INCONCLUSIVE``: nothing failed, some is undecided, missing or
incomplete."""
