"""Tests that repeat launches after a job or a comparison leaves something undecided."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import reframe as rfm
import reframe.utility.udeps as udeps
from reframe.core.builtins import parameter, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import SanityError
from reframe.core.runtime import emit_loadenv_commands, runtime

from netproof import codec
from netproof.jobs import repeat_cases, repeat_rounds
from netproof.jobs.repeat_cases import RepeatCase
from netproof.measurement.case import Case
from netproof.run.jobs import Job, Reader, Steps, environments_of, name_of, tests_of
from netproof.run.mixins import RecordedTest
from netproof.run.system_here import baseline_of_system, rank_counts
from netproof.session import again, job_files, measured, plan, session
from netproof.site.partition import ranks_feature
from netproof.verdict import limits, rejudge
from netproof.verdict.engine import Subject


class Repeat(Steps, Reader, RecordedTest):
    """Repeat launches of a job's undecided cases on the same nodes; one test for each job.

    If nothing is undecided, no Slurm job is submitted. ``netproof_repeated``: launches around
    flagged sizes; ``netproof_repeats``: launches of whole curves; its record has both. A subclass
    has ``rounds()``: of steps, for srun and the interleaved environments, and
    the files that they need.
    """

    netproof_kind = variable(str, value="further", loggable=True)
    netproof_repeated = variable(dict, value={}, loggable=False)
    netproof_repeats = variable(dict, value={}, loggable=False)

    def parameters(self) -> dict[str, int]:
        """Return the parameters of the job to repeat."""
        return {}

    @run_after("init")
    def wait_for_job(self) -> None:
        """Depend on the job."""
        self.depends_on(name_of(self.launched_by, **self.parameters()), udeps.by_case)

    @run_after("setup")
    def find_undecided(self) -> None:
        """Judge the job's results; stay where ReFrame runs unless something is undecided."""
        self.job_of = self.getdep(name_of(self.launched_by, **self.parameters()))
        asked = [] if self.is_dry_run() else self.asked_cases()
        self.asked = repeat_cases.undecided(asked)
        if not self.is_open():
            # By now ReFrame has made the run's job for Slurm.
            self.local = True
            self._setup_run_job()
            self.executable, self.executable_opts = "true", []

    def is_open(self) -> bool:
        """Check whether something is undecided."""
        return any(one.whole or one.around for one in self.asked)

    def asked_cases(self) -> list[RepeatCase]:
        """Return the cases that may be repeated, before this test's launches."""
        return _asked(self.job_of, self.complete(self.job_of))

    @run_before("run")
    def launch_on(self) -> None:
        """Plan rounds on the same nodes until everything is decided."""
        if not self.is_open():
            return
        self.num_tasks = self.job_of.num_tasks
        self.num_tasks_per_node = self.job_of.num_tasks_per_node
        self.job.pin_nodes = list(self.job_of.own_nodes())
        srun = self.take_over_srun()
        peers = self.peer_environments(srun)
        rounds, files = self.rounds(srun, peers)
        files |= {peer.file: peer.text() for peer in peers}
        asked = [one.as_json() for one in self.asked]
        self.write_plan(files, task="repeats", rounds=tuple(map(tuple, rounds)), asked=asked)

    def peer_environments(self, srun: Sequence[str]) -> list[plan.PeerEnvironment]:
        """Return the interleaved environments; ``srun``: the job's own command."""
        partition, found = self.current_partition, []
        for place, name in enumerate(repeat_rounds.environments(self.asked)):
            environment = partition.environment(name)
            *command, _ = srun
            found.append(
                plan.PeerEnvironment(
                    name,
                    place,
                    (*command, f"--mpi={environment.extras['pmi']}"),
                    (
                        *partition.prepare_cmds,
                        *emit_loadenv_commands(partition.local_env, environment),
                    ),
                )
            )
        return found

    @sanity_function
    def keep_launches(self) -> bool:
        """Record the repeat launches."""
        places = repeat_rounds.environments(self.asked)
        folder, jobid = Path(self.stagedir), str(self.job.jobid)
        done = [
            repeat_rounds.read(folder, one, jobid=jobid, places=places)
            for one in self.asked
            if self.is_open()
        ]
        self.netproof_repeats = {
            "format": session.MEASURED_FORMAT,
            "cases": [one.results() for one in done if one.launches or one.faults],
        }
        self.netproof_repeated = {
            "format": session.MEASURED_FORMAT,
            "cases": [codec.encode(one.again) for one in done if one.again is not None],
        }
        self.write_record(
            netproof_repeats=self.netproof_repeats, netproof_repeated=self.netproof_repeated
        )
        self.insist_on_launches()
        return True

    def insist_on_launches(self) -> None:
        """Accept incomplete launches here: the check of their case reports them."""

    def extend(self, case: measured.Measured) -> measured.Measured:
        """Return a case with its repeat launches; raise Incomplete if one is not complete."""
        for values in self.netproof_repeats.get("cases", ()):
            if Case(**values["case"]) == case.case:
                more = codec.decode(measured.RepeatedCase, values, "repeat launches")
                if more.faults:
                    raise job_files.Incomplete(more.faults)
                return case.with_launches([*case.launches, *more.launches], more.crashes)
        return case

    def measured_again(self) -> dict[tuple, again.MeasuredAgain]:
        """Return the launches around flagged sizes, by case key."""
        return again.by_case(
            codec.decode(again.MeasuredAgain, values, "repeats")
            for values in self.netproof_repeated.get("cases", ())
        )


