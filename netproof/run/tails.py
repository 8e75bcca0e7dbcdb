"""Tests of the times of single calls: a job of a long PingPong, and the test that reads it.

They are generated only with a duration, ``-S tails_seconds=60``, so an acceptance run has none.
"""

from __future__ import annotations

from pathlib import Path

from reframe.core.builtins import run_after, run_before, sanity_function, variable
from reframe.core.exceptions import ReframeError

from netproof.benchmarks.registry import OF_PAIRS
from netproof.congestion import tails
from netproof.congestion.turns import SHORT_BYTES
from netproof.run.jobs import environments_of
from netproof.run.logged import Logged
from netproof.run.on_demand import DemandedJob, JobRead
from netproof.site.partition import Partition

KEPT_FILES = [tails.QUESTION_FILE, tails.CALLS_FILE, tails.LINES_FILE, tails.WATCH_FILE]


class ForLong(Logged):
    """Duration and message size; in both tests, so that ``-S`` sets them in both."""

    tails_seconds = variable(float, value=0.0)
    tails_bytes = variable(int, value=SHORT_BYTES)

    @run_after("init")
    def insist_on_seconds(self) -> None:
        """Run nowhere without a duration."""
        asked = self.tails_seconds > 0
        self.valid_systems = ["*"] if asked else []
        self.valid_prog_environs = environments_of(OF_PAIRS.name) if asked else []


class TailsLaunches(DemandedJob, ForLong):
    """A PingPong between two nodes of a partition, each call timed."""

    num_tasks = 2
    num_tasks_per_node = 1
    keep_files = [*DemandedJob.keep_files, *KEPT_FILES]
    tags = {"load"}

    @run_before("run")
    def plan_launches(self) -> None:
        """Write the question for the script, which plans the long launch by a call's duration."""
        extras = self.current_partition.extras
        partition = Partition.model_validate(extras)
        if not 0 < self.tails_bytes <= partition.max_message_bytes:
            raise ReframeError(
                f"messages of {self.tails_bytes} bytes: the largest of"
                f" {self.current_partition.fullname} are of {partition.max_message_bytes}"
            )
        stage, srun = Path(self.stagedir), self.take_over_srun(partition)
        where = (self.current_system.name, self.current_partition.name, self.current_environ.name)
        question = tails.TailsQuestion(
            where, extras, self.tails_seconds, self.tails_bytes, tuple(srun)
        )
        tails.write_question(stage, question)
        self.write_files(tails.script(question, stage), tails.size_files(question), [])


class TailsCheck(JobRead, ForLong):
    """Check that the long launch was made; the report shows its results.

    Its record has the launch, ``netproof_tails``.
    """

    tags = {"load"}
    launched_by: type[TailsLaunches]
    netproof_kind = variable(str, value="tails", loggable=True)

    @sanity_function
    def is_there(self) -> bool:
        """Check that the long launch is whole."""
        self.write_record(netproof_tails=self.left_by_job(tails.of_job).as_json())
        return True
