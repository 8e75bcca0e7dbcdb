"""Every check of every partition and environment can be made, and no more than is expected."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from made_altered_site import altered_site

from netproof.measurement.case import Case
from netproof.session import plan, session
from netproof.session.plan import JobPlan
from netproof.site import site
from netproof.site.matrix import matrix
from netproof.verdict.judge import judge

# Each test runs ReFrame as a whole.
pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
CHECKS = ("reframe", "--system", "testbed", "-c", str(ROOT / "checks"), "-R")


@pytest.fixture(scope="module")
def dry(run, tmp_path_factory) -> tuple[str, session.Session]:
    """Output and report of a dry run of all checks."""
    folder = tmp_path_factory.mktemp("dry")
    ran = run(folder, *CHECKS, "--dry-run", "--warn-as-error")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr, session.load(folder / "run-0.json")


def test_every_check_comes_through_a_dry_run(dry):
    assert {result.result for result in dry[1].results} == {"pass"}
    assert "warning" not in dry[0].lower()
    # To read what it deprecated ReFrame looks at the whole stack, for each message of each check.
    (only,) = json.loads(dry[1].path.read_text())["runs"]
    for case in only["testcases"]:
        assert "descr" in case
        assert "variables" not in case


def test_the_checks_are_exactly_the_cases_of_the_matrix(dry):
    expected = matrix(site.gather(ROOT / "site-config"), "testbed", all_functions=True).cases
    made = [result.case for result in dry[1].results if result.case is not None]
    assert sorted(one.key() for one in made) == sorted(one.key() for one in expected)


def test_a_dry_run_is_no_passed_session(run, dry):
    for verb in ("verdict", "--full"), ("store", "add", "--store", "store"):
        refused = run(dry[1].path.parent, "netproof", *verb, "run-0.json")
        assert refused.returncode == 2
        assert (
            "run-0.json: is of a dry run, which measures nothing" in refused.stdout + refused.stderr
        )


ONE_PROTOCOL = """import runpy
site_configuration = runpy.run_path("SITE")["site_configuration"]
for environment in site_configuration["environments"]:
    lacking = {"mpich": "netpipe-tcp", "intelmpi": "netpipe-mpi"}.get(environment["name"])
    if lacking:
        environment["features"].remove(lacking)
        environment["extras"]["absent"][lacking] = "not built"
