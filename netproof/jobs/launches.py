"""Launch what is planned, round by round, and decide after each what is launched again."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection

from netproof.jobs.job import RunningJob

Decide = Callable[[int], Collection[str]]
"""From the number of a round, from 1, to the labels that are decided after it."""


def run(job: RunningJob, decide: Decide | None = None) -> None:
    """Launch the steps of all rounds until their labels are decided.

    What cannot be decided is launched on, and ``RunningJob.faults`` has the reason.
    """
    for number, steps in enumerate(job.plan.rounds, 1):
        wanted = [step for step in steps if step.label not in job.closed]
        if not wanted:
            return
        for step in wanted:
            job.launch(step)
        if decide is not None and not job.dry:
            try:
                job.closed = set(decide(number))
            except Exception as error:
                traceback.print_exc()
                job.faults.append(f"after round {number} nothing was decided: {error!r}")
