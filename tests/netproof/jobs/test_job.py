"""A job from within: what crashes before its first figure is launched again, and nothing else."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from made_programs import program

from netproof.benchmarks import imb, netpipe, osu
from netproof.errors import NetproofError
from netproof.jobs import __main__ as jobs_program
from netproof.jobs import job as jobs_job
from netproof.session import job_files, node_facts, plan
from netproof.session.job_files import JobReport
from netproof.session.plan import JobPlan, Step

DATA = Path(__file__).resolve().parents[2] / "data"
EXTRAS = JobPlan.read(DATA / "jobs" / "pairs" / "plan.json").extras
IMB_ROW = "            4         1000         1.02         3.92"
NETPIPE_ROW = "       4 1.380798   0.00002210"


@pytest.fixture(autouse=True)
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job of two nodes; programs stand in for Slurm's, and srun runs the command here."""
    tools = tmp_path / "tools"
    texts = {
        "squeue": "",
        "sinfo": "printf '%s\\n' \"$@\"",
        "scontrol": "printf 'n%s\\n' 1 2",
        "scancel": "",
        "srun": 'while [[ ${1-} == -* ]]; do shift; done; exec "$@"',
    }
    for name, text in texts.items():
        program(tools / name, text)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    return tools


def planned(*steps: Step, retries: int = 3, first: int = 0) -> JobPlan:
    extras = {**EXTRAS, "crash_retries": retries, "first_figure_s": first}
    return JobPlan(1, extras, rounds=(steps,), describe_nodes=False)


def job(folder: Path, *steps: Step, retries: int = 3, first: int = 0) -> list[tuple[str, int]]:
    """Run steps in a job of ``folder``; the lines of launches.tsv, name and status."""
    made = folder / "job"
    made.mkdir(exist_ok=True)
    planned(*steps, retries=retries, first=first).write(made)
    assert jobs_program.main([str(made / plan.PLAN_FILE)]) == 0
    records = job_files.records(made)
    return [(name, records[name].status) for name in records]


def step(name: str, text: str, limit: int = 20) -> Step:
    subject, _, launch = name.rpartition(".")
    return Step(subject, int(launch), ("bash", "-c", text), limit_s=limit)


def dies_first(times: int, then: str = "true", status: int = 139) -> str:
    """Shell text that dies so many times, and then does something else."""
    count = "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) >n"
    return f'{count}; [ "$n" -ge {times} ] || exit {status}; {then}'


def test_what_crashes_once_is_launched_again_and_keeps_the_files_of_both(tmp_path):
    text = "echo start $(cat n 2>/dev/null) >&2; " + dies_first(1, f"echo '{IMB_ROW}'")
    assert job(tmp_path, step("Bcast.1", text)) == [("Bcast.1~1", 139), ("Bcast.1", 0)]
    assert (tmp_path / "job" / "Bcast.1~1.err").read_text() == "start\n"
    assert (tmp_path / "job" / "Bcast.1.err").read_text() == "start 1\n"
    assert (tmp_path / "job" / "Bcast.1~1.out").read_text() == ""
    assert IMB_ROW in (tmp_path / "job" / "Bcast.1.out").read_text()


