"""What Slurm says before anything is measured: whether it answers, and what partitions can run."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netproof.errors import NetproofError
from netproof.intake import trust

ANSWER_S = 60
"""Seconds that a command of Slurm's gets to answer."""

_USABLE = frozenset({"allocated", "completing", "idle", "mixed", "planned"})
_PARTITION_OPTION = re.compile(r"(?<!\S)(?:--partition[= ]|-p[= ]?)\s*(\S+)")


@dataclass(frozen=True)
class SlurmNode:
    """A node of a partition: Slurm's state of it in lower case, and the reason that Slurm has."""

    name: str
    state: str
    reason: str

    @property
    def usable(self) -> bool:
        """Whether a job can have it, now or when those that have it end.

        The marks + and - tell of jobs that end or wait; all others, as * for no answer, complain.
        """
        return self.state.rstrip("+-") in _USABLE

    def __str__(self) -> str:
        return f"{self.name} is {self.state}{f' ({self.reason})' if self.reason else ''}"


@dataclass(frozen=True)
class SlurmPartition:
    """A partition of Slurm's: UP, DOWN, DRAIN or INACTIVE, and its nodes."""

    name: str
    state: str
    nodes: tuple[SlurmNode, ...]

    def cannot_run(self, nodes: int) -> str | None:
        """Why no job of so many nodes can run; None where one can."""
        if self.state != "UP":
            return f"partition {self.name} is {self.state}"
        usable = sum(node.usable for node in self.nodes)
        if usable >= nodes:
            return None
        others = "; ".join(str(node) for node in self.nodes if not node.usable)
        return (
            f"partition {self.name} has {usable} usable nodes of {len(self.nodes)}, and {nodes} are"
            f" needed{f': {others}' if others else ''}"
        )


def answers() -> None:
    """Return where slurmctld answers; else raise NetproofError with what was said instead."""
    said = _ask("scontrol", "ping")
    if " is UP" not in said:
        raise NetproofError(f"slurmctld does not answer: {_in_a_line(said)}")


def names_in(access: Sequence[str]) -> list[str]:
    """Slurm's partitions that ReFrame's ``access`` options of a partition name, in their order."""
    return [
        name
        for option in access
        for found in _PARTITION_OPTION.findall(option)
        for name in found.split(",")
    ]


def partitions() -> dict[str, SlurmPartition]:
    """Every partition by its name; NetproofError where Slurm does not answer."""
    told = _ask("scontrol", "--oneliner", "show", "partition")
    states = dict(re.findall(r"(?m)^PartitionName=(\S+) .*\bState=(\S+)", told))
    listed = _ask("sinfo", "--noheader", "--Node", "--format=%R|%N|%T|%E")
    return partitions_of(states, listed)


def partitions_of(states: Mapping[str, str], listed: str) -> dict[str, SlurmPartition]:
    """Partitions of their states by name, and what sinfo lists: partition, node, state, reason."""
    nodes: dict[str, list[SlurmNode]] = {name: [] for name in states}
    for line in listed.splitlines():
        partition, name, state, reason = line.split("|", 3)
        nodes.setdefault(partition, []).append(
            SlurmNode(name, state.lower(), "" if reason == "none" else reason)
        )
    return {name: SlurmPartition(name, state, tuple(nodes[name])) for name, state in states.items()}


def time_limits_s() -> dict[str, int | None]:
    """The longest that a job may last by partition, in seconds; None where there is no limit.

    Raises NetproofError where Slurm does not answer.
    """
    told = _ask("scontrol", "--oneliner", "show", "partition")
    found = re.findall(r"(?m)^PartitionName=(\S+) .*\bMaxTime=(\S+)", told)
    return {name: seconds_of(limit) for name, limit in found}


def seconds_of(limit: str) -> int | None:
    """Seconds of a time limit as Slurm prints it, ``1-02:30:00`` or ``30:00``; None for UNLIMITED.

    Raises NetproofError for anything else.
    """
    if limit == "UNLIMITED":
        return None
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", limit)
    if not found:
        raise NetproofError(f"{limit!r} is no time limit of Slurm's")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((24 * days + hours) * 60 + minutes) * 60 + seconds


def _ask(*command: str) -> str:
    trust.insist_on_slurm()
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=ANSWER_S, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError:
        raise NetproofError(
            f"{command[0]} is not in PATH; run where Slurm's commands are, on a login node"
        ) from None
    except subprocess.TimeoutExpired:
        raise NetproofError(
            f"slurmctld does not answer: {' '.join(command)} said nothing for {ANSWER_S} s"
        ) from None
    if ran.returncode != 0:
        what = "slurmctld does not answer" if command[1] == "ping" else " ".join(command)
        raise NetproofError(f"{what}: {_in_a_line(ran.stderr + ran.stdout)}")
    return ran.stdout


def _in_a_line(said: str) -> str:
    # Slurm frames some of what it says with asterisks.
    lines = [line.strip(" *\t") for line in said.splitlines()]
    return " | ".join(line for line in lines if line) or "nothing said"