def _asked(job: Job, subjects: Sequence[Subject]) -> list[RepeatCase]:
    """Return cases of a job with the limits of their references."""
    prefix = runtime().get_option("general/0/reference_prefix")
    found = rejudge.of_file(Path(prefix), job.current_system.name)
    return [
        RepeatCase(one, limits.of_case(found, one.case), job.current_partition.extras)
        for one in subjects
    ]


class NetpipeRepeat(Repeat):
    """Repeat launches of NetPIPE."""

    valid_systems = ["*"]
    valid_prog_environs = environments_of("netpipe")
    tags = {"netpipe"}

    def rounds(
        self, srun: Sequence[str], peers: Sequence[plan.PeerEnvironment]
    ) -> tuple[list[list[plan.Step]], dict[str, str]]:
        """Return the rounds of steps; NetPIPE needs no files."""
        where = (self.asked, srun, self.seed, self.site_partition())
        return repeat_rounds.netpipe_rounds(*where, peers), {}


class MpiRepeat(Repeat):
    """Repeat launches of a benchmark's functions."""

    ranks = parameter(rank_counts())

    @run_after("init")
    def find_partitions(self) -> None:
        """Run where the partition measures this rank count, and the environment has it."""
        self.tags = {self.launched_by.benchmark}
        self.valid_prog_environs = environments_of(self.launched_by.benchmark)
        self.valid_systems = [f"+{ranks_feature(self.ranks)}"]

    def parameters(self) -> dict[str, int]:
        """Return the parameters of the job to repeat."""
        return {"ranks": self.ranks}

    def rounds(
        self, srun: Sequence[str], peers: Sequence[plan.PeerEnvironment]
    ) -> tuple[list[list[plan.Step]], dict[str, str]]:
        """Return the rounds of steps, and the lists of message sizes."""
        where = (self.asked, srun, self.seed, self.site_partition(), self.ranks)
        rounds = repeat_rounds.imb_rounds(*where, peers)
        return rounds, repeat_rounds.imb_files(self.asked, peers)


class ComparedRepeat(rfm.RegressionTestPlugin):
    """Repeat launches of cases that comparing configurations leaves undecided, after every job.

    Each launch of a flagged case is interleaved with one in every environment of its partition
    that it is flagged against. For a comparison with another partition, or by a score, the tests
    of both jobs make every round. It comes before a class of ``Repeat`` among the bases.
    """

    @run_after("init")
    def wait_for_job(self) -> None:
        """Depend on the jobs of all partitions."""
        for waited_for in (self.launched_by, self.repeated_by):
            self.depends_on(name_of(waited_for, **self.parameters()), udeps.fully)

    def asked_cases(self) -> list[RepeatCase]:
        """Return own cases, with first repeat launches, that a comparison leaves undecided."""
        jobs, repeats = (
            tests_of(self, name_of(kind, **self.parameters()))
            for kind in (self.launched_by, self.repeated_by)
        )
        everyone = []
        for where, job in jobs.items():
            around = repeats[where].measured_again()
            asked = _asked(job, self.complete(job, repeats[where]))
            everyone += [dataclasses.replace(one, again=around.get(one.key)) for one in asked]
        repeat = self.getdep(name_of(self.repeated_by, **self.parameters()))
        own = _asked(self.job_of, self.complete(self.job_of, repeat))
        return repeat_cases.compared(everyone, own, baseline_of_system())

    def insist_on_launches(self) -> None:
        """Fail if a launch is not complete, since the checks of the cases are done by now."""
        faults = [
            fault for values in self.netproof_repeats["cases"] for fault in values.get("faults", ())
        ]
        if faults:
            raise SanityError("\n".join(faults))


class NetpipeComparedRepeat(ComparedRepeat, NetpipeRepeat):
    """Repeat launches of NetPIPE."""

    netproof_kind = "compared further"


class MpiComparedRepeat(ComparedRepeat, MpiRepeat):
    """Repeat launches of a benchmark's functions."""

    netproof_kind = "compared further"
