"""The tests of the times of single calls: one job of a long PingPong, and what reads it.

They are generated only where somebody says for how long, ``-S tails_seconds=60``, so that an
acceptance run has none of it.
"""

from __future__ import annotations

from pathlib import Path

import reframe as rfm
import reframe.utility.udeps as udeps
from reframe.core.builtins import run_after, run_before, sanity_function, variable
from reframe.core.exceptions import ReframeError, SanityError

from netproof.benchmarks.registry import OF_PAIRS
from netproof.congestion import tails
from netproof.congestion.turns import SHORT_BYTES
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.run.jobs import Job, environments_of, name_of
from netproof.run.logged import Logged
from netproof.session.job_files import Incomplete
from netproof.site.partition import Partition

KEPT_FILES = [tails.QUESTION_FILE, tails.CALLS_FILE, tails.LINES_FILE, tails.WATCH_FILE]


class ForLong(Logged):
    """For how long, and what is sent; in both tests, so that ``-S`` sets it in both."""

    tails_seconds = variable(float, value=0.0)
    tails_bytes = variable(int, value=SHORT_BYTES)

    @run_after("init")
    def insist_on_seconds(self) -> None:
        """Nowhere without them."""
        asked = self.tails_seconds > 0
        self.valid_systems = ["*"] if asked else []
        self.valid_prog_environs = environments_of(OF_PAIRS.name) if asked else []


class TailsLaunches(Job, ForLong):
    """A PingPong between two nodes of a partition, each call timed."""

    num_tasks = 2
    num_tasks_per_node = 1
    keep_files = [*Job.keep_files, *KEPT_FILES]
    tags = {"load"}

    def cases(self) -> list[Case]:
        """None that an acceptance run has."""
        return []

    @run_before("run")
    def plan_launches(self) -> None:
        """The long launch is drawn by the script, which knows how long a call takes."""
        extras = self.current_partition.extras
        partition = Partition.model_validate(extras)
        if not 0 < self.tails_bytes <= partition.max_message_bytes:
            raise ReframeError(
                f"messages of {self.tails_bytes} bytes: the largest of"
                f" {self.current_partition.fullname} are of {partition.max_message_bytes}"
            )
        stage, srun = Path(self.stagedir), self.take_over_srun(partition)
        where = (self.current_system.name, self.current_partition.name, self.current_environ.name)
        question = tails.Question(where, extras, self.tails_seconds, self.tails_bytes, tuple(srun))
        tails.write_question(stage, question)
        self.write_files(tails.script(question, stage), tails.size_files(question), [])


class TailsCheck(rfm.RunOnlyRegressionTest, ForLong):
    """The long launch was made; what it says is for whoever reads the report.

    ``netproof_tails`` holds it, for the session's report.
    """

    local = True
    sourcesdir = None
    executable = "true"
    tags = {"load"}
    launched_by: type[TailsLaunches]
    netproof_kind = variable(str, value="tails", loggable=True)
    netproof_tails = variable(dict, value={}, loggable=True)

    @run_after("init")
    def wait_for_launches(self) -> None:
        """Run once the job is done."""
        self.depends_on(name_of(self.launched_by), udeps.by_case)

    @sanity_function
    def is_there(self) -> bool:
        """The long launch is whole."""
        job = self.getdep(name_of(self.launched_by))
        try:
            tail = tails.of_job(Path(job.stagedir), str(job.job.jobid))
        except Incomplete as error:
            raise SanityError("; ".join(error.reasons)) from None
        except (NetproofError, OSError) as error:
            raise SanityError(str(error)) from None
        self.netproof_tails = tail.as_json()
        return True
