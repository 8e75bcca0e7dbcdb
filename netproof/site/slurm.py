"""Slurm's state before anything is measured: whether it answers, and what partitions can run.

Names of nodes are abbreviated as Slurm does: ``node[1-3,7],login-1``. What asks Slurm raises
NetproofError where it does not answer, or prints something unknown.
"""

from __future__ import annotations

import math
import re
import shlex
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from netproof.errors import NetproofError, shortened
from netproof.intake import trust

ANSWER_S = 60
"""Seconds that a Slurm command has to answer."""

_FREE = frozenset({"idle", "planned"})
_BUSY = frozenset({"allocated", "completing", "mixed"})
_QUEUED = frozenset({"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "REQUEUED"})
_FOR_NODES = ("Resources", "Priority", "Nodes required for job are", "ReqNodeNotAvail")
"""How Slurm's reasons begin for a job that waits for nodes that other jobs hold or wait for."""
_NEVER = re.compile(
    r"(Assoc|QOS)Max\w*Per(Job|Node)(Limit)?|QOSNotAllowed|Invalid(Account|QOS)|AccountNotAllowed"
    r"|Partition(Node|Time)Limit|QOS(Resource|Time)Limit|QOSMin\w+|BadConstraints"
    r"|DependencyNeverSatisfied|Reservation(Deleted|Invalid)|JobHeld(User|Admin)"
)
"""Reasons that persist when other jobs end; squeue(1) lists all."""
_FLAT = frozenset(
    ("(null)", *(f"topology/{one}" for one in ["default", "flat", "none", "node_rank", "3d_torus"]))
)
"""Plugins of which Slurm shows no switches, by their names in Slurm 20 to 25."""
_SWITCH = re.compile(
    r"SwitchName=(?P<name>\S+) Level=(?P<level>\d+) LinkSpeed=\d+"
    r"(?: Nodes=(?P<nodes>\S+))?(?: Switches=(?P<switches>\S+))?\s*"
)
_BLOCK = re.compile(
    r"(?P<kind>BlockName|AggregatedBlock)=(?P<name>\S+) BlockIndex=\d+"
    r"(?: Nodes=(?P<nodes>\S+))? BlockSize=(?P<size>\d+)\s*"
)
CHOOSING = re.compile(
    r"(?<!\S)(?:--(?:nodelist|exclude|constraint|nodefile|reservation|clusters)\b|-[wxCFM])"
)
"""Options that choose among a partition's nodes."""
OWN = re.compile(
    r"^(?:--(nodes|ntasks|ntasks-per-node|time|job-name|dependency|array|output|error)(?=[= ]|$)"
    r"|-[NntJdaoe])"
)
"""Options that netproof chooses for each job."""
SHARING = re.compile(r"(?<!\S)(?:--(?:oversubscribe|exclusive)\b|-s\b)")
"""Options on whether a job shares its nodes."""
_PARTITION_OPTION = re.compile(r"(?<!\S)(?:--partition[= ]|-p[= ]?)\s*(\S+)")


States = Mapping[str, str]
"""Nodes by name, with Slurm's state in lower case and its reason: ``down* (no power)``."""


def state_of(state: str, reason: str) -> str:
    """Return a state from sinfo's ``%T`` and ``%E``."""
    return state.lower() if reason == "none" else f"{state.lower()} ({reason})"


def _word(state: str) -> str:
    return state.partition(" ")[0]


def usable(state: str) -> bool:
    """Return whether a job can have a node, now or when other jobs on it end.

    The marks + and - stand for jobs that end or wait, ~ # % and ! for saving power, from which
    Slurm wakes nodes for jobs (sinfo(1)); all others, such as *, are faults.
    """
    return _word(state).rstrip("+-~#%!") in _FREE | _BUSY


def free(state: str) -> bool:
    """Return whether a job can have all of a node now, or as soon as it has booted."""
    return _word(state).rstrip("+-~#") in _FREE


def busy(state: str) -> bool:
    """Return whether other jobs have a node, or a part of it, or it is being switched off."""
    return usable(state) and not free(state)


def silent(state: str) -> bool:
    """Return whether a job could have a node if it answered: resumed, or its slurmd has stopped."""
    return _word(state).endswith("*") and _word(state).rstrip("*+-") in _FREE | _BUSY


def unusable(nodes: States) -> str:
    """Return the nodes that no job can have, and why; empty without any."""
    return "; ".join(
        f"{name} is {state}{' (does not answer slurmctld)' * (silent(state) and '(' not in state)}"
        for name, state in nodes.items()
        if not usable(state)
    )


@dataclass(frozen=True)
class SlurmPartition:
    """A partition of Slurm: UP, DOWN, DRAIN or INACTIVE, and its nodes.

    ``limit_s``: the longest time of a job, None without limit.
    """

    name: str
    state: str
    nodes: States
    limit_s: int | None = None
    hidden: bool = False

    def may_soon_run(self, nodes: int) -> bool:
        """Return whether a job of so many nodes can run once the silent nodes answer."""
        return self.state == "UP" and nodes <= sum(
            usable(one) or silent(one) for one in self.nodes.values()
        )

    def cannot_run(self, nodes: int) -> str | None:
        """Return why no job of so many nodes can run; None where one can."""
        if self.state != "UP":
            return f"partition {self.name} is {self.state}"
        there = sum(map(usable, self.nodes.values()))
        if there >= nodes:
            return None
        others = unusable(self.nodes)
        return (
            f"partition {self.name} has {there} usable {'node' if there == 1 else 'nodes'} of"
            f" {len(self.nodes)}, and {nodes} are needed{f': {others}' if others else ''}"
        )


def answers() -> None:
    """Check that slurmctld answers. Raises NetproofError with what was printed instead."""
    said = ask("scontrol", "ping")
    if " is UP" not in said:
        raise NetproofError(f"slurmctld does not answer: {_in_a_line(said)}")


def names_in(access: Sequence[str]) -> list[str]:
    """Return the Slurm partitions named in ReFrame's ``access`` options, in their order."""
    return [
        name
        for option in access
        for found in _PARTITION_OPTION.findall(option)
        for name in found.split(",")
    ]


def options_in(access: Sequence[str], kind: re.Pattern[str]) -> list[str]:
    """Return ReFrame's ``access`` options that are ``CHOOSING``, ``OWN`` or ``SHARING``."""
    return [option for option in access if kind.search(option)]


def partitions() -> dict[str, SlurmPartition]:
    """Return every partition by its name."""
    return partitions_of(
        ask("scontrol", "--all", "--oneliner", "show", "partition"),
        ask("sinfo", "--all", "--noheader", "--Node", "--format=%R|%N|%T|%E"),
    )


def partitions_of(shown: str, listed: str) -> dict[str, SlurmPartition]:
    """Return the partitions from scontrol's lines; ``listed``: partition, node, state, reason."""
    rows = (line.split("|", 3) for line in listed.splitlines())
    nodes: dict[str, dict[str, str]] = defaultdict(dict)
    for partition, name, state, reason in rows:
        nodes[partition][name] = state_of(state, reason)
    lines = (dict(word.partition("=")[::2] for word in one.split()) for one in shown.splitlines())
    return {
        one["PartitionName"]: SlurmPartition(
            one["PartitionName"],
            one["State"],
            nodes[one["PartitionName"]],
            seconds_of(one.get("MaxTime", "UNLIMITED")),
            one.get("Hidden") == "YES",
        )
        for one in lines
        if "PartitionName" in one
    }


def free_and_busy(
    named: Sequence[str], known: Mapping[str, SlurmPartition]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the nodes of ``named`` partitions that are free, and those that other jobs have."""
    nodes = {
        node: state for name in named if name in known for node, state in known[name].nodes.items()
    }
    return (
        tuple(name for name in sorted(nodes) if free(nodes[name])),
        tuple(name for name in sorted(nodes) if busy(nodes[name])),
    )


def pending_reason(jobid: str) -> str | None:
    """Return Slurm's reason for which a job is pending; None for one that is not."""
    state, reason = _queued(jobid)
    return reason if state == "PENDING" else None


def is_queued(jobid: str) -> bool:
    """Return whether a job waits, runs or is ending."""
    return _queued(jobid)[0] in _QUEUED


def _queued(jobid: str) -> tuple[str, str]:
    """Return a job's state, and why it is pending if it is."""
    answer = ask("squeue", "--noheader", "--states=all", f"--jobs={jobid}", "--format=%T|%r")
    state, _, reason = answer.strip().partition("|")
    return state, reason


def is_for_nodes(reason: str) -> bool:
    """Return whether a job that is pending for this reason waits for nodes that others have."""
    return reason.startswith(_FOR_NODES)


def never_ends(reason: str) -> bool:
    """Return whether a job pending for this reason waits until somebody changes it or Slurm."""
    return _NEVER.fullmatch(reason) is not None


def most_nodes(access: Sequence[str], count: int) -> tuple[int, str]:
    """Return how many of ``count`` nodes Slurm lets one job have, and its refusal of more.

    By ``sbatch --test-only``, which knows the limits of partition, account and QOS.
    """
    least, most, refusal = 0, count, ""
    asked = count
    while least < most:
        try:
            test([*access, f"--nodes={asked}"])
            least = asked
        except NetproofError as error:
            most, refusal = asked - 1, str(error)
        asked = (least + most + 1) // 2
    return most, refusal


def test(options: Sequence[str]) -> None:
    """Ask Slurm whether it would take a job. Raises NetproofError with its refusal."""
    words = [word for option in options for word in shlex.split(option)]
    ask("sbatch", "--test-only", *words, "--wrap=true")


def take_fewer(jobid: str, nodes: int) -> None:
    """Let a waiting job have fewer nodes, a task on each. Raises NetproofError once it runs."""
    changes = (f"{key}={nodes}" for key in ("NumNodes", "NumTasks", "NumCPUs"))
    ask("scontrol", "update", f"JobId={jobid}", *changes)


Tree = tuple[dict[str, tuple[str, ...]], dict[str, str]]
"""The nodes of each leaf switch, and the switch above each that is below another.

A block of topology/block is a leaf, and blocks that Slurm aggregates are below a switch.
"""


def topology() -> Tree:
    """Return Slurm's switches; none where its plugin has none, such as topology/flat."""
    config = ask("scontrol", "show", "config")
    found = re.search(r"(?m)^TopologyPlugin\s*=\s*(\S+)\s*$", config)
    if not found:
        raise NetproofError("scontrol show config names no TopologyPlugin")
    if found[1] in _FLAT:
        return {}, {}
    listed = ask("scontrol", "show", "topology")
    if not listed.strip():
        raise NetproofError(f"scontrol show topology says nothing, and the plugin is {found[1]}")
    return topology_of(listed)


def topology_of(listed: str) -> Tree:
    """Return the switches in the output of ``scontrol show topology``, a tree or blocks.

    Raises NetproofError for a line of another form, and for lines that contradict each other.
    """
    leaves: dict[str, tuple[str, ...]] = {}
    below: dict[str, tuple[str, ...]] = {}
    for line in filter(str.strip, listed.splitlines()):
        found = _SWITCH.fullmatch(line) or _BLOCK.fullmatch(line)
        if not found:
            raise NetproofError(
                f"scontrol show topology: {shortened(repr(line))} is no line of a tree or of blocks"
            )
        name, of_line = found["name"], found.groupdict()
        if name in below:
            raise NetproofError(f"scontrol show topology lists {name} more than once")
        aggregated = of_line.get("kind") == "AggregatedBlock"
        switches = name if aggregated else of_line.get("switches")
        below[name] = unfold(switches) if switches else ()
        if not aggregated and of_line.get("level", "0") == "0":
            leaves[name] = unfold(found["nodes"]) if found["nodes"] else ()
    leaf_of: dict[str, str] = {}
    for name, nodes in leaves.items():
        for node in nodes:
            if leaf_of.setdefault(node, name) != name:
                raise NetproofError(
                    f"scontrol show topology has {node} on {leaf_of[node]} and on {name}"
                )
    for name, switches in below.items():
        if unknown := sorted(set(switches) - set(below)):
            raise NetproofError(
                f"scontrol show topology has {', '.join(unknown)} below {name}, and no line for it"
            )
    return leaves, {one: name for name, switches in below.items() for one in switches}


def seconds_of(limit: str) -> int | None:
    """Return the seconds of a limit, ``1-02:30:00`` or ``30:00``, or None for UNLIMITED."""
    if limit == "UNLIMITED":
        return None
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", limit)
    if not found:
        raise NetproofError(f"{limit!r} is no time limit of Slurm's")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((24 * days + hours) * 60 + minutes) * 60 + seconds


def ask(*command: str, merged: bool = False, limit_s: int = ANSWER_S) -> str:
    """Return what a command of Slurm prints, with its standard error if ``merged``.

    ``limit_s``: the seconds that it has to answer.
    """
    trust.insist_on_slurm()
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=limit_s, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError:
        raise NetproofError(
            f"{command[0]} is not in PATH; run where Slurm's commands are, on a login node"
        ) from None
    except subprocess.TimeoutExpired:
        raise NetproofError(
            f"slurmctld does not answer: {' '.join(command)} said nothing for {limit_s} s"
        ) from None
    if ran.returncode != 0:
        what = "slurmctld does not answer" if command[1] == "ping" else " ".join(command)
        raise NetproofError(f"{what}: {_in_a_line(ran.stderr + ran.stdout)}")
    return ran.stdout + ran.stderr if merged else ran.stdout


def _in_a_line(said: str) -> str:
    # Slurm frames some messages with asterisks.
    lines = [line.strip(" *\t") for line in said.splitlines()]
    return " | ".join(line for line in lines if line) or "nothing said"


_NUMBERED = re.compile(r"[A-Za-z0-9_.-]*[0-9]")
_HOST = r"(?:(?:[A-Za-z0-9_.-]*\[[0-9,-]+\])+[A-Za-z0-9_.-]*|[A-Za-z0-9_.-]+)"
_HOST_LIST = re.compile(rf"{_HOST}(?:,{_HOST})*")
MOST_HOSTS = 100_000
"""More names than any cluster has: a damaged list is refused, not expanded."""


def fold(names: Iterable[str]) -> str:
    """Return the names in Slurm's short form: names with the same stem together, each once.

    As ``scontrol show hostlist`` prints them: numbers keep their leading zeros, and consecutive
    numbers of one width form a range.
    """
    different = sorted(set(names))
    numbered = [name for name in different if _NUMBERED.fullmatch(name)]
    folded = NodeSet.fromlist(numbered, resolver=RESOLVER_NOGROUP)
    # Racks are no ranges.
    folded.fold_axis = (-1,)
    plain = [name for name in different if not _NUMBERED.fullmatch(name)]
    return ",".join(filter(None, (str(folded), *plain)))


def unfold(text: str) -> tuple[str, ...]:
    """Return the names in a Slurm list of hosts: ``wide-[1-3,7],login`` are five.

    Raises NetproofError for any other text, or more than MOST_HOSTS names.
    """
    names: list[str] = []
    try:
        if not _HOST_LIST.fullmatch(text):
            raise ValueError("it takes names, and commas and ranges of numbers in brackets")
        for part in re.findall(_HOST, text):
            # A range is counted before it is expanded.
            ranges = [one.split(",") for one in re.findall(r"\[(.*?)\]", part)]
            if math.prod(sum(map(_length, one)) for one in ranges) > MOST_HOSTS - len(names):
                raise ValueError(f"it has more than {MOST_HOSTS} names")
            names += NodeSet(part, resolver=RESOLVER_NOGROUP)
    except (ValueError, NodeSetException) as error:
        text = shortened(repr(text), 80)
        raise NetproofError(f"{text} is no list of Slurm's hosts: {error}") from error
    return tuple(names)


def _length(numbers: str) -> int:
    low, _, high = numbers.partition("-")
    return int(high or low) - int(low) + 1
