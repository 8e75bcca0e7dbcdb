"""What was measured of a case: launches, curve, landmarks; computed again where it is read."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from netproof.benchmarks import registry
from netproof.errors import NetproofError
from netproof.intake.shapes import insist
from netproof.measurement import twin
from netproof.measurement.case import Case
from netproof.measurement.counters import Counters
from netproof.measurement.cpu_use import NO_STARTS, NodeCost, node_costs
from netproof.measurement.curve import Curve
from netproof.measurement.disturbance import NodeLoad
from netproof.measurement.landmarks import Landmarks, landmarks
from netproof.measurement.launches import median_curve, spread
from netproof.measurement.links import RailLinks
from netproof.measurement.pace import Pace
from netproof.measurement.payload import Exchanged, Payload
from netproof.measurement.readings import LandmarkSettings
from netproof.session.measured_shapes import RANGE, SHAPE
from netproof.session.rank_use import RankUse, Start, by_node

NOT_ALWAYS = (
    *(*RANGE, "scheduled", "loads", "twin", "peers", "counters", "payload", "paces", "system_s"),
    *("exchanged", "starts"),
)
"""And other fields that are left out where nothing is known."""


@dataclass(frozen=True)
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

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Crash:
        """The crash of plain values with its fields' names; TypeError where one is missing."""
        counted = Counters.from_json(values["counters"]) if "counters" in values else None
        return cls(**{**values, "nodes": tuple(values["nodes"]), "counters": counted})

    def __str__(self) -> str:
        """As it stands in a sentence."""
        on = f" on {', '.join(self.nodes)}" if self.nodes else ""
        said = f"; it said: {self.said}" if self.said else ""
        return (
            f"launch {self.launch} crashed{on} before its first figure (attempt {self.attempt},"
            f" status {self.status}) and was launched again{said}"
        )


@dataclass(frozen=True)
class Peer:
    """A launch of the same case in another environment, made next to a launch on its nodes.

    A machine changes its pace for seconds: only launches next to each other had the same one.
    ``crashes``: attempts at it that crashed; ``counters``: what the network of its nodes counted,
    None where that was not recorded.
    """

    environment: str
    curve: Curve
    crashes: tuple[Crash, ...] = ()
    counters: Counters | None = None

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Peer:
        """The peer of plain values with its fields' names; KeyError where one is missing."""
        crashes = tuple(map(Crash.from_json, values["crashes"]))
        counted = Counters.from_json(values["counters"]) if "counters" in values else None
        return cls(values["environment"], curve_from_json(values["curve"]), crashes, counted)


@dataclass(frozen=True)
class Launch:
    """One launch as it went: its place in the job's order (from 1), when, where, and its curve.

    ``start`` in seconds since the epoch, ``wall_s`` with starting and ending the job step.
    ``loads``: what else its nodes did, none where that was not recorded; ``further``: made since
    the first launches left a judged quantity undecided; ``twin``: the largest sizes over the link's
    healthy twin, next to the launch, where the partition has one; ``peers``: launches in other
    environments next to it, whose ``loads`` are among its own. ``counters``: what the network of
    its nodes counted, None where that was not recorded; ``payload``: what it had to send between
    its nodes, known or not wherever there are counters. ``paces``: of a launch inside a node, and
    of its ``peers``, of both halves of each, where the partition has a command for that.
    ``exchanged``: what its ranks had to send to each other, None where that was not recorded.
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
    peers: tuple[Peer, ...] = ()
    counters: Counters | None = None
    payload: Payload | None = None
    paces: tuple[Pace, ...] = ()
    exchanged: Exchanged | None = None

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Launch:
        """The launch of plain values with its fields' names; KeyError where one is missing."""
        return cls(
            values["number"],
            values["order"],
            values["start"],
            values["wall_s"],
            tuple(map(RankUse.from_json, values["ranks"])),
            curve_from_json(values["curve"]),
            tuple(map(NodeLoad.from_json, values.get("loads", ()))),
            values["further"],
            curve_from_json(values["twin"]) if "twin" in values else None,
            tuple(map(Peer.from_json, values.get("peers", ()))),
            Counters.from_json(values["counters"]) if "counters" in values else None,
            Payload(**values["payload"]) if "payload" in values else None,
            tuple(map(Pace.from_json, values.get("paces", ()))),
            Exchanged.from_json(values["exchanged"]) if "exchanged" in values else None,
        )

    def nodes(self) -> tuple[str, ...]:
        """The nodes it ran on, in rank order, each once."""
        return tuple(dict.fromkeys(use.node for use in self.ranks))


