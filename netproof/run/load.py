"""Tests of a network under load: a job of victims beside aggressors, and the test that reads it.

They are generated only with an aggressor, such as ``-S aggressors=all``, so an acceptance run has
none.
"""

from __future__ import annotations

from pathlib import Path

from reframe.core.builtins import run_after, run_before, sanity_function, variable
from reframe.core.exceptions import ReframeError, SanityError

from netproof.benchmarks.registry import OF_PAIRS
from netproof.congestion import planning
from netproof.congestion.loaded import AGGRESSORS_FILE, of_job
from netproof.congestion.planning import LoadQuestion
from netproof.congestion.turns import LEAST_NODES, Aggressor, Victim, chosen
from netproof.errors import NetproofError
from netproof.run.all_nodes import tree
from netproof.run.jobs import environments_of
from netproof.run.logged import Logged
from netproof.run.on_demand import DemandedJob, JobRead
from netproof.site.partition import Partition

ROUNDS = 6

KEPT_FILES = [
    *(planning.QUESTION_FILE, planning.TURNS_FILE, planning.LINES_FILE, planning.NODE_LISTS),
    AGGRESSORS_FILE,
]


class UnderLoad(Logged):
    """Aggressors and victims; in both tests, so that ``-S`` sets them in both.

    ``aggressors``, ``victims``: names separated by commas, or ``all``; ``most_nodes``: most nodes
    of the job, 0 for all; ``rounds``: launches of each victim alone and beside each aggressor.
    """

    aggressors = variable(str, value="")
    victims = variable(str, value="all")
    most_nodes = variable(int, value=0)
    rounds = variable(int, value=ROUNDS)

    @run_after("init")
    def insist_on_an_aggressor(self) -> None:
        """Run nowhere without an aggressor."""
        self.valid_systems = ["*"] if self.aggressors else []
        self.valid_prog_environs = environments_of(OF_PAIRS.name) if self.aggressors else []


class LoadLaunches(DemandedJob, UnderLoad):
    """Victims on two of a partition's nodes, alone and beside aggressors on all others."""

    num_tasks_per_node = 1
    keep_files = [*DemandedJob.keep_files, *KEPT_FILES]
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
        extras = self.current_partition.extras
        partition = Partition.model_validate(extras)
        try:
            victims, aggressors = chosen(Victim, self.victims), chosen(Aggressor, self.aggressors)
        except NetproofError as error:
            raise ReframeError(str(error)) from None
        stage = Path(self.stagedir)
        leaves, _ = tree() if not self.is_dry_run() else ({}, {})
        srun = self.take_over_srun(partition)
        where = (self.current_system.name, self.current_partition.name, self.current_environ.name)
        question = LoadQuestion(
            where, extras, leaves, victims, aggressors, self.rounds, self.seed, tuple(srun)
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
