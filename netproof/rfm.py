"""The ReFrame side of netproof; nothing else in the library imports ReFrame.

A run has four kinds of tests, and the leaves in ``checks/`` derive from them:

- *launches* (``NetpipeLaunches``, ``ImbLaunches``): one Slurm job for each partition, environment
  and rank count, in which every launch of every function is a job step;
- *checks* (``NetpipeCheck``, ``ImbCheck``): one for each function, over the files that the job
  left: is it complete, and do its landmarks hold against the references;
- *curves* (``NetpipeCurves``, ``ImbCurves``): one for each job, with the criteria along each
  curve; sizes that they flag are measured again on the same nodes before they count;
- *configurations* (``NetpipeConfigurations``, ``ImbConfigurations``): one for each rank count,
  over the jobs of all partitions and environments, with the criteria that compare them.

A job of which every case is in the file that NETPROOF_LEFT names is skipped, see ``netproof.left``.

Attributes are due as follows. Class body: ``function`` (IMB), ``protocol`` (NetPIPE),
``launched_by``. After init: ``valid_systems``, ``valid_prog_environs``, ``ranks``, ``reference``,
dependencies. Before setup: the references are there, or the test fails. After setup: ``job_of``,
and for curves whether there is something to measure again. Before run: a job's plan, its Slurm
options, its files. Sanity: the case is complete and the criteria hold, or every reason why not.
Before performance: the variables.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import reframe as rfm
import reframe.utility.typecheck as typ
import reframe.utility.udeps as udeps
from reframe.core.backends import getlauncher
from reframe.core.builtins import (
    parameter,
    run_after,
    run_before,
    sanity_function,
    variable,
)
from reframe.core.exceptions import DependencyError, ReframeError, SanityError
from reframe.core.runtime import runtime
from reframe.utility.sanity import make_performance_function

from netproof import again, judgement, left, loading, measured, plan, provenance, session
from netproof.benchmarks import (
    NETPIPE_DIRECTIONS,
    NETPIPE_PATHS,
    NETPIPE_PROTOCOLS,
    ImbFunction,
    imb_function,
    imb_sizes,
)
from netproof.case import Case
from netproof.criteria import Finding, Level
from netproof.errors import NetproofError
from netproof.judgement import Baseline, Subject
from netproof.references import VARIABLE_UNITS, readable
from netproof.site import (
    JUDGE_ENVIRONMENT,
    PARTITION_KEYS,
    Partition,
    baseline,
    fewest_ranks_feature,
    ranks_feature,
)

PLAN_FILE = "plan.json"
"""What a job was to run, in which order, beside its output."""

NETPIPE_VARIANTS = tuple(itertools.product(NETPIPE_PROTOCOLS, NETPIPE_PATHS, NETPIPE_DIRECTIONS))
"""Protocol, path and direction of each."""

KEPT_FILES = [
    *("launches.*", "*.out", "*.err", "*.np", plan.SIZE_FILES, provenance.NODE_FILES, PLAN_FILE)
]
"""What is kept of a job's folder."""


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
            path = Path(prefix) / name
            if path.exists():
                # ReFrame has no limits, and takes the second of a key that is there twice.
                readable(path)
            self.reference = {"$ref": str(path)}
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


class Steps(rfm.RunOnlyRegressionTest, Launched):
    """A Slurm job whose script runs launches as job steps; one at a time in a contention domain.

    ``seed``: of the order they run in; 0 draws one. ``over_tcp``: NetPIPE over TCP is among them.
    """

    sourcesdir = None
    executable = "bash"
    executable_opts = ["launches.sh"]
    exclusive_access = True
    over_tcp = False
    keep_files = KEPT_FILES
    seed = variable(int, value=0)
    describe_nodes = False

    def write_steps(
        self, steps: Callable[[list[str], int], Sequence[plan.Step]], files: dict[str, str]
    ) -> None:
        """Write script, plan and ``files`` (name to text) into the stage folder.

        ``steps`` gives the launches for srun's command and the seed. srun starts the steps, not
        the script.
        """
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
        planned = steps(srun, self.seed)
        for source in plan.SHELL_FILES:
            shutil.copy(source, stage)
        for name, text in files.items():
            (stage / name).write_text(text)
        (stage / "launches.sh").write_text(
            plan.script(
                planned,
                partition,
                over_tcp=self.over_tcp,
                describe_nodes=self.describe_nodes,
            )
        )
        document = {"seed": self.seed, "steps": [step.name for step in planned]}
        (stage / PLAN_FILE).write_text(json.dumps(document, indent=1) + "\n")