@dataclass(frozen=True)
class Measured:
    """A complete case: its launches, their median and spread, and the landmarks.

    ``mad_us``: per-size MAD of the launches' times in µs; ``line_rate_mb_s``: the most that the
    benchmark's bandwidth can be, both ways where it counts both, None where the messages cross no
    link; ``peak_from``: the least message in bytes that can be the peak; ``crashes``: attempts at
    the launches that crashed; ``starts``: launches of the job on the same ranks that only start
    and end.
    """

    case: Case
    launches: tuple[Launch, ...]
    curve: Curve
    mad_us: tuple[float, ...]
    line_rate_mb_s: float | None
    landmarks: Landmarks
    peak_from: int = 0
    crashes: tuple[Crash, ...] = ()
    starts: tuple[Start, ...] = ()

    @cached_property
    def cpu_costs(self) -> tuple[NodeCost, ...]:
        """What it cost the CPUs of each node, less starting and ending."""
        known = [by_node(one.ranks, one.loads) for one in self.starts if one.ranks]
        why = "; ".join(dict.fromkeys(one.why for one in self.starts if one.why))
        return node_costs(
            [by_node(launch.ranks, launch.loads) for launch in self.launches],
            known,
            [launch.exchanged for launch in self.launches],
            why or NO_STARTS,
        )

    def with_launches(self, launches: Sequence[Launch], crashes: Sequence[Crash] = ()) -> Measured:
        """The same case of these launches, which have its sizes: NetproofError where they do not.

        Launches are numbered anew, from 1. ``crashes``: those that are to be added.
        """
        numbered = tuple(
            dataclasses.replace(launch, number=number) for number, launch in enumerate(launches, 1)
        )
        crashed = (*self.crashes, *crashes)
        return made(self.case, numbered, self.line_rate_mb_s, self.peak_from, crashed, self.starts)

    def first(self) -> Measured:
        """The case without the launches that were made since these left something undecided."""
        first = [launch for launch in self.launches if not launch.further]
        return self if len(first) == len(self.launches) else self.with_launches(first)

    def all_crashes(self) -> tuple[Crash, ...]:
        """Its own, and those of launches next to its own in other environments."""
        alongside = (peer.crashes for launch in self.launches for peer in launch.peers)
        return (*self.crashes, *chain.from_iterable(alongside))

    def as_json(self) -> dict[str, Any]:
        """Plain values for ``json``; sizes in bytes, times in µs, bandwidths in MB/s."""
        return dataclasses.asdict(self, dict_factory=plain)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Measured:
        """The case of plain values that ``as_json`` gave; other keys next to them are left.

        Raises NetproofError where something is missing or is no curve.
        """
        insist(values, SHAPE, "what was measured cannot be read")
        try:
            return cls(
                Case(**values["case"]),
                tuple(Launch.from_json(launch) for launch in values["launches"]),
                curve_from_json(values["curve"]),
                tuple(values["mad_us"]),
                values["line_rate_mb_s"],
                Landmarks.from_json(values["landmarks"]),
                values["peak_from"],
                tuple(map(Crash.from_json, values["crashes"])),
                tuple(Start.from_json(start) for start in values.get("starts", ())),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise NetproofError(f"what was measured cannot be read: {error!r}") from error


def plain(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A dataclass's fields for ``json``; those of ``NOT_ALWAYS`` only where it has them."""
    return {
        name: value
        for name, value in fields
        if name not in NOT_ALWAYS or (value is not None and value != ())
    }


def curve_from_json(values: dict[str, Any]) -> Curve:
    """The curve of plain values with its fields' names; KeyError where one is missing."""
    bandwidth = values["bandwidth_mb_s"]
    return Curve(
        tuple(values["sizes"]),
        tuple(values["time_us"]),
        None if bandwidth is None else tuple(bandwidth),
        **{name: tuple(values[name]) for name in RANGE if name in values},
    )


def line_rate_of_case(links: RailLinks, case: Case, *, mpi_over_tcp: bool) -> float | None:
    """The most that a case's bandwidth can be in MB/s over the ``links`` of a node.

    None inside a node, where there is no link, and for an MPI that does not go over TCP where the
    site does not say what carries it. Of MPI it is that of all rails together; a stream of TCP has
    one of them.
    """
    link = links.link(over_tcp=mpi_over_tcp or case.function == "tcp")
    if case.path == "inside" or link is None:
        return None
    factor = registry.function_of(case).over_link(case.ranks, case.ranks_per_node)
    rails = 1 if case.function == "tcp" else max(1, links.rails)
    return factor * rails * link.line_rate_mb_s()


def made(
    case: Case,
    launches: Sequence[Launch],
    line_rate: float | None,
    peak_from: int,
    crashed: Sequence[Crash] = (),
    starts: Sequence[Start] = (),
) -> Measured:
    """A case of complete launches over the same sizes; the last arguments as ``Measured``'s.

    Raises NetproofError where launches, or those next to them, differ in their sizes.
    """
    curves = [launch.curve for launch in launches]
    median = median_curve(curves)
    settings = LandmarkSettings(peak_from=peak_from)
    found = landmarks(median, line_rate, settings, launches=curves)
    for launch in launches:
        _insist_on_peers(case, launch)
    alongside = twin.compared([(launch.curve, launch.twin) for launch in launches])
    if alongside is not None:
        found = found.with_twin(alongside)
    return Measured(
        case,
        tuple(launches),
        median,
        spread(curves),
        line_rate,
        found,
        peak_from,
        tuple(crashed),
        tuple(starts),
    )


def _insist_on_peers(case: Case, launch: Launch) -> None:
    """Peers are of other environments, each once, over the launch's sizes."""
    names = [case.environment, *(peer.environment for peer in launch.peers)]
    if len(set(names)) != len(names):
        raise NetproofError(f"launch {launch.number} has peers of {', '.join(names[1:])}")
    for peer in launch.peers:
        if peer.curve.sizes != launch.curve.sizes:
            raise NetproofError(
                f"launch {launch.number} and that of {peer.environment} next to it have other sizes"
            )


def extended(
    values: dict[str, Any],
    further: Sequence[dict[str, Any]],
    crashes: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """What a check kept of a case, with launches that were made later, all plain values.

    ``crashes``: of those launches. Keys that are no part of what was measured stay. Raises
    NetproofError where one cannot be read, or the launches have other sizes.
    """
    first = Measured.from_json(values)
    try:
        more = [Launch.from_json(launch) for launch in further]
        crashed = [Crash.from_json(crash) for crash in crashes]
    except (KeyError, TypeError) as error:
        raise NetproofError(f"{first.case}: a further launch cannot be read: {error!r}") from error
    return {**values, **first.with_launches([*first.launches, *more], crashed).as_json()}
