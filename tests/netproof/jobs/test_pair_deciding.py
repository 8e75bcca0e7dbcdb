"""A job of pairs chooses its next round by its results so far."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from made_job import MadeJob

from netproof import codec
from netproof.jobs import pair_rounds as rounds
from netproof.jobs.job import RunningJob
from netproof.jobs.pair_rounds import Decider
from netproof.session import node_facts, pair_rounds, records
from netproof.session.measured import Launch
from netproof.session.pair_rounds import PairRounds
from netproof.session.plan import PLAN_FILE, JobPlan, Step

RECORDED = Path(__file__).resolve().parents[2] / "data" / "jobs" / "pairs"
(JOBID,) = json.loads((RECORDED / "job_nodes.json").read_text())
JOBID_OF_SMALL_BUFFER = "1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A recorded job of four nodes as it stood before its first launch."""
    job = Path(shutil.copytree(RECORDED, tmp_path / "job"))
    (job / "planned.json").unlink()
    header = (job / "launches.tsv").read_text().splitlines()[0]
    (job / "launches.tsv").write_text(header + "\n")
    return job


def ask(folder: Path, **changed) -> None:
    path = folder / PLAN_FILE
    planned = json.loads(path.read_text())
    for key in ("pairs", "criteria"):
        planned["extras"][key] |= changed.pop(key, {})
    planned["asked"] |= changed
    path.write_text(json.dumps(planned))


def following(folder: Path, made: int, jobid: str = JOBID) -> Launch | None:
    return Decider(folder, JobPlan.read(folder / PLAN_FILE), jobid).following(made)


def begun(folder: Path, launches: int, planned: int) -> None:
    """So many recorded launches are made, and so many planned; on a machine without other work."""
    lines = (RECORDED / "launches.tsv").read_text().splitlines(keepends=True)
    (folder / "launches.tsv").write_text("".join(lines[: launches + 1]))
    known, _ = pair_rounds.read_planned(RECORDED)
    pair_rounds.write_planned(folder, (known[:planned], False))
    ask(folder, mode="quick", criteria={"disturbance": {"others": 1.0, "steal": 1.0}})


def test_pairs_that_may_not_measure_at_once_have_a_launch_each(folder: Path):
    assert sorted(following(folder, 0).nodes()) == [f"fast-ethernet-{n}" for n in range(1, 5)]
    (folder / "planned.json").unlink()
    ask(folder, pairs={"together": 1})
    first = following(folder, 0)
    planned, last = pair_rounds.read_planned(folder)
    assert [(one.round, len(one.pairs), one.alone) for one in planned] == [
        (1, 1, False),
        (1, 1, False),
    ]
    assert first == planned[0]
    assert following(folder, 1) == planned[1]
    assert pair_rounds.read_planned(folder) == (planned, last)


def path_of(folder: Path, node: str, other: str, passed: int, **more: str) -> None:
    """Let packets of that size come through from a node to another."""
    facts = {"node": node, "path_to": other, "path_asked_bytes": 1500, "path_passed_bytes": passed}
    text = f"{node_facts.PATH_HEADER} {json.dumps(facts | more)}\n"
    (folder / f"path.{node}.txt").write_text(text)


