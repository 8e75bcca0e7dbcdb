"""Launches of a case, their ranks and crashes; curve, spread and landmarks are computed."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from netproof import codec
from netproof.benchmarks import registry
from netproof.errors import NetproofError, grouped
from netproof.measurement import twin
from netproof.measurement.case import Case, Curve, insist_alike, median_curve, spread
from netproof.measurement.counters import Counters, Sent
from netproof.measurement.disturbance import (
    NO_STARTS,
    DisturbanceSettings,
    NodeCost,
    NodeLoad,
    Paces,
    Use,
    disturbed,
    interrupts_s,
    node_costs,
)
from netproof.measurement.landmarks import RATES, Landmarks, landmarks, readings
from netproof.measurement.links import link_of


@dataclass(frozen=True, slots=True)
class RankUse:
    """Where a rank ran and the CPU seconds it took, from its own report.

    ``system_s``: which of its CPU seconds the kernel took for it; of its first thread:
    ``voluntary``, ``involuntary``: its context switches, ``waited_s``: seconds that it waited for a
    CPU. None where that was not recorded, or is not known with the reason by name in ``absent``.
    """

    rank: int
    node: str
    wall_s: float
    cpu_s: float
    system_s: float | None = None
    voluntary: int | None = None
    involuntary: int | None = None
    waited_s: float | None = None
    absent: tuple[tuple[str, str], ...] = ()

    def awake_s(self) -> float | None:
        """Seconds in which it ran, or could have run and had no CPU; None where not known."""
        return None if self.waited_s is None else self.cpu_s + self.waited_s


Start = tuple[tuple[RankUse, ...], tuple[NodeLoad, ...]] | str
"""A launch that only starts and ends: its ranks, what else their nodes did; or why not known."""


def by_node(ranks: Sequence[RankUse], loads: Sequence[NodeLoad]) -> dict[str, Use]:
    """Return what a launch took of each node, in rank order."""
    several = grouped((use.node, use) for use in ranks)
    there = {load.node: load for load in loads}
    machines = Counter(load.machine for load in loads)
    found: dict[str, Use] = {}
    for node, uses in several.items():
        load, cpu_s = there.get(node), sum(use.cpu_s for use in uses)
        system_s = _sum(use.system_s for use in uses)
        found[node] = {
            "ranks": len(uses),
            "wall_s": max(use.wall_s for use in uses),
            "cpu_s": cpu_s,
            "user_s": None if system_s is None else cpu_s - system_s,
            "system_s": system_s,
            "interrupts_s": None if load is None else interrupts_s(load),
            "sharing": machines[load.machine] if load and load.machine is not None else 1,
            "awake_s": _sum(use.awake_s() for use in uses),
            "slept": _sum(use.voluntary for use in uses),
        }
    return found


def _sum(values: Iterable[float | None]) -> float | None:
    """Sum over all of them; None if one is not known."""
    total = 0.0
    for one in values:
        if one is None:
            return None
        total += one
    return total


@dataclass(frozen=True, slots=True)
class Crash:
    """An attempt at a launch that died before its first figure, and after which came another.

    ``launch``, ``attempt``: which, from 1; ``order``: its place in the job's order; ``status``:
    exit status; ``nodes``: on which ranks died first, as srun names them; ``said``: last words;
    ``counters``: what the network counted of nodes that still said so, None where none did.
    """

    launch: int
    attempt: int
    order: int
    status: int
    nodes: tuple[str, ...]
    said: str
    counters: Counters | None = None

    def __str__(self) -> str:
        """As it stands in a sentence."""
        on = f" on {', '.join(self.nodes)}" if self.nodes else ""
        said = f"; it said: {self.said}" if self.said else ""
        return (
            f"launch {self.launch} crashed{on} before its first figure (attempt {self.attempt},"
            f" status {self.status}) and was launched again{said}"
        )


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch as it went: its place in the job's order (from 1), when, where, and its curve.

    ``start`` in seconds since the epoch, ``wall_s`` with starting and ending the job step.
    ``loads``: what else its nodes did, none where that was not recorded; ``further``: made since
    the first launches left a judged quantity undecided; ``twin``: the largest sizes over the link's
    healthy twin, next to the launch, where the partition has one. ``counters``: what its nodes'
    network counted, None where that was not recorded; ``payload``: bytes that it had to send
    between its nodes, or why they are not known. ``paces``: of a launch inside a node, of both
    halves, where the partition has a command for that. ``exchanged``: what its ranks had to send to
    each other.

    ``peers``: launches of the same case paired with it in another ``environment``, with the
    attempts at each that crashed. They ran on its nodes: their ``ranks`` are not recorded, and
    their ``loads`` are among its own. A machine changes its pace for seconds: only paired launches
    had the same one.
    """

    number: int
    order: int
    start: float
    wall_s: float
    ranks: tuple[RankUse, ...]
    curve: Curve
    loads: tuple[NodeLoad, ...] = ()
    further: bool = False
    twin: Curve | None = None
    peers: tuple[Launch, ...] = ()
    counters: Counters | None = None
    payload: int | str = "it was not recorded"
    paces: Paces = ()
    exchanged: Sent = "how much was sent was not recorded"
    environment: str = ""
    crashes: tuple[Crash, ...] = ()

    def nodes(self) -> tuple[str, ...]:
        """The nodes it ran on, in rank order, each once."""
        return tuple(dict.fromkeys(use.node for use in self.ranks))


