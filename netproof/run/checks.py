"""Tests that read what jobs measured, and judge it.

Results of each environment are read for their record. A check is of one function: complete, and
within its references. Curves are judged for each job; configurations are compared over all jobs of
a run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.udeps as udeps
from reframe.core.builtins import parameter, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import DependencyError, ReframeError, SanityError
from reframe.core.runtime import runtime
from reframe.utility.sanity import make_performance_function

from netproof import codec
from netproof.benchmarks import netpipe, registry
from netproof.criteria import Finding, Level
from netproof.jobs.acceptance import JobOutcome
from netproof.measurement.case import Case
from netproof.measurement.landmarks import LANDMARKS, Better
from netproof.run.jobs import (
    PartitionJob,
    environments_of,
    jobs_of,
    name_of,
    reason_to_skip,
    tcp_environments_on,
)
from netproof.run.mixins import (
    Launched,
    OnPartition,
    RecordedTest,
    Referenced,
    baseline_of_system,
    failing,
    partition_names,
    rank_counts,
)
from netproof.session import job_files, provenance, records
from netproof.session.job_files import Incomplete
from netproof.session.measured import Measured
from netproof.site.partition import fewest_ranks_feature, ranks_feature
from netproof.site.site import JUDGE_ENVIRONMENT
from netproof.verdict import confirmations, engine, limits
from netproof.verdict.engine import Subject


@functools.lru_cache(maxsize=50)
def outcome_of(folder: str, jobid: str) -> JobOutcome:
    """Return the results of a job; those read last stay for the tests that wait for them."""
    return JobOutcome(Path(folder), jobid)


class LocalTest(rfm.RunOnlyRegressionTest, Launched):
    """A test that only reads what jobs left."""

    local = True
    sourcesdir = None
    executable = "true"

    def parameters(self) -> dict[str, int]:
        """Return the parameters of the jobs, but for their partition."""
        return {}


class Results(LocalTest, RecordedTest):
    """A test that reads what a job measured in one environment, repeat launches included.

    ``launched_by``: the leaf class of the job. Its record has ``netproof_cases``, the nodes and
    software (``netproof_provenance``), and the MPI library's transport.
    """

    valid_systems = ["*"]
    netproof_kind = variable(str, value="launches", loggable=False)
    netproof_left = variable(dict, value={}, loggable=True)
    launched_by: type[PartitionJob]

    def jobs(self) -> list[str]:
        """Return the names of the jobs on all partitions that have them."""
        return jobs_of(self.launched_by, **self.parameters())

    @run_after("init")
    def find_environments(self) -> None:
        """Run in all environments that have the benchmark, after the job of their partition."""
        self.valid_prog_environs = environments_of(self.launched_by.benchmark)
        for name in self.jobs():
            self.depends_on(name, udeps.by_part)

    @run_after("setup")
    def find_job(self) -> None:
        """Skip an environment whose cases are all left; fail one that is unusable."""
        name = name_of(self.launched_by, partition=self.current_partition.name, **self.parameters())
        self.job_of = self.getdep(name, environ="*")
        unusable = self.current_environ.extras["unusable"]
        if unusable:
            raise ReframeError(unusable)
        reason = reason_to_skip(self.job_of.cases_in(self.current_environ))
        if reason:
            self.netproof_left = reason
            self.skip(reason["why"])

    @property
    def recorded_job(self) -> Any:
        """Return the job whose results these are."""
        return self.job_of.job

    @property
    def folder(self) -> Path:
        """Return the environment's folder in the job's."""
        return Path(self.job_of.stagedir, self.current_environ.name)

    @property
    def outcome(self) -> JobOutcome:
        """Return what the job measured."""
        return outcome_of(self.job_of.stagedir, str(self.job_of.job.jobid))

    @property
    def measured(self) -> dict[Case, Measured | Incomplete]:
        """Return the cases with their repeat launches, or why one is not complete."""
        return self.outcome.measured[self.current_environ.name]

    def whole(self, case: Case) -> Measured:
        """Return a case with its repeat launches; raise Incomplete if a launch is missing."""
        found = self.measured[case]
        if isinstance(found, Incomplete):
            raise found
        return found

    def subjects(self) -> list[Subject]:
        """Return every complete case; the checks report the others."""
        return self.outcome.subjects(self.current_environ.name)

    @sanity_function
    def are_there(self) -> bool:
        """Check that the job began its steps here; the checks judge each of them."""
        record = self.folder / job_files.LAUNCHES_FILE
        if not record.is_file():
            raise SanityError(f"the job left no {record}")
        with failing(SanityError):
            planned = self.outcome.environments[self.current_environ.name].plan
            asks = self.job_of.least_run_in(self.current_environ)
            said = codec.encode(provenance.transport_of(self.folder)) if asks else {}
            self.write_record(
                netproof_cases=records.cases_of(self.folder, planned, self.measured),
                netproof_transport=said,
                netproof_provenance={},
            )
            self.write_record(**self.job_of.described(self.folder))
        return True


class MpiReading(Results):
    """Results of a job of a benchmark's functions in one environment."""

    ranks = parameter(rank_counts())

    @run_after("init")
    def find_partitions(self) -> None:
        """Run where the partition measures this rank count."""
        self.valid_systems = [f"+{ranks_feature(self.ranks)}"]

    def parameters(self) -> dict[str, int]:
        """Return the parameters of the job, but for its partition."""
        return {"ranks": self.ranks}


