"""Rounds of pairs: choose the next one by the results so far.

The rounds end when every node is cleared or accused, or the most are made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from netproof import codec
from netproof.jobs.job import RunningJob
from netproof.pairs import verdict as pairs
from netproof.pairs.accusation import judge
from netproof.pairs.alone import across_and_within, slow_ways, two_by_two
from netproof.pairs.model import Pair, PairObservation
from netproof.pairs.rounds import (
    MOST_BOTH_WAYS,
    both_ways_round,
    confirming_rounds,
    leaf_rounds,
    next_round,
    stream_rounds,
)
from netproof.pairs.search import LEAST_ROUNDS
from netproof.session import node_facts, pair_rounds, records
from netproof.session.measured import Launch
from netproof.session.pair_rounds import SUBJECT, PairRounds, Planned
from netproof.session.plan import PLAN_FILE, JobPlan
from netproof.site.partition import Partition
from netproof.verdict import traffic

MOST_ALONE = 60
"""Most rounds of one pair; suspects are measured in the order of suspicion."""

MOST_STREAMS = 9
"""Most streams of each direction, until it is decided whether that one is slow."""

MOST_HUNG = 3
"""Most launches that may hang: each takes as long as the site waits for a first figure."""

MOST_AT_THE_END = MOST_BOTH_WAYS + MOST_ALONE + 1
"""Most launches after the rounds that judge nodes, and the one that finds nothing left."""


def read(folder: Path, jobid: str) -> tuple[PairRounds, Partition]:
    """Return all rounds of a job, and its partition; NetproofError if its files are not whole."""
    planned = JobPlan.read(folder / PLAN_FILE)
    return so_far(planned.task_of(PairRounds), folder, planned, jobid), planned.partition


def so_far(
    asked: PairRounds,
    folder: Path,
    planned: JobPlan,
    jobid: str,
    known: dict[int, Launch] | None = None,
) -> PairRounds:
    """Return the rounds that were ``asked`` for, with those that the job in ``folder`` has made.

    ``known``: launches that were read before, to which those read now are added. Raises
    NetproofError if its files are not whole.
    """
    most_bytes = planned.partition.max_message_bytes
    done, faults, crashes = pair_rounds.read(folder, planned.where, most_bytes, known)
    if known is not None:
        known |= {one.number: one for one in done}
    nodes = node_facts.nodes_of_job(folder, jobid)
    own, listed = set(nodes), asked.leaves.items()
    leaves = {leaf: tuple(filter(own.__contains__, below)) for leaf, below in listed}
    made = replace(asked, launches=done, faults=faults, crashes=crashes)
    return replace(made, nodes=nodes, jobid=jobid, leaves=leaves)


@dataclass
class Decider:
    """Choose the launches of the job in ``folder``.

    ``ask``: has the nodes of pairs test their paths; ``hung``: numbers of launches without a
    figure.
    """

    folder: Path
    planned: JobPlan
    jobid: str
    ask: Callable[[Sequence[Pair]], None] = field(default=lambda pairs: None)
    hung: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.asked = self.planned.task_of(PairRounds)
        self.launches, self.last = pair_rounds.read_planned(self.folder)
        self._known: dict[int, Launch] = {}
        self._observed: dict[int, tuple[PairObservation, ...]] = {}
        self._unconnected: set[frozenset[str]] = set()
        self._tested: set[frozenset[str]] = set()

    def following(self, made: int) -> Launch | None:
        """Return the next launch after ``made`` launches; None when all are made.

        Once a pair is known to have no path, every further one is asked before it is launched:
        one without would hang.
        """
        self.note_paths()
        while True:
            if made >= len(self.launches) and not self.last:
                self.launches, self.last = self._decided()
                pair_rounds.write_planned(self.folder, (self.launches, self.last))
            before, rest = self.launches[:made], self.launches[made:]
            if not rest or not self._unconnected:
                return rest[0] if rest else None
            new = [pair for pair in rest[0].pairs if frozenset(pair) not in self._tested]
            if new:
                self.ask(new)
                self.note_paths()
                self._tested |= set(map(frozenset, new))
            there = _connected(rest[0].pairs, self._unconnected)
            if there == rest[0].pairs:
                return rest[0]
            less = [replace(rest[0], pairs=there)] if there else []
            self.launches = (*before, *less, *rest[1:])
            pair_rounds.write_planned(self.folder, (self.launches, self.last))
            if less:
                return less[0]

    def note_paths(self) -> None:
        """Note which pairs have no path, by what the nodes found when they were last asked."""
        nodes = node_facts.nodes_of_job(self.folder, self.jobid)
        before = self._unconnected
        before |= node_facts.unconnected(self.folder, nodes, some_through=bool(before))

    def rounds(self) -> PairRounds:
        """Return the rounds so far; each launch is read once."""
        return so_far(self.asked, self.folder, self.planned, self.jobid, self._known)

    def _decided(self) -> Planned:
        """Return the plan with more launches, or as the last one."""
        partition, rounds = self.planned.partition, self.rounds()
        apart = self._apart(rounds)
        if apart is None:
            return self.launches, True
        disturbance = partition.settings().disturbance
        for one in rounds.launches:
            if one.number not in self._observed:
                self._observed[one.number] = pairs.observations([one], disturbance)
        seen = [row for one in rounds.launches for row in self._observed[one.number]]
        return _more(self.launches, rounds, partition, seen, apart)

    def _apart(self, rounds: PairRounds) -> set[frozenset[str]] | None:
        """Return the pairs that cannot be measured; None if more rounds would only hang as well.

        Those are pairs without a path, and pairs whose own launch failed.
        """
        complete, several = {one.number for one in rounds.launches}, self.launches
        failed = (one.pairs for number, one in enumerate(several, 1) if number not in complete)
        apart = self._unconnected | {frozenset(*pairs) for pairs in failed if len(pairs) == 1}
        hung = ({*map(frozenset, several[number - 1].pairs)} for number in self.hung)
        explained = not any(map(apart.isdisjoint, hung))
        return apart if explained and len(self.hung) <= MOST_HUNG else None


def _more(
    planned: tuple[Launch, ...],
    rounds: PairRounds,
    partition: Partition,
    seen: Sequence[PairObservation],
    apart: set[frozenset[str]],
) -> Planned:
    """Return the plan with the next round, or with the last ones, of suspects alone."""
    mode, settings = pairs.settings_of(rounds, partition.pair_settings())
    switches = pairs.topology(rounds)
    judgement = judge(seen, rounds.nodes, switches, settings)
    done = max((one.round for one in planned), default=0)
    in_vain = done >= partition.settings().confirm.launches and all(one.disturbed for one in seen)
    # More rounds do not explain what slows every pair, and each takes long; and other work here
    # does not end, and shows nothing about a node.
    where = {rounds.partition: partition}
    if in_vain or (done >= LEAST_ROUNDS and traffic.all_lose(traffic.of_rounds([rounds], where))):
        return planned, True
    there: tuple[Pair, ...] = ()
    while not there:
        following = next_round(
            mode,
            rounds.nodes,
            seen,
            judgement,
            topology=switches,
            settings=settings,
            seed=rounds.seed,
            done=done,
            apart=apart,
        )
        if following is None:
            break
        # A round of pairs that cannot be measured is passed over.
        there, done = _connected(following.pairs, apart), done + 1
    if following is not None and there:
        at_once = settings.together or len(there)
        more = [
            replace(following, round=done, pairs=there[start : start + at_once])
            for start in range(0, len(there), at_once)
        ]
        return (*planned, *more), False
    if switches is not None and not settings.together:
        made = sum(one.both_ways for one in planned)
        loading = both_ways_round(rounds.nodes, seen, switches, made=made, seed=rounds.seed)
        if loading is not None and (there := _connected(loading.pairs, apart)):
            return (*planned, replace(loading, round=done + 1, pairs=there)), False
    disturbance, before = partition.settings().disturbance, sum(one.alone for one in planned)
    several: tuple[Launch, ...] = ()
    if not before:
        several = confirming_rounds(judgement, seen)
        two_leaves = two_by_two(rounds.nodes, switches)
        if switches is not None and two_leaves and not judgement.accusations:
            measured = pairs.lone_observations(rounds, disturbance)
            several += leaf_rounds(switches, min(map(len, across_and_within(measured, switches))))
    decided = slow_ways(pairs.streams(rounds, disturbance), judgement, settings)
    streamed = Counter(one.pairs for one in planned if one.stream)
    if max(streamed.values(), default=0) < MOST_STREAMS and (not streamed or judgement.accusations):
        several += stream_rounds(rounds.nodes, judgement, decided)
    last = [one for one in several if _connected(one.pairs, apart)][: MOST_ALONE - before]
    more = [replace(one, round=done + place) for place, one in enumerate(last, 1)]
    return (*planned, *more), not any(one.stream for one in more)


def _connected(several: Sequence[Pair], apart: set[frozenset[str]]) -> tuple[Pair, ...]:
    """Return the pairs that can be measured."""
    return tuple(pair for pair in several if frozenset(pair) not in apart)


def run(job: RunningJob) -> None:
    """Launch rounds of pairs until every node is cleared or accused, or the most are made."""
    decider = Decider(job.folder, job.plan, job.jobid, job.try_paths)
    if job.dry:
        print("# pairs: chosen within the job, by its nodes and the results so far")
        return
    partition = job.partition
    settings, pairs_of_all = partition.pair_settings(), max(1, len(job.nodes) // 2)
    launches = -(-pairs_of_all // (settings.together or pairs_of_all))
    most = max(settings.rounds, len(job.nodes)) * launches + MOST_AT_THE_END
    for number in range(1, most + 1):
        following = decider.following(number - 1)
        if following is None:
            job.closed.add(SUBJECT)
            values = {**codec.encode(decider.rounds()), "partition_extras": job.plan.extras}
            records.write(job.folder / records.JOB_RECORD, {}, {records.PAIRS: values})
            return
        job.launch(pair_rounds.step(following, number, partition, job.plan.srun))
        if job.hung.pop(SUBJECT, None):
            # Its pairs are asked for a path, and the rounds go on without those that have none.
            decider.hung.append(number)
            job.try_paths(following.pairs)