@dataclass(frozen=True)
class MeasuredAgain:
    """A case's launches around its flagged sizes, and at closer ones.

    ``launches``: the curves that are complete; ``faults``: why others are not, a sentence each;
    ``nodes``: the nodes of the job ``jobid``, by its own word; ``loads``: of each launch, what
    else its nodes did, none where that was not recorded; ``made``: how often the benchmark was
    started for it, ``crashes`` among them.
    """

    launches: tuple[Curve, ...]
    faults: tuple[str, ...]
    nodes: tuple[str, ...]
    jobid: str
    loads: tuple[tuple[NodeLoad, ...], ...] = ()
    made: int = 0
    crashes: tuple[Crash, ...] = ()

    def undisturbed(self, settings: DisturbanceSettings) -> list[Curve]:
        """The launches that nothing disturbed."""
        loads = self.loads or ((),) * len(self.launches)
        return [
            curve
            for curve, load in zip(self.launches, loads, strict=True)
            if not disturbed(load, settings)
        ]


@dataclass(frozen=True)
class Measured:
    """A complete case: its launches, and what is computed from them.

    ``line_rate_mb_s``: the most that the benchmark's bandwidth can be, both ways where it counts
    both, None where the messages cross no link; ``peak_from``: the least message in bytes that can
    be the peak; ``crashes``: attempts at the launches that crashed; ``starts``: launches of the job
    on the same ranks that only start and end; ``again``: launches around flagged sizes, None where
    none was asked for. Raise NetproofError where there is no launch, or they differ in their sizes.
    """

    case: Case
    launches: tuple[Launch, ...]
    line_rate_mb_s: float | None
    peak_from: int = 0
    crashes: tuple[Crash, ...] = ()
    starts: tuple[Start, ...] = ()
    again: MeasuredAgain | None = None

    def __post_init__(self) -> None:
        insist_alike([launch.curve for launch in self.launches])

    @cached_property
    def curve(self) -> Curve:
        """The median of the launches."""
        return median_curve([launch.curve for launch in self.launches])

    @cached_property
    def mad_us(self) -> tuple[float, ...]:
        """MAD of the launches' times at each size in µs."""
        return spread([launch.curve for launch in self.launches])

    @cached_property
    def landmarks(self) -> Landmarks:
        """Landmarks of the median, with those of the healthy twin where each launch has one."""
        return landmarks(
            self.curve,
            self.line_rate_mb_s,
            peak_from=self.peak_from,
            launches=[launch.curve for launch in self.launches],
            compared=twin.compared([(launch.curve, launch.twin) for launch in self.launches]),
        )

    @cached_property
    def of_twin(self) -> dict[str, list[float]]:
        """Return each launch's landmarks over those of its healthy twin, by the variable's name.

        Only landmarks that all launches and twins define; none where twins measured large messages
        alone. Rates at a size count up to the line rate: a token bucket lets NetPIPE's few short
        messages pass.
        """
        most = self.line_rate_mb_s or math.inf
        pairs = []
        for launch in self.launches:
            if launch.twin is None or launch.twin.sizes[0] > launch.curve.sizes[0]:
                return {}
            pairs.append([readings(one, {}, self.peak_from) for one in (launch.curve, launch.twin)])
        found = {}
        for name, landmark in twin.VARIABLES.items():
            known = [(own[landmark], alongside[landmark]) for own, alongside in pairs]
            values = [(own, alongside) for own, alongside in known if own and alongside]
            if len(values) == len(pairs):
                if landmark in RATES:
                    values = [(min(own, most), min(alongside, most)) for own, alongside in values]
                found[name] = [own / alongside for own, alongside in values]
        return found

    @cached_property
    def cpu_costs(self) -> tuple[NodeCost, ...]:
        """Return the CPU time on each node, less starting and ending."""
        known = [by_node(*one) for one in self.starts if not isinstance(one, str)]
        why = "; ".join(dict.fromkeys(one for one in self.starts if isinstance(one, str)))
        return node_costs(
            [by_node(launch.ranks, launch.loads) for launch in self.launches],
            known,
            [launch.exchanged for launch in self.launches],
            why or NO_STARTS,
        )

    def with_launches(self, launches: Sequence[Launch], crashes: Sequence[Crash] = ()) -> Measured:
        """Return it with these launches, numbered from 1, and further ``crashes``."""
        numbered = tuple(
            dataclasses.replace(launch, number=number) for number, launch in enumerate(launches, 1)
        )
        return dataclasses.replace(self, launches=numbered, crashes=(*self.crashes, *crashes))

    def first(self) -> Measured:
        """Return the case without the launches made since these left something undecided."""
        first = [launch for launch in self.launches if not launch.further]
        return self if len(first) == len(self.launches) else self.with_launches(first)

    def all_crashes(self) -> tuple[Crash, ...]:
        """Return its own, and those of launches paired with its own in other environments."""
        alongside = (peer.crashes for launch in self.launches for peer in launch.peers)
        return (*self.crashes, *chain.from_iterable(alongside))