@pytest.mark.parametrize(
    ("texts", "retries", "done"),
    [
        ({"Bcast.1": "exit 139"}, 0, {"Bcast.1": 139}),
        ({"Bcast.1": "exit 139"}, 2, {"Bcast.1~1": 139, "Bcast.1~2": 139, "Bcast.1": 139}),
        # A function that always crashes is not tried over and over.
        (
            {"Bcast.1": "exit 139", "Bcast.2": "exit 139", "Reduce.1": dies_first(1)},
            1,
            {"Bcast.1~1": 139, "Bcast.1": 139, "Bcast.2": 139, "Reduce.1~1": 139, "Reduce.1": 0},
        ),
        # The status of a limit, and long before it.
        ({"Bcast.1": dies_first(1, status=137)}, 3, {"Bcast.1~1": 137, "Bcast.1": 0}),
    ],
)
def test_there_are_no_more_attempts_than_the_site_allows(tmp_path, texts, retries, done):
    steps = [step(name, text) for name, text in texts.items()]
    assert job(tmp_path, *steps, retries=retries) == [*done.items()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "status", "first"),
    [
        (f"echo '{IMB_ROW}'; exit 139", 139, 0),
        (f"echo '{NETPIPE_ROW}' >Bcast.1.np; exit 139", 139, 0),
        ("exec sleep 30", 124, 0),
        ("trap '' TERM; while :; do sleep 0.2; done", 137, 0),
        ("exec no-such-program", 127, 0),
        # It ends well, when it is ended without a figure.
        ("trap 'exit 0' TERM; sleep 30 & wait", 124, 1),
        # With a figure it has time to its limit.
        (f"echo '{IMB_ROW}'; sleep 2", 0, 1),
    ],
)
def test_what_is_no_crash_is_not_launched_again(tmp_path, text, status, first):
    limit = 3 if first else 1
    assert job(tmp_path, step("Bcast.1", text, limit=limit), first=first) == [("Bcast.1", status)]


HANGS = "echo header; exec sleep 30"


def said_of(folder: Path, name: str) -> str:
    return (folder / "job" / f"{name}.err").read_text().splitlines()[-1]


@pytest.mark.slow
def test_what_prints_no_figure_in_time_is_ended_and_not_launched_again(tmp_path):
    row = f"echo '{IMB_ROW}'"
    talks = f"echo begins >&2; trap 'echo srun: ended >&2; exit 143' TERM; {HANGS} & wait"
    steps = [step("Reduce.1", row), step("Bcast.1", talks), step("Bcast.2", HANGS)]
    done = job(tmp_path, *steps, step("Reduce.2", row), first=1)
    assert done == [("Reduce.1", 0), ("Bcast.1", 143), ("Bcast.2", 69), ("Reduce.2", 0)]
    # The step's own words, before and after, stand beside the reason.
    why = "no figure in 1 s (the partition's first_figure_s) and was ended"
    assert (tmp_path / "job" / "Bcast.1.err").read_text().splitlines() == [
        *("begins", f"netproof.jobs: Bcast.1 had {why}", "srun: ended"),
    ]
    assert said_of(tmp_path, "Bcast.2") == (
        "netproof.jobs: Bcast.2 was not launched, since Bcast.1 had no figure"
    )
    left = job_files.JobFolder(tmp_path / "job")
    assert "first_figure_s" in left.failure("Bcast.1")
    assert "was not launched, since Bcast.1" in left.failure("Bcast.2")


@pytest.mark.slow
@pytest.mark.parametrize("figures", [False, True])
def test_a_job_without_any_figure_gives_up_after_two_functions(tmp_path, figures):
    steps = [step("Barrier.1", f"echo '{IMB_ROW}'")] if figures else []
    steps += [step(f"{name}.1", HANGS) for name in ("Bcast", "Reduce", "Gather")]
    done = job(tmp_path, *steps, first=1)
    assert [status for _, status in done][-3:] == [143, 143, 143 if figures else 69]
    why = "no launch before it had a figure: see "
    assert (why in said_of(tmp_path, "Gather.1")) is not figures


def test_a_sender_that_had_no_answer_is_not_launched_again(tmp_path):
    no_answer = "echo 'nptcp.sh: n2 had no answer from 10.0.0.1 in 20 s' >&2; exit 68"
    done = job(tmp_path, step("tcp.1", no_answer), step("tcp.2", no_answer))
    assert done == [("tcp.1", 68), ("tcp.2", 69)]


def test_another_attempt_over_tcp_has_a_port_of_its_own(tmp_path, slurm):
    (slurm / "srun").write_text(
        "#!/bin/bash\n[[ $* != *listen-on* ]] ||"
        " { echo welcome; echo listening 10.0.0.1 $((4001 + $(wc -l <ports))); echo >>ports; }\n"
    )
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "ports").touch()
    text = 'echo "$1 $2 $3" >>asked; ' + dies_first(1)
    command = ("bash", "-c", text, "-", plan.ADDRESS, plan.PORT, "-l")
    job(tmp_path, Step("tcp", 1, command))
    asked = (tmp_path / "job" / "asked").read_text()
    assert asked == "10.0.0.1 4001 -l\n10.0.0.1 4002 -l\n"


