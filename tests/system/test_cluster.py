"""The testbed itself: brought up once, hurt in every way that is promised, taken down.

There is one testbed for each machine, so these tests use the default one.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from made_testbed import TESTBED, done, eventually, refused, verb

from ci.testbed import network, processes, state, topology_reading
from ci.testbed.daemons import roles
from ci.testbed.requirements import PACKAGES

pytestmark = [
    pytest.mark.testbed,
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and links take root"),
]

ROOT = Path(__file__).resolve().parents[2]
STATE = state.DEFAULT
DEFAULT = topology_reading.load(ROOT / "ci/testbed/topology.yaml")
NODES = [node.name for node in DEFAULT.nodes]


def slurm(*command, **variables):
    environment = {**os.environ, "SLURM_CONF": str(STATE / "slurm.conf"), **variables}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=environment, cwd="/"
    )


def recorded_jobs():
    """The numbers of all jobs that slurmdbd knows; slurmctld tells it a moment after their end."""
    eventually(lambda: slurm("sacct", "-nX", "-o", "jobid").stdout.split())
    return slurm("sacct", "-nX", "-o", "jobid").stdout.split()


LIBMOUNT = Path("/run/mount")
"""The first mount of any program makes it."""


def own_processes():
    return [process for process in processes.running() if process.state == str(STATE)]


def traces():
    """All that a testbed could leave on this machine."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return {
        "processes": {process.pid for process in own_processes()},
        "namespaces": set(network.existing()),
        "mounts": {line.split(" ", 4)[4] for line in mounts},
        "links": set(os.listdir("/sys/class/net")),
        "files": {
            str(path)
            for folder in ("/run", "/var/tmp", "/var/run")
            for path in Path(folder).iterdir()
            if path.resolve() != LIBMOUNT
        },
        "memory": set(os.listdir("/dev/shm")),
    }


def sleeping():
    """How many processes of jobs sleep on the nodes."""
    inodes = network.inodes()
    return sum(p.command == "sleep" and p.network in inodes for p in processes.running())


def daemons():
    """The process number of each daemon, by role."""
    running = processes.running()
    found = {role: processes.daemon(running, STATE, role) for role in roles(DEFAULT)}
    return {role: process.pid if process else None for role, process in found.items()}


@pytest.fixture(scope="module", autouse=True)
def untouched_machine(testbed_as_found):
    """The machine without a testbed."""
    verb("down")
    return traces()


@pytest.fixture
def up(untouched_machine):
    return done("up")


def kill_all():
    processes.kill("the testbed", lambda process: process.state == str(STATE))


def test_without_a_testbed_down_is_no_error_and_status_and_a_wrong_topology_are(
    untouched_machine, tmp_path
):
    done("down")
    assert "no testbed" in refused("status")
    (tmp_path / "t.yaml").write_text("switches:\n  gige: {nodes: 4}\n")
    assert f"{tmp_path}/t.yaml:2: " in refused("up", "--topology", tmp_path / "t.yaml")
    assert traces() == untouched_machine


@pytest.mark.parametrize(
    ("program", "text", "says"),
    [
        ("slurmctld", "", f"apt-get install {PACKAGES['slurmctld']}"),
        # By the words of the real one on a kernel that lacks the discipline.
        ("tc", "echo 'Error: Specified qdisc kind is unknown.' >&2; exit 2", "CONFIG_NET_SCH_TBF"),
    ],
)
def test_a_missing_package_or_discipline_is_named(untouched_machine, tmp_path, program, text, says):
    for name in [*PACKAGES, "dirname", "readlink"]:
        if name != program:
            (tmp_path / name).symlink_to(shutil.which(name))
    if text:
        (tmp_path / program).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / program).chmod(0o755)
    assert says in refused("up", env={"PATH": str(tmp_path)})
    assert traces() == untouched_machine


