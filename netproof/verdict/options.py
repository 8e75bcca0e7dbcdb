"""What a command may ask of a verdict, with its defaults; importing it costs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

EARLIER_SESSIONS = 10
"""How many earlier sessions a configuration is remembered for once it is gone."""

SESSIONS = 10
"""How many earlier sessions have to have had a warning, fewer where there are fewer."""

MAX_AGE_DAYS = 30.0
"""Days between two sessions beyond which the stored one is marked, unless told otherwise."""


@dataclass(frozen=True)
class AlongsideOptions:
    """Which sessions of a store may stand alongside.

    ``max_age_days``: beyond which one is marked; ``leave_out_marked``: whether what is marked,
    for its age or its versions, stays out. Then an older result without a mark takes its place,
    where there is one.
    """

    store: Path
    max_age_days: float = MAX_AGE_DAYS
    leave_out_marked: bool = False