def test_pairs_that_packets_of_the_mtu_do_not_reach_are_not_launched(folder: Path):
    """One end of an uplink between 1, 2 and 3, 4 has a smaller MTU: large messages would hang."""
    leaf = {f"fast-ethernet-{n}": (n - 1) // 2 for n in range(1, 5)}
    asked = []

    def test(pairs) -> None:
        asked.extend(pairs)
        for one, other in pairs:
            passed = 1500 if leaf[one] == leaf[other] else 84
            path_of(folder, one, other, passed, tcp_answered=other, tcp_unanswered="none")

    nodes = sorted(leaf)
    test([*zip(nodes, [*nodes[1:], nodes[0]], strict=True)])
    asked.clear()
    decider = Decider(folder, JobPlan.read(folder / PLAN_FILE), JOBID, test)
    launch = decider.following(0)
    assert all(leaf[one] == leaf[other] for one, other in launch.pairs)
    assert {*launch.pairs} <= {*asked}
    assert pair_rounds.read_planned(folder)[0][0] == launch


def test_where_no_packet_of_the_mtu_comes_through_anywhere_pairs_are_launched(folder: Path):
    for n in range(1, 5):
        path_of(folder, f"fast-ethernet-{n}", f"fast-ethernet-{n % 4 + 1}", 84)
    assert len(following(folder, 0).pairs) == 2


@pytest.mark.parametrize("together", [0, 1])
def test_where_uplinks_can_be_compared_all_pairs_send_both_ways_at_the_end(
    folder: Path, together, monkeypatch
):
    """Four nodes are too few for that; what is asked of them says what is planned."""
    begun(folder, 3, 3)
    pairs = pair_rounds.read_planned(folder)[0][0].pairs
    why = "pairs across uplinks, both ways at once"
    first = pair_rounds.planned(pairs, why=why, both_ways=True)
    monkeypatch.setattr(rounds, "both_ways_round", lambda *_, made, seed: first)
    leaves = {f"leaf-{n}": [f"fast-ethernet-{n}"] for n in range(1, 5)}
    above = dict.fromkeys(leaves, "spine")
    ask(folder, pairs={"together": together}, leaves=leaves, parents=above)
    one = following(folder, 3)
    # Pairs that measure one after the other share no uplink.
    assert (one is None) is bool(together)
    if one is not None:
        assert (one.round, one.both_ways, one.alone) == (4, True, False)
        assert one.why == why


def test_rounds_end_where_nodes_are_cleared_or_always_disturbed_and_go_on_where_not(folder: Path):
    begun(folder, 1, 1)
    assert following(folder, 1) is not None
    assert [one.round for one in pair_rounds.read_planned(folder)[0]] == [1, 2]
    for others in (1.0, 0.001):
        begun(folder, 3, 3)
        ask(folder, criteria={"disturbance": {"others": others, "steal": 1.0}})
        assert following(folder, 3) is None
        assert pair_rounds.read_planned(folder)[1]


def test_rounds_end_where_every_node_loses_packets(tmp_path: Path):
    job = Path(shutil.copytree(RECORDED.with_name("small-buffer"), tmp_path / "job"))
    assert following(job, 4, JOBID_OF_SMALL_BUFFER) is None
    assert pair_rounds.read_planned(job)[1]


@pytest.mark.parametrize(("count", "among_others", "streams"), [(2, 3, 6), (3, 9, 18)])
def test_too_few_nodes_to_compare_are_through_after_their_pairs_and_streams(
    tmp_path: Path, count, among_others, streams
):
    made = MadeJob(tmp_path / "job", count).run_rounds(None).decider.launches
    assert [one.stream for one in made] == among_others * [False] + streams * [True]
    assert len({frozenset(one.pairs[0]) for one in made}) == count * (count - 1) / 2


@pytest.mark.parametrize(("noise", "of_each"), [(0.02, 3), (1.0, 9)])
def test_streams_are_repeated_while_the_slow_direction_is_undecided(tmp_path, noise, of_each):
    job = MadeJob(tmp_path / "job", 8, ("node-003",), of_streams=noise).run_rounds(None)
    streams = Counter(one.pairs[0] for one in job.decider.launches if one.stream)
    assert [*streams.values()] == 3 * [of_each]


def ran(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run the recorded job of mode ``full`` but for its launches; return their names."""
    recorded = (RECORDED / "launches.tsv").read_text().splitlines(keepends=True)
    nodes = [one.nodes() for one in pair_rounds.read_planned(RECORDED)[0]]
    made: list[str] = []

    def launch(_job: RunningJob, step: Step) -> int:
        made.append(step.name)
        assert step.hosts == nodes[step.launch - 1]
        with (folder / "launches.tsv").open("a") as record:
            record.write(recorded[step.launch])
        return 0

    monkeypatch.setattr(RunningJob, "launch", launch)
    job = RunningJob(folder, JobPlan.read(folder / PLAN_FILE))
    job.jobid, job.nodes = JOBID, nodes[0]
    try:
        rounds.run(job)
    finally:
        assert (pair_rounds.SUBJECT in job.closed) is (len(made) == len(nodes))
    return made


def test_a_job_launches_until_every_node_is_decided(folder: Path, monkeypatch):
    assert ran(folder, monkeypatch) == ["pairs.1", "pairs.2", "pairs.3"]
    found = records.read(folder / records.JOB_RECORD)["values"][records.PAIRS]
    assert codec.decode_part(PairRounds, found, "rounds of pairs") == rounds.read(folder, JOBID)[0]


def test_a_job_makes_no_launch_that_nobody_decided(folder: Path, monkeypatch):
    monkeypatch.setattr(rounds, "_more", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        ran(folder, monkeypatch)
