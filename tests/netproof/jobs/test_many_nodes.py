"""Rounds of pairs of hundreds of nodes: what deciding costs, and what is said of them."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from made_job import JOBID, MadeJob

from netproof.intake import disk
from netproof.jobs import pair_rounds
from netproof.pairs import verdict as pairs
from netproof.pairs.verdict import PairsVerdict
from netproof.session.job_files import JobFolder
from netproof.session.plan import PLAN_FILE
from netproof.site.partition import Partition
from netproof.verdict import traffic

MANY = 500
SLOW = "node-333"


def judged(job: MadeJob, others: float = 1.0) -> PairsVerdict:
    rounds, partition = pair_rounds.read(job.folder, JOBID)
    disturbance = partition.settings().disturbance.__class__(others=others, steal=1.0)
    return pairs.judge(rounds, partition.pair_settings(), disturbance, partition.link())


def question(job: MadeJob) -> dict:
    return disk.json_file(job.folder / PLAN_FILE)


@pytest.mark.slow
def test_one_slow_node_of_many_is_found_in_a_few_launches_and_alone_is_named(tmp_path):
    job = MadeJob(tmp_path / "job", MANY, (SLOW,), noise=0.05)
    job.run()
    found = judged(job)
    (accusation,) = found.judgement.accusations
    assert accusation.nodes == (SLOW,)
    assert len(found.cleared()) == MANY - 1
    together = {one.round for one in found.rounds.launches if not one.alone}
    assert len(together) < 10
    assert not found.faults()
    # Slow both ways, as its streams say.
    assert any(SLOW in one.pairs[0] for one in found.rounds.launches if one.stream)
    partition = Partition.model_validate(question(job)["extras"])
    disturbance = partition.settings().disturbance
    assert found.slow_ways(partition.pair_settings(), disturbance) == {}
    # What is said of many nodes stays a few lines.
    strict = judged(job, others=0.05)
    said = [str(strict), *strict.accusations(), *strict.undecided(), *strict.faults()]
    assert len(said) <= 4
    assert max(map(len, said)) < 400


def lines_run(step: Callable[[], object]) -> int:
    """How many lines of Python a step runs."""
    count, before = 0, sys.gettrace()

    def trace(frame: object, event: str, argument: object) -> Callable[..., Any]:
        nonlocal count
        count += event == "line"
        return trace

    sys.settrace(trace)
    try:
        step()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.slow
def test_every_step_grows_with_the_nodes_and_not_with_their_square(tmp_path):
    took = []
    for count in (24, 240):
        job = MadeJob(tmp_path / str(count), count)
        rounds, partition = pair_rounds.read(job.run_rounds(3).folder, JOBID)
        seen = traffic.of_rounds([rounds], {rounds.partition: partition})
        steps = {
            "decide": partial(job.decider.following, 3),
            "read": partial(pair_rounds.read, job.folder, JOBID),
            "judge": partial(judged, job),
            "name who stands out": partial(traffic.standing_out, seen),
            "all lose": partial(traffic.all_lose, seen),
            "totals": partial(traffic.totals, seen),
        }
        took.append({name: lines_run(step) for name, step in steps.items()})
    few, many = took
    grown = {step: math.log(many[step] / few[step], 10) for step in few}
    assert {step: power for step, power in grown.items() if power > 1.1} == {}


def test_a_launch_is_read_once_while_the_job_decides(tmp_path, monkeypatch):
    read, reader = [], JobFolder.launch

    def reading(folder, step, *others, **named):
        read.append(step)
        return reader(folder, step, *others, **named)

    monkeypatch.setattr(JobFolder, "launch", reading)
    job = MadeJob(tmp_path / "job", 8, noise=0.05)
    launches = job.run()
    assert launches > 2
    assert read == [f"pairs.{number}" for number in range(1, launches + 1)]
    rounds, _ = pair_rounds.read(job.folder, JOBID)
    assert len(rounds.launches) == launches
    assert read[launches:] == read[:launches]


@pytest.mark.parametrize("count", [4, 6])
def test_a_pair_that_hangs_is_left_out_and_every_other_pair_meets(tmp_path, count):
    job = MadeJob(tmp_path / "job", count, hang=("node-001", "node-003"))
    asked = question(job)
    asked["extras"]["pairs"]["together"] = 1
    (job.folder / PLAN_FILE).write_text(json.dumps(asked))
    job.run()
    found = judged(job)
    assert len(job.decider.hung) == 1
    assert found.never_met() == "node-001 – node-003 never met"
    assert len(found.cleared()) == count
    (fault,) = found.rounds.faults
    assert {*fault.partition(": ")[0].split(" – ")} == {*job.hang}
