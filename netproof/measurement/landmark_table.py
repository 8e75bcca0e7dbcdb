"""The landmarks of a curve as one table: their names, and the meaning of their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

KIB = 1024


class Better(StrEnum):
    """The better end of a landmark."""

    SMALLER = "smaller"
    LARGER = "larger"
    NEITHER = "neither"


@dataclass(frozen=True)
class Landmark:
    """One landmark that is a number.

    ``name``: its key in sessions, stores and references. ``unit``: of its reference, as ReFrame
    prints it; ``%``: stored as a share, 1 being 100 %. ``title``: its name in a sentence.
    ``at_size``: of a rate, its size in bytes; ``whole``: a whole number.
    """

    name: str
    unit: str
    better: Better
    title: str
    at_size: int | None = None
    whole: bool = False

    @property
    def per_cent(self) -> bool:
        """Check whether it is stored as a share, and referred to in per cent."""
        return self.unit == "%"


_RATES = [
    Landmark(f"rate_{kib}_kib_mb_s", "MB/s", Better.LARGER, f"rate at {kib} KiB", at_size=kib * KIB)
    for kib in (1, 4, 16, 64)
]

LANDMARKS = {
    one.name: one
    for one in (
        Landmark("latency_us", "us", Better.SMALLER, "latency"),
        Landmark("peak_mb_s", "MB/s", Better.LARGER, "peak bandwidth"),
        Landmark("peak_size", "B", Better.NEITHER, "size of the peak", whole=True),
        Landmark("half_power_size", "B", Better.NEITHER, "half-power size", whole=True),
        *_RATES,
        Landmark("asymptotic_mb_s", "MB/s", Better.LARGER, "asymptotic bandwidth"),
        Landmark("half_performance_bytes", "B", Better.NEITHER, "half-performance length"),
        Landmark("line_rate_share", "%", Better.LARGER, "share of the line rate"),
        Landmark("paired_mb_s", "MB/s", Better.LARGER, "bandwidth of the twin"),
        Landmark("paired_share", "%", Better.LARGER, "share of the twin"),
    )
}
"""Landmarks by name, in the order of tables; not the eager limit, which has two sides."""

RATES = {name: one.at_size for name, one in LANDMARKS.items() if one.at_size is not None}
"""The size in bytes of each landmark that is a rate at one size."""
