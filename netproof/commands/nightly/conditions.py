"""Conditions of a night, and the jobs that cannot be measured in it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from netproof.errors import NetproofError
from netproof.session.left import Left
from netproof.site import slurm
from netproof.site.jobs import PlannedJob, nodes_of
from netproof.site.matrix import Matrix

ANSWER_S = 60.0
"""Seconds that a night waits for nodes that do not answer slurmctld, where jobs need them."""
_LOOK_AGAIN_S = 1.0


def enough_room(folders: Iterable[Path], least_mb: int) -> None:
    """Check that every folder's file system has ``least_mb`` MB (10⁶ bytes) free.

    Folders may be missing yet. Raises NetproofError naming the fullest, of several on one file
    system the first, and OSError where one cannot be asked.
    """
    # Each file system is asked once: between two answers others write to it.
    first: dict[int, Path] = {}
    for folder in folders:
        first.setdefault(_there(folder).stat().st_dev, folder)
    free = {folder: shutil.disk_usage(_there(folder)).free / 1e6 for folder in first.values()}
    fullest = min(free, key=free.__getitem__)
    if free[fullest] < least_mb:
        raise NetproofError(
            f"{fullest}: the file system is too full: {free[fullest]:.0f} MB are free, and a night"
            f" needs {least_mb} (--least-free); nothing was measured, what was there is untouched"
        )


def _there(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def cannot_run(
    several: Iterable[PlannedJob],
    matrix: Matrix,
    configuration: dict[str, Any],
    *,
    wait_s: float = ANSWER_S,
) -> dict[PlannedJob, Left]:
    """Return the jobs that Slurm cannot run now, and why: partitions not up, too few nodes.

    Where a job only lacks nodes that do not answer, Slurm is asked again for ``wait_s`` seconds: a
    node that somebody has just resumed is ``idle*`` until slurmctld has asked it. ``configuration``
    as ``site.gather`` returns it: its ``access`` names Slurm's partition. If it names none, or one
    unknown to Slurm, Slurm itself refuses the job. Raises NetproofError where Slurm does not
    answer.
    """
    system = matrix.cases[0].system
    (entries,) = [s["partitions"] for s in configuration["systems"] if s["name"] == system]
    access = {entry["name"]: slurm.names_in(entry.get("access", [])) for entry in entries}
    needed = {job: nodes_of(job, matrix) for job in several}
    ends = time.monotonic() + wait_s
    while True:
        known = slurm.partitions()
        found, soon = {}, False
        for job, nodes in needed.items():
            named = [known[name] for name in access[job.partition] if name in known]
            reasons = [one.cannot_run(nodes) for one in named]
            if reasons and all(reasons):
                found[job] = Left("; ".join(reasons), planned=False)
                soon |= any(one.may_soon_run(nodes) for one in named)
        if not soon or time.monotonic() >= ends:
            return found
        time.sleep(_LOOK_AGAIN_S)