def test_a_first_node_that_prints_no_address_ends_the_job_with_the_reason(tmp_path, capsys):
    planned(Step("tcp", 1, ("true", plan.PORT))).write(tmp_path)
    assert jobs_program.main([str(tmp_path / plan.PLAN_FILE)]) == 3
    assert "n1 printed no address to listen on" in capsys.readouterr().err
    assert "n1 printed no address" in JobReport.read(tmp_path).ended


def figures(benchmark, text: str) -> bool:
    """Whether grep, which a job asks, finds a figure of the benchmark in a text."""
    asked = ["grep", "-aEqs", "-e", benchmark.figures]
    return subprocess.run(asked, input=text.encode(), check=False).returncode == 0


RECORDED = {
    # One is of a mode that measures nothing.
    netpipe.BENCHMARK: [
        path
        for path in [*(DATA / "netpipe" / "3.7.2").glob("*.out"), *(DATA / "jobs").rglob("*.np")]
        if path.name != "integrity.out"
    ],
    osu.BENCHMARK: [*(DATA / "osu").rglob("*.out"), *(DATA / "jobs").glob("osu-*/*.out")],
    imb.BENCHMARK: [
        *(path for path in (DATA / "imb").glob("20*/**/*") if path.is_file()),
        *(DATA / "jobs" / name for name in ("imb-faulty/Bcast.1.out",)),
        *(DATA / "jobs" / "crashed-once").glob("PingPong.1*.out"),
    ],
}
IMB_TABLE_ROW = re.compile(r"(?m)^ +\d+ .*\d\.\d\d")


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", RECORDED, ids=lambda one: one.name)
def test_recorded_outputs_have_figures_and_their_headers_and_crashes_have_none(benchmark):
    for path in RECORDED[benchmark]:
        text = path.read_text(errors="replace")
        rows = benchmark is not imb.BENCHMARK or IMB_TABLE_ROW.search(text) is not None
        assert figures(benchmark, text) is rows, path
        header = "".join(f"{line}\n" for line in text.splitlines() if "#" in line)
        assert not figures(benchmark, header), path


def test_a_rank_that_ends_while_slurm_ends_the_step_did_not_crash_first(tmp_path):
    (tmp_path / "PingPong.1~1.err").write_text(
        "IMB-MPI1 was ended by signal SEGV\n"
        "srun: error: gige-2: task 1: Exited with exit code 139\n"
        "srun: launch/slurm: _step_signal: Terminating StepId=8.2\n"
        "slurmstepd-gige-1: error: *** STEP 8.2 ON gige-1 CANCELLED AT 2026-11-22T10:07:18 ***\n"
        "srun: error: gige-1: task 0: Exited with exit code 1\n"
    )
    record = f"{job_files.LAUNCHES_HEADER}\nPingPong.1~1\t0.0\t1.0\t139\t60\n"
    (tmp_path / job_files.LAUNCHES_FILE).write_text(record)
    (crash,) = job_files.JobFolder(tmp_path).crashes("PingPong.1")
    assert crash.died_on == ("gige-2",)
    assert "gige-2: task 1: Exited with exit code 139" in crash.said


def test_a_dry_run_prints_each_command_and_launches_nothing(tmp_path, capsys):
    one = Step("Bcast", 1, ("srun", f"--nodelist={plan.FIRST}", "a b"))
    planned(one).write(tmp_path)
    assert jobs_program.main([str(tmp_path / plan.PLAN_FILE), "--dry-run"]) == 0
    assert capsys.readouterr().out == "Bcast.1: srun '--nodelist={node-1}' 'a b'\n"
    assert [path.name for path in tmp_path.glob("*.*")] == [plan.PLAN_FILE]


