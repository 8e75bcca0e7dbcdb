"""From the store's tables back to the session that the verdict reads."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from netproof.errors import NetproofError
from netproof.intake import json_reading
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve
from netproof.session.measured import plain
from netproof.session.node_differences import NodeInJob
from netproof.session.node_facts import Node
from netproof.session.provenance import File, OfSession, Software
from netproof.session.session import CheckResult, Session
from netproof.session.slurm_nodes import PartitionNodes, Requeued
from netproof.site.slurm import SlurmNode
from netproof.store.columns import KEY
from netproof.store.rows import KIND_OF_CASES

_SOFTWARE = ("netproof", "reframe", "slurm", "git_revision", "git_changed")


RANGE = ("time_min_us", "time_avg_us")


class Contradiction(NetproofError):
    """Tables of a session of which one has not the rows that another counts."""


Curves = dict[tuple[Any, ...], dict[int, dict[str, Any]]]
"""Key to launch to the plain values of a curve."""


def session(folder: Path, read: Mapping[str, pa.Table]) -> Session:
    """The session that ``tables`` were made of, as ``session.load`` read it.

    Of a case that ReFrame ran several times it has the last. ``folder`` is what its ``path``
    says.
    """
    system = folder.parents[1].name.partition("=")[2]
    curves = _by_launch(read["curves"], tuple(KEY))
    ran: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in records(read["launches"]):
        ran.setdefault(_key(row), []).append(row)
    again: dict[int, list[dict[str, Any]]] = {}
    again_curves = _by_launch(read["again_curves"], ("test_number", *KEY))
    for row in records(read["again"]):
        done = again_curves.pop((row["test_number"], *_key(row)), {})
        _insist_on_launches(done, row, "again_curves")
        again.setdefault(row["test_number"], []).append(_again_values(row, done, system))
    _insist_on_none(again_curves, "again_curves", "again")
    (header,) = records(read["sessions"])
    numbered = []
    for row in records(read["tests"]):
        several = tuple(again.get(row["number"], ())) if row["measures_again"] else None
        result = _result(row, row["test"], system, None, None, kind=row["kind"], again=several)
        numbered.append((row["number"], result))
    for row in records(read["cases"]):
        key = _key(row)
        result = _case_result(row, ran.pop(key, []), curves.pop(key, {}), system)
        numbered.append((row["number"], result))
    _insist_on_none(ran, "launches", "cases")
    _insist_on_none(curves, "curves", "cases")
    ordered = tuple(result for _, result in sorted(numbered, key=lambda entry: entry[0]))
    return Session(folder, json_reading.json_value(header["session_info"], folder), ordered)


def _insist_on_none(left: Mapping[tuple[Any, ...], Any], table: str, of: str) -> None:
    """Every row belongs to one of another table."""
    for key in left:
        raise Contradiction(f"`{table}` has {', '.join(map(str, key))}, which `{of}` has not")


def _insist_on_launches(there: Iterable[int], row: Mapping[str, Any], table: str) -> None:
    """The launches of a case are all there and no others, numbered from 1."""
    numbers = sorted(there)
    if numbers != list(range(1, (row["launches"] or 0) + 1)):
        raise Contradiction(
            f"{', '.join(map(str, _key(row)))}: `{table}` has launches {numbers}, and there are"
            f" {row['launches']}"
        )


def provenance(read: Mapping[str, pa.Table]) -> OfSession:
    """Where the session came from, of the tables ``sessions`` and ``nodes``."""
    (header,) = records(read["sessions"])
    unknown = header["unknown"]
    software = None
    if header["netproof"] is not None:
        software = Software(
            **{name: header[name] for name in _SOFTWARE},
            files=tuple(File(**file) for file in header["files"]),
            absent={name: unknown[name] for name in _SOFTWARE if name in unknown},
        )
    nodes = tuple(
        NodeInJob(
            **{name: row.pop(name) for name in ("partition", "environment", "job", "jobid")},
            node=Node(**row),
        )
        for row in records(read["nodes"])
    )
    requeued = tuple(
        Requeued(**{**one, "nodes": tuple(SlurmNode(**node) for node in one["nodes"])})
        for one in json.loads(header["requeued"])
    )
    return OfSession(
        software, nodes, tuple(header["differences"]), unknown, tuple(_slurm(header)), requeued
    )


def _slurm(header: Mapping[str, Any]) -> Iterator[PartitionNodes]:
    """What the partitions had when the run began; nothing where it was not asked."""
    unknown = header["slurm_unknown"] or {}
    several: dict[str, list[SlurmNode]] = {}
    for row in header["slurm_nodes"] or ():
        several.setdefault(row["partition"], []).append(
            SlurmNode(row["node"], row["state"], row["reason"])
        )
    limits = json.loads(header["slurm_limits"])
    for name in sorted({*several, *unknown}):
        nodes, why = tuple(several.get(name, ())), unknown.get(name, "")
        yield PartitionNodes(name, nodes, why, *limits.get(name, ()))


def records(table: pa.Table) -> Iterator[dict[str, Any]]:
    """A table's rows as plain values, maps as dicts."""
    names = table.column_names
    for values in zip(*(_values(table.column(name)) for name in names), strict=True):
        yield dict(zip(names, values, strict=True))


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEY)


