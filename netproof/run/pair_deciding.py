"""Choose the next round inside a job of pairs, by its results so far.

The job's script starts this module once, and asks it before each launch. It writes the nodes of
the next one, or closes the rounds when every node is cleared or accused, or the most rounds are
made. It knows only the job's folder.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from netproof.intake import json_reading
from netproof.pairs import verdict as pairs
from netproof.pairs.accusation import judge
from netproof.pairs.model import Pair, PairObservation
from netproof.pairs.rounds import (
    MOST_BOTH_WAYS,
    both_ways_round,
    confirming_rounds,
    next_round,
    stream_rounds,
)
from netproof.pairs.search import LEAST_ROUNDS
from netproof.run.answering import CLOSED_FILE, QUESTION_FILE, answer
from netproof.session import node_facts, pair_rounds
from netproof.session.pair_rounds import (
    HUNG_FILE,
    SUBJECT,
    PairLaunch,
    PairRounds,
    Planned,
)
from netproof.site.partition import Partition
from netproof.verdict import traffic

MOST_ALONE = 60
"""Most rounds of one pair; suspects are measured in the order of suspicion."""

MOST_HUNG = 3
"""Most launches that may hang: each takes as long as the site waits for a first figure."""

MOST_AT_THE_END = MOST_BOTH_WAYS + MOST_ALONE + 1
"""Most launches after the rounds that judge nodes, and the one that finds nothing left."""


def write_question(
    folder: Path,
    where: tuple[str, str, str],
    extras: Mapping[str, Any],
    *,
    mode: str,
    seed: int,
    leaves: Mapping[str, Sequence[str]],
    parents: Mapping[str, str],
) -> None:
    """Write the inputs of ``decide`` into the job's folder."""
    document = {
        "where": list(where),
        "extras": dict(extras),
        "mode": mode,
        "seed": seed,
        "leaves": {name: list(nodes) for name, nodes in leaves.items()},
        "parents": dict(parents),
    }
    (folder / QUESTION_FILE).write_text(json.dumps(document) + "\n")


_observed: dict[Path, dict[int, tuple[PairObservation, ...]]] = {}
"""Observations of launches that this process has judged, by job folder."""

_known: dict[Path, dict[int, PairLaunch]] = {}
"""Launches that this process has read, which are final, by job folder."""


def read(folder: Path, jobid: str, *, fresh: bool = True) -> tuple[PairRounds, Partition]:
    """Return the rounds that a job has made so far, and its partition.

    ``fresh``: read all of them, not only those since this process read them last. Raises
    NetproofError if its files are not whole.
    """
    known = {} if fresh else _known.setdefault(folder, {})
    question = json_reading.json_file(folder / QUESTION_FILE)
    partition = Partition.model_validate(question["extras"])
    system, name, environment = question["where"]
    done, faults, crashes = pair_rounds.read(
        folder, (system, name, environment), partition.max_message_bytes, known
    )
    known |= {one.number: one for one in done}
    nodes = node_facts.nodes_of_job(folder, jobid)
    own = set(nodes)
    rounds = PairRounds(
        system,
        name,
        environment,
        nodes,
        done,
        jobid,
        question["mode"],
        question["seed"],
        {
            leaf: tuple(node for node in below if node in own)
            for leaf, below in question["leaves"].items()
        },
        question["parents"],
        faults,
        crashes,
    )
    return rounds, partition


def decide(folder: Path, made: int, jobid: str) -> None:
    """Write the next launch of the job in ``folder`` after ``made`` launches, or close it."""
    planned = pair_rounds.read_planned(folder)
    if made >= len(planned.launches) and not planned.last:
        rounds, partition = read(folder, jobid, fresh=False)
        apart = _apart(folder, planned, rounds)
        planned = Planned(planned.launches, last=True)
        if apart is not None:
            observed = _observed.setdefault(folder, {})
            disturbance = partition.settings().disturbance
            for one in rounds.launches:
                if one.number not in observed:
                    observed[one.number] = pairs.observations([one], disturbance)
            seen = [row for one in rounds.launches for row in observed[one.number]]
            planned = _more(planned, rounds, partition, seen, apart)
        pair_rounds.write_planned(folder, planned)
    if made < len(planned.launches):
        pair_rounds.write_next(folder, planned.launches[made])
    else:
        (folder / CLOSED_FILE).write_text(f"{SUBJECT}\n")


