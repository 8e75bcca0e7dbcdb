"""What the store holds: its tables and their columns, as data.

A session's files lie under ``system=…/month=…/session=…``, so that ``system``, ``month`` and
``session`` are columns of every table for whatever reads the path, and of no file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

FORMAT = 1
"""Format of the store; raised when a column is renamed, dropped or changes its meaning.

A column that is added raises it not: it is nullable, and in ``ADDED``.
"""

PATH_COLUMNS = {
    "system": "ReFrame's system",
    "month": "month in which the session began, `2026-11`, UTC",
    "session": "name of the session: its start in UTC, and the first part of its uuid",
}

_TEXT, _COUNT, _NUMBER, _BYTES = pa.string(), pa.int32(), pa.float64(), pa.int64()
_TIME = pa.timestamp("us")
_MAP = pa.map_(pa.string(), pa.string())
_TEXTS = pa.list_(pa.string())


@dataclass(frozen=True)
class StoreColumn:
    """One column: its Arrow type, and what it means, with its unit.

    ``nullable``: whether it can be unknown or undefined.
    """

    type: pa.DataType
    meaning: str
    nullable: bool = False


@dataclass(frozen=True)
class StoreTable:
    """One table: what a row is, and its columns by name."""

    row: str
    columns: Mapping[str, StoreColumn]

    def schema(self) -> pa.Schema:
        """The Arrow schema, without the columns of the path."""
        return pa.schema(
            [
                pa.field(name, column.type, nullable=column.nullable)
                for name, column in self.columns.items()
            ]
        )


KEY = {
    "benchmark": StoreColumn(_TEXT, "`imb` or `netpipe`"),
    "function": StoreColumn(_TEXT, "function of IMB, or `tcp` or `mpi`"),
    "ranks": StoreColumn(_COUNT, "ranks"),
    "path": StoreColumn(_TEXT, "`between` nodes or `inside` one"),
    "direction": StoreColumn(_TEXT, "`oneway` or `bidirectional`"),
    "partition": StoreColumn(_TEXT, "ReFrame's partition: the switch"),
    "environment": StoreColumn(_TEXT, "ReFrame's environment: the MPI library"),
}
"""What tells the cases of a session apart; rows are sorted by these, in this order."""

_OUTCOME = {
    "result": StoreColumn(_TEXT, "ReFrame's: `pass`, `fail`, `fail_deps`, `xfail`, `xpass`, …"),
    "phase": StoreColumn(_TEXT, "phase of ReFrame's pipeline in which it failed, or empty"),
    "reason": StoreColumn(_TEXT, "why it failed, or empty"),
    "seconds": StoreColumn(_NUMBER, "what ReFrame took for it, s"),
    "nodes": StoreColumn(
        _TEXTS, "nodes of the test's job, by its own word; of a case, where it was judged"
    ),
    "folder": StoreColumn(_TEXT, "where the output was left; null for what never began", True),
}

_RANGE = {
    "time_min_us": StoreColumn(
        _NUMBER, "where `time_us` is the slowest rank's: the fastest rank's, µs", True
    ),
    "time_avg_us": StoreColumn(_NUMBER, "and the mean of all ranks, µs", True),
}

_SCHEDULED = {
    "ranks_scheduled": StoreColumn(
        pa.list_(
            pa.struct(
                [
                    ("rank", _COUNT),
                    ("voluntary", _BYTES),
                    ("involuntary", _BYTES),
                    ("waited_s", _NUMBER),
                    ("absent", _MAP),
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
                    ("node", _TEXT),
                    ("machine", _TEXT),
                    ("cpus", _COUNT),
                    ("wall_s", _NUMBER),
                    ("others_cpu_s", _NUMBER),
                    ("others_share", _NUMBER),
                    ("network_share", _NUMBER),
                    ("steal_share", _NUMBER),
                    ("pressure_share", _NUMBER),
                    ("pressure_full_share", _NUMBER),
                    ("absent", _MAP),
                ]
            )
        ),
        "each node: what else its machine did, in shares of its CPUs; of time for pressure",
        True,
    ),
}

_FURTHER = {
    "further": StoreColumn(
        pa.bool_(), "whether it was made since the first launches left something undecided", True
    )
}

_TWIN = {
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

_AGAIN_LOADS = {
    "loads": StoreColumn(_TEXT, "of each launch, `loads` as `launches` has them, JSON", True),
}

_CRASHES = {
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
        "attempts at its launches that crashed before their first figure; null where the report"
        " is of before these were launched again",
        True,
    )
}

_AGAIN_CRASHES = {
    "made": StoreColumn(
        _COUNT,
        "how often the benchmark was started, each attempt being one; null where the report is of"
        " before this was counted",
        True,
    ),
    "crashes": StoreColumn(
        _CRASHES["crashes"].type, "those that crashed, as `cases` has them; null with `made`", True
    ),
}

_INCONCLUSIVE = {
    "inconclusive": StoreColumn(
        _TEXTS,
        "why its figures tell nothing of the network, though nothing failed by them; empty where"
        " they do, null where it is not known",
        True,
    )
}

ADDED = {
    "curves": tuple(_RANGE),
    "again_curves": tuple(_RANGE),
    "launches": (*_SCHEDULED, *_FURTHER, *_TWIN),
    "again": (*_AGAIN_LOADS, *_AGAIN_CRASHES),
    "cases": (
        *(*_CRASHES, *_INCONCLUSIVE, "asymptotic_mb_s", "half_performance_bytes", "intervals"),
        *("twin_mb_s", "twin_share"),
    ),
}
"""Columns that tables of earlier sessions do not have; of those sessions they are null."""

_FILES = pa.list_(
    pa.struct([("kind", pa.string()), ("path", pa.string()), ("sha256", pa.string())])
)

_EAGER_LIMIT = pa.struct(
    [
        ("size_below", pa.int64()),
        ("time_below_us", pa.float64()),
        ("rate_below_mb_s", pa.float64()),
        ("size_above", pa.int64()),
        ("time_above_us", pa.float64()),
        ("rate_above_mb_s", pa.float64()),
        ("step_us", pa.float64()),
    ]
)

_INTERVALS = pa.list_(
    pa.struct([("landmark", pa.string()), ("low", pa.float64()), ("high", pa.float64())])
)

LANDMARKS = {
    "latency_us": StoreColumn(_NUMBER, "median one-way time of short messages, µs", True),
    "peak_mb_s": StoreColumn(_NUMBER, "largest bandwidth, MB/s", True),
    "peak_size": StoreColumn(_BYTES, "size at which it is reached, bytes", True),
    "half_power_size": StoreColumn(_BYTES, "least size with half of it, bytes", True),
    "rate_1_kib_mb_s": StoreColumn(_NUMBER, "bandwidth at 1 KiB, MB/s", True),
    "rate_4_kib_mb_s": StoreColumn(_NUMBER, "bandwidth at 4 KiB, MB/s", True),
    "rate_16_kib_mb_s": StoreColumn(_NUMBER, "bandwidth at 16 KiB, MB/s", True),
    "rate_64_kib_mb_s": StoreColumn(_NUMBER, "bandwidth at 64 KiB, MB/s", True),
    "asymptotic_mb_s": StoreColumn(_NUMBER, "r∞, what the largest messages tend to, MB/s", True),
    "half_performance_bytes": StoreColumn(
        _NUMBER, "n½, the message that has half of it, bytes", True
    ),
    "line_rate_share": StoreColumn(
        _NUMBER, "r∞ over the line rate, 1 is all of it; where `intervals` is null, the peak", True
    ),
    "eager_limit": StoreColumn(
        _EAGER_LIMIT, "both sides of the eager limit; µs, MB/s, bytes", True
    ),
    "undefined": StoreColumn(_MAP, "landmarks that are not defined, each with the reason", True),
    "intervals": StoreColumn(_INTERVALS, "landmarks with a 95 % interval, in their units", True),
    "twin_mb_s": StoreColumn(_NUMBER, "bandwidth of the link's healthy twin, MB/s", True),
    "twin_share": StoreColumn(_NUMBER, "what the link carries of that, 1 is as much", True),
}

TABLES: dict[str, StoreTable] = {
    "sessions": StoreTable(
        "a session, with what is known of where it came from",
        {
            "uuid": StoreColumn(_TEXT, "ReFrame's uuid of the session"),
            "started": StoreColumn(_TIME, "start, UTC"),
            "ended": StoreColumn(_TIME, "end, UTC"),
            "host": StoreColumn(_TEXT, "machine that ReFrame ran on"),
            "user": StoreColumn(_TEXT, "who ran it"),
            "command": StoreColumn(_TEXT, "the command line"),
            "cases": StoreColumn(_COUNT, "cases, whatever came of them"),
            "measured": StoreColumn(_COUNT, "cases that are complete"),
            "labels": StoreColumn(_MAP, "what `reframe --session-extras` gave"),
            "reframe": StoreColumn(_TEXT, "version of ReFrame"),
            "netproof": StoreColumn(_TEXT, "version of netproof", True),
            "slurm": StoreColumn(_TEXT, "version of Slurm", True),
            "mpi": StoreColumn(
                _MAP, "environments, each with its MPI library as the site names it"
            ),
            "git_revision": StoreColumn(_TEXT, "revision of the checkout", True),
            "git_changed": StoreColumn(pa.bool_(), "whether it had changes beyond that", True),
            "files": StoreColumn(_FILES, "configuration and references: kind, path, sha256"),
            "differences": StoreColumn(
                _TEXTS, "in what nodes of one partition differ, in sentences"
            ),
            "unknown": StoreColumn(_MAP, "provenance that could not be had, each with the reason"),
            "report": StoreColumn(_TEXT, "path of the report when it was ingested"),
            "report_sha256": StoreColumn(_TEXT, "SHA-256 of the report"),
            "session_info": StoreColumn(_TEXT, "what ReFrame's report says of the session, JSON"),
        },
    ),
    "cases": StoreTable(
        "a case of a session; what was not measured has nulls from `jobid` on",
        {
            **KEY,
            "ranks_per_node": StoreColumn(_COUNT, "ranks on each node", True),
            "number": StoreColumn(_COUNT, "place in the report, from 1"),
            "check": StoreColumn(_TEXT, "ReFrame's name of the check"),
            "attempts": StoreColumn(_COUNT, "how often ReFrame ran it; the last one stands"),
            **_OUTCOME,
            "jobid": StoreColumn(_TEXT, "Slurm's number of the job that measured it", True),
            "seed": StoreColumn(_BYTES, "seed of the order of the job's launches", True),
            "launches": StoreColumn(_COUNT, "launches", True),
            **_CRASHES,
            **_INCONCLUSIVE,
            "switch": StoreColumn(_TEXT, "the switch as the site names it", True),
            "nic": StoreColumn(_TEXT, "the card as the site names it", True),
            "driver": StoreColumn(_TEXT, "its driver as the site names it", True),
            "link_mbit_s": StoreColumn(_NUMBER, "link rate, Mbit/s of 10⁶", True),
            "mtu": StoreColumn(_COUNT, "MTU, bytes", True),
            "mpi": StoreColumn(_TEXT, "the MPI library as the site names it", True),
            "line_rate_mb_s": StoreColumn(_NUMBER, "most that the bandwidth can be, MB/s", True),
            **LANDMARKS,
            "partition_extras": StoreColumn(
                _TEXT, "all that the site says of the partition, JSON", True
            ),
            "environment_extras": StoreColumn(_TEXT, "and of the environment, JSON", True),
            "measured_format": StoreColumn(
                _COUNT, "format of the report's record of the case", True
            ),
            "further": StoreColumn(_TEXT, "what else the report has of the case, JSON"),
        },
    ),
    "launches": StoreTable(
        "a launch of a case",
        {
            **KEY,
            "launch": StoreColumn(_COUNT, "which of the case's launches, from 1"),
            "position": StoreColumn(_COUNT, "place among all launches of its job, from 1"),
            "started": StoreColumn(_TIME, "start, UTC"),
            "wall_s": StoreColumn(_NUMBER, "seconds with starting and ending the job step"),
            "ranks_used": StoreColumn(
                pa.list_(
                    pa.struct(
                        [
                            ("rank", pa.int32()),
                            ("node", pa.string()),
                            ("wall_s", pa.float64()),
                            ("cpu_s", pa.float64()),
                        ]
                    )
                ),
                "each rank: its node, its seconds, its CPU seconds",
            ),
            **_SCHEDULED,
            **_FURTHER,
            **_TWIN,
        },
    ),
    "curves": StoreTable(
        "a size of a launch of a case",
        {
            **KEY,
            "ranks_per_node": StoreColumn(_COUNT, "ranks on each node"),
            "launch": StoreColumn(_COUNT, "which of the case's launches, from 1"),
            "size_bytes": StoreColumn(_BYTES, "size of one message, bytes; 0 for Barrier"),
            "time_us": StoreColumn(_NUMBER, "one-way or per-call time, µs"),
            "bandwidth_mb_s": StoreColumn(
                _NUMBER, "MB/s, each way for NetPIPE; null where the function has none", True
            ),
            **_RANGE,
        },
    ),
    "tests": StoreTable(
        "what ReFrame ran beside the cases: jobs that measure, and tests that judge many cases",
        {
            "number": StoreColumn(_COUNT, "place in the report, from 1"),
            "test": StoreColumn(_TEXT, "ReFrame's name of the test"),
            "kind": StoreColumn(
                _TEXT, "`launches`, `further`, `curves`, `compared further` or `configurations`"
            ),
            "partition": KEY["partition"],
            "environment": KEY["environment"],
            **_OUTCOME,
            "measures_again": StoreColumn(
                pa.bool_(), "whether it came to measure flagged cases again"
            ),
            "further": StoreColumn(_TEXT, "what else the report has of the test, JSON"),
        },
    ),
    "again": StoreTable(
        "a case that was measured again, by a test of kind `further`, for its flagged sizes",
        {
            **KEY,
            "ranks_per_node": StoreColumn(_COUNT, "ranks on each node"),
            "test_number": StoreColumn(_COUNT, "the test's place in the report"),
            "jobid": StoreColumn(_TEXT, "Slurm's number of its job"),
            "nodes": StoreColumn(_TEXTS, "nodes of that job"),
            "launches": StoreColumn(_COUNT, "launches that are complete"),
            "faults": StoreColumn(_TEXTS, "why others are not"),
            **_AGAIN_LOADS,
            **_AGAIN_CRASHES,
        },
    ),
    "again_curves": StoreTable(
        "a size of a complete launch of such a case",
        {
            **KEY,
            "ranks_per_node": StoreColumn(_COUNT, "ranks on each node"),
            "test_number": StoreColumn(_COUNT, "the test's place in the report"),
            "launch": StoreColumn(_COUNT, "which of the complete launches, from 1"),
            "size_bytes": StoreColumn(_BYTES, "size of one message, bytes"),
            "time_us": StoreColumn(_NUMBER, "one-way or per-call time, µs"),
            "bandwidth_mb_s": StoreColumn(_NUMBER, "as in `curves`", True),
            **_RANGE,
        },
    ),
    "nodes": StoreTable(
        "a node in a job, as it was found before the first launch",
        {
            "partition": KEY["partition"],
            "environment": KEY["environment"],
            "job": StoreColumn(_TEXT, "ReFrame's name of the job"),
            "jobid": StoreColumn(_TEXT, "Slurm's number of the job"),
            "node": StoreColumn(_TEXT, "name of the node"),
            "kernel": StoreColumn(_TEXT, "kernel release and build", True),
            "architecture": StoreColumn(_TEXT, "`x86_64`, …", True),
            "cpu": StoreColumn(_TEXT, "model of the CPU", True),
            "cpus": StoreColumn(_COUNT, "CPUs that the kernel has", True),
            "interface": StoreColumn(_TEXT, "the interface that is measured over"),
            "nic": StoreColumn(_TEXT, "the card: its PCI name or numbers", True),
            "driver": StoreColumn(_TEXT, "its driver", True),
            "driver_version": StoreColumn(_TEXT, "the driver's version", True),
            "firmware": StoreColumn(_TEXT, "the card's firmware", True),
            "bus": StoreColumn(_TEXT, "the card's place on the bus", True),
            "link_mbit_s": StoreColumn(_COUNT, "link rate, Mbit/s of 10⁶", True),
            "mtu": StoreColumn(_COUNT, "MTU, bytes", True),
            "offloads": StoreColumn(_MAP, "`ethtool -k`"),
            "coalescing": StoreColumn(_MAP, "`ethtool -c`"),
            "sysctls": StoreColumn(_MAP, "of TCP and of sockets"),
            "programs": StoreColumn(_MAP, "benchmarks and MPI libraries: SHA-256 and path"),
            "absent": StoreColumn(_MAP, "what could not be had, each with the reason"),
        },
    ),
}
