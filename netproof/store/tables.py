"""What the store holds: its tables and their columns, as data.

A session's files lie under ``system=…/month=…/session=…``, so that ``system``, ``month`` and
``session`` are columns of every table for whatever reads the path, and of no file.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from netproof.measurement import twin
from netproof.measurement.counters import Counters
from netproof.measurement.cpu_use import NodeCost
from netproof.measurement.curve import Curve
from netproof.measurement.disturbance import NodeLoad
from netproof.measurement.eager_limit import EagerLimit
from netproof.measurement.landmark_table import LANDMARKS
from netproof.measurement.pace import Pace
from netproof.measurement.payload import Payload
from netproof.session.measured import Crash, Peer, RankUse

PATH_COLUMNS = {
    "system": "ReFrame's system",
    "month": "month in which the session began, `2026-11`, UTC",
    "session": "name of the session: its start in UTC, and the first part of its uuid",
}


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
    "path": StoreColumn(TEXT_TYPE, "`inter-node` or `intra-node`"),
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


def _several(record: type, meaning: str, nullable: bool = True) -> StoreColumn:
    """Return the column of a list of records."""
    return StoreColumn(pa.list_(arrow_type(record)), meaning, nullable)


_IN_UNIT = {"us": ", µs", "MB/s": ", MB/s", "B": ", bytes", "%": ""}

_NUMBERS = {
    name: StoreColumn(
        BYTES_TYPE if one.whole else NUMBER_TYPE, one.how + _IN_UNIT[one.unit], nullable=True
    )
    for name, one in LANDMARKS.items()
}

LANDMARK_COLUMNS = {
    **{name: column for name, column in _NUMBERS.items() if name not in twin.NAMES},
    "eager_limit": StoreColumn(
        arrow_type(EagerLimit), "both sides of the eager limit; µs, MB/s, bytes", True
    ),
    "undefined": StoreColumn(
        MAP_TYPE, "landmarks that are not defined, each with the reason", True
    ),
    "intervals": StoreColumn(
        pa.list_(pa.struct([("landmark", TEXT_TYPE), ("low", NUMBER_TYPE), ("high", NUMBER_TYPE)])),
        "landmarks with a 95 % interval, in their units",
        True,
    ),
    **{name: _NUMBERS[name] for name in twin.NAMES},
}
"""Columns on the landmarks of a case's curve."""

_CRASHES = _several(
    Crash,
    "attempts that crashed before their first figure; `said`: last words; `counters`: what the"
    " network counted meanwhile, as in `launches`, null where no node reported it",
)

_OUTCOME = {
    "result": StoreColumn(TEXT_TYPE, "ReFrame's: `pass`, `fail`, `fail_deps`, `xfail`, `xpass`, …"),
    "phase": StoreColumn(TEXT_TYPE, "phase of ReFrame's pipeline in which it failed, or empty"),
    "reason": StoreColumn(TEXT_TYPE, "why it failed, or empty"),
    "seconds": StoreColumn(NUMBER_TYPE, "what ReFrame took for it, s"),
    "nodes": StoreColumn(
        TEXTS_TYPE, "nodes of the test's job, by its own word; of a case, where it was judged"
    ),
    "folder": StoreColumn(TEXT_TYPE, "where the output was left; null for what never began", True),
}

_RANGE = {
    "time_min_us": StoreColumn(
        NUMBER_TYPE, "where `time_us` is the slowest rank's: the fastest rank's, µs", True
    ),
    "time_avg_us": StoreColumn(NUMBER_TYPE, "and the mean of all ranks, µs", True),
}

_INCONCLUSIVE = {
    "inconclusive": StoreColumn(
        TEXTS_TYPE,
        "why its figures tell nothing of the network, though nothing failed by them; empty where"
        " they do, null where it is not known",
        True,
    )
}