def of_record(case: Case, values: Mapping[str, Any]) -> Measured:
    """Return a case by its plain values, its rates by the extras of where it ran.

    Raise NetproofError, KeyError and TypeError where it is of another case, or cannot be read.
    """
    extras, over_tcp = values["partition_extras"], values["environment_extras"]["mpi_over_tcp"]
    rate = line_rate_of_case(extras, case, mpi_over_tcp=over_tcp)
    peak_from = extras["line_rate_from_bytes"] if rate else 0
    whole = {**values, "line_rate_mb_s": rate, "peak_from": peak_from}
    found = codec.decode_part(Measured, whole, "what was measured cannot be read")
    if found.case != case:
        raise NetproofError(f"what was measured is of {found.case}")
    return found


def line_rate_of_case(extras: Mapping[str, Any], case: Case, *, mpi_over_tcp: bool) -> float | None:
    """Return the most that a case's bandwidth can be in MB/s on a partition of these ``extras``.

    None inside a node, where there is no link, and for an MPI that does not go over TCP where the
    site does not say what carries it. Of MPI it is that of all rails together; a stream of TCP has
    one of them.
    """
    over_tcp = mpi_over_tcp or case.function == "tcp"
    if case.path == "intra-node" or not (over_tcp or extras.get("rdma")):
        return None
    link = link_of(extras, over_tcp=over_tcp)
    factor = registry.function_of(case).over_link(case.ranks, case.ranks_per_node)
    rails = 1 if case.function == "tcp" else max(1, len(extras.get("rails") or ()))
    return factor * rails * link.line_rate_mb_s()
