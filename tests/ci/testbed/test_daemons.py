"""Sources of daemons that differ between releases."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from made_programs import program

from ci.testbed import daemons, processes, slurm, state, topology, topology_reading
from ci.testbed.errors import CannotRunError
from ci.testbed.state import MADE_NAMESPACE_FOLDER, MARK, StateFolder


def test_the_file_of_either_mariadb_makes_a_database(tmp_path, monkeypatch):
    newer, older = tmp_path / "mariadb.sql", tmp_path / "mysql.sql"
    monkeypatch.setattr(daemons, "SYSTEM_TABLES", (newer, older))
    with pytest.raises(CannotRunError, match="apt-get install mariadb-server-core"):
        daemons.system_tables()
    older.touch()
    assert daemons.system_tables() == older
    newer.touch()
    assert daemons.system_tables() == newer


def test_a_steps_title_names_its_job():
    assert daemons.job_of("slurmstepd: [20.batch]") == "20"
    assert daemons.job_of("slurmstepd: [20.0]") == "20"
    assert daemons.job_of("/usr/sbin/slurmstepd") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces of process numbers take root")
def test_a_testbed_in_a_container_is_none_of_this_machines(tmp_path):
    command = ["unshare", "--pid", "--kill-child", "--fork", "sh", "-c", "echo; sleep 60; :"]
    mine = os.environ | {processes.STATE_VARIABLE: str(tmp_path)}
    with subprocess.Popen(command, env=mine, stdout=subprocess.PIPE) as outside:
        outside.stdout.readline()
        found = [one.pid for one in processes.running() if one.state == str(tmp_path)]
        outside.kill()
    assert found == [outside.pid]


DEFAULT = topology_reading.load(Path(topology.__file__).with_name("topology.yaml"))


def values(settings, key):
    return [line.partition("=")[2] for line in settings if line.startswith(f"{key}=")]


def test_each_switch_is_a_partition_and_slurm_talks_over_the_management_network():
    text = slurm.configuration(DEFAULT, StateFolder(Path("/tmp/tb")), "machine", 1000)
    first, second = values(text.splitlines(), "PartitionName")
    assert first.startswith("gige Nodes=gige-1,gige-2,gige-3,gige-4 Default=YES")
    assert second.startswith("fast-ethernet Nodes=fast-ethernet-1,")
    assert "Default=NO" in second
    assert not any(node.address in text for node in DEFAULT.nodes)
    assert values(text.splitlines(), "SlurmctldHost") == ["machine(198.18.0.254)"]
    hosts = slurm.hosts(DEFAULT, "machine").splitlines()
    assert {"198.18.1.2 gige-2", "198.18.2.4 fast-ethernet-4"} <= {*hosts}


def test_leaves_and_spine_are_slurms_tree_and_another_switch_is_a_leaf_of_its_own(tmp_path):
    leaves = Path(topology.__file__).with_name("leaves.yaml").read_text()
    other = "  gige: {link_mbps: 1000, mtu: 1500, buffer: 1000000, nodes: 2, cpus: 4}\n"
    (tmp_path / "topology.yaml").write_text(leaves + other)
    both = topology_reading.load(tmp_path / "topology.yaml")
    text = slurm.configuration(both, StateFolder(Path("/tmp/tb")), "machine", 1000)
    assert values(text.splitlines(), "TopologyPlugin") == ["topology/tree"]
    lines = slurm.tree(both).splitlines()
    assert lines[0] == "SwitchName=tree-leaf-1 Nodes=tree-1,tree-2,tree-3,tree-4"
    assert lines[4] == (
        "SwitchName=tree-spine Switches=tree-leaf-1,tree-leaf-2,tree-leaf-3,tree-leaf-4"
    )
    assert lines[5:] == ["SwitchName=gige Nodes=gige-1,gige-2"]


def test_neighbouring_ranks_are_bound_to_different_cpus(tmp_path):
    program(tmp_path / "taskset", 'echo "$@" >>"$SAID"')
    for rank in map(str, range(4)):
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SAID": str(tmp_path / "said")}
        environment |= {"SLURM_PROCID": rank, "SLURM_STEP_ID": "0"}
        script = slurm.task_prolog([2, 5])
        subprocess.run(["sh"], input=script, text=True, env=environment, check=True)
    bound = [line.split()[:3] for line in (tmp_path / "said").read_text().splitlines()]
    assert bound == [["--cpu-list", "--pid", cpu] for cpu in "2525"]


@pytest.fixture
def place():
    # What a testbed puts into it has the longest path that a socket may have.
    with tempfile.TemporaryDirectory(prefix="netproof-") as short:
        yield Path(short) / "tb"


@pytest.fixture
def folder(place):
    made = StateFolder(place)
    made.claim()
    yield made
    made.remove()


def test_a_claimed_folder_is_marked_and_goes_without_a_trace(folder, place):
    assert folder.is_marked()
    folder.write("slurm.conf", "x\n")
    (place / "log").mkdir()
    # As if a removal was cut short.
    folder.wipe()
    assert StateFolder(place).is_marked()
    assert StateFolder(place).remove()
    assert not place.exists()


@pytest.mark.parametrize("name", ["thesis.txt", "."])
def test_a_folder_with_anything_else_in_it_or_a_file_is_refused_and_left_alone(place, name):
    if name != ".":
        place.mkdir()
    (place / name).write_text("mine")
    folder = StateFolder(place)
    with pytest.raises(CannotRunError, match="holds something that is not a testbed's"):
        folder.claim()
    assert not folder.remove()
    assert (place / name).read_text() == "mine"


def test_what_a_link_leads_to_is_never_removed(folder, place, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    (place / "log").symlink_to(tmp_path)
    folder.remove()
    assert (tmp_path / "thesis.txt").exists()


def test_wiping_keeps_what_says_that_the_folder_is_a_testbeds_of_this_boot(folder, place):
    for name in ("slurm.conf", "of-a-later-version", MADE_NAMESPACE_FOLDER):
        (place / name).touch()
    folder.wipe()
    assert {p.name for p in place.iterdir()} == {MARK, MADE_NAMESPACE_FOLDER}
    for boot in ("00000000-0000-0000-0000-000000000000\n", state.boot_id()):
        assert not folder.survived_this_boot()
        folder.write("boot-id", boot)
    assert folder.survived_this_boot()


@pytest.mark.parametrize(
    ("path", "says"),
    [("/tmp/" + "long/" * 20, "shorter path"), ("/tmp/a b", "letters, digits")],
)
def test_a_path_that_sockets_or_slurm_cannot_take_is_refused(path, says):
    with pytest.raises(CannotRunError, match=says):
        StateFolder(Path(path))


# How far the CPUs of this machine are apart, by the program of the testbed.

SOURCE = Path(__file__).resolve().parents[3] / "ci" / "testbed" / "pace.c"


@pytest.fixture(scope="module")
def pace(tmp_path_factory) -> Path:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler here: ci/setup installs one for the testbed")
    built = tmp_path_factory.mktemp("pace") / "pace"
    command = ["cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(built)]
    subprocess.run([*command, str(SOURCE), "-lpthread"], check=True)
    return built


@pytest.mark.slow
def test_two_cpus_hand_a_line_over_in_some_time(pace):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("this machine has one CPU")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([pace, "watch"], **pipes) as watching:
        time.sleep(1)
        printed, _ = watching.communicate()
    assert watching.returncode == 0
    halves = [int(half) for half in printed.split()]
    assert len(halves) == 2
    assert all(0 < half < 1_000_000 for half in halves)
