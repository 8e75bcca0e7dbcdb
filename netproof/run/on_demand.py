"""Tests outside acceptance runs: a job on demand, and the test that reads it."""

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
    """A job without cases of an acceptance run."""

    def cases(self) -> list[Case]:
        """Return no cases of an acceptance run."""
        return []

    def usable_nodes(self, most: int, least: int, why: str) -> int:
        """Return the number of usable nodes, at most ``most`` if that is not 0.

        ``why``: the reason for ``least``, for the message. A dry run uses the site's number. Raises
        ReframeError if they are fewer than ``least``.
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
    """A test that reads a job's results."""

    local = True
    sourcesdir = None
    executable = "true"
    launched_by: type[Job]

    def launching_test(self) -> str:
        """Return the name of the job."""
        return name_of(self.launched_by)

    @run_after("init")
    def wait_for_launches(self) -> None:
        """Depend on the job."""
        self.depends_on(self.launching_test(), udeps.by_case)

    def left_by_job(self, read: Callable[[Path, str], Read]) -> Read:
        """Return what ``read`` finds in the job's folder; raise SanityError with every reason."""
        job = self.getdep(self.launching_test())
        try:
            return read(Path(job.stagedir), str(job.job.jobid))
        except Incomplete as error:
            raise SanityError("; ".join(error.reasons)) from None
        except (NetproofError, OSError) as error:
            raise SanityError(str(error)) from None
