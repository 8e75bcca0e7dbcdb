"""A series' earlier changes, and the state of series after a night, to continue from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netproof.history.changes import Change, ChangeKind
from netproof.history.night import Estimate, Floats


@dataclass
class OpenStep:
    """A step that a series is in, and the level to return to where it ends.

    ``nights`` made the level before, ``known`` is its estimate, ``prior`` the noise known before
    it; ``since`` and ``long_ago`` are the series' own of that time.
    """

    index: int
    found: int
    nights: list[int]
    known: Estimate
    prior: float
    since: int
    long_ago: Floats


@dataclass(frozen=True)
class BegunLevel:
    """An intended new level without a found change; ``level``: that before it."""

    index: int
    level: float


@dataclass
class SeriesPast:
    """A series' past: changes that are over, and steps and a drift that it is in.

    ``aside``: its last night, as a bad one, until the next shows whether it is.
    """

    over: list[Change | BegunLevel] = field(default_factory=list)
    steps: list[OpenStep] = field(default_factory=list)
    drift: Change | None = None
    aside: Change | None = None


NO_PAST = SeriesPast()


@dataclass(frozen=True)
class FollowedState:
    """State of series after a night, to continue from.

    ``logs``: series x nights, the values so far; ``accepted``: of each series, the nights at which
    an intended level begins; ``arrays`` and ``past``: those of ``Followers``, the latter of the
    series that have any.
    """

    logs: Floats
    accepted: tuple[frozenset[int], ...]
    arrays: dict[str, NDArray[Any]]
    past: dict[int, SeriesPast]


def read_past(values: Mapping[str, Any]) -> SeriesPast:
    """Read a series' past from the plain values of its fields.

    Raise KeyError, TypeError or ValueError for invalid values.
    """
    return SeriesPast(
        [BegunLevel(**one) if "level" in one else _change(one) for one in values["over"]],
        [
            OpenStep(
                **{
                    **one,
                    "known": Estimate(**{key: np.array(v) for key, v in one["known"].items()}),
                    "long_ago": np.array(one["long_ago"]),
                }
            )
            for one in values["steps"]
        ],
        None if values["drift"] is None else _change(values["drift"]),
        None if values["aside"] is None else _change(values["aside"]),
    )


def _change(values: Mapping[str, Any]) -> Change:
    return Change(**{**values, "kind": ChangeKind(values["kind"])})
