"""Load on the nodes of a launch: what others caused, whether it disturbed, and CPU time of a case.

A hypervisor moves virtual CPUs between cores that share a cache and cores that do not, and
exchanges between two ranks of a node then take several times as long. A site may name a command
that measures how long two CPUs take to hand a cache line over, in ns. Inside a node, paired
launches are compared only where that was alike in both halves of both.

A low latency from a spinning core is recognised by the benchmark's CPU seconds. An MPI library
takes CPU time to start and to end, and polls meanwhile: a job therefore also makes launches that do
little else, and their median is subtracted.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Annotated, Any

from pydantic import Field

from netproof.errors import ParseError, grouped, line_of
from netproof.measurement.counters import Sent

TICK_S = 0.01
"""Resolution of /proc/stat: USER_HZ, 100 per second on every architecture that Slurm runs on."""

_LOAD = re.compile(r"netproof load on ([^\t]*)(.*)")
_SCHEDULED = re.compile(r"netproof scheduled ([^\t]*)(.*)")
_ABSENT = "absent: "
_PRESSURES = ("pressure_share", "pressure_full_share")
_COLUMNS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""Columns of the line ``cpu`` of /proc/stat, proc(5); guests, which follow, are in ``user``."""


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """A node's machine while a launch ran.

    ``machine``: its boot id, which nodes on one machine share. The figures are the machine's, over
    the ``wall_s`` seconds in which all of its nodes had begun and none had ended. ``others_cpu_s``:
    CPU seconds of programs other than the launch's ranks; ``others_share``: of all CPUs;
    ``network_share``: the kernel's for interrupts, including the network's; ``steal_share``: given
    to others by the hypervisor; ``pressure_share``: share of the seconds in which something waited
    for a CPU, ``pressure_full_share``: and nothing ran. Shares are of 1. None means not known, with
    the reason by name in ``absent``.
    """

    node: str
    machine: str | None
    cpus: int | None
    wall_s: float | None
    others_cpu_s: float | None
    others_share: float | None
    network_share: float | None
    steal_share: float | None
    pressure_share: float | None
    pressure_full_share: float | None
    absent: tuple[tuple[str, str], ...] = ()


_Share = Annotated[float, Field(ge=0, le=1, title="a share of the CPUs, 0 to 1")]


@dataclass(frozen=True)
class DisturbanceSettings:
    """Limits above which a launch is disturbed, as shares of a machine's CPUs; 1: never.

    ``others``: used by other programs; daemons take some thousandths, so a tenth is another
    program; ``steal``: given to others by the hypervisor, regardless of what waits; ``pace``: how
    many times as far apart the node's CPUs may be in one of two paired launches, see ``unlike``.
    """

    others: _Share = 0.1
    steal: _Share = 0.05
    pace: float = 1.5


def disturbed(
    loads: Sequence[NodeLoad], settings: DisturbanceSettings = DisturbanceSettings()
) -> tuple[str, ...]:
    """Return what disturbed a launch with these ``loads``: a sentence per machine, with its nodes.

    Empty where nothing did, and where nothing is known: ``unknown`` separates them. Short launches
    are granted a tick of each column that counts.
    """
    if not any(_taken(load, settings) for load in loads):
        return ()
    machines = [(together, _taken(together[0], settings)) for together in _machines(loads)]
    return tuple(
        f"{', '.join(one.node for one in together)}: {' and '.join(parts)}"
        for together, parts in machines
        if parts
    )


def _taken(load: NodeLoad, settings: DisturbanceSettings) -> list[str]:
    """Return what took more of a node's CPUs than a launch may lose."""
    parts: list[str] = []
    if load.cpus is None or load.wall_s is None:
        return parts
    cpu_s, others, steal = load.cpus * load.wall_s, load.others_share, load.steal_share
    if others is not None and others - 3 * TICK_S / cpu_s > settings.others:
        parts.append(f"others used {100 * others:.0f} % of the CPUs")
    if steal is not None and steal - TICK_S / cpu_s > settings.steal:
        parts.append(f"the hypervisor gave {100 * steal:.0f} % of the CPUs to others")
    return parts


def others_share(loads: Sequence[NodeLoad]) -> float:
    """Return the largest share of a machine's CPUs that a launch did not have."""
    shares = ((load.others_share or 0.0) + (load.steal_share or 0.0) for load in loads)
    return max(shares, default=0.0)


