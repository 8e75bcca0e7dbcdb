"""The checks as they run: the real ReFrame, the real Slurm, real benchmarks."""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from netproof import measured, plan, session, site
from netproof.site import Partition

pytestmark = [pytest.mark.testbed, pytest.mark.usefixtures("testbed")]

ROOT = Path(__file__).resolve().parents[2]
STEP_LIMIT_S = 6

FAULTY_IMB = """#!/bin/bash
# Bcast crashes on rank 1, Allreduce is killed on rank 1, Barrier hangs and will not be asked.
case "${!#} $SLURM_PROCID" in
"Bcast 1") kill -SEGV $$ ;;
"Allreduce 1") kill -KILL $$ ;;
Barrier*)
    trap '' TERM
    while :; do sleep 1; done
    ;;
esac
exec IMB "$@"
"""

FAULTY_SITE = """import runpy
site_configuration = runpy.run_path("SITE")["site_configuration"]
for partition in site_configuration["systems"][0]["partitions"]:
    partition["extras"]["step_limit_s"] = LIMIT
for environment in site_configuration["environments"]:
    environment["env_vars"].append(["PATH", "WRAPPERS:$PATH"])
"""

SETTINGS = """from pathlib import Path
from netproof import site
site_configuration = site.gather(Path(__file__).parent)
"""


def reframe(*options: str, checks: Path = ROOT / "checks") -> tuple[str, ...]:
    gige = ("--system", "testbed:gige", "-S", "launches=1")
    return ("reframe", *gige, "-c", str(checks), *options, "-r")


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def left_of(jobid: str) -> list[str]:
    """Command lines of the processes that a Slurm job has started, on whatever node."""
    found = []
    mark = f"SLURM_JOB_ID={jobid}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            # It has ended, or is not for root to read, and so none of a job's.
            continue
    return found


