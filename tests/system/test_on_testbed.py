"""The checks as they run: the real ReFrame, the real Slurm, real benchmarks."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from made_site import SMALL, written_site

from netproof import codec
from netproof.measurement.case import Case
from netproof.session import job_files, plan, session
from netproof.site import site
from netproof.site.partition import Partition

pytestmark = [pytest.mark.testbed, pytest.mark.usefixtures("testbed")]

ROOT = Path(__file__).resolve().parents[2]
STEP_LIMIT_S = 6
PINGPONG = ("-n", "ImbPingPong", "-S", "ImbJob.functions=PingPong")

FAULTY_IMB = """#!/bin/bash
# Bcast crashes on rank 1, Allreduce is killed on rank 1, Barrier hangs and will not be asked, but
# where it is what the library is asked by for its transport, which would take a minute.
case "${!#} $SLURM_PROCID${I_MPI_DEBUG:+ asked}" in
"Bcast 1") kill -SEGV $$ ;;
"Allreduce 1") kill -KILL $$ ;;
"Barrier 0" | "Barrier 1")
    trap '' TERM
    while :; do sleep 1; done
    ;;
esac
exec IMB "$@"
"""

CRASHING_ONCE = """#!/bin/bash
# Rank 1 crashes when it is started first, for each of these.
case "${!#} ${0##*/} $SLURM_PROCID" in
"PingPong IMB-MPI1 1" | "Sendrecv IMB-MPI1 1" | "tcp-inter-node-oneway.1.np NPtcp 1")
    mkdir "MARKS/${!#}" 2>/dev/null && kill -SEGV $$
    ;;
esac
exec PROGRAM "$@"
"""

FAULTY_SITE = """
for partition in site_configuration["systems"][0]["partitions"]:
    partition["extras"] |= SMALL | {"step_limit_s": LIMIT}
for environment in site_configuration["environments"]:
    environment["env_vars"].append(["PATH", "WRAPPERS:$PATH"])
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


EARLY_SACCT = """#!/bin/bash
# Tells of one node of those that a job has, as it does now and then when it is asked too early.
REAL "$@" | sed -E 's/(gige-)\\[([0-9]+)[-,][0-9,-]+\\]/\\1\\2/'
"""


@pytest.fixture(scope="module")
def small(run, tmp_path_factory) -> Path:
    """Folder of a run of one environment: one IMB check, four of NetPIPE, two jobs.

    Its sacct does not know all nodes of a job.
    """
    folder = tmp_path_factory.mktemp("small")
    few = ("-n", "ImbPingPong|NetpipeMpi", "-S", "ImbJob.functions=PingPong")
    program(folder / "bin" / "sacct", EARLY_SACCT.replace("REAL", shutil.which("sacct")))
    run(folder, *reframe("-p", "intelmpi", *few), PATH=f"{folder / 'bin'}:{os.environ['PATH']}")
    return folder


def site_with(folder: Path) -> str:
    """Folder of the testbed's site, whose environments have the programs of ``folder``/bin."""
    text = FAULTY_SITE.replace("WRAPPERS", str(folder / "bin")).replace("SMALL", repr(SMALL))
    return written_site(folder, text.replace("LIMIT", str(STEP_LIMIT_S)))


@pytest.fixture(scope="module")
def crashing_once(run, tmp_path_factory) -> Path:
    """Folder of a run in which two launches of IMB and one of NetPIPE crash once."""
    folder = tmp_path_factory.mktemp("once")
    (folder / "marks").mkdir()
    text = CRASHING_ONCE.replace("MARKS", str(folder / "marks"))
    imb = ROOT / ".opt" / "intelmpi" / "bin" / "IMB-MPI1"
    program(folder / "bin" / "IMB-MPI1", text.replace("PROGRAM", str(imb)))
    program(folder / "bin" / "NPtcp", text.replace("PROGRAM", "/usr/bin/NPtcp"))
    (folder / "bin" / "NPmpi").symlink_to(imb.with_name("NPmpi"))
    names = "ImbPingPong|ImbSendrecv.*ranks=2|NetpipeTcp.*inter-node.*oneway"
    few = (
        "-S",
        "ImbJob.functions=PingPong,Sendrecv",
        "-S",
        "NetpipeJob.variants=tcp-inter-node-oneway",
    )
    run(folder, *reframe("-p", "intelmpi", "-n", names, *few), RFM_CONFIG_PATH=site_with(folder))
    return folder