def test_a_checkout_without_its_environment_says_what_to_run(tmp_path):
    copied = tmp_path / "ci/testbed/testbed"
    copied.parent.mkdir(parents=True)
    shutil.copy(TESTBED, copied)
    result = subprocess.run([copied, "up"], capture_output=True, text=True)
    assert result.returncode == 2
    assert "run ci/setup first" in result.stderr


def test_a_user_who_is_not_root_is_refused():
    # Loaded as root and run as nobody, who may not look into every checkout.
    program = (
        f"import os, sys; sys.path.insert(0, {str(ROOT)!r}); from ci.testbed.command import main;"
        " os.setgroups([]); os.setgid(65534); os.setuid(65534); sys.exit(main(['up']))"
    )
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, cwd="/")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "root" in result.stderr


def test_up_prints_a_line_for_each_step_and_where_slurm_conf_is_and_twice_changes_nothing():
    lines = done("up").splitlines()
    started = [line.split("started")[0].strip() for line in lines if " started " in line]
    steps = ["munged", "network", "mariadbd", "slurmdbd", "slurmctld", "8 nodes"]
    assert sorted(started) == sorted(steps)
    assert f"SLURM_CONF={STATE}/slurm.conf" in lines[-1]
    slurm("srun", "-N2", "true")
    before, jobs = daemons(), recorded_jobs()
    assert "started" not in done("up")
    assert daemons() == before
    assert recorded_jobs() == jobs


def test_status_has_a_line_with_address_rate_mtu_and_slurm_state_for_all(testbed):
    lines = {line.split()[0]: line.split()[1:] for line in done("status").split("\n") if line}
    assert lines["gige"] == ["198.18.1.0/24", "1000", "1500", "partition", "up"]
    assert lines["fast-ethernet"] == ["198.18.2.0/24", "100", "1500", "partition", "up"]
    for node in DEFAULT.nodes:
        rate = "100" if node.name.startswith("fast") else "1000"
        assert lines[node.name] == [node.address, rate, "1500", "idle"]


def test_up_takes_back_a_node_that_slurm_drained_and_none_that_somebody_did(testbed):
    why = {"gige-2": "batch job complete failure", "gige-3": "a cable is bad"}
    for node, reason in why.items():
        slurm("scontrol", "update", f"node={node}", "state=drain", f"reason={reason}")
    drained, result = verb("status"), verb("up")
    said = slurm("sinfo", "-hN", "-o", "%N=%t", "-n", ",".join(why)).stdout.replace("*", "").split()
    slurm("scontrol", "update", "node=gige-3", "state=resume")
    assert drained.returncode == 1
    assert "DOWN gige-3: Slurm calls it drained" in drained.stdout
    assert said == ["gige-2=idle", "gige-3=drain"]
    assert result.returncode == 1
    assert "slurmd: somebody drained gige-3 (a cable is bad); once it may be used" in result.stderr


def test_exec_passes_input_output_status_and_folder_and_is_inside_the_node(testbed, tmp_path):
    script = "hostname; pwd; ip -br address; ls -A /dev/shm | wc -l; cat; exit 7"
    said = verb("exec", "gige-2", "--", "sh", "-c", script, input="hello", cwd=tmp_path)
    assert said.returncode == 7
    first, folder, *addresses, shared_files, last = said.stdout.splitlines()
    assert (first, folder, shared_files, last) == ("gige-2", str(tmp_path), "0", "hello")
    names = {line.split()[0].partition("@")[0] for line in addresses}
    assert "eth1" in names
    assert "198.18.1.2/24" in said.stdout
    assert all(name in refused("exec", "gige-9", "--", "true") for name in NODES)


def test_a_node_reaches_its_switch_and_no_other(testbed):
    connect = "import socket, sys; socket.create_connection((sys.argv[1], 16818), 3)"
    for address, expected in (("198.18.1.2", 0), ("198.18.2.1", 1)):
        said = verb("exec", "gige-1", "--", "/usr/bin/python3", "-c", connect, address)
        assert said.returncode == expected, said.stderr


