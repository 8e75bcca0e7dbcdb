"""The ReFrame side of netproof; nothing else in the library imports ReFrame.

A run has two kinds of tests. A *job* (``NetpipeJob``, ``ImbJob``) is a fixture: one Slurm job for
each partition, environment and rank count, in which every launch of every function is a job step.
A *check* (``NetpipeCheck``, ``ImbCheck``) belongs to one function and reads the files that the job
left; the leaves in ``checks/`` derive from these and name only what they measure.

Attributes are due as follows. Class body: ``function`` (IMB), ``protocol`` (NetPIPE). After init:
``valid_systems``, ``valid_prog_environs``, ``ranks``, ``reference``. Before setup: the references
are there, or the test fails. Before run: a job's plan, its Slurm options, its files. Sanity: the
case is complete, or every reason why not. Before performance: the variables.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.backends import getlauncher
from reframe.core.builtins import (
    fixture,
    parameter,
    run_after,
    run_before,
    sanity_function,
    variable,
)
from reframe.core.exceptions import ReframeError, SanityError
from reframe.core.runtime import runtime
from reframe.utility.sanity import make_performance_function

from netproof import measured, plan, session
from netproof.benchmarks import (
    IMB_FUNCTIONS,
    NETPIPE_DIRECTIONS,
    NETPIPE_PATHS,
    ImbFunction,
    imb_function,
)
from netproof.case import Case
from netproof.errors import NetproofError
from netproof.site import (
    PARTITION_KEYS,
    Partition,
    fewest_ranks_feature,
    ranks_feature,
)

PLAN_FILE = "plan.json"
"""What a job was to run, in which order, beside its output."""

VARIABLE_UNITS = {
    "latency_us": "us",
    "peak_mb_s": "MB/s",
    "peak_size": "B",
    "half_power_size": "B",
    "rate_1_kib_mb_s": "MB/s",
    "rate_4_kib_mb_s": "MB/s",
    "rate_16_kib_mb_s": "MB/s",
    "rate_64_kib_mb_s": "MB/s",
    "line_rate_share": "%",
}
"""Performance variables that need a reference each; those per size, ``time_us_<bytes>``, do not."""


def rank_counts() -> list[int]:
    """Rank counts of all partitions of the system that ReFrame runs on.

    Raises NetproofError where the system was not configured for netproof.
    """
    counts: set[int] = set()
    system = runtime().system
    for partition in system.partitions:
        missing = [key for key in PARTITION_KEYS if key not in partition.extras]
        if missing:
            raise NetproofError(
                f"partition {partition.fullname} has no extras[{missing[0]!r}]: the checks need"
                " a configuration from site-config/; run '. ci/activate', or set RFM_CONFIG_PATH"
                " and choose a system with --system"
            )
        counts.update(partition.extras["rank_counts"])
    return sorted(counts)


class Referenced(rfm.RegressionTestPlugin):
    """Bounds come from reference-values/<system>.yaml, and a test without them fails.

    A file that is missing or broken would make ReFrame drop the test at load, and a run of
    nothing is green; so the fault is kept and raised when the test is set up.
    """

    reference_fault = variable(str, value="", loggable=False)

    @run_after("init")
    def take_references(self) -> None:
        """Read the system's reference file."""
        prefix = runtime().get_option("general/0/reference_prefix")
        name = f"{self.current_system.name}.yaml"
        try:
            if prefix is None:
                raise NetproofError("RFM_REFERENCE_PREFIX is not set; run '. ci/activate'")
            self.reference = {"$ref": str(Path(prefix) / name)}
        except Exception as error:
            self.reference_fault = f"no references, {Path(prefix or '') / name}: {error}"

    @run_before("setup")
    def insist_on_references(self) -> None:
        """Fail before anything is measured that could not be judged."""
        if self.reference_fault:
            raise ReframeError(self.reference_fault)


class Launched(rfm.RegressionTestPlugin):
    """How many launches each function has, for the job that runs them and the check that counts.

    Both have the variable, so that ``-S launches=N`` sets it everywhere.
    """

    launches = variable(int, value=3)


