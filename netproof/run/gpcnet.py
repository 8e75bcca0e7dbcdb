"""Tests of GPCNeT: one job on all nodes of a partition, and the test that reads it.

They are generated only with a number of rounds, ``-S gpcnet_rounds=3``, so an acceptance run has
none.
"""

from __future__ import annotations

from pathlib import Path

from reframe.core.builtins import run_after, run_before, sanity_function, variable
from reframe.core.exceptions import SanityError

from netproof.congestion import gpcnet
from netproof.run.logged import Logged
from netproof.run.on_demand import DemandedJob, JobRead
from netproof.site.partition import Partition


class OnAllNodes(Logged):
    """Number of rounds, and most nodes, 0 for all; in both tests so that ``-S`` sets them."""

    gpcnet_rounds = variable(int, value=0)
    gpcnet_nodes = variable(int, value=0)

    @run_after("init")
    def insist_on_rounds(self) -> None:
        """Run nowhere without rounds."""
        asked = self.gpcnet_rounds > 0
        self.valid_systems = ["*"] if asked else []
        self.valid_prog_environs = [f"+{gpcnet.FEATURE}"] if asked else []


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
        extras = self.current_partition.extras
        srun = self.take_over_srun(Partition.model_validate(extras))
        where = (self.current_system.name, self.current_partition.name, self.current_environ.name)
        question = gpcnet.GpcnetQuestion(where, extras, self.gpcnet_rounds, self.nodes, tuple(srun))
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
