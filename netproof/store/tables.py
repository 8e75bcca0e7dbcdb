"""Schemas of the store's tables, as data.

docs/reference/tables.md says what columns mean.

A session's files lie under ``system=…/month=…/session=…``, so that ``system``, ``month`` and
``session`` are columns of every table for whatever reads the path, and of no file.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from netproof.measurement import twin
from netproof.measurement.counters import Counters, Payload
from netproof.measurement.cpu_use import NodeCost
from netproof.measurement.curve import Curve
from netproof.measurement.disturbance import NodeLoad, Pace
from netproof.measurement.eager_limit import EagerLimit
from netproof.measurement.landmark_table import LANDMARKS
from netproof.session.measured import Crash, Peer, RankUse
from netproof.session.node_facts import Node

PATH_COLUMNS = ("system", "month", "session")

TEXT, COUNT, NUMBER, BYTES = pa.string(), pa.int32(), pa.float64(), pa.int64()
TIME, TEXTS, MAP = pa.timestamp("us"), pa.list_(TEXT), pa.map_(TEXT, TEXT)

Column = pa.DataType | pa.Field

_PLAIN = {str: TEXT, int: BYTES, float: NUMBER, bool: pa.bool_()}


def _or_null(kind: pa.DataType) -> pa.Field:
    """Return the column of values that can be unknown or undefined."""
    return pa.field("", kind)


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
        return MAP
    if origin is tuple:
        return pa.list_(arrow_type(parameters[0]))
    if origin is not None and issubclass(origin, Mapping):
        return pa.map_(*map(arrow_type, parameters))
    raise TypeError(f"{kind} has no type in a table")


def _several(record: type) -> pa.Field:
    return _or_null(pa.list_(arrow_type(record)))


def _structs(*names: str, kind: pa.DataType = TEXT) -> pa.ListType:
    """Return a list of structs; the first field is text, the others are of ``kind``."""
    return pa.list_(pa.struct([(names[0], TEXT), *((name, kind) for name in names[1:])]))


def _of_nodes() -> dict[str, Column]:
    """Return a column for each fact of a node; its whole numbers are small."""
    found: dict[str, Column] = {}
    for name, kind in typing.get_type_hints(Node).items():
        of_kind = COUNT if kind == int | None else arrow_type(kind)
        found[name] = _or_null(of_kind) if type(None) in typing.get_args(kind) else of_kind
    return found


KEY: dict[str, Column] = {
    "benchmark": TEXT,
    "function": TEXT,
    "ranks": COUNT,
    "path": TEXT,
    "direction": TEXT,
    "partition": TEXT,
    "environment": TEXT,
}
"""The columns that identify a case within its session; rows are sorted by these, in this order."""

_NUMBERS = {name: _or_null(BYTES if one.whole else NUMBER) for name, one in LANDMARKS.items()}

LANDMARK_COLUMNS: dict[str, Column] = {
    **{name: column for name, column in _NUMBERS.items() if name not in twin.NAMES},
    "eager_limit": _or_null(arrow_type(EagerLimit)),
    "undefined": _or_null(MAP),
    "intervals": _or_null(_structs("landmark", "low", "high", kind=NUMBER)),
    **{name: _NUMBERS[name] for name in twin.NAMES},
}
"""Columns on the landmarks of a case's curve."""

_PLACE = {"partition": TEXT, "environment": TEXT}

OUTCOME: dict[str, Column] = {
    "result": TEXT,
    "phase": TEXT,
    "reason": TEXT,
    "seconds": NUMBER,
    "nodes": TEXTS,
    "folder": _or_null(TEXT),
}

_POINT_COLUMNS: dict[str, Column] = {
    "size_bytes": BYTES,
    "time_us": NUMBER,
    **dict.fromkeys(("bandwidth_mb_s", "time_min_us", "time_avg_us"), _or_null(NUMBER)),
}
POINT = tuple(_POINT_COLUMNS)
"""Columns of a curve's size, which have the names of its fields but for the size."""