@functools.cache
def ran_with() -> provenance.Software:
    """Versions, revision and files that this session runs with; gathered once."""
    return provenance.software(
        Path(runtime().site_config.sources[-1]).parent,
        Path(runtime().get_option("general/0/reference_prefix")),
        Path(__file__).parent,
    )


class Job(Steps, Referenced):
    """One Slurm job whose steps are the launches of several functions.

    ``netproof_provenance``: its nodes and its software, for the session's report.
    ``netproof_left``: why it was left, as ``left.Left`` has it; empty for one that was to run.
    """

    netproof_kind = variable(str, value="launches", loggable=True)
    netproof_provenance = variable(dict, value={}, loggable=True)
    netproof_left = variable(dict, value={}, loggable=True)
    describe_nodes = True

    def cases(self) -> list[Case]:
        """What it measures, on its partition and in its environment."""
        raise NetproofError(f"{type(self).__name__} names no case")

    @run_after("setup")
    def leave_it(self) -> None:
        """Skip a job of which every case is to be left; one that has others measures them all."""
        path = os.environ.get(left.VARIABLE)
        if not path:
            return
        try:
            told = left.read(Path(path))
        except NetproofError as error:
            raise ReframeError(str(error)) from None
        reasons = [told.get(case.key()) for case in self.cases()]
        if reasons and all(reasons):
            self.netproof_left = reasons[0].as_json()
            self.skip(reasons[0].why)

    @run_after("setup")
    def insist_on_programs(self) -> None:
        """Fail before anything is submitted with an environment that the site calls unusable."""
        unusable = self.current_environ.extras["unusable"]
        if unusable:
            raise ReframeError(unusable)

    @sanity_function
    def left_records(self) -> bool:
        """The job came to its steps; what each of them did is for the checks to judge."""
        record = Path(self.stagedir) / measured.LAUNCHES_FILE
        if not record.is_file():
            raise SanityError(
                f"the job left no {record}, and Slurm has it as {self.job.state}; if it began,"
                f" see {self.stderr} beside that file"
            )
        try:
            self.netproof_provenance = provenance.of_job(
                Path(self.stagedir), self.job.nodelist, ran_with()
            )
        except provenance.ProvenanceError as error:
            raise SanityError(str(error)) from None
        return True


class NetpipeLaunches(Job):
    """TCP and MPI in turns on the same two nodes, between them and inside one, both directions."""

    num_tasks = 2
    num_tasks_per_node = 1
    over_tcp = True
    valid_systems = ["*"]
    valid_prog_environs = ["+netpipe-tcp +netpipe-mpi"]

    def cases(self) -> list[Case]:
        """Every variant."""
        return [_netpipe_case(self, *variant) for variant in NETPIPE_VARIANTS]

    @run_before("run")
    def plan_launches(self) -> None:
        """All NetPIPE variants, TCP and MPI taking turns."""
        partition = Partition.from_extras(self.current_partition.extras)
        self.write_steps(
            lambda srun, seed: plan.netpipe_steps(self.launches, partition, srun, seed), {}
        )


def functions_here(
    names: Sequence[str], ranks: int, rank_counts: Sequence[int]
) -> list[ImbFunction]:
    """The functions among ``names`` that a job of ``ranks`` runs where it has ``rank_counts``.

    Those for two ranks go with the least count, and those for pairs with even ones.
    """
    functions = [imb_function(name) for name in names]
    return [
        function
        for function in functions
        if (ranks == min(rank_counts) or not function.pair)
        and (ranks % 2 == 0 or not function.pairs)
    ]