def eventually(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


@pytest.fixture(scope="module")
def small(run, tmp_path_factory) -> Path:
    """Folder of a run of one environment: one IMB check, four of NetPIPE, two jobs."""
    folder = tmp_path_factory.mktemp("small")
    ran = run(folder, *reframe("-p", "intelmpi", "-n", "ImbPingPong|NetpipeMpi"))
    assert ran.returncode == 0, ran.stdout
    return folder


@pytest.fixture(scope="module")
def faulty(run, tmp_path_factory) -> Path:
    """Folder of a run in which functions of IMB crash, are killed and hang."""
    folder = tmp_path_factory.mktemp("faulty")
    imb = ROOT / ".opt" / "intelmpi" / "bin" / "IMB-MPI1"
    program(folder / "bin" / "IMB-MPI1", FAULTY_IMB.replace("IMB ", f"{imb} "))
    (folder / "site").mkdir()
    (folder / "site" / "settings.py").write_text(SETTINGS)
    (folder / "site" / "testbed.py").write_text(
        FAULTY_SITE.replace("SITE", str(ROOT / "site-config" / "testbed.py"))
        .replace("WRAPPERS", str(folder / "bin"))
        .replace("LIMIT", str(STEP_LIMIT_S))
    )
    ran = run(
        folder,
        *reframe("-p", "intelmpi", "-n", "Imb.*ranks=2"),
        RFM_CONFIG_PATH=str(folder / "site"),
    )
    assert ran.returncode != 0, ran.stdout
    return folder


def results(folder: Path) -> dict[str, session.CheckResult]:
    """The checks of the run in ``folder`` by function, NetPIPE's with path and direction."""
    stored = session.load(folder / "run-0.json")
    return {
        " ".join([r.case.function, r.case.path, r.case.direction]): r
        for r in stored.results
        if r.case is not None
    }


def jobids(folder: Path) -> list[str]:
    return sorted({r.measured["jobid"] for r in results(folder).values() if r.measured})


def test_a_run_keeps_what_how_where_and_in_which_order_it_measured(small):
    checks = results(small)
    assert len(checks) == 5
    for name, check in checks.items():
        kept = check.measured
        (launch,) = kept["launches"]
        nodes = {rank["node"] for rank in launch["ranks"]}
        assert check.result == "pass"
        assert kept["case"]["environment"] == "intelmpi"
        assert nodes == ({"gige-1"} if "inside" in name else {"gige-1", "gige-2"})
        assert launch["order"] >= 1
        assert kept["seed"] > 0
        assert all(0 < rank["cpu_s"] < 4 * rank["wall_s"] for rank in launch["ranks"])
        assert kept["partition_extras"]["switch"] == "gige"
        assert len(kept["curve"]["sizes"]) == len(kept["curve"]["time_us"])
    orders = [checks[name].measured["launches"][0]["order"] for name in checks if "bi" in name]
    assert len(set(orders)) == len(orders)


def test_jobs_of_one_contention_domain_never_measure_at_the_same_time(run, small, faulty):
    ids = jobids(small) + jobids(faulty)
    assert len(ids) == 3
    shown = run(
        small, "sacct", "-X", "-n", "-P", f"--jobs={','.join(ids)}", "--format=Start,End,JobName"
    ).stdout
    jobs = sorted(line.split("|") for line in shown.splitlines())
    assert {name for _, _, name in jobs} == {"netproof-testbed"}
    assert all(end <= start for (_, end, _), (start, _, _) in itertools.pairwise(jobs))


def test_a_second_job_is_held_while_one_measures(run, tmp_path):
    first, second = (
        run(
            tmp_path,
            *("sbatch", "--parsable", "--job-name=netproof-testbed", "--dependency=singleton"),
            *(f"--partition={partition}", f"--output={tmp_path}/out", "--wrap", "sleep 2"),
        ).stdout.strip()
        for partition in ("gige", "fast-ethernet")
    )

    def shown() -> list[list[str]]:
        command = ("sacct", "-X", "-n", "-P", f"--jobs={first},{second}", "--format=Start,End")
        return sorted(line.split("|") for line in run(tmp_path, *command).stdout.splitlines())

    eventually(
        lambda: len(shown()) == 2 and all("Unknown" not in times for times in shown()),
        "the two jobs did not end",
    )
    (_, first_end), (second_start, _) = shown()
    assert first_end <= second_start


def test_what_did_not_run_fails_the_verdict(run, small):
    judged = run(small, "netproof", "verdict", "run-0.json", "--system", "testbed:gige")
    assert judged.returncode == 1
    assert ": did not run: the session does not have it" in judged.stdout
    assert "no scores for 23 functions: the baseline gige mpich did not run them" in judged.stdout


def test_a_crash_or_a_hang_leaves_the_other_functions_standing(faulty):
    passed = {r.case.function for r in results(faulty).values() if r.result == "pass"}
    assert passed == {"PingPong", "Sendrecv", "Allgather", "Alltoall", "Reduce_scatter"}


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("Bcast", "task 1: Exited with exit code 139"),
        ("Allreduce", "task 1: Exited with exit code 137"),
        ("Barrier", f"Barrier.1 was ended at its limit of {STEP_LIMIT_S} s"),
    ],
)
def test_the_reason_names_the_file_and_what_happened(faulty, function, reason):
    check = results(faulty)[f"{function} between oneway"]
    assert check.result == "fail"
    assert f"{function}.1.err: {function}.1 " in check.reason
    assert check.reason.count(reason) == 1


def test_no_process_of_a_crashed_or_hung_step_is_left(faulty):
    (jobid,) = jobids(faulty)
    assert left_of(jobid) == []


@pytest.fixture(scope="module")
def gige() -> Partition:
    """The partition, with so many round trips that a launch takes minutes."""
    system = next(
        entry
        for entry in site.gather(ROOT / "site-config")["systems"]
        if entry["name"] == "testbed"
    )
    extras = next(p["extras"] for p in system["partitions"] if p["name"] == "gige")
    return dataclasses.replace(Partition.from_extras(extras), netpipe_repeats=1000000)


def nptcp_job(folder: Path, partition: Partition) -> list[str]:
    """Files of a job with one launch, NPtcp between two nodes; the command that submits it."""
    steps = plan.netpipe_steps(1, partition, ["srun"], seed=1)
    script = plan.script(steps, partition, over_tcp=True, describe_nodes=False)
    lines = [
        line
        for line in script.splitlines()
        if not line.startswith("step ") or line.startswith("step tcp-between-oneway.1 ")
    ]
    for source in plan.SHELL_FILES:
        (folder / source.name).write_bytes(source.read_bytes())
    program(folder / "launches.sh", "\n".join([*lines, ""]))
    options = ["--nodes=2", "--ntasks-per-node=1", "--exclusive", "--partition=gige"]
    options += ["--job-name=netproof-testbed", "--dependency=singleton", f"--chdir={folder}"]
    return ["sbatch", "--parsable", *options, "launches.sh"]


