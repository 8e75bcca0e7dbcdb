"""What the store holds: its tables and their columns, as data.

A session's files lie under ``system=…/month=…/session=…``, so that ``system``, ``month`` and
``session`` are columns of every table for whatever reads the path, and of no file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from netproof.measurement import twin
from netproof.measurement.landmark_table import LANDMARKS, Landmark

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
    "benchmark": StoreColumn(_TEXT, "the benchmark: `netpipe`, `imb`, …"),
    "function": StoreColumn(_TEXT, "function of the benchmark; of NetPIPE `tcp` or `mpi`"),
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

_COUNTS = pa.map_(pa.string(), pa.int64())

_COUNTERS = {
    "counters": StoreColumn(
        pa.list_(
            pa.struct(
                [
                    ("node", _TEXT),
                    (
                        "sources",
                        pa.list_(
                            pa.struct(
                                [
                                    ("kind", _TEXT),
                                    ("name", _TEXT),
                                    ("counted", _COUNTS),
                                    ("read", _COUNT),
                                    ("absent", _MAP),
                                    ("layer", _TEXT),
                                    ("interfaces", _TEXTS),
                                ]
                            )
                        ),
                    ),
                    ("absent", _MAP),
                    ("took_s", _NUMBER),
                ]
            )
        ),
        "each node: what its network counted, by source (interface, tcp, softnet, driver,"
        " infiniband): what was added to each counter that changed; `read`: which of"
        " `counter_names`, from 0, has all that were read; `absent`: what is not known, and why",
        True,
    ),
    "counter_names": StoreColumn(
        pa.list_(_TEXTS), "sets of counters that a source in `counters` was read for", True
    ),
    "payload_bytes": StoreColumn(
        _BYTES, "what the launch had to send between its nodes at least; null: not known", True
    ),
    "payload_why": StoreColumn(_TEXT, "why that is not known; empty where it is", True),
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

_PEERS = {
    "peers": StoreColumn(
        pa.list_(
            pa.struct(
                [
                    ("environment", _TEXT),
                    ("points", _TWIN["twin"].type),
                    ("crashes", _CRASHES["crashes"].type),
                ]
            )
        ),
        "the launches next to it in other environments, as `twin` and `crashes`; null without",
        True,
    )
}

_PACES = {
    "paces": StoreColumn(
        pa.list_(pa.struct([("environment", _TEXT), ("ns", _NUMBER), ("why", _TEXT)])),
        "of a launch inside a node, and of its `peers`: how long two of the node's CPUs took to"
        " hand a cache line over, ns, or why that is not known; null without",
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

_FACTS = {
    "state": StoreColumn(_TEXT, "the interface: `up`, `down` or `no carrier`", True),
    "address": StoreColumn(_TEXT, "its IPv4 address", True),
    "duplex": StoreColumn(_TEXT, "of the link, `Full` or `Half`", True),
    "autonegotiation": StoreColumn(_TEXT, "of the link, `on` or `off`", True),
    "governor": StoreColumn(_TEXT, "by which the kernel sets the CPUs' frequencies", True),
    "microcode": StoreColumn(_TEXT, "revision of the CPU's microcode", True),
    "memory": StoreColumn(_MAP, "KiB, of all and of each NUMA node", True),
    "rings": StoreColumn(_MAP, "`ethtool -g`", True),
    "pci": StoreColumn(_MAP, "speed and width of the card's link, as it is and at most", True),
    "hugepages": StoreColumn(_TEXT, "transparent hugepages: `always`, `madvise`, `never`", True),
    "mitigations": StoreColumn(_MAP, "of the CPU's flaws, as the kernel has them", True),
    "clock_source": StoreColumn(_TEXT, "what the kernel reads the time from", True),
    "clock_s": StoreColumn(_NUMBER, "the node's clock then, s since 1970", True),
    "clock_ntp_offset_s": StoreColumn(_NUMBER, "its offset by chrony or ntpd, s", True),
    "clock_ahead_from_s": StoreColumn(
        _NUMBER, "it is at least so far ahead of the clock of the job's first node, s", True
    ),
    "clock_ahead_to_s": StoreColumn(_NUMBER, "and at most so far, s", True),
    "path_to": StoreColumn(_TEXT, "the job's next node", True),
    "path_asked_bytes": StoreColumn(_COUNT, "packets of the MTU, bytes", True),
    "path_passed_bytes": StoreColumn(
        _COUNT, "packets that came unfragmented to it: of the MTU, or the least tried, bytes", True
    ),
}

_SLURM = {
    "slurm_nodes": StoreColumn(
        pa.list_(
            pa.struct(
                [
                    ("partition", pa.string()),
                    ("node", pa.string()),
                    ("state", pa.string()),
                    ("reason", pa.string()),
                ]
            )
        ),
        "nodes of each partition when the run began, and Slurm's state of them; null where it was"
        " not asked",
        True,
    ),
    "slurm_unknown": StoreColumn(
        _MAP, "partitions of which the nodes are not known, each with the reason", True
    ),
}

ADDED = {
    "sessions": tuple(_SLURM),
    "nodes": tuple(_FACTS),
    "curves": tuple(_RANGE),
    "again_curves": tuple(_RANGE),
    "launches": (*_SCHEDULED, *_FURTHER, *_TWIN, *_PEERS, *_COUNTERS, *_PACES),
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

_IN_UNIT = {"us": ", µs", "MB/s": ", MB/s", "B": ", bytes", "%": ""}
_OF_OLD = {"line_rate_share": "; where `intervals` is null, the peak"}


def _number(landmark: Landmark) -> StoreColumn:
    meaning = landmark.how + _IN_UNIT[landmark.unit]
    meaning += _OF_OLD.get(landmark.name, "")
    return StoreColumn(_BYTES if landmark.whole else _NUMBER, meaning, True)


_NUMBERS = {name: _number(one) for name, one in LANDMARKS.items()}

LANDMARK_COLUMNS = {
    **{name: column for name, column in _NUMBERS.items() if name not in twin.NAMES},
    "eager_limit": StoreColumn(
        _EAGER_LIMIT, "both sides of the eager limit; µs, MB/s, bytes", True
    ),
    "undefined": StoreColumn(_MAP, "landmarks that are not defined, each with the reason", True),
    "intervals": StoreColumn(_INTERVALS, "landmarks with a 95 % interval, in their units", True),
    **{name: _NUMBERS[name] for name in twin.NAMES},
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
            **_SLURM,
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
            **LANDMARK_COLUMNS,
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
            **_PEERS,
            **_COUNTERS,
            **_PACES,
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
                pa.bool_(), "whether it came to measure cases again around or between sizes"
            ),
            "further": StoreColumn(_TEXT, "what else the report has of the test, JSON"),
        },
    ),
    "again": StoreTable(
        "a case that was measured again, by a test of kind `further`, around or between sizes",
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
            **_FACTS,
        },
    ),
}
