"""Tests outside acceptance runs: a job on demand, and the test that reads it.

Each is generated only if a variable asks for it: the network under load with ``-S aggressors=all``,
times of single calls with ``-S tails_seconds=60``, GPCNeT with ``-S gpcnet_rounds=3``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import reframe as rfm
import reframe.utility.udeps as udeps
from reframe.core.builtins import run_after, run_before, sanity_function, variable
from reframe.core.exceptions import ReframeError, SanityError

from netproof.benchmarks.registry import OF_PAIRS
from netproof.congestion import gpcnet, planning, tails
from netproof.congestion.loaded import AGGRESSORS_FILE, of_job
from netproof.congestion.planning import LEAST_NODES, SHORT_BYTES, Aggressor, Victim, chosen
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.run.jobs import Job, environments_of, name_of
from netproof.run.mixins import OnPartition, RecordedTest
from netproof.run.system_here import count_usable, tree
from netproof.session.job_files import Incomplete

Read = TypeVar("Read")


class OnDemand(OnPartition):
    """Variables of a job and of the test that reads it, so that ``-S`` sets them in both."""

    def run_only_if(
        self, asked: object, environments: Sequence[str], systems: Sequence[str] = ("*",)
    ) -> None:
        """Run nowhere unless it was asked for."""
        self.valid_systems = list(systems) if asked else []
        self.valid_prog_environs = list(environments) if asked else []


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


class JobRead(rfm.RunOnlyRegressionTest, OnPartition, RecordedTest):
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


class UnderLoad(OnDemand):
    """Aggressors and victims.

    ``aggressors``, ``victims``: names separated by commas, or ``all``; ``most_nodes``: most nodes
    of the job, 0 for all; ``rounds``: launches of each victim alone and beside each aggressor.
    """

    aggressors = variable(str, value="")
    victims = variable(str, value="all")
    most_nodes = variable(int, value=0)
    rounds = variable(int, value=6)

    @run_after("init")
    def insist_on_an_aggressor(self) -> None:
        """Run nowhere without an aggressor."""
        self.run_only_if(self.aggressors, environments_of(OF_PAIRS.name))


class LoadLaunches(DemandedJob, UnderLoad):
    """Victims on two of a partition's nodes, alone and beside aggressors on all others."""

    num_tasks_per_node = 1
    keep_files = [
        *DemandedJob.keep_files,
        *(planning.QUESTION_FILE, planning.TURNS_FILE, planning.LINES_FILE, planning.NODE_LISTS),
        AGGRESSORS_FILE,
    ]
    tags = {"load"}

    @run_after("setup")
    def take_nodes(self) -> None:
        """Take all usable nodes, or the number requested; fail before anything runs on too few."""
        self.num_tasks = self.usable_nodes(
            self.most_nodes,
            LEAST_NODES,
            f"load takes {LEAST_NODES}: two for what is measured, two for what congests",
        )

    @run_before("run")
    def plan_launches(self) -> None:
        """Write the question for the script, which draws the launches once it knows its nodes."""
        partition = self.site_partition()
        try:
            victims, aggressors = chosen(Victim, self.victims), chosen(Aggressor, self.aggressors)
        except NetproofError as error:
            raise ReframeError(str(error)) from None
        stage = Path(self.stagedir)
        leaves, _ = tree() if not self.is_dry_run() else ({}, {})
        srun = self.take_over_srun()
        question = planning.LoadQuestion(
            self.place(),
            self.current_partition.extras,
            leaves,
            victims,
            aggressors,
            self.rounds,
            self.seed,
            tuple(srun),
        )
        planning.write_question(stage, question)
        files = planning.size_files(partition, victims, aggressors)
        self.write_files(planning.script(partition, stage), files, [])


class LoadCheck(JobRead, UnderLoad):
    """Check that launches were made; the report shows their results.

    Its record has the launches, ``netproof_load``.
    """

    tags = {"load"}
    launched_by: type[LoadLaunches]
    netproof_kind = variable(str, value="load", loggable=True)

    @sanity_function
    def is_there(self) -> bool:
        """Check that a launch is whole; the report has the reasons for others."""
        loaded = self.left_by_job(of_job)
        if all(run.launch is None for run in loaded.runs):
            raise SanityError(f"no launch is whole, the first so: {loaded.runs[0].fault}")
        self.write_record(netproof_load=loaded.as_json())
        return True


