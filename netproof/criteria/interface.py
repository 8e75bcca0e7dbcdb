"""The interface of a criterion: settings, names of its findings, function.

There are three kinds: along one curve (``judge``), across configurations (``compare``), and of
counts (``judge`` with ``of_counters``). What other rooms need to know of one is an attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Any

from netproof.criteria.findings import (
    FLAGGED,
    AtSizes,
    Bounds,
    CannotJudgeError,
    Finding,
    Level,
    in_common,
    then,
    undefined,
)
from netproof.measurement.case import Curve, median_curve
from netproof.measurement.counters import Counters
from netproof.measurement.landmarks import Landmarks, landmarks
from netproof.measurement.links import Link

_ON_ONE_NODE = (
    "look at other load on the node, at where the ranks are bound, and at thresholds of shared"
    " memory"
)


class Layer(StrEnum):
    """Layer that a time is likely to belong to, where advice looks."""

    NETWORK = "network"
    COLLECTIVE = "collective"
    INSIDE = "inside"
    DEVICE = "device"
    UNKNOWN = "network or inside"

    def advice(self, network: str, inside: str = _ON_ONE_NODE) -> str:
        """Return where to look; for messages between two nodes, and for those inside one."""
        if self is Layer.INSIDE:
            return inside
        if self is Layer.COLLECTIVE:
            # Losses are still possible, and come second.
            return f"{_ADVICE[self]}. Then {network}"
        if self is Layer.UNKNOWN:
            return f"{network}. If its ranks shared a node, {inside}"
        return _ADVICE.get(self, network)


_ADVICE = {
    Layer.DEVICE: "look at the library's thresholds for copies of GPU memory (UCX_RNDV_THRESH,"
    " MPICH_GPU_*, GDRCopy)",
    Layer.COLLECTIVE: "look at the library's choice of algorithm (--mca coll of Open MPI,"
    " MPIR_CVAR_* of MPICH, I_MPI_ADJUST_* of Intel MPI)",
}


@dataclass(frozen=True)
class CountedLaunch:
    """The network's counters of a launch, and whether it was undisturbed.

    ``payload``: bytes that it had to send between its nodes, or why they are not known.
    """

    number: int
    counters: Counters
    payload: int | str
    undisturbed: bool = True


@dataclass(frozen=True, eq=False)
class CaseCurves:
    """Data of a case that a criterion may use.

    ``curve``: the median of ``launches``, and ``first`` that of the first ones; ``inside``: ranks
    of one node; ``over_tcp``: compared with a case over TCP, which is one of ``others`` if it is
    complete; ``counted``: launches with counters; ``counted_alongside``: paired and crashed ones;
    ``rails``: interfaces, or RDMA devices, that should carry the traffic; ``others``: operations of
    the same job; ``ping_pong``: a time is of one message there and one back; ``at_least``:
    launches, and sizes whose rate they print as 0; ``of_files``: the bytes of a largest message
    whose rate stands for that of the line, 0 for a run: of files nothing will decide further, so
    that one launch warns.

    To compare it: ``name``: in sentences on others; ``function``: benchmark, function, ranks, path
    and direction; ``configuration``: system, partition, environment and day; ``place``: partition
    and link in which environments are compared; ``crossing``: the link that its messages cross;
    ``on_link``: messages of a collective on a node's link.
    """

    where: str
    curve: Curve
    first: Curve
    launches: tuple[Curve, ...]
    landmarks: Landmarks
    line_rate_mb_s: float | None = None
    inside: bool = False
    over_tcp: bool = False
    counted: tuple[CountedLaunch, ...] = ()
    counted_alongside: tuple[CountedLaunch, ...] = ()
    rails: tuple[str, ...] = ()
    operation: str = ""
    ranks: int = 0
    others: Mapping[str, CaseCurves] = field(default_factory=dict)
    ranks_per_node: int = 1
    ping_pong: bool = False
    crashes: tuple[str, ...] = ()
    at_least: tuple[tuple[Curve, int], ...] = ()
    of_files: int = 0
    layer: Layer = Layer.NETWORK
    settings: Any = None
    name: str = ""
    function: tuple[Any, ...] = ()
    configuration: tuple[str, ...] = ()
    place: tuple[Any, ...] = ()
    crossing: Link | None = None
    on_link: float = 0
    disturbances: tuple[str, ...] = ()

    @classmethod
    def of_launches(
        cls, where: str, launches: Sequence[Curve], line_rate: float | None = None, **known: Any
    ) -> CaseCurves:
        """Return a case of whole curves; ``line_rate``: in MB/s."""
        curve = median_curve(launches)
        found = landmarks(curve, line_rate, launches=launches if len(launches) > 1 else ())
        rate = None if curve.bandwidth_mb_s is None else line_rate
        return cls(where, curve, curve, tuple(launches), found, rate, **known)

    @cached_property
    def times_at(self) -> Mapping[int, Sequence[float]]:
        """Times in µs of the launches by their sizes, which all have."""
        columns = zip(*(one.time_us for one in self.launches), strict=True)
        return dict(zip(self.launches[0].sizes, columns, strict=True))

    def each(self, bounds: Bounds) -> tuple[list[dict[int, float]], tuple[int, ...]]:
        """Return the times in µs of each launch that bounds judge, and the sizes that all have."""
        return _each(self, bounds.least_size)

    @property
    def has_sizes(self) -> bool:
        """Whether its benchmark sends messages of sizes."""
        return self.curve.sizes != (0,)


# For the criteria on one case after the other.
@lru_cache(maxsize=2)
def _each(case: CaseCurves, least_size: int) -> tuple[list[dict[int, float]], tuple[int, ...]]:
    times = Bounds(least_size=least_size).times_of_each(case.launches)
    return times, in_common(times)


Pairs = tuple[Sequence[tuple[Curve, Curve]], str]
"""Interleaved launches of two cases, and why they show no failure, or empty."""


@dataclass(frozen=True)
class ComparedCases:
    """Cases that a criterion compares, by their labels, which begin its findings' sentences.

    ``pairs``: of each two with interleaved launches, in both orders; ``baseline``: labels, None
    where it is no part of what was to run; ``red``: sizes that another criterion failed;
    ``shared``: what is computed once for all cases.
    """

    cases: Mapping[str, CaseCurves]
    pairs: Mapping[tuple[str, str], Pairs] = field(default_factory=dict)
    baseline: tuple[str, ...] | None = None
    baseline_name: str = ""
    red: Mapping[str, Sequence[int]] = field(default_factory=dict)
    shared: dict[Hashable, Any] = field(default_factory=dict)

    def noise(self, *labels: str | None) -> tuple[str, ...]:
        """Return the disturbances of several cases, each once."""
        known = (self.cases.get(label or "") for label in labels)
        return tuple(dict.fromkeys(text for case in known if case for text in case.disturbances))

    def weighed(self, case: CaseCurves, finding: Finding) -> Finding:
        """Return a finding as far as its cases allow: no failure if disturbed, or placed unlike."""
        other = self.cases.get(finding.against or "")
        # A rank that leaves a collective early shows no placement.
        inside = other is not None and other.layer is Layer.INSIDE and other.ranks == 2
        flagged = finding.level in (*FLAGGED, Level.INCONCLUSIVE)
        if other and inside and flagged and case.layer is not Layer.INSIDE:
            why = (
                f"{other.name} is as fast as shared memory: its ranks may have run on one node, and"
                " these on two; compare the same placement"
            )
            if finding.level is Level.WARN:
                return finding.but(reason=finding.reason + then(why))
            return finding.without_noise((why,), "")
        paired = self.pairs.get((case.where, finding.against or ""))
        if paired is None:
            return finding.without_noise(self.noise(case.where, finding.against))
        return finding.without_noise(tuple(filter(None, paired[1:])), "")


Found = Finding | Iterable[Finding] | None
"""Findings of a criterion; it raises CannotJudgeError where they are undefined."""


class Shows(StrEnum):
    """Fact of the network that a flag shows by itself, for a diagnosis."""

    DAMAGE = "packets that a node's interface lost or damaged"
    PATH = "the interface that traffic took"


@dataclass(frozen=True)
class Criterion:
    """A criterion, one of the ``CRITERIA`` of its family's module.

    ``name``: of its findings; ``key``: of its settings, whose default is ``bounds``; criteria may
    share one. ``judge``: judges one case by its bounds; ``compare``: compares it with others of
    which ``group`` is the same and not None. ``sets``: settings that a site may change;
    ``of_all_sizes``: the least size of all curves does not concern it; ``sizes_of``: the key whose
    least size holds here. ``asserts_inside``: its bounds hold within a node; else values are shown.
    ``note``: the sentence on cases for which it is shown as undefined, with ``{count}``,
    ``{have}``, ``{cases}``, ``{why}`` and ``{name}``.

    ``of_launches``: it judges all launches, with intervals, and more of them decide. Else it flags
    sizes of the first launches, which are measured again if it has ``at_sizes``: the value at each
    size of the points that are ``read``, whose meaning is ``sentence``. ``of_counters``: it judges
    the nodes' counters, whatever else ran there. ``of_measurement``: a flag is an error of
    measurement, which no known flaw excuses, and an undefined value is shown. ``of_peaks``: its
    size is random on a plateau, and only peaks from the partition's ``line_rate_from_bytes`` on
    count. ``key_figure``: its heading in a report's key figures, or none. ``noted``: a value
    that passes, and would warn by these bounds, has a sentence where files are judged;
    ``fewest_sizes``: that it takes. ``shows``: what a flag shows by itself.
    ``others``: operations that an operation is compared with; ``rests_on``: those whose launches a
    finding rests on.
    """

    name: str
    key: str
    bounds: Bounds
    judge: Callable[[CaseCurves, Any], Found] = lambda case, bounds: None
    compare: Callable[[CaseCurves, ComparedCases, Any], Found] | None = None
    group: Callable[[CaseCurves], Hashable] = lambda case: case.function if case.has_sizes else None
    sets: tuple[str, ...] = ("warn", "fail")
    of_all_sizes: bool = False
    sizes_of: str = ""
    of_baseline: bool = False
    asserts_inside: bool = True
    note: str = ""
    of_launches: bool = False
    of_counters: bool = False
    of_measurement: bool = False
    of_peaks: bool = False
    key_figure: str = ""
    read: Callable[..., dict[int, float]] = Bounds.times
    at_sizes: Callable[[Mapping[int, float]], AtSizes] | None = None
    sentence: str = ""
    shows: Shows | None = None
    noted: Bounds | None = None
    fewest_sizes: int = 1
    others: Callable[[str], Iterable[str]] = lambda operation: ()
    rests_on: Callable[[str, Finding], Iterable[str]] = lambda operation, finding: ()

    def bounds_in(self, settings: Any, *, inside: bool) -> Bounds:
        """Return its bounds by the settings of a partition."""
        found: Bounds = getattr(settings, self.key)
        return found if self.asserts_inside or not inside else type(self.bounds)()

    def at_each(self, bounds: Bounds, curve: Curve, *, fewest: int = 1) -> AtSizes:
        """Return its value at each size of a curve, none of a criterion with a single value.

        Raises CannotJudgeError where the curve has fewer than the ``fewest`` sizes.
        """
        if self.at_sizes is None:
            return {}
        return self.at_sizes(self.read(bounds, curve, at_least=fewest))

    def on(
        self, case: CaseCurves, settings: Any, compared: ComparedCases | None = None
    ) -> tuple[Finding, ...]:
        """Return its findings on a case, by itself or ``compared`` with others."""
        bounds = self.bounds_in(settings, inside=case.inside)
        try:
            if compared is None or self.compare is None:
                found = self.judge(case, bounds)
            else:
                found = self.compare(case, compared, bounds)
            several = () if found is None else (found,) if isinstance(found, Finding) else (*found,)
            for one in several:
                # Each was made just now, so that none has to be copied.
                vars(one).update(criterion=self.name, where=case.where)
            return several
        except CannotJudgeError as error:
            return (undefined(self.name, case.where, str(error)),)
