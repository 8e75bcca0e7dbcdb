"""Tests outside acceptance runs: a job on demand, and the check that reads it.

Each is generated only if a variable asks for it: the network under load with ``-S aggressors=all``,
times of single calls with ``-S tails_seconds=60``, GPCNeT with ``-S gpcnet_rounds=3``, a sweep of a
setting with ``-S turned=socket-buffer``, of a collective's algorithms with
``-S swept_function=Allreduce``. An acceptance run has none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import reframe as rfm
import reframe.utility.udeps as udeps
from reframe.core.builtins import parameter, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import ReframeError, SanityError
from reframe.core.runtime import runtime

from netproof import codec
from netproof.benchmarks import imb, netpipe, registry
from netproof.benchmarks.registry import OF_PAIRS
from netproof.errors import NetproofError
from netproof.experiments import (
    gpcnet,
    load,
    load_plan,
    parameters,
    restoring,
    sweep,
    tails,
)
from netproof.experiments.parameters import Assignment
from netproof.experiments.sweep import Sweep
from netproof.measurement.case import Case
from netproof.run.jobs import Job, environments_of, mpi_case, name_of, netpipe_case
from netproof.run.mixins import OnPartition, RecordedTest
from netproof.run.system_here import rank_counts, tree, usable_nodes
from netproof.session import plan
from netproof.session.session import JobRecord
from netproof.site.partition import ranks_feature

Read = TypeVar("Read")

ROUNDS = 5
"""Launches of each value of a sweep."""


class DemandedJob(Job):
    """A job without cases of an acceptance run, which runs only if ``-S`` asks for it.

    A subclass has ``plan_launches()``; and ``ranks`` if there is one for each rank count.
    """

    tags = {"load"}

    @classmethod
    def wanted(cls, ranks: int) -> Sequence[str]:
        """Return the selectors of its environments, none if it was not asked for."""
        raise NotImplementedError

    @run_after("init")
    def run_only_if_asked(self) -> None:
        """Run nowhere unless it was asked for."""
        _only_if_asked(self, type(self))

    def result(self, folder: Path, jobid: str) -> JobRecord:
        """Return what it left in its folder; NetproofError where nothing of it is whole."""
        raise NotImplementedError

    def cases(self) -> list[Case]:
        """Return no cases of an acceptance run."""
        return []

    def usable_nodes(self, most: int, least: int, why: str) -> int:
        """Return the number of usable nodes, at most ``most`` if that is not 0.

        ``why``: the reason for ``least``, for the message. A dry run uses the site's number. Raises
        ReframeError if they are fewer than ``least``.
        """
        there = int(self.current_partition.extras["nodes"])
        if not self.is_dry_run():
            there, _ = usable_nodes(self.current_partition.access, there)
        taken = min(there, most or there)
        if taken < least:
            raise ReframeError(
                f"{self.current_partition.fullname} has {taken} usable nodes for this, and {why}"
            )
        return taken


def _only_if_asked(test: rfm.RegressionTest, job: type[DemandedJob]) -> None:
    ranks = getattr(test, "ranks", 0)
    test.valid_prog_environs = [*job.wanted(ranks)]
    systems = [f"+{ranks_feature(ranks)}"] if ranks else ["*"]
    test.valid_systems = systems if test.valid_prog_environs else []


class JobRead(rfm.RunOnlyRegressionTest, OnPartition, RecordedTest):
    """A test that reads a job's results."""

    local = True
    sourcesdir = None
    executable = "true"
    launched_by: type[Job]

    def launching_test(self) -> str:
        """Return the name of the job, of the same rank count if it has one."""
        ranks = getattr(self, "ranks", 0)
        return name_of(self.launched_by, **({"ranks": ranks} if ranks else {}))

    @run_after("init")
    def wait_for_launches(self) -> None:
        """Depend on the job."""
        self.depends_on(self.launching_test(), udeps.by_case)

    def left_by_job(self, read: Callable[[Path, str], Read]) -> Read:
        """Return what ``read`` finds in the job's folder; raise SanityError with every reason."""
        job = self.getdep(self.launching_test())
        try:
            return read(Path(job.stagedir), str(job.job.jobid))
        except (NetproofError, OSError) as error:
            raise SanityError(str(error)) from None


