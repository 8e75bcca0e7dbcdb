"""Slurm jobs of a run: their launches, options and records."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import random
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import reframe as rfm
import reframe.utility.typecheck as typ
from reframe.core.backends import getlauncher
from reframe.core.builtins import parameter, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import DependencyError, ReframeError, SanityError
from reframe.core.runtime import runtime

from netproof import codec
from netproof.benchmarks import netpipe, registry
from netproof.benchmarks.interface import Function
from netproof.errors import NetproofError
from netproof.intake import trust
from netproof.measurement.case import Case
from netproof.run.mixins import Launched, RecordedTest, Referenced
from netproof.run.system_here import rank_counts, slurm_now
from netproof.run.waiting import WaitsForNodes
from netproof.session import (
    job_files,
    left,
    node_facts,
    plan,
    provenance,
    records,
    session,
    slurm_nodes,
    transport,
)
from netproof.session.job_files import Incomplete
from netproof.session.measured import Measured
from netproof.site.partition import ranks_feature
from netproof.verdict.engine import Subject

if TYPE_CHECKING:
    from netproof.run.repeats import ComparedRepeat, Repeat

KEPT_FILES = [
    *("launches.*", "*.out", "*.err", "*.np", plan.SIZE_FILES, node_facts.NODE_FILES),
    *(plan.PLAN_FILE, job_files.JOB_FILE),
    *(plan.PEER_FILES, node_facts.JOB_NODES_FILE),
    *(node_facts.PATH_FILES, node_facts.CLOCK_FILE, node_facts.RING_FILE, slurm_nodes.TRIES),
]
"""Files of a job's folder that are stored."""


class Steps(rfm.RunOnlyRegressionTest, Launched):
    """A Slurm job whose launches are job steps; one job at a time in a contention domain.

    ``seed``: of their order; 0 draws one.
    """

    sourcesdir = None
    # When Slurm ends the job, its script waits for the program, which ends the steps.
    prerun_cmds = ["trap : TERM"]
    executable = "bash"
    executable_opts = [plan.SCRIPT]
    exclusive_access = True
    keep_files = KEPT_FILES
    seed = variable(int, value=0)
    describe_nodes = False

    def least_run(self) -> list[str]:
        """Return the command that asks the MPI library for its transport; empty for none."""
        return []

    def own_nodes(self) -> tuple[str, ...]:
        """Return the nodes in the job's own list; ReFrame's may be from too early a moment.

        Raises ProvenanceError if the list is missing or not whole.
        """
        return node_facts.nodes_of_job(Path(self.stagedir), str(self.job.jobid))

    @run_before("setup")
    def insist_on_slurm(self) -> None:
        """Fail at once if Slurm's commands would search for their configuration for a minute.

        ReFrame runs them as it sets a job up.
        """
        if not self.is_dry_run():
            try:
                trust.insist_on_slurm()
            except NetproofError as error:
                raise ReframeError(str(error)) from None

    def write_steps(
        self, steps: Sequence[plan.Step], srun: list[str], files: dict[str, str]
    ) -> None:
        """Write the plan of these steps and ``files`` (name to text) into the stage folder.

        ``srun``: the command that starts the steps.
        """
        program = self.least_run()
        self.write_plan(
            files,
            rounds=(tuple(steps),),
            transport=transport.step(program, srun) if program else (),
        )

    def take_over_srun(self) -> list[str]:
        """Return the launcher's command for a step; ReFrame starts the script without it.

        Draw the seed, and queue the job behind others of its contention domain.
        """
        self.seed = self.seed or random.SystemRandom().randrange(1, 2**31)
        srun = [
            *self.job.launcher.command(self.job),
            f"--mpi={self.current_environ.extras['pmi']}",
        ]
        self.job.launcher = getlauncher("local")()
        self.job.options += [
            f"--job-name={plan.job_name(self.site_partition().contention_domain)}",
            "--dependency=singleton",
        ]
        return srun

    def program_report(self) -> dict[str, Any]:
        """Return what the job's program left of itself; empty if it was ended before."""
        try:
            return codec.encode(job_files.JobReport.read(Path(self.stagedir)))
        except (NetproofError, OSError):
            return {}

    def write_plan(self, files: dict[str, str], **planned: Any) -> None:
        """Write the plan, the script, its sources and ``files`` into the stage folder.

        ``planned``: fields of ``plan.JobPlan``.
        """
        stage, partition = Path(self.stagedir), self.site_partition()
        for source in plan.SHELL_FILES:
            shutil.copy(source, stage)
        if partition.pace:
            # A file, since a launch in another environment has none of the job's variables.
            files = {**files, plan.PACE_FILE: f'{shlex.join(partition.pace)} "$@"\n'}
        root = Path(__file__).resolve().parents[2]
        files = {**files, plan.SCRIPT: plan.script(sys.executable, root)}
        for name, text in files.items():
            (stage / name).write_text(text)
        plan.JobPlan(
            self.seed, self.current_partition.extras, describe_nodes=self.describe_nodes, **planned
        ).write(stage)


