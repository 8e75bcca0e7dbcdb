"""Exit statuses of what judges: all passed, something failed, something cannot be judged."""

from __future__ import annotations

PASSED, FAILED, CANNOT_JUDGE = 0, 1, 2
