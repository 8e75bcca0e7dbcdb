"""A load test on the testbed: its launches, which of them count, its report, and its factors."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netproof.errors import NetproofError
from netproof.experiments import load, load_plan
from netproof.experiments.load import Impact, Loaded, Statistic, VictimRun
from netproof.experiments.load_plan import Aggressor, Victim, VictimPlace, chosen, turns
from netproof.session import job_files
from netproof.session.plan import PLAN_FILE, JobPlan, Step

DATA = Path(__file__).resolve().parents[2] / "data"
JOB = DATA / "jobs" / "load"


@pytest.fixture(scope="module")
def recorded() -> Loaded:
    return load.of_job(JOB, "1")


def test_what_else_ran_alongside_is_a_disturbance_but_the_aggressor_on_one_machine(recorded):
    strict = recorded.where.model_copy(
        update={"criteria": {"disturbance": {"others": 0.0, "steal": 1}}}
    )
    alone, run = (
        next(run for run in recorded.runs if run.turn.beside is beside) for beside in (False, True)
    )
    assert "others used" in alone.refused(strict)
    assert not run.refused(strict)
    loads = tuple(replace(one, machine=one.node) for one in run.launch.loads)
    own = replace(run, launch=replace(run.launch, loads=loads))
    assert "others used" in own.refused(strict)


@pytest.fixture
def folder(tmp_path) -> Path:
    return shutil.copytree(JOB, tmp_path / "job")


def of(folder: Path, step: str) -> VictimRun:
    return next(run for run in load.of_job(folder, "1").runs if run.turn.step == step)


STEP = "bandwidth-across-beside-one-to-one.2"


@pytest.mark.parametrize(
    ("late_s", "early_s", "why", "said"),
    [
        (0.5, -1, "", f"aggressor-{STEP} began 0.50 s after the victim"),
        (-1, 0.25, "", f"aggressor-{STEP} ended 0.25 s before the victim"),
        (-1, -1, "it sent nothing for 180 s", f"aggressor-{STEP}: it sent nothing for 180 s"),
        (None, None, "", f"of aggressor-{STEP} there is no record"),
    ],
)
def test_an_aggressor_that_did_not_send_throughout_is_refused(
    folder, recorded, late_s, early_s, why, said
):
    known, launch = load.aggressions_of(folder), of(folder, STEP).launch
    del known[f"aggressor-{STEP}"]
    if late_s is not None:
        began, ended = launch.start + late_s, launch.start + launch.wall_s - early_s
        known[f"aggressor-{STEP}"] = (began, ended, 9, why)
    job_files.note(folder / load.AGGRESSORS_FILE, known)
    assert of(folder, STEP).refused(recorded.where) == said


def without(folder: Path, name: str, beginning: str) -> None:
    """Take the first line with this beginning out of a file."""
    lines = (folder / name).read_text().splitlines(keepends=True)
    lines.remove(next(line for line in lines if line.strip().startswith(beginning)))
    (folder / name).write_text("".join(lines))


def never_sent(folder: Path) -> None:
    without(folder, "launches.tsv", STEP)
    why = {f"aggressor-{STEP}": (1.0, 2.0, 0, "it ended before it sent anything")}
    job_files.note(folder / load.AGGRESSORS_FILE, {**load.aggressions_of(folder), **why})


def on_other_nodes(folder: Path) -> None:
    path = folder / f"{STEP}.err"
    one, other = of(folder, STEP).turn.nodes
    swapped = path.read_text().replace(f"rank 0 on {one}", f"rank 0 on {other}")
    path.write_text(swapped.replace(f"rank 1 on {other}", f"rank 1 on {one}"))


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda at: without(at, f"{STEP}.out", "16384"), f"{STEP}: has 15 of 16 repetitions"),
        (lambda at: without(at, "launches.tsv", STEP), f"{STEP} did not run; the job ended before"),
        (on_other_nodes, "and was to run on"),
        (never_sent, f"aggressor-{STEP}: it ended before it sent anything"),
    ],
)
def test_a_launch_that_is_not_whole_has_the_reason(folder, damage, fault):
    damage(folder)
    run = of(folder, STEP)
    assert fault in run.fault
    assert (run.launch, run.times_us) == (None, ())
    (folder / "aggressors.json").write_text("[]")
    with pytest.raises(NetproofError, match=r"aggressors\.json:"):
        load.of_job(folder, "1")


def at(found: Loaded, place: VictimPlace) -> Impact:
    return next(one for one in found.impacts if one.place is place)


def made(recorded: Loaded, factor: float, count: int = 100, **load: object) -> Loaded:
    """The recorded launches with times that are drawn, longer by a factor alongside."""
    draw = random.Random(1)
    runs = tuple(
        replace(
            run,
            times_us=tuple(
                draw.uniform(95, 105) * (factor if run.turn.beside else 1) for _ in range(count)
            ),
        )
        for run in recorded.runs
    )
    extras = {**recorded.partition_extras, "load": load}
    return replace(recorded, runs=runs, partition_extras=extras)


def test_the_99th_percentile_has_a_bound_of_its_own(recorded):
    assert made(recorded, 2.0, most_99th=1.5).beyond
    few = made(recorded, 2.0, count=99, most_99th=5.0)
    tail = few.impacts[0].factors[Statistic.TAIL]
    assert tail.value is None
    assert tail.why == "a launch has 99 repetitions, and a 99th percentile takes 100"
    assert not few.beyond
    assert few.undecided


def test_a_round_that_is_refused_does_not_count_and_says_why(recorded):
    first = next(run for run in recorded.runs if run.turn.beside)
    silent = replace(first, uncongested="it ended before the victim")
    runs = tuple(silent if run is first else run for run in recorded.runs)
    found = replace(recorded, runs=runs)
    one = at(found, first.turn.place)
    assert one.rounds == 2
    assert one.refused == (f"round {first.turn.round}: it ended before the victim",)
    assert one.factors[Statistic.MEAN].why == "2 rounds count, and it takes 3"
    # Without enough rounds nothing is said, whether there is a bound or not.
    assert found.undecided
    found = replace(recorded, runs=recorded.runs[1:])
    assert [why for one in found.impacts for why in one.refused] == [
        "round 1: one of its two launches is not there"
    ]


def test_how_long_something_waited_for_a_cpu_stands_alongside(recorded):
    alone, alongside = at(recorded, VictimPlace.ACROSS).waited
    assert 0.5 < alone <= alongside <= 1
    unknown = tuple(replace(run, launch=replace(run.launch, loads=())) for run in recorded.runs)
    assert replace(recorded, runs=unknown).impacts[0].waited is None


# The launches of a load test: their order, who sends, on which nodes, and their steps.

PLANNED = JobPlan.read(JOB / PLAN_FILE)
ASKED = PLANNED.task_of(load_plan.LoadAsked)


def steps(turn: load_plan.VictimTurn) -> tuple[Step, Step | None]:
    return load_plan.steps(turn, PLANNED)


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
            # A single pair is no group, and one rank that does not change gathers an incast.
            _, pair = steps(replace(turn, others=turn.others[:2]))
            assert "-multi" not in pair.command
            _, incast = steps(replace(turn, aggressor=Aggressor.INCAST))
            assert incast.command[-3:] == ("-root_shift", "off", "Gatherv")


def test_a_victim_has_a_row_for_each_repetition_and_an_aggressor_rows_for_hours():
    partition = PLANNED.partition
    asked = replace(ASKED, victims=tuple(Victim), aggressors=(Aggressor.INCAST,))
    files = asked.files(PLANNED)
    assert files["sizes-load-bandwidth.txt"].split() == ["16384"] * 16
    assert files["sizes-load-latency.txt"].split() == ["8"] * 16
    rows = files["sizes-load-incast.txt"].split()
    assert set(rows) == {"16384"}
    assert len(rows) * load_plan.ROW_S > 2 * partition.step_limit_s


def test_a_job_that_drew_nothing_says_where_to_look(tmp_path):
    with pytest.raises(NetproofError, match="did not come to draw its launches"):
        load_plan.read_turns(tmp_path)
    (tmp_path / "load-turns.json").write_text('[{"round": 1, "place": "nowhere"}]')
    with pytest.raises(NetproofError, match=r"load-turns\.json: cannot be read"):
        load_plan.read_turns(tmp_path)


LEAVES = {"leaf-1": ("n1", "n2", "n3", "n4"), "leaf-2": ("n5", "n6", "n7", "n8")}
NODES = tuple(node for below in LEAVES.values() for node in below)
LEAF_OF = {node: leaf for leaf, below in LEAVES.items() for node in below}


@given(st.integers(4, 20), st.integers(1, 5), st.integers(1, 10**6))
def test_alone_and_alongside_stand_next_to_each_other_on_the_same_nodes(count, rounds, seed):
    nodes = tuple(f"n{number}" for number in range(count))
    several = turns(nodes, {}, tuple(Victim), tuple(Aggressor), rounds, seed)
    assert len({turn.step for turn in several}) == len(several) == 2 * 3 * 4 * rounds
    for one, other in zip(several[::2], several[1::2], strict=True):
        assert {one.beside, other.beside} == {False, True}
        same = ("round", "place", "victim", "aggressor", "nodes", "others")
        assert [getattr(one, name) for name in same] == [getattr(other, name) for name in same]
        assert one.place is VictimPlace.ANYWHERE
        assert len(one.nodes) == 2
        assert len(set(one.others)) == len(one.others) >= 2
        assert set(one.nodes).isdisjoint(one.others)
        left_out = count - 2 - len(one.others)
        assert left_out == (count % 2 if one.aggressor is Aggressor.ONE_TO_ONE else 0)


@given(st.integers(1, 10**6))
def test_with_leaves_the_victim_is_within_one_and_across_two(seed):
    several = turns(NODES, LEAVES, (Victim.BANDWIDTH,), (Aggressor.INCAST,), 2, seed)
    assert {turn.place for turn in several} == {VictimPlace.WITHIN, VictimPlace.ACROSS}
    for turn in several:
        of_victim = {LEAF_OF[node] for node in turn.nodes}
        assert len(of_victim) == (1 if turn.place is VictimPlace.WITHIN else 2)
        assert set(turn.nodes) | set(turn.others) == set(NODES)
    across, within = (
        next(turn for turn in several if turn.place is place and turn.round == 1)
        for place in (VictimPlace.ACROSS, VictimPlace.WITHIN)
    )
    # What goes to the first of the others passes the uplink that the victim across leaves needs.
    assert LEAF_OF[across.others[0]] == LEAF_OF[across.nodes[1]]
    assert LEAF_OF[within.others[0]] != LEAF_OF[within.nodes[0]]


def test_pairs_that_congest_send_from_leaf_to_leaf_where_two_leaves_have_two_nodes():
    several = turns(NODES, LEAVES, (Victim.BANDWIDTH,), (Aggressor.ONE_TO_ONE,), 1, 1)
    across = next(turn.others for turn in several if turn.place is VictimPlace.ACROSS)
    for one, other in zip(across[::2], across[1::2], strict=True):
        assert LEAF_OF[one] != LEAF_OF[other]
    nodes = ("n1", "n2", "n3", "n5")
    several = turns(nodes, LEAVES, (Victim.LATENCY,), (Aggressor.INCAST,), 1, 1)
    assert {turn.place for turn in several} == {VictimPlace.ANYWHERE}


@given(st.integers(1, 10**6))
def test_with_enough_rounds_every_node_is_measured(seed):
    leaves = {f"leaf-{i}": tuple(f"n{4 * i + j}" for j in range(4)) for i in range(4)}
    nodes = tuple(node for below in leaves.values() for node in below)
    for known, rounds in ((leaves, 6), ({}, 8)):
        several = turns(nodes, known, (Victim.BANDWIDTH,), (Aggressor.INCAST,), rounds, seed)
        assert {node for turn in several for node in turn.nodes} == set(nodes)


def test_what_is_chosen_by_name():
    assert chosen(Victim, "all") == tuple(Victim)
    assert chosen(Aggressor, "incast,one-to-one,incast") == (
        Aggressor.INCAST,
        Aggressor.ONE_TO_ONE,
    )
    with pytest.raises(NetproofError, match="unknown 'storm'; choose from incast, all-to-all"):
        chosen(Aggressor, "incast,storm")
