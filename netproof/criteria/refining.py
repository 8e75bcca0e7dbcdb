"""Criterion 7 between the sizes of a curve: where to measure at closer sizes, and the result."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from netproof.criteria.findings import (
    AtSize,
    Bounds,
    Finding,
    Level,
    bound_in_words,
)
from netproof.criteria.points import Points, times_of
from netproof.criteria.registry import BY_FINDING
from netproof.errors import NetproofError
from netproof.measurement.curve import Curve

TINY = 1e-12
"""Stands for a value or a bound of 0 in a ratio of the two."""


@dataclass(frozen=True)
class RefineSettings:
    """Where a curve is measured at closer sizes.

    ``slopes``: from this disagreement of neighbouring slopes d(ln t)/d(ln n) on, None for nowhere;
    a healthy latency and bandwidth reach 0.17 where sizes double. ``most``: places of a case at
    most; ``sizes``: so many in the gap on either side; ``step``: sizes within this factor count as
    one, since a slope over a short step is mostly noise; ``least_size``: smaller messages in bytes
    are left out. Raises NetproofError for what would refine nothing or everything.
    """

    slopes: float | None = None
    most: int = 3
    sizes: int = 2
    step: float = 1.2
    least_size: int = 4

    def __post_init__(self) -> None:
        """Check the values as the class describes."""
        if self.slopes is not None and not 0 < self.slopes < math.inf:
            raise NetproofError(f"{self}: slopes is above 0, or None to refine nothing")
        if self.most < 1 or self.sizes < 1 or self.least_size < 1:
            raise NetproofError(f"{self}: refining takes a place, a size and messages of 1 byte")
        if not 1 < self.step <= 2:
            raise NetproofError(f"{self}: step is a factor above 1, and 2 at most")


@dataclass(frozen=True)
class Bend:
    """A size in bytes where the slopes on its two sides disagree.

    ``below`` and ``above``: the neighbours that the slopes were taken to; ``disagreement``: how
    much the slope changes there, a pure number.
    """

    below: int
    size: int
    above: int
    disagreement: float

    @property
    def why(self) -> str:
        """Reason to measure closer."""
        return f"the slopes next to {self.size} bytes differ by {self.disagreement:.2g}"

    def spans(self, size: float) -> bool:
        """Check whether a size lies between its ends, or is one of them."""
        return self.below <= size <= self.above


@dataclass(frozen=True)
class Region:
    """Places whose gaps overlap: from ``below`` to ``above`` bytes."""

    below: int
    above: int
    places: tuple[Bend, ...]


def kinks(launches: Sequence[Curve], settings: RefineSettings) -> tuple[Bend, ...]:
    """Return the sizes where the slopes on both sides disagree, the strongest first.

    d(ln t)/d(ln n) above − the same below, over sizes at least ``settings.step`` apart, as more
    than half of the launches reach it with the same sign; all have the same sizes. At most
    ``settings.most`` from ``settings.slopes`` on are returned, none if a launch cannot be judged.
    On t = t₀ + n/r it is 0.17 at most where sizes double, at n = t₀·r. After SKaMPI's refinement
    (Reussner and others, EuroPVM/MPI 1998).
    """
    bounds = Bounds(least_size=settings.least_size)
    several = [times_of(curve, bounds, at_least=3) for curve in launches]
    if settings.slopes is None or not several or any(one.fault for one in several):
        return ()
    sizes = _apart(list(several[0].at), settings.step)
    changes = [_changes(one, sizes) for one in several]
    found = []
    for at, (below, size, above) in enumerate(zip(sizes, sizes[1:], sizes[2:], strict=False)):
        rising = sorted(change[at] for change in changes)
        most = len(rising) // 2
        disagreement = max(rising[::-1][most], -rising[most])
        if disagreement >= settings.slopes:
            found.append(Bend(below, size, above, disagreement))
    return tuple(sorted(found, key=lambda place: -place.disagreement)[: settings.most])


def _changes(points: Points, sizes: Sequence[int]) -> list[float]:
    """Return the change of the slope at each size but the first and the last."""
    slopes = [
        math.log(points.at[size] / points.at[before]) / math.log(size / before)
        for before, size in pairwise(sizes)
    ]
    return [after - before for before, after in pairwise(slopes)]


def _apart(sizes: Sequence[int], step: float) -> list[int]:
    """Return increasing sizes, one in the middle for all within a factor."""
    groups: list[list[int]] = []
    for size in sizes:
        if groups and size < step * groups[-1][0]:
            groups[-1].append(size)
        else:
            groups.append([size])
    return [group[len(group) // 2] for group in groups]


def closer_sizes(place: Bend, settings: RefineSettings, element_bytes: int = 1) -> tuple[int, ...]:
    """Return the sizes in bytes to measure for a place, increasing.

    Its own three, and ``settings.sizes`` in the gap on either side, evenly spaced in their
    logarithms: multiples of ``element_bytes``, fewer where the gap has fewer.
    """
    ends = {place.below, place.size, place.above}
    between = set()
    for low, high in ((place.below, place.size), (place.size, place.above)):
        for part in range(1, settings.sizes + 1):
            size = low * (high / low) ** (part / (settings.sizes + 1))
            between.add(round(size / element_bytes) * element_bytes)
    return tuple(sorted(ends | {size for size in between if place.spans(size)}))


def regions(places: Sequence[Bend]) -> tuple[Region, ...]:
    """Group places whose gaps overlap, in increasing order."""
    found: list[Region] = []
    for place in sorted(places, key=lambda one: one.size):
        last = found[-1] if found else None
        if last is not None and place.below < last.above:
            above, several = max(last.above, place.above), (*last.places, place)
            found[-1] = Region(last.below, above, several)
        else:
            found.append(Region(place.below, place.above, (place,)))
    return tuple(found)


def measured_closer(region: Region, grid: Sequence[int], launch: Curve) -> bool:
    """Check whether a launch has a region's places, and a size between two of ``grid``."""
    wanted = {size for one in region.places for size in (one.below, one.size, one.above)}
    here = {size for size in launch.sizes if region.below <= size <= region.above}
    return wanted <= here and bool(here - set(grid))


