"""Measuring again: whether a flagged size shows again, and what shows between sizes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from netproof.criteria.findings import (
    FLAGGED,
    AtSizes,
    Bounds,
    CannotJudgeError,
    Confirmation,
    Finding,
    Level,
    sizes_in_words,
)
from netproof.criteria.registry import BY_FINDING, CONFIRMED_BY_MEASURING
from netproof.errors import NetproofError
from netproof.measurement.curve import Curve

TINY = 1e-12
"""Stands for a value or a bound of 0 in a ratio of the two."""


@dataclass(frozen=True)
class ConfirmSettings:
    """How a flagged size, and what is beyond a bound, is measured again.

    ``launches``: at least so many repeats; ``most_launches``: at most so many of a case, the first
    ones included; ``sizes``: at least so many between half and twice the flagged size;
    ``element_bytes``: the unit of a size, 4 for IMB's reductions; ``least_bytes``, ``most_bytes``:
    the messages to measure, but for a flagged size's neighbour. ``slopes``: neighbouring slopes
    d(ln t)/d(ln n) that differ by this are measured at closer sizes; None: none are. Raises
    NetproofError.
    """

    launches: int = 3
    most_launches: int = 12
    sizes: int = 8
    element_bytes: int = 1
    least_bytes: int = 1
    most_bytes: int | None = None
    slopes: float | None = None

    def __post_init__(self) -> None:
        if self.launches < 3 or self.sizes < 8 or self.element_bytes < 1:
            raise NetproofError(
                f"{self}: confirming takes at least 3 launches, 8 sizes and elements of 1 byte"
            )
        if self.most_launches < self.launches:
            raise NetproofError(
                f"{self}: most_launches counts all launches, so it is {self.launches} or more"
            )
        if self.most_bytes is not None and self.most_bytes < 8:
            raise NetproofError(f"{self}: messages of 8 bytes at least have to be allowed")
        if self.slopes is not None and not 0 < self.slopes < math.inf:
            raise NetproofError(f"{self}: slopes is above 0, or None to refine nothing")


def dense_sizes(flagged: Finding, settings: ConfirmSettings = ConfirmSettings()) -> tuple[int, ...]:
    """Return the sizes in bytes at which a flagged size is measured again.

    From half to twice the flagged size, evenly spaced in their logarithms, with its neighbours and
    the sizes that it was compared with. Raises NetproofError for a finding without a size.
    """
    size, window, neighbours = _around(flagged, settings)
    element, steps = settings.element_bytes, settings.sizes
    while True:
        powers = (4 ** (step / (steps - 1)) for step in range(steps))
        dense = {round(size / 2 * power / element) * element for power in powers}
        dense = {one for one in dense if one in window} | neighbours
        if len(dense) >= min(settings.sizes, len(window)):
            return tuple(sorted(dense | set(flagged.compared_sizes)))
        steps += settings.sizes


def needed_sizes(
    flagged: Finding, settings: ConfirmSettings = ConfirmSettings()
) -> tuple[range, frozenset[int]]:
    """Return the window and the sizes that a repeat needs where it cannot take ``dense_sizes``.

    ``settings.sizes`` of the window are needed, and all of the sizes. Raises NetproofError for a
    finding without a size.
    """
    _, window, neighbours = _around(flagged, settings)
    return window, frozenset(neighbours | set(flagged.compared_sizes))


def _around(flagged: Finding, settings: ConfirmSettings) -> tuple[int, range, set[int]]:
    """Return a flagged size, the multiples of an element around it, and its neighbours."""
    size, element = flagged.size, settings.element_bytes
    if size is None or size < 1:
        raise NetproofError(
            f"{flagged.criterion} of {flagged.where} is about no size to measure again"
        )
    if size % element:
        raise NetproofError(f"{size} bytes is no multiple of an element of {element} bytes")
    last = 2 * size
    if settings.most_bytes is not None:
        last = min(last, max(settings.most_bytes, size + element))
    # A session from before this setting may have flagged a smaller one.
    least = max(min(settings.least_bytes, size), size / 2)
    window = range(max(1, math.ceil(least / element)) * element, last + 1, element)
    neighbours = {one for one in (size - element, size, size + element) if one in window}
    return size, window, neighbours


def confirm(
    flagged: Finding,
    launches: Sequence[Curve],
    *,
    bounds: Bounds,
    settings: ConfirmSettings = ConfirmSettings(),
) -> Confirmation:
    """Check whether launches measured again around a flagged size show it again.

    ``launches``: curves over ``dense_sizes`` or more; ``bounds``: those of the finding. More than
    half of the usable launches confirm, each at any size from half to twice the flagged one. Raises
    NetproofError for another criterion than inversion, jump and dropout.
    """
    read, at_sizes, _ = _again(flagged.criterion)
    window, needed = needed_sizes(flagged, settings)
    wanted = min(settings.sizes, len(window))
    levels, unused = [], ""
    for number, curve in enumerate(launches, 1):
        measured = sum(size in window for size in curve.sizes)
        try:
            if missing := needed - set(curve.sizes):
                raise CannotJudgeError(f"it lacks {sizes_in_words(sorted(missing))}")
            if measured < wanted:
                raise CannotJudgeError(
                    f"it has {measured} of {wanted} sizes from {window[0]} to {window[-1]} bytes"
                )
            points = read(bounds, curve, at_least=3)
        except CannotJudgeError as error:
            unused += f"; launch {number} could not be used: {error}"
            continue
        reached = {
            bounds.level(value)[0]
            for size, (value, _) in at_sizes(points).items()
            if window[0] <= size <= window[-1]
        }
        worst = [level for level in (Level.FAIL, Level.WARN) if level in reached]
        levels.append((*worst, Level.PASS)[0])
    again = sum(level in FLAGGED for level in levels)
    counted = f"{again} of {len(levels)} launches around {flagged.size} bytes show it again"
    if len(levels) < settings.launches:
        level, verdict = Level.UNDEFINED, f"not judged, which takes {settings.launches}: {counted}"
    elif 2 * again <= len(levels):
        level, verdict = Level.SHOWN, f"unconfirmed: {counted}"
    else:
        level = Level.FAIL if 2 * levels.count(Level.FAIL) > len(levels) else Level.WARN
        verdict = f"confirmed: {counted}"
    reason = f"{flagged.criterion} at {flagged.size} bytes {verdict}{unused}"
    return Confirmation(level, again, len(levels), reason)


def _again(
    criterion: str,
) -> tuple[Callable[..., dict[int, float]], Callable[[Mapping[int, float]], AtSizes], str]:
    """Return how a criterion of single sizes reads and judges; NetproofError for others."""
    how = BY_FINDING.get(criterion)
    if how is None or how.at_sizes is None:
        raise NetproofError(
            f"{criterion} is not confirmed by measuring again: only "
            f"{', '.join(CONFIRMED_BY_MEASURING)} are"
        )
    return how.read, how.at_sizes, how.sentence


MOST_PLACES = 3
"""Places of a case that are measured closer, the strongest ones."""

IN_A_GAP = 2
"""Sizes in the gap on either side of a place."""

STEP = 1.2
"""Sizes within this factor count as one, since a slope over a short step is mostly noise."""


@dataclass(frozen=True)
class Bend:
    """A size in bytes where the slopes to its neighbours disagree, by a pure number."""

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


Region = tuple[Bend, ...]
"""Places whose gaps overlap, in increasing order."""


def kinks(launches: Sequence[Curve], least: float | None, least_size: int = 4) -> tuple[Bend, ...]:
    """Return the sizes where the slopes on both sides disagree, the strongest first.

    ``least``: as ``ConfirmSettings.slopes``. By more than half of the launches, with the same sign;
    none if one cannot be judged. On t = t₀ + n/r it is 0.17 at most where sizes double, at
    n = t₀·r. After SKaMPI's refinement (Reussner and others, EuroPVM/MPI 1998).
    """
    if least is None or not launches:
        return ()
    try:
        bounds = Bounds(least_size=least_size)
        several = [bounds.times(curve, at_least=3) for curve in launches]
    except CannotJudgeError:
        return ()
    sizes = _apart(list(several[0]))
    changes = []
    for times in several:
        slopes = [
            math.log(times[size] / times[before]) / math.log(size / before)
            for before, size in pairwise(sizes)
        ]
        changes.append([after - before for before, after in pairwise(slopes)])
    found = []
    for below, size, above, *rising in zip(sizes, sizes[1:], sizes[2:], *changes, strict=False):
        rising.sort()
        most = len(rising) // 2
        disagreement = max(rising[::-1][most], -rising[most])
        if disagreement >= least:
            found.append(Bend(below, size, above, disagreement))
    return tuple(sorted(found, key=lambda place: -place.disagreement))


def _apart(sizes: Sequence[int]) -> list[int]:
    """Return increasing sizes, one in the middle for all within a ``STEP``."""
    groups: list[list[int]] = []
    for size in sizes:
        if groups and size < STEP * groups[-1][0]:
            groups[-1].append(size)
        else:
            groups.append([size])
    return [group[len(group) // 2] for group in groups]


def closer_sizes(place: Bend, element_bytes: int = 1) -> tuple[int, ...]:
    """Return the sizes in bytes to measure for a place: its own, and those in the gaps beside it.

    Multiples of ``element_bytes``, evenly spaced in their logarithms, increasing.
    """
    ends = {place.below, place.size, place.above}
    between = set()
    for low, high in ((place.below, place.size), (place.size, place.above)):
        for part in range(1, IN_A_GAP + 1):
            size = low * (high / low) ** (part / (IN_A_GAP + 1))
            between.add(round(size / element_bytes) * element_bytes)
    return tuple(sorted(ends | {size for size in between if place.spans(size)}))


def regions(places: Sequence[Bend]) -> tuple[Region, ...]:
    """Group places whose gaps overlap, in increasing order."""
    found: list[Region] = []
    for place in sorted(places, key=lambda one: one.size):
        if found and place.below < found[-1][-1].above:
            found[-1] = (*found[-1], place)
        else:
            found.append((place,))
    return tuple(found)


def measured_closer(region: Region, grid: Sequence[int], launch: Curve) -> bool:
    """Check whether a launch has a region's places, and a size between two of ``grid``."""
    wanted = {size for one in region for size in (one.below, one.size, one.above)}
    here = {size for size in launch.sizes if region[0].below <= size <= region[-1].above}
    return wanted <= here and bool(here - set(grid))