class ExperimentCheck(JobRead):
    """Check that something of a job is whole; its record has it, and the report says why the rest
    is not.
    """

    tags = {"load"}
    netproof_kind = variable(str, value="load", loggable=True)
    launched_by: type[DemandedJob]

    @run_after("init")
    def run_only_if_asked(self) -> None:
        """Run where its job does."""
        _only_if_asked(self, self.launched_by)

    @sanity_function
    def is_there(self) -> bool:
        """Check that something is whole."""
        found = self.left_by_job(self.getdep(self.launching_test()).result)
        self.write_record(**{found.KEY: codec.encode(found)})
        return True


class LoadLaunches(DemandedJob):
    """Victims on two of a partition's nodes, alone and beside aggressors on all others.

    ``aggressors``, ``victims``: names separated by commas, or ``all``; ``most_nodes``: most nodes
    of the job, 0 for all; ``rounds``: launches of each victim alone and beside each aggressor.
    """

    aggressors = variable(str, value="")
    victims = variable(str, value="all")
    most_nodes = variable(int, value=0)
    rounds = variable(int, value=6)
    num_tasks_per_node = 1
    keep_files = [
        *DemandedJob.keep_files,
        *(load_plan.TURNS_FILE, load_plan.NODE_LISTS, load.AGGRESSORS_FILE),
    ]

    @classmethod
    def wanted(cls, ranks: int) -> Sequence[str]:
        """Return the environments with IMB, if aggressors were named."""
        return environments_of(OF_PAIRS.name) if cls.aggressors else ()

    @run_after("setup")
    def take_nodes(self) -> None:
        """Take all usable nodes, or the number requested; fail before anything runs on too few."""
        least = load_plan.LEAST_NODES
        self.num_tasks = self.usable_nodes(self.most_nodes, least, load_plan.WHY)

    @run_before("run")
    def plan_launches(self) -> None:
        """Write the question for the job, which draws the launches once it knows its nodes."""
        try:
            victims = load_plan.chosen(load_plan.Victim, self.victims)
            aggressors = load_plan.chosen(load_plan.Aggressor, self.aggressors)
        except NetproofError as error:
            raise ReframeError(str(error)) from None
        leaves, _ = tree() if not self.is_dry_run() else ({}, {})
        named = {name: tuple(nodes) for name, nodes in leaves.items()}
        asked = load_plan.LoadAsked(named, victims, aggressors, self.rounds)
        planned = {"srun": tuple(self.take_over_srun()), "asked": codec.encode(asked)}
        files = load_plan.size_files(self.site_partition(), victims, aggressors)
        self.write_plan(files, task="load", figures_at_once=False, **planned)

    def result(self, folder: Path, jobid: str) -> JobRecord:
        """Return the launches of victims."""
        loaded = load.of_job(folder, jobid)
        if all(run.launch is None for run in loaded.runs):
            raise NetproofError(f"no launch is whole, the first so: {loaded.runs[0].fault}")
        return loaded


class LoadCheck(ExperimentCheck):
    """Check that a launch under load is whole; its record has ``netproof_load``."""


class TailsLaunches(DemandedJob):
    """A PingPong between two nodes of a partition, each call timed."""

    tails_seconds = variable(float, value=0.0)
    tails_bytes = variable(int, value=load_plan.SHORT_BYTES)
    num_tasks = 2
    num_tasks_per_node = 1
    keep_files = [*DemandedJob.keep_files, tails.CALLS_FILE, tails.WATCH_FILE]

    @classmethod
    def wanted(cls, ranks: int) -> Sequence[str]:
        """Return the environments with IMB, if a duration was given."""
        return environments_of(OF_PAIRS.name) if cls.tails_seconds > 0 else ()

    @run_before("run")
    def plan_launches(self) -> None:
        """Write the question for the job, which plans the long launch by a call's duration."""
        most = self.site_partition().max_message_bytes
        if not 0 < self.tails_bytes <= most:
            raise ReframeError(
                f"messages of {self.tails_bytes} bytes: the largest of"
                f" {self.current_partition.fullname} are of {most}"
            )
        asked = (self.tails_seconds, self.tails_bytes)
        planned = {"srun": tuple(self.take_over_srun()), "asked": asked}
        files = tails.size_files(self.tails_bytes)
        self.write_plan(files, task="tails", figures_at_once=False, **planned)

    def result(self, folder: Path, jobid: str) -> JobRecord:
        """Return the long launch."""
        return tails.of_job(folder, jobid)


