"""What every criterion is: its number, its settings, the names of its findings, how it judges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from netproof.criteria.findings import AtSize, Bounds, Finding
from netproof.criteria.points import Points
from netproof.measurement.counters import Counters
from netproof.measurement.curve import Curve
from netproof.measurement.landmarks import Landmarks
from netproof.measurement.payload import Payload


@dataclass(frozen=True)
class CountedLaunch:
    """What the network counted while a launch ran, and what the launch had to send.

    ``calm``: whether nothing disturbed it.
    """

    number: int
    counters: Counters
    payload: Payload
    calm: bool = True


@dataclass(frozen=True)
class Companion:
    """Another operation, of the same benchmark, configuration and ranks, and its launches."""

    curve: Curve
    launches: tuple[Curve, ...]


@dataclass(frozen=True)
class CaseCurves:
    """What a criterion on one case may look at.

    ``curve``: the median of ``launches``, that of the ``first`` ones apart; ``line_rate_mb_s``:
    None where there is none; ``inside``: of two ranks of one node; ``over_tcp``: whether it is
    compared with a case over TCP, which is among the ``others`` where that is complete;
    ``cpu_seconds``: used by its ranks on each node in ``seconds`` of benchmark, None where
    nobody counted them, and what else is known of a node, ``cpu_told``. ``counted``: all launches
    whose counters were recorded, ``counted_alongside``: likewise those next to them in other
    environments, and those that crashed; ``rails``: the interfaces, or RDMA devices, that are to
    carry what is sent between nodes. ``operation``: what was called, on so many ``ranks``,
    ``ranks_per_node`` of which share a node; ``others``: those of the operations that criteria ask
    for next to it which the same job measured. ``ping_pong``: each time is that of one message of
    MPI there and one back between two ranks.
    """

    where: str
    curve: Curve
    first: Curve
    launches: tuple[Curve, ...]
    landmarks: Landmarks
    line_rate_mb_s: float | None = None
    inside: bool = False
    over_tcp: bool = False
    cpu_seconds: Mapping[str, float] | None = None
    seconds: float = 0.0
    cpu_told: Mapping[str, str] = field(default_factory=dict)
    counted: tuple[CountedLaunch, ...] = ()
    counted_alongside: tuple[CountedLaunch, ...] = ()
    rails: tuple[str, ...] = ()
    operation: str = ""
    ranks: int = 0
    others: Mapping[str, Companion] = field(default_factory=dict)
    ranks_per_node: int = 1
    ping_pong: bool = False


@dataclass(frozen=True)
class AgainAtSizes:
    """How a launch around a size is judged: what is read of it, the value at each size.

    ``told``: what a value means, ``{}`` being the value.
    """

    read: Callable[..., Points]
    at_sizes: Callable[[Points], list[AtSize]]
    told: str


def _no_others(operation: str) -> tuple[str, ...]:
    return ()


def _rests_on_itself(operation: str, finding: Finding) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True)
class Criterion:
    """A criterion, which a module of this room declares as ``CRITERION``.

    ``number``: its section in docs/criteria.md, by which criteria are ordered; ``settings``: the
    default of each key that a site may change; ``findings``: the names of what it finds, each with
    the key of its settings, None where nothing is ever asserted. ``judge``: of one case, with the
    settings of its partition; None for a criterion that compares cases. ``of_launches``: whether
    it judges all launches, with intervals, and is decided by more of them; one that does not flags
    sizes of the first launches, and where it has ``again`` these are measured again.
    ``of_counters``: it judges what nodes counted, whatever else ran on them, and no further launch
    decides it; what is not known is told once a session, and fails where its settings say so.
    ``others``: of an operation, those that it looks at alongside it; ``rests_on``: of an operation
    and a finding on it, those whose launches the finding rests on.
    """

    number: int
    settings: Mapping[str, Bounds]
    findings: Mapping[str, str | None]
    judge: Callable[[CaseCurves, Any], Iterable[Finding]] | None = None
    of_launches: bool = False
    of_counters: bool = False
    again: AgainAtSizes | None = None
    others: Callable[[str], Iterable[str]] = _no_others
    rests_on: Callable[[str, Finding], Iterable[str]] = _rests_on_itself
