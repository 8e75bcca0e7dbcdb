"""One run of a campaign: the testbed as it has to be, a quiet machine, and what becomes of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from ci.campaigns.cluster import Testbed
from ci.campaigns.errors import CannotRunError, TooLongError
from ci.campaigns.machine import Settings, limited, wait_until_quiet
from ci.campaigns.telling import now
from netproof.errors import NetproofError

Judged = TypeVar("Judged")


@dataclass(frozen=True)
class Attempt(Generic[Judged]):
    """What became of a run, when it began and how long it took, and load averages around it."""

    judged: Judged
    started: str
    wall_s: float
    before: tuple[float, ...]
    after: tuple[float, ...]


def attempt(
    title: str,
    settings: Settings,
    testbed: Testbed,
    topology: Path,
    measure: Callable[[], Judged],
    not_judged: Callable[[str], Judged],
    planted: AbstractContextManager[None] | None = None,
) -> Attempt[Judged]:
    """Measure once, within what ``planted`` does to the testbed.

    ``not_judged`` makes a run of which nothing can be said from its reason. Raises CannotRunError
    where no run can be made at all.
    """
    started, wall_s, before, after = now(), 0.0, (), ()
    try:
        testbed.up(topology)
        # A busy CPU that is planted is no noise.
        wait_until_quiet(settings)
        before = os.getloadavg()
        average = ", ".join(f"{one:.2f}" for one in before)
        print(f"{title}: load average {average}", flush=True)
        with planted or nullcontext():
            begun = time.monotonic()
            try:
                with limited(settings.run_limit_s):
                    judged = measure()
            finally:
                wall_s, after = time.monotonic() - begun, os.getloadavg()
    except CannotRunError:
        raise
    except (NetproofError, TooLongError, OSError) as error:
        judged = not_judged(str(error))
        # Of what went wrong nothing may be left to disturb the next run.
        testbed.begin_anew()
    return Attempt(judged, started, wall_s, before, after)
