"""A campaign as it is planned, and what became of one of its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

SomeSettings = TypeVar("SomeSettings")
SomeRun = TypeVar("SomeRun")
SomeJudged = TypeVar("SomeJudged")

NOT_JUDGED = "not judged"
"""What is found of a run that broke; it is made again."""


@dataclass(frozen=True)
class Campaign(Generic[SomeSettings, SomeRun]):
    """What a campaign is to do: its settings, its runs in order, its code and its machine."""

    settings: SomeSettings
    runs: tuple[SomeRun, ...]
    code: str
    machine: Mapping[str, Any]


@dataclass(frozen=True)
class Result(Generic[SomeRun, SomeJudged]):
    """A run with what became of it.

    ``wall_s``: seconds in which it was measured and judged; ``before`` and ``after``: load averages
    over 1, 5 and 15 minutes, () where it came not so far.
    """

    run: SomeRun
    judged: SomeJudged
    started: str
    wall_s: float
    before: tuple[float, ...]
    after: tuple[float, ...]