@pytest.mark.parametrize(
    "sender",
    ["exec false", "exec timeout --signal=KILL 1 /usr/bin/NPtcp"],
    ids=["before it connects", "while it sends"],
)
def test_a_receiver_ends_when_its_sender_dies(run, tmp_path, gige, sender):
    program(
        tmp_path / "bin" / "NPtcp",
        f"#!/bin/bash\n"
        f'case " $* " in *" -h "*) {sender} "$@" ;; *) exec /usr/bin/NPtcp "$@" ;; esac\n',
    )
    command = nptcp_job(tmp_path, gige)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    submitted = run(tmp_path, command[0], "--wait", *command[1:], PATH=path)
    jobid = submitted.stdout.strip()
    assert jobid, submitted.stderr
    step = measured.records(tmp_path)["tcp-between-oneway.1"]
    assert step.status not in (0, *measured.TIMED_OUT_STATUS)
    assert left_of(jobid) == []


def test_a_cancelled_job_leaves_neither_receiver_nor_sender(run, tmp_path, gige):
    jobid = run(tmp_path, *nptcp_job(tmp_path, gige)).stdout.strip()

    def ends() -> int:
        return sum(command.startswith("NPtcp ") for command in left_of(jobid))

    eventually(lambda: ends() == 2, "receiver and sender did not come up")
    run(tmp_path, "scancel", jobid)
    eventually(
        lambda: (
            "CANCELLED" in run(tmp_path, "sacct", "-X", "-n", "-j", jobid, "-o", "State").stdout
        ),
        "the job was not cancelled",
    )
    eventually(lambda: left_of(jobid) == [], f"left: {left_of(jobid)}")


def test_a_class_without_references_fails(run, tmp_path):
    text = (ROOT / "reference-values" / "testbed.yaml").read_text()
    blocks = [b for b in text.split("\n\n") if not b.startswith("ImbPingPong:")]
    (tmp_path / "testbed.yaml").write_text("\n\n".join(blocks))
    ran = run(
        tmp_path,
        *reframe("-p", "intelmpi", "-n", "ImbPingPong"),
        RFM_REFERENCE_PREFIX=str(tmp_path),
    )
    assert ran.returncode != 0
    judged = run(tmp_path, "netproof", "verdict", "run-0.json", "--system", "testbed:gige")
    assert judged.returncode == 1
    flat = " ".join(judged.stdout.split())
    assert "testbed.yaml has no ImbPingPong for testbed:gige, intelmpi" in flat
    assert "object at 0x" not in flat


def test_a_value_that_raises_fails_its_check(run, tmp_path):
    text = (ROOT / "checks" / "imb.py").read_text()
    leaf = '    function = "PingPong"\n'
    assert text.count(leaf) == 1
    broken = """
    @run_after("sanity")
    def lose_the_curve(self):
        self.measured = None
"""
    (tmp_path / "checks").mkdir()
    hooks = "from reframe.core.builtins import run_after\n"
    (tmp_path / "checks" / "imb.py").write_text(hooks + text.replace(leaf, leaf + broken))
    ran = run(tmp_path, *reframe("-p", "intelmpi", "-n", "ImbPingPong", checks=tmp_path / "checks"))
    assert ran.returncode != 0
    judged = run(tmp_path, "netproof", "verdict", "run-0.json", "--system", "testbed:gige")
    assert judged.returncode == 1
    assert "intelmpi IMB PingPong 2 ranks: fail in performance: attribute error" in judged.stdout


def test_a_partition_that_is_down_fails_the_verdict(run, tmp_path):
    def set_state(state: str) -> None:
        command = ("scontrol", "update", "PartitionName=gige", f"State={state}")
        assert run(tmp_path, *command).returncode == 0

    set_state("DOWN")
    try:
        ran = run(
            tmp_path,
            *reframe("-p", "intelmpi", "-n", "ImbPingPong", "-S", "max_pending_time=3s"),
        )
    finally:
        set_state("UP")
    assert ran.returncode != 0
    judged = run(tmp_path, "netproof", "verdict", "run-0.json", "--system", "testbed:gige")
    assert judged.returncode == 1
    assert re.search(r"the job left no \S+, and Slurm has it as CANCELLED", judged.stdout)
