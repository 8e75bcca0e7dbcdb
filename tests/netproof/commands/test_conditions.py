"""Jobs that cannot be measured are known before the night begins."""

from __future__ import annotations

import dataclasses
import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from made_calls import in_words
from made_programs import program

from netproof.commands import night
from netproof.commands.night import enough_room, left_for_another_night
from netproof.errors import NetproofError
from netproof.session import session
from netproof.site import folders, site, slurm
from netproof.site.matrix import Matrix, PlannedJob, domain_of, jobs, matrix
from netproof.store.durations import Expected, Past

ROOT = Path(__file__).resolve().parents[3]
SESSIONS = ROOT / "tests" / "data" / "sessions"
# Output of sinfo of Slurm 22.05 with --format="%R|%N|%T|%E".
SHOWN = """\
PartitionName=gige State={} MaxTime=UNLIMITED
PartitionName=fast-ethernet State=UP MaxTime=UNLIMITED
"""


# Its list right after `scontrol update NodeName=gige-[2-4] State=RESUME`.
RESUMED = """\
fast-ethernet|fast-ethernet-1|idle|none
gige|gige-1|idle|none
gige|gige-2|idle*|none
gige|gige-3|idle*|none
gige|gige-4|idle*|none
"""


class TestNodesThatDoNotAnswer:
    @pytest.fixture
    def cannot_run(self, monkeypatch):
        """The jobs that cannot run on gige; Slurm lists one text after the other, then the last."""
        configuration = site.gather(ROOT / "site-config")
        expected = matrix(configuration, "testbed", ["gige"])
        monkeypatch.setattr(night, "_LOOK_AGAIN_S", 0)

        def ask(*listed: str, state: str = "UP", wait_s: float = 60):
            texts = itertools.chain(listed, itertools.repeat(listed[-1]))
            shown = SHOWN.format(state)
            monkeypatch.setattr(
                slurm, "partitions", lambda: slurm.partitions_of(shown, next(texts))
            )
            found = night.cannot_run(jobs(expected), expected, wait_s=wait_s)
            return {why for why, _ in found.values()}

        return ask

    def test_they_are_waited_for(self, cannot_run):
        assert cannot_run(RESUMED, RESUMED, RESUMED.replace("idle*", "idle")) == set()

    def test_they_are_named_when_the_wait_is_over(self, cannot_run):
        why = cannot_run(RESUMED, wait_s=0)
        assert (
            "partition gige has 1 usable node of 4, and 2 are needed: gige-2 is idle* (does not"
            " answer slurmctld); gige-3 is idle* (does not answer slurmctld); gige-4 is idle* (does"
            " not answer slurmctld)"
        ) in why

    @pytest.mark.parametrize(
        ("listed", "state"), [(RESUMED, "DOWN"), (RESUMED.replace("idle*", "down*"), "UP")]
    )
    def test_what_would_not_run_with_them_is_not_waited_for(self, cannot_run, listed, state):
        assert cannot_run(listed, listed.replace("*", ""), state=state, wait_s=1e9)


def test_a_full_file_system_is_named_by_the_first_folder_though_others_write_to_it(
    tmp_path, monkeypatch
):
    enough_room([tmp_path / "not" / "yet", Path("/")], 1)
    answers = itertools.count(10**9, -(10**6))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=next(answers)))
    with pytest.raises(NetproofError, match="store: the file system is too full: 1000 MB are free"):
        enough_room([tmp_path / "store", tmp_path / "reports", tmp_path], 2000)


def test_a_night_without_a_module_system_measures_nothing_and_a_login_shell_is_the_remedy(
    tmp_path, monkeypatch
):
    in_words("site", "init", "mycluster", tmp_path)
    monkeypatch.delenv("MODULEPATH", raising=False)
    monkeypatch.setenv("RFM_CONFIG_PATH", str(tmp_path / "site-config"))
    monkeypatch.setenv("RFM_REPORT_FILE", str(tmp_path / "reports" / "run-0.json"))
    status, said = in_words("nightly", "mycluster", "--store", tmp_path / "store")
    assert status == 2
    assert "NOT JUDGED: nothing was measured: modules gcc/13, openmpi/4.1" in said
    assert "use a login shell: bash -lc" in said


def test_where_no_job_was_submitted_no_network_failed():
    with pytest.raises(NetproofError) as raised:
        night._insist_on_a_job(session.load(SESSIONS.parent / "reframe" / "no-modules.json"))
    said = str(raised.value)
    assert said.startswith("no job of 1 was submitted: fail in run: environ error")
    assert "ERROR: No module path defined" in said