@cache
def _unconnected(folder: Path, nodes: tuple[str, ...], asked: int) -> frozenset[frozenset[str]]:
    """Return the pairs without a connection, read again only after they were ``asked`` again."""
    return frozenset(node_facts.unconnected(folder, nodes))


def _apart(folder: Path, planned: Planned, rounds: PairRounds) -> set[frozenset[str]] | None:
    """Return the pairs that cannot be measured; None if more rounds would only hang as well.

    Those are pairs that answer each other no TCP connection, and pairs whose own launch failed.
    """
    file = folder / HUNG_FILE
    hung = [int(number) for number in file.read_text().split()] if file.exists() else []
    apart = {*_unconnected(folder, rounds.nodes, len(hung))}
    complete = {one.number for one in rounds.launches}
    for number, launch in enumerate(planned.launches, 1):
        if number not in complete and len(launch.pairs) == 1:
            apart.add(frozenset(launch.pairs[0]))
    explained = all(
        any(frozenset(pair) in apart for pair in planned.launches[number - 1].pairs)
        for number in hung
    )
    return apart if explained and len(hung) <= MOST_HUNG else None


def _more(
    planned: Planned,
    rounds: PairRounds,
    partition: Partition,
    seen: Sequence[PairObservation],
    apart: set[frozenset[str]],
) -> Planned:
    """Return the plan with the next round, or with the last ones, of suspects alone."""
    mode, settings = pairs.settings_of(rounds, partition.pair_settings())
    switches = pairs.topology(rounds)
    judgement = judge(seen, rounds.nodes, switches, settings)
    done = max((one.round for one in planned.launches), default=0)
    if done >= partition.settings().confirm.launches and all(one.disturbed for one in seen):
        # Other work here does not end, and shows nothing about a node.
        return Planned(planned.launches, last=True)
    if done >= LEAST_ROUNDS and traffic.all_lose(
        traffic.of_rounds([rounds], {rounds.partition: partition})
    ):
        # More rounds do not explain what slows every pair, and each takes long.
        return Planned(planned.launches, last=True)
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
    there = () if following is None else _connected(following.pairs, apart)
    if there:
        at_once = settings.together or len(there)
        more = [
            replace(following, round=done + 1, pairs=there[start : start + at_once])
            for start in range(0, len(there), at_once)
        ]
        return Planned((*planned.launches, *more))
    if switches is not None and not settings.together:
        made = sum(one.both_ways for one in planned.launches)
        loading = both_ways_round(rounds.nodes, seen, switches, made=made, seed=rounds.seed)
        if loading is not None and (there := _connected(loading.pairs, apart)):
            return Planned((*planned.launches, replace(loading, round=done + 1, pairs=there)))
    alone = confirming_rounds(judgement, seen)
    streams = stream_rounds(rounds.nodes, judgement)
    last = [one for one in (*alone, *streams) if _connected(one.pairs, apart)][:MOST_ALONE]
    more = [replace(one, round=done + place) for place, one in enumerate(last, 1)]
    return Planned((*planned.launches, *more), last=True)


def _connected(several: Sequence[Pair], apart: set[frozenset[str]]) -> tuple[Pair, ...]:
    """Return the pairs that can be measured."""
    return tuple(pair for pair in several if frozenset(pair) not in apart)


if __name__ == "__main__":
    of_job, jobid = Path(sys.argv[1]), os.environ["SLURM_JOB_ID"]
    answer(lambda made: decide(of_job, int(made), jobid))