class Judge(LocalTest):
    """A test that judges what jobs measured.

    ``read_by``: the leaf class of the tests that read the jobs.
    """

    read_by: type[Results]

    @property
    def benchmark(self) -> str:
        """Return the name of its benchmark."""
        return self.read_by.launched_by.benchmark

    def wait_for(self, how: Callable[..., bool]) -> None:
        """Depend on the tests that it judges, and on the jobs whose files they read."""
        self.depends_on(name_of(self.read_by, **self.parameters()), how)
        for name in jobs_of(self.read_by.launched_by, **self.parameters()):
            # ReFrame removes the folder of a job once all that wait for it are done.
            self.depends_on(name, udeps.fully if how is udeps.fully else udeps.by_part)


class JudgeOfJob(Judge):
    """A test that judges what one job measured in one environment."""

    @run_after("init")
    def wait_for_launches(self) -> None:
        """Depend on the test that reads the job in this environment."""
        self.wait_for(udeps.by_case)

    @property
    def results(self) -> Results:
        """Return the test that read the job in this environment."""
        results: Results = self.getdep(name_of(self.read_by, **self.parameters()))
        return results


class OfRanks(OnPartition):
    """A test that judges the jobs of one rank count."""

    job_ranks = parameter(rank_counts())

    def parameters(self) -> dict[str, int]:
        """Return the parameters of the jobs that it judges."""
        return {"ranks": self.job_ranks}


_SIZES = (name for name, one in LANDMARKS.items() if one.better is Better.NEITHER)
_IN_RECORDS = (limits.TIME_AT, "paired_mb_s", "rate_", *_SIZES)
"""Performance variables, or how they begin, that are logged only where a reference bounds them."""


