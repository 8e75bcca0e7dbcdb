"""A job of pairs chooses its next round by its results so far."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from netproof.run import pair_deciding
from netproof.run.answering import CLOSED_FILE, QUESTION_FILE
from netproof.session import job_scripts, pair_rounds, plan
from netproof.session.pair_rounds import PairLaunch, PairRounds, PlannedLaunch
from netproof.site.partition import Partition

RECORDED = Path(__file__).resolve().parents[2] / "data" / "jobs" / "pairs"
JOBID = (RECORDED / "job_nodes.txt").read_text().splitlines()[1].split("\t")[1]
JOBID_OF_SMALL_BUFFER = "1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A recorded job of four nodes as it stood before its first launch."""
    job = Path(shutil.copytree(RECORDED, tmp_path / "job"))
    for name in ("planned.json", CLOSED_FILE):
        (job / name).unlink()
    header = (job / "launches.tsv").read_text().splitlines()[0]
    (job / "launches.tsv").write_text(header + "\n")
    return job


def ask(folder: Path, **changed) -> None:
    path = folder / QUESTION_FILE
    question = json.loads(path.read_text())
    for key in ("pairs", "criteria"):
        question["extras"][key] |= changed.pop(key, {})
    path.write_text(json.dumps(question | changed))


def following(folder: Path) -> list[str]:
    return (folder / pair_rounds.NEXT_FILE).read_text().split()


def test_the_first_round_pairs_every_node(folder: Path):
    pair_deciding.decide(folder, 0, JOBID)
    assert sorted(following(folder)) == [f"fast-ethernet-{n}" for n in range(1, 5)]


def test_pairs_that_may_not_measure_at_once_have_a_launch_each(folder: Path):
    ask(folder, pairs={"together": 1})
    pair_deciding.decide(folder, 0, JOBID)
    planned = pair_rounds.read_planned(folder)
    assert [(one.round, len(one.pairs), one.alone) for one in planned.launches] == [
        (1, 1, False),
        (1, 1, False),
    ]
    assert following(folder) == list(planned.launches[0].nodes())
    pair_deciding.decide(folder, 1, JOBID)
    assert pair_rounds.read_planned(folder) == planned
    assert following(folder) == list(planned.launches[1].nodes())


def test_a_machine_that_is_never_calm_is_not_asked_for_all_rounds(folder: Path):
    for name in ("planned.json", "launches.tsv"):
        shutil.copy(RECORDED / name, folder)
    planned = pair_rounds.read_planned(folder)
    pair_rounds.write_planned(folder, pair_rounds.Planned(planned.launches))
    ask(folder, mode="quick")
    pair_deciding.decide(folder, 3, JOBID)
    assert pair_rounds.read_planned(folder).last
    assert (folder / CLOSED_FILE).read_text() == "pairs\n"


def test_nodes_that_are_cleared_end_the_rounds(folder: Path):
    for name in ("planned.json", "launches.tsv"):
        shutil.copy(RECORDED / name, folder)
    planned = pair_rounds.read_planned(folder)
    pair_rounds.write_planned(folder, pair_rounds.Planned(planned.launches))
    ask(folder, mode="quick", criteria={"disturbance": {"others": 1.0, "steal": 1.0}})
    pair_deciding.decide(folder, 3, JOBID)
    assert (folder / CLOSED_FILE).exists()


