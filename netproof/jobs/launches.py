"""Launch the steps of a plan in their order."""

from __future__ import annotations

from netproof.jobs.job import RunningJob


def run(job: RunningJob) -> None:
    """Launch all steps."""
    for steps in job.plan.rounds:
        for step in steps:
            job.launch(step)