class TailsCheck(ExperimentCheck):
    """Check that the long launch is whole; its record has ``netproof_tails``."""

    netproof_kind = "tails"


class GpcnetLaunches(DemandedJob):
    """GPCNeT on all usable nodes, several times; ``gpcnet_nodes``: most nodes, 0 for all."""

    gpcnet_rounds = variable(int, value=0)
    gpcnet_nodes = variable(int, value=0)
    keep_files = [*DemandedJob.keep_files, "*.dat"]

    @classmethod
    def wanted(cls, ranks: int) -> Sequence[str]:
        """Return the environments with GPCNeT, if rounds were asked for."""
        return [f"+{gpcnet.FEATURE}"] if cls.gpcnet_rounds > 0 else ()

    @run_after("setup")
    def take_nodes(self) -> None:
        """Take all usable nodes, or the number requested; fail before anything runs on too few."""
        self.nodes = self.usable_nodes(self.gpcnet_nodes, gpcnet.LEAST_NODES, gpcnet.WHY)
        self.num_tasks_per_node = self.current_partition.extras["ranks_per_node"]
        self.num_tasks = self.nodes * self.num_tasks_per_node

    @run_before("run")
    def plan_launches(self) -> None:
        """Plan the same command for each round."""
        asked = (self.gpcnet_rounds, self.nodes, self.take_over_srun())
        steps = gpcnet.steps(self.site_partition(), *asked)
        self.write_plan({}, rounds=(steps,), figures_at_once=False)

    def result(self, folder: Path, jobid: str) -> JobRecord:
        """Return the rounds."""
        place, extras = self.place(), self.current_partition.extras
        runs = gpcnet.of_job(folder, jobid, place, extras, self.gpcnet_rounds, self.nodes)
        if not any(one.tests for one in runs.rounds):
            raise NetproofError(f"no round is whole, the first so: {runs.rounds[0].fault}")
        return runs


class GpcnetCheck(ExperimentCheck):
    """Check that a round is whole; its record has ``netproof_gpcnet``."""

    netproof_kind = "gpcnet"


class SweepJob(DemandedJob):
    """A job that sets values one after the other, the default between them, in each round."""

    tags = {"tuning"}
    rounds = variable(int, value=ROUNDS)

    def planned(self) -> Sweep:
        """Return its sweep, without launches; raise NetproofError if it cannot be set."""
        raise NotImplementedError

    @run_after("setup")
    def insist_on_setting(self) -> None:
        """Fail before submitting a sweep whose values cannot be set."""
        try:
            self.planned()
        except NetproofError as error:
            raise ReframeError(str(error)) from None

    def sweep_of(
        self, case: Case, title: str, how: Assignment, values: Sequence[str], name: str
    ) -> Sweep:
        """Return a sweep of these values of the parameter ``name`` here."""
        turns = sweep.turns(values, self.rounds, self.seed)
        return Sweep(case, name, title, how, "", self.seed, self.current_partition.extras, turns)

    def result(self, folder: Path, jobid: str) -> JobRecord:
        """Return the sweep with its launches."""
        return sweep.of_job(folder, jobid, self.planned())


class SweepCheck(ExperimentCheck):
    """Check that the launches of a sweep are complete; its record has ``netproof_tuning``."""

    tags = {"tuning"}
    netproof_kind = "tuning"


