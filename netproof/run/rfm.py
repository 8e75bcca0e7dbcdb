"""The ReFrame side of netproof; nothing else in the library imports ReFrame.

A run has six kinds of tests, and the leaves in ``checks/`` derive from them:

- *launches* (``NetpipeLaunches``, ``ImbLaunches``): one Slurm job for each partition, environment
  and rank count, in which every launch of every function is a job step;
- *further* (``NetpipeFurther``, ``ImbFurther``): one for each job, which launches on what that job
  left undecided, on the same nodes, before anything counts; where nothing is, it does nothing;
- *checks* (``NetpipeCheck``, ``ImbCheck``): one for each function, over the files that both
  left: is it complete, and do its landmarks hold against the references;
- *curves* (``NetpipeCurves``, ``ImbCurves``): one for each job, with the criteria along each
  curve;
- *compared further* (``NetpipeComparedFurther``, ``ImbComparedFurther``): one for each job, once
  all are done, which launches on what comparing configurations leaves undecided;
- *configurations* (``NetpipeConfigurations``, ``ImbConfigurations``): one for each rank count,
  over the jobs of all partitions and environments, with the criteria that compare them.

A job of which every case is in the file that NETPROOF_LEFT names is skipped, see
``netproof.session.left``.

Attributes are due as follows. Class body: ``function`` (IMB), ``protocol`` (NetPIPE),
``launched_by``. After init: ``valid_systems``, ``valid_prog_environs``, ``ranks``, ``reference``,
dependencies. Before setup: the references are there, or the test fails. After setup: ``job_of``,
and for what launches on whether something is undecided. Before run: a job's plan, its Slurm
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
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

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

from netproof.benchmarks.catalogue import (
    NETPIPE_DIRECTIONS,
    NETPIPE_PATHS,
    NETPIPE_PROTOCOLS,
    ImbFunction,
    imb_function,
    imb_sizes,
)
from netproof.criteria import Level
from netproof.errors import NetproofError
from netproof.intake import loading, trust
from netproof.measurement.case import Case
from netproof.run import further
from netproof.session import (
    again,
    left,
    measured,
    plan,
    provenance,
    reference_findings,
    session,
)
from netproof.site.site import (
    JUDGE_ENVIRONMENT,
    PARTITION_KEYS,
    Partition,
    ScoreBaseline,
    fewest_ranks_feature,
    ranks_feature,
    score_baseline,
)
from netproof.verdict import confirming, judgement, limits, references
from netproof.verdict.judgement import Subject

PLAN_FILE = "plan.json"
"""What a job was to run, in which order, beside its output."""

NETPIPE_VARIANTS = tuple(itertools.product(NETPIPE_PROTOCOLS, NETPIPE_PATHS, NETPIPE_DIRECTIONS))
"""Protocol, path and direction of each."""

KEPT_FILES = [
    *("launches.*", "*.out", "*.err", "*.np", plan.SIZE_FILES, provenance.NODE_FILES, PLAN_FILE),
    provenance.JOB_NODES_FILE,
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
            trust.insist(path, "references")
            if path.exists():
                # ReFrame has no limits, and takes the second of a key that is there twice.
                references.readable(path)
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

    def own_nodes(self) -> tuple[str, ...]:
        """Its nodes by its own word; ReFrame's list is of a moment that may be too early.

        Raises ProvenanceError where it left none that is whole.
        """
        return provenance.nodes_of_job(Path(self.stagedir), str(self.job.jobid))

    @run_before("setup")
    def insist_on_slurm(self) -> None:
        """Fail at once where Slurm's commands would look for their configuration for a minute.

        ReFrame asks them as it sets a job up.
        """
        if not self.is_dry_run():
            try:
                trust.insist_on_slurm()
            except NetproofError as error:
                raise ReframeError(str(error)) from None

    def write_steps(
        self, steps: Callable[[list[str], int], Sequence[plan.Step]], files: dict[str, str]
    ) -> None:
        """Write script, plan and ``files`` (name to text) into the stage folder.

        ``steps`` gives the launches for srun's command and the seed. srun starts the steps, not
        the script.
        """
        partition = Partition.from_extras(self.current_partition.extras)
        planned = steps(self.take_over_srun(partition), self.seed)
        text = plan.script(
            planned, partition, over_tcp=self.over_tcp, describe_nodes=self.describe_nodes
        )
        self.write_files(text, files, [step.name for step in planned])

    def take_over_srun(self, partition: Partition) -> list[str]:
        """The launcher's command for a step; ReFrame starts the script without it.

        Draws the seed, and queues the job behind others of its contention domain.
        """
        self.seed = self.seed or random.SystemRandom().randrange(1, 2**31)
        srun = [
            *self.job.launcher.command(self.job),
            f"--mpi={self.current_environ.extras['pmi']}",
        ]
        self.job.launcher = getlauncher("local")()
        self.job.options += [
            f"--job-name={plan.job_name(partition.contention_domain)}",
            "--dependency=singleton",
        ]
        return srun

    def write_files(self, script: str, files: dict[str, str], names: Sequence[str]) -> None:
        """Write the script, what it sources, ``files`` and the plan, ``names`` being the steps'."""
        stage = Path(self.stagedir)
        for source in plan.SHELL_FILES:
            shutil.copy(source, stage)
        for name, text in files.items():
            (stage / name).write_text(text)
        (stage / "launches.sh").write_text(script)
        document = {"seed": self.seed, "steps": list(names)}
        (stage / PLAN_FILE).write_text(json.dumps(document, indent=1) + "\n")