@functools.cache
def ran_with() -> provenance.Software:
    """Return the versions, revision and files of this session; gathered once."""
    return provenance.software(
        Path(runtime().site_config.sources[-1]).parent,
        Path(runtime().get_option("general/0/reference_prefix")),
        Path(__file__).parents[1],
    )


_set_up = itertools.count()
"""Counter of the jobs of this run that were set up."""

MOST_READ = 50
"""Most jobs whose cases are held in memory for the tests that wait for them."""

_measured: dict[tuple[str, str], dict[Case, Measured | Incomplete]] = {}
"""Cases of the jobs read last, by stage folder and job id."""


class Job(WaitsForNodes, Steps, Referenced, RecordedTest, special=True):
    """One Slurm job whose steps are the launches of several functions.

    Its record has ``netproof_cases``, its nodes and software (``netproof_provenance``), its MPI
    library's transport (``netproof_transport``) and, for the run's first job, Slurm's partitions
    at its start (``netproof_slurm``).
    """

    netproof_kind = variable(str, value="launches", loggable=True)
    describe_nodes = True

    def cases(self) -> list[Case]:
        """Return the cases that it measures, on its partition and in its environment."""
        raise NetproofError(f"{type(self).__name__} names no case")

    def asked(self) -> dict[str, Any]:
        """Return the cases of its record, as ``records.asked`` describes them."""
        return records.asked(
            self.cases(),
            self.launches,
            format=session.MEASURED_FORMAT,
            partition_extras=self.current_partition.extras,
            environment_extras=self.current_environ.extras,
        )

    def measured(self) -> dict[Case, Measured | Incomplete]:
        """Return each case as it was measured, or why it is not complete; read once."""
        place = (self.stagedir, str(self.job.jobid))
        if place not in _measured:
            if len(_measured) >= MOST_READ:
                del _measured[next(iter(_measured))]
            _measured[place] = records.measured_of(Path(self.stagedir), self.asked())
        return _measured[place]

    @run_after("setup")
    def announce(self) -> None:
        """Begin its record; the run's first has the nodes of Slurm's partitions."""
        if self.is_dry_run():
            return
        slurm = slurm_nodes.slurm_record(slurm_now()) if next(_set_up) == 0 else {}
        self.write_record(netproof_provenance={}, netproof_slurm=slurm, netproof_asked=self.asked())

    @run_after("setup")
    def leave_it(self) -> None:
        """Skip a job whose cases are all to be skipped; any other measures all of them."""
        path = os.environ.get(left.VARIABLE)
        if not path:
            return
        try:
            skipped = left.read(Path(path))
        except NetproofError as error:
            raise ReframeError(str(error)) from None
        reasons = [skipped.get(case.key()) for case in self.cases()]
        if reasons and all(reasons):
            self.netproof_left = codec.encode(reasons[0])
            self.skip(reasons[0].why)

    @run_after("setup")
    def insist_on_names(self) -> None:
        """Fail with the known names if ``-S`` gave an unknown one."""
        try:
            self.cases()
        except NetproofError as error:
            raise ReframeError(str(error)) from None

    @run_after("setup")
    def insist_on_programs(self) -> None:
        """Fail before a job is submitted in an environment that the site calls unusable."""
        unusable = self.current_environ.extras["unusable"]
        if unusable:
            raise ReframeError(unusable)

    @sanity_function
    def left_records(self) -> bool:
        """Check that the job began its steps; the checks judge each of them."""
        stage, asked = Path(self.stagedir), self.asked()
        record = stage / job_files.LAUNCHES_FILE
        if not record.is_file():
            raise SanityError(
                f"the job left no {record}, and Slurm has it as {self.job.state}; if it began,"
                f" see {self.stderr} next to that file"
            )
        try:
            asked["shared"] |= records.of_plan(stage)
            said = codec.encode(transport.of_job(stage)) if self.least_run() else {}
            self.write_record(
                netproof_cases=records.cases_of(self.measured(), asked),
                netproof_transport=said,
                netproof_program=self.program_report(),
            )
            described = provenance.of_job(stage, self.own_nodes(), ran_with())
        except (NetproofError, OSError) as error:
            raise SanityError(str(error)) from None
        self.write_record(netproof_provenance=described)
        return True


