"""Tests of sweeps: a job that varies a setting or a collective's algorithm, and one that reads it.

They are generated only with a variable, such as ``-S turned=socket-buffer`` or
``-S swept_function=Allreduce``, so an acceptance run has none.
"""

from __future__ import annotations

from pathlib import Path

from reframe.core.builtins import parameter, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import ReframeError
from reframe.core.runtime import runtime

from netproof.benchmarks import imb, netpipe, registry
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.run.jobs import environments_of, mpi_case, name_of, netpipe_case
from netproof.run.on_demand import DemandedJob, JobRead, OnDemand
from netproof.run.system_here import rank_counts
from netproof.session import plan
from netproof.site.partition import ranks_feature
from netproof.tuning import algorithm_sweep, algorithms, parameters, restoring
from netproof.tuning.algorithms import Choice
from netproof.tuning.parameters import Parameter, Told
from netproof.tuning.sweep import Sweep, SweepTurn, hooked_script, of_job, own_values, steps, turns

ROUNDS = 5


class Turned(OnDemand):
    """The setting to vary.

    ``turned``: name of a parameter or an environment variable; ``turned_values``: values in place
    of the parameter's own, separated by commas (ReFrame would turn a list's only one into a
    number); ``turned_protocol``: ``tcp`` or ``mpi``; ``turned_path``: ``between`` nodes or
    ``inside`` one.
    """

    turned = variable(str, value="")
    turned_values = variable(str, value="")
    turned_protocol = variable(str, value=parameters.TCP)
    turned_path = variable(str, value="between")
    rounds = variable(int, value=ROUNDS)

    @run_after("init")
    def insist_on_a_parameter(self) -> None:
        """Run nowhere without a parameter."""
        feature = netpipe.BENCHMARK.feature(self.turned_protocol) if self.turned else ""
        self.run_only_if(self.turned, [f"+{feature}"])

    def given_values(self) -> tuple[str, ...]:
        """Return the values in place of the parameter's own."""
        return tuple(self.turned_values.split(",")) if self.turned_values else ()

    def setting(self) -> Parameter:
        """Return the parameter to vary; raise NetproofError if it is unknown."""
        return parameters.found(self.turned, self.given_values())

    def values(self) -> tuple[str, ...]:
        """Return the values to set; raise NetproofError for invalid ones."""
        found = self.given_values() or self.setting().values_on(self.site_partition().rails)
        parameters.insist_on_values(found)
        return found


class TuningLaunches(DemandedJob, Turned):
    """NetPIPE with each value, one way, on the same two nodes."""

    num_tasks = 2
    num_tasks_per_node = 1
    tags = {"tuning"}

    def case(self) -> Case:
        """Return the case measured with each value."""
        return netpipe_case(self, self.turned_protocol, self.turned_path, "oneway")

    def told(self) -> Told:
        """Return how a launch gets its value here; raise NetproofError if it cannot."""
        library = self.current_environ.extras["mpi"]
        return self.setting().told(self.turned_protocol, library, self.turned_path)

    def sequence(self) -> tuple[SweepTurn, ...]:
        """Return the launches in their order."""
        return turns(self.values(), self.rounds, self.seed)

    @run_after("setup")
    def insist_on_setting(self) -> None:
        """Fail before submitting a sweep whose values cannot be set."""
        self.over_tcp = self.turned_protocol == parameters.TCP
        try:
            self.values()
            self.told()
            record = self.record()
            left = restoring.read(record)
            by_hook = self.setting().by_hook
        except NetproofError as error:
            raise ReframeError(str(error)) from None
        if left:
            raise ReframeError(
                f"{record}: an earlier sweep ended before everything was restored: run 'netproof"
                f" measure tune {self.current_partition.fullname} --restore'"
            )
        if by_hook and not self.site_partition().tuning_hook:
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
        partition, srun, several = self.site_partition(), self.take_over_srun(), self.sequence()
        made = steps(several, self.case(), self.told(), partition, srun)
        if not self.setting().by_hook:
            self.write_steps(made, srun, {})
            return
        record = self.record()
        record.parent.mkdir(parents=True, exist_ok=True)
        text = hooked_script(several, made, partition, self.turned, record, over_tcp=self.over_tcp)
        self.write_files(text, {}, [step.name for step in made])


class TuningCheck(JobRead, Turned):
    """Check that the launches are complete; the report shows their results.

    Its record has the sweep, ``netproof_tuning``.
    """

    tags = {"tuning"}
    launched_by: type[TuningLaunches]
    netproof_kind = variable(str, value="tuning", loggable=True)

    @sanity_function
    def is_complete(self) -> bool:
        """Check that every launch of every value is there."""
        job = self.getdep(self.launching_test())
        partition = self.site_partition()
        several, case, parameter = job.sequence(), job.case(), job.setting()
        launches = self.left_by_job(lambda folder, _: of_job(folder, case, partition, several))
        swept = Sweep(
            case,
            parameter.name,
            parameter.title,
            job.told(),
            str(job.job.jobid),
            job.seed,
            self.current_partition.extras,
            several,
            launches,
            self.left_by_job(lambda folder, _: own_values(folder)) if parameter.by_hook else (),
        )
        self.write_record(netproof_tuning=swept.as_json())
        return True


class Swept(OnDemand):
    """The function to sweep.

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
        environments = environments_of(imb.BENCHMARK.name)
        self.run_only_if(wanted, environments, [f"+{ranks_feature(ranks)}"])


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
        return mpi_case(self, imb.BENCHMARK.function(self.swept_function))

    def choice(self) -> Choice:
        """Return the algorithms and how to select them; raise NetproofError for unknown ones."""
        given = self.swept_algorithms.split(",") if self.swept_algorithms else ()
        return algorithms.choice(self.current_environ.extras["mpi"], self.swept_function, given)

    def sequence(self) -> tuple[SweepTurn, ...]:
        """Return the launches in their order."""
        return turns(self.choice().values, self.rounds, self.seed)

    @run_after("setup")
    def insist_on_setting(self) -> None:
        """Fail before submitting a sweep whose algorithms cannot be selected."""
        try:
            self.choice()
        except NetproofError as error:
            raise ReframeError(str(error)) from None

    @run_before("run")
    def plan_launches(self) -> None:
        """Plan all algorithms in all rounds."""
        partition = self.site_partition()
        self.num_tasks = self.ranks
        self.num_tasks_per_node = partition.ranks_per_node
        case = self.case()
        function = registry.function_of(case)
        sizes = {function.name: plan.sizes_asked(function, case.ranks, partition)}
        files = {} if function.least_bytes is None else plan.size_files(sizes)
        srun, several = self.take_over_srun(), self.sequence()
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
        job, extras = self.getdep(self.launching_test()), self.current_partition.extras
        swept = self.left_by_job(
            lambda folder, jobid: algorithm_sweep.of_job(
                folder, jobid, job.case(), extras, job.sequence(), job.choice(), job.seed
            )
        )
        self.write_record(netproof_algorithms=swept.as_json())
        return True