"""


def test_an_environment_with_one_protocol_has_netpipe_measured_over_that(run, tmp_path):
    folder = altered_site(tmp_path, ONE_PROTOCOL)
    checks = ("reframe", "--system", "testbed:gige", "-c", str(ROOT / "checks" / "netpipe.py"))
    ran = run(tmp_path, *checks, "--dry-run", RFM_CONFIG_PATH=str(folder))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    made = [one.case for one in session.load(tmp_path / "run-0.json").results if one.case]
    expected = matrix(site.gather(folder), "testbed", ["gige"]).cases
    netpipe = [one.key() for one in expected if one.benchmark == "netpipe"]
    assert sorted(one.key() for one in made) == sorted(netpipe)
    launched = {"mpich": set(), "intelmpi": set(), "openmpi4": set()}
    for environment, starts in launched.items():
        (path,) = tmp_path.glob(f"stage/**/gige/*/NetpipeJob_*/{environment}/plan.json")
        steps = [step for unit in JobPlan.read(path).rounds for step in unit]
        words = {word for step in steps for word in step.command}
        starts |= words & {"./nptcp.sh", "NPmpi"}
    over_tcp, over_mpi = {"./nptcp.sh"}, {"NPmpi"}
    assert launched == {"mpich": over_mpi, "intelmpi": over_tcp, "openmpi4": over_tcp | over_mpi}


def test_of_500_nodes_every_one_is_measured_in_no_more_jobs_than_of_few(run, tmp_path):
    """A job takes all nodes at once, whatever their number: jobs are per test, not per node."""
    assert run(tmp_path, "netproof", "site", "init", "wide", ".").returncode == 0
    described = tmp_path / "site-config" / "wide.py"
    text = described.read_text()
    assert text.count('"nodes": 64') == 1
    text = text.replace('"nodes": 64', '"nodes": 500').replace('"lmod"', '"nomod"')
    # There is no Lmod here.
    described.write_text(re.sub(r'"modules": \[[^\]]*\],', "", text))
    ran = run(
        tmp_path,
        *("bash", "-c"),
        ". ./activate && reframe --system wide:summit -cchecks/{mpi,pairs}.py --dry-run",
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    tests = re.search(r"Ran (\d+)/\1 test case", ran.stdout)
    scripts = [path.read_text() for path in tmp_path.glob("**/stage/**/rfm_job.sh")]
    submitted = [text for text in scripts if "#SBATCH" in text]
    assert tests is not None
    assert int(tests[1]) > 20
    assert 0 < len(submitted) < 500
    assert any(re.search(r"^#SBATCH --ntasks=500$", text, re.MULTILINE) for text in submitted)
    # Both benchmarks of MPI are in the job of a rank count.
    several = [path.parent for path in tmp_path.glob("stage/**/MpiJob_*/rfm_job.sh")]
    assert several
    assert all({one.benchmark for one in planned(job)} == {"imb", "osu"} for job in several)


def planned(job: Path) -> list[Case]:
    """The cases of all environments of a job."""
    return [case for path in job.glob("*/plan.json") for case in JobPlan.read(path).cases]


NAMED = "ImbPingPong|ImbAlltoall.*ranks=4|NetpipeMpi.*inter-node.*oneway"


def test_a_job_measures_what_its_checks_are_for(run, tmp_path):
    checks = ("reframe", "--system", "testbed:gige", "-c", str(ROOT / "checks"))
    ran = run(tmp_path, *checks, "-p", "mpich", "-n", NAMED, "--dry-run")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    jobs = [path.parent for path in tmp_path.glob("stage/**/*Job_*/rfm_job.sh")]
    cases = sorted((one.benchmark, one.function, one.ranks) for job in jobs for one in planned(job))
    assert cases == [("imb", "Alltoall", 4), ("imb", "PingPong", 2), ("netpipe", "mpi", 2)]


def test_a_job_without_checks_is_skipped_and_no_fault(run, tmp_path):
    checks = ("reframe", "--system", "testbed:gige", "-c", str(ROOT / "checks"))
    ran = run(tmp_path, *checks, "-p", "mpich", "-T", "imb", "--dry-run")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("[no check of this run waits for it]") == 2
    report = tmp_path / "run-0.json"
    report.write_text(report.read_text().replace(" --dry-run", ""))
    said = run(tmp_path, "netproof", "verdict", "run-0.json", "testbed:gige").stdout
    assert "MpiJob" not in said


def test_jobs_alone_fail(run, tmp_path):
    checks = ("reframe", "--system", "testbed:gige", "-c", str(ROOT / "checks" / "mpi.py"))
    ran = run(tmp_path, *checks, "-n", "MpiJob", "--dry-run")
    assert ran.returncode == 1
    assert "no check of this run waits for a job: choose checks, not jobs" in ran.stdout


LIMITED = """import runpy
site_configuration = runpy.run_path("SITE")["site_configuration"]
for partition in site_configuration["systems"][0]["partitions"]:
    partition["extras"]["job_limit_s"] = 1200