def test_tasks_are_on_a_partitions_nodes_bound_and_before_other_programs(testbed):
    show = "hostname; nice; grep Cpus_allowed_list /proc/self/status"
    # A machine with one CPU has no other to go to.
    cpus = min(2, len(os.sched_getaffinity(0)))
    for partition in ("gige", "fast-ethernet"):
        said = slurm("srun", "-l", "-p", partition, "-N4", "-n4", "sh", "-c", show).stdout
        words = {(line.split(":")[0], line.split()[-1]) for line in said.splitlines()}
        assert {(str(rank), f"{partition}-{rank + 1}") for rank in range(4)} <= words
        assert {(str(rank), str(processes.NICENESS)) for rank in range(4)} <= words
        bound = {line.split()[-1] for line in said.splitlines() if "Cpus" in line}
        assert len(bound) == cpus
    assert verb("exec", "gige-1", "--", "nice").stdout.strip() == str(processes.NICENESS)


def test_accounting_knows_cpu_time_and_exit_code_of_a_script_that_has_all_cpus(testbed, tmp_path):
    show = "grep Cpus_allowed_list /proc/self/status"
    busy = "import time\nwhile time.process_time() < 0.5: pass\nraise SystemExit(3)"
    script = f"{show}; python3 -c '{busy}'"
    out = tmp_path / "out"
    job = slurm("sbatch", "--parsable", "-o", str(out), "--wrap", script).stdout.strip()

    def row():
        return slurm("sacct", "-nPj", f"{job}.batch", "-o", "state,exitcode,totalcpu").stdout

    eventually(lambda: row().startswith("FAILED|3:0|"))
    assert float(row().strip().rpartition(":")[2]) > 0.4
    assert out.read_text().strip() == subprocess.getoutput(show)


def test_another_topology_is_refused_while_the_testbed_lives(testbed):
    sick = ROOT / "docs/criteria/sick-switch.yaml"
    assert "another topology" in refused("up", "--topology", sick)
    done("status")


@pytest.mark.nightly
def test_down_leaves_the_machine_as_it_was_even_with_a_job_in_full_swing(up, untouched_machine):
    left_behind = "setsid sh -c 'trap : TERM HUP; while :; do sleep 1; done' & sleep 600"
    slurm("sbatch", "-o", "/dev/null", "-N4", "--wrap", f'srun -N4 sh -c "{left_behind}"')
    inodes = network.inodes()
    eventually(lambda: sleeping() == 8)
    done("down")
    assert traces() == untouched_machine
    assert not [p for p in processes.running() if p.network in inodes]


