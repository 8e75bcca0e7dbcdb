"""Slurm jobs of a run: their launches, options and records."""

from __future__ import annotations

import functools
import itertools
import json
import os
import random
import shlex
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import reframe as rfm
from reframe.core.backends import getlauncher
from reframe.core.builtins import parameter, run_after, run_before, sanity_function, variable
from reframe.core.environments import Environment
from reframe.core.exceptions import ReframeError, SanityError
from reframe.core.runtime import emit_loadenv_commands, runtime
from reframe.core.systems import SystemPartition
from reframe.frontend.executors import Runner, TestCase

from netproof import codec
from netproof.benchmarks import registry
from netproof.errors import NetproofError
from netproof.experiments.experiment import Experiment
from netproof.intake import disk, trust
from netproof.jobs.acceptance import JobOutcome
from netproof.measurement.case import Case
from netproof.run.mixins import (
    Launched,
    RecordedTest,
    Referenced,
    WaitsForNodes,
    baseline_of_system,
    failing,
    partition_names,
    rank_counts,
    slurm_now,
    usable_nodes,
)
from netproof.session import job_files, node_facts, plan, provenance, records
from netproof.site import slurm
from netproof.site.partition import ranks_feature
from netproof.verdict import limits
from netproof.verdict.references import entries_of


@functools.cache
def ran_with() -> provenance.Provenance:
    """Return the versions, revision and files of this session; gathered once."""
    return provenance.software(
        Path(runtime().site_config.sources[-1]).parent,
        Path(runtime().get_option("general/0/reference_prefix")),
        Path(__file__).parents[1],
    )


_set_up = itertools.count()
"""Counter of the jobs of this run that were set up."""


