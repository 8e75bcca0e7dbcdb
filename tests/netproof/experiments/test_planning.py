"""The script of a load test, and what a job draws once it has its nodes."""

from __future__ import annotations

import dataclasses
import shlex
import shutil
from pathlib import Path

import pytest

from netproof.errors import NetproofError
from netproof.experiments import load_plan
from netproof.experiments.load_plan import Aggressor, Victim, turns
from netproof.session import node_facts
from netproof.session.labelled import write_question

JOB = Path(__file__).resolve().parents[2] / "data" / "jobs" / "load"


@pytest.fixture
def question() -> load_plan.LoadQuestion:
    return load_plan.LoadQuestion.read(JOB)


def test_a_question_that_is_written_reads_again(question, tmp_path):
    write_question(tmp_path, question)
    assert load_plan.LoadQuestion.read(tmp_path) == question


def test_a_job_draws_what_its_seed_gives(question, tmp_path):
    shutil.copy(JOB / "load.json", tmp_path)
    shutil.copy(JOB / "job_nodes.txt", tmp_path)
    load_plan.write_turns(tmp_path, "1")
    drawn = load_plan.read_turns(tmp_path)
    assert drawn == turns(
        node_facts.nodes_of_job(JOB, "1"),
        question.leaves,
        question.victims,
        question.aggressors,
        question.rounds,
        question.seed,
    )
    for turn in drawn:
        assert (tmp_path / f"{turn.step}.nodes").read_text().split() == list(turn.nodes)
        listed = tmp_path / f"{turn.aggressor_step}.nodes"
        assert listed.exists() is turn.beside
        if turn.beside:
            assert listed.read_text().split() == list(turn.others)


def test_each_launch_is_a_step_and_has_its_aggressor_around_it(question):
    several = load_plan.read_turns(JOB)
    text = iter(load_plan.lines(several, question).splitlines())
    for turn in several:
        words = shlex.split(next(text))
        assert "--nodes" not in " ".join(words)
        victim = words[words.index("step") :]
        assert victim[1:3] == [turn.step, str(question.partition.step_limit_s)]
        assert victim[-1] == "PingPong"
        assert "--ntasks=2" in victim
        assert victim[victim.index("-iter") + 1] == "1"
        assert (words[1] == "begin_aggressor") is turn.beside
        if turn.beside:
            aggressor = words[: words.index("&&")]
            assert aggressor[0] == f"SLURM_HOSTFILE=$PWD/{turn.aggressor_step}.nodes"
            assert f"--ntasks={len(turn.others)}" in aggressor
            assert aggressor[-1] == "PingPing"
            assert aggressor[aggressor.index("-multi") + 1] == "1"
            assert next(text) == f"end_aggressor {question.partition.step_limit_s}"
    assert next(text, None) is None


def test_a_single_pair_is_no_group_among_several(question):
    turn = next(turn for turn in load_plan.read_turns(JOB) if turn.beside)
    text = load_plan.lines([dataclasses.replace(turn, others=turn.others[:2])], question)
    assert "-multi" not in text


def test_an_incast_is_gathered_by_one_rank_that_does_not_change(question):
    turn = next(turn for turn in load_plan.read_turns(JOB) if turn.beside)
    text = load_plan.lines([dataclasses.replace(turn, aggressor=Aggressor.INCAST)], question)
    assert "-root_shift off Gatherv" in text


def test_a_victim_has_a_row_for_each_repetition_and_an_aggressor_rows_for_hours(question):
    partition = question.partition
    files = load_plan.size_files(partition, tuple(Victim), (Aggressor.INCAST,))
    assert files["sizes-load-bandwidth.txt"].split() == ["16384"] * 16
    assert files["sizes-load-latency.txt"].split() == ["8"] * 16
    rows = files["sizes-load-incast.txt"].split()
    assert set(rows) == {"16384"}
    assert len(rows) * load_plan.ROW_S > 2 * partition.step_limit_s


def test_the_script_draws_before_it_launches(question, tmp_path):
    last = load_plan.script(question.partition, tmp_path).splitlines()[-3:]
    assert last[0] == ". ./alongside.sh"
    assert last[1].endswith(f"-m netproof.experiments.load_plan {tmp_path} || exit 4")
    assert last[2] == ". ./load-turns.sh"


@pytest.mark.parametrize("text", ["", "{}", '{"where": 1}', '["x"]'])
def test_a_damaged_question_names_its_file(tmp_path, text):
    (tmp_path / "load.json").write_text(text)
    with pytest.raises(NetproofError, match=r"load\.json"):
        load_plan.LoadQuestion.read(tmp_path)


def test_a_job_that_drew_nothing_says_where_to_look(tmp_path):
    with pytest.raises(NetproofError, match="did not come to draw its launches"):
        load_plan.read_turns(tmp_path)
    (tmp_path / "load-turns.json").write_text('[{"round": 1, "place": "nowhere"}]')
    with pytest.raises(NetproofError, match=r"load-turns\.json: cannot be read"):
        load_plan.read_turns(tmp_path)
