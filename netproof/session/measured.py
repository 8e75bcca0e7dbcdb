"""Launches of a case, their ranks and crashes; curve, spread and landmarks are computed."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    NodeCost,
    NodeLoad,
    Paces,
    Use,
    interrupts_s,
    node_costs,
)
from netproof.measurement.landmarks import RATES, Landmarks, landmarks, readings
from netproof.measurement.links import link_of


def by_node(launch: Launch) -> dict[str, Use]:
    """Return what a launch took of each node, in rank order."""
    several = grouped((node, rank) for rank, node in enumerate(launch.ranks))
    there = {load.node: load for load in launch.loads}
    machines = Counter(load.machine for load in launch.loads)
    found: dict[str, Use] = {}
    for node, ranks in several.items():
        load = there.get(node)
        known: dict[str, list[Any]] = {
            name: [column[rank] for rank in ranks] for name, column in launch.used.items()
        }
        cpu_s, system_s = sum(known["cpu_s"]), _sum(known.get("system_s"))
        waited_s = known.get("waited_s")
        if waited_s is not None and _sum(waited_s) is not None:
            waited_s = [own + waited for own, waited in zip(known["cpu_s"], waited_s, strict=True)]
        found[node] = {
            "ranks": len(ranks),
            "wall_s": max(known["wall_s"]),
            "cpu_s": cpu_s,
            "user_s": None if system_s is None else cpu_s - system_s,
            "system_s": system_s,
            "interrupts_s": None if load is None else interrupts_s(load),
            "sharing": machines[load.machine] if load and load.machine is not None else 1,
            "awake_s": _sum(waited_s),
            "slept": _sum(known.get("voluntary")),
        }
    return found


def _sum(values: Sequence[float | str] | None) -> float | None:
    """Sum over all of them; None if one is not known."""
    known = [one for one in values or () if not isinstance(one, str)]
    return sum(known) if values is not None and len(known) == len(values) else None


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch as it went: its place in the job's order (from 1), when, where, and its curve.

    Of pairs it has a curve each; one that is only planned, or crashed, has none. ``start`` in
    seconds since the epoch, ``wall_s`` with starting and ending the job step. ``loads``: what else
    its nodes did, none where that was not recorded; ``further``: made since the first launches left
    a judged quantity undecided; ``twin``: the largest sizes over the link's healthy twin, next to
    the launch, where the partition has one. ``counters``: what its nodes' network counted, None
    where that was not recorded; ``payload``: bytes that it had to send between its nodes, or why
    they are not known. ``paces``: of a launch inside a node, of both halves, where the partition
    has a command for that. ``exchanged``: what its ranks had to send to each other.

    ``ranks``: the node of each, in rank order; ``used``: what each used, a column by name, in which
    a text is why a value is not known: ``wall_s``; ``cpu_s``, CPU seconds, of which ``system_s``
    were the kernel's; of its first thread, where that was recorded, ``voluntary`` and
    ``involuntary``, context switches, and ``waited_s``, seconds that it waited for a CPU.

    ``peers``: launches of the same case paired with it in another ``environment``, with the
    attempts at each that crashed. They ran on its nodes: their ``ranks`` are not recorded, and
    their ``loads`` are among its own. A machine changes its pace for seconds: only paired launches
    had the same one.

    Of disjoint ``pairs``, while all other nodes are idle: ``round``: which it is of, from 1, 0
    until it is planned; ``alone``: one pair, a suspect or its control, and all other nodes silent;
    ``why``: what it is made for; ``stream``: its pair's first node sends all the time, and the
    second receives; ``both_ways``: both nodes of each pair send at once.

    Of an ``attempt`` (from 1) that died before its first figure, and after which came another:
    ``status``: exit status; ``died_on``: where ranks died first, as srun names nodes; ``said``:
    last words; ``counters`` of nodes that still said so. A launch around flagged sizes takes
    several ``steps``; one that is not complete has no curve, and ``said`` has why.
    """

    number: int
    order: int
    start: float
    wall_s: float
    ranks: tuple[str, ...]
    curves: tuple[Curve, ...]
    loads: tuple[NodeLoad, ...] = ()
    used: Mapping[str, tuple[float | str, ...]] = field(default_factory=dict)
    further: bool = False
    twin: Curve | None = None
    peers: tuple[Launch, ...] = ()
    counters: Counters | None = None
    payload: int | str = "it was not recorded"
    paces: Paces = ()
    exchanged: Sent = "how much was sent was not recorded"
    environment: str = ""
    crashes: tuple[Launch, ...] = ()
    round: int = 0
    pairs: tuple[tuple[str, str], ...] = ()
    alone: bool = False
    why: str = ""
    stream: bool = False
    both_ways: bool = False
    attempt: int = 0
    status: int = 0
    died_on: tuple[str, ...] = ()
    said: str = ""
    steps: int = 1

    def __post_init__(self) -> None:
        used = ("wall_s", "cpu_s", *self.used) if self.ranks else self.used
        for name in used:
            if len(self.used.get(name, ())) != len(self.ranks):
                raise NetproofError(
                    f"launch {self.number}: {name} is not of {len(self.ranks)} ranks"
                )

    def __str__(self) -> str:
        """Return a crash as it stands in a sentence."""
        on = f" on {', '.join(self.died_on)}" if self.died_on else ""
        said = f"; it said: {self.said}" if self.said else ""
        return (
            f"launch {self.number} crashed{on} before its first figure (attempt {self.attempt},"
            f" status {self.status}) and was launched again{said}"
        )

    @property
    def curve(self) -> Curve:
        """Return the curve of a launch of a case."""
        return self.curves[0]

    def nodes(self) -> tuple[str, ...]:
        """Return the nodes it runs on, in rank order, each once."""
        return tuple(dict.fromkeys(chain.from_iterable(self.pairs) if self.pairs else self.ranks))

    @property
    def function(self) -> str:
        """Return the benchmark's name for a launch of pairs."""
        if self.stream:
            return registry.OF_PAIRS.stream_function
        one = registry.OF_PAIRS
        return one.both_ways_function if self.both_ways else one.pairs_function

    @property
    def times_us(self) -> tuple[float, ...]:
        """Return each pair's time of the smallest message."""
        return tuple([curve.time_us[0] for curve in self.curves])

    @property
    def rates_mb_s(self) -> tuple[float, ...]:
        """Return each pair's rate of the largest message."""
        return tuple([curve.sizes[-1] / curve.time_us[-1] for curve in self.curves])


