"""Tests outside acceptance runs: each a job that ``netproof measure`` asks for, and its result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import ReframeError

from netproof import codec
from netproof.errors import NetproofError
from netproof.experiments.experiment import Experiment
from netproof.intake import json_reading
from netproof.measurement.case import Case
from netproof.run.jobs import Job
from netproof.run.system_here import usable_nodes
from netproof.session.plan import JobPlan
from netproof.site.partition import ranks_feature


class ExperimentJob(Job):
    """A job of an experiment, which runs only where ``-S NAME.asked`` has what is asked, as JSON.

    Its record has the result under the key of that. A subclass has the class of its ``experiment``,
    and ``ranks`` if there is a job for each rank count.
    """

    tags = {"experiment"}
    asked = variable(str, value="")
    experiment: type[Experiment]
    nodes = 0
    keep_files = [
        *Job.keep_files,
        "aggressors.tsv",
        "load-turns.json",
        "*.nodes",
        "tails-*",
        "*.dat",
    ]

    @property
    def question(self) -> Experiment:
        """Return what is asked of this job; NetproofError for what is no such experiment."""
        place = f"-S {self.experiment.TEST}.asked"
        values = json_reading.json_value(self.asked, place)
        values |= {"nodes": self.nodes} if self.nodes else {}
        return codec.decode(self.experiment, values, place)

    @run_after("init")
    def run_only_if_asked(self) -> None:
        """Run nowhere unless something is asked, of all rank counts or of this one."""
        self.valid_systems, self.valid_prog_environs = [], []
        ranks = getattr(self, "ranks", 0)
        if self.asked and self.question.ranks in (0, ranks):
            self.asked = json.dumps({**json.loads(self.asked), "ranks": ranks})
            self.valid_systems = [f"+{ranks_feature(ranks)}"] if ranks else ["*"]
            self.valid_prog_environs = [f"+{one}" for one in self.question.features()]

    @run_after("setup")
    def take_nodes(self) -> None:
        """Take its nodes; fail before anything is submitted on too few, or for what cannot be."""
        asked, partition = self.question, self.site_partition()
        if asked.LEAST_NODES:
            there = partition.nodes
            if not self.is_dry_run():
                there, _ = usable_nodes(self.current_partition.access, there)
            self.nodes = min(there, asked.nodes or there)
            if self.nodes < asked.LEAST_NODES:
                name = self.current_partition.fullname
                raise ReframeError(
                    f"{name} has {self.nodes} usable nodes for this, and {asked.WHY}"
                )
        per_node = partition.ranks_per_node if asked.FULL_NODES else 1
        self.num_tasks = asked.ranks or self.question.nodes * per_node
        self.num_tasks_per_node = per_node
        self.plan_of(("srun",))

    def plan_of(self, srun: tuple[str, ...]) -> tuple[JobPlan, dict[str, str]]:
        """Return its plan and files; ReframeError for what cannot be measured."""
        extras = self.current_environ.extras
        try:
            return self.question.plan(self.planned(srun=srun, environment_extras=extras))
        except NetproofError as error:
            raise ReframeError(str(error)) from None

    @run_before("run")
    def plan_launches(self) -> None:
        """Plan its launches."""
        planned, files = self.plan_of(tuple(self.take_over_srun()))
        self.write_plan(files, planned)

    def cases(self) -> list[Case]:
        """Return no cases of an acceptance run."""
        return []

    def results(self, folder: Path) -> dict[str, Any]:
        """Return what its record has of its files; NetproofError where nothing of them is whole."""
        found = self.question.result(folder, str(self.job.jobid))
        return {found.KEY: codec.encode(found)}
