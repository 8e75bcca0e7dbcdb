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
from typing import Any, TypeAlias

import pyarrow as pa

from netproof.measurement import twin
from netproof.measurement.case import Curve
from netproof.measurement.counters import Counters
from netproof.measurement.disturbance import NodeCost, NodeLoad
from netproof.measurement.landmarks import LANDMARKS, EagerLimit
from netproof.session.node_facts import Node

PATH_COLUMNS = ("system", "month", "session")

TEXT, COUNT, NUMBER, BYTES = pa.string(), pa.int32(), pa.float64(), pa.int64()
TIME, TEXTS, MAP = pa.timestamp("us"), pa.list_(TEXT), pa.map_(TEXT, TEXT)

Columns: TypeAlias = "dict[str, pa.DataType]"
"""Types by name; one that ends in ``?`` is of a column that has nulls: unknown or undefined."""

_PLAIN = {str: TEXT, int: BYTES, float: NUMBER, bool: pa.bool_()}


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


def _several(record: type) -> pa.DataType:
    return pa.list_(arrow_type(record))


def _structs(*names: str, kind: pa.DataType = TEXT) -> pa.DataType:
    """Return a list of structs; the first field is text, the others are of ``kind``."""
    return pa.list_(pa.struct([(names[0], TEXT), *((name, kind) for name in names[1:])]))


def _of_nodes() -> Columns:
    """Return a column for each fact of a node; its whole numbers are small."""
    return {
        f"{name}?" if type(None) in typing.get_args(kind) else name: (
            COUNT if kind == int | None else arrow_type(kind)
        )
        for name, kind in typing.get_type_hints(Node).items()
    }


_PLACE: Columns = {"partition": TEXT, "environment": TEXT}

KEY: Columns = {
    **dict.fromkeys(("benchmark", "function"), TEXT),
    "ranks": COUNT,
    **dict.fromkeys(("path", "direction"), TEXT),
    **_PLACE,
}
"""The columns that identify a case within its session; rows are sorted by these, in this order."""

_NUMBERS: Columns = {name: BYTES if one.whole else NUMBER for name, one in LANDMARKS.items()}

LANDMARK_COLUMNS: Columns = {
    **{name: kind for name, kind in _NUMBERS.items() if name not in twin.NAMES},
    "eager_limit": arrow_type(EagerLimit),
    "undefined": MAP,
    "intervals": _structs("landmark", "low", "high", kind=NUMBER),
    **{name: _NUMBERS[name] for name in twin.NAMES},
}
"""Columns on the landmarks of a case's curve; all have nulls."""

_OUTCOME: Columns = {
    **dict.fromkeys(("result", "phase", "reason"), TEXT),
    "seconds": NUMBER,
    "nodes": TEXTS,
    "folder?": TEXT,
}
OUTCOME = tuple(name.removesuffix("?") for name in _OUTCOME)

_POINT: Columns = {
    "size_bytes": BYTES,
    "time_us": NUMBER,
    **dict.fromkeys(("bandwidth_mb_s?", "time_min_us?", "time_avg_us?"), NUMBER),
}
POINT = tuple(name.removesuffix("?") for name in _POINT)
"""Columns of a curve's size, which have the names of its fields but for the size."""


_RANKS = pa.list_(
    pa.struct(
        [
            *(("rank", BYTES), ("node", TEXT)),
            *((name, NUMBER) for name in ("wall_s", "cpu_s", "system_s")),
            *(("voluntary", BYTES), ("involuntary", BYTES), ("waited_s", NUMBER), ("absent", MAP)),
        ]
    )
)
"""Use of CPU by each rank, and why a value is not known."""


_PAYLOAD = pa.struct([("bytes", BYTES), ("messages", BYTES), ("why", TEXT)])
"""Bytes and messages sent, null where not known or not counted, and why they are not known."""


_CRASHES = pa.list_(
    pa.struct(
        [
            *((name, BYTES) for name in ("launch", "attempt", "order", "status")),
            *(("nodes", TEXTS), ("said", TEXT), ("counters", arrow_type(Counters))),
        ]
    )
)
"""Attempts that died before their first figure."""