def unknown(loads: Sequence[NodeLoad]) -> tuple[str, ...]:
    """Return why it is not known whether a launch was disturbed, in sentences.

    Such a launch is judged like others, and is not called undisturbed.
    """
    if not loads:
        return ("the job did not record what else its nodes did",)
    return tuple(
        f"{load.node}: {name.removesuffix('_share')} not known: {reason}"
        for load in loads
        for name, reason in load.absent
        if name in ("others_share", "steal_share")
    )


def loads(
    errors: Path, text: str, cpu_s: Mapping[str, tuple[float, float]]
) -> tuple[NodeLoad, ...]:
    """Read the load of each node in ``text``, a step's standard error at ``errors``.

    ``cpu_s``: user and system CPU seconds of each node's ranks. Empty where the job recorded none.
    Raise ParseError for a damaged line, and where some nodes have no line or one has two.
    """
    read = [_read_load(errors, found) for found in _LOAD.finditer(text)]
    if not read:
        return ()
    nodes, ran = sorted(load.node for load, _, _ in read), sorted(cpu_s)
    if nodes != ran:
        reason = f"the load of {', '.join(nodes)} is there, and ranks ran on {', '.join(ran)}"
        raise ParseError(str(errors), 0, "", reason)
    moments = {load.node: (before, after) for load, before, after in read}
    found = []
    for together in _machines([load for load, _, _ in read]):
        befores, afters = zip(*(moments[load.node] for load in together), strict=True)
        before = max(befores, key=lambda counted: counted["moment"])
        after = min(afters, key=lambda counted: counted["moment"])
        user_s, system_s = (sum(cpu_s[load.node][kind] for load in together) for kind in (0, 1))
        found += [_meanwhile(load, before, after, user_s, system_s) for load in together]
    return tuple(sorted(found, key=lambda load: load.node))


def scheduled(errors: Path, text: str) -> dict[int, Mapping[str, Any]]:
    """Read how the kernel scheduled each rank's first thread, where the job recorded it.

    By rank, the columns of ``Launch.used`` that say it, or why a value is not known.

    Raise ParseError for a damaged line, and a rank that has two.
    """
    ranks: dict[int, Mapping[str, Any]] = {}
    for found in _SCHEDULED.finditer(text):
        try:
            first, voluntary, involuntary, waited, last = found[2].split("\t")
            if (first, last) != ("", "end"):
                raise ValueError("it is not whole")
            absent: dict[str, str] = {}
            rank = int(found[1])
            if rank in ranks:
                raise ValueError(f"rank {rank} has two")
            waited_ns = _count(waited, "waited_s", absent)
            known = {
                "voluntary": _count(voluntary, "voluntary", absent),
                "involuntary": _count(involuntary, "involuntary", absent),
                "waited_s": None if waited_ns is None else waited_ns / 1e9,
            }
            ranks[rank] = known | absent
        except ValueError as error:
            reason = f"is not how a rank was scheduled: {error}"
            raise ParseError(str(errors), line_of(found), found[0], reason) from error
    return ranks


_Counted = dict[str, float]
"""Seconds that a node counted until a moment, by column and pressure; and the moment."""


def _read_load(errors: Path, found: re.Match[str]) -> tuple[NodeLoad, _Counted, _Counted]:
    """Return a node without its figures, and what it counted before and after."""
    try:
        fields = found[2].split("\t")
        if len(fields) != 12 or fields[0] or fields[-1] != "end" or not found[1]:
            raise ValueError("it is not whole")
        absent: dict[str, str] = {}
        machine = _known(fields[1], "machine", absent)
        cpus = _known(fields[2], "cpus", absent)
        count = None if cpus is None else _cpus(cpus)
        before, after = _counted(fields[3:7], absent), _counted(fields[7:11], absent)
        # Its figures take what all nodes of its machine counted.
        load = NodeLoad(found[1], machine, count, None, None, None, None, None, None, None)
        return dataclasses.replace(load, absent=tuple(absent.items())), before, after
    except ValueError as error:
        reason = f"is no load of a node: {error}"
        raise ParseError(str(errors), line_of(found), found[0], reason) from error