_FACTS = {
    "state": StoreColumn(TEXT_TYPE, "the interface: `up`, `down` or `no carrier`", True),
    "address": StoreColumn(TEXT_TYPE, "its IPv4 address", True),
    "duplex": StoreColumn(TEXT_TYPE, "of the link, `Full` or `Half`", True),
    "autonegotiation": StoreColumn(TEXT_TYPE, "of the link, `on` or `off`", True),
    "governor": StoreColumn(TEXT_TYPE, "by which the kernel sets the CPUs' frequencies", True),
    "microcode": StoreColumn(TEXT_TYPE, "revision of the CPU's microcode", True),
    "memory": StoreColumn(MAP_TYPE, "KiB, of all and of each NUMA node"),
    "rings": StoreColumn(MAP_TYPE, "`ethtool -g`"),
    "pci": StoreColumn(MAP_TYPE, "speed and width of the card's link, as it is and at most"),
    "hugepages": StoreColumn(
        TEXT_TYPE, "transparent hugepages: `always`, `madvise`, `never`", True
    ),
    "mitigations": StoreColumn(MAP_TYPE, "of the CPU's flaws, as the kernel has them"),
    "clock_source": StoreColumn(TEXT_TYPE, "what the kernel reads the time from", True),
    "clock_s": StoreColumn(NUMBER_TYPE, "the node's clock then, s since 1970", True),
    "clock_ntp_offset_s": StoreColumn(NUMBER_TYPE, "its offset by chrony or ntpd, s", True),
    "clock_ahead_from_s": StoreColumn(
        NUMBER_TYPE, "it is at least so far ahead of the clock of the job's first node, s", True
    ),
    "clock_ahead_to_s": StoreColumn(NUMBER_TYPE, "and at most so far, s", True),
    "path_to": StoreColumn(TEXT_TYPE, "the job's next node", True),
    "path_asked_bytes": StoreColumn(COUNT_TYPE, "packets of the MTU, bytes", True),
    "path_passed_bytes": StoreColumn(
        COUNT_TYPE,
        "packets that came unfragmented to it: of the MTU, or the least tried, bytes",
        True,
    ),
    "busy": StoreColumn(
        TEXT_TYPE, "programs that took a tenth of a CPU then, of no job of ours; `none`", True
    ),
    "tcp_answered": StoreColumn(
        TEXT_TYPE, "of the job's next node and the one before, those that answered over TCP", True
    ),
    "tcp_unanswered": StoreColumn(
        TEXT_TYPE, "and those that did not, with commas between them; `none`", True
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
        MAP_TYPE, "partitions whose nodes are not known, each with the reason", True
    ),
}

_FILES = pa.list_(
    pa.struct([("kind", pa.string()), ("path", pa.string()), ("sha256", pa.string())])
)