class ForLong(OnDemand):
    """Duration and message size."""

    tails_seconds = variable(float, value=0.0)
    tails_bytes = variable(int, value=SHORT_BYTES)

    @run_after("init")
    def insist_on_seconds(self) -> None:
        """Run nowhere without a duration."""
        self.run_only_if(self.tails_seconds > 0, environments_of(OF_PAIRS.name))


class TailsLaunches(DemandedJob, ForLong):
    """A PingPong between two nodes of a partition, each call timed."""

    num_tasks = 2
    num_tasks_per_node = 1
    keep_files = [
        *DemandedJob.keep_files,
        *(tails.QUESTION_FILE, tails.CALLS_FILE, tails.LINES_FILE, tails.WATCH_FILE),
    ]
    tags = {"load"}

    @run_before("run")
    def plan_launches(self) -> None:
        """Write the question for the script, which plans the long launch by a call's duration."""
        most = self.site_partition().max_message_bytes
        if not 0 < self.tails_bytes <= most:
            raise ReframeError(
                f"messages of {self.tails_bytes} bytes: the largest of"
                f" {self.current_partition.fullname} are of {most}"
            )
        stage, srun = Path(self.stagedir), self.take_over_srun()
        question = tails.TailsQuestion(
            self.place(),
            self.current_partition.extras,
            self.tails_seconds,
            self.tails_bytes,
            tuple(srun),
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


class OnAllNodes(OnDemand):
    """Number of rounds, and most nodes, 0 for all."""

    gpcnet_rounds = variable(int, value=0)
    gpcnet_nodes = variable(int, value=0)

    @run_after("init")
    def insist_on_rounds(self) -> None:
        """Run nowhere without rounds."""
        self.run_only_if(self.gpcnet_rounds > 0, [f"+{gpcnet.FEATURE}"])


class GpcnetLaunches(DemandedJob, OnAllNodes):
    """GPCNeT on all usable nodes, several times."""

    keep_files = [*DemandedJob.keep_files, gpcnet.QUESTION_FILE, "*.dat"]
    tags = {"load"}

    @run_after("setup")
    def take_nodes(self) -> None:
        """Take all usable nodes, or the number requested; fail before anything runs on too few."""
        extras = self.current_partition.extras
        self.nodes = self.usable_nodes(
            self.gpcnet_nodes,
            gpcnet.LEAST_NODES,
            f"GPCNeT takes {gpcnet.LEAST_NODES}: two for its tests, eight for its congestors",
        )
        self.num_tasks_per_node = extras["ranks_per_node"]
        self.num_tasks = self.nodes * extras["ranks_per_node"]

    @run_before("run")
    def plan_launches(self) -> None:
        """Plan the same command for each round."""
        srun = self.take_over_srun()
        question = gpcnet.GpcnetQuestion(
            self.place(),
            self.current_partition.extras,
            self.gpcnet_rounds,
            self.nodes,
            tuple(srun),
        )
        gpcnet.write_question(Path(self.stagedir), question)
        self.write_files(gpcnet.script(question), {}, [])


class GpcnetCheck(JobRead, OnAllNodes):
    """Check that runs were made; the report shows their results.

    Its record has the runs, ``netproof_gpcnet``.
    """

    tags = {"load"}
    launched_by: type[GpcnetLaunches]
    netproof_kind = variable(str, value="gpcnet", loggable=True)

    @sanity_function
    def is_there(self) -> bool:
        """Check that a round is whole; the report has the reasons for others."""
        runs = self.left_by_job(gpcnet.of_job)
        if all(one.output is None for one in runs.rounds):
            raise SanityError(f"no round is whole, the first so: {runs.rounds[0].fault}")
        self.write_record(netproof_gpcnet=runs.as_json())
        return True
