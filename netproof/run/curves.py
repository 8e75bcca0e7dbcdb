"""Tests that judge each curve of a job."""

from __future__ import annotations

from collections.abc import Sequence

import reframe as rfm
import reframe.utility.udeps as udeps
from reframe.core.builtins import parameter, run_after, sanity_function, variable
from reframe.core.exceptions import SanityError

from netproof.criteria import Level
from netproof.run.jobs import Launched, environments_of, name_of
from netproof.run.reading import Reader
from netproof.run.system_here import rank_counts
from netproof.session import again
from netproof.site.partition import ranks_feature
from netproof.verdict import case_rulings
from netproof.verdict.subject import Ruling


class Curves(rfm.RunOnlyRegressionTest, Launched):
    """Criteria along each curve of one job, repeat launches included."""

    local = True
    sourcesdir = None
    executable = "true"
    netproof_kind = variable(str, value="curves", loggable=True)

    def parameters(self) -> dict[str, int]:
        """Return the parameters of the job whose curves are judged."""
        return {}

    @run_after("init")
    def wait_for_launches(self) -> None:
        """Depend on the job and on its repeat launches."""
        for waited_for in (self.launched_by, self.launched_further_by):
            self.depends_on(name_of(waited_for, **self.parameters()), udeps.by_case)

    @sanity_function
    def curves_hold(self) -> bool:
        """Check that no criterion fails; else raise SanityError with a sentence for each."""
        job = self.getdep(name_of(self.launched_by, **self.parameters()))
        repeats = self.getdep(name_of(self.launched_further_by, **self.parameters()))
        subjects = self.complete(job, repeats)
        if not subjects:
            raise SanityError("no case is complete, so there is no curve to judge")
        measured_again = repeats.measured_again()
        rulings = [
            ruling
            for subject, findings in case_rulings.along_all(subjects).items()
            for ruling in case_rulings.rule_all(
                subject, findings, measured_again.get(subject.case.key())
            )
        ]
        for one in case_rulings.launched(subjects, again.starts(measured_again)):
            rulings.append(Ruling(one.finding, one.finding.level, one.finding.reason))
        return hold(rulings)


def hold(rulings: Sequence[Ruling]) -> bool:
    """Return True, or raise SanityError with a line for each failed or inconclusive ruling."""
    failed = [ruling.why for ruling in rulings if ruling.level is Level.FAIL]
    failed += [
        f"inconclusive: {ruling.why}" for ruling in rulings if ruling.level is Level.INCONCLUSIVE
    ]
    if failed:
        raise SanityError("\n".join(failed))
    return True


class NetpipeCurves(Curves, Reader):
    """The curves of one NetPIPE job."""

    valid_systems = ["*"]
    valid_prog_environs = environments_of("netpipe")
    tags = {"netpipe"}


class MpiCurves(Curves, Reader):
    """The curves of one job of a benchmark's functions."""

    job_ranks = parameter(rank_counts())

    @run_after("init")
    def find_partitions(self) -> None:
        """Run where the partition measures this rank count, and the environment has it."""
        self.tags = {self.launched_by.benchmark}
        self.valid_prog_environs = environments_of(self.launched_by.benchmark)
        self.valid_systems = [f"+{ranks_feature(self.job_ranks)}"]

    def parameters(self) -> dict[str, int]:
        """Return the parameters of the job whose curves are judged."""
        return {"ranks": self.job_ranks}
