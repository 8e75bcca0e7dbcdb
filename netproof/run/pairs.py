"""Tests that measure every node of a partition in pairs to find slow ones."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import reframe as rfm
import reframe.utility.udeps as udeps
from reframe.core.builtins import parameter, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import ReframeError, SanityError

from netproof import codec
from netproof.benchmarks.registry import OF_PAIRS
from netproof.errors import NetproofError
from netproof.jobs.pair_rounds import read
from netproof.measurement.case import Case
from netproof.pairs import verdict as pairs
from netproof.pairs.rounds import Mode
from netproof.run.jobs import Job, name_of
from netproof.run.mixins import (
    OnPartition,
    RecordedTest,
    failing,
    first_turn,
    of_other_turns,
    pair_places,
    tree,
    usable_nodes,
)
from netproof.session import job_files, pair_rounds, plan
from netproof.session.pair_rounds import PairRounds
from netproof.site import slurm
from netproof.site.partition import makes_pairs
from netproof.site.slurm import fold


class InPairs(OnPartition):
    """A test in one environment, on the partitions that measure pairs in it.

    It is generated for no other environment, since a skipped test would count as not measured.
    ReFrame's features cannot choose, since those of an environment are the same on all partitions.
    Where a job cannot have all usable nodes of a partition, several have one ``turn`` each, from 1.
    """

    # A parameter without values is a warning of ReFrame's; the empty name is on no partition.
    environment = parameter(sorted({name for name, _ in pair_places()}) or [""])
    turn = parameter(sorted({turn for _, turn in pair_places()}) or [1])

    @run_after("init")
    def find_partitions(self) -> None:
        """Run on the partitions that measure pairs in this environment."""
        self.valid_systems = pair_places().get((self.environment, self.turn), [])
        self.valid_prog_environs = [self.environment] if self.valid_systems else []


class PairLaunches(Job, InPairs):
    """Every usable node of a partition in pairs, one launch a round.

    ``mode``: ``quick``, until each node is cleared or accused; ``full``, every pair; ``paths``,
    by topology. ``netproof_busy``: the ``nodes`` that it no longer waits for, and the seconds that
    it did, ``waited_s``; empty if it got all.
    """

    mode = variable(str, value=Mode.QUICK.value)
    netproof_busy = variable(dict, value={}, loggable=True)
    num_tasks_per_node = 1
    in_pairs = True
    keep_files = [
        *Job.keep_files,
        *(f"{pair_rounds.SUBJECT}.*", pair_rounds.PLANNED_FILE),
    ]
    tags = {"pairs"}

    def cases(self) -> list[Case]:
        """Return its benchmark's cases in any environment: if all are skipped, pairs are."""
        partition, cases = self.current_partition, []
        counts, per_node = partition.extras["rank_counts"], partition.extras["ranks_per_node"]
        for environ in partition.environs:
            if makes_pairs(environ.features):
                where = (self.current_system.name, partition.name, environ.name)
                cases += OF_PAIRS.cases(where, counts, per_node, all_functions=False)
        return cases

    @run_after("init")
    def insist_on_mode(self) -> None:
        """Fail for an unknown mode."""
        if self.mode not in list(Mode):
            raise ReframeError(f"unknown mode {self.mode!r}; choose one of {', '.join(Mode)}")

    @run_after("setup")
    def take_all_nodes(self) -> None:
        """Take all usable nodes, of more than a job can have those of its turn.

        The job waits for busy nodes, ``wait_for_nodes_s`` at most.
        """
        self.num_tasks = self.current_partition.extras["nodes"]
        if self.is_dry_run():
            return
        access = self.current_partition.access
        self.num_tasks, usable = usable_nodes(access, self.num_tasks)
        if len(usable) > self.num_tasks and not slurm.options_in(access, slurm.CHOOSING):
            turn = first_turn(self.current_partition.name) + self.turn
            self.left_to_others = of_other_turns(usable, self.num_tasks, turn)
            self.job.options += [f"--exclude={fold(self.left_to_others)}"]

    @run_before("run")
    def plan_rounds(self) -> None:
        """Plan the job, which decides after each round what to measure next."""
        srun = self.take_over_srun()
        leaves, parents = tree() if not self.is_dry_run() else ({}, {})
        named = {name: tuple(nodes) for name, nodes in leaves.items()}
        asked = PairRounds(*self.place(), (), (), "", self.mode, self.seed, named, parents)
        largest = self.site_partition().max_message_bytes
        sizes = {
            pair_rounds.SUBJECT: pair_rounds.sizes(largest),
            pair_rounds.STREAM_SUBJECT: pair_rounds.sizes(largest, stream=True),
        }
        planned = self.planned(srun=tuple(srun), asked=codec.encode(asked), task="pairs")
        self.write_plan(plan.size_files(sizes), planned)


class PairCheck(rfm.RunOnlyRegressionTest, InPairs, RecordedTest):
    """Check that every node is cleared; else a sentence for each accused or undecided one.

    Its record has the rounds, ``netproof_pairs``.
    """

    local = True
    sourcesdir = None
    executable = "true"
    tags = {"pairs"}
    launched_by: type[PairLaunches]
    netproof_kind = variable(str, value="pairs", loggable=True)

    @run_after("init")
    def wait_for_launches(self) -> None:
        """Depend on the job whose rounds these are."""
        self.of = name_of(self.launched_by, environment=self.environment, turn=self.turn)
        self.depends_on(self.of, udeps.by_case)

    @sanity_function
    def no_node_stands_out(self) -> bool:
        """Check that no node, pair or switch is accused or undecided."""
        job = self.getdep(self.of)
        folder = Path(job.stagedir)
        with failing(SanityError):
            rounds, partition = read(folder, str(job.job.jobid))
        rounds = dataclasses.replace(rounds, faults=(*rounds.faults, *_cut_short(folder)))
        if job.netproof_busy:
            rounds = rounds.without(job.netproof_busy["nodes"], job.netproof_busy["waited_s"])
        extras = self.current_partition.extras
        self.write_record(netproof_pairs={**codec.encode(rounds), "partition_extras": extras})
        disturbance = partition.settings().disturbance
        link = partition.link(over_tcp=self.current_environ.extras["mpi_over_tcp"])
        judged = pairs.judge(rounds, partition.pair_settings(), disturbance, link)
        reasons = [*judged.accusations(), *judged.faults()]
        reasons += [f"inconclusive: {why}" for why in judged.undecided()]
        if reasons:
            raise SanityError("\n".join(reasons))
        return True


def _cut_short(folder: Path) -> list[str]:
    """Return why rounds may be missing, if the job's rounds were never closed."""
    path = folder / job_files.JOB_FILE
    try:
        report = job_files.JobReport.read(folder)
    except (NetproofError, OSError) as error:
        return [f"{path}: the job did not come to the end of its rounds: {error}"]
    if pair_rounds.SUBJECT in report.closed:
        return []
    reason = "; ".join(filter(None, (report.ended, *report.faults)))
    return [f"{path}: the job did not come to the end of its rounds{reason and f': {reason}'}"]
