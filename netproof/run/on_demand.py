"""Tests that an acceptance run has not: a job that somebody asks for, and what reads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import reframe as rfm
import reframe.utility.udeps as udeps
from reframe.core.builtins import run_after
from reframe.core.exceptions import ReframeError, SanityError

from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.run.all_nodes import count_usable
from netproof.run.jobs import Job, name_of
from netproof.run.logged import Logged
from netproof.run.recorded import RecordedTest
from netproof.session.job_files import Incomplete

Read = TypeVar("Read")


class DemandedJob(Job):
    """A job of which nothing is expected in an acceptance run."""

    def cases(self) -> list[Case]:
        """None that an acceptance run has."""
        return []

    def usable_nodes(self, most: int, least: int, why: str) -> int:
        """All usable nodes, or ``most`` if that is not 0; ReframeError where they are too few.

        ``why``: what takes so many, for the message. A dry run believes the site's number.
        """
        there = self.current_partition.extras["nodes"]
        if not self.is_dry_run():
            there = count_usable(self.current_partition.access, there)
        taken = min(there, most or there)
        if taken < least:
            raise ReframeError(
                f"{self.current_partition.fullname} has {taken} usable nodes for this, and {why}"
            )
        return taken


class JobRead(rfm.RunOnlyRegressionTest, Logged, RecordedTest):
    """Reads what a job left, once it is done."""

    local = True
    sourcesdir = None
    executable = "true"
    launched_by: type[Job]

    def launching_test(self) -> str:
        """Name of the job."""
        return name_of(self.launched_by)

    @run_after("init")
    def wait_for_launches(self) -> None:
        """Run once the job is done."""
        self.depends_on(self.launching_test(), udeps.by_case)

    def left_by_job(self, read: Callable[[Path, str], Read]) -> Read:
        """What ``read`` finds in the job's folder, under its id; SanityError with every reason."""
        job = self.getdep(self.launching_test())
        try:
            return read(Path(job.stagedir), str(job.job.jobid))
        except Incomplete as error:
            raise SanityError("; ".join(error.reasons)) from None
        except (NetproofError, OSError) as error:
            raise SanityError(str(error)) from None