class Job(
    WaitsForNodes,
    rfm.RunOnlyRegressionTest,
    Launched,
    Referenced,
    RecordedTest,
    special=True,  # type: ignore[call-arg]  # ReFrame's metaclass takes it.
):
    """A Slurm job whose launches are job steps; one job at a time in a contention domain.

    ``seed``: of their order; 0 draws one. Its record has its nodes and software
    (``netproof_provenance``) and, for the run's first job, Slurm's partitions at its start
    (``netproof_slurm``).
    """

    netproof_kind = variable(str, value="launches", loggable=True)
    sourcesdir = None
    # When Slurm ends the job, its script waits for the program, which ends the steps.
    prerun_cmds = ["trap : TERM"]
    executable = "bash"
    executable_opts = [plan.SCRIPT]
    exclusive_access = True
    launches_file = job_files.LAUNCHES_FILE
    keep_files = [
        *("launches.*", "*.out", "*.err", "*.np", plan.SIZE_FILES, node_facts.NODE_FILES),
        *(plan.PLAN_FILE, job_files.JOB_FILE, node_facts.JOB_NODES_FILE, provenance.TRIES),
        *(node_facts.PATH_FILES, node_facts.CLOCK_FILE, node_facts.RING_FILE),
    ]
    seed = variable(int, value=0)

    @run_before("setup")
    def insist_on_slurm(self) -> None:
        """Fail at once if Slurm's commands would look for their file for a minute."""
        if not self.is_dry_run():
            with failing():
                trust.insist_on_slurm()

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

    def planned(self, **fields: Any) -> plan.JobPlan:
        """Return a plan of these fields at this place."""
        extras, where = self.current_partition.extras, self.place()
        return plan.JobPlan(self.seed, extras, where=where, **fields)

    def write_plan(self, files: dict[str, str], planned: plan.JobPlan) -> None:
        """Write the plan with its script, sources and ``files``."""
        stage, root = Path(self.stagedir), Path(__file__).resolve().parents[2]
        self.write_sources(stage, {**files, plan.SCRIPT: plan.script(sys.executable, root)})
        planned.write(stage)

    def write_sources(self, folder: Path, files: dict[str, str]) -> None:
        """Write into a folder what steps start there, and ``files``."""
        for source in plan.SHELL_FILES:
            shutil.copy(source, folder)
        partition = self.site_partition()
        if partition.pace:
            # A file, since a launch in another environment has none of the job's variables.
            files = {**files, plan.PACE_FILE: f'{shlex.join(partition.pace)} "$@"\n'}
        for name, text in files.items():
            (folder / name).write_text(text)

    def cases(self) -> list[Case]:
        """Return the cases of an acceptance run that it measures."""
        return []

    @run_after("setup")
    def share_nodes(self) -> None:
        """Share nodes where the partition's access says so, with CPUs for launches inside."""
        if slurm.options_in(self.current_partition.access, slurm.SHARING):
            self.exclusive_access = False
            self.job.options += [f"--mincpus={max(2, self.site_partition().ranks_per_node)}"]

    def announced(self) -> dict[str, Any]:
        """Return what its record has from the beginning."""
        return {"netproof_provenance": {}}

    @run_after("setup")
    def announce(self) -> None:
        """Begin its record; the run's first has the nodes of Slurm's partitions."""
        if not self.is_dry_run():
            known = codec.encode(slurm_now()) if next(_set_up) == 0 else {}
            self.write_record(netproof_slurm=known, **self.announced())

    @run_after("setup")
    def leave_it(self) -> None:
        """Skip a job whose cases are all to be skipped."""
        if reason := reason_to_skip(self.cases()):
            self.netproof_left = reason
            self.skip(reason["why"])

    def several(self) -> list[Environment]:
        """Return the environments that it is for, usable or not."""
        return [self.current_environ]

    @run_after("setup")
    def insist_on_programs(self) -> None:
        """Fail before the job is submitted if the site calls all of its environments unusable."""
        unusable = [one.extras["unusable"] for one in self.several()]
        if all(unusable):
            raise ReframeError(unusable[0])

    @sanity_function
    def left_records(self) -> bool:
        """Check that the job began its steps; the checks judge each of them."""
        stage = Path(self.stagedir)
        if not any(stage.glob(self.launches_file)):
            raise SanityError(
                f"the job left no {stage / self.launches_file}, and Slurm has it as"
                f" {self.job.state}; if it began, see {self.stderr} next to that file"
            )
        with failing(SanityError):
            self.write_record(**self.results(stage))
        return True

    def results(self, folder: Path) -> dict[str, Any]:
        """Return what its record has of its files; NetproofError where they are not whole."""
        return self.described(folder)

    def described(self, folder: Path) -> dict[str, Any]:
        """Return nodes, software and earlier tries of a folder of the job's; NetproofError."""
        # ReFrame's list of nodes may be from too early a moment.
        nodes = node_facts.nodes_of_job(folder, str(self.job.jobid))
        return {
            provenance.KEY: provenance.of_job(folder, nodes, ran_with()),
            "netproof_requeued": provenance.earlier_tries(folder),
        }


@functools.lru_cache(maxsize=50)
def outcome_of(folder: str, jobid: str) -> JobOutcome:
    """Return the results of a job; those read last stay for the checks that wait for them."""
    return JobOutcome(Path(folder), jobid)


_waiting: defaultdict[str, list[TestCase]] = defaultdict(list)
"""The cases of the run's checks by the unique name of the job that each waits for."""


def _noting(runall: Callable[..., None]) -> Callable[..., None]:
    """Return ReFrame's function that runs cases, which then notes them: it tells no test of others.

    Those that -n, -x, -t, -p and others choose are known only there.
    """

    @functools.wraps(runall)
    def noting(runner: Runner, several: Sequence[TestCase], *others: Any) -> None:
        _waiting.clear()
        for case in several:
            for job in case.deps:
                _waiting[job.check.unique_name].append(case)
        runall(runner, several, *others)

    return noting


Runner.runall = _noting(Runner.runall)


