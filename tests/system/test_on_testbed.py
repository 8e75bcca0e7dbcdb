"""The checks as they run: the real ReFrame, the real Slurm, real benchmarks.

A run is healthy, one has programs that crash and hang, and one has slow and unlike nodes.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_site import SMALL, settings_of
from made_testbed import done, started_with

from netproof import codec
from netproof.pairs import verdict as pairs
from netproof.session import session
from netproof.site.partition import Partition

pytestmark = [pytest.mark.testbed, pytest.mark.usefixtures("testbed")]

ROOT = Path(__file__).resolve().parents[2]
STEP_LIMIT_S = 6
SLOW = "fast-ethernet-2"
"""One of the two nodes that a job of two gets."""

IMB = """#!/bin/bash
# On rank 1 PingPong and Sendrecv crash when they are started first, Bcast crashes always, and
# Allreduce is killed. Barrier hangs and will not be asked, but where it is what the library is
# asked by for its transport, which would take a minute.
case "${!#} $SLURM_PROCID${I_MPI_DEBUG:+ asked}" in
"PingPong 1" | "Sendrecv 1") mkdir "$0.${!#}" 2>/dev/null && kill -SEGV $$ ;;
"Bcast 1") kill -SEGV $$ ;;
"Allreduce 1") kill -KILL $$ ;;
"Barrier 0" | "Barrier 1")
    trap '' TERM
    while :; do sleep 1; done
    ;;
esac
exec PROGRAM "$@"
"""

NPTCP = """#!/bin/bash
[ "${!#} $SLURM_PROCID" != "tcp-inter-node-oneway.1.np 1" ] || ! mkdir "$0.crashed" || kill -SEGV $$
exec /usr/bin/NPtcp "$@"
"""

WRAPPED = """
for environment in site_configuration["environments"]:
    environment["env_vars"].append(["PATH", "WRAPPERS:$PATH"])
"""

LOSES_ITS_CURVE = """
    @run_after("sanity")
    def lose_the_curve(self):
        self.measured = None