_PAIRED = pa.struct(
    [
        *(("environment", TEXT), ("curve", arrow_type(Curve)), ("crashes", _CRASHES)),
        ("counters", arrow_type(Counters)),
    ]
)
"""A launch in another environment."""


def _schema(columns: Columns) -> pa.Schema:
    return pa.schema(
        pa.field(name.removesuffix("?"), kind, nullable=name.endswith("?"))
        for name, kind in columns.items()
    )


TABLES: dict[str, pa.Schema] = {
    # A session, with what is known of where it came from.
    "sessions": _schema(
        {
            "uuid": TEXT,
            **dict.fromkeys(("started", "ended"), TIME),
            **dict.fromkeys(("host", "user", "command"), TEXT),
            **dict.fromkeys(("cases", "measured"), COUNT),
            "labels": MAP,
            **dict.fromkeys(("reframe", "netproof?", "slurm?"), TEXT),
            "mpi": MAP,
            "git_revision?": TEXT,
            "git_changed?": pa.bool_(),
            "files": _structs("kind", "path", "sha256"),
            "differences": TEXTS,
            "unknown": MAP,
            "slurm_nodes?": _structs("partition", "node", "state", "reason"),
            "slurm_unknown?": MAP,
            **dict.fromkeys(("report", "report_sha256"), TEXT),
        }
    ),
    # A case of a session; what was not measured has nulls from ``jobid`` on.
    "cases": _schema(
        {
            **KEY,
            "ranks_per_node?": COUNT,
            "check": TEXT,
            "attempts": COUNT,
            **_OUTCOME,
            "failed_job?": TEXT,
            "complete": pa.bool_(),
            "jobid?": TEXT,
            "seed?": BYTES,
            "launches?": COUNT,
            "crashes?": _CRASHES,
            "inconclusive?": TEXTS,
            **dict.fromkeys(("switch?", "nic?", "driver?"), TEXT),
            "link_mbit_s?": NUMBER,
            "mtu?": COUNT,
            "mpi?": TEXT,
            "line_rate_mb_s?": NUMBER,
            **{f"{name}?": kind for name, kind in LANDMARK_COLUMNS.items()},
            "cpu_costs?": _several(NodeCost),
            **dict.fromkeys(("partition_extras?", "environment_extras?"), TEXT),
        }
    ),
    # A launch of a case.
    "launches": _schema(
        {
            **KEY,
            **dict.fromkeys(("launch", "position"), COUNT),
            "started": TIME,
            "wall_s": NUMBER,
            "ranks_used": _RANKS,
            "loads?": _several(NodeLoad),
            "extra": pa.bool_(),
            "twin?": arrow_type(Curve),
            "paired?": pa.list_(_PAIRED),
            "counters?": arrow_type(Counters),
            "payload?": _PAYLOAD,
            "paces?": pa.list_(pa.struct([("environment", TEXT), ("ns", NUMBER), ("why", TEXT)])),
            "exchanged?": _PAYLOAD,
        }
    ),
    # A size of a launch of a case.
    "curves": _schema({**KEY, "ranks_per_node": COUNT, "launch": COUNT, **_POINT}),
    # What ReFrame ran in addition to the cases: jobs that measure, tests that judge many cases.
    "tests": _schema({"number": COUNT, "test": TEXT, "kind": TEXT, **_PLACE, **_OUTCOME}),
    # A case that was measured again, around or between sizes.
    "repeats": _schema(
        {
            **KEY,
            "ranks_per_node": COUNT,
            "jobid": TEXT,
            "nodes": TEXTS,
            "launches": COUNT,
            "faults": TEXTS,
            "loads?": pa.list_(_several(NodeLoad)),
            "made": COUNT,
            "crashes?": _CRASHES,
        }
    ),
    # A size of a complete launch of such a case.
    "repeat_curves": _schema({**KEY, "ranks_per_node": COUNT, "launch": COUNT, **_POINT}),
    # A node in a job, as it was found before the first launch.
    "nodes": _schema({**_PLACE, "job": TEXT, "jobid": TEXT, **_of_nodes()}),
}
