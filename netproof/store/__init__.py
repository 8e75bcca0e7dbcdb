"""The store: every session's curves, cases and provenance as Parquet files.

``folder`` puts sessions in place and lists them, ``rows`` turns a report into tables and back,
``columns`` says what the tables are, ``questions`` asks them through DuckDB.
"""

from netproof.store.folder import Store, StoredSession

__all__ = ["Store", "StoredSession"]
