"""A benchmark's result: time by message size, and bandwidth where one is defined."""

from __future__ import annotations

import math
from dataclasses import dataclass

from netproof.errors import NetproofError


@dataclass(frozen=True, slots=True)
class Curve:
    """Times over message sizes.

    ``sizes``: bytes of one message, strictly increasing, (0,) for Barrier; ``time_us``: one-way or
    per-call time in µs, finite and not negative; ``bandwidth_mb_s``: MB/s (10⁶ bytes) at each size,
    or None where the benchmark defines none; ``time_min_us``, ``time_avg_us``: where a time is the
    slowest rank's, the fastest rank's and the mean of all, or None where the benchmark prints
    neither. All of equal length, at least one.

    Raise NetproofError where these do not hold.
    """

    sizes: tuple[int, ...]
    time_us: tuple[float, ...]
    bandwidth_mb_s: tuple[float, ...] | None = None
    time_min_us: tuple[float, ...] | None = None
    time_avg_us: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not self.sizes:
            raise NetproofError("a curve needs at least one message size")
        if self.bandwidth_mb_s is not None and not self.bandwidth_mb_s:
            raise NetproofError("a curve's bandwidth is a value for each size, or None")
        if (self.time_min_us is None) != (self.time_avg_us is None):
            raise NetproofError("a curve has the fastest rank's time and the mean, or neither")
        columns = (self.time_us, self.bandwidth_mb_s, self.time_min_us, self.time_avg_us)
        for column in columns:
            if column is None:
                continue
            if len(column) != len(self.sizes):
                raise NetproofError(
                    f"a curve of {len(self.sizes)} sizes cannot hold {len(column)} values"
                )
            for size, value in zip(self.sizes, column, strict=True):
                if not math.isfinite(value) or value < 0:
                    raise NetproofError(f"{value} at {size} bytes is no time or bandwidth")
        for before, after in zip(self.sizes, self.sizes[1:], strict=False):
            if after <= before:
                raise NetproofError(f"a curve's sizes increase: {after} bytes comes after {before}")
        if self.sizes[0] < 0:
            raise NetproofError(f"{self.sizes[0]} is no message size")

    def beginning_at(self, least: int) -> Curve:
        """Return the curve without smaller messages; NetproofError where it has no others."""
        first = sum(size < least for size in self.sizes)
        columns = (self.time_us, self.bandwidth_mb_s, self.time_min_us, self.time_avg_us)
        return Curve(
            self.sizes[first:], *(None if column is None else column[first:] for column in columns)
        )
