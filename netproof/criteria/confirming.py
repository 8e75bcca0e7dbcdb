"""Criterion 7: whether measuring a flagged size again shows it again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from netproof.criteria.findings import Bounds, Finding, Level, sizes_in_words
from netproof.criteria.interface import AgainAtSizes
from netproof.criteria.registry import BY_FINDING, CONFIRMED_BY_MEASURING
from netproof.errors import NetproofError
from netproof.measurement.curve import Curve


@dataclass(frozen=True)
class ConfirmSettings:
    """How a flagged size, and what is beyond a bound, is measured again.

    ``launches``: at least so many repeats; ``most_launches``: at most so many of a case, the first
    ones included; ``sizes``: at least so many between half and twice the flagged size;
    ``element_bytes``: the unit of a size, 4 for the reductions of IMB, which rounds 1023 up to
    1024; ``least_bytes``: the smallest message to measure; ``most_bytes``: the largest one, but for
    the neighbour of a flagged size, None for no limit. Raises NetproofError for fewer than 3
    launches, fewer at most, fewer than 8 sizes, elements below 1 byte and messages below 8 bytes.
    """

    launches: int = 3
    most_launches: int = 12
    sizes: int = 8
    element_bytes: int = 1
    least_bytes: int = 1
    most_bytes: int | None = None

    def __post_init__(self) -> None:
        """Check the values as the class describes."""
        if self.launches < 3 or self.sizes < 8 or self.element_bytes < 1:
            raise NetproofError(
                f"{self}: confirming takes at least 3 launches, 8 sizes and elements of 1 byte"
            )
        if self.most_launches < self.launches:
            raise NetproofError(
                f"{self}: most_launches counts all launches of a case, so it is"
                f" {self.launches} or more"
            )
        if self.most_bytes is not None and self.most_bytes < 8:
            raise NetproofError(f"{self}: messages of 8 bytes at least have to be allowed")


@dataclass(frozen=True)
class Confirmation:
    """Result of measuring a flagged size again.

    ``level``: what most launches reached again; ``SHOWN`` where the flag is unconfirmed,
    ``UNDEFINED`` where too few launches could be used. ``flagged`` of ``launches`` usable ones
    were flagged again; ``reason``: one sentence.
    """

    finding: Finding
    level: Level
    flagged: int
    launches: int
    reason: str

    @property
    def why(self) -> str:
        """Flagged configuration, and the reason."""
        return f"{self.finding.where}: {self.reason}"

    @property
    def confirmed(self) -> bool:
        """Whether the flag counts."""
        return self.level in (Level.WARN, Level.FAIL)


def dense_sizes(flagged: Finding, settings: ConfirmSettings = ConfirmSettings()) -> tuple[int, ...]:
    """Return the sizes in bytes at which a flagged size is measured again (criterion 7).

    From half to twice the flagged size s, evenly spaced in log s, with s and its neighbours
    s ± 1 (± ``element_bytes``) among them, and the sizes that it was compared with, wherever
    they lie. At least ``settings.sizes`` between s/2 and 2s (or ``settings.most_bytes``), or all
    multiples of ``element_bytes`` there where there are fewer (7 at 4 bytes). Raises
    NetproofError for a finding without a size.
    """
    size, element = _flagged_size(flagged), settings.element_bytes
    window = _window(size, settings)
    neighbours = _neighbours(size, window)
    wanted = min(settings.sizes, len(window))
    steps = settings.sizes
    while True:
        grid = {
            round(size / 2 * 4 ** (step / (steps - 1)) / element) * element for step in range(steps)
        }
        dense = {one for one in grid if one in window} | neighbours
        if len(dense) >= wanted:
            return tuple(sorted(dense | set(flagged.compared_sizes)))
        steps += settings.sizes


def needed_sizes(
    flagged: Finding, settings: ConfirmSettings = ConfirmSettings()
) -> tuple[range, frozenset[int]]:
    """Return the window and the sizes that a repeat needs where it cannot take ``dense_sizes``.

    The window is from half to twice the flagged size, and ``settings.sizes`` of it are needed. All
    of the sizes are: the flagged one, its neighbours and those that it was compared with. Raises
    NetproofError for a finding without a size.
    """
    size = _flagged_size(flagged)
    window = _window(size, settings)
    return window, frozenset(_neighbours(size, window) | set(flagged.compared_sizes))


def confirm(
    flagged: Finding,
    launches: Sequence[Curve],
    *,
    bounds: Bounds,
    settings: ConfirmSettings = ConfirmSettings(),
) -> Confirmation:
    """Check whether launches measured again around a flagged size show it again (criterion 7).

    ``flagged``: a finding of inversion, jump or dropout; ``launches``: curves over
    ``dense_sizes`` or more; ``bounds``: the settings that the finding was made with. A launch
    is flagged again if the same criterion reaches a bound at any size from half to twice the
    flagged one; more than half of the usable launches confirm. Raises NetproofError for
    another criterion.
    """
    size = _flagged_size(flagged)
    criterion = BY_FINDING.get(flagged.criterion)
    if criterion is None or criterion.again is None:
        raise NetproofError(
            f"{flagged.criterion} is not confirmed by measuring again: only "
            f"{', '.join(CONFIRMED_BY_MEASURING)} are"
        )
    levels, faults = [], []
    for number, curve in enumerate(launches, 1):
        level, fault = _level_again(flagged, curve, bounds, settings, criterion.again)
        if fault is None:
            levels.append(level)
        else:
            faults.append(f"launch {number} could not be used: {fault}")
    again = sum(level in (Level.WARN, Level.FAIL) for level in levels)
    failed = sum(level is Level.FAIL for level in levels)
    unused = "".join(f"; {fault}" for fault in faults)
    counted = f"{again} of {len(levels)} launches around {size} bytes show it again"
    if len(levels) < settings.launches:
        level, verdict = Level.UNDEFINED, f"not judged, which takes {settings.launches}: {counted}"
    elif 2 * again <= len(levels):
        level, verdict = Level.SHOWN, f"unconfirmed: {counted}"
    else:
        level = Level.FAIL if 2 * failed > len(levels) else Level.WARN
        verdict = f"confirmed: {counted}"
    reason = f"{flagged.criterion} at {size} bytes {verdict}{unused}"
    return Confirmation(flagged, level, again, len(levels), reason)


def _level_again(
    flagged: Finding,
    curve: Curve,
    bounds: Bounds,
    settings: ConfirmSettings,
    how: AgainAtSizes,
) -> tuple[Level, str | None]:
    """Return the level that a repeated launch reaches near the flagged size, and its fault."""
    window, needed = needed_sizes(flagged, settings)
    measured = [s for s in curve.sizes if s in window]
    missing = needed - set(curve.sizes)
    if missing:
        return Level.UNDEFINED, f"it lacks {sizes_in_words(sorted(missing))}"
    wanted = min(settings.sizes, len(window))
    if len(measured) < wanted:
        return Level.UNDEFINED, (
            f"it has {len(measured)} of {wanted} sizes from {window[0]} to {window[-1]} bytes"
        )
    points = how.read(curve, bounds, at_least=3)
    if points.fault is not None:
        return Level.UNDEFINED, points.fault
    levels = {
        bounds.level(found.value)[0]
        for found in how.at_sizes(points)
        if window[0] <= found.size <= window[-1]
    }
    worst = next((level for level in (Level.FAIL, Level.WARN) if level in levels), Level.PASS)
    return worst, None


def _flagged_size(flagged: Finding) -> int:
    if flagged.size is None or flagged.size < 1:
        raise NetproofError(
            f"{flagged.criterion} of {flagged.where} is about no size to measure again"
        )
    return flagged.size


def _window(size: int, settings: ConfirmSettings) -> range:
    """Return the multiples of an element from half to twice a size, and from the least."""
    element = settings.element_bytes
    if size % element:
        raise NetproofError(f"{size} bytes is no multiple of an element of {element} bytes")
    last = 2 * size
    if settings.most_bytes is not None:
        last = min(last, max(settings.most_bytes, size + element))
    # A session from before this setting may have flagged a smaller one.
    least = max(min(settings.least_bytes, size), size / 2)
    return range(max(1, math.ceil(least / element)) * element, last + 1, element)


def _neighbours(size: int, window: range) -> set[int]:
    return {one for one in (size - window.step, size, size + window.step) if one in window}