"""


def reframe(partition: str, *options: str, checks: Path = ROOT / "checks") -> tuple[str, ...]:
    place = ("--system", f"testbed:{partition}", "-S", "launches=1", "-c", str(checks))
    return ("reframe", *place, *options, "-r")


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture(scope="module")
def healthy(run, tmp_path_factory) -> Path:
    """Folder of a run of one environment: two checks of IMB and two of NetPIPE, three jobs."""
    folder = tmp_path_factory.mktemp("healthy")
    few = ("-n", "ImbPingPong|ImbSendrecv.*ranks=4|NetpipeMpi.*oneway")
    settings = settings_of(folder, **SMALL, twin=[])
    settings["RFM_REPORT_FILE"] = str(folder / "run-0.json")
    run(folder, *reframe("gige", "-p", "intelmpi", *few), **settings)
    return folder


@pytest.fixture(scope="module")
def crashed(run, tmp_path_factory) -> Path:
    """Folder of a run with programs that crash, are killed and hang, and a check that raises."""
    folder = tmp_path_factory.mktemp("crashed")
    imb = ROOT / ".opt" / "intelmpi" / "bin" / "IMB-MPI1"
    program(folder / "bin" / "IMB-MPI1", IMB.replace("PROGRAM", str(imb)))
    program(folder / "bin" / "NPtcp", NPTCP)
    (folder / "bin" / "NPmpi").symlink_to(imb.with_name("NPmpi"))
    checks = Path(shutil.copytree(ROOT / "checks", folder / "checks"))
    text, leaf = (checks / "mpi.py").read_text(), '    function = "Allgather"\n'
    assert text.count(leaf) == 1
    text = text.replace(leaf, leaf + LOSES_ITS_CURVE)
    (checks / "mpi.py").write_text(f"from reframe.core.builtins import run_after\n{text}")
    functions = ("PingPong", "Sendrecv", "Alltoall", "Allgather", "Bcast", "Allreduce", "Barrier")
    names = f"Imb({'|'.join(functions)}).*ranks=2|NetpipeTcp.*inter-node.*oneway"
    asked = ("-n", names)
    wrapped = WRAPPED.replace("WRAPPERS", str(folder / "bin"))
    settings = settings_of(folder, wrapped, **SMALL, twin=[], step_limit_s=STEP_LIMIT_S)
    settings["RFM_REPORT_FILE"] = str(folder / "run-0.json")
    ran = run(folder, *reframe("gige", "-p", "intelmpi", *asked, checks=checks), **settings)
    assert ran.returncode != 0, ran.stdout
    return folder


@pytest.fixture(scope="module")
def slow(run, tmp_path_factory, testbed) -> Iterator[Path]:
    """Folder of a run on nodes of which one is at half of its rate, and another is unlike."""
    folder = tmp_path_factory.mktemp("slow")
    done("plant", SLOW, "rate=0.5")
    done("plant", "fast-ethernet-3", "net.ipv4.tcp_sack=0")
    asked = ("-n", "Pair|NetpipeTcp.*inter-node.*oneway", "-p", "mpich")
    settings = settings_of(folder, netpipe_repeats=4)
    settings["RFM_REPORT_FILE"] = str(folder / "run-0.json")
    run(folder, *reframe("fast-ethernet", *asked), **settings)
    yield folder
    done("lift")


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


def verdict(run, folder: Path, partition: str) -> dict[str, Any]:
    asked = ("netproof", "verdict", "run-0.json", f"testbed:{partition}", "--format=json")
    said: dict[str, Any] = json.loads(run(folder, *asked).stdout)
    return said


def test_a_run_keeps_what_how_where_and_in_which_order_it_measured(healthy):
    checks = results(healthy)
    assert len(checks) == 4
    for name, check in checks.items():
        # A busy machine's values may miss their references, and need not pass here.
        assert check.measured is not None, check.reason
        kept = {**check.extras, **codec.encode(check.measured)}
        assert kept["case"]["environment"] == "intelmpi"
        assert kept["seed"] > 0
        # One of them, and others after it where it was disturbed.
        assert kept["launches"]
        count = {"Sendrecv": 4}.get(check.case.function, 1 if "intra-node" in name else 2)
        for launch in kept["launches"]:
            assert {*launch["ranks"]} == {f"gige-{number}" for number in range(1, count + 1)}
            assert launch["order"] >= 1
            times = zip(launch["used"]["cpu_s"], launch["used"]["wall_s"], strict=True)
            assert all(0 < cpu_s < 4 * wall_s for cpu_s, wall_s in times)
        assert kept["partition_extras"]["switch"] == "gige"
        assert check.measured.curve.sizes
    orders = [one.measured.launches[0].order for name, one in checks.items() if "mpi" in name]
    assert len(set(orders)) == len(orders) == 2


def test_healthy_nodes_are_the_same_all_are_measured_and_what_did_not_run_fails(run, healthy):
    said = verdict(run, healthy, "gige")
    assert said["nodes"] == []
    (covered,) = said["coverage"]
    assert covered["sentence"] == "gige: 4 of 4 usable nodes measured"
    assert covered["asked"]
    assert covered["known"]
    assert said["verdict"] == "fail"
    missing = [one for one in said["cases"] if one["function"] == "Bcast"]
    assert all("did not run: the session does not have it" in one["faults"][0] for one in missing)


def test_jobs_of_one_contention_domain_never_measure_at_the_same_time(run, healthy, crashed, slow):
    ids = ",".join([*jobids(healthy), *jobids(crashed), *jobids(slow)])
    asked = ("sacct", "-X", "-n", "-P", f"--jobs={ids}", "--format=Start,End,JobName")
    jobs = sorted(line.split("|") for line in run(healthy, *asked).stdout.splitlines())
    assert len(jobs) >= 6
    assert {name for _, _, name in jobs} == {"netproof-testbed"}
    assert all(end <= start for (_, end, _), (start, _, _) in itertools.pairwise(jobs))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("Bcast", "task 1: Exited with exit code 139"),
        ("Allreduce", "task 1: Exited with exit code 137"),
        ("Barrier", f"Barrier.1 was ended at its limit of {STEP_LIMIT_S} s"),
    ],
)
def test_a_crash_or_hang_names_file_and_reason_and_leaves_the_others_standing(
    crashed, function, reason
):
    checks = results(crashed)
    whole = {check.case.function for check in checks.values() if check.measured}
    assert whole == {"PingPong", "Sendrecv", "Alltoall", "Allgather", "tcp"}
    check = checks[f"{function} inter-node oneway"]
    assert check.result == "fail"
    assert f"{function}.1.err: {function}.1 " in check.reason
    assert check.reason.count(reason) == 1
    if function == "Bcast":
        assert "in the last of 4 attempts of which each crashed" in check.reason
    assert not list(crashed.glob("stage/**/Barrier.1~1.err")), "a launch that hangs has one attempt"


@pytest.mark.parametrize(
    ("check", "launch"),
    [
        ("PingPong inter-node oneway", "PingPong.1"),
        ("Sendrecv inter-node oneway", "Sendrecv.1"),
        ("tcp inter-node oneway", "tcp-inter-node-oneway.1"),
    ],
)
def test_a_launch_that_crashes_once_is_launched_again_and_its_case_is_complete(
    crashed, check, launch
):
    result = results(crashed)[check]
    assert result.measured is not None, result.reason
    (crash,) = result.measured.crashes
    assert (crash.number, crash.attempt, crash.died_on) == (1, 1, ("gige-2",))
    assert crash.status != 0
    assert "gige-2: task 1: Exited with exit code 139" in crash.said
    (first,) = crashed.rglob(f"{launch}~1.err")
    assert first.with_name(f"{launch}.err").is_file()


def test_crashes_are_counted_and_too_many_fail_verdict_and_checks(run, crashed):
    judged = run(crashed, "netproof", "verdict", "--all", "run-0.json", "testbed:gige")
    case = "testbed:gige intelmpi IMB PingPong 2 ranks"
    assert re.search(f"WARN {case}.*: launch 1 crashed on gige-2 before its first", judged.stdout)
    share = r"gige intelmpi: (\d+) of (\d+) launches crashed \(([\d.]+) %, flagged above 2 %\)"
    assert re.search(f"FAIL {share}", judged.stdout)
    assert "IMB Allgather 2 ranks: fail in performance: attribute error" in judged.stdout
    (recorded,) = json.loads((crashed / "run-0.json").read_text())["runs"]
    names = ("ImbPingPong", "ImbSendrecv")
    checks = [one for one in recorded["testcases"] if one["unique_name"].startswith(names)]
    assert {one["result"] for one in checks} == {"fail"}
    # A busy machine's landmarks may miss their references.
    assert all(re.search(share, one["fail_reason"]) for one in checks if one["netproof_met"])


def test_no_process_of_a_crashed_or_hung_step_is_left(crashed):
    assert [started_with(f"SLURM_JOB_ID={jobid}") for jobid in jobids(crashed)] == [[], []]


def test_a_link_at_half_rate_is_red_by_its_twin(slow):
    found = results(slow)["tcp inter-node oneway"]
    assert (found.result, found.phase) == ("fail", "performance")
    assert "paired_share" in found.reason
    assert len(found.measured.launches) > 1, "it was not measured again before it counted"
    assert 0.4 < found.measured.landmarks.paired_share < 0.7


def test_a_port_at_half_rate_is_accused_and_no_other(slow):
    (found,) = (one for one in session.load(slow / "run-0.json").results if one.kind == "pairs")
    assert found.rounds is not None, found.reason
    assert (found.result, found.phase) == ("fail", "sanity")
    site = Partition.model_validate(found.extras["partition_extras"])
    judged = pairs.judge(found.rounds, site.pair_settings(), site.settings().disturbance)
    assert [node for one in judged.judgement.accusations for node in one.nodes] == [SLOW]
    assert SLOW in found.reason
    low, high = judged.judgement.accusations[0].effects[0].interval
    assert low < high < 0.75
    assert any(one.alone for one in judged.rounds.launches)


def test_another_sysctl_fails_in_a_sentence(run, slow):
    said = verdict(run, slow, "fast-ethernet")
    assert (
        "fast-ethernet: fast-ethernet-3: sysctl net.ipv4.tcp_sack = 0, 3 others 1" in said["faults"]
    )
    assert said["verdict"] == "fail"
