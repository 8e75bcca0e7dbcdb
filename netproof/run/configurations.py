"""Tests that compare the configurations of a run."""

from __future__ import annotations

from collections.abc import Iterable

import reframe as rfm
import reframe.utility.udeps as udeps
from reframe.core.builtins import parameter, run_after, sanity_function, variable
from reframe.core.exceptions import SanityError
from reframe.core.runtime import runtime

from netproof.benchmarks import netpipe, registry
from netproof.errors import NetproofError
from netproof.run.curves import hold
from netproof.run.jobs import Launched, name_of
from netproof.run.launching_on import baseline_of_system
from netproof.run.reading import Reader, tests_of
from netproof.run.system_here import rank_counts
from netproof.site.site_file import JUDGE_ENVIRONMENT
from netproof.verdict import group_rulings
from netproof.verdict.subject import Subject


def _subjects_of(test: Configurations) -> list[Subject]:
    """Return every case of every configuration that a test waits for, with all its launches."""
    kinds = [test.launched_further_by, test.compared_further_by]
    jobs = tests_of(test, name_of(test.launched_by, **test.parameters()))
    several = [tests_of(test, name_of(kind, **test.parameters())) for kind in kinds]
    return [
        subject
        for where, job in jobs.items()
        for subject in test.complete(job, *(tests[where] for tests in several if where in tests))
    ]


class Configurations(rfm.RunOnlyRegressionTest, Launched):
    """Criteria that compare configurations, over every job of one kind in the run.

    It runs once, in ReFrame's own environment and on the first partition, when all jobs are done.
    A run narrowed to some environments or checks does not have it.
    """

    local = True
    sourcesdir = None
    executable = "true"
    valid_prog_environs = [JUDGE_ENVIRONMENT]
    netproof_kind = variable(str, value="configurations", loggable=True)

    def parameters(self) -> dict[str, int]:
        """Return the parameters of the jobs to compare."""
        return {}

    def features(self) -> Iterable[str]:
        """Return the features of the environments that have such jobs."""
        raise NetproofError(f"{type(self).__name__} compares no benchmark")

    @run_after("init")
    def wait_for_all(self) -> None:
        """Depend on the jobs of all partitions and their repeat launches.

        If no environment has the benchmark, there is nothing to compare.
        """
        features = set(self.features())
        partitions = runtime().system.partitions
        if not any(features & set(one.features) for each in partitions for one in each.environs):
            self.valid_systems = []
            return
        self.valid_systems = [partitions[0].fullname]
        for waited_for in (self.launched_by, self.launched_further_by, self.compared_further_by):
            self.depends_on(name_of(waited_for, **self.parameters()), udeps.fully)

    @sanity_function
    def configurations_hold(self) -> bool:
        """Check that no criterion fails; else raise SanityError with a sentence for each."""
        subjects = _subjects_of(self)
        if not subjects:
            raise SanityError("no case is complete, so there is nothing to compare")
        rulings = group_rulings.across(subjects, baseline_of_system())
        return hold([ruling for several in rulings.values() for ruling in several])


class NetpipeConfigurations(Configurations, Reader):
    """NetPIPE on all configurations."""

    tags = {"netpipe"}

    def features(self) -> Iterable[str]:
        """Return NetPIPE's features."""
        return netpipe.BENCHMARK.features


class MpiConfigurations(Configurations, Reader):
    """A benchmark's functions on all configurations of one rank count."""

    job_ranks = parameter(rank_counts())

    @run_after("init")
    def tag(self) -> None:
        """Tag the test with the benchmark of its jobs."""
        self.tags = {self.launched_by.benchmark}

    def features(self) -> Iterable[str]:
        """Return the features of the jobs' benchmark."""
        return registry.mpi(self.launched_by.benchmark).features

    def parameters(self) -> dict[str, int]:
        """Return the parameters of the jobs to compare."""
        return {"ranks": self.job_ranks}
