"""The verdict on a session; importing this package, with its statuses, is cheap."""

EARLIER_SESSIONS = 10
"""Earlier sessions that a missing configuration is looked for in."""

SESSIONS = 10
"""Earlier sessions that need to have had a warning, or as many as there are."""

MAX_AGE_DAYS = 30.0
"""Default of the days between two sessions beyond which the stored one is marked."""


PASSED, FAILED, CANNOT, INCONCLUSIVE = 0, 1, 2, 3
"""Exit statuses of all verbs; interrupts and broken pipes end them as a signal would. ``CANNOT``:
faulty arguments or environment; ``INCONCLUSIVE``: nothing failed, some is undecided, missing or
incomplete."""
