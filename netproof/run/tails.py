"""The tests of the times of single calls: one job of a long PingPong, and what reads it.

They are generated only where somebody says for how long, ``-S tails_seconds=60``, so that an
acceptance run has none of it.
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
    """For how long, and what is sent; in both tests, so that ``-S`` sets it in both."""

    tails_seconds = variable(float, value=0.0)
    tails_bytes = variable(int, value=SHORT_BYTES)

    @run_after("init")
    def insist_on_seconds(self) -> None:
        """Nowhere without them."""
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
        question = tails.TailsQuestion(
            where, extras, self.tails_seconds, self.tails_bytes, tuple(srun)
        )
        tails.write_question(stage, question)
        self.write_files(tails.script(question, stage), tails.size_files(question), [])


class TailsCheck(JobRead, ForLong):
    """The long launch was made; what it says is for whoever reads the report.

    Its record has it, ``netproof_tails``.
    """

    tags = {"load"}
    launched_by: type[TailsLaunches]
    netproof_kind = variable(str, value="tails", loggable=True)

    @sanity_function
    def is_there(self) -> bool:
        """The long launch is whole."""
        self.record(netproof_tails=self.left_by_job(tails.of_job).as_json())
        return True
