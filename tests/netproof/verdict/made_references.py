"""Places in the shipped references, and what ReFrame finds there."""

from __future__ import annotations

import functools
import types
from pathlib import Path

from reframe.core.pipeline import RegressionTestDict, RegressionTestPlugin

from netproof.measurement.case import Case

ROOT = Path(__file__).resolve().parents[3]

SHIPPED = {path.stem: path for path in sorted((ROOT / "reference-values").glob("*.yaml"))}


def pingpong(partition="gige", environment="mpich", ranks=2, system="testbed") -> Case:
    return Case(system, partition, environment, "imb", "PingPong", ranks, 1)


def netpipe(partition, environment, path, direction, system) -> Case:
    return Case(system, partition, environment, "netpipe", "tcp", 2, 1, path, direction)


@functools.cache
def _class_named(check: str) -> type:
    """Return one class for each name: with their number, ReFrame looks classes up slower."""
    return types.new_class(check, (RegressionTestPlugin,))


def looked_up(references: dict, check: str, case: Case) -> dict:
    """The same in a file that was read."""
    plugin = object.__new__(_class_named(check))
    plugin.current_partition = types.SimpleNamespace(fullname=f"{case.system}:{case.partition}")
    plugin.current_environ = types.SimpleNamespace(name=case.environment)
    plugin.ranks, plugin.path, plugin.direction = case.ranks, case.path, case.direction
    return RegressionTestDict(dict(references[check]))[plugin]


def places(system: str) -> list[tuple[str, Case]]:
    """Checks and cases that the shipped file of a system has entries for."""
    partitions, ranks = {
        "testbed": (("gige", "fast-ethernet"), (2, 4)),
        "example": (("summit", "nexus"), (16, 32, 64)),
    }[system]
    found = []
    for partition in partitions:
        for environment in ("mpich", "openmpi-4.1", "openmpi-5.0"):
            found += [
                (check, netpipe(partition, environment, path, direction, system))
                for check in ("NetpipeTcp", "NetpipeMpi")
                for path in ("inter-node", "intra-node")
                for direction in ("oneway", "bidirectional")
            ]
            found += [
                (check, pingpong(partition, environment, count, system))
                for check in ("ImbAllgather", "ImbAllreduce", "ImbBarrier")
                for count in ranks
            ]
            found.append(("ImbPingPong", pingpong(partition, environment, 2, system)))
    return found


PLACES = {system: places(system) for system in SHIPPED}

HEAD = ".all: &all\n  latency_us: [0, null, null, us]\n"
