"""A planned campaign, and the result of one of its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

SomeSettings = TypeVar("SomeSettings")
SomeRun = TypeVar("SomeRun")
SomeJudged = TypeVar("SomeJudged")

NOT_JUDGED = "not judged"
"""Result of a run that broke; it is repeated."""


@dataclass(frozen=True)
class Campaign(Generic[SomeSettings, SomeRun]):
    """A campaign's settings, its runs in order, its code's digest and its machine."""

    settings: SomeSettings
    runs: tuple[SomeRun, ...]
    code: str
    machine: Mapping[str, Any]


@dataclass(frozen=True)
class Result(Generic[SomeRun, SomeJudged]):
    """A run with its result.

    ``wall_s``: seconds to measure and judge it; ``before`` and ``after``: load averages over 1, 5
    and 15 minutes, () if it ended before.
    """

    run: SomeRun
    judged: SomeJudged
    started: str
    wall_s: float
    before: tuple[float, ...]
    after: tuple[float, ...]