@pytest.mark.nightly
def test_two_ups_at_once_make_one_testbed():
    verb("down")
    pair = [subprocess.Popen([TESTBED, "up"], stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [one.wait(120) for one in pair] == [0, 0]
    done("status")
    assert len([p for p in own_processes() if p.command == "slurmd"]) == len(NODES)


@pytest.mark.nightly
@pytest.mark.parametrize("script", ["srun sleep 600", "sleep 3"])
def test_the_number_of_a_job_that_a_killed_slurmctld_has_lost_is_given_to_no_other(up, script):
    """Its nodes would refuse it, whether the lost one goes on or ended meanwhile."""
    kept = STATE / "slurmctld/job_state"
    # Assignment to end, it writes down all it knows; of later jobs it does so some seconds late.
    os.kill(daemons()["slurmctld"], signal.SIGTERM)
    eventually(lambda: daemons()["slurmctld"] is None)
    before = kept.read_bytes()
    done("up")
    batch = ("sbatch", "--parsable", "-p", "gige", "-N4", "--exclusive", "-o", "/dev/null")
    lost = slurm(*batch, "--wrap", script).stdout.strip()
    eventually(lambda: sleeping() == (4 if "srun" in script else 1))
    os.kill(daemons()["slurmctld"], signal.SIGKILL)
    for path in (kept, kept.with_name("job_state.old")):
        path.write_bytes(before)
    if "srun" not in script:
        eventually(lambda: not sleeping())
    done("up")
    again = slurm(*batch, "--wait", "--wrap", "srun true")
    assert int(again.stdout) > int(lost)
    assert again.returncode == 0, again.stderr
    assert not sleeping()
    done("status")


@pytest.mark.nightly
@pytest.mark.parametrize("role", ["munged", "mariadbd", "slurmdbd", "slurmctld", "slurmd:gige-2"])
def test_up_heals_what_was_killed_and_leaves_the_rest_alone(up, role):
    slurm("srun", "-N2", "true")
    before, jobs = daemons(), recorded_jobs()
    os.kill(before[role], signal.SIGKILL)
    eventually(lambda: not Path(f"/proc/{before[role]}").exists())
    result = verb("status")
    assert result.returncode == 1
    assert f"DOWN {role}: not running" in result.stdout
    done("up")
    done("status")
    after = daemons()
    assert after.pop(role) not in (None, before.pop(role))
    assert after == before
    assert slurm("srun", "-N4", "true").returncode == 0
    assert jobs[0] in recorded_jobs()


@pytest.mark.nightly
def test_up_and_down_work_after_everything_was_killed(up):
    slurm("srun", "true")
    jobs = recorded_jobs()
    slurm("sbatch", "-N4", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 600")
    eventually(lambda: "RUNNING" in slurm("squeue", "-ho", "%T").stdout)
    kill_all()
    done("up")
    done("status")
    # The job that ran does not hold its nodes.
    assert slurm("srun", "-N4", "--immediate=60", "true").returncode == 0
    assert {*jobs} <= {*recorded_jobs()}
    kill_all()
    done("down")


@pytest.mark.nightly
@pytest.mark.parametrize("after", [0.25, 0.4, 0.55, 0.7, 0.9, 1.2, 1.6])
def test_an_up_that_was_cut_short_hinders_neither_down_nor_up(untouched_machine, after):
    for then in ("down", "up"):
        verb("down")
        cut = subprocess.Popen([TESTBED, "up"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(after)
        cut.kill()
        cut.communicate()
        done(then)
        if then == "down":
            assert traces() == untouched_machine
        else:
            done("status")


@pytest.mark.nightly
def test_up_and_down_work_on_the_files_of_an_earlier_boot(up, untouched_machine):
    for then in ("up", "down"):
        # What a reboot does: no process, namespace or link is left, and the boot has a new name.
        kill_all()
        network.remove()
        (STATE / "boot-id").write_text("00000000-0000-0000-0000-000000000000\n")
        if then == "up":
            (STATE / "database/data/ibdata1").write_bytes(b"cut short by the power failure")
        elif str(network.NAMED_NAMESPACES) not in untouched_machine["files"]:
            network.forget_namespace_folder()
        done(then)
        if then == "up":
            done("status")
    assert traces() == untouched_machine


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("command", "says"),
    [
        (
            f"ip netns exec {network.namespace('gige-1')} tc qdisc del dev eth1 root",
            "gige-1: rate of the node's end is None and should be 1000",
        ),
        (f"ip netns delete {network.namespace('gige-4')}", "gige-4"),
    ],
    ids=["a link", "a node"],
)
def test_up_mends_a_network_that_was_changed(up, command, says):
    subprocess.run(command.split(), check=True)
    result = verb("status")
    assert result.returncode == 1
    assert says in result.stdout
    done("up")
    done("status")


@pytest.mark.nightly
def test_a_second_testbed_is_refused_while_the_first_lives_and_takes_over_when_it_is_dead(up):
    other = STATE.with_name("netproof-testbed-2")
    assert str(STATE) in refused("up", "--state", other)
    assert not other.exists()
    done("down", "--state", other)
    done("status")
    kill_all()
    done("up", "--state", other)
    done("status", "--state", other)
    done("down", "--state", other)
    assert not network.existing()
    done("down")
