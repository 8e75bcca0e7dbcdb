"""Series of nights with known answers."""

from __future__ import annotations

import numpy as np

from netproof.history.changes import Change, ChangeKind, Followed
from netproof.history.followers import follow_all

NOISE = 0.02
"""Standard deviation of a night, relative."""


def quiet(seed: int, nights: int = 80, noise: float = NOISE) -> list[float]:
    """A series at 100 with normal noise, and no change."""
    return (100 * np.exp(noise * np.random.default_rng(seed).normal(size=nights))).tolist()


def changed(values: list[float], *changes: tuple[int, float]) -> list[float]:
    """The series with all values from a night on so many times as large."""
    for begin, factor in changes:
        values = [v * factor if night >= begin else v for night, v in enumerate(values)]
    return values


def steps(followed: Followed) -> list[Change]:
    """The steps of what was found."""
    return [change for change in followed.changes if change.kind is ChangeKind.STEP]


def follow(values, accepted=()) -> Followed:
    """One series alone."""
    return follow_all([values], [accepted])[0]