def _counted(fields: Sequence[str], absent: dict[str, str]) -> _Counted:
    counted = {"moment": float(fields[0])}
    if not math.isfinite(counted["moment"]):
        raise ValueError(f"{fields[0]!r} is no time")
    known = _known(fields[1], "others_share", absent)
    if known is None:
        absent["network_share"] = absent["steal_share"] = absent["others_share"]
    else:
        ticks = known.split(" ")
        if not (known.isascii() and all(map(str.isdigit, ticks))):
            raise ValueError(f"{known!r} is no list of counts")
        if len(ticks) < len(_COLUMNS):
            raise ValueError(f"/proc/stat has {len(ticks)} columns, and {len(_COLUMNS)} are read")
        counted |= {name: int(ticks[place]) * TICK_S for place, name in enumerate(_COLUMNS)}
    for name, pressure in zip(_PRESSURES, fields[2:], strict=True):
        if (count := _count(pressure, name, absent)) is not None:
            counted[name] = count / 1e6
    return counted


def _known(field: str, name: str, absent: dict[str, str]) -> str | None:
    if field.startswith(_ABSENT):
        absent[name] = field.removeprefix(_ABSENT)
        return None
    return field


def _count(field: str, name: str, absent: dict[str, str]) -> int | None:
    known = _known(field, name, absent)
    return None if known is None else _whole(known)


def _whole(word: str) -> int:
    if not (word.isascii() and word.isdigit()):
        raise ValueError(f"{word!r} is no count")
    return int(word)


def _cpus(ranges: str) -> int:
    """Return the number of CPUs in a list of the kernel's, such as ``0-3,8``."""
    parts = (part.partition("-") for part in ranges.split(","))
    return sum(_whole(last or first) - _whole(first) + 1 for first, _, last in parts)


def _meanwhile(
    load: NodeLoad, before: _Counted, after: _Counted, user_s: float, system_s: float
) -> NodeLoad:
    """Return the load of a node's machine; ``user_s``, ``system_s``: of all ranks on it."""
    absent, wall_s = dict(load.absent), after["moment"] - before["moment"]
    of_cpus = ("others_share", "network_share", "steal_share")
    found: dict[str, Any] = {}
    if wall_s <= 0:
        reason = "the ranks of this machine's nodes did not run at the same time"
        absent |= dict.fromkeys((*of_cpus, *_PRESSURES), reason)
        return dataclasses.replace(load, absent=tuple(sorted(absent.items())))
    took = {name: after[name] - before[name] for name in before.keys() & after.keys()}
    if load.cpus is None:
        absent |= dict.fromkeys(of_cpus, absent["cpus"])
    elif took.keys() >= {*_COLUMNS}:
        user, system = took["user"] + took["nice"] - user_s, took["system"] - system_s
        others_s = max(0.0, user) + max(0.0, system)
        busy_s = others_s, took["irq"] + took["softirq"], max(0.0, took["steal"])
        # The ranks' own seconds are exact and the columns are ticks: a sum can pass the whole.
        shares = (min(1.0, seconds / (load.cpus * wall_s)) for seconds in busy_s)
        found = {"others_cpu_s": others_s, **dict(zip(of_cpus, shares, strict=True))}
    found |= {name: min(1.0, took[name] / wall_s) for name in _PRESSURES if name in took}
    reasons = tuple(sorted(absent.items()))
    return dataclasses.replace(load, wall_s=wall_s, absent=reasons, **found)


def _machines(loads: Sequence[NodeLoad]) -> list[list[NodeLoad]]:
    """Return the loads by machine; a node without a known machine is its own."""
    placed = (((one.machine, one.node if one.machine is None else ""), one) for one in loads)
    return list(grouped(placed).values())


_PACE = re.compile(
    r"netproof pace on (?:[^\t\n]+\t(?:absent: (?P<why>[^\t\n]+)"
    r"|(?P<ns>[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?))\tend$|.*)",
    re.MULTILINE,
)

HALVES = 2
"""Readings per launch: the mean of each half."""


Paces = tuple[float | str, ...]
"""Readings of a launch in ns, or why one is not known."""