@pytest.mark.parametrize("together", [0, 1])
def test_where_uplinks_can_be_compared_all_pairs_send_both_ways_at_the_end(
    folder: Path, together, monkeypatch
):
    """Four nodes are too few for that; what is asked of them says what is planned."""
    for name in ("planned.json", "launches.tsv"):
        shutil.copy(RECORDED / name, folder)
    planned = pair_rounds.read_planned(folder)
    pair_rounds.write_planned(folder, pair_rounds.Planned(planned.launches))
    pairs = planned.launches[0].pairs
    first = PlannedLaunch(0, pairs, why="pairs across uplinks, both ways at once", both_ways=True)
    monkeypatch.setattr(pair_deciding, "both_ways_round", lambda *_, made, seed: first)
    leaves = {f"leaf-{n}": [f"fast-ethernet-{n}"] for n in range(1, 5)}
    ask(
        folder,
        mode="quick",
        criteria={"disturbance": {"others": 1.0, "steal": 1.0}},
        pairs={"together": together},
        leaves=leaves,
        parents=dict.fromkeys(leaves, "spine"),
    )
    pair_deciding.decide(folder, 3, JOBID)
    # Pairs that measure one after the other share no uplink.
    assert (folder / CLOSED_FILE).exists() is bool(together)
    if not together:
        one = pair_rounds.read_planned(folder).launches[-1]
        assert (one.round, one.both_ways, one.alone) == (4, True, False)
        assert one.why == "pairs across uplinks, both ways at once"
        assert (folder / pair_rounds.BOTH_WAYS_FILE).exists()


def test_rounds_end_where_every_node_loses_packets(tmp_path: Path):
    job = Path(shutil.copytree(RECORDED.with_name("small-buffer"), tmp_path / "job"))
    pair_deciding.decide(job, 4, JOBID_OF_SMALL_BUFFER)
    assert (job / CLOSED_FILE).exists()
    assert pair_rounds.read_planned(job).last


def test_nodes_that_are_not_decided_are_measured_on(folder: Path):
    for name in ("planned.json", "launches.tsv"):
        shutil.copy(RECORDED / name, folder)
    lines = (folder / "launches.tsv").read_text().splitlines()
    (folder / "launches.tsv").write_text("\n".join(lines[:2]) + "\n")
    planned = pair_rounds.read_planned(folder)
    pair_rounds.write_planned(folder, pair_rounds.Planned(planned.launches[:1]))
    ask(folder, mode="quick", criteria={"disturbance": {"others": 1.0, "steal": 1.0}})
    pair_deciding.decide(folder, 1, JOBID)
    assert not (folder / CLOSED_FILE).exists()
    assert [one.round for one in pair_rounds.read_planned(folder).launches] == [1, 2]


@pytest.mark.parametrize(("count", "among_others", "streams"), [(2, 3, 6), (3, 9, 18)])
def test_too_few_nodes_to_compare_are_through_after_their_pairs_and_streams(
    folder: Path, count, among_others, streams, monkeypatch
):
    ask(folder, criteria={"disturbance": {"others": 1.0, "steal": 1.0}})
    partition = Partition.model_validate(json.loads((folder / QUESTION_FILE).read_text())["extras"])
    where = ("testbed", "fast-ethernet", "mpich")
    (recorded, *_), _, _ = pair_rounds.read(RECORDED, where, partition.max_message_bytes)
    nodes = tuple(f"fast-ethernet-{n}" for n in range(1, count + 1))

    def measured(number: int, planned: pair_rounds.PlannedLaunch) -> PairLaunch:
        pair = dataclasses.replace(recorded.pairs[0], nodes=planned.pairs[0])
        return dataclasses.replace(
            recorded,
            number=number,
            round=planned.round,
            pairs=(pair,),
            alone=planned.alone,
            counters=None,
        )

    def rounds(folder: Path, jobid: str, *, fresh: bool) -> tuple[PairRounds, Partition]:
        planned = pair_rounds.read_planned(folder).launches
        done = tuple(measured(number, one) for number, one in enumerate(planned, 1))
        return PairRounds(*where, nodes, done, jobid, "quick", 1), partition

    monkeypatch.setattr(pair_deciding, "read", rounds)
    made = 0
    while not (folder / CLOSED_FILE).exists():
        pair_deciding.decide(folder, made, JOBID)
        made += 1
    planned = pair_rounds.read_planned(folder).launches
    assert [one.stream for one in planned] == among_others * [False] + streams * [True]
    assert len({frozenset(one.pairs[0]) for one in planned}) == count * (count - 1) / 2


