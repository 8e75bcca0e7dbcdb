"""Exit statuses of all verbs. Interrupts and broken pipes end them as a signal would."""

from __future__ import annotations

PASSED, FAILED, CANNOT, INCONCLUSIVE = 0, 1, 2, 3
"""``CANNOT``: faulty arguments or environment; ``INCONCLUSIVE``: nothing failed, some is undecided,
missing or incomplete."""
