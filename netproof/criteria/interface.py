"""What every criterion is: its number, its settings, the names of its findings, how it judges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from netproof.criteria.findings import AtSize, Bounds, Finding
from netproof.criteria.points import Points
from netproof.measurement.curve import Curve
from netproof.measurement.landmarks import Landmarks


@dataclass(frozen=True)
class CaseCurves:
    """What a criterion on one case may look at.

    ``curve``: the median of ``launches``, that of the ``first`` ones apart; ``line_rate_mb_s``:
    None where there is none; ``inside``: of two ranks of one node; ``over_tcp``: whether it is
    compared with a case over TCP, which is ``tcp``, None where that is not complete;
    ``cpu_seconds``: used by its ranks on each node in ``seconds`` of benchmark, None where
    nobody counted them.
    """

    where: str
    curve: Curve
    first: Curve
    launches: tuple[Curve, ...]
    landmarks: Landmarks
    line_rate_mb_s: float | None = None
    inside: bool = False
    over_tcp: bool = False
    tcp: CaseCurves | None = None
    cpu_seconds: Mapping[str, float] | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class AgainAtSizes:
    """How a launch around a flagged size is judged: what is read of it, the value at each size."""

    read: Callable[..., Points]
    at_sizes: Callable[[Points], list[AtSize]]


@dataclass(frozen=True)
class Criterion:
    """A criterion, which a module of this room declares as ``CRITERION``.

    ``number``: its section in docs/criteria.md, by which criteria are ordered; ``settings``: the
    default of each key that a site may change; ``findings``: the names of what it finds, each with
    the key of its settings, None where nothing is ever asserted. ``judge``: of one case, with the
    settings of its partition; None for a criterion that compares cases. ``of_launches``: whether
    it judges all launches, with intervals, and is decided by more of them; one that does not flags
    sizes of the first launches, and where it has ``again`` these are measured again.
    """

    number: int
    settings: Mapping[str, Bounds]
    findings: Mapping[str, str | None]
    judge: Callable[[CaseCurves, Any], Iterable[Finding]] | None = None
    of_launches: bool = False
    again: AgainAtSizes | None = None