"""


def test_jobs_of_a_limited_length_have_a_benchmark_each_and_all_environments(run, tmp_path):
    folder = altered_site(tmp_path, LIMITED)
    checks = ("reframe", "--system", "testbed:gige", "-c", str(ROOT / "checks" / "mpi.py"))
    ran = run(tmp_path, *checks, "-n", "Imb", "--dry-run", RFM_CONFIG_PATH=str(folder))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "MpiJob" not in ran.stdout
    scripts = [*tmp_path.glob("stage/**/ImbJob_*/rfm_job.sh")]
    assert len(scripts) == 2
    for script in scripts:
        assert "#SBATCH --time=0:20:0\n" in script.read_text()
        assert len({one.environment for one in planned(script.parent)}) > 1


# A run skips the cases that it is to skip, says so, and skips nothing else.

DRY = ("reframe", "--system", "testbed:gige", "-p", "mpich", "--dry-run", "-c")
TURN = "last measured 2026-11-18", True


@pytest.fixture(scope="module")
def expected():
    return matrix(site.gather(ROOT / "site-config"), "testbed", ["gige"])


def leaves(run, folder: Path, cases: list[Case], file: str, *options: str) -> session.Session:
    """A dry run of the checks of a file that leaves these cases."""
    folder.mkdir(exist_ok=True)
    plan.write_left(folder / "left.json", dict.fromkeys(cases, TURN))
    checks = str(ROOT / "checks" / file)
    ran = run(folder, *DRY, checks, *options, NETPROOF_LEFT=str(folder / "left.json"))
    assert ran.returncode == 0, ran.stdout
    return session.load(folder / "run-0.json")


def test_cases_are_left_and_a_job_of_which_no_case_stays(run, tmp_path, expected):
    imb = [
        case for case in expected.cases if case.environment == "mpich" and case.benchmark == "imb"
    ]
    four = [case for case in imb if case.ranks == 4]
    (one,) = [case for case in imb if case.function == "Alltoall" and case.ranks == 2]
    stored = leaves(run, tmp_path, [*four, one], "mpi.py")
    skipped = [result for result in stored.results if result.result == "skip"]
    assert {(result.skipped, result.planned) for result in skipped} == {TURN}
    left = sorted(case.key() for case in (*four, one))
    assert sorted(result.case.key() for result in skipped if result.case) == left
    assert [result.name.split()[0] for result in skipped if not result.case] == ["MpiJob"]
    assert {one.result for one in stored.results} == {"pass", "skip"}
    verdict = judge(expected, stored)
    assert sorted(case.key() for case, _ in verdict.skipped) == left
    assert not [fault for fault in verdict.faults if "skip" in fault]


def test_where_netpipe_is_left_in_all_environments_tcp_is_left_too(run, tmp_path, expected):
    netpipe = [
        case
        for case in expected.cases
        if case.benchmark == "netpipe" and case.environment in ("mpich", "openmpi4")
    ]
    assert {case.function for case in netpipe} == {"tcp", "mpi"}
    stored = leaves(run, tmp_path, netpipe, "netpipe.py", "-p", "openmpi4")
    assert {case for case, _ in judge(expected, stored).skipped} == {*netpipe}


def test_a_list_that_cannot_be_read_fails_every_job(run, tmp_path):
    (tmp_path / "left.json").write_text("[{")
    checks = str(ROOT / "checks" / "mpi.py")
    ran = run(tmp_path, *DRY, checks, NETPROOF_LEFT=str(tmp_path / "left.json"))
    assert ran.returncode == 1
    failed = [r for r in session.load(tmp_path / "run-0.json").results if r.result == "fail"]
    assert failed
    assert all("does not tell what to leave" in result.reason for result in failed)


def test_nodes_are_measured_in_pairs_unless_all_that_measures_them_is_left(run, tmp_path, expected):
    imb = [case for case in expected.cases if case.benchmark == "imb"]
    here = [case for case in imb if case.environment == "mpich"]
    for cases, result in ((here, "pass"), (imb, "skip")):
        # Both environments; one of them measures it.
        stored = leaves(run, tmp_path / result, cases, "pairs.py", "-p", "intelmpi")
        (job,) = [one for one in stored.results if one.name.startswith("PairJob")]
        assert (job.environment, job.result) == ("mpich", result)


def test_a_check_without_a_job_on_its_partition_says_where_that_is_declared(run, tmp_path):
    text = (ROOT / "checks" / "mpi.py").read_text()
    (tmp_path / "mpi.py").write_text(text.replace("limited_by = ImbJob", "limited_by = OsuJob"))
    checks = ("reframe", "--system", "testbed:gige", "-c", str(tmp_path / "mpi.py"))
    folder = altered_site(tmp_path, LIMITED)
    ran = run(tmp_path, *checks, "-n", "ImbBcast", "--dry-run", RFM_CONFIG_PATH=str(folder))
    assert ran.returncode == 1
    assert "no job measures it on testbed:gige: see its launched_by and limited_by" in ran.stdout