FAKE = """
describe() { :; }
job_nodes() { :; }
end_steps() { :; }
# Each launch is that of the recorded job.
step() {
    grep "^$1	" recorded.tsv >>launches.tsv
    cmp "$SLURM_HOSTFILE" "recorded/$1.nodes" || exit 9
}
"""


def script(folder: Path, decider: str) -> subprocess.CompletedProcess[str]:
    """Run the script of a recorded job of mode ``full`` for real, but for its launches."""
    partition = Partition.model_validate(
        json.loads((RECORDED / QUESTION_FILE).read_text())["extras"]
    )
    shutil.copy(RECORDED / "launches.tsv", folder / "recorded.tsv")
    recorded = folder / "recorded"
    recorded.mkdir()
    for number, launch in enumerate(pair_rounds.read_planned(RECORDED).launches, 1):
        text = "".join(f"{node}\n" for node in launch.nodes())
        (recorded / f"pairs.{number}.nodes").write_text(text)
    for source in plan.SHELL_FILES:
        shutil.copy(source, folder)
    with (folder / "steps.sh").open("a") as steps:
        steps.write(FAKE)
    text = pair_rounds.script(10, partition, ["srun"], decider)
    lines = [line for line in text.splitlines() if "describe.sh" not in line]
    (folder / "launches.sh").write_text("\n".join(lines) + "\n")
    return subprocess.run(
        ["bash", "launches.sh"],
        cwd=folder,
        env=os.environ | {"SLURM_JOB_ID": JOBID},
        capture_output=True,
        text=True,
        check=False,
    )


def launched(folder: Path) -> list[str]:
    return [line.split("\t")[0] for line in (folder / "launches.tsv").read_text().splitlines()[1:]]


@pytest.mark.slow
def test_one_process_decides_for_all_launches_of_a_job(folder: Path):
    ended = script(folder, job_scripts.decider("netproof.run.pair_deciding", folder))
    log = folder / "decide.out"
    assert (ended.returncode, ended.stderr) == (0, ""), log.read_text()
    assert launched(folder) == ["pairs.1", "pairs.2", "pairs.3"]
    assert (folder / CLOSED_FILE).read_text() == "pairs\n"
    assert log.read_text() == ""


@pytest.mark.slow
@pytest.mark.parametrize("once", ["exit 5", "kill -KILL $$"])
def test_a_job_whose_decider_dies_makes_no_launch_that_nobody_decided(folder: Path, once: str):
    """It answers the first question, and dies of the second."""
    python = " ".join(map(job_scripts.quoted, [sys.executable, "-m", "netproof.run.pair_deciding"]))
    (folder / "dies").write_text(
        f'#!/bin/bash\nread -r made\necho "$made" | {python} "$1"\nread -r made\n{once}\n'
    )
    ended = script(folder, f"decider bash ./dies {folder}")
    assert ended.returncode == 4
    assert launched(folder) == ["pairs.1"]
    assert not (folder / CLOSED_FILE).exists()
    assert "what decides ended with status" in (folder / "decide.out").read_text().splitlines()[-1]


@pytest.mark.slow
def test_a_question_that_cannot_be_answered_is_told_and_the_next_one_can_be(folder: Path):
    """The recorded files are damaged for the first question only."""
    question = (folder / QUESTION_FILE).read_text()
    (folder / QUESTION_FILE).write_text(question[:100])
    with subprocess.Popen(
        [sys.executable, "-m", "netproof.run.pair_deciding", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"SLURM_JOB_ID": JOBID},
        text=True,
    ) as decider:
        decider.stdin.write("0\n")
        decider.stdin.flush()
        assert decider.stdout.readline() == "done\n"
        assert not (folder / pair_rounds.NEXT_FILE).exists()
        (folder / QUESTION_FILE).write_text(question)
        decider.stdin.write("0\n")
        decider.stdin.flush()
        assert decider.stdout.readline() == "done\n"
        assert sorted(following(folder)) == [f"fast-ethernet-{n}" for n in range(1, 5)]
        decider.stdin.close()
        assert QUESTION_FILE in decider.stderr.read()
    assert decider.returncode == 0
