"""Read the results of the jobs that a test waits for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import reframe as rfm
from reframe.core.exceptions import DependencyError
from reframe.core.runtime import runtime

from netproof.measurement.case import Case
from netproof.run.jobs import Job
from netproof.session import job_files, measured
from netproof.verdict.subject import Subject

if TYPE_CHECKING:
    from netproof.run.launching_on import ComparedFurther, Further


class Reader(rfm.RegressionTestPlugin):
    """A test that reads the cases of a job.

    ``launched_by``, ``launched_further_by``, ``compared_further_by``: leaf classes of its jobs and
    their repeat launches, in the class body as far as the test needs them.
    """

    launched_by: type[Job]
    launched_further_by: type[Further]
    compared_further_by: type[ComparedFurther]

    def case_of(self, job: Job, case: Case) -> measured.Measured:
        """Return a case as ``job`` measured it, or raise Incomplete."""
        found = job.measured()[case]
        if isinstance(found, job_files.Incomplete):
            raise found
        return found

    def readers(self, job: Job) -> list[Callable[[], measured.Measured]]:
        """Return a function for each case of ``job`` that reads it, or raises Incomplete."""
        return [lambda case=case: self.case_of(job, case) for case in job.cases()]

    def complete(self, job: Job, *several: Further) -> list[Subject]:
        """Return every case that ``job`` completed; the checks report the others.

        ``several``: tests whose repeat launches are added to the cases.
        """
        found = []
        for read in self.readers(job):
            try:
                case = read()
                for one in several:
                    case = one.extend(case)
            except job_files.Incomplete:
                continue
            extras = job.current_partition.extras, job.current_environ.extras
            found.append(Subject.of_extras(case, *extras))
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