class PartitionJob(Job):
    """The launches of a run's checks in all environments of a partition, interleaved.

    It measures the cases of the checks that wait for it. Each environment has a folder of its own
    in the job's. ``benchmarks``: those of its checks, in the class body; ``limited``: whether it is
    for partitions that bound a job's length (``job_limit_s``), None for both; ``unread``: why an
    environment's folder cannot be read. Its record has the part of each other one
    (``netproof_environments``): cases, nodes and software, and the MPI library's transport.
    """

    partition = parameter(partition_names())
    launches_file = f"*/{job_files.LAUNCHES_FILE}"
    benchmarks: tuple[str, ...]
    limited: bool | None = None
    unread: Mapping[str, str] = {}

    @classmethod
    def environments_on(cls, partition: SystemPartition) -> list[Environment]:
        """Return the environments of a partition that have a benchmark of it, or a part of one."""
        features = {one for name in cls.benchmarks for one in registry.named(name).features}
        return [one for one in partition.environs if features.intersection(one.features)]

    @classmethod
    def is_on(cls, partition: SystemPartition, ranks: int) -> bool:
        """Check whether a partition has this job of a rank count, 0 for NetPIPE."""
        extras = partition.extras
        return (
            bool(cls.environments_on(partition))
            and ranks in (0, *extras["rank_counts"])
            and cls.limited in (None, extras["job_limit_s"] > 0)
        )

    @run_after("init")
    def find_partition(self) -> None:
        """Run once on the partition, in the first of the environments that have a benchmark."""
        (partition,) = (one for one in runtime().system.partitions if one.name == self.partition)
        measured = self.is_on(partition, getattr(self, "ranks", 0))
        self.valid_systems = [partition.fullname] if measured else []
        there = self.environments_on(partition)
        self.valid_prog_environs = [there[0].name] if measured else []

    @run_before("setup")
    def skip_for_no_check(self) -> None:
        """Skip a job for which no check of the run waits: -T leaves out checks and not jobs."""
        if not _waiting:
            raise ReframeError("no check of this run waits for a job: choose checks, not jobs")
        if not _waiting[self.unique_name]:
            why = "no check of this run waits for it"
            self.netproof_left = {"why": why, "planned": True}
            self.skip(why)

    @run_after("setup")
    def limit_time(self) -> None:
        """Limit the job where the site does."""
        if limit_s := self.site_partition().job_limit_s:
            self.time_limit = f"{limit_s}s"

    def cases(self) -> list[Case]:
        """Return the cases of the checks that wait for it, also those that are to be skipped."""
        return [one.check.case_in(one.partition, one.environ) for one in _waiting[self.unique_name]]

    def environments(self) -> list[tuple[Environment, list[Case]]]:
        """Return the usable environments with the cases that it measures in each, if any."""
        left = left_now()
        cases = [case for case in self.cases() if case.key() not in left]
        several = (
            (one, [case for case in cases if case.environment == one.name])
            for one in self.several()
        )
        return [(one, own) for one, own in several if own and not one.extras["unusable"]]

    def several(self) -> list[Environment]:
        """Return the environments in which a check waits."""
        named = {one.environ.name for one in _waiting[self.unique_name]}
        return [one for one in self.environments_on(self.current_partition) if one.name in named]

    def announced(self) -> dict[str, Any]:
        """Return nothing: the parts of the environments have their nodes."""
        return {}

    @run_before("run")
    def plan_launches(self) -> None:
        """Plan the launches of each environment, in its folder."""
        *command, _ = self.take_over_srun()
        partition, site = self.current_partition, self.site_partition()
        several = self.environments()
        prefix = Path(runtime().get_option("general/0/reference_prefix"))
        references = entries_of(prefix, self.current_system.name)
        for one, cases in several:
            folder = Path(self.stagedir, one.name)
            folder.mkdir()
            srun = (*command, f"--mpi={one.extras['pmi']}")
            units = plan.units(cases, self.launches, site, srun, self.seed)
            files = plan.size_files(
                {
                    case.function: plan.sizes_asked(case, site)
                    for case in cases
                    if not registry.of(case).by_protocol
                    and registry.function_of(case).least_bytes is not None
                }
            )
            commands = [*partition.prepare_cmds, *emit_loadenv_commands(partition.local_env, one)]
            files[plan.SETUP_FILE] = "".join(f"{line}\n" for line in commands)
            bounds = [limits.of_case(references, case) for case in cases]
            of_mpi = [
                case for case in cases if case.function not in registry.of(case).over_tcp.values()
            ]
            asking: tuple[str, ...] = ()
            if of_mpi:
                program = registry.of(of_mpi[0]).start(of_mpi[0].function, 2)
                asking = provenance.transport_step(program, srun, min(2, site.nodes))
            self.write_sources(folder, files)
            plan.JobPlan(
                self.seed,
                partition.extras,
                units,
                srun=srun,
                transport=asking,
                setup=plan.SETUP_FILE,
                environment_extras=one.extras,
                cases=tuple(cases),
                launches=self.launches,
                asked=codec.encode(bounds),
            ).write(folder)
        names = tuple(one.name for one, _ in several)
        self.keep_files = [*self.keep_files, *names]
        baseline = codec.encode(baseline_of_system())
        asked = {"environments": names, "asked": baseline}
        self.write_plan({}, self.planned(task="acceptance", describe_nodes=False, **asked))

    def results(self, folder: Path) -> dict[str, Any]:
        """Return the part of each environment; NetproofError where none can be read."""
        outcome = outcome_of(self.stagedir, str(self.job.jobid))
        parts, self.unread = {}, dict(outcome.unread)
        for name, one in outcome.environments.items():
            try:
                parts[name] = {
                    **self.described(folder / name),
                    records.CASES: records.cases_of(one.folder, one.plan, outcome.measured[name]),
                }
            except (NetproofError, OSError) as error:
                self.unread[name] = str(error)
                continue
            if one.plan.transport:
                said = provenance.transport_of(one.folder)
                parts[name]["netproof_transport"] = codec.encode(said)
        if not parts:
            raise NetproofError("; ".join(self.unread.values()))
        return {records.ENVIRONMENTS: parts}