class ImbLaunches(Job):
    """Functions of IMB-MPI1 on one rank count; those for two ranks go with the least count."""

    ranks = parameter(rank_counts())
    functions = variable(typ.List[str])
    valid_prog_environs = ["+imb"]

    @run_after("init")
    def find_partitions(self) -> None:
        """Run where the partition measures this rank count."""
        self.valid_systems = [f"+{ranks_feature(self.ranks)}"]

    def functions_here(self) -> list[ImbFunction]:
        """Functions that this partition runs at this rank count."""
        counts = self.current_partition.extras["rank_counts"]
        return functions_here(self.functions, self.ranks, counts)

    def cases(self) -> list[Case]:
        """Each function on the ranks that it uses."""
        return [_imb_case(self, function) for function in self.functions_here()]

    @run_before("run")
    def plan_launches(self) -> None:
        """All launches of all functions, shuffled; each node filled with its ranks."""
        partition = Partition.from_extras(self.current_partition.extras)
        self.num_tasks = self.ranks
        self.num_tasks_per_node = partition.ranks_per_node
        functions = self.functions_here()
        files = plan.imb_size_files(
            {
                function.name: imb_sizes(function, partition.max_message_bytes)
                for function in functions
                if function.least_bytes is not None
            }
        )
        self.write_steps(
            lambda srun, seed: plan.imb_steps(
                functions, self.ranks, self.launches, partition, srun, seed
            ),
            files,
        )


class Reader(rfm.RegressionTestPlugin):
    """Reads the cases that a job of ``launched_by`` left, in the class body a class of launches."""

    launched_by: type[Job]

    def launched(self, **parameters: int) -> str:
        """Name of the job with these parameters."""
        conditions = {
            name: (lambda given, wanted=value: given == wanted)
            for name, value in parameters.items()
        }
        (number,) = type(self).launched_by.get_variant_nums(**conditions)
        return type(self).launched_by.variant_name(number)

    def netpipe_case(self, job: Job, protocol: str, path: str, direction: str) -> measured.Measured:
        """A NetPIPE variant as ``job`` measured it, or Incomplete."""
        partition = Partition.from_extras(job.current_partition.extras)
        return measured.netpipe_case(
            Path(job.stagedir),
            _netpipe_case(job, protocol, path, direction),
            plan.netpipe_subject(protocol, path, direction),
            partition,
            self.launches,
            mpi_over_tcp=job.current_environ.extras["mpi_over_tcp"],
        )

    def imb_case(self, job: ImbLaunches, function: ImbFunction) -> measured.Measured:
        """A function of IMB as ``job`` measured it, or Incomplete."""
        partition = Partition.from_extras(job.current_partition.extras)
        return measured.imb_case(
            Path(job.stagedir),
            _imb_case(job, function),
            function,
            partition,
            self.launches,
            mpi_over_tcp=job.current_environ.extras["mpi_over_tcp"],
        )

    def complete(self, job: Job) -> list[Subject]:
        """Every case that ``job`` completed; what it did not is for the checks to tell."""
        partition = Partition.from_extras(job.current_partition.extras)
        known = job.current_environ.extras["known"]
        found = []
        for read in self.readers(job):
            try:
                case = read()
            except measured.Incomplete:
                continue
            found.append(Subject(case, partition.switch, partition.settings(), known))
        return found


class NetpipeReader(Reader):
    """Reads all variants of NetPIPE."""

    def readers(self, job: Job) -> list[Callable[[], measured.Measured]]:
        """A function for each case of ``job`` that reads it, or raises Incomplete."""
        return [
            lambda variant=variant: self.netpipe_case(job, *variant) for variant in NETPIPE_VARIANTS
        ]


class ImbReader(Reader):
    """Reads all functions that a job of IMB ran."""

    def readers(self, job: ImbLaunches) -> list[Callable[[], measured.Measured]]:
        """A function for each case of ``job`` that reads it, or raises Incomplete."""
        return [
            lambda function=function: self.imb_case(job, function)
            for function in job.functions_here()
        ]


