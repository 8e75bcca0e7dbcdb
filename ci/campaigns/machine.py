"""The machine around a run: wait until it is quiet, measure its load, limit the run's time."""

from __future__ import annotations

import os
import platform
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from ci.campaigns.errors import CannotRunError, TooLongError

PRESSURE = Path("/proc/pressure/cpu")


class Settings(Protocol):
    """Settings of all campaigns.

    ``quiet_share``: share of all CPUs that others may use over ``quiet_s`` seconds before a run;
    it waits ``quiet_limit_s`` for that. ``run_limit_s``: after which a run is ended.
    """

    quiet_share: float
    quiet_s: float
    quiet_limit_s: float
    run_limit_s: float


@dataclass(frozen=True)
class PlainSettings:
    """Settings of a campaign without further ones."""

    seed: int
    quiet_share: float
    quiet_s: float
    quiet_limit_s: float
    run_limit_s: float


def busy_share(seconds: float, place: Path = Path("/proc/stat")) -> float:
    """Return the share of all CPUs used over ``seconds``; steal counts as used (proc(5))."""
    idle, total = _ticks(place)
    time.sleep(seconds)
    later_idle, later_total = _ticks(place)
    if later_total <= total:
        raise CannotRunError(f"{place}: the CPUs' time stands still; measure for longer")
    return 1 - (later_idle - idle) / (later_total - total)


def _ticks(place: Path) -> tuple[int, int]:
    fields = place.read_text().splitlines()[0].split()
    # The fields user and nice include guests.
    ticks = [int(field) for field in fields[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def wait_until_quiet(settings: Settings) -> tuple[float, float]:
    """Wait until the machine is quiet; return the seconds waited and the share still used.

    Raises CannotRunError if it does not become quiet.
    """
    begun = time.monotonic()
    while True:
        share = busy_share(settings.quiet_s)
        waited = time.monotonic() - begun
        if share <= settings.quiet_share:
            return waited, share
        if waited > settings.quiet_limit_s:
            raise CannotRunError(
                f"the machine is not quiet: others use {share:.0%} of its CPUs, not at most"
                f" {settings.quiet_share:.0%}, after {waited:.0f} s of waiting. End them and go on"
                " with --resume, or say --quiet-share"
            )


def pressure_seconds() -> float | None:
    """Return seconds since boot in which a task waited for a CPU; None if the kernel has none."""
    try:
        line = PRESSURE.read_text().splitlines()[0]
        return int(line.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError, IndexError):
        return None


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TooLongError if the block takes longer."""

    def too_long(_signal: int, _frame: FrameType | None) -> None:
        raise TooLongError(f"the run was ended after {seconds:g} s (--run-limit)")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def this_machine() -> dict[str, Any]:
    """Return the machine's facts that decide how hard the conditions are."""
    place = Path("/proc/sys/kernel/sched_autogroup_enabled")
    grouped = place.read_text().strip() == "1" if place.is_file() else None
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "autogroup": grouped,
    }
