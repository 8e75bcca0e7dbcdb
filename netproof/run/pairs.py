"""The tests that measure every node of a partition in pairs, and say which of them is slow."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from reframe.core.builtins import parameter, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import ReframeError, SanityError

from netproof.benchmarks.registry import OF_PAIRS
from netproof.localization.choosing import Mode
from netproof.measurement.case import Case
from netproof.run import pair_deciding
from netproof.run.all_nodes import count_usable, tree
from netproof.run.jobs import Job, name_of
from netproof.run.logged import Logged
from netproof.run.on_demand import JobRead
from netproof.run.system_here import pair_places
from netproof.run.waiting import TakesFewer
from netproof.session import job_scripts, pair_plans, plan, records
from netproof.site.partition import Partition, makes_pairs
from netproof.verdict import pairs

KEPT_FILES = [f"{pair_plans.SUBJECT}.*", pair_plans.PLANNED_FILE, "decide.out"]


class InPairs(Logged):
    """In one environment, on the partitions whose nodes are measured in pairs in it.

    A test that is generated and skipped would count as not measured: it has to be generated for
    no other environment, and ReFrame's features of environments are the same on all partitions.
    """

    # A parameter without values is a warning of ReFrame's; the empty name is on no partition.
    environment = parameter(sorted(pair_places()) or [""])

    @run_after("init")
    def find_partitions(self) -> None:
        """Where they are."""
        self.valid_systems = pair_places().get(self.environment, [])
        self.valid_prog_environs = [self.environment] if self.valid_systems else []


class PairLaunches(TakesFewer, Job, InPairs):
    """Every usable node of a partition in pairs, one launch a round.

    ``mode``: ``quick``, until each node is cleared or accused; ``full``, every pair; ``paths``,
    by topology.
    """

    mode = variable(str, value=Mode.QUICK.value)
    num_tasks_per_node = 1
    keep_files = [*Job.keep_files, *KEPT_FILES]
    tags = {"pairs"}

    def cases(self) -> list[Case]:
        """Those of its benchmark on the partition: where all of them are left, its nodes are too.

        In whatever environment, since it is nodes that are measured, and not MPI libraries.
        """
        partition, cases = self.current_partition, []
        counts, per_node = partition.extras["rank_counts"], partition.extras["ranks_per_node"]
        for environ in partition.environs:
            if makes_pairs(environ.features):
                where = (self.current_system.name, partition.name, environ.name)
                cases += OF_PAIRS.cases(where, counts, per_node, all_functions=False)
        return cases

    def asked(self) -> dict[str, Any]:
        """None: its rounds are in the record of the test that reads them."""
        return records.asked([], self.launches)

    @run_after("init")
    def insist_on_mode(self) -> None:
        """One of those there are."""
        if self.mode not in list(Mode):
            raise ReframeError(f"mode={self.mode!r} is none of {', '.join(Mode)}")

    @run_after("setup")
    def take_all_nodes(self) -> None:
        """As many nodes as Slurm calls usable, and no more than the site says that a job can have.

        Those that other jobs have now are waited for, ``wait_for_nodes_s`` at most.
        """
        self.num_tasks = self.current_partition.extras["nodes"]
        if not self.is_dry_run():
            self.num_tasks = count_usable(self.current_partition.access, self.num_tasks)

    @run_before("run")
    def plan_rounds(self) -> None:
        """The rounds are made by a script that asks after each what to measure next."""
        extras = self.current_partition.extras
        partition = Partition.model_validate(extras)
        stage = Path(self.stagedir)
        srun = self.take_over_srun(partition)
        where = (self.current_system.name, self.current_partition.name, self.current_environ.name)
        leaves, parents = tree() if not self.is_dry_run() else ({}, {})
        pair_deciding.write_question(
            stage,
            where,
            extras,
            mode=self.mode,
            seed=self.seed,
            leaves=leaves,
            parents=parents,
        )
        settings = partition.pair_settings()
        pairs_of_all = max(1, self.num_tasks // 2)
        launches = -(-pairs_of_all // (settings.together or pairs_of_all))
        most = max(settings.rounds, self.num_tasks) * launches + pair_deciding.MOST_AT_THE_END
        decider = job_scripts.decider("netproof.run.pair_deciding", stage)
        text = pair_plans.script(most, partition, srun, decider)
        largest = partition.max_message_bytes
        sizes = {
            pair_plans.SUBJECT: pair_plans.sizes(largest),
            pair_plans.STREAM_SUBJECT: pair_plans.sizes(largest, stream=True),
        }
        self.write_files(text, plan.size_files(sizes), [])


class PairCheck(JobRead, InPairs):
    """Every node is cleared, or a sentence for each that is accused or could not be decided.

    Its record has the rounds, ``netproof_pairs``.
    """

    tags = {"pairs"}
    launched_by: type[PairLaunches]
    netproof_kind = variable(str, value="pairs", loggable=True)

    def launching_test(self) -> str:
        """Name of the job whose rounds these are."""
        return name_of(self.launched_by, environment=self.environment)

    @sanity_function
    def no_node_stands_out(self) -> bool:
        """No node, pair or switch is accused, and none is undecided."""
        job = self.getdep(self.launching_test())
        folder = Path(job.stagedir)
        rounds, partition = self.left_by_job(pair_deciding.read)
        rounds = dataclasses.replace(rounds, faults=(*rounds.faults, *_cut_short(folder)))
        if job.netproof_busy:
            rounds = rounds.without(job.netproof_busy["nodes"], job.netproof_busy["waited_s"])
        extras = self.current_partition.extras
        self.record(netproof_pairs={**rounds.as_json(), "partition_extras": extras})
        disturbance = partition.settings().disturbance
        link = partition.link(over_tcp=self.current_environ.extras["mpi_over_tcp"])
        judged = pairs.judge(rounds, partition.pair_settings(), disturbance, link)
        said = [*judged.accusations(), *judged.faults()]
        said += [f"inconclusive: {why}" for why in judged.undecided()]
        if said:
            raise SanityError("\n".join(said))
        return True


def _cut_short(folder: Path) -> list[str]:
    """Why rounds may be missing: the job was never told that it is through."""
    if (folder / pair_deciding.CLOSED_FILE).exists():
        return []
    told = folder / "decide.out"
    lines = told.read_text(errors="replace").splitlines() if told.exists() else []
    said = f": {lines[-1]}" if lines else ""
    return [f"{told}: the job did not come to the end of its rounds{said}"]