def paces(errors: Path, text: str) -> Paces:
    """Read ``text``, a step's standard error at ``errors``, in order; empty without readings.

    Raise ParseError for a damaged line, and for more than ``HALVES``.
    """
    read: list[float | str] = []
    for found in _PACE.finditer(text):
        ns, why, reason = found["ns"], found["why"], ""
        if len(read) == HALVES:
            reason = f"is a pace more than {HALVES} of one launch"
        elif not why and not (ns and 0 < float(ns) < math.inf):
            reason = "is no pace of a node: it is not whole, or no time in ns"
        if reason:
            raise ParseError(str(errors), line_of(found), found[0], reason)
        read.append(why or float(ns))
    return tuple(read)


def unlike(launches: Mapping[str, Paces], most: float) -> str:
    """Return why two paired launches cannot be compared; empty where they can.

    They cannot where their paces, by environment, are more than ``most`` times apart, or one is not
    known.
    """
    if not all(launches.values()):
        return ""
    ends = []
    for environment, read in launches.items():
        known = [one for one in read if not isinstance(one, str)]
        if why := next((one for one in read if isinstance(one, str)), ""):
            return f"the pace of a launch in {environment} is not known: {why}"
        ends.append((min(known), max(known), environment))
    for low, high, environment in ends:
        if high > most * low:
            return (
                f"the node's CPUs were {low:.0f} ns apart in one half of a launch in"
                f" {environment} and {high:.0f} ns in the other"
            )
    (low, _, near), (_, high, far) = sorted(ends)
    if high <= most * low:
        return ""
    return f"the node's CPUs were {low:.0f} ns apart for {near} and {high:.0f} ns for {far}"


BYTES_PER_GB = 1e9
_US_PER_S = 1e6

ONE_THREAD = 1.05
"""Most time awake of a rank with one thread, over its seconds, including rounding."""

NO_STARTS = "its job made no launch that only starts and ends"


Use = Mapping[str, Any]
"""CPU time that a launch's ranks on one node took, and how they waited, by name.

``ranks``: their number; ``wall_s``: of the slowest; ``cpu_s``: of all, ``user_s`` plus
``system_s``; ``interrupts_s``: of the node's machine, which hosts ``sharing`` nodes of the launch;
``awake_s``: in which ranks ran, or waited for a CPU; ``slept``: how often their first threads gave
the CPU up. None means not known.
"""


@dataclass(frozen=True)
class NodeCost:
    """Cost of a case to a node: medians over its launches, less those of starting and ending.

    ``seconds``: duration of the launches; ``cpu_s``: CPU seconds of all ranks of the node;
    ``start_s``: those subtracted; ``cores``: CPU seconds per second; ``interrupts_s``: of the
    node's machine, which hosts ``sharing`` nodes of the case; ``asleep_share``: share of its time
    that a rank neither ran nor waited for a CPU; ``slept_per_message``: how often it gave the CPU
    up; ``s_per_gb``, ``us_per_message``: CPU seconds per 10⁹ bytes, CPU µs per message, sent or
    received. None means not known, with the reason by name in ``absent``.
    """

    node: str
    ranks: int
    sharing: int
    seconds: float | None = None
    cpu_s: float | None = None
    user_s: float | None = None
    system_s: float | None = None
    start_s: float | None = None
    cores: float | None = None
    interrupts_s: float | None = None
    asleep_share: float | None = None
    slept_per_message: float | None = None
    s_per_gb: float | None = None
    us_per_message: float | None = None
    absent: Mapping[str, str] = field(default_factory=dict)

    def why(self, name: str) -> str:
        """Return why the figure of this name is None; empty where it has a value."""
        return self.absent.get(name, "")


FIGURES = tuple(
    name
    for name in NodeCost.__dataclass_fields__
    if name not in ("node", "ranks", "sharing", "absent")
)
"""Figures of a cost that may be known."""


def interrupts_s(load: NodeLoad) -> float | None:
    """Return the CPU seconds of a node's machine for interrupts, including the network's."""
    if load.network_share is None or load.cpus is None or load.wall_s is None:
        return None
    return load.network_share * load.cpus * load.wall_s


