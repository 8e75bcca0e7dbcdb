"""The launches of a load test, which a job draws once it has its nodes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from netproof.errors import NetproofError
from netproof.experiments import load_plan
from netproof.experiments.load_plan import Aggressor, Victim, turns
from netproof.session import node_facts
from netproof.session.plan import PLAN_FILE, JobPlan, Step

JOB = Path(__file__).resolve().parents[2] / "data" / "jobs" / "load"


PLANNED = JobPlan.read(JOB / PLAN_FILE)
ASKED = PLANNED.task_of(load_plan.LoadAsked)


def steps(turn: load_plan.VictimTurn) -> tuple[Step, Step | None]:
    return load_plan.steps(turn, ASKED, PLANNED.partition)


def test_a_job_draws_what_its_seed_gives(tmp_path):
    nodes = node_facts.nodes_of_job(JOB, "1")
    drawn = load_plan.drawn(PLANNED, tmp_path, nodes)
    assert load_plan.read_turns(tmp_path) == drawn
    asked = (ASKED.leaves, ASKED.victims, ASKED.aggressors, ASKED.rounds)
    assert drawn == turns(nodes, *asked, PLANNED.seed)


def test_each_launch_is_a_step_and_may_have_an_aggressor_on_the_other_nodes():
    for turn in load_plan.read_turns(JOB):
        victim, aggressor = steps(turn)
        assert "--nodes" not in " ".join(victim.command)
        assert (victim.name, victim.hosts) == (turn.step, turn.nodes)
        assert victim.command[-1] == "PingPong"
        assert "--ntasks=2" in victim.command
        assert victim.command[victim.command.index("-iter") + 1] == "1"
        assert (aggressor is not None) is turn.beside
        if aggressor is not None:
            assert (aggressor.name, aggressor.hosts) == (turn.aggressor_step, turn.others)
            assert f"--ntasks={len(turn.others)}" in aggressor.command
            assert aggressor.command[-1] == "PingPing"
            assert aggressor.command[aggressor.command.index("-multi") + 1] == "1"


def test_a_single_pair_is_no_group_among_several():
    turn = next(turn for turn in load_plan.read_turns(JOB) if turn.beside)
    _, aggressor = steps(dataclasses.replace(turn, others=turn.others[:2]))
    assert "-multi" not in aggressor.command


def test_an_incast_is_gathered_by_one_rank_that_does_not_change():
    turn = next(turn for turn in load_plan.read_turns(JOB) if turn.beside)
    incast = dataclasses.replace(turn, aggressor=Aggressor.INCAST)
    _, aggressor = steps(incast)
    assert aggressor.command[-3:] == ("-root_shift", "off", "Gatherv")


def test_a_victim_has_a_row_for_each_repetition_and_an_aggressor_rows_for_hours():
    partition = PLANNED.partition
    files = load_plan.size_files(partition, tuple(Victim), (Aggressor.INCAST,))
    assert files["sizes-load-bandwidth.txt"].split() == ["16384"] * 16
    assert files["sizes-load-latency.txt"].split() == ["8"] * 16
    rows = files["sizes-load-incast.txt"].split()
    assert set(rows) == {"16384"}
    assert len(rows) * load_plan.ROW_S > 2 * partition.step_limit_s


@pytest.mark.parametrize("text", [None, {}, {"where": 1}, ["x"]])
def test_a_damaged_task_names_its_file(text):
    planned = dataclasses.replace(PLANNED, asked=text)
    with pytest.raises(NetproofError, match=r"plan\.json: its task"):
        planned.task_of(load_plan.LoadAsked)


def test_a_job_that_drew_nothing_says_where_to_look(tmp_path):
    with pytest.raises(NetproofError, match="did not come to draw its launches"):
        load_plan.read_turns(tmp_path)
    (tmp_path / "load-turns.json").write_text('[{"round": 1, "place": "nowhere"}]')
    with pytest.raises(NetproofError, match=r"load-turns\.json: cannot be read"):
        load_plan.read_turns(tmp_path)