def _where(test: rfm.RegressionTest) -> tuple[str, str, str]:
    return (test.current_system.name, test.current_partition.name, test.current_environ.name)


def _netpipe_case(job: Job, protocol: str, path: str, direction: str) -> Case:
    per_node = 1 if path == "between" else 2
    return Case(*_where(job), "netpipe", protocol, 2, per_node, path, direction)


def _imb_case(job: ImbLaunches, function: ImbFunction) -> Case:
    per_node = job.current_partition.extras["ranks_per_node"]
    ranks, per_node = (2, 1) if function.pair else (job.ranks, per_node)
    return Case(*_where(job), "imb", function.name, ranks, per_node)


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
    netproof_kind = variable(str, value="check", loggable=True)
    netproof_case = variable(dict, value={}, loggable=True)
    netproof_measured = variable(dict, value={}, loggable=True)

    def subject(self) -> str:
        """Stem of the names of the function's steps."""
        raise NetproofError(f"{type(self).__name__} names no function")

    def job_name(self) -> str:
        """Name of the job that measures the function."""
        raise NetproofError(f"{type(self).__name__} names no job")

    def read(self) -> measured.Measured:
        """The complete case, or Incomplete."""
        raise NetproofError(f"{type(self).__name__} reads nothing")

    @run_after("init")
    def wait_for_job(self) -> None:
        """Run once the job is done."""
        self.depends_on(self.job_name(), udeps.by_case)

    @run_after("setup")
    def show_output(self) -> None:
        """Make the benchmark's own text the check's output."""
        self.job_of = self.getdep(self.job_name())
        folder = Path(self.job_of.stagedir)
        self.executable_opts = [
            str(folder / f"{self.subject()}.{launch}.out") for launch in range(1, self.launches + 1)
        ]

    @sanity_function
    def is_complete(self) -> bool:
        """All sizes and launches that were asked for are there, and nothing else."""
        try:
            self.measured = self.read()
        except measured.Incomplete as error:
            # ReFrame puts a cause's text behind the error's own.
            raise SanityError("; ".join(error.reasons)) from None
        job_plan = loading.json_file(Path(self.job_of.stagedir) / PLAN_FILE)
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


class NetpipeCheck(Check, NetpipeReader):
    """NetPIPE over one protocol, on one path, in one direction."""

    protocol = variable(str)
    path = parameter(NETPIPE_PATHS)
    direction = parameter(NETPIPE_DIRECTIONS)
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

    def job_name(self) -> str:
        """Name of the job that measures the variant."""
        return self.launched()

    def read(self) -> measured.Measured:
        """The complete case, or Incomplete."""
        return self.netpipe_case(self.job_of, self.protocol, self.path, self.direction)


class ImbCheck(Check, ImbReader):
    """One function of IMB-MPI1 at one rank count."""

    function = variable(str)
    job_ranks = parameter(rank_counts())
    valid_prog_environs = ["+imb"]
    tags = {"imb"}

    @run_after("init")
    def find_partitions(self) -> None:
        """Run where the partition measures this rank count."""
        function = imb_function(self.function)
        self.ranks = 2 if function.pair else self.job_ranks
        feature = fewest_ranks_feature if function.pair else ranks_feature
        odd = function.pairs and self.job_ranks % 2
        self.valid_systems = [] if odd else [f"+{feature(self.job_ranks)}"]
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

    def job_name(self) -> str:
        """Name of the job that measures the function."""
        return self.launched(ranks=self.job_ranks)

    def read(self) -> measured.Measured:
        """The complete case, or Incomplete."""
        return self.imb_case(self.job_of, imb_function(self.function))