@dataclass(frozen=True)
class Measured:
    """A complete case: its launches, and what is computed from them.

    ``line_rate_mb_s``: the most that the benchmark's bandwidth can be, both ways where it counts
    both, None where the messages cross no link; ``peak_from``: the least message in bytes that can
    be the peak; ``crashes``: attempts at the launches that crashed; ``starts``: launches of the job
    on the same ranks that only start and end, or why not known; ``again``: launches around flagged
    sizes, and at closer ones, None where none was asked for; ``jobid``: Slurm's, of its job. Raise
    NetproofError where there is no launch, or they differ in their sizes.
    """

    case: Case
    launches: tuple[Launch, ...]
    line_rate_mb_s: float | None
    peak_from: int = 0
    crashes: tuple[Launch, ...] = ()
    starts: tuple[Launch | str, ...] = ()
    again: tuple[Launch, ...] | None = None
    jobid: str = ""

    def __post_init__(self) -> None:
        for launch in chain(self.launches, *(one.peers for one in self.launches)):
            if len(launch.curves) != 1:
                raise NetproofError(f"launch {launch.number} has {len(launch.curves)} curves")
        insist_alike([launch.curve for launch in self.launches])

    def nodes(self) -> tuple[str, ...]:
        """Return the nodes of its launches."""
        return tuple(dict.fromkeys(node for launch in self.launches for node in launch.nodes()))

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
        known = [by_node(one) for one in self.starts if not isinstance(one, str)]
        why = "; ".join(dict.fromkeys(one for one in self.starts if isinstance(one, str)))
        return node_costs(
            [by_node(launch) for launch in self.launches],
            known,
            [launch.exchanged for launch in self.launches],
            why or NO_STARTS,
        )

    def with_launches(self, launches: Sequence[Launch], crashes: Sequence[Launch] = ()) -> Measured:
        """Return it with these launches, numbered from 1, and further ``crashes``."""
        numbered = tuple(
            dataclasses.replace(launch, number=number) for number, launch in enumerate(launches, 1)
        )
        return dataclasses.replace(self, launches=numbered, crashes=(*self.crashes, *crashes))

    def first(self) -> Measured:
        """Return the case without the launches made since these left something undecided."""
        first = [launch for launch in self.launches if not launch.further]
        return self if len(first) == len(self.launches) else self.with_launches(first)

    def all_crashes(self) -> tuple[Launch, ...]:
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