@dataclass(frozen=True)
class ShownCloser:
    """Finding of most launches at closer sizes.

    ``flagged`` of ``launches`` reach the bound of the finding at its size.
    """

    finding: Finding
    flagged: int
    launches: int


def found_closer(
    region: Region,
    grid: Sequence[int],
    launches: Sequence[Curve],
    bounds: Mapping[str, Bounds],
    *,
    where: str,
) -> ShownCloser | None:
    """Return the worst finding that most launches show at the same size of a region, or None.

    ``grid``: the sizes of the curve, to name the neighbours of that size; ``bounds``: by the name
    of the finding, of inversion, jump and dropout. A criterion sees no size outside the region. Its
    value at a size is reached or exceeded by more than half of ``launches`` there. All have the
    same sizes, so a lasting fault shows again at the same size, and a passing one does not.
    """
    worst: list[tuple[bool, float, ShownCloser]] = []
    for name, held in bounds.items():
        for found, flagged in _by_majority(name, held, region, launches):
            level, bound = held.level(found.value)
            if level not in (Level.WARN, Level.FAIL) or bound is None:
                continue
            beyond = abs(math.log(max(found.value, TINY) / max(bound, TINY)))
            finding = _finding(name, held, found, grid, where)
            shown = ShownCloser(finding, flagged, len(launches))
            worst.append((level is Level.FAIL, beyond, shown))
    return max(worst, key=lambda one: one[:2])[2] if worst else None


def _by_majority(
    name: str, bounds: Bounds, region: Region, launches: Sequence[Curve]
) -> list[tuple[AtSize, int]]:
    """Return a criterion's value at each size, and how many launches reach its level."""
    how = BY_FINDING[name].again
    if how is None:
        raise NetproofError(f"{name} is not judged at single sizes")
    at: dict[int, list[AtSize]] = {}
    for launch in launches:
        points = how.read(launch, bounds)
        inside = {s: v for s, v in points.at.items() if region.below <= s <= region.above}
        if points.fault is None and len(inside) >= 3:
            for found in how.at_sizes(replace(points, at=inside)):
                at.setdefault(found.size, []).append(found)
    least_is_worst = bounds.reached(0.0, 1.0)
    by_size = []
    for several in at.values():
        if 2 * len(several) <= len(launches):
            continue
        by_worst = sorted(several, key=lambda one: one.value, reverse=not least_is_worst)
        found = by_worst[len(launches) // 2]
        _, bound = bounds.level(found.value)
        reached = [bound is not None and bounds.reached(one.value, bound) for one in several]
        by_size.append((found, sum(reached)))
    return by_size


def _finding(name: str, bounds: Bounds, found: AtSize, grid: Sequence[int], where: str) -> Finding:
    how = BY_FINDING[name].again
    level, bound = bounds.level(found.value)
    alongside = [
        *grid[: bisect_left(grid, found.size)][-1:],
        *grid[bisect_right(grid, found.size) :][:1],
    ]
    place = (
        f"{'between' if len(alongside) == 2 else 'next to'} the {' and '.join(map(str, alongside))}"
    )
    value = how.sentence.format(f"{found.value:.3g}")
    reason = f"at {found.size} bytes, {place} bytes of its curve, {value}"
    below = bounds.reached(0.0, 1.0)
    return Finding(
        name,
        level,
        where,
        f"{reason}{bound_in_words(level, bound, below=below)}",
        size=found.size,
        value=found.value,
        bound=bound,
        compared_sizes=found.compared,
    )
