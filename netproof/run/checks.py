"""Checks of single functions: complete, and within their references."""

from __future__ import annotations

import shlex
from pathlib import Path

import reframe as rfm
import reframe.utility.udeps as udeps
from reframe.core.builtins import parameter, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import SanityError
from reframe.utility.sanity import make_performance_function

from netproof.benchmarks import netpipe, registry
from netproof.criteria import Level
from netproof.errors import NetproofError
from netproof.run.jobs import Launched, environments_of, mpi_case, name_of, netpipe_case
from netproof.run.reading import Reader
from netproof.run.recorded import RecordedTest
from netproof.run.referenced import Referenced
from netproof.run.system_here import rank_counts
from netproof.session import job_files, measured, reference_findings
from netproof.site.partition import fewest_ranks_feature, ranks_feature
from netproof.verdict import case_rulings, limits
from netproof.verdict.subject import Subject


class Check(rfm.RunOnlyRegressionTest, Launched, Referenced, RecordedTest):
    """Check of one function by the files of its job.

    Its output is the benchmark's text. ``netproof_case`` is the case to measure. Its record has
    whether the case is complete (``netproof_complete``), and the findings against its references,
    repeat launches included (``netproof_references``).
    """

    local = True
    sourcesdir = None
    executable = "cat"
    require_reference = True
    ranks = variable(int, loggable=True)
    netproof_kind = variable(str, value="check", loggable=True)
    netproof_case = variable(dict, value={}, loggable=True)

    def subject(self) -> str:
        """Return the stem of the names of the function's steps."""
        raise NetproofError(f"{type(self).__name__} names no function")

    def parameters(self) -> dict[str, int]:
        """Return the parameters of the tests that measure the function."""
        return {}

    def read(self) -> measured.Measured:
        """Return the complete case as the job measured it, or raise Incomplete."""
        raise NetproofError(f"{type(self).__name__} reads nothing")

    @run_after("init")
    def wait_for_launches(self) -> None:
        """Depend on the job and on its repeat launches."""
        for waited_for in (self.launched_by, self.launched_further_by):
            self.depends_on(name_of(waited_for, **self.parameters()), udeps.by_case)

    @run_after("setup")
    def show_output(self) -> None:
        """Print the benchmark's own text as output; ReFrame takes options as shell text."""
        self.job_of = self.getdep(name_of(self.launched_by, **self.parameters()))
        self.further_of = self.getdep(name_of(self.launched_further_by, **self.parameters()))
        folder = Path(self.job_of.stagedir)
        self.executable_opts = [
            shlex.quote(str(folder / f"{self.subject()}.{launch}.out"))
            for launch in range(1, self.launches + 1)
        ]

    @sanity_function
    def is_complete(self) -> bool:
        """Check that exactly the requested sizes and launches are there."""
        try:
            self.measured = self.further_of.extend(self.read())
        except job_files.Incomplete as error:
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
            # The time at each size is in the job's record.
            if value is not None and (name in bounds or not name.startswith(limits.TIME_AT)):
                self.perf_variables[name] = make_performance_function(
                    lambda value=value: value, unit
                )
        subject = Subject.of_extras(
            self.measured, self.current_partition.extras, self.current_environ.extras
        )
        findings = case_rulings.references(subject, limits.of_references(bounds))
        self.write_record(
            netproof_references=[
                reference_findings.as_json(name, finding) for name, finding in findings.items()
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


class NetpipeCheck(Check, Reader):
    """NetPIPE over one protocol, on one path, in one direction."""

    protocol = variable(str)
    path = parameter(netpipe.PATHS)
    direction = parameter(netpipe.DIRECTIONS)
    ranks = 2
    valid_systems = ["*"]
    tags = {"netpipe"}

    @run_after("init")
    def name_case(self) -> None:
        """Set the case to measure, and its environments."""
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

    def read(self) -> measured.Measured:
        """Return the complete case, or raise Incomplete."""
        variant = (self.protocol, self.path, self.direction)
        return self.case_of(self.job_of, netpipe_case(self.job_of, *variant))


class MpiCheck(Check, Reader):
    """One function of a benchmark at one rank count."""

    function = variable(str)
    job_ranks = parameter(rank_counts())

    @run_after("init")
    def find_partitions(self) -> None:
        """Run where the partition measures this rank count, and the environment has it."""
        benchmark = self.launched_by.benchmark
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
            "path": "between",
            "direction": "oneway",
        }

    def subject(self) -> str:
        """Return the stem of the names of the function's steps."""
        return self.function

    def parameters(self) -> dict[str, int]:
        """Return the parameters of the tests that measure the function."""
        return {"ranks": self.job_ranks}

    def read(self) -> measured.Measured:
        """Return the complete case, or raise Incomplete."""
        function = registry.mpi(self.launched_by.benchmark).function(self.function)
        return self.case_of(self.job_of, mpi_case(self.job_of, function))
