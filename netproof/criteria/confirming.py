"""How a flagged size is measured again: settings and sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from netproof.criteria.findings import Finding
from netproof.errors import NetproofError


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