@pytest.fixture(scope="module")
def faulty(run, tmp_path_factory) -> Path:
    """Folder of a run in which functions of IMB crash, are killed and hang."""
    folder = tmp_path_factory.mktemp("faulty")
    imb = ROOT / ".opt" / "intelmpi" / "bin" / "IMB-MPI1"
    program(folder / "bin" / "IMB-MPI1", FAULTY_IMB.replace("IMB ", f"{imb} "))
    ran = run(
        folder,
        *reframe("-p", "intelmpi", "-n", "Imb.*ranks=2"),
        RFM_CONFIG_PATH=site_with(folder),
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
    return sorted({r.measured.jobid for r in results(folder).values() if r.measured})


def test_a_run_keeps_what_how_where_and_in_which_order_it_measured(small):
    checks = results(small)
    assert len(checks) == 5
    for name, check in checks.items():
        # A busy machine's values may miss their references, and need not pass here.
        assert check.measured is not None, check.reason
        kept = {**check.extras, **codec.encode(check.measured)}
        assert kept["case"]["environment"] == "intelmpi"
        assert kept["seed"] > 0
        # One of them, and others after it where it was disturbed.
        assert kept["launches"]
        for launch in kept["launches"]:
            assert {*launch["ranks"]} == (
                {"gige-1"} if "intra-node" in name else {"gige-1", "gige-2"}
            )
            assert launch["order"] >= 1
            times = zip(launch["used"]["cpu_s"], launch["used"]["wall_s"], strict=True)
            assert all(0 < cpu_s < 4 * wall_s for cpu_s, wall_s in times)
        assert kept["partition_extras"]["switch"] == "gige"
        assert check.measured.curve.sizes
    orders = [checks[name].measured.launches[0].order for name in checks if "bi" in name]
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


def test_a_job_is_believed_and_not_a_sacct_that_does_not_know_all_of_its_nodes(small):
    report = json.loads((small / "run-0.json").read_text())
    lists = [test["job_nodelist"] for test in report["runs"][0]["testcases"]]
    assert ["gige-1"] in lists
    several = [one for one in session.load(small / "run-0.json").results if one.kind == "launches"]
    assert {job.nodes for job in several} == {("gige-1", "gige-2")}


def test_what_did_not_run_fails_the_verdict(run, small):
    judged = run(small, "netproof", "verdict", "--all", "run-0.json", "testbed:gige")
    assert judged.returncode == 1
    assert ": did not run: the session does not have it" in judged.stdout
    assert "no scores for 19 functions: the baseline gige mpich did not run them" in judged.stdout


def test_a_crash_or_a_hang_leaves_the_other_functions_standing(faulty):
    whole = {r.case.function for r in results(faulty).values() if r.measured}
    assert whole == {"PingPong", "Sendrecv", "Allgather", "Alltoall", "Reduce_scatter"}


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("Bcast", "task 1: Exited with exit code 139"),
        ("Allreduce", "task 1: Exited with exit code 137"),
        ("Barrier", f"Barrier.1 was ended at its limit of {STEP_LIMIT_S} s"),
    ],
)
def test_the_reason_names_the_file_and_what_happened(faulty, function, reason):
    check = results(faulty)[f"{function} inter-node oneway"]
    assert check.result == "fail"
    assert f"{function}.1.err: {function}.1 " in check.reason
    assert check.reason.count(reason) == 1


@pytest.mark.parametrize(
    ("check", "launch"),
    [
        ("PingPong inter-node oneway", "PingPong.1"),
        ("Sendrecv inter-node oneway", "Sendrecv.1"),
        ("tcp inter-node oneway", "tcp-inter-node-oneway.1"),
    ],
)
def test_a_launch_that_crashes_once_is_launched_again_and_its_case_is_complete(
    crashing_once, check, launch
):
    result = results(crashing_once)[check]
    # A busy machine's landmarks may miss their references.
    assert result.phase in ("", "performance"), result.reason
    (crash,) = result.measured.crashes
    assert (crash.number, crash.attempt, crash.died_on) == (1, 1, ("gige-2",))
    assert crash.status != 0
    assert "gige-2: task 1: Exited with exit code 139" in crash.said
    (first,) = crashing_once.rglob(f"{launch}~1.err")
    assert first.with_name(f"{launch}.err").is_file()