class Check(JudgeOfJob, Referenced, RecordedTest):
    """Check of one function by the files of its job.

    Its output is the benchmark's text. ``netproof_case`` is the case to measure, empty once the
    record has it. Its record has
    whether the case is complete (``netproof_complete``), and the findings against its references,
    repeat launches included (``netproof_references``). A subclass has ``case()`` in its job.
    """

    executable = "cat"
    require_reference = True
    ranks = variable(int)
    netproof_kind = variable(str, value="check", loggable=False)
    netproof_case = variable(dict, value={}, loggable=True)

    @run_after("setup")
    def show_output(self) -> None:
        """Print the benchmark's own text as output; ReFrame takes options as shell text."""
        subject = registry.of(self.case()).subject(self.case())
        self.executable_opts = [
            shlex.quote(str(self.results.folder / f"{subject}.{launch}.out"))
            for launch in range(1, self.launches + 1)
        ]

    @sanity_function
    def is_complete(self) -> bool:
        """Check that exactly the requested sizes and launches are there."""
        with failing(SanityError):
            self.measured = self.results.whole(self.case())
        self.write_record(netproof_case=self.netproof_case, netproof_complete=True)
        self.netproof_case = {}
        return True

    @run_before("performance")
    def set_variables(self) -> None:
        """Set the landmarks and the time at every size, as plain values that cannot raise.

        Those with a reference are judged by their interval: one that contains a bound fails as
        inconclusive, whichever side its value is on. A dry run has no values and checks only
        whether references exist.
        """
        try:
            references: Any = self.reference
            bounds: dict[str, Any] = references[self]
        except KeyError as error:
            missing = error.args[0]
            key = "" if missing is self else f": key {missing!r} is not there"
            raise SanityError(
                f"{self.current_system.name}.yaml has no {type(self).__name__} for"
                f" {self.current_partition.fullname}, {self.current_environ.name}{key}"
            ) from None
        self.open_references: list[str] = []
        if self.is_dry_run():
            return
        self.perf_variables = {}
        for name, (value, unit) in limits.variables(self.measured).items():
            # The job's record has the others.
            bounded = any(one is not None for one in bounds.get(name, ())[1:3])
            if value is not None and (bounded or not name.startswith(_IN_RECORDS)):
                # More digits than any benchmark prints are a tenth of ReFrame's report.
                shown = f"{value:.7g}"
                self.perf_variables[name] = make_performance_function(float, unit, shown)
        extras = (self.current_partition.extras, self.current_environ.extras)
        subject = Subject.of_extras(self.measured, *extras)
        findings = engine.references(subject, limits.of_references(bounds))
        named = [dataclasses.replace(one, variable=name) for name, one in findings.items()]
        self.write_record(netproof_references=codec.encode(named))
        # This includes entries whose failure is expected, which are not judged here.
        if undefined := limits.not_defined(bounds, self.measured):
            raise SanityError(undefined)
        for name, finding in findings.items():
            if finding.level is Level.UNDEFINED:
                raise SanityError(finding.why)
            if finding.level is Level.INCONCLUSIVE:
                self.open_references.append(finding.why)
                bounds[name] = (bounds[name][0], None, None, bounds[name][3])

    @run_after("performance")
    def insist_on_decisions(self) -> None:
        """Fail with the quantities that are inconclusive against their references."""
        if self.open_references:
            raise SanityError(f"inconclusive: {'; '.join(self.open_references)}")


class NetpipeCheck(Check):
    """NetPIPE over one protocol, on one path, in one direction."""

    protocol = variable(str)
    path = parameter(netpipe.PATHS)
    direction = parameter(netpipe.DIRECTIONS)
    ranks = 2
    tags = {"netpipe"}

    @run_after("init")
    def name_case(self) -> None:
        """Set the case to measure, its environments, and its partitions: of one node, inside it."""
        self.valid_systems = [
            one.fullname
            for one in runtime().system.partitions
            if self.path == "intra-node" or one.extras["nodes"] > 1
        ]
        self.valid_prog_environs = [f"+{netpipe.BENCHMARK.feature(self.protocol)}"]
        named = ("netpipe", self.protocol, 2, self.path, self.direction)
        self.netproof_case = dict(zip(records.CASE_KEYS, named, strict=True))

    def case(self) -> Case:
        """Return the case of the variant in the job."""
        return netpipe.BENCHMARK.case(self.place(), self.protocol, self.path, self.direction)


class TcpCheck(NetpipeCheck):
    """NetPIPE over TCP, in one environment of a partition for all of them."""

    partition = parameter(partition_names())

    @run_after("init")
    def find_environment(self) -> None:
        """Run in the environment that measures TCP."""
        (partition,) = (one for one in runtime().system.partitions if one.name == self.partition)
        here = partition.fullname in self.valid_systems
        self.valid_systems = [partition.fullname] if here else []
        self.valid_prog_environs = [*tcp_environments_on(partition)] if here else []


