"""The store: every session as it was, the verdict on it, and Parquet tables for questions.

``columns`` and ``tables`` say what the tables are, ``rows`` makes them of a session, ``folder``
puts sessions in place and lists them, ``questions`` reads sessions and asks through DuckDB.
"""

from netproof.store.folder import Store, StoredSession

__all__ = ["Store", "StoredSession"]
