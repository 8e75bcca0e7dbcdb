"""Columns of the store's tables: their Arrow types and meanings."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
"""The columns that identify a case within its session; rows are sorted by these, in this order."""

_PLAIN = {str: TEXT_TYPE, int: BYTES_TYPE, float: NUMBER_TYPE, bool: pa.bool_()}


def arrow_type(kind: Any) -> pa.DataType:
    """Return the Arrow type of a record or of a field's type.

    A record is a struct of its fields; pairs of texts are a map, as mappings are; None is null.
    """
    if kind in _PLAIN:
        return _PLAIN[kind]
    if dataclasses.is_dataclass(kind):
        known = typing.get_type_hints(kind)
        return pa.struct(
            [(one.name, arrow_type(known[one.name])) for one in dataclasses.fields(kind)]
        )
    origin, parameters = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        (only,) = [one for one in parameters if one is not type(None)]
        return arrow_type(only)
    if origin is tuple and typing.get_args(parameters[0]) == (str, str):
        return MAP_TYPE
    if origin is tuple:
        return pa.list_(arrow_type(parameters[0]))
    if origin is not None and issubclass(origin, Mapping):
        return pa.map_(*map(arrow_type, parameters))
    raise TypeError(f"{kind} has no type in a table")