class Curves(Steps):
    """The criteria along each curve of one job; what they flag is measured again and then counts.

    Where nothing is flagged no Slurm job is submitted. Else there is one on the nodes of the job
    that was judged. ``netproof_again`` holds what it measured, for the session's report.
    ``again_launches``: how many of each case.
    """

    again_launches = variable(int, value=3)
    netproof_kind = variable(str, value="curves", loggable=True)
    netproof_again = variable(dict, value={}, loggable=True)

    def job_name(self) -> str:
        """Name of the job whose curves are judged."""
        raise NetproofError(f"{type(self).__name__} names no job")

    def plan_again(self) -> None:
        """Write the script that measures the flagged cases again."""
        raise NetproofError(f"{type(self).__name__} measures nothing again")

    def read_again(self, subject: Subject, findings: tuple[Finding, ...]) -> again.MeasuredAgain:
        """What the job measured again of a case."""
        raise NetproofError(f"{type(self).__name__} reads nothing")

    @run_after("init")
    def wait_for_job(self) -> None:
        """Run once the job is done."""
        self.depends_on(self.job_name(), udeps.by_case)

    @run_after("setup")
    def find_flags(self) -> None:
        """Judge the curves; stay where ReFrame runs unless one of them is flagged."""
        self.job_of = self.getdep(self.job_name())
        subjects = [] if self.is_dry_run() else self.complete(self.job_of)
        # ReFrame writes a test's attributes as JSON, which has only text for keys.
        self.findings = list(judgement.along_all(subjects).items())
        self.flags = [
            (subject, judgement.flagged(findings))
            for subject, findings in self.findings
            if judgement.flagged(findings)
        ]
        if not self.flags:
            # The run's job has been made by now, for Slurm.
            self.local = True
            self._setup_run_job()
            self.executable, self.executable_opts = "true", []

    @run_before("run")
    def measure_again(self) -> None:
        """On the very nodes, in more launches, around every flagged size."""
        if self.flags:
            self.num_tasks = self.job_of.num_tasks
            self.num_tasks_per_node = self.job_of.num_tasks_per_node
            self.job.pin_nodes = list(self.job_of.job.nodelist)
            self.plan_again()

    @sanity_function
    def curves_hold(self) -> bool:
        """No criterion fails, or a sentence for each that does."""
        if not self.findings:
            raise SanityError("no case is complete, so there is no curve to judge")
        several = [self.read_again(*flagged) for flagged in self.flags]
        self.netproof_again = {
            "format": session.MEASURED_FORMAT,
            "cases": [measured_again.as_json() for measured_again in several],
        }
        measured_again = again.by_case(several)
        rulings = [
            ruling
            for subject, findings in self.findings
            for ruling in again.rule_all(subject, findings, measured_again.get(subject.case.key()))
        ]
        return _hold(rulings)


def _hold(rulings: Sequence[judgement.Ruling]) -> bool:
    failed = [ruling.why for ruling in rulings if ruling.level is Level.FAIL]
    if failed:
        raise SanityError("\n".join(failed))
    return True


class NetpipeCurves(Curves, NetpipeReader):
    """The curves of one NetPIPE job."""

    over_tcp = True
    valid_systems = ["*"]
    valid_prog_environs = ["+netpipe-tcp +netpipe-mpi"]
    tags = {"netpipe"}

    def job_name(self) -> str:
        """Name of the job whose curves are judged."""
        return self.launched()

    def sweeps(self, subject: Subject, findings: tuple[Finding, ...]) -> tuple[plan.Sweep, ...]:
        """The calls of NetPIPE that make one launch."""
        return again.netpipe_sweeps(findings, subject.confirm_settings())

    def plan_again(self) -> None:
        """Write the script that measures the flagged cases again."""
        partition = Partition.from_extras(self.current_partition.extras)
        sweeps = {
            (subject.case.function, subject.case.path, subject.case.direction): self.sweeps(
                subject, findings
            )
            for subject, findings in self.flags
        }
        self.write_steps(
            lambda srun, seed: plan.netpipe_sweep_steps(
                sweeps, self.again_launches, partition, srun, seed
            ),
            {},
        )

    def read_again(self, subject: Subject, findings: tuple[Finding, ...]) -> again.MeasuredAgain:
        """What the job measured again of a case."""
        case, folder = subject.case, Path(self.stagedir)
        name = plan.netpipe_subject(case.function, case.path, case.direction)
        return again.read(
            folder,
            case,
            [
                (plan.sweep_subject(name, sweep), sweep.sizes())
                for sweep in self.sweeps(subject, findings)
            ],
            self.again_launches,
            measured.netpipe_reader(folder, case),
            nodes=self.job.nodelist,
            jobid=self.job.jobid,
        )


