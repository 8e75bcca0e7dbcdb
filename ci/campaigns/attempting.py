"""One run of a campaign: prepare the testbed, wait for a quiet machine, measure."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from ci.campaigns.cluster import Testbed
from ci.campaigns.errors import CannotRunError, TooLongError
from ci.campaigns.keeping import make_each
from ci.campaigns.machine import limited, wait_until_quiet
from ci.campaigns.records import Campaign, Result
from ci.campaigns.telling import now
from netproof.errors import NetproofError

Judged = TypeVar("Judged")
Run = TypeVar("Run")


def attempt(
    run: Run,
    campaign: Campaign[Any, Run],
    testbed: Testbed,
    topology: Path,
    measure: Callable[[], Judged],
    not_judged: Callable[[str], Judged],
    planted: AbstractContextManager[None] | None = None,
) -> Result[Run, Judged]:
    """Measure once, while ``planted`` is in effect on the testbed.

    ``not_judged`` turns the reason of a failed run into its result. Raises CannotRunError if no
    run is possible at all.
    """
    settings = campaign.settings
    started, wall_s, before, after = now(), 0.0, (), ()
    try:
        testbed.up(topology)
        # Wait before planting: a planted busy CPU is not noise.
        wait_until_quiet(settings)
        before = os.getloadavg()
        average = ", ".join(f"{one:.2f}" for one in before)
        print(f"{run.number}/{len(campaign.runs)} {run}: load average {average}", flush=True)
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
        # Nothing of the failure may disturb the next run.
        testbed.rebuild()
    return Result(run, judged, started, wall_s, before, after)


def make_all(
    folder: Path,
    left: Sequence[Run],
    make: Callable[[Run, Path], Result[Run, Judged]],
    testbed: Testbed,
    silent: str,
) -> None:
    """Make these runs, print a line on each, and leave the testbed as it was found.

    ``silent``: text for a run without sentences.
    """

    def report(result: Result[Run, Judged]) -> None:
        said = " · ".join(result.judged.said) or silent
        print(f"  {result.judged.found}, {result.wall_s:.0f} s: {said}", flush=True)

    try:
        make_each(folder, left, make, report)
    finally:
        testbed.restore()
