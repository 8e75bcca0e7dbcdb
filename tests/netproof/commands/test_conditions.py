"""Jobs that cannot be measured are known before the night begins."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from netproof.commands import night
from netproof.commands.cli import app
from netproof.commands.night import enough_room
from netproof.errors import NetproofError
from netproof.session import session
from netproof.site import folders, site, slurm
from netproof.site.matrix import jobs, matrix
from netproof.site.slurm import SlurmNode, SlurmPartition

ROOT = Path(__file__).resolve().parents[3]
SESSIONS = ROOT / "tests" / "data" / "sessions"
# Output of sinfo of Slurm 22.05 with --format="%R|%N|%T|%E".
SHOWN = """\
PartitionName=gige State={} MaxTime=UNLIMITED
PartitionName=fast-ethernet State=UP MaxTime=UNLIMITED
"""
LISTED = """\
fast-ethernet|fast-ethernet-1|idle|none
gige|gige-1|mixed|none
gige|gige-2|allocated+|none
gige|gige-3|drained|disk of /dev/sda | to be replaced
gige|gige-4|down*|Not responding
"""


@pytest.fixture
def gige() -> SlurmPartition:
    return slurm.partitions_of(SHOWN.format("UP"), LISTED)["gige"]


def test_a_partition_runs_what_its_usable_nodes_allow(gige):
    assert gige.cannot_run(2) is None
    assert gige.cannot_run(4) == (
        "partition gige has 2 usable nodes of 4, and 4 are needed: gige-3 is drained (disk of"
        " /dev/sda | to be replaced); gige-4 is down* (Not responding)"
    )


@pytest.mark.parametrize("state", ["maint", "reserved", "drained", "down", "fail", "idle*"])
def test_a_node_in_maintenance_or_that_does_not_answer_is_not_usable(state):
    assert not SlurmNode("gige-1", state, "").usable


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
            return {left.why for left in found.values()}

        return ask

    def test_they_are_waited_for(self, cannot_run):
        assert cannot_run(RESUMED, RESUMED, RESUMED.replace("idle*", "idle")) == set()

    def test_they_are_told_when_the_wait_is_over(self, cannot_run):
        why = cannot_run(RESUMED, wait_s=0)
        assert (
            "partition gige has 1 usable node of 4, and 2 are needed: gige-2 is idle* (does not"
            " answer slurmctld); gige-3 is idle* (does not answer slurmctld); gige-4 is idle* (does"
            " not answer slurmctld)"
        ) in why

    @pytest.mark.parametrize(
        ("listed", "state"),
        [
            (RESUMED, "DOWN"),
            (RESUMED.replace("idle*", "down*"), "UP"),
            (RESUMED.replace("idle*", "drained*"), "UP"),
        ],
    )
    def test_what_would_not_run_with_them_is_not_waited_for(self, cannot_run, listed, state):
        assert cannot_run(listed, listed.replace("*", ""), state=state, wait_s=1e9)


@pytest.mark.parametrize(
    ("access", "names"),
    [
        (["--partition=gige"], ["gige"]),
        (["-p gige"], ["gige"]),
        (["-pgige", "--account=net"], ["gige"]),
        (["--partition=gige,ib --account=net"], ["gige", "ib"]),
        (["--account=-pnone"], []),
        ([], []),
    ],
)
def test_the_partition_of_slurm_is_in_the_access_options(access, names):
    assert slurm.names_in(access) == names


def test_a_full_file_system_is_named_before_anything_is_measured(tmp_path):
    enough_room([tmp_path / "not" / "yet", Path("/")], 1)
    with pytest.raises(
        NetproofError, match=r"not/yet: the file system is too full: \d+ MB are free"
    ):
        enough_room([tmp_path / "not" / "yet"], 10**9)


def test_of_folders_on_one_file_system_the_first_is_named_though_others_write_to_it(
    tmp_path, monkeypatch
):
    answers = itertools.count(10**9, -(10**6))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=next(answers)))
    with pytest.raises(NetproofError, match="store: the file system is too full: 1000 MB are free"):
        enough_room([tmp_path / "store", tmp_path / "reports", tmp_path], 2000)


def new_site(folder: Path) -> None:
    ran = CliRunner().invoke(app, ["site", "init", "mycluster", str(folder)])
    assert ran.exit_code == 0


class TestTheShell:
    """A night in a shell that lacks something says so, ends with 2, and measures nothing."""

    @pytest.fixture
    def night(self, tmp_path, monkeypatch, capsys):
        """``night(system, **variables)``: exit status and summary of a night of a new site."""
        new_site(tmp_path)
        capsys.readouterr()
        monkeypatch.delenv("MODULEPATH", raising=False)
        monkeypatch.setenv("RFM_CONFIG_PATH", str(tmp_path / "site-config"))
        monkeypatch.setenv("RFM_REPORT_FILE", str(tmp_path / "reports" / "run-0.json"))

        def run(system: str) -> tuple[int, str]:
            arguments = ["nightly", system, "--store", str(tmp_path / "store")]
            ended = CliRunner().invoke(app, arguments)
            return ended.exit_code, ended.output

        return run

    def test_without_a_module_system_a_login_shell_is_the_remedy(self, night):
        status, said = night("mycluster")
        assert status == 2
        assert "NOT JUDGED: nothing was measured: modules gcc/13, openmpi/4.1" in said
        assert "cannot be loaded: MODULEPATH is not set, as in cron's shell" in said
        assert "use a login shell: bash -lc" in said

    def test_without_the_system_the_folder_is_named_in_which_it_was_looked_for(
        self, night, tmp_path
    ):
        status, said = night("othercluster")
        assert status == 2
        assert f"{tmp_path}/site-config: the configuration has no system 'othercluster'" in said
        assert "source the activate of its folder" in said

    def test_where_no_job_was_submitted_no_network_failed(self):
        with pytest.raises(NetproofError) as raised:
            night._insist_on_a_job(session.load(SESSIONS.parent / "reframe" / "no-modules.json"))
        said = str(raised.value)
        assert said.startswith("no job of 1 was submitted: fail in run: environ error")
        assert "ERROR: No module path defined" in said
        assert "bash -lc" in said


def test_a_site_s_own_checks_run_and_else_those_of_netproof(tmp_path, monkeypatch):
    monkeypatch.setenv("RFM_CONFIG_PATH", str(tmp_path / "site-config"))
    assert folders.of_checks() == ROOT / "checks"
    new_site(tmp_path)
    assert folders.of_checks() == tmp_path / "checks"
