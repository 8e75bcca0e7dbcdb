"""The job's own shell: what crashes before its first figure is launched again, and nothing else."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from netproof.benchmarks import imb, netpipe, osu
from netproof.session import job_files, plan

DATA = Path(__file__).resolve().parents[2] / "data"
IMB_ROW = "            4         1000         1.02         3.92"
NETPIPE_ROW = "       4 1.380798   0.00002210"


def job(
    folder: Path, *steps: str, retries: int = 3, first: int = 0, prologue: str = "", tries: int = 0
) -> list[tuple[str, int]]:
    """Run steps as a job's script does; the lines of launches.tsv, name and status."""
    for source in plan.SHELL_FILES:
        shutil.copy(source, folder)
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    for name, text in (("squeue", ""), ("sinfo", "printf '%s\\n' \"$@\"")):
        (tools / name).write_text(f"#!/bin/bash\n{text}\n")
        (tools / name).chmod(0o755)
    script = [
        ". ./steps.sh",
        f"crash_retries={retries}",
        f"first_figure_s={first}",
        f"figures_np={shlex.quote(netpipe.FIGURES)}",
        f"figures_out={shlex.quote(imb.FIGURES)}",
        prologue,
        *steps,
    ]
    subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=folder,
        env=os.environ
        | {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "SLURM_JOB_ID": "1",
            "SLURM_JOB_NODELIST": "n[1-2]",
        }
        | ({"SLURM_RESTART_COUNT": str(tries)} if tries else {}),
        check=True,
    )
    records = job_files.records(folder)
    return [(name, records[name].status) for name in records]


def step(name: str, text: str, limit: int = 20) -> str:
    return f"step {name} {limit} bash -c {shlex.quote(text)}"


def dies_first(times: int, then: str = "true") -> str:
    """Shell text that dies so many times, and then does something else."""
    count = "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) >n"
    return f'{count}; [ "$n" -ge {times} ] || exit 139; {then}'


def test_what_crashes_once_is_launched_again_and_keeps_the_files_of_both(tmp_path):
    text = "echo start $(cat n 2>/dev/null) >&2; " + dies_first(1, f"echo '{IMB_ROW}'")
    assert job(tmp_path, step("Bcast.1", text)) == [("Bcast.1~1", 139), ("Bcast.1", 0)]
    assert (tmp_path / "Bcast.1~1.err").read_text() == "start\n"
    assert (tmp_path / "Bcast.1.err").read_text() == "start 1\n"
    assert (tmp_path / "Bcast.1~1.out").read_text() == ""
    assert IMB_ROW in (tmp_path / "Bcast.1.out").read_text()


def test_there_are_no_more_attempts_than_the_site_allows(tmp_path):
    assert job(tmp_path, step("Bcast.1", "exit 139"), retries=2) == [
        ("Bcast.1~1", 139),
        ("Bcast.1~2", 139),
        ("Bcast.1", 139),
    ]


def test_a_function_that_always_crashes_is_not_tried_over_and_over(tmp_path):
    steps = [step(f"Bcast.{launch}", "exit 139") for launch in (1, 2)]
    done = job(tmp_path, *steps, step("Reduce.1", dies_first(1)), retries=1)
    assert [name for name, _ in done] == [
        "Bcast.1~1",
        "Bcast.1",
        "Bcast.2",
        "Reduce.1~1",
        "Reduce.1",
    ]


def test_no_retries_is_one_attempt(tmp_path):
    assert job(tmp_path, step("Bcast.1", "exit 139"), retries=0) == [("Bcast.1", 139)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "status"),
    [
        (f"echo '{IMB_ROW}'; exit 139", 139),
        (f"echo '{NETPIPE_ROW}' >Bcast.1.np; exit 139", 139),
        ("exec sleep 30", 124),
        ("trap '' TERM; while :; do sleep 0.2; done", 137),
        ("exec no-such-program", 127),
        ("echo 'nptcp.sh: n2 had no answer from 10.0.0.1 in 20 s' >&2; exit 143", 143),
    ],
    ids=[
        "after a figure of IMB",
        "after one of NetPIPE",
        "limit",
        "limit, killed",
        "not there",
        "no answer",
    ],
)
def test_what_is_no_crash_is_not_launched_again(tmp_path, text, status):
    assert job(tmp_path, step("Bcast.1", text, limit=1)) == [("Bcast.1", status)]


HANGS = "echo header; exec sleep 30"


def said_of(folder: Path, name: str) -> str:
    return (folder / f"{name}.err").read_text().splitlines()[-1]


@pytest.mark.slow
def test_what_prints_no_figure_in_time_is_ended_and_not_launched_again(tmp_path):
    row = f"echo '{IMB_ROW}'"
    steps = [step("Reduce.1", row), step("Bcast.1", HANGS), step("Bcast.2", HANGS)]
    done = job(tmp_path, *steps, step("Reduce.2", row), first=1)
    assert done == [("Reduce.1", 0), ("Bcast.1", 143), ("Bcast.2", 69), ("Reduce.2", 0)]
    assert said_of(tmp_path, "Bcast.1") == (
        "steps.sh: Bcast.1 had no figure in 1 s (the partition's first_figure_s) and was ended"
    )
    assert said_of(tmp_path, "Bcast.2") == (
        "steps.sh: Bcast.2 was not launched, since Bcast.1 had no figure"
    )
    records = job_files.records(tmp_path)
    assert "first_figure_s" in job_files.failure(tmp_path, "Bcast.1", records)
    assert "was not launched, since Bcast.1" in job_files.failure(tmp_path, "Bcast.2", records)