class NetpipeLaunches(PartitionJob):
    """TCP and MPI interleaved on the same two nodes: inter- and intra-node, both directions.

    On a partition of one node only intra-node.
    """

    benchmarks = ("netpipe",)
    num_tasks_per_node = 1

    @run_before("run")
    def take_nodes(self) -> None:
        """Take two nodes, or the only one."""
        self.num_tasks = min(2, self.site_partition().nodes)


class MpiLaunches(PartitionJob):
    """Functions of benchmarks on one rank count; those for two ranks go with the least count."""

    ranks = parameter(rank_counts())

    @run_before("run")
    def take_ranks(self) -> None:
        """Take full nodes."""
        self.num_tasks = self.ranks
        self.num_tasks_per_node = self.site_partition().ranks_per_node


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
        *("aggressors.json", "load-turns.json", "*.nodes", "tails-*", "*.dat"),
    ]

    @property
    def question(self) -> Experiment:
        """Return what is asked of this job; NetproofError for what is no such experiment."""
        place = f"-S {self.experiment.TEST}.asked"
        values = disk.json_value(self.asked, place)
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

    def plan_of(self, srun: tuple[str, ...]) -> tuple[plan.JobPlan, dict[str, str]]:
        """Return its plan and files; ReframeError for what cannot be measured."""
        extras = self.current_environ.extras
        with failing():
            return self.question.plan(self.planned(srun=srun, environment_extras=extras))

    @run_before("run")
    def plan_launches(self) -> None:
        """Plan its launches."""
        planned, files = self.plan_of(tuple(self.take_over_srun()))
        self.write_plan(files, planned)

    def results(self, folder: Path) -> dict[str, Any]:
        """Return what its record has of its files; NetproofError where nothing of them is whole."""
        found = self.question.result(folder, str(self.job.jobid))
        return {**super().results(folder), found.KEY: codec.encode(found)}


@functools.cache
def left_now() -> dict[tuple[Any, ...], tuple[str, bool]]:
    """Return the cases to skip in this run, and why; raise ReframeError for a damaged file."""
    path = os.environ.get(plan.LEFT)
    if not path:
        return {}
    with failing():
        return plan.read_left(Path(path))


def reason_to_skip(cases: Sequence[Case]) -> dict[str, Any]:
    """Return why this run skips the cases, as ``netproof_left``; empty if it measures some."""
    skipped = left_now()
    reasons = [skipped[case.key()] for case in cases if case.key() in skipped]
    if not reasons or len(reasons) < len(cases):
        return {}
    return dict(zip(("why", "planned"), reasons[0], strict=True))


def name_of(kind: type[rfm.RegressionTest], **parameters: int | str) -> str:
    """Return the name of the test of a class with these parameters."""
    conditions = {
        name: (lambda given, wanted=value: given == wanted) for name, value in parameters.items()
    }
    (number,) = kind.get_variant_nums(**conditions)
    name: str = kind.variant_name(number)
    return name
