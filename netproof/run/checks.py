"""Tests that judge what jobs measured.

A check is of one function: complete, and within its references. Curves are judged for each job;
configurations are compared over all jobs of a run.
"""

from __future__ import annotations

import dataclasses
import itertools
import shlex
from collections.abc import Callable, Sequence
from typing import Any

import reframe as rfm
import reframe.utility.udeps as udeps
from reframe.core.builtins import parameter, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import SanityError
from reframe.core.runtime import runtime
from reframe.utility.sanity import make_performance_function

from netproof import codec
from netproof.benchmarks import netpipe, registry
from netproof.criteria import Finding, Level
from netproof.measurement.case import Case
from netproof.run.jobs import (
    environments_of,
    jobs_of,
    mpi_case,
    name_of,
    netpipe_case,
)
from netproof.run.mixins import Launched, OnPartition, RecordedTest, Referenced
from netproof.run.results import Results, tests_of
from netproof.run.system_here import baseline_of_system, rank_counts
from netproof.session.job_files import Incomplete
from netproof.site.partition import fewest_ranks_feature, ranks_feature
from netproof.site.site_file import JUDGE_ENVIRONMENT
from netproof.verdict import confirmations, engine, limits
from netproof.verdict.engine import Subject


class Judge(rfm.RunOnlyRegressionTest, Launched):
    """A test that judges what jobs measured.

    ``read_by``: the leaf class of the tests that read the jobs.
    """

    local = True
    sourcesdir = None
    executable = "true"
    read_by: type[Results]

    def parameters(self) -> dict[str, int]:
        """Return the parameters of the tests that it judges."""
        return {}

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


class Check(JudgeOfJob, Referenced, RecordedTest):
    """Check of one function by the files of its job.

    Its output is the benchmark's text. ``netproof_case`` is the case to measure. Its record has
    whether the case is complete (``netproof_complete``), and the findings against its references,
    repeat launches included (``netproof_references``). A subclass has ``subject()``, the stem of
    the names of the function's steps, and ``case()`` in its job.
    """

    executable = "cat"
    require_reference = True
    ranks = variable(int, loggable=True)
    netproof_kind = variable(str, value="check", loggable=True)
    netproof_case = variable(dict, value={}, loggable=True)

    @run_after("setup")
    def show_output(self) -> None:
        """Print the benchmark's own text as output; ReFrame takes options as shell text."""
        self.executable_opts = [
            shlex.quote(str(self.results.folder / f"{self.subject()}.{launch}.out"))
            for launch in range(1, self.launches + 1)
        ]

    @sanity_function
    def is_complete(self) -> bool:
        """Check that exactly the requested sizes and launches are there."""
        try:
            self.measured = self.results.whole(self.case())
        except Incomplete as error:
            # ReFrame appends a cause's text to the error's own.
            raise SanityError("; ".join(error.reasons)) from None
        self.write_record(netproof_case=self.netproof_case, netproof_complete=True)
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
        if self.is_dry_run():
            return
        self.perf_variables = {}
        for name, (value, unit) in limits.variables(self.measured).items():
            # The time at each size is in the job's record.
            if value is not None and (name in bounds or not name.startswith(limits.TIME_AT)):
                # More digits than any benchmark prints are a tenth of ReFrame's report.
                shown = float(f"{value:.7g}")
                self.perf_variables[name] = make_performance_function(
                    lambda value=shown: value, unit
                )
        subject = Subject.of_extras(
            self.measured, self.current_partition.extras, self.current_environ.extras
        )
        findings = engine.references(subject, limits.of_references(bounds))
        self.write_record(
            netproof_references=[
                codec.encode(dataclasses.replace(finding, variable=name))
                for name, finding in findings.items()
            ]
        )
        # This includes entries whose failure is expected, which are not judged here.
        undefined = limits.not_defined(bounds, self.measured)
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
        """Fail with the quantities that are inconclusive against their references."""
        if not self.is_dry_run() and self.open_references:
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
        self.netproof_case = {
            "benchmark": "netpipe",
            "function": self.protocol,
            "ranks": 2,
            "path": self.path,
            "direction": self.direction,
        }

    def subject(self) -> str:
        """Return the stem of the names of the variant's steps."""
        return netpipe.subject(self.protocol, self.path, self.direction)

    def case(self) -> Case:
        """Return the case of the variant in the job."""
        return netpipe_case(self.place(), self.protocol, self.path, self.direction)


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
        self.netproof_case = {
            "benchmark": benchmark,
            "function": self.function,
            "ranks": self.ranks,
            "path": "inter-node",
            "direction": "oneway",
        }

    def subject(self) -> str:
        """Return the stem of the names of the function's steps."""
        return str(self.function)

    def case(self) -> Case:
        """Return the case of the function in the job."""
        function = registry.mpi(self.benchmark).function(self.function)
        per_node = self.current_partition.extras["ranks_per_node"]
        return mpi_case(self.place(), function, self.job_ranks, per_node)


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
        subjects = self.results.subjects()
        if not subjects:
            raise SanityError("no case is complete, so there is no curve to judge")
        along = confirmations.findings_along(subjects)
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
        several = tests_of(self, name_of(self.read_by, **self.parameters()))
        subjects = [subject for one in several.values() for subject in one.subjects()]
        if not subjects:
            raise SanityError("no case is complete, so there is nothing to compare")
        findings = engine.across(subjects, baseline_of_system())
        return hold([*itertools.chain(*findings.values())])


class MpiConfigurations(OfRanks, Configurations):
    """A benchmark's functions on all configurations of one rank count."""