class Job(rfm.RunOnlyRegressionTest, Launched, Referenced):
    """One Slurm job whose steps are the launches of several functions.

    ``seed``: of the order they run in; 0 draws one.
    """

    seed = variable(int, value=0)
    sourcesdir = None
    executable = "bash"
    executable_opts = ["launches.sh"]
    exclusive_access = True
    over_tcp = False
    keep_files = ["launches.*", "*.out", "*.err", "*.np", plan.SIZE_FILES, PLAN_FILE]

    def steps(self, partition: Partition, srun: list[str]) -> tuple[plan.Step, ...]:
        """The job's launches in the order they run in."""
        raise NetproofError(f"{type(self).__name__} says nothing of its steps")

    def size_files(self, partition: Partition) -> dict[str, str]:
        """Name to text of further files that the steps read."""
        return {}

    @run_before("run")
    def plan_launches(self) -> None:
        """Write the launches into the stage folder; srun starts the steps, not the script."""
        partition = Partition.from_extras(self.current_partition.extras)
        stage = Path(self.stagedir)
        self.seed = self.seed or random.SystemRandom().randrange(1, 2**31)
        srun = [
            *self.job.launcher.command(self.job),
            f"--mpi={self.current_environ.extras['pmi']}",
        ]
        self.job.launcher = getlauncher("local")()
        self.job.options += [
            f"--job-name=netproof-{partition.contention_domain}",
            "--dependency=singleton",
        ]
        steps = self.steps(partition, srun)
        for source in plan.SHELL_FILES:
            shutil.copy(source, stage)
        for name, text in self.size_files(partition).items():
            (stage / name).write_text(text)
        (stage / "launches.sh").write_text(plan.script(steps, partition, over_tcp=self.over_tcp))
        planned = {"seed": self.seed, "steps": [step.name for step in steps]}
        (stage / PLAN_FILE).write_text(json.dumps(planned, indent=1) + "\n")

    @sanity_function
    def left_records(self) -> bool:
        """The job came to its steps; what each of them did is for the checks to judge."""
        record = Path(self.stagedir) / measured.LAUNCHES_FILE
        if not record.is_file():
            raise SanityError(
                f"the job left no {record}, and Slurm has it as {self.job.state}; if it began,"
                f" see {self.stderr} beside that file"
            )
        return True


class NetpipeJob(Job):
    """TCP and MPI in turns on the same two nodes, between them and inside one, both directions."""

    num_tasks = 2
    num_tasks_per_node = 1
    over_tcp = True

    def steps(self, partition: Partition, srun: list[str]) -> tuple[plan.Step, ...]:
        """All NetPIPE variants, TCP and MPI taking turns."""
        return plan.netpipe_steps(self.launches, partition, srun, self.seed)


class ImbJob(Job):
    """Functions of IMB-MPI1 on one rank count; those for two ranks go with the least count."""

    ranks = parameter(rank_counts())
    functions = variable(
        typ.List[str], value=[function.name for function in IMB_FUNCTIONS if function.default]
    )

    def functions_here(self) -> list[ImbFunction]:
        """Functions that this partition runs at this rank count."""
        fewest = self.current_partition.extras["rank_counts"][0] == self.ranks
        functions = [imb_function(name) for name in self.functions]
        return [
            function
            for function in functions
            if (fewest or not function.pair) and (self.ranks % 2 == 0 or not function.pairs)
        ]

    @run_before("run")
    def place_ranks(self) -> None:
        """Fill each node with the partition's ranks a node."""
        self.num_tasks = self.ranks
        self.num_tasks_per_node = self.current_partition.extras["ranks_per_node"]

    def steps(self, partition: Partition, srun: list[str]) -> tuple[plan.Step, ...]:
        """All launches of all functions, shuffled."""
        return plan.imb_steps(
            self.functions_here(), self.ranks, self.launches, partition, srun, self.seed
        )

    def size_files(self, partition: Partition) -> dict[str, str]:
        """The message sizes for -msglen."""
        return plan.imb_size_files(self.functions_here(), partition.max_message_bytes)


class OtherImbJob(ImbJob):
    """The functions of IMB-MPI1 that are not part of a plain acceptance run."""

    functions = [function.name for function in IMB_FUNCTIONS if not function.default]


