"""Of what kind each value is of what a session holds of a case, as plain values."""

from __future__ import annotations

import dataclasses

from netproof.intake.shapes import (
    COUNTS_BY_NAME,
    NUMBER,
    TEXT,
    TEXTS_BY_NAME,
    WHOLE,
    YES_OR_NO,
    Each,
    Keys,
    OrNone,
    RowOf,
)
from netproof.measurement.disturbance import NodeLoad
from netproof.measurement.eager_limit import EagerLimit
from netproof.measurement.landmark_table import LANDMARKS

RANGE = ("time_min_us", "time_avg_us")
"""A curve's columns that the report has only of benchmarks which print them."""

_NUMBERS = Each(NUMBER)

_REASONS = Each(RowOf((TEXT, TEXT)))

CURVE_SHAPE = Keys(
    {"sizes": Each(WHOLE), "time_us": _NUMBERS, "bandwidth_mb_s": OrNone(_NUMBERS)},
    dict.fromkeys(RANGE, _NUMBERS),
)

CASE_SHAPE = Keys(
    {
        **dict.fromkeys(("system", "partition", "environment", "benchmark", "function"), TEXT),
        **dict.fromkeys(("ranks", "ranks_per_node"), WHOLE),
        **dict.fromkeys(("path", "direction"), TEXT),
    }
)

_SCHEDULED_SHAPE = Keys(
    {
        **dict.fromkeys(("voluntary", "involuntary"), OrNone(WHOLE)),
        "waited_s": OrNone(NUMBER),
        "absent": _REASONS,
    }
)

LOAD_SHAPE = Keys(
    {
        **dict.fromkeys((field.name for field in dataclasses.fields(NodeLoad)), OrNone(NUMBER)),
        "node": TEXT,
        "machine": OrNone(TEXT),
        "cpus": OrNone(WHOLE),
        "absent": _REASONS,
    }
)

_RANK_SHAPE = Keys(
    {"rank": WHOLE, "node": TEXT, "wall_s": NUMBER, "cpu_s": NUMBER},
    {"scheduled": OrNone(_SCHEDULED_SHAPE), "system_s": NUMBER},
)

_START_SHAPE = Keys({"ranks": Each(_RANK_SHAPE), "why": TEXT}, {"loads": Each(LOAD_SHAPE)})

_SOURCE_SHAPE = Keys(
    {
        **dict.fromkeys(("kind", "name", "layer"), TEXT),
        "counted": COUNTS_BY_NAME,
        "read": WHOLE,
        "absent": TEXTS_BY_NAME,
        "interfaces": Each(TEXT),
    }
)

_COUNTERS_SHAPE = Keys(
    {
        "nodes": Each(
            Keys(
                {
                    "node": TEXT,
                    "sources": Each(_SOURCE_SHAPE),
                    "absent": TEXTS_BY_NAME,
                    "took_s": NUMBER,
                }
            )
        ),
        "names": Each(Each(TEXT)),
    }
)

CRASH_SHAPE = Keys(
    {
        **dict.fromkeys(("launch", "attempt", "order", "status"), WHOLE),
        "nodes": Each(TEXT),
        "said": TEXT,
    },
    {"counters": _COUNTERS_SHAPE},
)

_PEER_SHAPE = Keys(
    {"environment": TEXT, "curve": CURVE_SHAPE, "crashes": Each(CRASH_SHAPE)},
    {"counters": _COUNTERS_SHAPE},
)

LAUNCH_SHAPE = Keys(
    {
        **dict.fromkeys(("number", "order"), WHOLE),
        **dict.fromkeys(("start", "wall_s"), NUMBER),
        "ranks": Each(_RANK_SHAPE),
        "curve": CURVE_SHAPE,
        "further": YES_OR_NO,
    },
    {
        "loads": Each(LOAD_SHAPE),
        "twin": CURVE_SHAPE,
        "peers": Each(_PEER_SHAPE),
        "counters": _COUNTERS_SHAPE,
        "payload": Keys({"bytes": OrNone(WHOLE), "why": TEXT}),
        "paces": Each(Keys({"environment": TEXT, "ns": OrNone(NUMBER), "why": TEXT})),
        "exchanged": Keys(
            {**dict.fromkeys(("messages", "bytes"), OrNone(WHOLE)), "why": TEXT},
        ),
    },
)

_EAGER_SHAPE = Keys(
    {
        field.name: OrNone(NUMBER) if field.name.startswith("rate") else NUMBER
        for field in dataclasses.fields(EagerLimit)
    }
)

_LANDMARKS_SHAPE = Keys(
    {
        **{name: OrNone(WHOLE if one.whole else NUMBER) for name, one in LANDMARKS.items()},
        "eager_limit": OrNone(_EAGER_SHAPE),
        "undefined": _REASONS,
        "intervals": Each(RowOf((TEXT, NUMBER, OrNone(NUMBER)))),
    }
)

SHAPE = Keys(
    {
        "case": CASE_SHAPE,
        "launches": Each(LAUNCH_SHAPE),
        "curve": CURVE_SHAPE,
        "mad_us": _NUMBERS,
        "line_rate_mb_s": OrNone(NUMBER),
        "landmarks": _LANDMARKS_SHAPE,
        "peak_from": WHOLE,
        "crashes": Each(CRASH_SHAPE),
    },
    {
        "starts": Each(_START_SHAPE),
        "partition_extras": Keys(others={"line_rate_from_bytes": WHOLE}),
    },
)
"""Of what kind each value of ``Measured.as_json`` is."""

AGAIN_SHAPE = Keys(
    {
        "case": CASE_SHAPE,
        "launches": Each(CURVE_SHAPE),
        "faults": Each(TEXT),
        "nodes": Each(TEXT),
        "jobid": OrNone(TEXT),
        "made": WHOLE,
        "crashes": Each(CRASH_SHAPE),
    },
    {"loads": Each(Each(LOAD_SHAPE))},
)
"""And each of ``again.MeasuredAgain.as_json``."""