def environments_of(benchmark: str) -> list[str]:
    """Return ReFrame's selectors of the environments that have a benchmark or a part of it."""
    return [f"+{feature}" for feature in registry.named(benchmark).features]


class NetpipeLaunches(Job):
    """TCP and MPI interleaved on the same two nodes: inter- and intra-node, both directions.

    ``variants``: names of the variants to measure, by ``netpipe.subject``.
    """

    variants = variable(
        typ.List[str], value=[netpipe.subject(*variant) for variant in netpipe.VARIANTS]
    )
    num_tasks = 2
    num_tasks_per_node = 1
    valid_systems = ["*"]
    valid_prog_environs = environments_of("netpipe")

    def least_run(self) -> list[str]:
        """Return NPmpi's command if the environment has it."""
        return netpipe.BENCHMARK.least_run() if self._has("mpi") else []

    def variants_here(self) -> tuple[tuple[str, str, str], ...]:
        """Return the variants of the environment's protocols; raise NetproofError for none."""
        here = [one for one in netpipe.variants(self.variants) if self._has(one[0])]
        if not here:
            raise NetproofError(
                f"variants {', '.join(self.variants)}: environment {self.current_environ.name} has"
                " none of their protocols among its features"
            )
        return tuple(here)

    def _has(self, protocol: str) -> bool:
        return netpipe.BENCHMARK.feature(protocol) in self.current_environ.features

    def cases(self) -> list[Case]:
        """Return every variant that the environment can run."""
        return [netpipe_case(self, *variant) for variant in self.variants_here()]

    @run_before("run")
    def plan_launches(self) -> None:
        """Plan all NetPIPE variants, TCP and MPI interleaved."""
        srun, variants = self.take_over_srun(), self.variants_here()
        where = (self.site_partition(), srun, self.seed, variants)
        measuring = plan.netpipe_steps(self.launches, *where)
        starting = plan.netpipe_start_steps(self.launches, srun, variants)
        self.write_steps([*measuring, *starting], srun, {})


