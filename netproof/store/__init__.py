"""The store: every session's curves, cases and provenance as Parquet files.

``columns`` says what the tables are, ``rows`` makes them of a report and ``reading`` the session
of them again, ``folder`` puts sessions in place and lists them, ``questions`` asks through DuckDB.
"""

from netproof.store.folder import Store, StoredSession

__all__ = ["Store", "StoredSession"]