def _values(column: pa.ChunkedArray) -> list[Any]:
    """A column as Python values; by way of numpy, which is ten times as fast as Arrow here."""
    array = column.combine_chunks()
    if pa.types.is_map(array.type) or pa.types.is_struct(array.type):
        return array.to_pylist(maps_as_pydicts="strict")
    if pa.types.is_list(array.type):
        offsets = array.offsets.to_numpy().tolist()
        within = array.values
        if pa.types.is_struct(within.type):
            names = within.type.names
            fields = [_values(pa.chunked_array([within.field(name)])) for name in names]
            flat = [dict(zip(names, values, strict=True)) for values in zip(*fields, strict=True)]
        else:
            flat = _values(pa.chunked_array([within]))
        there = array.is_valid().to_numpy(zero_copy_only=False).tolist()
        return [
            flat[start:end] if known else None
            for known, (start, end) in zip(there, pairwise(offsets), strict=True)
        ]
    number = pa.types.is_integer(array.type) or pa.types.is_floating(array.type)
    if not (number and array.null_count):
        return array.to_numpy(zero_copy_only=False).tolist()
    # numpy has no integers that are unknown, and no null next to NaN.
    known = array.is_valid().to_numpy(zero_copy_only=False).tolist()
    filled = array.fill_null(0).to_numpy().tolist()
    return [value if there else None for value, there in zip(filled, known, strict=True)]


def _by_launch(table: pa.Table, names: Sequence[str]) -> Curves:
    """Curves of a table by ``names``, then by launch."""
    columns = [table.column(name).combine_chunks() for name in (*names, "launch")]
    begins = np.zeros(table.num_rows, dtype=bool)
    begins[:1] = True
    for column in columns:
        codes = column.dictionary_encode().indices.to_numpy()
        begins[1:] |= codes[1:] != codes[:-1]
    firsts = np.flatnonzero(begins)
    starts = firsts.tolist()
    keys = zip(
        *(_values(pa.chunked_array([column.take(pa.array(firsts))])) for column in columns),
        strict=True,
    )
    sizes, times, bandwidths, *ranges = (
        _values(table.column(name)) for name in ("size_bytes", "time_us", "bandwidth_mb_s", *RANGE)
    )
    found: Curves = {}
    ends = [*starts, table.num_rows][1:]
    for (*key, launch), start, end in zip(keys, starts, ends, strict=True):
        found.setdefault(tuple(key), {})[launch] = {
            "sizes": sizes[start:end],
            "time_us": times[start:end],
            "bandwidth_mb_s": None if bandwidths[start] is None else bandwidths[start:end],
            **{
                name: values[start:end]
                for name, values in zip(RANGE, ranges, strict=True)
                if values[start] is not None
            },
        }
    return found


def _result(
    row: Mapping[str, Any],
    name: str,
    system: str,
    case: Case | None,
    measured: dict[str, Any] | None,
    *,
    kind: str,
    again: tuple[dict[str, Any], ...] | None,
) -> CheckResult:
    return CheckResult(
        name=name,
        system=system,
        partition=row["partition"],
        environment=row["environment"],
        result=row["result"],
        phase=row["phase"],
        reason=row["reason"],
        seconds=row["seconds"],
        nodes=tuple(row["nodes"]),
        folder=row["folder"],
        case=case,
        measured=measured,
        kind=kind,
        again=again,
        **json_reading.json_value(row["further"], "further").get("result", {}),
    )


def _case_result(
    row: Mapping[str, Any],
    ran: list[dict[str, Any]],
    curves: Mapping[int, dict[str, Any]],
    system: str,
) -> CheckResult:
    case = _read_case(row, system)
    _insist_on_launches((launch["launch"] for launch in ran), row, "launches")
    _insist_on_launches(curves, row, "curves")
    measured = _measured(row, case, ran, curves) if row["measured_format"] is not None else None
    return _result(row, row["check"], system, case, measured, kind=KIND_OF_CASES, again=None)


def _read_case(row: Mapping[str, Any], system: str) -> Case:
    return Case(
        system, **{name: row[name] for name in KEY}, ranks_per_node=row["ranks_per_node"] or 0
    )


def _again_values(
    row: Mapping[str, Any], done: Mapping[int, dict[str, Any]], system: str
) -> dict[str, Any]:
    return {
        "case": dataclasses.asdict(_read_case(row, system)),
        "launches": list(done.values()),
        "faults": row["faults"],
        "nodes": row["nodes"],
        "jobid": row["jobid"],
        **({"loads": json_reading.json_value(row["loads"], "loads")} if row["loads"] else {}),
        "made": row["made"],
        "crashes": _crashes(row),
    }