class ImbCurves(Curves, ImbReader):
    """The curves of one IMB job."""

    job_ranks = parameter(rank_counts())
    valid_prog_environs = ["+imb"]
    tags = {"imb"}

    @run_after("init")
    def find_partitions(self) -> None:
        """Run where the partition measures this rank count."""
        self.valid_systems = [f"+{ranks_feature(self.job_ranks)}"]

    def job_name(self) -> str:
        """Name of the job whose curves are judged."""
        return self.launched(ranks=self.job_ranks)

    def plan_again(self) -> None:
        """Write the script that measures the flagged cases again."""
        partition = Partition.from_extras(self.current_partition.extras)
        functions = [imb_function(subject.case.function) for subject, _ in self.flags]
        sizes = {
            subject.case.function: judgement.dense_sizes(subject, findings)
            for subject, findings in self.flags
        }
        self.write_steps(
            lambda srun, seed: plan.imb_steps(
                functions, self.job_ranks, self.again_launches, partition, srun, seed
            ),
            plan.imb_size_files(sizes),
        )

    def read_again(self, subject: Subject, findings: tuple[Finding, ...]) -> again.MeasuredAgain:
        """What the job measured again of a case."""
        folder = Path(self.stagedir)
        return again.read(
            folder,
            subject.case,
            [(subject.case.function, judgement.dense_sizes(subject, findings))],
            self.again_launches,
            measured.imb_reader(folder, subject.case),
            nodes=self.job.nodelist,
            jobid=self.job.jobid,
        )


class Configurations(rfm.RunOnlyRegressionTest, Launched):
    """The criteria that compare configurations, over every job of one kind in the run.

    It runs once, in ReFrame's own environment and on the first partition, when all jobs are done.
    A run narrowed to some environments or checks does not have it.
    """

    local = True
    sourcesdir = None
    executable = "true"
    valid_prog_environs = [JUDGE_ENVIRONMENT]
    netproof_kind = variable(str, value="configurations", loggable=True)

    def job_name(self) -> str:
        """Name of the jobs that are compared."""
        raise NetproofError(f"{type(self).__name__} names no job")

    @run_after("init")
    def wait_for_all(self) -> None:
        """Run once every job is done, on whatever partition."""
        self.valid_systems = [runtime().system.partitions[0].fullname]
        self.depends_on(self.job_name(), udeps.fully)

    @sanity_function
    def configurations_hold(self) -> bool:
        """No criterion fails, or a sentence for each that does."""
        subjects = [subject for job in self._jobs() for subject in self.complete(job)]
        if not subjects:
            raise SanityError("no case is complete, so there is nothing to compare")
        partitions = [
            {"name": partition.name, "extras": partition.extras}
            for partition in runtime().system.partitions
        ]
        named = baseline(partitions)
        rulings = judgement.across(subjects, None if named is None else Baseline(*named))
        return _hold([ruling for several in rulings.values() for ruling in several])

    def _jobs(self) -> list[Job]:
        jobs = []
        for partition in runtime().system.partitions:
            for environment in partition.environs:
                with contextlib.suppress(DependencyError):
                    jobs.append(
                        self.getdep(self.job_name(), environ=environment.name, part=partition.name)
                    )
        return jobs


class NetpipeConfigurations(Configurations, NetpipeReader):
    """NetPIPE on all configurations."""

    tags = {"netpipe"}

    def job_name(self) -> str:
        """Name of the jobs that are compared."""
        return self.launched()


class ImbConfigurations(Configurations, ImbReader):
    """The functions of IMB on all configurations of one rank count."""

    job_ranks = parameter(rank_counts())
    tags = {"imb"}

    def job_name(self) -> str:
        """Name of the jobs that are compared."""
        return self.launched(ranks=self.job_ranks)
