"""The store: every session as it was, the verdict on it, and Parquet tables for questions.

``tables`` says what the tables are, ``ingest`` makes them of a session, ``folder`` puts sessions in
place, lists them and verifies their files, ``questions`` reads sessions and asks through DuckDB.
"""

from netproof.store.folder import Store, StoredSession

__all__ = ["Store", "StoredSession"]
