"""What a column of the store's tables is, of which types, and which tell cases apart."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

TEXT_TYPE, COUNT_TYPE, NUMBER_TYPE, BYTES_TYPE = pa.string(), pa.int32(), pa.float64(), pa.int64()
TIME_TYPE = pa.timestamp("us")
MAP_TYPE = pa.map_(pa.string(), pa.string())
TEXTS_TYPE = pa.list_(pa.string())


@dataclass(frozen=True)
class StoreColumn:
    """One column: its Arrow type, and what it means, with its unit.

    ``nullable``: whether it can be unknown or undefined.
    """

    type: pa.DataType
    meaning: str
    nullable: bool = False


KEY = {
    "benchmark": StoreColumn(TEXT_TYPE, "the benchmark: `netpipe`, `imb`, …"),
    "function": StoreColumn(TEXT_TYPE, "function of the benchmark; of NetPIPE `tcp` or `mpi`"),
    "ranks": StoreColumn(COUNT_TYPE, "ranks"),
    "path": StoreColumn(TEXT_TYPE, "`between` nodes or `inside` one"),
    "direction": StoreColumn(TEXT_TYPE, "`oneway` or `bidirectional`"),
    "partition": StoreColumn(TEXT_TYPE, "ReFrame's partition: the switch"),
    "environment": StoreColumn(TEXT_TYPE, "ReFrame's environment: the MPI library"),
}
"""What tells the cases of a session apart; rows are sorted by these, in this order."""
