"""Tests of a sweep: one job that varies one setting, and a test that reads its results.

They are generated only with a parameter, such as ``-S turned=socket-buffer``, so an acceptance run
has none.
"""

from __future__ import annotations

from pathlib import Path

from reframe.core.builtins import run_after, run_before, sanity_function, variable
from reframe.core.exceptions import ReframeError
from reframe.core.runtime import runtime

from netproof.benchmarks import netpipe
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.run.jobs import netpipe_case
from netproof.run.logged import Logged
from netproof.run.on_demand import DemandedJob, JobRead
from netproof.site.partition import Partition
from netproof.tuning import parameters, restoring
from netproof.tuning.parameters import Parameter, Told
from netproof.tuning.sweep import Sweep, SweepTurn, hooked_script, of_job, own_values, steps, turns

ROUNDS = 5


class Turned(Logged):
    """The setting to vary; in both tests, so that ``-S`` sets the variables in both.

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
        if self.turned:
            self.valid_systems = ["*"]
            self.valid_prog_environs = [f"+{netpipe.BENCHMARK.feature(self.turned_protocol)}"]
        else:
            self.valid_systems, self.valid_prog_environs = [], []

    def given_values(self) -> tuple[str, ...]:
        """Return the values in place of the parameter's own."""
        return tuple(self.turned_values.split(",")) if self.turned_values else ()

    def setting(self) -> Parameter:
        """Return the parameter to vary; raise NetproofError if it is unknown."""
        return parameters.found(self.turned, self.given_values())

    def values(self) -> tuple[str, ...]:
        """Return the values to set; raise NetproofError for invalid ones."""
        rails = Partition.model_validate(self.current_partition.extras).rails
        found = self.given_values() or self.setting().values_on(rails)
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
    def insist_on_telling(self) -> None:
        """Fail before submitting a sweep whose values cannot be set."""
        self.over_tcp = self.turned_protocol == parameters.TCP
        partition = Partition.model_validate(self.current_partition.extras)
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
                f" tune --restore --system {self.current_partition.fullname}'"
            )
        if by_hook and not partition.tuning_hook:
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
        partition = Partition.model_validate(self.current_partition.extras)

        def planned(srun: list[str], seed: int) -> tuple:
            several = turns(self.values(), self.rounds, seed)
            return steps(several, self.case(), self.told(), partition, srun)

        if not self.setting().by_hook:
            self.write_steps(planned, {})
            return
        made = planned(self.take_over_srun(partition), self.seed)
        record = self.record()
        record.parent.mkdir(parents=True, exist_ok=True)
        text = hooked_script(
            self.sequence(), made, partition, self.turned, record, over_tcp=self.over_tcp
        )
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
        partition = Partition.model_validate(self.current_partition.extras)
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