def test_steps_have_the_job_s_nodes_and_hosts_in_a_file(tmp_path):
    text = 'echo "$1"; cat "$SLURM_HOSTFILE"'
    command = ("bash", "-c", text, "-", f"{plan.FIRST},{plan.SECOND}")
    assert job(tmp_path, Step("Bcast", 1, command, hosts=("n2", "n1"))) == [("Bcast.1", 0)]
    assert (tmp_path / "job" / "Bcast.1.out").read_text() == "n1,n2\nn2\nn1\n"


def test_a_job_asks_slurm_for_its_nodes_and_one_without_an_answer_ends(tmp_path, slurm, capsys):
    job(tmp_path, step("Bcast.1", "sleep 0.3"))
    report = JobReport.read(tmp_path / "job")
    assert report.wall_s >= report.in_steps_s >= 0.3
    assert report.cpu_s > 0
    assert "s in steps; it took" in capsys.readouterr().out
    assert node_facts.nodes_of_job(tmp_path / "job", "1") == ("n1", "n2")
    (slurm / "scontrol").write_text("#!/bin/bash\nexit 1\n")
    planned(step("Bcast.1", "true")).write(tmp_path)
    assert jobs_program.main([str(tmp_path / plan.PLAN_FILE)]) == 3
    with pytest.raises(NetproofError, match="cannot be read"):
        node_facts.nodes_of_job(tmp_path, "1")
    assert "the job's nodes are not known" in JobReport.read(tmp_path).faults[0]


@pytest.mark.slow
def test_a_job_that_slurm_ends_notes_what_ran_and_ends_it(tmp_path, slurm):
    """Its step ignores SIGTERM."""
    stubborn = "trap '' TERM; echo $$ >pid; while :; do sleep 0.1; done"
    planned(step("Bcast.1", "true"), step("Bcast.2", stubborn)).write(tmp_path)
    command = [sys.executable, "-P", "-m", "netproof.jobs", str(tmp_path / plan.PLAN_FILE)]
    with subprocess.Popen(command) as process:
        while not (tmp_path / "pid").exists():
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        while not (tmp_path / job_files.JOB_FILE).exists():
            time.sleep(0.05)
        # Slurm would kill the program before the step that ignores it.
        assert Path("/proc", (tmp_path / "pid").read_text().strip()).exists()
        assert process.wait() == 143
        assert time.monotonic() - began < 15
    statuses = {name: one.status for name, one in job_files.records(tmp_path).items()}
    assert statuses == {"Bcast.1": 0, "Bcast.2": 143}
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()
    assert JobReport.read(tmp_path).ended == "the job was ended from outside"


def test_another_environment_is_set_up_in_what_the_job_began_with(tmp_path):
    """The job's script exports its own on top of what it was started with."""
    (tmp_path / "setup.sh").write_text('export B="peer"\nexport PATH=b:$PATH\n')
    text = 'echo "A=${A-} B=$B C=$C D=${D-} $1"; echo "${PATH%%:*}"'
    asked = planned(Step("Bcast", 1, ("bash", "-c", text, "-", "a b")))
    dataclasses.replace(asked, setup="setup.sh").write(tmp_path)
    run = f"{sys.executable} -P -m netproof.jobs {tmp_path / plan.PLAN_FILE}"
    (tmp_path / "script").write_text(f"export A=own D=own PATH=own:$PATH\n{run}\nexit\n")
    began = {"C": "two\nlines", "A": "began", "odd-name%%": "x"}
    keys = ("PATH", "PYTHONPATH", "SLURM_JOB_ID", "SLURM_JOB_NODELIST")
    began |= {key: os.environ[key] for key in keys if key in os.environ}
    subprocess.run(["bash", tmp_path / "script"], env=began, check=True)
    out = (tmp_path / "Bcast.1.out").read_text()
    assert out == "A=began B=peer C=two\nlines D= a b\nb\n"