class Check(rfm.RunOnlyRegressionTest, Launched, Referenced):
    """One function, judged over the files that its job left.

    Its output is the benchmark's text. ``netproof_case`` says what was to be measured and
    ``netproof_measured`` holds what was; both go into ReFrame's session report.
    """

    local = True
    sourcesdir = None
    executable = "cat"
    require_reference = True
    ranks = variable(int, loggable=True)
    netproof_case = variable(dict, value={}, loggable=True)
    netproof_measured = variable(dict, value={}, loggable=True)

    def subject(self) -> str:
        """Stem of the names of the function's steps."""
        raise NetproofError(f"{type(self).__name__} names no function")

    def read(self, folder: Path, partition: Partition) -> measured.Measured:
        """The complete case, or Incomplete."""
        raise NetproofError(f"{type(self).__name__} reads nothing")

    def case(self, ranks_per_node: int) -> Case:
        """The case, once partition and environment are known."""
        return Case(
            self.current_system.name,
            self.current_partition.name,
            self.current_environ.name,
            ranks_per_node=ranks_per_node,
            **self.netproof_case,
        )

    @run_after("setup")
    def show_output(self) -> None:
        """Make the benchmark's own text the check's output."""
        folder = Path(self.job_of.stagedir)
        self.executable_opts = [
            str(folder / f"{self.subject()}.{launch}.out") for launch in range(1, self.launches + 1)
        ]

    @sanity_function
    def is_complete(self) -> bool:
        """All sizes and launches that were asked for are there, and nothing else."""
        partition = Partition.from_extras(self.current_partition.extras)
        folder = Path(self.job_of.stagedir)
        try:
            self.measured = self.read(folder, partition)
        except measured.Incomplete as error:
            # ReFrame puts a cause's text behind the error's own.
            raise SanityError("; ".join(error.reasons)) from None
        job_plan = json.loads((folder / PLAN_FILE).read_text())
        self.netproof_measured = {
            "format": session.MEASURED_FORMAT,
            **self.measured.as_json(),
            "partition_extras": self.current_partition.extras,
            "environment_extras": self.current_environ.extras,
            "seed": job_plan["seed"],
            "jobid": self.job_of.job.jobid,
        }
        return True

    @run_before("performance")
    def set_variables(self) -> None:
        """The landmarks and the time at every size, as plain values that cannot raise.

        A dry run has no values; what it can see is whether there are references.
        """
        try:
            bounds = self.reference[self]
        except KeyError as error:
            missing = error.args[0]
            key = "" if missing is self else f": key {missing!r} is not there"
            raise SanityError(
                f"{self.current_system.name}.yaml has no {type(self).__name__} for"
                f" {self.current_partition.fullname}, {self.current_environ.name}{key}"
            ) from None
        if self.is_dry_run():
            return
        curve, landmarks = self.measured.curve, self.measured.landmarks
        values = {name: getattr(landmarks, name) for name in VARIABLE_UNITS}
        if values["line_rate_share"] is not None:
            values["line_rate_share"] = round(100 * values["line_rate_share"], 2)
        variables = {
            name: make_performance_function(lambda value=value: value, VARIABLE_UNITS[name])
            for name, value in values.items()
            if value is not None
        }
        per_size = {
            f"time_us_{size}": make_performance_function(lambda value=time: value, "us")
            for size, time in zip(curve.sizes, curve.time_us, strict=True)
        }
        self.perf_variables = {**variables, **per_size}
        for name in per_size:
            bounds.setdefault(name, (0, None, None, "us"))


class NetpipeCheck(Check):
    """NetPIPE over one protocol, on one path, in one direction."""

    protocol = variable(str)
    path = parameter(NETPIPE_PATHS)
    direction = parameter(NETPIPE_DIRECTIONS)
    job_of = fixture(NetpipeJob, scope="environment")
    ranks = 2
    valid_systems = ["*"]
    valid_prog_environs = ["+netpipe-tcp +netpipe-mpi"]
    tags = {"netpipe"}

    @run_after("init")
    def name_case(self) -> None:
        """Say what is to be measured."""
        self.netproof_case = {
            "benchmark": "netpipe",
            "function": self.protocol,
            "ranks": 2,
            "path": self.path,
            "direction": self.direction,
        }

    def subject(self) -> str:
        """Stem of the names of the variant's steps."""
        return plan.netpipe_subject(self.protocol, self.path, self.direction)

    def read(self, folder: Path, partition: Partition) -> measured.Measured:
        """The complete case, or Incomplete."""
        case = self.case(ranks_per_node=1 if self.path == "between" else 2)
        return measured.netpipe_case(folder, case, self.subject(), partition, self.launches)


class ImbCheck(Check):
    """One function of IMB-MPI1 at one rank count."""

    function = variable(str)
    job_of = fixture(ImbJob, scope="environment")
    valid_prog_environs = ["+imb"]
    tags = {"imb"}

    @run_after("init")
    def find_partitions(self) -> None:
        """Run where the partition measures this rank count."""
        function, ranks = imb_function(self.function), self.job_of.ranks
        self.ranks = 2 if function.pair else ranks
        feature = fewest_ranks_feature if function.pair else ranks_feature
        odd = function.pairs and ranks % 2
        self.valid_systems = [] if odd else [f"+{feature(ranks)}"]
        self.netproof_case = {
            "benchmark": "imb",
            "function": self.function,
            "ranks": self.ranks,
            "path": "between",
            "direction": "oneway",
        }

    def subject(self) -> str:
        """Stem of the names of the function's steps."""
        return self.function

    def read(self, folder: Path, partition: Partition) -> measured.Measured:
        """The complete case, or Incomplete."""
        function = imb_function(self.function)
        case = self.case(1 if function.pair else partition.ranks_per_node)
        return measured.imb_case(folder, case, function, partition, self.launches)
