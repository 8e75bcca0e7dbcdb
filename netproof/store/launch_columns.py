"""Columns on launches: what nodes and ranks did, twin and peers, attempts that crashed."""

from __future__ import annotations

import pyarrow as pa

from netproof.store.columns import (
    BYTES_TYPE,
    COUNT_TYPE,
    MAP_TYPE,
    NUMBER_TYPE,
    TEXT_TYPE,
    TEXTS_TYPE,
    StoreColumn,
)

SCHEDULED = {
    "ranks_scheduled": StoreColumn(
        pa.list_(
            pa.struct(
                [
                    ("rank", COUNT_TYPE),
                    ("voluntary", BYTES_TYPE),
                    ("involuntary", BYTES_TYPE),
                    ("waited_s", NUMBER_TYPE),
                    ("absent", MAP_TYPE),
                ]
            )
        ),
        "each rank's first thread: context switches, seconds that it waited for a CPU;"
        " `absent`: what is not known, and why",
        True,
    ),
    "loads": StoreColumn(
        pa.list_(
            pa.struct(
                [
                    ("node", TEXT_TYPE),
                    ("machine", TEXT_TYPE),
                    ("cpus", COUNT_TYPE),
                    ("wall_s", NUMBER_TYPE),
                    ("others_cpu_s", NUMBER_TYPE),
                    ("others_share", NUMBER_TYPE),
                    ("network_share", NUMBER_TYPE),
                    ("steal_share", NUMBER_TYPE),
                    ("pressure_share", NUMBER_TYPE),
                    ("pressure_full_share", NUMBER_TYPE),
                    ("absent", MAP_TYPE),
                ]
            )
        ),
        "each node: what else its machine did, in shares of its CPUs; of time for pressure",
        True,
    ),
}

FURTHER = {
    "further": StoreColumn(
        pa.bool_(), "whether it was made since the first launches left something undecided"
    )
}

TWIN = {
    "twin": StoreColumn(
        pa.list_(
            pa.struct(
                [
                    ("size_bytes", pa.int64()),
                    ("time_us", pa.float64()),
                    ("bandwidth_mb_s", pa.float64()),
                ]
            )
        ),
        "the launch next to it over the link's healthy twin, a size each; null where there is none",
        True,
    )
}

_COUNTS = pa.map_(pa.string(), pa.int64())

_COUNTED_NODES = pa.list_(
    pa.struct(
        [
            ("node", TEXT_TYPE),
            (
                "sources",
                pa.list_(
                    pa.struct(
                        [
                            ("kind", TEXT_TYPE),
                            ("name", TEXT_TYPE),
                            ("counted", _COUNTS),
                            ("read", COUNT_TYPE),
                            ("absent", MAP_TYPE),
                            ("layer", TEXT_TYPE),
                            ("interfaces", TEXTS_TYPE),
                        ]
                    )
                ),
            ),
            ("absent", MAP_TYPE),
            ("took_s", NUMBER_TYPE),
        ]
    )
)

COUNTERS = {
    "counters": StoreColumn(
        _COUNTED_NODES,
        "each node: what its network counted, by source (interface, tcp, softnet, driver,"
        " infiniband): what was added to each counter that changed; `read`: which of"
        " `counter_names`, from 0, has all that were read; `absent`: what is not known, and why",
        True,
    ),
    "counter_names": StoreColumn(
        pa.list_(TEXTS_TYPE), "sets of counters that a source in `counters` was read for", True
    ),
    "peer_counters": StoreColumn(
        pa.list_(
            pa.struct(
                [
                    ("environment", TEXT_TYPE),
                    ("counters", _COUNTED_NODES),
                    ("counter_names", pa.list_(TEXTS_TYPE)),
                ]
            )
        ),
        "the same of the `peers` whose counters were kept; null without",
        True,
    ),
    "peer_crash_counters": StoreColumn(
        pa.list_(
            pa.struct(
                [
                    ("environment", TEXT_TYPE),
                    ("crash", COUNT_TYPE),
                    ("counters", _COUNTED_NODES),
                    ("counter_names", pa.list_(TEXTS_TYPE)),
                ]
            )
        ),
        "the same of `crashes` of the `peers`, `crash` being which of them, from 0; null without",
        True,
    ),
    "payload_bytes": StoreColumn(
        BYTES_TYPE, "what the launch had to send between its nodes at least; null: not known", True
    ),
    "payload_why": StoreColumn(TEXT_TYPE, "why that is not known; empty where it is", True),
}

AGAIN_LOADS = {
    "loads": StoreColumn(TEXT_TYPE, "of each launch, `loads` as `launches` has them, JSON", True),
}

_CRASH_COUNTERS = {
    "crash_counters": StoreColumn(
        pa.list_(
            pa.struct(
                [
                    ("crash", COUNT_TYPE),
                    ("counters", _COUNTED_NODES),
                    ("counter_names", pa.list_(TEXTS_TYPE)),
                ]
            )
        ),
        "what the network counted meanwhile, as `launches` has it, of the nodes that still said so;"
        " `crash`: which of `crashes`, from 0; null without",
        True,
    )
}

CRASHES = {
    "crashes": StoreColumn(
        pa.list_(
            pa.struct(
                [
                    ("launch", pa.int32()),
                    ("attempt", pa.int32()),
                    ("order", pa.int32()),
                    ("status", pa.int32()),
                    ("nodes", pa.list_(pa.string())),
                    ("said", pa.string()),
                ]
            )
        ),
        "attempts at its launches that crashed before their first figure",
        True,
    ),
    **_CRASH_COUNTERS,
}

PEERS = {
    "peers": StoreColumn(
        pa.list_(
            pa.struct(
                [
                    ("environment", TEXT_TYPE),
                    ("points", TWIN["twin"].type),
                    ("crashes", CRASHES["crashes"].type),
                ]
            )
        ),
        "the launches next to it in other environments, as `twin` and `crashes`; null without",
        True,
    )
}

PACES = {
    "paces": StoreColumn(
        pa.list_(pa.struct([("environment", TEXT_TYPE), ("ns", NUMBER_TYPE), ("why", TEXT_TYPE)])),
        "of a launch inside a node, and of its `peers`, of both halves of each: how long two of"
        " the node's CPUs took to hand a cache line over, ns, or why that is not known; null"
        " without",
        True,
    )
}

AGAIN_CRASHES = {
    "made": StoreColumn(COUNT_TYPE, "how often the benchmark was started, each attempt being one"),
    "crashes": StoreColumn(CRASHES["crashes"].type, "those that crashed, as `cases` has them"),
    **_CRASH_COUNTERS,
}
