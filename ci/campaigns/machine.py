"""The machine around a run: quiet before it, measured during it, limited in time."""

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
    """What the settings of all campaigns have.

    ``quiet_share``: the most that others may use of all CPUs over ``quiet_s`` seconds before a run
    begins, for which it waits ``quiet_limit_s``; ``run_limit_s``: after which a run is ended.
    """

    quiet_share: float
    quiet_s: float
    quiet_limit_s: float
    run_limit_s: float


@dataclass(frozen=True)
class PlainSettings:
    """The settings of a campaign that has no others."""

    seed: int
    quiet_share: float
    quiet_s: float
    quiet_limit_s: float
    run_limit_s: float


def busy_share(seconds: float, place: Path = Path("/proc/stat")) -> float:
    """Share of all CPUs that was used over so many seconds; steal counts as used (proc(5))."""
    idle, total = _ticks(place)
    time.sleep(seconds)
    later_idle, later_total = _ticks(place)
    if later_total <= total:
        raise CannotRunError(f"{place}: the CPUs' time stands still; measure for longer")
    return 1 - (later_idle - idle) / (later_total - total)


def _ticks(place: Path) -> tuple[int, int]:
    fields = place.read_text().splitlines()[0].split()
    # What guests used is in user and nice as well.
    ticks = [int(field) for field in fields[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def wait_until_quiet(settings: Settings) -> tuple[float, float]:
    """Wait until nothing else uses the machine: seconds waited, and the share still used.

    Raises CannotRunError where it does not become so.
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
    """Seconds since the kernel's start in which some task waited for a CPU; None where not told."""
    try:
        line = PRESSURE.read_text().splitlines()[0]
        return int(line.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError, IndexError):
        return None


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """TooLongError where what is done within takes longer."""

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
    """What of the machine decides how hard the conditions are."""
    place = Path("/proc/sys/kernel/sched_autogroup_enabled")
    grouped = place.read_text().strip() == "1" if place.is_file() else None
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "autogroup": grouped,
    }
