"""State of many series on their way through the nights: columns, a place for each series.

Rows of nights have the newest at the right end; missing values are NaN, and ``NO_NIGHT`` for
indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netproof.history.night import LONGEST, Estimate, Floats

Numbers = NDArray[np.int64]

NO_NIGHT = -1


@dataclass
class LevelColumns:
    """The nights that make the present level of each series.

    ``values``: series x nights, the logarithms of the newest of them; ``nights``: their indices;
    ``known``: their estimate; ``since``: their number, including those no longer in ``values``;
    ``long_ago``: level and noise of the first of them, NaN until there are enough.
    """

    values: Floats
    nights: Numbers
    known: Estimate
    since: Numbers
    long_ago: Floats

    @classmethod
    def unknown(cls, count: int, memory: int) -> LevelColumns:
        """Return columns of ``count`` series without a night, with room for ``memory`` nights."""
        return cls(
            np.full((count, memory), np.nan),
            np.full((count, memory), NO_NIGHT),
            Estimate.unknown(count),
            np.zeros(count, np.int64),
            np.full((2, count), np.nan),
        )

    def members(self, number: int) -> list[int]:
        """Return the nights of one series."""
        return [night for night in self.nights[number].tolist() if night != NO_NIGHT]

    def scale(self, number: int) -> tuple[float, float]:
        """Return level and noise of one series."""
        return self.known.level[number], self.known.noise[number]

    def append(self, numbers: Numbers, nights: Numbers | int, values: Floats, first: int) -> None:
        """Add a night to some series; the ``first`` nights become the reference of long ago."""
        _shift_in(self.values, numbers, values)
        _shift_in(self.nights, numbers, nights)
        self.since[numbers] += 1
        begun = numbers[self.since[numbers] == first]
        self.long_ago[:, begun] = self.known.level[begun], self.known.noise[begun]

    def begin(self, number: int, nights: Sequence[int], values: Floats) -> None:
        """Begin a level of these nights in one series, without its estimate."""
        self.values[number], self.nights[number] = np.nan, NO_NIGHT
        if nights:
            self.values[number, -len(nights) :] = values
            self.nights[number, -len(nights) :] = nights
        self.since[number] = len(nights)
        self.long_ago[:, number] = np.nan


@dataclass
class NewestColumns:
    """The last nights of each series that were not set aside, and the estimates before each."""

    values: Floats
    before: Estimate

    @classmethod
    def unknown(cls, count: int) -> NewestColumns:
        """Return columns of ``count`` series without a night."""
        return cls(np.full((count, LONGEST), np.nan), Estimate.unknown(count, LONGEST))

    def append(self, numbers: Numbers, values: Floats, known: Estimate) -> None:
        """Add a night to some series, with their estimates before it."""
        _shift_in(self.values, numbers, values)
        for mine, new in zip(self.before.arrays, known.arrays, strict=True):
            _shift_in(mine, numbers, new)

    def forget(self, number: int) -> None:
        """Reset one series to no nights."""
        self.values[number] = np.nan
        self.before.put(number, Estimate.unknown(LONGEST))


def _shift_in(rows: np.ndarray, numbers: Numbers, new: object) -> None:
    """Shift one more value into the right end of some rows."""
    rows[numbers, :-1] = rows[numbers, 1:]
    rows[numbers, -1] = new
