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
    prints it; ``%``: stored as a share, 1 being 100 %. ``title``: its name in a sentence. ``how``:
    its definition. ``at_size``: of a rate, its size in bytes; ``whole``: a whole number.
    """

    name: str
    unit: str
    better: Better
    title: str
    how: str
    at_size: int | None = None
    whole: bool = False

    @property
    def per_cent(self) -> bool:
        """Check whether it is stored as a share, and referred to in per cent."""
        return self.unit == "%"


def _rate(kib: int) -> Landmark:
    title, how = f"rate at {kib} KiB", f"bandwidth at {kib} KiB"
    name = f"rate_{kib}_kib_mb_s"
    return Landmark(name, "MB/s", Better.LARGER, title, how, at_size=kib * KIB)


LANDMARKS = {
    one.name: one
    for one in (
        Landmark(
            "latency_us",
            "us",
            Better.SMALLER,
            "latency",
            "median one-way time of short messages",
        ),
        Landmark("peak_mb_s", "MB/s", Better.LARGER, "peak bandwidth", "largest bandwidth"),
        Landmark(
            "peak_size",
            "B",
            Better.NEITHER,
            "size of the peak",
            "size at which it is reached",
            whole=True,
        ),
        Landmark(
            "half_power_size",
            "B",
            Better.NEITHER,
            "half-power size",
            "least size with half of it",
            whole=True,
        ),
        *map(_rate, (1, 4, 16, 64)),
        Landmark(
            "asymptotic_mb_s",
            "MB/s",
            Better.LARGER,
            "asymptotic bandwidth",
            "r∞, what the largest messages tend to",
        ),
        Landmark(
            "half_performance_bytes",
            "B",
            Better.NEITHER,
            "half-performance length",
            "n½, the message that has half of it",
        ),
        Landmark(
            "line_rate_share",
            "%",
            Better.LARGER,
            "share of the line rate",
            "r∞ over the line rate, 1 is all of it",
        ),
        Landmark(
            "paired_mb_s",
            "MB/s",
            Better.LARGER,
            "bandwidth of the twin",
            "bandwidth of the link's healthy twin",
        ),
        Landmark(
            "paired_share",
            "%",
            Better.LARGER,
            "share of the twin",
            "what the link carries of that, 1 is as much",
        ),
    )
}
"""Landmarks by name, in the order of tables; not the eager limit, which has two sides."""

RATES = {name: one.at_size for name, one in LANDMARKS.items() if one.at_size is not None}
"""The size in bytes of each landmark that is a rate at one size."""
