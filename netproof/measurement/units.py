"""Conversion of all units: bytes, µs, MB/s of 10⁶ bytes, Mbit/s of 10⁶ bits."""

from __future__ import annotations

import math

from netproof.errors import NetproofError

BITS_PER_BYTE = 8
MEBI = 2**20


def bandwidth_mb_s(size_bytes: float, time_us: float) -> float:
    """Return the bandwidth in MB/s (10⁶ bytes/s) of ``size_bytes`` moved in ``time_us`` > 0."""
    return size_bytes / time_us


def mbit_s(bandwidth: float) -> float:
    """Return the Mbit/s (10⁶) of a bandwidth in MB/s (10⁶)."""
    return bandwidth * BITS_PER_BYTE


def mb_s(mbit: float) -> float:
    """Return the MB/s (10⁶) of a rate in Mbit/s (10⁶)."""
    return mbit / BITS_PER_BYTE


def us(seconds: float) -> float:
    """Return the µs of a time in seconds."""
    return seconds * 1e6


def line_rate_share(bandwidth_mb_s: float, line_rate_mb_s: float) -> float:
    """Return a bandwidth over the line rate, both in MB/s, each way.

    Raise NetproofError for a line rate that is not positive and finite.
    """
    if not (math.isfinite(line_rate_mb_s) and line_rate_mb_s > 0):
        raise NetproofError(f"{line_rate_mb_s} MB/s is no line rate: it is above 0")
    return bandwidth_mb_s / line_rate_mb_s
