"""Run the launches of a plan inside a Slurm job, or print their commands.

``python -m netproof.jobs PLAN [--dry-run]``
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

from netproof.errors import NetproofError
from netproof.jobs.job import ENDED, JobEnded, RunningJob
from netproof.session.plan import JobPlan

DRY_RUN = "--dry-run"

TASKS = {
    "launches": ("job", "run"),
    "acceptance": ("acceptance", "run"),
    "pairs": ("pair_rounds", "run"),
    "load": ("demanded", "run_load"),
    "tails": ("demanded", "run_tails"),
    "algorithms": ("demanded", "run_algorithms"),
    "setting": ("demanded", "run_setting"),
}
"""Module and function of each task; what judges is imported only where something is judged."""


def main(arguments: list[str]) -> int:
    """Run the plan and return the exit status: 0, or 3 with the reason on standard error."""
    paths = [one for one in arguments if one != DRY_RUN]
    if len(paths) != 1:
        print("usage: python -m netproof.jobs PLAN [--dry-run]", file=sys.stderr)
        return 2
    path = Path(paths[0])
    try:
        planned = JobPlan.read(path)
        job = RunningJob(path.absolute().parent, planned, dry=DRY_RUN in arguments)
        module, function = TASKS[planned.task]
        # Imported while nothing is measured yet.
        run: Callable[[RunningJob], None] = getattr(
            importlib.import_module(f"netproof.jobs.{module}"), function
        )
        with job.running():
            if planned.describe_nodes:
                job.describe()
            run(job)
    except (JobEnded, KeyboardInterrupt):
        return ENDED
    except (NetproofError, OSError) as error:
        print(f"netproof.jobs: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