TABLES: dict[str, StoreTable] = {
    "sessions": StoreTable(
        "a session, with what is known of where it came from",
        {
            "uuid": StoreColumn(TEXT_TYPE, "ReFrame's uuid of the session"),
            "started": StoreColumn(TIME_TYPE, "start, UTC"),
            "ended": StoreColumn(TIME_TYPE, "end, UTC"),
            "host": StoreColumn(TEXT_TYPE, "machine that ReFrame ran on"),
            "user": StoreColumn(TEXT_TYPE, "who ran it"),
            "command": StoreColumn(TEXT_TYPE, "the command line"),
            "cases": StoreColumn(COUNT_TYPE, "cases, whatever came of them"),
            "measured": StoreColumn(COUNT_TYPE, "cases that are complete"),
            "labels": StoreColumn(MAP_TYPE, "what `reframe --session-extras` gave"),
            "reframe": StoreColumn(TEXT_TYPE, "version of ReFrame"),
            "netproof": StoreColumn(TEXT_TYPE, "version of netproof", True),
            "slurm": StoreColumn(TEXT_TYPE, "version of Slurm", True),
            "mpi": StoreColumn(
                MAP_TYPE, "environments, each with its MPI library as the site names it"
            ),
            "git_revision": StoreColumn(TEXT_TYPE, "revision of the checkout", True),
            "git_changed": StoreColumn(pa.bool_(), "whether it had changes beyond that", True),
            "files": StoreColumn(_FILES, "configuration and references: kind, path, sha256"),
            "differences": StoreColumn(
                TEXTS_TYPE, "in what nodes of one partition differ, in sentences"
            ),
            "unknown": StoreColumn(
                MAP_TYPE, "provenance that could not be had, each with the reason"
            ),
            **_SLURM,
            "report": StoreColumn(TEXT_TYPE, "path of the report when it was stored"),
            "report_sha256": StoreColumn(TEXT_TYPE, "SHA-256 of the report"),
        },
    ),
    "cases": StoreTable(
        "a case of a session; what was not measured has nulls from `jobid` on",
        {
            **KEY,
            "ranks_per_node": StoreColumn(COUNT_TYPE, "ranks on each node", True),
            "check": StoreColumn(TEXT_TYPE, "ReFrame's name of the check"),
            "attempts": StoreColumn(COUNT_TYPE, "how often ReFrame ran it; the last one stands"),
            **_OUTCOME,
            "failed_job": StoreColumn(
                TEXT_TYPE, "test that failed, so that this one did not run; null where none", True
            ),
            "complete": StoreColumn(pa.bool_(), "whether it was measured whole"),
            "jobid": StoreColumn(TEXT_TYPE, "Slurm's number of the job that measured it", True),
            "seed": StoreColumn(BYTES_TYPE, "seed of the order of the job's launches", True),
            "launches": StoreColumn(COUNT_TYPE, "launches", True),
            "crashes": _CRASHES,
            **_INCONCLUSIVE,
            "switch": StoreColumn(TEXT_TYPE, "the switch as the site names it", True),
            "nic": StoreColumn(TEXT_TYPE, "the card as the site names it", True),
            "driver": StoreColumn(TEXT_TYPE, "its driver as the site names it", True),
            "link_mbit_s": StoreColumn(NUMBER_TYPE, "link rate, Mbit/s of 10⁶", True),
            "mtu": StoreColumn(COUNT_TYPE, "MTU, bytes", True),
            "mpi": StoreColumn(TEXT_TYPE, "the MPI library as the site names it", True),
            "line_rate_mb_s": StoreColumn(
                NUMBER_TYPE, "most that the bandwidth can be, MB/s", True
            ),
            **LANDMARK_COLUMNS,
            "cpu_costs": _several(
                NodeCost,
                "each node: CPU seconds of its ranks, less those of starting and ending, and what"
                " follows from them; `absent`: what is not known, and why",
            ),
            "partition_extras": StoreColumn(
                TEXT_TYPE, "all that the site says of the partition, JSON", True
            ),
            "environment_extras": StoreColumn(TEXT_TYPE, "and of the environment, JSON", True),
        },
    ),
    "launches": StoreTable(
        "a launch of a case",
        {
            **KEY,
            "launch": StoreColumn(COUNT_TYPE, "which of the case's launches, from 1"),
            "position": StoreColumn(COUNT_TYPE, "place among all launches of its job, from 1"),
            "started": StoreColumn(TIME_TYPE, "start, UTC"),
            "wall_s": StoreColumn(NUMBER_TYPE, "seconds with starting and ending the job step"),
            "ranks_used": _several(
                RankUse,
                "each rank: its node, its seconds, its CPU seconds and those of them in the kernel;"
                " `scheduled`: context switches of its first thread, and seconds that it waited",
                nullable=False,
            ),
            "loads": _several(
                NodeLoad,
                "each node: what else its machine did, in shares of its CPUs; of time for pressure",
            ),
            "extra": StoreColumn(
                pa.bool_(), "whether it was made since the first launches left something undecided"
            ),
            "twin": StoreColumn(
                arrow_type(Curve),
                "curve of the paired launch over the link's healthy twin; null where there is none",
                True,
            ),
            "paired": _several(
                Peer,
                "paired launches in other environments, each with its curve, crashes and counters",
            ),
            "counters": StoreColumn(
                arrow_type(Counters),
                "`nodes`: what the network of each counted, by source (interface, tcp, softnet,"
                " driver, infiniband): what was added to each counter that changed; `read`: which"
                " of `names`, from 0, has all that were read; `absent`: what is not known, and why",
                True,
            ),
            "payload": StoreColumn(
                arrow_type(Payload),
                "bytes that the launch had to send between its nodes at least, or why that is not"
                " known",
                True,
            ),
            "paces": _several(
                Pace,
                "of a launch inside a node and of those in `paired`, of both halves of each: how"
                " long two of the node's CPUs took to hand a cache line over, ns, or why that is"
                " not known",
            ),
            "exchanged": StoreColumn(
                arrow_type(Payload),
                "messages and bytes that the ranks had to send to each other at least, or why that"
                " is not known",
                True,
            ),
        },
    ),
    "curves": StoreTable(
        "a size of a launch of a case",
        {
            **KEY,
            "ranks_per_node": StoreColumn(COUNT_TYPE, "ranks on each node"),
            "launch": StoreColumn(COUNT_TYPE, "which of the case's launches, from 1"),
            "size_bytes": StoreColumn(BYTES_TYPE, "size of one message, bytes; 0 for Barrier"),
            "time_us": StoreColumn(NUMBER_TYPE, "one-way or per-call time, µs"),
            "bandwidth_mb_s": StoreColumn(
                NUMBER_TYPE, "MB/s, each way for NetPIPE; null where the function has none", True
            ),
            **_RANGE,
        },
    ),
    "tests": StoreTable(
        "what ReFrame ran in addition to the cases: jobs that measure, tests that judge many cases",
        {
            "number": StoreColumn(COUNT_TYPE, "place in the report, from 1"),
            "test": StoreColumn(TEXT_TYPE, "ReFrame's name of the test"),
            "kind": StoreColumn(
                TEXT_TYPE, "`launches`, `further`, `curves`, `compared further` or `configurations`"
            ),
            "partition": KEY["partition"],
            "environment": KEY["environment"],
            **_OUTCOME,
        },
    ),
    "repeats": StoreTable(
        "a case that was measured again, by a test of kind `further`, around or between sizes",
        {
            **KEY,
            "ranks_per_node": StoreColumn(COUNT_TYPE, "ranks on each node"),
            "test_number": StoreColumn(COUNT_TYPE, "the test's place in the report"),
            "jobid": StoreColumn(TEXT_TYPE, "Slurm's number of its job"),
            "nodes": StoreColumn(TEXTS_TYPE, "nodes of that job"),
            "launches": StoreColumn(COUNT_TYPE, "launches that are complete"),
            "faults": StoreColumn(TEXTS_TYPE, "why others are not"),
            "loads": StoreColumn(
                pa.list_(pa.list_(arrow_type(NodeLoad))),
                "of each launch, `loads` as `launches` has them",
                True,
            ),
            "made": StoreColumn(
                COUNT_TYPE, "how often the benchmark was started, each attempt being one"
            ),
            "crashes": _CRASHES,
        },
    ),
    "repeat_curves": StoreTable(
        "a size of a complete launch of such a case",
        {
            **KEY,
            "ranks_per_node": StoreColumn(COUNT_TYPE, "ranks on each node"),
            "test_number": StoreColumn(COUNT_TYPE, "the test's place in the report"),
            "launch": StoreColumn(COUNT_TYPE, "which of the complete launches, from 1"),
            "size_bytes": StoreColumn(BYTES_TYPE, "size of one message, bytes"),
            "time_us": StoreColumn(NUMBER_TYPE, "one-way or per-call time, µs"),
            "bandwidth_mb_s": StoreColumn(NUMBER_TYPE, "as in `curves`", True),
            **_RANGE,
        },
    ),
    "nodes": StoreTable(
        "a node in a job, as it was found before the first launch",
        {
            "partition": KEY["partition"],
            "environment": KEY["environment"],
            "job": StoreColumn(TEXT_TYPE, "ReFrame's name of the job"),
            "jobid": StoreColumn(TEXT_TYPE, "Slurm's number of the job"),
            "node": StoreColumn(TEXT_TYPE, "name of the node"),
            "kernel": StoreColumn(TEXT_TYPE, "kernel release and build", True),
            "architecture": StoreColumn(TEXT_TYPE, "`x86_64`, …", True),
            "cpu": StoreColumn(TEXT_TYPE, "model of the CPU", True),
            "cpus": StoreColumn(COUNT_TYPE, "CPUs that the kernel has", True),
            "interface": StoreColumn(TEXT_TYPE, "the interface that is measured over"),
            "nic": StoreColumn(TEXT_TYPE, "the card: its PCI name or numbers", True),
            "driver": StoreColumn(TEXT_TYPE, "its driver", True),
            "driver_version": StoreColumn(TEXT_TYPE, "the driver's version", True),
            "firmware": StoreColumn(TEXT_TYPE, "the card's firmware", True),
            "bus": StoreColumn(TEXT_TYPE, "the card's place on the bus", True),
            "link_mbit_s": StoreColumn(COUNT_TYPE, "link rate, Mbit/s of 10⁶", True),
            "mtu": StoreColumn(COUNT_TYPE, "MTU, bytes", True),
            "offloads": StoreColumn(MAP_TYPE, "`ethtool -k`"),
            "coalescing": StoreColumn(MAP_TYPE, "`ethtool -c`"),
            "sysctls": StoreColumn(MAP_TYPE, "of TCP and of sockets"),
            "programs": StoreColumn(MAP_TYPE, "benchmarks and MPI libraries: SHA-256 and path"),
            "absent": StoreColumn(MAP_TYPE, "what could not be had, each with the reason"),
            **_FACTS,
        },
    ),
}