def found_closer(
    region: Region,
    grid: Sequence[int],
    launches: Sequence[Curve],
    bounds: Mapping[str, Bounds],
    *,
    where: str,
) -> tuple[Finding, Confirmation] | None:
    """Return the worst finding that most launches show at the same size of a region, or None.

    ``grid``: the sizes of the curve; ``bounds``: by the name of the finding. A criterion sees no
    size outside the region. A lasting fault shows at the same size, and a passing one does not.
    """
    worst: list[tuple[bool, float, Finding, Confirmation]] = []
    for name, held in bounds.items():
        read, at_sizes, sentence = _again(name)
        by_size: dict[int, list[tuple[float, tuple[int, ...]]]] = defaultdict(list)
        for launch in launches:
            try:
                points = read(held, launch)
            except CannotJudgeError:
                continue
            inside = {s: v for s, v in points.items() if region[0].below <= s <= region[-1].above}
            for size, found in at_sizes(inside).items() if len(inside) >= 3 else ():
                by_size[size].append(found)
        for size, several in by_size.items():
            if 2 * len(several) <= len(launches):
                continue
            by_worst = sorted(several, key=lambda one: one[0], reverse=not held.flags_small)
            value, others = by_worst[len(launches) // 2]
            level, bound = held.level(value)
            if level not in FLAGGED or bound is None:
                continue
            flagged = sum(held.reached(one, bound) for one, _ in several)
            beyond = abs(math.log(max(value, TINY) / max(bound, TINY)))
            smaller, larger = ([s for s in grid if s < size], [s for s in grid if s > size])
            place = "between" if smaller and larger else "next to"
            nearest = " and ".join(map(str, (*smaller[-1:], *larger[:1])))
            reason = (
                f"at {size} bytes, {place} the {nearest} bytes of its curve,"
                f" {sentence.format(f'{value:.3g}')}"
            )
            finding = held.finding(value, reason, size=size, compared_sizes=others)
            finding = replace(finding, criterion=name, where=where)
            confirmed = Confirmation(level, flagged, len(launches))
            worst.append((level is Level.FAIL, beyond, finding, confirmed))
    return max(worst, key=lambda one: one[:2])[2:] if worst else None
