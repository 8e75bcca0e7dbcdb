"""Tests that repeat launches after a job or a comparison leaves something undecided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.udeps as udeps
from reframe.core.builtins import parameter, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import SanityError
from reframe.core.runtime import emit_loadenv_commands, runtime

from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.run import deciding, further, further_cases, further_rounds
from netproof.run.jobs import Steps, environments_of, name_of
from netproof.run.reading import Reader, tests_of
from netproof.run.recorded import RecordedTest
from netproof.run.system_here import rank_counts
from netproof.session import again, job_files, job_scripts, measured, plan, session
from netproof.site.partition import Partition, ScoreBaseline, ranks_feature, score_baseline
from netproof.verdict import limits, references
from netproof.verdict.subject import Subject


class Further(Steps, Reader, RecordedTest):
    """Repeat launches of a job's undecided cases on the same nodes; one test for each job.

    If nothing is undecided, no Slurm job is submitted. ``netproof_again``: launches around flagged
    sizes; ``netproof_further``: launches of whole curves; its record has both.
    """

    netproof_kind = variable(str, value="further", loggable=True)
    netproof_again = variable(dict, value={}, loggable=False)
    netproof_further = variable(dict, value={}, loggable=False)

    def parameters(self) -> dict[str, int]:
        """Return the parameters of the job to repeat."""
        return {}

    def rounds(
        self, srun: Sequence[str], peers: Sequence[plan.PeerEnvironment]
    ) -> tuple[list[list[tuple[str, plan.Step]]], dict[str, str]]:
        """Return the rounds of steps with their labels, and the files that they need.

        ``peers``: the interleaved environments.
        """
        raise NetproofError(f"{type(self).__name__} launches nothing")

    @run_after("init")
    def wait_for_job(self) -> None:
        """Depend on the job."""
        self.depends_on(name_of(self.launched_by, **self.parameters()), udeps.by_case)

    @run_after("setup")
    def find_undecided(self) -> None:
        """Judge the job's results; stay where ReFrame runs unless something is undecided."""
        self.job_of = self.getdep(name_of(self.launched_by, **self.parameters()))
        # ReFrame writes a test's attributes as JSON, which has only text for keys.
        self.asked, self.open_whole, self.open_around = [], [], []
        if not self.is_dry_run():
            self.asked = self.asked_of(self.complete_before())
            found = self.undecided()
            self.open_whole, self.open_around = list(found.whole), list(found.around)
        if not (self.open_whole or self.open_around):
            # By now ReFrame has made the run's job for Slurm.
            self.local = True
            self._setup_run_job()
            self.executable, self.executable_opts = "true", []

    def complete_before(self) -> list[Subject]:
        """Return the cases before this test's launches."""
        return self.complete(self.job_of)

    def undecided(self) -> deciding.Undecided:
        """Return the cases to repeat."""
        return deciding.undecided([further_cases.Done(one) for one in self.asked])

    def asked_of(self, subjects: Sequence[Subject]) -> list[further_cases.FurtherCase]:
        """Return the cases with the limits of their references."""
        return _asked(subjects, self.current_system.name, self.current_partition.extras)

    @run_before("run")
    def launch_on(self) -> None:
        """Plan rounds on the same nodes until everything is decided."""
        if not (self.open_whole or self.open_around):
            return
        self.num_tasks = self.job_of.num_tasks
        self.num_tasks_per_node = self.job_of.num_tasks_per_node
        self.job.pin_nodes = list(self.job_of.own_nodes())
        partition = Partition.model_validate(self.current_partition.extras)
        stage = Path(self.stagedir)
        srun = self.take_over_srun(partition)
        peers = self.peer_environments(srun)
        rounds, files = self.rounds(srun, peers)
        files |= {peer.file: peer.text() for peer in peers}
        decisions = further_rounds.decisions(self.asked, len(rounds), stage)
        text = job_scripts.further_script(
            rounds, partition, over_tcp=self.over_tcp, decisions=decisions
        )
        further.write_question(stage, self.asked)
        self.write_files(text, files, [step.name for steps in rounds for _, step in steps])

    def peer_environments(self, srun: Sequence[str]) -> list[plan.PeerEnvironment]:
        """Return the interleaved environments; ``srun``: the job's own command."""
        partition, found = self.current_partition, []
        for place, name in enumerate(further_rounds.environments(self.asked)):
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
        places = further_rounds.environments(self.asked)
        done = [
            further.read(
                Path(self.stagedir),
                one,
                whole=one.case.key() in self.open_whole,
                around=one.case.key() in self.open_around,
                jobid=str(self.job.jobid),
                places=places,
            )
            for one in self.asked
            if self.open_whole or self.open_around
        ]
        self.netproof_further = {
            "format": session.MEASURED_FORMAT,
            "cases": [one.as_json() for one in done if one.launches or one.faults],
        }
        self.netproof_again = {
            "format": session.MEASURED_FORMAT,
            "cases": [one.again.as_json() for one in done if one.again is not None],
        }
        self.write_record(
            netproof_further=self.netproof_further, netproof_again=self.netproof_again
        )
        self.insist_on_launches()
        return True

    def insist_on_launches(self) -> None:
        """Accept incomplete launches here: the check of their case reports them."""

    def extend(self, case: measured.Measured) -> measured.Measured:
        """Return a case with its repeat launches; raise Incomplete if one is not complete."""
        for values in self.netproof_further.get("cases", ()):
            if Case(**values["case"]) == case.case:
                if values["faults"]:
                    raise job_files.Incomplete(values["faults"])
                more = [measured.Launch.from_json(launch) for launch in values["launches"]]
                crashed = [measured.Crash.from_json(crash) for crash in values["crashes"]]
                return case.with_launches([*case.launches, *more], crashed)
        return case

    def measured_again(self) -> dict[tuple, again.MeasuredAgain]:
        """Return the launches around flagged sizes, by case key."""
        return again.by_case(
            again.MeasuredAgain.from_json(values) for values in self.netproof_again.get("cases", ())
        )