def node_costs(
    launches: Sequence[Mapping[str, Use]],
    starts: Sequence[Mapping[str, Use]],
    exchanged: Sequence[Sent],
    without: str = NO_STARTS,
) -> tuple[NodeCost, ...]:
    """Return the cost of a case to each of its nodes, in the order of the launches.

    ``launches``: what each took of its nodes; ``starts``: the same of those that only start and
    end; ``exchanged``: of each launch; ``without``: why there are no ``starts``. All nodes have the
    same share of messages.
    """
    costs = []
    for node in dict.fromkeys(chain.from_iterable(launches)):
        made = [
            (launch[node], sent, len(launch))
            for launch, sent in zip(launches, exchanged, strict=True)
            if node in launch
        ]
        started = [start[node] for start in starts if node in start]
        why = f"none of these launches ran on {node}" if starts else without
        absent = {} if started else dict.fromkeys(FIGURES, why)
        found = _figures(made, started, absent) if started else {}
        place = node, made[0][0]["ranks"], made[0][0]["sharing"]
        costs.append(NodeCost(*place, **found, absent=absent))
    return tuple(costs)


def costliest(costs: Sequence[NodeCost]) -> NodeCost:
    """Return the cost to the node that spent most CPU time; unknown ones come last."""
    return max(costs, key=lambda cost: -1.0 if cost.cpu_s is None else cost.cpu_s)


_SAMPLED = {
    "user_s": "it was not recorded",
    "system_s": "it was not recorded",
    "interrupts_s": "the node's load does not tell what interrupts took",
}
"""Figures that the kernel samples or counts in ticks, each with the reason if it is missing."""


def _figures(
    made: Sequence[tuple[Use, Sent, int]], started: Sequence[Use], absent: dict[str, str]
) -> dict[str, Any]:
    """Return a node's figures by name, and the reasons for missing ones to ``absent``.

    ``made``: a node's use by each launch, what was sent in it, and on how many nodes.
    """
    own = [use for use, _, _ in made]

    def net(name: str) -> float | None:
        """Return the median over launches, less that over those that only start and end."""
        ours, theirs = ([use[name] for use in uses] for uses in (own, started))
        return None if None in ours or None in theirs else median(ours) - median(theirs)

    seconds, cpu_s, awake_s = net("wall_s") or 0.0, net("cpu_s") or 0.0, net("awake_s")
    start_s = median(use["cpu_s"] for use in started)
    if seconds <= 0 or cpu_s <= 0:
        all_s, in_s, start_in_s = (
            median(use[name] for use in uses)
            for uses, name in ((own, "cpu_s"), (own, "wall_s"), (started, "wall_s"))
        )
        reason = (
            f"the launches took {all_s:.3g} CPU s in {in_s:.3g} s, no more than those that only"
            f" start and end, {start_s:.3g} CPU s in {start_in_s:.3g} s"
        )
        absent |= dict.fromkeys(FIGURES, reason)
        return {}
    found: dict[str, float] = {}
    for name, why in _SAMPLED.items():
        if (sampled := net(name)) is None:
            absent[name] = why
        else:
            found[name] = max(0.0, sampled)
    found |= {"seconds": seconds, "cpu_s": cpu_s, "start_s": start_s, "cores": cpu_s / seconds}
    could_s = own[0]["ranks"] * seconds
    if awake_s is None:
        absent["asleep_share"] = "the kernel does not tell how long its ranks waited for a CPU"
    elif awake_s > ONE_THREAD * could_s:
        absent["asleep_share"] = (
            "a rank had several threads at work, and the kernel reports only how long the first"
            " one waited"
        )
    else:
        found["asleep_share"] = max(0.0, 1 - awake_s / could_s)
    for _, sent, _ in made:
        if reason := sent if isinstance(sent, str) else "" if all(sent) else "it sends no data":
            absent |= dict.fromkeys(("s_per_gb", "us_per_message", "slept_per_message"), reason)
            return found

    def each(name: str, amount: int, unit: float = 1.0) -> float:
        """Return the median of a figure, less starting and ending, over what a node handled."""
        start = median(use[name] for use in started)
        # Each message leaves one node and arrives at one.
        costs: list[float] = [
            (use[name] - start) / (2 / nodes * int(sent[amount]) / unit)
            for use, sent, nodes in made
        ]
        return median(costs)

    found["s_per_gb"] = each("cpu_s", 0, BYTES_PER_GB)
    found["us_per_message"] = each("cpu_s", 1, _US_PER_S)
    if None in [use["slept"] for use in (*started, *own)]:
        absent["slept_per_message"] = "the kernel does not tell how often its ranks slept"
    else:
        found["slept_per_message"] = max(0.0, each("slept", 1))
    return found