def _schema(columns: Mapping[str, Column]) -> pa.Schema:
    """Return a schema; a column that is only a type has no null."""
    fields = (
        column.with_name(name)
        if isinstance(column, pa.Field)
        else pa.field(name, column, nullable=False)
        for name, column in columns.items()
    )
    return pa.schema(fields)


TABLES: dict[str, pa.Schema] = {
    # A session, with what is known of where it came from.
    "sessions": _schema(
        {
            "uuid": TEXT,
            **dict.fromkeys(("started", "ended"), TIME),
            **dict.fromkeys(("host", "user", "command"), TEXT),
            **dict.fromkeys(("cases", "measured"), COUNT),
            "labels": MAP,
            "reframe": TEXT,
            **dict.fromkeys(("netproof", "slurm"), _or_null(TEXT)),
            "mpi": MAP,
            "git_revision": _or_null(TEXT),
            "git_changed": _or_null(pa.bool_()),
            "files": _structs("kind", "path", "sha256"),
            "differences": TEXTS,
            "unknown": MAP,
            "slurm_nodes": _or_null(_structs("partition", "node", "state", "reason")),
            "slurm_unknown": _or_null(MAP),
            **dict.fromkeys(("report", "report_sha256"), TEXT),
        }
    ),
    # A case of a session; what was not measured has nulls from ``jobid`` on.
    "cases": _schema(
        {
            **KEY,
            "ranks_per_node": _or_null(COUNT),
            "check": TEXT,
            "attempts": COUNT,
            **OUTCOME,
            "failed_job": _or_null(TEXT),
            "complete": pa.bool_(),
            "jobid": _or_null(TEXT),
            "seed": _or_null(BYTES),
            "launches": _or_null(COUNT),
            "crashes": _several(Crash),
            "inconclusive": _or_null(TEXTS),
            **dict.fromkeys(("switch", "nic", "driver"), _or_null(TEXT)),
            "link_mbit_s": _or_null(NUMBER),
            "mtu": _or_null(COUNT),
            "mpi": _or_null(TEXT),
            "line_rate_mb_s": _or_null(NUMBER),
            **LANDMARK_COLUMNS,
            "cpu_costs": _several(NodeCost),
            **dict.fromkeys(("partition_extras", "environment_extras"), _or_null(TEXT)),
        }
    ),
    # A launch of a case.
    "launches": _schema(
        {
            **KEY,
            **dict.fromkeys(("launch", "position"), COUNT),
            "started": TIME,
            "wall_s": NUMBER,
            "ranks_used": pa.list_(arrow_type(RankUse)),
            "loads": _several(NodeLoad),
            "extra": pa.bool_(),
            "twin": _or_null(arrow_type(Curve)),
            "paired": _several(Peer),
            "counters": _or_null(arrow_type(Counters)),
            "payload": _or_null(arrow_type(Payload)),
            "paces": _several(Pace),
            "exchanged": _or_null(arrow_type(Payload)),
        }
    ),
    # A size of a launch of a case.
    "curves": _schema({**KEY, "ranks_per_node": COUNT, "launch": COUNT, **_POINT_COLUMNS}),
    # What ReFrame ran in addition to the cases: jobs that measure, tests that judge many cases.
    "tests": _schema({"number": COUNT, "test": TEXT, "kind": TEXT, **_PLACE, **OUTCOME}),
    # A case that was measured again, by a test of kind ``further``, around or between sizes.
    "repeats": _schema(
        {
            **KEY,
            **dict.fromkeys(("ranks_per_node", "test_number"), COUNT),
            "jobid": TEXT,
            "nodes": TEXTS,
            "launches": COUNT,
            "faults": TEXTS,
            "loads": _or_null(pa.list_(pa.list_(arrow_type(NodeLoad)))),
            "made": COUNT,
            "crashes": _several(Crash),
        }
    ),
    # A size of a complete launch of such a case.
    "repeat_curves": _schema(
        {
            **KEY,
            **dict.fromkeys(("ranks_per_node", "test_number", "launch"), COUNT),
            **_POINT_COLUMNS,
        }
    ),
    # A node in a job, as it was found before the first launch.
    "nodes": _schema({**_PLACE, "job": TEXT, "jobid": TEXT, **_of_nodes()}),
}