def _asked(
    subjects: Sequence[Subject], system: str, extras: Mapping[str, Any]
) -> list[further_cases.FurtherCase]:
    """Return cases of a partition with ``extras``, and the limits of their references."""
    found = _references(system)
    return [
        further_cases.FurtherCase(subject, limits.of_case(found, subject.case), extras)
        for subject in subjects
    ]


def _references(system: str) -> references.ReferenceFile:
    prefix = runtime().get_option("general/0/reference_prefix")
    return references.ReferenceFile(Path(prefix) / f"{system}.yaml")


class NetpipeFurther(Further):
    """Repeat launches of NetPIPE."""

    valid_systems = ["*"]
    valid_prog_environs = environments_of("netpipe")
    tags = {"netpipe"}

    @property
    def over_tcp(self) -> bool:
        """True if it launches NPtcp."""
        return any(one.case.function == "tcp" for one in self.asked)

    def rounds(
        self, srun: Sequence[str], peers: Sequence[plan.PeerEnvironment]
    ) -> tuple[list[list[tuple[str, plan.Step]]], dict[str, str]]:
        """Return the rounds of steps with their labels; NetPIPE needs no files."""
        partition = Partition.model_validate(self.current_partition.extras)
        where = (self.asked, self.open_whole, self.open_around)
        rounds = further_rounds.netpipe_rounds(*where, srun, self.seed, partition, peers)
        return rounds, {}


class MpiFurther(Further):
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
    ) -> tuple[list[list[tuple[str, plan.Step]]], dict[str, str]]:
        """Return the rounds of steps with their labels, and the lists of message sizes."""
        partition = Partition.model_validate(self.current_partition.extras)
        where = (self.asked, self.open_whole, self.open_around)
        rounds = further_rounds.imb_rounds(*where, srun, self.seed, partition, self.ranks, peers)
        return rounds, further_rounds.imb_files(*where, peers)


class ComparedFurther(rfm.RegressionTestPlugin):
    """Repeat launches of cases that comparing configurations leaves undecided, after every job.

    Each launch of a flagged case is interleaved with one in every environment of its partition
    that it is flagged against. For a comparison with another partition, or by a score, the tests
    of both jobs make every round. It comes before a class of ``Further`` among the bases.
    """

    @run_after("init")
    def wait_for_job(self) -> None:
        """Depend on the jobs of all partitions."""
        for waited_for in (self.launched_by, self.launched_further_by):
            self.depends_on(name_of(waited_for, **self.parameters()), udeps.fully)

    def complete_before(self) -> list[Subject]:
        """Return the cases with their first repeat launches."""
        name = name_of(self.launched_further_by, **self.parameters())
        return self.complete(self.job_of, self.getdep(name))

    def undecided(self) -> deciding.Undecided:
        """Return own cases on either side of a comparison that flags a case."""
        self.asked = deciding.compared(_results_of(self), self.asked, baseline_of_system())
        return deciding.undecided([further_cases.Done(one) for one in self.asked])

    def insist_on_launches(self) -> None:
        """Fail if a launch is not complete, since the checks of the cases are done by now."""
        faults = [fault for values in self.netproof_further["cases"] for fault in values["faults"]]
        if faults:
            raise SanityError("\n".join(faults))


class NetpipeComparedFurther(ComparedFurther, NetpipeFurther):
    """Repeat launches of NetPIPE."""

    netproof_kind = "compared further"


class MpiComparedFurther(ComparedFurther, MpiFurther):
    """Repeat launches of a benchmark's functions."""

    netproof_kind = "compared further"


def _results_of(test: ComparedFurther) -> list[further_cases.Done]:
    """Return every case of every configuration that a test waits for, with its repeat launches."""
    jobs = tests_of(test, name_of(test.launched_by, **test.parameters()))
    repeats = tests_of(test, name_of(test.launched_further_by, **test.parameters()))
    found = []
    for where, job in jobs.items():
        repeat = repeats[where]
        around = repeat.measured_again()
        subjects = test.complete(job, repeat)
        asked = _asked(subjects, job.current_system.name, job.current_partition.extras)
        found += [further_cases.Done(each, again=around.get(each.case.key())) for each in asked]
    return found


def baseline_of_system() -> ScoreBaseline | None:
    """Return the configuration that scores of this system are relative to."""
    partitions = [
        {"name": partition.name, "extras": partition.extras}
        for partition in runtime().system.partitions
    ]
    return score_baseline(partitions)