def test_the_verdict_warns_of_a_crash_and_counts_them(run, crashing_once):
    judged = run(crashing_once, "netproof", "verdict", "--all", "run-0.json", "testbed:gige")
    case = "testbed:gige intelmpi IMB PingPong 2 ranks"
    assert re.search(f"WARN {case}.*: launch 1 crashed on gige-2 before its first", judged.stdout)
    assert re.search(r"launches: \d+, crashed: 3\n", judged.stdout)
    assert re.search(
        r"FAIL gige intelmpi: 3 of \d+ launches crashed \([\d.]+ %, above 2 % is flagged\)",
        judged.stdout,
    )


def test_checks_of_a_job_of_which_too_many_launches_crashed_are_red_in_the_run_too(crashing_once):
    (run,) = json.loads((crashing_once / "run-0.json").read_text())["runs"]
    checks = [one for one in run["testcases"] if one["unique_name"].startswith(("ImbP", "ImbS"))]
    assert {one["result"] for one in checks} == {"fail"}
    # A busy machine's landmarks may miss their references, and it has more launches made.
    for reason in (one["fail_reason"] for one in checks if one["netproof_met"]):
        told = re.search(
            r"gige intelmpi: 2 of (\d+) launches crashed \(([\d.]+) %, above 2 % is flagged\)",
            reason,
        )
        assert told, reason
        made, share = int(told[1]), float(told[2])
        assert made >= 4
        assert share == pytest.approx(200 / made, rel=0.05)


def test_a_launch_that_always_crashes_is_told_with_its_attempts(faulty):
    reason = results(faulty)["Bcast inter-node oneway"].reason
    assert "in the last of 4 attempts of which each crashed" in reason
    assert not list(faulty.glob("stage/**/Barrier.1~1.err")), "a launch that hangs has one attempt"


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
    return Partition.model_validate({**extras, "netpipe_repeats": 1000000})


def nptcp_job(folder: Path, partition: Partition) -> list[str]:
    """Files of a job with one launch, NPtcp between two nodes; the command that submits it."""
    case = Case("testbed", "gige", "openmpi4", "netpipe", "tcp", 2, 1)
    alone = plan.step_of(case, 1, partition, ["srun"])
    plan.JobPlan(1, partition.model_dump(), ((alone,),), describe_nodes=False).write(folder)
    for source in plan.SHELL_FILES:
        (folder / source.name).write_bytes(source.read_bytes())
    program(folder / plan.SCRIPT, plan.script(sys.executable, ROOT))
    options = ["--nodes=2", "--ntasks-per-node=1", "--exclusive", "--partition=gige"]
    options += ["--job-name=netproof-testbed", "--dependency=singleton", f"--chdir={folder}"]
    return ["sbatch", "--parsable", *options, plan.SCRIPT]


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
    step = job_files.records(tmp_path)["tcp-inter-node-oneway.1"]
    assert step.status not in (0, *job_files.TIMED_OUT_STATUS)
    assert left_of(jobid) == []


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
    ran = run(tmp_path, *reframe("-p", "intelmpi", *PINGPONG, checks=tmp_path / "checks"))
    assert ran.returncode != 0
    judged = run(tmp_path, "netproof", "verdict", "--all", "run-0.json", "testbed:gige")
    assert judged.returncode == 1
    assert "intelmpi IMB PingPong 2 ranks: fail in performance: attribute error" in judged.stdout


def test_a_partition_that_is_down_is_no_pass_and_no_failed_network(run, tmp_path):
    def set_state(state: str) -> None:
        command = ("scontrol", "update", "PartitionName=gige", f"State={state}")
        assert run(tmp_path, *command).returncode == 0

    set_state("DOWN")
    try:
        ran = run(
            tmp_path,
            *reframe("-p", "intelmpi", *PINGPONG, "-S", "max_pending_time=3s"),
        )
    finally:
        set_state("UP")
    assert ran.returncode != 0
    judged = run(tmp_path, "netproof", "verdict", "--all", "run-0.json", "testbed:gige")
    assert judged.returncode == 3
    assert re.search(r"the job left no \S+, and Slurm has it as CANCELLED", judged.stdout)