def _alongside(launch: Mapping[str, Any]) -> dict[str, Any]:
    """Curves of the launches next to it, as the report has them; nothing where there are none."""
    found: dict[str, Any] = {}
    if launch["twin"] is not None:
        found["twin"] = _of_points(launch["twin"])
    if launch["peers"] is not None:
        counted = {one["environment"]: _counters(one) for one in launch["peer_counters"] or ()}
        crashed = launch["peer_crash_counters"] or ()
        found["peers"] = [
            {
                "environment": peer["environment"],
                "curve": _of_points(peer["points"]),
                "crashes": _with_counters(
                    peer["crashes"],
                    [one for one in crashed if one["environment"] == peer["environment"]],
                ),
                **counted.get(peer["environment"], {}),
            }
            for peer in launch["peers"]
        ]
    if launch["paces"] is not None:
        found["paces"] = launch["paces"]
    return found


def _of_points(points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = {"sizes": "size_bytes", "time_us": "time_us", "bandwidth_mb_s": "bandwidth_mb_s"}
    curve = {key: [point[name] for point in points] for key, name in names.items()}
    if None in curve["bandwidth_mb_s"]:
        curve["bandwidth_mb_s"] = None
    return curve


def _measured(
    row: Mapping[str, Any],
    case: Case,
    ran: list[dict[str, Any]],
    curves: Mapping[int, dict[str, Any]],
) -> dict[str, Any]:
    done = [
        {
            "number": launch["launch"],
            "order": launch["position"],
            "start": launch["started"].replace(tzinfo=UTC).timestamp(),
            "wall_s": launch["wall_s"],
            "ranks": _ranks(launch),
            "curve": curves[launch["launch"]],
            **_loads(launch),
            "further": launch["further"],
            **_alongside(launch),
            **_counted(launch),
        }
        for launch in ran
    ]
    values = {
        "format": row["measured_format"],
        "case": dataclasses.asdict(case),
        "launches": done,
        "line_rate_mb_s": row["line_rate_mb_s"],
        "partition_extras": json_reading.json_value(row["partition_extras"], "partition_extras"),
        "environment_extras": json_reading.json_value(
            row["environment_extras"], "environment_extras"
        ),
        "seed": row["seed"],
        "jobid": row["jobid"],
        "crashes": _crashes(row),
        **json_reading.json_value(row["further"], "further").get("measured", {}),
    }
    return values


def _ranks(launch: Mapping[str, Any]) -> list[dict[str, Any]]:
    scheduled = {}
    for told in launch["ranks_scheduled"] or ():
        scheduled[told["rank"]] = _pairs({k: v for k, v in told.items() if k != "rank"})
    system = launch["ranks_system_s"] or (None,) * len(launch["ranks_used"])
    return [
        {
            **use,
            **({"scheduled": scheduled[use["rank"]]} if use["rank"] in scheduled else {}),
            **({} if system_s is None else {"system_s": system_s}),
        }
        for use, system_s in zip(launch["ranks_used"], system, strict=True)
    ]


def _loads(launch: Mapping[str, Any]) -> dict[str, Any]:
    return {"loads": [_pairs(load) for load in launch["loads"]]} if launch["loads"] else {}


def _counted(launch: Mapping[str, Any]) -> dict[str, Any]:
    """The counters of a launch and what it sent, as the report has them."""
    found: dict[str, Any] = {}
    if launch["counters"] is not None:
        found = _counters(launch)
    if launch["payload_why"] is not None:
        found["payload"] = {"bytes": launch["payload_bytes"], "why": launch["payload_why"]}
    if launch["exchanged_why"] is not None:
        found["exchanged"] = {
            key: launch[f"exchanged_{key}"] for key in ("messages", "bytes", "why")
        }
    return found


def _crashes(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    return _with_counters(row["crashes"], row["crash_counters"] or ())


def _with_counters(
    crashes: Sequence[Mapping[str, Any]], counted: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Crashes, each with what the network counted meanwhile, as far as that is known."""
    by_place = {one["crash"]: _counters(one) for one in counted}
    return [{**crash, **by_place.get(place, {})} for place, crash in enumerate(crashes)]


def _counters(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"counters": {"nodes": row["counters"], "names": row["counter_names"]}}


def _pairs(record: Mapping[str, Any]) -> dict[str, Any]:
    """As the report has it: what is absent as pairs of name and reason."""
    return {**record, "absent": [list(item) for item in (record["absent"] or {}).items()]}


def _lists(curve: Curve) -> dict[str, Any]:
    columns = dataclasses.asdict(curve, dict_factory=plain)
    return {name: None if values is None else list(values) for name, values in columns.items()}
