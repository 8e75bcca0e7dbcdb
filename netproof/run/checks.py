"""Tests that judge what jobs measured, one for each case.

A case is complete, within its references, and no criterion fails: along its curve, on its launches,
and compared with the other environments of its job. What compares partitions is in the verdict.
"""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.udeps as udeps
from reframe.core.builtins import parameter, run_after, run_before, sanity_function, variable
from reframe.core.environments import Environment
from reframe.core.exceptions import ReframeError, SanityError
from reframe.core.runtime import runtime
from reframe.core.systems import SystemPartition
from reframe.utility.sanity import make_performance_function

from netproof import codec
from netproof.benchmarks import netpipe, registry
from netproof.criteria import Level
from netproof.measurement.case import Case
from netproof.measurement.landmarks import LANDMARKS, Better
from netproof.run.jobs import PartitionJob, left_now, name_of, outcome_of, reason_to_skip
from netproof.run.mixins import (
    Launched,
    RecordedTest,
    Referenced,
    partition_names,
    rank_counts,
)
from netproof.session import records
from netproof.session.job_files import Incomplete
from netproof.site.partition import fewest_ranks_feature, ranks_feature, tcp_environments
from netproof.verdict import engine, limits
from netproof.verdict.engine import Subject

_SIZES = (name for name, one in LANDMARKS.items() if one.better is Better.NEITHER)
_IN_RECORDS = (limits.TIME_AT, "paired_mb_s", "rate_", *_SIZES)
"""Performance variables, or how they begin, that are logged only where a reference bounds them."""


class Check(rfm.RunOnlyRegressionTest, Launched, Referenced, RecordedTest):
    """Check of one function by the files of its job.

    Its output is the benchmark's text. ``launched_by``: the leaf class of the job; ``limited_by``:
    that of a partition that bounds a job's length, if it is another one. ``netproof_case`` is the
    case to measure, empty once the record has it; ``netproof_met``: whether its references are met,
    so that only criteria, which a verdict judges again, can have failed it. Its record has whether
    the case is complete (``netproof_complete``), and the findings against its references, repeat
    launches included (``netproof_references``). A subclass has ``case_in()`` a partition's
    environment, and ``job_ranks`` if its job is one of several rank counts.
    """

    local = True
    sourcesdir = None
    executable = "cat"
    require_reference = True
    ranks = variable(int)
    netproof_kind = variable(str, value="check", loggable=False)
    netproof_case = variable(dict, value={}, loggable=True)
    netproof_left = variable(dict, value={}, loggable=True)
    netproof_met = variable(bool, value=False, loggable=True)
    launched_by: type[PartitionJob]
    limited_by: type[PartitionJob] | None = None

    def case_in(self, partition: SystemPartition, environment: Environment) -> Case:
        """Return its case there."""
        raise NotImplementedError

    def case(self) -> Case:
        """Return its case where it runs."""
        return self.case_in(self.current_partition, self.current_environ)

    def job_on(self, partition: SystemPartition) -> str:
        """Return the name of its job on a partition; empty where that has none."""
        limited = partition.extras["job_limit_s"] and self.limited_by
        kind, ranks = limited or self.launched_by, getattr(self, "job_ranks", 0)
        if not kind.is_on(partition, ranks):
            return ""
        return name_of(kind, partition=partition.name, **({"ranks": ranks} if ranks else {}))

    @run_after("init")
    def wait_for_jobs(self) -> None:
        """Run after the job of its partition."""
        for name in filter(None, map(self.job_on, runtime().system.partitions)):
            self.depends_on(name, udeps.by_part)

    @run_after("setup")
    def find_job(self) -> None:
        """Print the benchmark's own text as output; ReFrame takes options as shell text.

        Skip a case that is left; fail in an environment that is unusable or was not read.
        """
        environment = self.current_environ
        name = self.job_on(self.current_partition)
        if not name:
            where = self.current_partition.fullname
            raise ReframeError(f"no job measures it on {where}: see its launched_by and limited_by")
        self.job_of = self.getdep(name, environ="*")
        if why := environment.extras["unusable"] or self.job_of.unread.get(environment.name):
            raise ReframeError(why)
        if reason := reason_to_skip([self.case()]):
            self.netproof_left = reason
            self.skip(reason["why"])
        self.of_job = self.job_of.stagedir, str(self.job_of.job.jobid)
        folder = Path(self.job_of.stagedir, environment.name)
        subject = registry.of(self.case()).subject(self.case())
        self.executable_opts = [
            shlex.quote(str(folder / f"{subject}.{launch}.out"))
            for launch in range(1, self.launches + 1)
        ]

    @sanity_function
    def is_complete(self) -> bool:
        """Check that exactly the requested sizes and launches are there."""
        found = outcome_of(*self.of_job).measured[self.current_environ.name][self.case()]
        if isinstance(found, Incomplete):
            raise SanityError(str(found))
        self.measured = found
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
        """Fail with what the criteria find, and with what is inconclusive, a sentence a line."""
        if self.is_dry_run():
            return
        findings = outcome_of(*self.of_job).findings[self.case().key()]
        failed = [one.why for one in findings if one.level is Level.FAIL]
        undecided = [one.why for one in findings if one.level is Level.INCONCLUSIVE]
        failed += [f"inconclusive: {why}" for why in (*self.open_references, *undecided)]
        self.netproof_met = not self.open_references
        if failed:
            raise SanityError("\n".join(failed))


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

    def case_in(self, partition: SystemPartition, environment: Environment) -> Case:
        """Return the variant's case."""
        where = runtime().system.name, partition.name, environment.name
        return netpipe.BENCHMARK.case(where, self.protocol, self.path, self.direction)


def tcp_environments_on(partition: SystemPartition) -> tuple[str, ...]:
    """Return the environments of a partition that measure TCP in this run.

    Those that ``-p`` selects, and whose NetPIPE is not to be skipped; where all are, the check is
    skipped in the first.
    """
    skipped, where = left_now(), (runtime().system.name, partition.name)
    several = [(one.name, one.features, one.extras) for one in partition.environs]
    measuring = [
        one
        for one in several
        if not any(
            netpipe.BENCHMARK.case((*where, one[0]), protocol, "intra-node").key() in skipped
            for protocol in netpipe.PROTOCOLS
        )
    ]
    return tcp_environments(measuring) or tcp_environments(several)


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


class MpiCheck(Check):
    """One function of a ``benchmark``, named in the class body, at one rank count."""

    job_ranks = parameter(rank_counts())
    benchmark: str
    function = variable(str)

    @run_after("init")
    def find_partitions(self) -> None:
        """Run where the partition measures this rank count, and the environment has it."""
        mpi = registry.mpi(self.benchmark)
        function = mpi.function(self.function)
        self.tags = {self.benchmark}
        self.valid_prog_environs = [f"+{one}" for one in mpi.features]
        self.ranks = 2 if function.pair else self.job_ranks
        feature = fewest_ranks_feature if function.pair else ranks_feature
        odd = function.pairs and self.job_ranks % 2
        self.valid_systems = [] if odd else [f"+{feature(self.job_ranks)}"]
        named = (self.benchmark, self.function, self.ranks, "inter-node", "oneway")
        self.netproof_case = dict(zip(records.CASE_KEYS, named, strict=True))

    def case_in(self, partition: SystemPartition, environment: Environment) -> Case:
        """Return the function's case."""
        where = runtime().system.name, partition.name, environment.name
        mpi, per_node = registry.mpi(self.benchmark), partition.extras["ranks_per_node"]
        return mpi.case(where, self.function, self.job_ranks, per_node)