def test_a_site_s_own_checks_run_and_else_those_of_netproof(tmp_path, monkeypatch):
    monkeypatch.setenv("RFM_CONFIG_PATH", str(tmp_path / "site-config"))
    assert folders.of_checks() == ROOT / "checks"
    in_words("site", "init", "mycluster", tmp_path)
    assert folders.of_checks() == tmp_path / "checks"


# A night measures the jobs that waited longest, and no job waits forever.

FIRST = datetime(2026, 11, 1)


@pytest.fixture(scope="module")
def expected() -> Matrix:
    return matrix(site.gather(ROOT / "site-config"), "testbed")


def after(order: list[PlannedJob]) -> Past:
    """Return jobs that ran on days of their own, in this order."""
    days = {job: FIRST + timedelta(days=day) for day, job in enumerate(order)}
    return Past(tried=days, measured=days)


def each(several, seconds: float | None) -> dict[PlannedJob, Expected]:
    return {job: Expected(seconds, "") for job in several}


def test_what_waited_longest_runs_first_and_never_is_longest(expected):
    several = list(jobs(expected))[:4]
    # The first night measures all.
    assert left_for_another_night(each(several, None), Past(), expected, 60) == {}
    past = after([several[2], several[0], several[3]])
    left = left_for_another_night(each(several, 60), past, expected, 120)
    assert set(several) - set(left) == {several[1], several[2]}
    assert left[several[0]][0] == (
        "NetPIPE, last measured 2026-11-02; takes about 60 s, and 0 s were left"
    )
    assert all(planned for _, planned in left.values())


@pytest.mark.parametrize(
    ("seconds", "order", "runs"),
    [
        # A job that does not fit makes room for a shorter one.
        ((60, 600, 60), (0, 1, 2), {0, 2}),
        # One that is longer than the budget runs alone when it waited longest.
        ((60, 6000, 60), (1, 0, 2), {1}),
        # So does one of unknown length.
        ((None, None, None), (0, 1, 2), {0}),
    ],
)
def test_what_fits_into_a_night_runs(expected, seconds, order, runs):
    several = list(jobs(expected))[:3]
    times = {job: Expected(one, "") for job, one in zip(several, seconds, strict=True)}
    past = after([several[number] for number in order])
    left = left_for_another_night(times, past, expected, 120)
    assert set(left) == {job for number, job in enumerate(several) if number not in runs}
    unknown = {why.partition("; ")[2] for why, _ in left.values()}
    assert (unknown == {"nobody knows yet how long it takes"}) is (None in seconds)


def test_every_contention_domain_has_all_of_the_budget(expected):
    partitions = {
        name: entry.model_copy(update={"contention_domain": name})
        for name, entry in expected.partitions.items()
    }
    apart = dataclasses.replace(expected, partitions=partitions)
    several = jobs(expected)
    left = left_for_another_night(each(several, 60), Past(), apart, 90)
    assert sorted(domain_of(job, apart) for job in set(several) - set(left)) == [
        "fast-ethernet",
        "gige",
    ]


# Two nights never run at once.

SINCE = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)


def test_a_second_night_is_refused_with_who_runs_since_when(tmp_path):
    path = night.lock_of(tmp_path / "store", "one")
    assert path == tmp_path / "store.one.lock"
    with (
        night.held(path, SINCE),
        pytest.raises(NetproofError, match=rf"process {os.getpid()} on \S+ since 2026-11-21 02:00"),
        night.held(path, SINCE),
    ):
        pass
    # What inherits the lock holds it too.
    with night.held(path, SINCE) as descriptor:
        child = subprocess.Popen(["sleep", "600"], pass_fds=(descriptor,))
    with pytest.raises(NetproofError, match="still running"), night.held(path, SINCE):
        pass
    child.kill()
    child.wait()
    with night.held(path, SINCE):
        pass


# ReFrame ends with the command that started it, and has time to cancel its jobs.

REFRAME = """trap 'sleep 1; echo cancelled >{folder}/jobs; exit 1' TERM
echo began >{folder}/jobs
while :; do sleep 0.1; done
"""


def wait_for(path: Path, text: str) -> None:
    deadline = time.monotonic() + 30
    while not path.is_file() or path.read_text().strip() != text:
        assert time.monotonic() < deadline, f"{path}: {text} did not come"
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_jobs(tmp_path, number):
    program(tmp_path / "reframe", REFRAME.format(folder=tmp_path))
    script = (
        "import sys; from pathlib import Path; from netproof.commands.reframe import measure;"
        f" sys.executable = '{tmp_path}/python3'; measure([], Path('{tmp_path}/run.json'))"
    )
    ran = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    wait_for(tmp_path / "jobs", "began")
    ran.send_signal(number)
    assert ran.wait() != 0
    wait_for(tmp_path / "jobs", "cancelled")
