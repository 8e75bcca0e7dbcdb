"""Tests of a sweep of a collective's algorithms: a job per rank count, and the test that reads it.

They are generated only with a function, such as ``-S swept_function=Allreduce``, so an acceptance
run has none.
"""

from __future__ import annotations

import reframe as rfm
from reframe.core.builtins import parameter, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import ReframeError

from netproof.benchmarks import imb, registry
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.run.jobs import environments_of, mpi_case, name_of
from netproof.run.on_demand import DemandedJob, JobRead
from netproof.run.system_here import rank_counts
from netproof.run.tuning import ROUNDS
from netproof.session import plan
from netproof.site.partition import Partition, ranks_feature
from netproof.tuning import algorithm_sweep
from netproof.tuning.algorithm_sweep import AlgorithmSweep
from netproof.tuning.algorithms import known
from netproof.tuning.algorithms.known import Choice
from netproof.tuning.sweep import Sweep, SweepTurn, turns

BENCHMARK = imb.BENCHMARK.name


class Swept(rfm.RegressionTestPlugin):
    """The function to sweep; in both tests, so that ``-S`` sets the variables in both.

    ``swept_function``: of IMB; ``swept_algorithms``: names or values in place of all, separated by
    commas; ``swept_ranks``: the rank count, 0 for all of the partition.
    """

    swept_function = variable(str, value="")
    swept_algorithms = variable(str, value="")
    swept_ranks = variable(int, value=0)
    rounds = variable(int, value=ROUNDS)

    def insist_on_a_function(self, ranks: int) -> None:
        """Run nowhere without a function, and only where the partition measures the rank count."""
        wanted = self.swept_function and self.swept_ranks in (0, ranks)
        self.valid_systems = [f"+{ranks_feature(ranks)}"] if wanted else []
        self.valid_prog_environs = environments_of(BENCHMARK) if wanted else []


class AlgorithmLaunches(DemandedJob, Swept):
    """A function with each of its algorithms, on the same nodes."""

    ranks = parameter(rank_counts())
    tags = {"tuning"}

    @run_after("init")
    def find_partitions(self) -> None:
        """Run where a function is to be swept."""
        self.insist_on_a_function(self.ranks)

    def case(self) -> Case:
        """Return the case measured with each algorithm."""
        return mpi_case(self, registry.mpi(BENCHMARK).function(self.swept_function))

    def choice(self) -> Choice:
        """Return the algorithms and how to select them; raise NetproofError for unknown ones."""
        given = self.swept_algorithms.split(",") if self.swept_algorithms else ()
        return known.choice(self.current_environ.extras["mpi"], self.swept_function, given)

    def sequence(self) -> tuple[SweepTurn, ...]:
        """Return the launches in their order."""
        return turns(self.choice().values, self.rounds, self.seed)

    @run_after("setup")
    def insist_on_telling(self) -> None:
        """Fail before submitting a sweep whose algorithms cannot be selected."""
        try:
            self.choice()
        except NetproofError as error:
            raise ReframeError(str(error)) from None

    @run_before("run")
    def plan_launches(self) -> None:
        """Plan all algorithms in all rounds."""
        partition = Partition.model_validate(self.current_partition.extras)
        self.num_tasks = self.ranks
        self.num_tasks_per_node = partition.ranks_per_node
        case = self.case()
        function = registry.function_of(case)
        sizes = {function.name: plan.sizes_asked(function, case.ranks, partition)}
        files = {} if function.least_bytes is None else plan.size_files(sizes)
        srun = self.take_over_srun(partition)
        several = self.sequence()
        made = algorithm_sweep.steps(several, case, self.choice(), partition, srun)
        text = algorithm_sweep.script(several, made, partition)
        self.write_files(text, files, [step.name for step in made])


class AlgorithmCheck(JobRead, Swept):
    """Check that the launches were made; the report shows their results.

    Its record has the sweep, ``netproof_algorithms``.
    """

    job_ranks = parameter(rank_counts())
    tags = {"tuning"}
    launched_by: type[AlgorithmLaunches]
    netproof_kind = variable(str, value="tuning", loggable=True)

    @run_after("init")
    def find_partitions(self) -> None:
        """Run where a function is to be swept."""
        self.insist_on_a_function(self.job_ranks)

    def launching_test(self) -> str:
        """Return the name of the job of its rank count."""
        return name_of(self.launched_by, ranks=self.job_ranks)

    @sanity_function
    def is_complete(self) -> bool:
        """Check that the default and another algorithm were launched in every round."""
        job = self.getdep(self.launching_test())
        partition = Partition.model_validate(self.current_partition.extras)
        case, choice = job.case(), job.choice()
        tried = self.left_by_job(
            lambda folder, _: algorithm_sweep.of_job(
                folder, case, partition, job.sequence(), choice
            )
        )
        swept = Sweep(
            case,
            algorithm_sweep.PARAMETER,
            choice.title,
            choice.told,
            str(job.job.jobid),
            job.seed,
            self.current_partition.extras,
            tried.turns,
            tried.launches,
        )
        algorithms = AlgorithmSweep(
            swept, choice.library, choice.names, tried.refused, tried.fell_back
        )
        self.write_record(netproof_algorithms=algorithms.as_json())
        return True