class TuningLaunches(SweepJob):
    """NetPIPE with each value of a setting, one way, on the same two nodes.

    ``turned``: name of a parameter or an environment variable; ``turned_values``: values in place
    of the parameter's own, separated by commas (ReFrame would turn a list's only one into a
    number); ``turned_protocol``: ``tcp`` or ``mpi``; ``turned_path``: ``inter-node`` or
    ``intra-node``.
    """

    turned = variable(str, value="")
    turned_values = variable(str, value="")
    turned_protocol = variable(str, value=parameters.TCP)
    turned_path = variable(str, value="inter-node")
    num_tasks = 2
    num_tasks_per_node = 1

    @classmethod
    def wanted(cls, ranks: int) -> Sequence[str]:
        """Return the environments with NetPIPE over the protocol, if a setting was named."""
        feature = netpipe.BENCHMARK.feature(str(cls.turned_protocol))
        return [f"+{feature}"] if cls.turned else ()

    def planned(self) -> Sweep:
        """Return the sweep; raise NetproofError for unknown settings and invalid values."""
        given = tuple(self.turned_values.split(",")) if self.turned_values else ()
        setting = parameters.found(self.turned, given)
        values = given or setting.values_on(self.site_partition().rails)
        parameters.insist_on_values(values)
        library = self.current_environ.extras["mpi"]
        assignment = setting.assignment(self.turned_protocol, library, self.turned_path)
        case = netpipe_case(self.place(), self.turned_protocol, self.turned_path, "oneway")
        return self.sweep_of(case, setting.title, assignment, values, setting.name)

    @property
    def by_hook(self) -> bool:
        """True if the site's hook sets the values on nodes."""
        return self.turned in parameters.BY_NAME and parameters.BY_NAME[self.turned].by_hook

    @run_after("setup")
    def insist_on_own_values(self) -> None:
        """Fail if nodes lack their own values, and skip where nobody may set others."""
        record = self.record()
        try:
            unrestored = restoring.read(record)
        except NetproofError as error:
            raise ReframeError(str(error)) from None
        if unrestored:
            raise ReframeError(
                f"{record}: an earlier sweep ended before everything was restored: run 'netproof"
                f" measure tune {self.current_partition.fullname} --restore'"
            )
        if self.by_hook and not self.site_partition().tuning_hook:
            self.skip(f"{self.turned} takes root: the partition has no tuning_hook")

    def record(self) -> Path:
        """Return the path of the record of the nodes' own values while others are set."""
        reports = Path(runtime().get_option("general/0/report_file")).parent
        return restoring.record_of(
            reports.absolute(), self.current_system.name, self.current_partition.name
        )

    @run_before("run")
    def plan_launches(self) -> None:
        """Plan all values in all rounds."""
        srun, planned = self.take_over_srun(), self.planned()
        made = sweep.steps(planned, srun)
        if not self.by_hook:
            self.write_plan({}, rounds=(made,))
            return
        record = self.record()
        record.parent.mkdir(parents=True, exist_ok=True)
        asked = {"record": str(record), "name": planned.parameter}
        self.write_plan({}, task="setting", rounds=(made,), asked=asked)


class TuningCheck(SweepCheck):
    """Check that every launch of every value is there."""


class AlgorithmLaunches(SweepJob):
    """A function of IMB with each of its algorithms, on the same nodes.

    ``swept_algorithms``: names or values in place of all, separated by commas; ``swept_ranks``: the
    rank count, 0 for all of the partition.
    """

    swept_function = variable(str, value="")
    swept_algorithms = variable(str, value="")
    swept_ranks = variable(int, value=0)
    ranks = parameter(rank_counts())

    @classmethod
    def wanted(cls, ranks: int) -> Sequence[str]:
        """Return the environments with IMB, if a function was named, and this rank count or all."""
        asked = cls.swept_function and cls.swept_ranks in (0, ranks)
        return environments_of(imb.BENCHMARK.name) if asked else ()

    def planned(self) -> Sweep:
        """Return the sweep; raise NetproofError for unknown algorithms."""
        given = self.swept_algorithms.split(",") if self.swept_algorithms else ()
        function, library = self.swept_function, self.current_environ.extras["mpi"]
        names = parameters.algorithms(library, function, given)
        assignment = parameters.library_of(library).setting(function)
        per_node = self.current_partition.extras["ranks_per_node"]
        case = mpi_case(self.place(), imb.BENCHMARK.function(function), self.ranks, per_node)
        title = f"{function} algorithm"
        made = self.sweep_of(case, title, assignment, tuple(names), sweep.ALGORITHM)
        return dataclasses.replace(made, library=library, names=names)

    @run_before("run")
    def plan_launches(self) -> None:
        """Plan all algorithms in all rounds."""
        partition = self.site_partition()
        self.num_tasks = self.ranks
        self.num_tasks_per_node = partition.ranks_per_node
        srun, planned = self.take_over_srun(), self.planned()
        sizes = {planned.case.function: plan.sizes_asked(planned.case, partition)}
        without = registry.function_of(planned.case).least_bytes is None
        files = {} if without else plan.size_files(sizes)
        made = sweep.steps(planned, srun)
        self.write_plan(files, task="algorithms", rounds=(made,))


class AlgorithmCheck(SweepCheck):
    """Check that the default and another algorithm were launched in every round."""

    ranks = parameter(rank_counts())
