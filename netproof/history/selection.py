"""Selection of a history's series, and the quantities that are followed.

The command's options are made of these, so nothing is imported here that takes long.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from netproof.history.series import Series
    from netproof.measurement.case import Case

NEWEST_SESSIONS = 200
"""Sessions looked back on by default: what detection remembers and a few."""


STRIDE = 50
"""Nights for which the first of them stays the same, so that each adds its own values alone."""


class Quantity(StrEnum):
    """Followed quantities of a case: landmarks, the curve's mean, score, CPU cost."""

    LATENCY = "latency_us"
    PEAK = "peak_mb_s"
    ASYMPTOTIC = "asymptotic_mb_s"
    RATE_1_KIB = "rate_1_kib_mb_s"
    RATE_4_KIB = "rate_4_kib_mb_s"
    RATE_16_KIB = "rate_16_kib_mb_s"
    RATE_64_KIB = "rate_64_kib_mb_s"
    MEAN = "mean_us"
    SCORE = "score"
    CPU_COST = "cpu_s_per_gb"

    @property
    def rising_is_worse(self) -> bool:
        """Check whether larger is worse: for a time, and not for a rate or a score."""
        from netproof.measurement.landmarks import LANDMARKS, Better

        landmark = LANDMARKS.get(self)
        return landmark.better is Better.SMALLER if landmark else self is not Quantity.SCORE

    @property
    def label(self) -> str:
        """Return its name in a sentence."""
        from netproof.measurement.landmarks import LANDMARKS

        landmark = LANDMARKS.get(self)
        return landmark.title if landmark else _TITLES[self]

    @property
    def unit(self) -> str:
        """Return µs, MB/s, CPU seconds per 10⁹ bytes, or nothing."""
        if self.endswith("_us"):
            return "µs"
        if self is Quantity.CPU_COST:
            return "CPU s/GB"
        return "MB/s" if self.endswith("_mb_s") else ""


_TITLES = {
    Quantity.MEAN: "mean time",
    Quantity.SCORE: "score",
    Quantity.CPU_COST: "CPU time per GB",
}


@dataclass(frozen=True)
class Selection:
    """Some of the series: those that match every criterion given.

    ``cases``: regular expressions, each to be found in ``PARTITION ENVIRONMENT BENCHMARK …`` of the
    case, ignoring case; ``partition``, ``environment``, ``quantity``: None for any. Raise
    NetproofError for an invalid expression.
    """

    cases: tuple[str, ...] = ()
    partition: str | None = None
    environment: str | None = None
    quantity: Quantity | None = None

    def __post_init__(self) -> None:
        # The command line names a selection's defaults, and this takes a third of its start.
        from netproof.intake.models import expression

        for text in self.cases:
            expression(text, search=True)

    @property
    def everything(self) -> bool:
        """Check whether no criterion is given."""
        return self == Selection()

    def covers(self, series: Series) -> bool:
        """Check whether the series is selected, of a pool at least half of its cases."""
        if self.quantity not in (None, series.quantity):
            return False
        return 2 * sum(map(self._has, series.cases)) >= len(series.cases)

    def _has(self, case: Case) -> bool:
        text = f"{case.partition} {case.environment} {case.what()}"
        return (
            self.partition in (None, case.partition)
            and self.environment in (None, case.environment)
            and all(re.search(expression, text, re.IGNORECASE) for expression in self.cases)
        )

    def __str__(self) -> str:
        """Return its text in a sentence."""
        parts = [
            *([f"partition {self.partition}"] if self.partition else []),
            *([f"environment {self.environment}"] if self.environment else []),
            *([f"cases with {' and '.join(map(repr, self.cases))}"] if self.cases else []),
            *([f"only {self.quantity.label}"] if self.quantity else []),
        ]
        return ", ".join(parts) or "everything"
