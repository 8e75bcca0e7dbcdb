"""Places in the shipped references, and what ReFrame finds there."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from pathlib import Path

from reframe.core.pipeline import RegressionTestDict

from netproof.measurement.case import Case
from netproof.run.mixins import Referenced

ROOT = Path(__file__).resolve().parents[3]

SHIPPED = {path.stem: path for path in sorted((ROOT / "reference-values").glob("*.yaml"))}


def pingpong(partition="gige", environment="mpich", ranks=2, system="testbed") -> Case:
    return Case(system, partition, environment, "imb", "PingPong", ranks, 1)


def netpipe(partition, environment, path, direction, system) -> Case:
    return Case(system, partition, environment, "netpipe", "tcp", 2, 1, path, direction)


def lookup(references: dict) -> Callable[[str, Case], dict]:
    """Return what finds a check's references of a case, as ReFrame does, in a file that was read.

    ReFrame makes classes for each table, so that many tables slow it down: one for each check.
    """
    tables = functools.cache(
        lambda check: RegressionTestDict(dict(references[check]), protocol="ref")
    )
    kinds = functools.cache(lambda check: types.new_class(check, (Referenced,)))

    def found(check: str, case: Case) -> dict:
        plugin = object.__new__(kinds(check))
        plugin.current_partition = types.SimpleNamespace(fullname=f"{case.system}:{case.partition}")
        plugin.current_environ = types.SimpleNamespace(name=case.environment)
        plugin.ranks, plugin.path, plugin.direction = case.ranks, case.path, case.direction
        return tables(check)[plugin]

    return found


def looked_up(references: dict, check: str, case: Case) -> dict:
    """Return the references of one case."""
    return lookup(references)(check, case)


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