@functools.cache
def ran_with() -> provenance.Software:
    """Versions, revision and files that this session runs with; gathered once."""
    return provenance.software(
        Path(runtime().site_config.sources[-1]).parent,
        Path(runtime().get_option("general/0/reference_prefix")),
        Path(__file__).parents[1],
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
                Path(self.stagedir), self.own_nodes(), ran_with()
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


def name_of(kind: type[rfm.RegressionTest], **parameters: int) -> str:
    """Name of the test of a class with these parameters."""
    conditions = {
        name: (lambda given, wanted=value: given == wanted) for name, value in parameters.items()
    }
    (number,) = kind.get_variant_nums(**conditions)
    return kind.variant_name(number)


class Reader(rfm.RegressionTestPlugin):
    """Reads the cases that a job left.

    ``launched_by``, ``launched_further_by``, ``compared_further_by``: in the class body, as far
    as a test has to do with them, the leaf classes of its jobs and of what launches on.
    """

    launched_by: type[Job]
    launched_further_by: type[Further]
    compared_further_by: type[ComparedFurther]

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

    def complete(self, job: Job, *several: Further) -> list[Subject]:
        """Every case that ``job`` completed; what it did not is for the checks to tell.

        ``several``: what launched on, whose launches are the case's too.
        """
        known = job.current_environ.extras["known"]
        found = []
        for read in self.readers(job):
            try:
                case = read()
                for one in several:
                    case = one.extend(case)
            except measured.Incomplete:
                continue
            found.append(Subject.of_extras(case, job.current_partition.extras, known))
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
    ``netproof_measured`` holds what the job measured, ``netproof_references`` what its references
    say of it and of what was launched further; all go into ReFrame's session report.
    """

    local = True
    sourcesdir = None
    executable = "cat"
    require_reference = True
    ranks = variable(int, loggable=True)
    netproof_kind = variable(str, value="check", loggable=True)
    netproof_case = variable(dict, value={}, loggable=True)
    netproof_measured = variable(dict, value={}, loggable=True)
    netproof_references = variable(list, value=[], loggable=True)

    def subject(self) -> str:
        """Stem of the names of the function's steps."""
        raise NetproofError(f"{type(self).__name__} names no function")

    def parameters(self) -> dict[str, int]:
        """Of the tests that measure the function."""
        return {}

    def read(self) -> measured.Measured:
        """The complete case as the job measured it, or Incomplete."""
        raise NetproofError(f"{type(self).__name__} reads nothing")

    @run_after("init")
    def wait_for_launches(self) -> None:
        """Run once the job is done, and what launched on."""
        for waited_for in (self.launched_by, self.launched_further_by):
            self.depends_on(name_of(waited_for, **self.parameters()), udeps.by_case)

    @run_after("setup")
    def show_output(self) -> None:
        """Make the benchmark's own text the check's output; ReFrame takes options as shell text."""
        self.job_of = self.getdep(name_of(self.launched_by, **self.parameters()))
        self.further_of = self.getdep(name_of(self.launched_further_by, **self.parameters()))
        folder = Path(self.job_of.stagedir)
        self.executable_opts = [
            shlex.quote(str(folder / f"{self.subject()}.{launch}.out"))
            for launch in range(1, self.launches + 1)
        ]

    @sanity_function
    def is_complete(self) -> bool:
        """All sizes and launches that were asked for are there, and nothing else."""
        try:
            first = self.read()
            self.measured = self.further_of.extend(first)
        except measured.Incomplete as error:
            # ReFrame puts a cause's text behind the error's own.
            raise SanityError("; ".join(error.reasons)) from None
        job_plan = loading.json_file(Path(self.job_of.stagedir) / PLAN_FILE)
        self.netproof_measured = {
            "format": session.MEASURED_FORMAT,
            **first.as_json(),
            "partition_extras": self.current_partition.extras,
            "environment_extras": self.current_environ.extras,
            "seed": job_plan["seed"],
            "jobid": self.job_of.job.jobid,
        }
        return True

    @run_before("performance")
    def set_variables(self) -> None:
        """The landmarks and the time at every size, as plain values that cannot raise.

        Those that have a reference are judged by their interval. One that lies astride its bounds
        is not judged by its value, which may be on either side: it fails as inconclusive. A dry
        run has no values; what it can see is whether there are references.
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
        self.perf_variables = {}
        for name, (value, unit) in limits.variables(self.measured).items():
            if value is not None:
                self.perf_variables[name] = make_performance_function(
                    lambda value=value: value, unit
                )
            if name.startswith(limits.TIME_AT):
                bounds.setdefault(name, (0, None, None, unit))
        subject = Subject.of_extras(
            self.measured, self.current_partition.extras, self.current_environ.extras["known"]
        )
        findings = judgement.references(subject, limits.of_references(bounds))
        self.netproof_references = [
            reference_findings.as_json(name, finding) for name, finding in findings.items()
        ]
        # Also of an entry whose failure is expected, which is not judged here.
        undefined = references.not_defined(bounds, self.measured)
        if undefined:
            raise SanityError(undefined)
        self.open_references = []
        for name, finding in findings.items():
            if finding.level is Level.UNDEFINED:
                raise SanityError(finding.why)
            if finding.level is Level.INCONCLUSIVE:
                self.open_references.append(finding.why)
                bounds[name] = (bounds[name][0], None, None, bounds[name][3])

    @run_after("performance")
    def insist_on_decisions(self) -> None:
        """What is neither within its references nor beyond them has not passed."""
        if not self.is_dry_run() and self.open_references:
            raise SanityError(f"inconclusive: {'; '.join(self.open_references)}")


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

    def parameters(self) -> dict[str, int]:
        """Of the tests that measure the function."""
        return {"ranks": self.job_ranks}

    def read(self) -> measured.Measured:
        """The complete case, or Incomplete."""
        return self.imb_case(self.job_of, imb_function(self.function))


class Further(Steps, Reader):
    """Launches on, on the same nodes, what a job left undecided; one for each job.

    Where nothing is undecided no Slurm job is submitted. ``netproof_again`` holds what was
    measured around flagged sizes, ``netproof_further`` the launches of whole curves, for the
    session's report.
    """

    netproof_kind = variable(str, value="further", loggable=True)
    netproof_again = variable(dict, value={}, loggable=True)
    netproof_further = variable(dict, value={}, loggable=True)

    def parameters(self) -> dict[str, int]:
        """Of the job that is launched on."""
        return {}

    def rounds(
        self, srun: Sequence[str]
    ) -> tuple[list[list[tuple[str, plan.Step]]], dict[str, str]]:
        """The rounds of steps with their labels, and the files that they need."""
        raise NetproofError(f"{type(self).__name__} launches nothing")

    @run_after("init")
    def wait_for_job(self) -> None:
        """Run once the job is done."""
        self.depends_on(name_of(self.launched_by, **self.parameters()), udeps.by_case)

    @run_after("setup")
    def find_undecided(self) -> None:
        """Judge what the job measured; stay where ReFrame runs unless something is undecided."""
        self.job_of = self.getdep(name_of(self.launched_by, **self.parameters()))
        # ReFrame writes a test's attributes as JSON, which has only text for keys.
        self.asked, self.open_whole, self.open_around = [], [], []
        if not self.is_dry_run():
            self.asked = self.asked_of(self.complete_before())
            found = self.undecided()
            self.open_whole, self.open_around = list(found.whole), list(found.around)
        if not (self.open_whole or self.open_around):
            # The run's job has been made by now, for Slurm.
            self.local = True
            self._setup_run_job()
            self.executable, self.executable_opts = "true", []

    def complete_before(self) -> list[Subject]:
        """The cases as they are before this test launches on."""
        return self.complete(self.job_of)

    def undecided(self) -> further.Undecided:
        """What is to be launched on."""
        return further.undecided([further.Done(one) for one in self.asked])

    def asked_of(self, subjects: Sequence[Subject]) -> list[further.FurtherCase]:
        """The cases, with the limits that their references set."""
        return _asked(subjects, self.current_system.name, self.current_partition.extras)

    @run_before("run")
    def launch_on(self) -> None:
        """On the very nodes, in rounds, until what is asked is decided."""
        if not (self.open_whole or self.open_around):
            return
        self.num_tasks = self.job_of.num_tasks
        self.num_tasks_per_node = self.job_of.num_tasks_per_node
        self.job.pin_nodes = list(self.job_of.own_nodes())
        partition = Partition.from_extras(self.current_partition.extras)
        stage = Path(self.stagedir)
        rounds, files = self.rounds(self.take_over_srun(partition))
        decisions = further.decisions(self.asked, len(rounds), stage)
        text = plan.further_script(rounds, partition, over_tcp=self.over_tcp, decisions=decisions)
        further.write_question(stage, self.asked)
        self.write_files(text, files, [step.name for steps in rounds for _, step in steps])

    @sanity_function
    def keep_launches(self) -> bool:
        """What was launched on is kept."""
        done = [
            further.read(
                Path(self.stagedir),
                one,
                whole=one.case.key() in self.open_whole,
                around=one.case.key() in self.open_around,
                jobid=str(self.job.jobid),
            )
            for one in self.asked
            if self.open_whole or self.open_around
        ]
        self.netproof_further = {
            "format": session.MEASURED_FORMAT,
            "cases": [one.as_json() for one in done if one.launches or one.faults],
        }
        self.netproof_again = {
            "format": session.MEASURED_FORMAT,
            "cases": [one.again.as_json() for one in done if one.again is not None],
        }
        self.insist_on_launches()
        return True

    def insist_on_launches(self) -> None:
        """A launch that is not complete is for the check of its case to tell."""

    def extend(self, case: measured.Measured) -> measured.Measured:
        """A case with its further launches; Incomplete where one of them is not complete."""
        for values in self.netproof_further.get("cases", ()):
            if Case(**values["case"]) == case.case:
                if values["faults"]:
                    raise measured.Incomplete(values["faults"])
                more = [measured.Launch.from_json(launch) for launch in values["launches"]]
                crashed = [measured.Crash.from_json(crash) for crash in values["crashes"]]
                return case.with_launches([*case.launches, *more], crashed)
        return case

    def measured_again(self) -> dict[tuple, again.MeasuredAgain]:
        """What was measured around flagged sizes, by the case's key."""
        return again.by_case(
            again.MeasuredAgain.from_json(values) for values in self.netproof_again.get("cases", ())
        )


def _asked(
    subjects: Sequence[Subject], system: str, extras: Mapping[str, Any]
) -> list[further.FurtherCase]:
    """Cases of a partition that has ``extras``, with the limits that their references set."""
    found = _references(system)
    return [
        further.FurtherCase(subject, limits.of_case(found, subject.case), extras)
        for subject in subjects
    ]


def _references(system: str) -> references.ReferenceFile:
    prefix = runtime().get_option("general/0/reference_prefix")
    return references.ReferenceFile(Path(prefix) / f"{system}.yaml")


class NetpipeFurther(Further, NetpipeReader):
    """Launches NetPIPE on."""

    over_tcp = True
    valid_systems = ["*"]
    valid_prog_environs = ["+netpipe-tcp +netpipe-mpi"]
    tags = {"netpipe"}

    def rounds(
        self, srun: Sequence[str]
    ) -> tuple[list[list[tuple[str, plan.Step]]], dict[str, str]]:
        """The rounds of steps with their labels; NetPIPE needs no files."""
        partition = Partition.from_extras(self.current_partition.extras)
        where = (self.asked, self.open_whole, self.open_around)
        rounds = further.netpipe_rounds(*where, srun, self.seed, partition)
        return rounds, {}


class ImbFurther(Further, ImbReader):
    """Launches functions of IMB on."""

    ranks = parameter(rank_counts())
    valid_prog_environs = ["+imb"]
    tags = {"imb"}

    @run_after("init")
    def find_partitions(self) -> None:
        """Run where the partition measures this rank count."""
        self.valid_systems = [f"+{ranks_feature(self.ranks)}"]

    def parameters(self) -> dict[str, int]:
        """Of the job that is launched on."""
        return {"ranks": self.ranks}

    def rounds(
        self, srun: Sequence[str]
    ) -> tuple[list[list[tuple[str, plan.Step]]], dict[str, str]]:
        """The rounds of steps with their labels, and the lists of message sizes."""
        partition = Partition.from_extras(self.current_partition.extras)
        where = (self.asked, self.open_whole, self.open_around)
        rounds = further.imb_rounds(*where, srun, self.seed, partition, self.ranks)
        return rounds, further.imb_files(*where)


class ComparedFurther(rfm.RegressionTestPlugin):
    """Launches on what comparing configurations leaves undecided, once every job is done.

    That is a case that criteria across configurations flag, and the one that it was compared with:
    each is launched on by the test of its own job, which makes every round. It comes before a
    class of ``Further`` among the bases.
    """

    @run_after("init")
    def wait_for_job(self) -> None:
        """Run once every job is done, on whatever partition."""
        for waited_for in (self.launched_by, self.launched_further_by):
            self.depends_on(name_of(waited_for, **self.parameters()), udeps.fully)

    def complete_before(self) -> list[Subject]:
        """The cases with what launched them on first."""
        name = name_of(self.launched_further_by, **self.parameters())
        return self.complete(self.job_of, self.getdep(name))

    def undecided(self) -> further.Undecided:
        """Own cases that a comparison of all flags, or that others are flagged against."""
        self.asked = further.compared(_everyone_done(self), self.asked, _score_baseline())
        return further.undecided([further.Done(one) for one in self.asked])

    def insist_on_launches(self) -> None:
        """Fail for a launch that is not complete: the checks of the cases are done by now."""
        faults = [fault for values in self.netproof_further["cases"] for fault in values["faults"]]
        if faults:
            raise SanityError("\n".join(faults))


class NetpipeComparedFurther(ComparedFurther, NetpipeFurther):
    """Launches NetPIPE on."""

    netproof_kind = "compared further"


class ImbComparedFurther(ComparedFurther, ImbFurther):
    """Launches functions of IMB on."""

    netproof_kind = "compared further"


def _tests(test: rfm.RegressionTest, name: str) -> dict[tuple[str, str], rfm.RegressionTest]:
    """The tests of that name that ``test`` waits for, by partition and environment."""
    found = {}
    for partition in runtime().system.partitions:
        for environment in partition.environs:
            with contextlib.suppress(DependencyError):
                found[partition.name, environment.name] = test.getdep(
                    name, environ=environment.name, part=partition.name
                )
    return found


def _everyone_done(test: ComparedFurther) -> list[further.Done]:
    """Every case of every configuration that a test waits for, with what launched it on."""
    jobs = _tests(test, name_of(test.launched_by, **test.parameters()))
    launched_on = _tests(test, name_of(test.launched_further_by, **test.parameters()))
    found = []
    for where, job in jobs.items():
        one = launched_on[where]
        around = one.measured_again()
        subjects = test.complete(job, one)
        asked = _asked(subjects, job.current_system.name, job.current_partition.extras)
        found += [further.Done(each, again=around.get(each.case.key())) for each in asked]
    return found


def _everyone(test: Configurations) -> list[Subject]:
    """Every case of every configuration that a test waits for, with all launches that it has."""
    kinds = [test.launched_further_by, test.compared_further_by]
    jobs = _tests(test, name_of(test.launched_by, **test.parameters()))
    several = [_tests(test, name_of(kind, **test.parameters())) for kind in kinds]
    return [
        subject
        for where, job in jobs.items()
        for subject in test.complete(job, *(tests[where] for tests in several if where in tests))
    ]


def _score_baseline() -> ScoreBaseline | None:
    """The configuration that scores of this system are relative to."""
    partitions = [
        {"name": partition.name, "extras": partition.extras}
        for partition in runtime().system.partitions
    ]
    return score_baseline(partitions)


class Curves(rfm.RunOnlyRegressionTest, Launched):
    """The criteria along each curve of one job, with what was launched further."""

    local = True
    sourcesdir = None
    executable = "true"
    netproof_kind = variable(str, value="curves", loggable=True)

    def parameters(self) -> dict[str, int]:
        """Of the job whose curves are judged."""
        return {}

    @run_after("init")
    def wait_for_launches(self) -> None:
        """Run once the job is done, and what launched on."""
        for waited_for in (self.launched_by, self.launched_further_by):
            self.depends_on(name_of(waited_for, **self.parameters()), udeps.by_case)

    @sanity_function
    def curves_hold(self) -> bool:
        """No criterion fails, or a sentence for each that does."""
        job = self.getdep(name_of(self.launched_by, **self.parameters()))
        launched_on = self.getdep(name_of(self.launched_further_by, **self.parameters()))
        subjects = self.complete(job, launched_on)
        if not subjects:
            raise SanityError("no case is complete, so there is no curve to judge")
        measured_again = launched_on.measured_again()
        rulings = [
            ruling
            for subject, findings in judgement.along_all(subjects).items()
            for ruling in confirming.rule_all(
                subject, findings, measured_again.get(subject.case.key())
            )
        ]
        for one in judgement.launched(subjects, again.starts(measured_again)):
            rulings.append(judgement.Ruling(one.finding, one.finding.level, one.finding.why))
        return _hold(rulings)


def _hold(rulings: Sequence[judgement.Ruling]) -> bool:
    failed = [ruling.why for ruling in rulings if ruling.level is Level.FAIL]
    failed += [
        f"inconclusive: {ruling.why}" for ruling in rulings if ruling.level is Level.INCONCLUSIVE
    ]
    if failed:
        raise SanityError("\n".join(failed))
    return True


class NetpipeCurves(Curves, NetpipeReader):
    """The curves of one NetPIPE job."""

    valid_systems = ["*"]
    valid_prog_environs = ["+netpipe-tcp +netpipe-mpi"]
    tags = {"netpipe"}


class ImbCurves(Curves, ImbReader):
    """The curves of one IMB job."""

    job_ranks = parameter(rank_counts())
    valid_prog_environs = ["+imb"]
    tags = {"imb"}

    @run_after("init")
    def find_partitions(self) -> None:
        """Run where the partition measures this rank count."""
        self.valid_systems = [f"+{ranks_feature(self.job_ranks)}"]

    def parameters(self) -> dict[str, int]:
        """Of the job whose curves are judged."""
        return {"ranks": self.job_ranks}


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

    def parameters(self) -> dict[str, int]:
        """Of the jobs that are compared."""
        return {}

    @run_after("init")
    def wait_for_all(self) -> None:
        """Run once every job is done, on whatever partition, and what launched on."""
        self.valid_systems = [runtime().system.partitions[0].fullname]
        for waited_for in (self.launched_by, self.launched_further_by, self.compared_further_by):
            self.depends_on(name_of(waited_for, **self.parameters()), udeps.fully)

    @sanity_function
    def configurations_hold(self) -> bool:
        """No criterion fails, or a sentence for each that does."""
        subjects = _everyone(self)
        if not subjects:
            raise SanityError("no case is complete, so there is nothing to compare")
        rulings = judgement.across(subjects, _score_baseline())
        return _hold([ruling for several in rulings.values() for ruling in several])


class NetpipeConfigurations(Configurations, NetpipeReader):
    """NetPIPE on all configurations."""

    tags = {"netpipe"}


class ImbConfigurations(Configurations, ImbReader):
    """The functions of IMB on all configurations of one rank count."""

    job_ranks = parameter(rank_counts())
    tags = {"imb"}

    def parameters(self) -> dict[str, int]:
        """Of the jobs that are compared."""
        return {"ranks": self.job_ranks}