@pytest.mark.slow
def test_what_ends_well_when_it_is_ended_without_a_figure_has_failed(tmp_path):
    text = "trap 'exit 0' TERM; sleep 30 & wait"
    assert job(tmp_path, step("Bcast.1", text), first=1) == [("Bcast.1", 124)]


@pytest.mark.slow
def test_a_launch_that_printed_a_figure_has_time_to_its_limit(tmp_path):
    text = f"echo '{IMB_ROW}'; sleep 2"
    assert job(tmp_path, step("Bcast.1", text), first=1) == [("Bcast.1", 0)]


@pytest.mark.slow
def test_a_job_without_any_figure_gives_up_after_two_functions(tmp_path):
    steps = [step(f"{name}.1", HANGS) for name in ("Bcast", "Reduce", "Gather")]
    done = job(tmp_path, *steps, first=1)
    assert [status for _, status in done] == [143, 143, 69]
    assert "no launch before it had a figure: see " in said_of(tmp_path, "Gather.1")


@pytest.mark.slow
def test_a_job_with_figures_launches_what_else_it_has(tmp_path):
    names = ("Bcast", "Reduce", "Gather")
    steps = [step("Barrier.1", f"echo '{IMB_ROW}'"), *(step(f"{one}.1", HANGS) for one in names)]
    done = job(tmp_path, *steps, first=1)
    assert [status for _, status in done] == [0, 143, 143, 143]


def test_a_sender_that_had_no_answer_is_not_launched_again(tmp_path):
    text = "echo 'nptcp.sh: n2 had no answer from 10.0.0.1 in 20 s' >&2; exit 68"
    done = job(tmp_path, step("tcp.1", text), step("tcp.2", text))
    assert done == [("tcp.1", 68), ("tcp.2", 69)]


def test_a_rank_that_is_killed_early_has_crashed_though_its_status_is_that_of_a_limit(tmp_path):
    done = job(tmp_path, step("Bcast.1", dies_first(1).replace("139", "137")))
    assert done == [("Bcast.1~1", 137), ("Bcast.1", 0)]


def test_another_attempt_over_tcp_has_a_port_of_its_own(tmp_path):
    first = "on_first=(printf '%s\\n' welcome 'listening 10.0.0.1 4002')"
    prologue = f"address=10.0.0.1 ports=(4001) {first}"
    text = 'echo "$1 $2 $3" >>asked; ' + dies_first(1)
    launched = f'step tcp.1 20 bash -c {shlex.quote(text)} - "$address" "${{ports[0]}}" -l'
    job(tmp_path, launched, prologue=prologue)
    assert (tmp_path / "asked").read_text() == "10.0.0.1 4001 -l\n10.0.0.1 4002 -l\n"


def matches(pattern: str, path: Path) -> bool:
    return subprocess.run(["grep", "-aEqs", "-e", pattern, path], check=False).returncode == 0


NETPIPE_OUTPUTS = [
    path
    for path in [*(DATA / "netpipe" / "3.7.2").glob("*.out"), *(DATA / "jobs").rglob("*.np")]
    if path.name != "integrity.out"  # Of a mode that measures nothing.
]


@pytest.mark.parametrize("path", NETPIPE_OUTPUTS, ids=str)
def test_every_recorded_file_of_netpipe_has_figures(path):
    assert matches(netpipe.FIGURES, path)


IMB_OUTPUTS = sorted(
    path
    for folder in ("2018", "2019.6", "2021.1", "2021.11", "2021.11-intel")
    for path in (DATA / "imb" / folder).rglob("*")
    if path.is_file()
)


@pytest.mark.parametrize("path", IMB_OUTPUTS, ids=str)
def test_a_recorded_output_of_imb_has_figures_exactly_where_its_tables_have_rows(path):
    text = path.read_text(errors="replace")
    rows = re.search(r"(?m)^ +\d+ .*\d\.\d\d", text) is not None
    assert matches(imb.FIGURES, path) == rows


OSU_OUTPUTS = [*(DATA / "osu").rglob("*.out"), *(DATA / "jobs").glob("osu-*/*.out")]


@pytest.mark.parametrize("path", OSU_OUTPUTS, ids=str)
def test_every_recorded_output_of_omb_has_figures_and_its_header_has_none(path, tmp_path):
    assert matches(osu.FIGURES, path)
    begun = tmp_path / "begun.out"
    lines = path.read_text().splitlines()
    begun.write_text("".join(f"{line}\n" for line in lines if line.startswith("#")))
    assert not matches(osu.FIGURES, begun)