class MpiLaunches(Job):
    """Functions of a benchmark on one rank count; those for two ranks go with the least count.

    ``benchmark``: its name, in the class body.
    """

    ranks = parameter(rank_counts())
    functions = variable(typ.List[str])
    benchmark: str

    @run_after("init")
    def find_partitions(self) -> None:
        """Run where the partition measures this rank count, and the environment has it."""
        self.valid_systems = [f"+{ranks_feature(self.ranks)}"]
        self.valid_prog_environs = environments_of(self.benchmark)

    def least_run(self) -> list[str]:
        """Return its benchmark's command."""
        return registry.mpi(self.benchmark).least_run()

    def functions_here(self) -> list[Function]:
        """Return the functions that this partition runs at this rank count, each once.

        Those for two ranks go with the least count, and those for pairs with even ones.
        """
        least = min(self.current_partition.extras["rank_counts"])
        named = registry.mpi(self.benchmark)
        functions = [named.function(name) for name in dict.fromkeys(self.functions)]
        return [
            function
            for function in functions
            if (self.ranks == least or not function.pair)
            and (self.ranks % 2 == 0 or not function.pairs)
        ]

    def cases(self) -> list[Case]:
        """Return the case of each function on the ranks that it uses."""
        return [mpi_case(self, function) for function in self.functions_here()]

    @run_before("run")
    def plan_launches(self) -> None:
        """Plan all launches of all functions, shuffled, with full nodes."""
        partition = self.site_partition()
        self.num_tasks = self.ranks
        self.num_tasks_per_node = partition.ranks_per_node
        functions = self.functions_here()
        files = plan.size_files(
            {
                function.name: plan.sizes_asked(function, self.ranks, partition)
                for function in functions
                if function.least_bytes is not None
            }
        )
        srun = self.take_over_srun()
        several = (functions, self.ranks, self.launches, partition, srun)
        measuring = plan.function_steps(*several, self.seed)
        paired = plan.with_twins(measuring, functions, self.ranks, partition)
        self.write_steps([*paired, *plan.start_steps(*several)], srun, files)


def name_of(kind: type[rfm.RegressionTest], **parameters: int | str) -> str:
    """Return the name of the test of a class with these parameters."""
    conditions = {
        name: (lambda given, wanted=value: given == wanted) for name, value in parameters.items()
    }
    (number,) = kind.get_variant_nums(**conditions)
    return kind.variant_name(number)


def netpipe_case(job: Job, protocol: str, path: str, direction: str) -> Case:
    """Return the case of a NetPIPE variant where ``job`` runs."""
    per_node = 1 if path == "inter-node" else 2
    return Case(*job.place(), "netpipe", protocol, 2, per_node, path, direction)


def mpi_case(job: MpiLaunches, function: Function) -> Case:
    """Return the case of a function on the ranks of ``job`` that it uses."""
    per_node = job.current_partition.extras["ranks_per_node"]
    ranks, per_node = (2, 1) if function.pair else (job.ranks, per_node)
    return Case(*job.place(), function.benchmark, function.name, ranks, per_node)


class Reader(rfm.RegressionTestPlugin):
    """A test that reads the cases of a job.

    ``launched_by``, ``repeated_by``, ``comparison_repeated_by``: leaf classes of its jobs and
    their repeat launches, in the class body as far as the test needs them.
    """

    launched_by: type[Job]
    repeated_by: type[Repeat]
    comparison_repeated_by: type[ComparedRepeat]

    def case_of(self, job: Job, case: Case) -> Measured:
        """Return a case as ``job`` measured it, or raise Incomplete."""
        found = job.measured()[case]
        if isinstance(found, Incomplete):
            raise found
        return found

    def complete(self, job: Job, *several: Repeat) -> list[Subject]:
        """Return every case that ``job`` completed; the checks report the others.

        ``several``: tests whose repeat launches are added to the cases.
        """
        found = []
        extras = job.current_partition.extras, job.current_environ.extras
        for case in job.cases():
            try:
                complete = self.case_of(job, case)
                for one in several:
                    complete = one.extend(complete)
            except Incomplete:
                continue
            found.append(Subject.of_extras(complete, *extras))
        return found


def tests_of(test: rfm.RegressionTest, name: str) -> dict[tuple[str, str], rfm.RegressionTest]:
    """Return the tests of a name that ``test`` waits for, by partition and environment."""
    found = {}
    for partition in runtime().system.partitions:
        for environment in partition.environs:
            with contextlib.suppress(DependencyError):
                found[partition.name, environment.name] = test.getdep(
                    name, environ=environment.name, part=partition.name
                )
    return found
