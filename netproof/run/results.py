"""Tests that read what a job measured in one environment, for its record and for the checks."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.udeps as udeps
from reframe.core.builtins import parameter, run_after, sanity_function, variable
from reframe.core.exceptions import DependencyError, ReframeError, SanityError
from reframe.core.runtime import runtime

from netproof import codec
from netproof.errors import NetproofError
from netproof.jobs.acceptance import JobOutcome
from netproof.measurement.case import Case
from netproof.run.jobs import (
    PartitionJob,
    environments_of,
    jobs_of,
    name_of,
    ran_with,
    reason_to_skip,
)
from netproof.run.mixins import Launched, RecordedTest
from netproof.run.system_here import rank_counts
from netproof.session import job_files, node_facts, provenance, records, transport
from netproof.session.job_files import Incomplete
from netproof.session.measured import Measured
from netproof.site.partition import ranks_feature
from netproof.verdict.engine import Subject

MOST_READ = 50
"""Most jobs whose cases are held in memory for the tests that wait for them."""

_outcomes: dict[tuple[str, str], JobOutcome] = {}
"""Results of the jobs read last, by stage folder and job id."""


class Results(rfm.RunOnlyRegressionTest, Launched, RecordedTest):
    """A test that reads what a job measured in one environment, repeat launches included.

    ``launched_by``: the leaf class of the job. Its record has ``netproof_cases``, the nodes and
    software (``netproof_provenance``), and the MPI library's transport.
    """

    local = True
    sourcesdir = None
    executable = "true"
    valid_systems = ["*"]
    netproof_kind = variable(str, value="launches", loggable=True)
    netproof_left = variable(dict, value={}, loggable=True)
    launched_by: type[PartitionJob]

    def parameters(self) -> dict[str, int]:
        """Return the parameters of the job, but for its partition."""
        return {}

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
            self.netproof_left = codec.encode(reason)
            self.skip(reason.why)

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
        """Return what the job measured; read once."""
        place = (self.job_of.stagedir, str(self.job_of.job.jobid))
        if place not in _outcomes:
            if len(_outcomes) >= MOST_READ:
                del _outcomes[next(iter(_outcomes))]
            _outcomes[place] = JobOutcome(Path(self.job_of.stagedir), place[1])
        return _outcomes[place]

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
        found = []
        extras = self.current_partition.extras, self.current_environ.extras
        for case in self.job_of.cases_in(self.current_environ):
            with contextlib.suppress(Incomplete):
                found.append(Subject.of_extras(self.whole(case), *extras))
        return found

    @sanity_function
    def are_there(self) -> bool:
        """Check that the job began its steps here; the checks judge each of them."""
        record = self.folder / job_files.LAUNCHES_FILE
        if not record.is_file():
            raise SanityError(f"the job left no {record}")
        try:
            planned = self.outcome.environments[self.current_environ.name].plan
            asks = self.job_of.least_run_in(self.current_environ)
            self.write_record(
                netproof_cases=records.cases_of(self.folder, planned, self.measured),
                netproof_transport=codec.encode(transport.of_job(self.folder)) if asks else {},
                netproof_provenance={},
            )
            nodes = node_facts.nodes_of_job(self.folder, str(self.job_of.job.jobid))
            described = provenance.of_job(self.folder, nodes, ran_with())
        except (NetproofError, OSError) as error:
            raise SanityError(str(error)) from None
        self.write_record(netproof_provenance=described)
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