class MpiCheck(OfRanks, Check):
    """One function of a benchmark at one rank count."""

    function = variable(str)

    @run_after("init")
    def find_partitions(self) -> None:
        """Run where the partition measures this rank count, and the environment has it."""
        benchmark = self.benchmark
        self.tags = {benchmark}
        self.valid_prog_environs = environments_of(benchmark)
        function = registry.mpi(benchmark).function(self.function)
        self.ranks = 2 if function.pair else self.job_ranks
        feature = fewest_ranks_feature if function.pair else ranks_feature
        odd = function.pairs and self.job_ranks % 2
        self.valid_systems = [] if odd else [f"+{feature(self.job_ranks)}"]
        named = (benchmark, self.function, self.ranks, "inter-node", "oneway")
        self.netproof_case = dict(zip(records.CASE_KEYS, named, strict=True))

    def case(self) -> Case:
        """Return the case of the function in the job."""
        per_node = self.current_partition.extras["ranks_per_node"]
        mpi = registry.mpi(self.benchmark)
        return mpi.case(self.place(), self.function, self.job_ranks, per_node)


class Curves(JudgeOfJob):
    """Criteria along each curve of one job, repeat launches included."""

    netproof_kind = variable(str, value="curves", loggable=True)
    valid_systems = ["*"]

    @run_after("init")
    def find_environments(self) -> None:
        """Run in all environments that have the benchmark."""
        self.tags = {self.benchmark}
        self.valid_prog_environs = environments_of(self.benchmark)

    @sanity_function
    def curves_hold(self) -> bool:
        """Check that no criterion fails; else raise SanityError with a sentence for each."""
        results = self.results
        subjects = results.subjects()
        if not subjects:
            raise SanityError("no case is complete, so there is no curve to judge")
        names = results.outcome.environments.keys() - {self.current_environ.name}
        others = [one for name in names for one in results.outcome.subjects(name)]
        along = confirmations.findings_along(subjects, others)
        launched = confirmations.launched(subjects)
        findings = itertools.chain(*along.values(), (one.finding for one in launched))
        return hold([*findings])


def hold(findings: Sequence[Finding]) -> bool:
    """Return True, or raise SanityError with a line for each failed or inconclusive finding."""
    failed = [one.why for one in findings if one.level is Level.FAIL]
    failed += [f"inconclusive: {one.why}" for one in findings if one.level is Level.INCONCLUSIVE]
    if failed:
        raise SanityError("\n".join(failed))
    return True


class MpiCurves(OfRanks, Curves):
    """The curves of one job of a benchmark's functions."""

    @run_after("init")
    def find_partitions(self) -> None:
        """Run where the partition measures this rank count."""
        self.valid_systems = [f"+{ranks_feature(self.job_ranks)}"]


class Configurations(Judge):
    """Criteria that compare configurations, over every job of one kind in the run.

    It runs once, in ReFrame's own environment and on the first partition, when all jobs are done.
    A run narrowed to some environments or checks does not have it.
    """

    valid_prog_environs = [JUDGE_ENVIRONMENT]
    netproof_kind = variable(str, value="configurations", loggable=True)

    @run_after("init")
    def wait_for_all(self) -> None:
        """Depend on the tests that read the jobs of all partitions, if any has the benchmark."""
        self.tags = {self.benchmark}
        features = set(registry.named(self.benchmark).features)
        partitions = runtime().system.partitions
        if not any(features & set(one.features) for each in partitions for one in each.environs):
            self.valid_systems = []
            return
        self.valid_systems = [partitions[0].fullname]
        self.wait_for(udeps.fully)

    @sanity_function
    def configurations_hold(self) -> bool:
        """Check that no criterion fails; else raise SanityError with a sentence for each."""
        name, subjects = name_of(self.read_by, **self.parameters()), []
        for partition in runtime().system.partitions:
            for environment in partition.environs:
                place = {"environ": environment.name, "part": partition.name}
                with contextlib.suppress(DependencyError):
                    subjects += self.getdep(name, **place).subjects()
        if not subjects:
            raise SanityError("no case is complete, so there is nothing to compare")
        findings = engine.across(subjects, baseline_of_system())
        return hold([*itertools.chain(*findings.values())])


class MpiConfigurations(OfRanks, Configurations):
    """A benchmark's functions on all configurations of one rank count."""
