"""The testbed itself, on this machine: brought up, hurt in every way that is promised, taken down.

There is one testbed for each machine, so these tests use the default one and leave none.
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
from netproof.measurement.links import Link

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


def traces():
    """All that a testbed could leave on this machine."""
    own = {p.pid for p in processes.running() if p.state == str(STATE)}
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return {
        "processes": own,
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


def daemons():
    """The process number of each daemon, by role."""
    running = processes.running()
    found = {
        role: processes.daemon(running, STATE, role, role.partition(":")[0])
        for role in roles(DEFAULT)
    }
    return {role: process.pid if process else None for role, process in found.items()}


@pytest.fixture(scope="module", autouse=True)
def untouched_machine():
    """The machine before; after all tests it has to be so again."""
    verb("down")
    before = traces()
    yield before
    done("down")
    assert traces() == before


@pytest.fixture
def up(untouched_machine):
    return done("up")


def kill_all():
    processes.kill("the testbed", lambda process: process.state == str(STATE))


@pytest.mark.nightly
def test_down_leaves_the_machine_as_it_was_even_with_a_job_in_full_swing(untouched_machine):
    done("up")
    left_behind = "setsid sh -c 'trap : TERM HUP; while :; do sleep 1; done' & sleep 600"
    slurm("sbatch", "-o", "/dev/null", "-N4", "--wrap", f'srun -N4 sh -c "{left_behind}"')
    inodes = network.inodes()
    eventually(
        lambda: sum(p.command == "sleep" and p.network in inodes for p in processes.running()) == 8
    )
    done("down")
    assert traces() == untouched_machine
    assert not [p for p in processes.running() if p.network in inodes]


def test_down_and_status_without_a_testbed_are_no_error_and_exit_2():
    verb("down")
    done("down")
    assert "no testbed" in refused("status")


def test_up_prints_a_line_for_each_step_and_where_slurm_conf_is():
    verb("down")
    lines = done("up").splitlines()
    started = [line.split("started")[0].strip() for line in lines if " started " in line]
    assert sorted(started) == sorted(
        ["munged", "network", "mariadbd", "slurmdbd", "slurmctld", "8 nodes"]
    )
    assert f"SLURM_CONF={STATE}/slurm.conf" in lines[-1]


def test_up_twice_changes_nothing(up):
    slurm("srun", "-N2", "true")
    before, jobs = daemons(), recorded_jobs()
    text = done("up")
    assert "started" not in text
    assert daemons() == before
    assert recorded_jobs() == jobs


@pytest.mark.nightly
def test_two_ups_at_once_make_one_testbed():
    verb("down")
    pair = [subprocess.Popen([TESTBED, "up"], stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [one.wait(120) for one in pair] == [0, 0]
    done("status")
    slurmds = [p for p in processes.running() if p.state == str(STATE) and p.command == "slurmd"]
    assert len(slurmds) == len(NODES)


def test_status_has_a_line_with_address_rate_mtu_and_slurm_state_for_all(up):
    lines = {line.split()[0]: line.split()[1:] for line in done("status").split("\n") if line}
    assert lines["gige"] == ["198.18.1.0/24", "1000", "1500", "partition", "up"]
    assert lines["fast-ethernet"] == ["198.18.2.0/24", "100", "1500", "partition", "up"]
    for node in DEFAULT.nodes:
        rate = "100" if node.name.startswith("fast") else "1000"
        assert lines[node.name] == [node.address, rate, "1500", "idle"]


def test_a_node_that_is_drained_makes_status_end_with_1(up):
    slurm("scontrol", "update", "node=gige-3", "state=drain", "reason=test")
    result = verb("status")
    slurm("scontrol", "update", "node=gige-3", "state=resume")
    assert result.returncode == 1
    assert "DOWN gige-3: Slurm calls it drained" in result.stdout


def test_up_takes_back_a_node_that_slurm_drained_and_none_that_somebody_did(up):
    why = {"gige-2": "batch job complete failure", "gige-3": "a cable is bad"}
    for node, reason in why.items():
        slurm("scontrol", "update", f"node={node}", "state=drain", f"reason={reason}")
    result = verb("up")
    said = slurm("sinfo", "-hN", "-o", "%N=%t", "-n", ",".join(why)).stdout.replace("*", "").split()
    slurm("scontrol", "update", "node=gige-3", "state=resume")
    assert said == ["gige-2=idle", "gige-3=drain"]
    assert result.returncode == 1
    assert "slurmd: somebody drained gige-3 (a cable is bad); once it may be used" in result.stderr


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
    inodes = network.inodes()

    def sleeping() -> int:
        return sum(p.command == "sleep" and p.network in inodes for p in processes.running())

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


def test_exec_passes_input_output_and_exit_status_and_is_inside_the_node(up):
    said = verb("exec", "gige-2", "--", "sh", "-c", "hostname; cat; exit 7", input="hello")
    assert (said.stdout, said.returncode) == ("gige-2\nhello", 7)
    addresses = done("exec", "gige-2", "--", "ip", "-br", "address")
    assert "198.18.1.2/24" in addresses
    assert (
        sorted(os.listdir("/sys/class/net"))
        != done("exec", "gige-2", "--", "ls", "/sys/class/net").split()
    )
    assert done("exec", "gige-2", "--", "ls", "/dev/shm") == ""


def test_exec_keeps_the_working_directory(up, tmp_path):
    assert done("exec", "gige-1", "--", "pwd", cwd=tmp_path).strip() == str(tmp_path)


def test_exec_in_an_unknown_node_lists_the_nodes(up):
    sentence = refused("exec", "gige-9", "--", "true")
    assert all(name in sentence for name in NODES)


def test_a_node_reaches_its_switch_and_no_other(up):
    connect = "import socket, sys; socket.create_connection((sys.argv[1], 16818), 3)"
    for address, expected in (("198.18.1.2", 0), ("198.18.2.1", 1)):
        said = verb("exec", "gige-1", "--", "/usr/bin/python3", "-c", connect, address)
        assert said.returncode == expected, said.stderr


@pytest.mark.parametrize("nodes", ["2", "4"])
@pytest.mark.parametrize("partition", ["gige", "fast-ethernet"])
def test_srun_starts_tasks_on_the_nodes_of_a_partition(up, partition, nodes):
    said = slurm("srun", "-p", partition, "-N", nodes, "hostname").stdout.split()
    assert len(set(said)) == int(nodes)
    assert all(name.rpartition("-")[0] == partition for name in said)


OVER_TCP = {
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_btl_tcp_if_include": "eth1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "UCX_TLS": "tcp,self",
    "UCX_NET_DEVICES": "eth1",
}


@pytest.mark.parametrize(("pmi", "program"), [("pmix", "NPopenmpi"), ("pmi2", "NPmpich2")])
def test_mpi_runs_over_the_switch_on_two_nodes(up, tmp_path, pmi, program):
    out = tmp_path / "out"
    command = ["-n2", program, "-l", "100000", "-u", "100000", "-p", "0", "-o", str(out)]
    said = slurm("srun", "-p", "fast-ethernet", "-N2", f"--mpi={pmi}", *command, **OVER_TCP)
    assert said.returncode == 0, said.stderr
    rows = [line.split() for line in out.read_text().splitlines()]
    assert rows
    # Over the management network it would be many times the line rate; 2 % above are allowed.
    assert all(
        float(time) * 1e6 * 1.02 * Link(100, 1500).line_rate_mb_s() > float(size)
        for size, _, time in rows
    )


def test_accounting_knows_a_jobs_cpu_time_and_exit_code(up):
    busy = "import time\nwhile time.process_time() < 0.5: pass\nraise SystemExit(3)"
    said = slurm("sbatch", "--parsable", "-o", "/dev/null", "--wrap", f"python3 -c '{busy}'")
    job = said.stdout.strip()
    deadline = time.monotonic() + 20
    while True:
        row = slurm("sacct", "-nPj", f"{job}.batch", "-o", "state,exitcode,totalcpu").stdout
        if row.startswith("FAILED|3:0|"):
            break
        assert time.monotonic() < deadline, row
        time.sleep(0.2)
    assert float(row.strip().rpartition(":")[2]) > 0.4


def test_ranks_of_neighbouring_nodes_share_no_cpu_where_there_are_two(up):
    show = "grep Cpus_allowed_list /proc/self/status"
    said = slurm("srun", "-l", "-N2", "-n2", *show.split()).stdout
    # A machine with one CPU has no other to go to.
    cpus = min(2, len(os.sched_getaffinity(0)))
    assert len({line.split()[-1] for line in said.splitlines()}) == cpus


def test_a_task_goes_before_the_machines_other_programs(up):
    assert slurm("srun", "nice").stdout.strip() == str(processes.NICENESS)
    assert verb("exec", "gige-1", "--", "nice").stdout.strip() == str(processes.NICENESS)


def test_a_batch_script_keeps_all_cpus(up):
    out = STATE / "log/batch.out"
    show = "grep Cpus_allowed_list /proc/self/status"
    slurm("sbatch", "-o", str(out), "--wrap", f"{show}; echo end")
    eventually(lambda: out.is_file() and "end" in out.read_text())
    assert out.read_text().splitlines()[0] == subprocess.getoutput(show)


@pytest.mark.nightly
@pytest.mark.parametrize("role", ["munged", "mariadbd", "slurmdbd", "slurmctld", "slurmd:gige-2"])
def test_up_heals_what_was_killed_and_leaves_the_rest_alone(up, role):
    slurm("srun", "-N2", "true")
    before, jobs = daemons(), recorded_jobs()
    os.kill(before[role], signal.SIGKILL)
    deadline = time.monotonic() + 10
    while Path(f"/proc/{before[role]}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
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


def lose_everything_but_the_files():
    """What a reboot does: no process, namespace or link is left, and the boot has a new name."""
    kill_all()
    network.remove()
    (STATE / "boot-id").write_text("00000000-0000-0000-0000-000000000000\n")


@pytest.mark.nightly
def test_up_and_down_work_on_the_files_of_an_earlier_boot(up, untouched_machine):
    lose_everything_but_the_files()
    (STATE / "database/data/ibdata1").write_bytes(b"cut short by the power failure")
    done("up")
    done("status")
    lose_everything_but_the_files()
    if str(network.NAMED_NAMESPACES) not in untouched_machine["files"]:
        network.forget_namespace_folder()
    done("down")
    assert traces() == untouched_machine


@pytest.mark.nightly
def test_up_mends_a_link_that_was_changed(up):
    node = network.namespace("gige-1")
    subprocess.run(["ip", "netns", "exec", node, "tc", "qdisc", "del", "dev", "eth1", "root"])
    result = verb("status")
    assert result.returncode == 1
    assert "gige-1: rate of the node's end is None and should be 1000" in result.stdout
    done("up")
    done("status")


@pytest.mark.nightly
def test_up_mends_a_network_that_lost_a_node(up):
    subprocess.run(["ip", "netns", "delete", network.namespace("gige-4")], check=True)
    assert verb("status").returncode == 1
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


def test_another_topology_is_refused_while_the_testbed_lives(up):
    sick = ROOT / "docs/criteria/sick-switch.yaml"
    assert "another topology" in refused("up", "--topology", sick)
    done("status")


def test_a_wrong_topology_is_refused_before_anything_is_done(untouched_machine, tmp_path):
    verb("down")
    (tmp_path / "t.yaml").write_text("switches:\n  gige: {nodes: 4}\n")
    assert f"{tmp_path}/t.yaml:2: " in refused("up", "--topology", tmp_path / "t.yaml")
    assert traces() == untouched_machine


def test_a_user_who_is_not_root_is_told_so():
    # Loaded as root and run as nobody, who may not look into every checkout.
    program = (
        f"import os, sys; sys.path.insert(0, {str(ROOT)!r}); from ci.testbed.command import main;"
        " os.setgroups([]); os.setgid(65534); os.setuid(65534); sys.exit(main(sys.argv[1:]))"
    )
    for words in (["up"], ["down"], ["status"], ["exec", "gige-1", "--", "true"]):
        command = [sys.executable, "-c", program, *words]
        result = subprocess.run(command, capture_output=True, text=True, cwd="/")
        assert (result.returncode, result.stderr.count("\n")) == (2, 1)
        assert "root" in result.stderr


@pytest.fixture
def programs(tmp_path):
    """A PATH of links to the programs that are needed, for a test to take some away."""
    for program in [*PACKAGES, "dirname", "readlink"]:
        (tmp_path / program).symlink_to(shutil.which(program))
    return tmp_path


@pytest.mark.parametrize("program", ["slurmctld", "munged", "mariadbd", "tc"])
def test_a_missing_package_is_named(untouched_machine, programs, program):
    verb("down")
    (programs / program).unlink()
    sentence = refused("up", env={"PATH": str(programs)})
    assert f"apt-get install {PACKAGES[program]}" in sentence
    assert traces() == untouched_machine


def test_a_kernel_without_tbf_is_told_of_in_one_sentence(untouched_machine, programs):
    """tc says so by the words of the real one on a kernel that lacks the discipline."""
    verb("down")
    (programs / "tc").unlink()
    (programs / "tc").write_text(
        "#!/bin/sh\necho 'Error: Specified qdisc kind is unknown.' >&2\nexit 2\n"
    )
    (programs / "tc").chmod(0o755)
    sentence = refused("up", env={"PATH": str(programs)})
    assert "CONFIG_NET_SCH_TBF" in sentence
    assert traces() == untouched_machine


def test_a_checkout_without_its_environment_says_what_to_run(tmp_path):
    copied = tmp_path / "ci/testbed/testbed"
    copied.parent.mkdir(parents=True)
    shutil.copy(TESTBED, copied)
    result = subprocess.run([copied, "up"], capture_output=True, text=True)
    assert result.returncode == 2
    assert "run ci/setup first" in result.stderr
