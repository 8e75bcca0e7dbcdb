"""What is known of many series on their way through the nights: columns, a place for each series.

Rows of nights have the newest at the right end; what is missing is NaN, or ``NO_NIGHT`` of indices.
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
    ``known``: the estimate of them; ``since``: how many there are, also of those that are no
    longer in ``values``; ``long_ago``: level and noise of the first of them, NaN until there are
    enough.
    """

    values: Floats
    nights: Numbers
    known: Estimate
    since: Numbers
    long_ago: Floats

    @classmethod
    def unknown(cls, count: int, memory: int) -> LevelColumns:
        """Of so many series without a night, of which ``memory`` will be kept."""
        return cls(
            np.full((count, memory), np.nan),
            np.full((count, memory), NO_NIGHT),
            Estimate.unknown(count),
            np.zeros(count, np.int64),
            np.full((2, count), np.nan),
        )

    def members(self, number: int) -> list[int]:
        """The nights of one series."""
        return [night for night in self.nights[number].tolist() if night != NO_NIGHT]

    def scale(self, number: int) -> tuple[float, float]:
        """Level and noise of one series."""
        return self.known.level[number], self.known.noise[number]

    def append(self, numbers: Numbers, nights: Numbers | int, values: Floats, first: int) -> None:
        """One more night of some series; with the ``first`` nights, it is what was long ago."""
        _shift_in(self.values, numbers, values)
        _shift_in(self.nights, numbers, nights)
        self.since[numbers] += 1
        begun = numbers[self.since[numbers] == first]
        self.long_ago[:, begun] = self.known.level[begun], self.known.noise[begun]

    def begin(self, number: int, nights: Sequence[int], values: Floats) -> None:
        """A level of these nights in one series; what is known of it is not said here."""
        self.values[number], self.nights[number] = np.nan, NO_NIGHT
        if nights:
            self.values[number, -len(nights) :] = values
            self.nights[number, -len(nights) :] = nights
        self.since[number] = len(nights)
        self.long_ago[:, number] = np.nan


@dataclass
class NewestColumns:
    """The last nights of each series that were not set aside, and what was known before each."""

    values: Floats
    before: Estimate

    @classmethod
    def unknown(cls, count: int) -> NewestColumns:
        """Of so many series without a night."""
        return cls(np.full((count, LONGEST), np.nan), Estimate.unknown(count, LONGEST))

    def append(self, numbers: Numbers, values: Floats, known: Estimate) -> None:
        """One more night of some series, and what was known of them before it."""
        _shift_in(self.values, numbers, values)
        for mine, new in zip(self.before.arrays, known.arrays, strict=True):
            _shift_in(mine, numbers, new)

    def forget(self, number: int) -> None:
        """One series, as without a night."""
        self.values[number] = np.nan
        self.before.put(number, Estimate.unknown(LONGEST))


@dataclass
class AsideColumns:
    """The night of each series that is set aside until the next one comes.

    ``off``: by how many standard deviations it is off; ``known``: what was known before it.
    """

    night: Numbers
    off: Floats
    known: Estimate

    @classmethod
    def unknown(cls, count: int) -> AsideColumns:
        """Of so many series without a night."""
        return cls(np.full(count, NO_NIGHT), np.zeros(count), Estimate.unknown(count))

    def waiting(self, numbers: Numbers) -> NDArray[np.bool_]:
        """Which of some series have one."""
        return self.night[numbers] != NO_NIGHT

    def put(self, numbers: Numbers, night: int, off: Floats, known: Estimate) -> None:
        """Set this night of some series aside."""
        self.night[numbers], self.off[numbers] = night, off
        self.known.put(numbers, known)

    def clear(self, numbers: Numbers) -> None:
        """None of some series is aside any more."""
        self.night[numbers] = NO_NIGHT


@dataclass
class BackColumns:
    """How each series may go back from the newest step that it is in.

    ``old``, ``new``: both levels, ``old`` NaN without a step; ``odds``: logarithm of the odds that
    it has gone back; ``begin``: the night since when, of odds above 0.
    """

    old: Floats
    new: Floats
    odds: Floats
    begin: Numbers

    @classmethod
    def unknown(cls, count: int) -> BackColumns:
        """Of so many series without a night."""
        old, new, odds = (np.full(count, np.nan) for _ in range(3))
        return cls(old, new, odds, np.full(count, NO_NIGHT))

    def of_steps(self, numbers: Numbers) -> Numbers:
        """Those of some series that are in a step."""
        return numbers[np.isfinite(self.old[numbers])]

    def reset(self, number: int, old: float, new: float) -> None:
        """One series at ``new``, which may go back to ``old``."""
        self.old[number], self.new[number] = old, new
        self.odds[number], self.begin[number] = 0.0, NO_NIGHT


def _shift_in(rows: np.ndarray, numbers: Numbers, new: object) -> None:
    """One more value at the right end of some rows."""
    rows[numbers, :-1] = rows[numbers, 1:]
    rows[numbers, -1] = new