@pytest.mark.parametrize("there", [True, False])
def test_the_script_says_where_there_is_no_python(tmp_path, there):
    python = sys.executable if there else "/no/such/python"
    root = Path(__file__).resolve().parents[3]
    (tmp_path / plan.SCRIPT).write_text(plan.script(python, root))
    planned(step("Bcast.1", "true")).write(tmp_path)
    command = ["bash", plan.SCRIPT, "--dry-run"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == (0 if there else 3)
    assert ("Bcast.1: bash -c true" in ran.stdout) is there
    assert ("has no /no/such/python" in ran.stderr) is not there


def test_a_job_that_is_requeued_measures_again_and_sets_aside_what_it_had(tmp_path, monkeypatch):
    made = tmp_path / "job"
    # It is requeued before it did anything.
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    assert job(tmp_path, step("Bcast.1", "echo first; touch node.n1.txt")) == [("Bcast.1", 0)]
    assert not list(made.glob("try-*"))
    assert job(tmp_path, step("Bcast.1", "echo second")) == [("Bcast.1", 0)]
    assert (made / "Bcast.1.out").read_text() == "second\n"
    assert (made / plan.PLAN_FILE).exists()
    assert not (made / "node.n1.txt").exists()
    aside = made / "try-1"
    assert (aside / "Bcast.1.out").read_text() == "first\n"
    assert (aside / "node.n1.txt").exists()
    assert "--nodes=n[1-2]" in (aside / "nodes.txt").read_text().splitlines()


@pytest.mark.parametrize(("most", "faults"), [(2, 0), (10**6, 1)])
def test_the_next_launch_waits_until_slurm_has_ended_the_steps_of_a_failed_one(
    tmp_path, slurm, monkeypatch, most, faults
):
    monkeypatch.setattr(jobs_job, "STEPS_END_S", 0.5)
    count = tmp_path / "count"
    (slurm / "squeue").write_text(
        f"#!/bin/bash\nn=$(cat {count} 2>/dev/null || echo 0); echo $((n + 1)) >{count}\n"
        f'echo 1.batch; [ "$n" -ge {most} ] || echo 1.0\n'
    )
    running = jobs_job.RunningJob(tmp_path, planned(step("Bcast.1", "exit 1")))
    running.end_steps()
    assert len(running.faults) == faults
    assert int(count.read_text()) >= 3
    assert all("steps had not ended after 0.5 s: 1.0" in fault for fault in running.faults)


REFUSED = "srun: error: Unable to create step for job 2: Job/step already completing or completed"


def test_a_launch_that_slurm_refuses_since_the_job_has_ended_is_none(tmp_path):
    """Slurm ends a job that is out of time some seconds before it tells its batch script."""
    refused = step("Bcast.2", f"echo '{REFUSED}' >&2; exit 1")
    planned(step("Bcast.1", "true"), refused, step("Bcast.3", "true")).write(tmp_path)
    assert jobs_program.main([str(tmp_path / plan.PLAN_FILE)]) == 143
    assert [*job_files.records(tmp_path)] == ["Bcast.1"]
    ended = JobReport.read(tmp_path).ended
    assert ended == f"Slurm had ended the job before Bcast.2: {REFUSED}"


def test_a_pending_launch_that_its_limit_ends_is_not_taken_for_the_end_of_the_job(tmp_path):
    pending = f"trap \"echo '{REFUSED}' >&2; exit 1\" TERM; sleep 60 & wait"
    steps = step("Bcast.1", pending, limit=1), step("Bcast.2", f"echo '{IMB_ROW}'")
    assert job(tmp_path, *steps, retries=0) == [("Bcast.1", 124), ("Bcast.2", 0)]


def test_time_for_which_a_job_is_suspended_does_not_count():
    """The process that waits and the one that it waits for are stopped together."""
    waits = (
        "import subprocess, sys; from netproof.jobs import job; job.AWAKE_S = 0.05;"
        "words = 'echo waits; for i in 1 2 3 4 5; do sleep 0.1; done';"
        "works = subprocess.Popen(['bash', '-c', words]); sys.exit(not job.ended_within(works, 3))"
    )
    waiter = subprocess.Popen(
        [sys.executable, "-c", waits], stdout=subprocess.PIPE, process_group=0
    )
    assert waiter.stdout.readline() == b"waits\n"
    os.killpg(waiter.pid, signal.SIGSTOP)
    time.sleep(3.5)
    os.killpg(waiter.pid, signal.SIGCONT)
    assert waiter.wait() == 0