@pytest.mark.parametrize("name", ["imb-faulty/Bcast.1.out", "crashed-once/PingPong.1~1.out"])
def test_what_a_crash_printed_has_no_figures(name):
    assert not matches(imb.FIGURES, DATA / "jobs" / name)


def test_the_headers_of_imb_are_no_figures(tmp_path):
    whole = (DATA / "jobs" / "crashed-once" / "PingPong.1.out").read_text()
    begun = tmp_path / "begun.out"
    begun.write_text("".join(f"{line}\n" for line in whole.splitlines() if "#" in line))
    assert "#bytes" in begun.read_text()
    assert not matches(imb.FIGURES, begun)


def test_a_rank_that_ends_while_slurm_ends_the_step_did_not_crash_first(tmp_path):
    (tmp_path / "PingPong.1~1.err").write_text(
        "IMB-MPI1 was ended by signal SEGV\n"
        "srun: error: gige-2: task 1: Exited with exit code 139\n"
        "srun: launch/slurm: _step_signal: Terminating StepId=8.2\n"
        "slurmstepd-gige-1: error: *** STEP 8.2 ON gige-1 CANCELLED AT 2026-11-22T10:07:18 ***\n"
        "srun: error: gige-1: task 0: Exited with exit code 1\n"
    )
    recorded = {"PingPong.1~1": job_files.StepRecord(1, 0.0, 1.0, 139, 60)}
    (crash,) = job_files.crashes(tmp_path, "PingPong.1", 1, recorded)
    assert crash.nodes == ("gige-2",)
    assert "gige-2: task 1: Exited with exit code 139" in crash.said


DECIDES = """#!/bin/bash
echo begun >>begun
while read -r word; do
    [ "$word" != die ] || { echo "why it died" >&2; exit 3; }
    echo "$word" >>decided
    echo done
done
"""


def decided(folder: Path, *lines: str) -> str:
    """What a job's script says of what decides for it, as ``lines`` ask it."""
    (folder / "decides.sh").write_text(DECIDES)
    job(folder, *lines)
    told = folder / "decide.out"
    return told.read_text() if told.exists() else ""


def test_what_decides_is_started_once(tmp_path):
    start = "decider bash ./decides.sh"
    assert decided(tmp_path, start, "decide 1", start, "decide 2", "echo on >>decided") == ""
    assert (tmp_path / "decided").read_text() == "1\n2\non\n"
    assert (tmp_path / "begun").read_text() == "begun\n"


def test_what_decides_dies_and_the_job_says_so_with_its_last_words(tmp_path):
    lines = ["decider bash ./decides.sh", "decide 1", "decide die", "echo on >>decided"]
    said = decided(tmp_path, *lines).splitlines()
    assert said[-1] == "why it died; what decides ended with status 3"
    assert (tmp_path / "decided").read_text() == "1\non\n"


@pytest.mark.slow
def test_what_was_killed_between_two_questions_is_started_again(tmp_path):
    start = "decider bash ./decides.sh"
    kill = 'kill -KILL "$deciding_PID"; sleep 0.2'
    said = decided(tmp_path, start, "decide 1", kill, "decide 2", start, "decide 3")
    assert said == "what decides ended with status 137\n"
    assert (tmp_path / "decided").read_text() == "1\n3\n"


def test_a_node_without_what_decides_says_so_each_time(tmp_path):
    said = decided(tmp_path, *["decider /no/such/python", "decide 1"] * 2).splitlines()
    assert [line.partition("; ")[2] for line in said[1::2]] == [
        "what decides ended with status 127"
    ] * 2


@pytest.mark.slow
def test_what_decides_ends_with_the_script(tmp_path):
    # In the script's own group nothing else is left that would keep its pipe open.
    lines = ["decider bash ./decides.sh", 'echo "$deciding_PID" >pid', "decide 1"]
    assert decided(tmp_path, *lines) == ""
    place = Path("/proc", (tmp_path / "pid").read_text().strip())
    for _ in range(50):
        if not place.exists():
            break
        time.sleep(0.1)
    assert not place.exists()


def test_a_job_that_is_requeued_measures_again_and_sets_aside_what_it_had(tmp_path):
    (tmp_path / "plan.json").write_text("the plan")
    left = "touch node.n1.txt"
    assert job(tmp_path, step("Bcast.1", f"echo first; {left}")) == [("Bcast.1", 0)]
    assert job(tmp_path, step("Bcast.1", "echo second"), tries=1) == [("Bcast.1", 0)]
    assert (tmp_path / "Bcast.1.out").read_text() == "second\n"
    assert (tmp_path / "plan.json").read_text() == "the plan"
    assert not (tmp_path / "node.n1.txt").exists()
    aside = tmp_path / "try-1"
    assert (aside / "Bcast.1.out").read_text() == "first\n"
    assert (aside / "node.n1.txt").exists()
    assert "--nodes=n[1-2]" in (aside / "nodes.txt").read_text().splitlines()


def test_a_job_that_is_requeued_before_it_did_anything_begins_as_usual(tmp_path):
    assert job(tmp_path, step("Bcast.1", "true"), tries=1) == [("Bcast.1", 0)]
    assert not list(tmp_path.glob("try-*"))
