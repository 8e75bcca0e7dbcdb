"""A launch as the store's rows: when and where it ran, what was counted alongside, its curve."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from netproof.measurement.counters import Counters
from netproof.measurement.cpu_use import NodeCost
from netproof.measurement.curve import Curve
from netproof.measurement.disturbance import NodeLoad, Scheduled
from netproof.session.measured import Crash, Launch

Rows = dict[str, list[dict[str, Any]]]
"""Table to its rows, each a column to its value."""


def add_launch(rows: Rows, key: Mapping[str, Any], ranks_per_node: int, launch: Launch) -> None:
    """The launch and its curve, of the case that ``key`` names."""
    rows["launches"].append(
        {
            **key,
            "launch": launch.number,
            "position": launch.order,
            "started": datetime.fromtimestamp(launch.start, UTC).replace(tzinfo=None),
            "wall_s": launch.wall_s,
            "ranks_used": [
                {name: getattr(use, name) for name in ("rank", "node", "wall_s", "cpu_s")}
                for use in launch.ranks
            ],
            "ranks_scheduled": [
                {"rank": use.rank, **with_absent(use.scheduled)}
                for use in launch.ranks
                if use.scheduled is not None
            ]
            or None,
            "loads": [with_absent(load) for load in launch.loads] or None,
            "further": launch.further,
            "twin": None if launch.twin is None else _alongside(launch.twin),
            "peers": [
                {
                    "environment": peer.environment,
                    "points": _alongside(peer.curve),
                    "crashes": [crash_values(crash) for crash in peer.crashes],
                }
                for peer in launch.peers
            ]
            or None,
            "peer_counters": [
                {"environment": peer.environment, **_counters(peer.counters)}
                for peer in launch.peers
                if peer.counters is not None
            ]
            or None,
            "peer_crash_counters": [
                {"environment": peer.environment, **counted}
                for peer in launch.peers
                for counted in crash_counters(peer.crashes) or ()
            ]
            or None,
            "paces": [dataclasses.asdict(one) for one in launch.paces] or None,
            **_counted(launch),
            **_cpu(launch),
        }
    )
    same = {**key, "ranks_per_node": ranks_per_node, "launch": launch.number}
    rows["curves"] += points(same, launch.curve)


def _counted(launch: Launch) -> dict[str, Any]:
    """What the network of its nodes counted, and what it had to send; null where not recorded."""
    payload = launch.payload
    return {
        **_counters(launch.counters),
        "payload_bytes": payload and payload.bytes,
        "payload_why": payload and payload.why,
    }


def crash_values(crash: Crash) -> dict[str, Any]:
    """A crash without what was counted meanwhile, which has a column of its own."""
    values = dataclasses.asdict(dataclasses.replace(crash, counters=None))
    del values["counters"]
    return values


def crash_counters(crashes: Sequence[Crash]) -> list[dict[str, Any]] | None:
    """What the network counted during crashes, each with its place among them."""
    return [
        {"crash": place, **_counters(crash.counters)}
        for place, crash in enumerate(crashes)
        if crash.counters is not None
    ] or None


def _counters(counters: Counters | None) -> dict[str, Any]:
    return {
        "counters": counters and [dataclasses.asdict(node) for node in counters.nodes],
        "counter_names": counters and [list(names) for names in counters.names],
    }


def _cpu(launch: Launch) -> dict[str, Any]:
    """System time of its ranks, and what they sent to each other; null where not recorded."""
    system, exchanged = [use.system_s for use in launch.ranks], launch.exchanged
    return {
        "ranks_system_s": None if None in system else system,
        "exchanged_messages": exchanged and exchanged.messages,
        "exchanged_bytes": exchanged and exchanged.bytes,
        "exchanged_why": exchanged and exchanged.why,
    }


def _alongside(curve: Curve) -> list[dict[str, float | None]]:
    """The points of a launch next to another."""
    names = ("size_bytes", "time_us", "bandwidth_mb_s")
    without = (None,) * len(curve.sizes)
    columns = (curve.sizes, curve.time_us, curve.bandwidth_mb_s or without)
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def with_absent(record: NodeLoad | Scheduled | NodeCost) -> dict[str, Any]:
    """A record with the reasons for what it lacks."""
    return {**dataclasses.asdict(record), "absent": dict(record.absent)}


def points(same: Mapping[str, Any], curve: Curve) -> list[dict[str, Any]]:
    """A row for each size of a curve; ``same``: what all of them have."""
    columns = {
        "size_bytes": curve.sizes,
        "time_us": curve.time_us,
        "bandwidth_mb_s": curve.bandwidth_mb_s,
        "time_min_us": curve.time_min_us,
        "time_avg_us": curve.time_avg_us,
    }
    filled = [(None,) * len(curve.sizes) if one is None else one for one in columns.values()]
    return [
        {**same, **dict(zip(columns, values, strict=True))} for values in zip(*filled, strict=True)
    ]
