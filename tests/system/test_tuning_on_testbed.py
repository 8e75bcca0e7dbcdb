"""A sweep on the testbed: a value that is planted as worst, and what a report says of it again."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_site import SMALL, settings_of
from made_testbed import done, eventually

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).resolve().parents[2]
WHERE = ("testbed:gige", "--environment", "mpich")


@contextlib.contextmanager
def other_program() -> Iterator[None]:
    """One that takes a CPU."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as loop:
        try:
            yield
        finally:
            loop.kill()


@pytest.mark.testbed
def test_a_socket_buffer_that_is_far_too_small_is_seen_to_cost_rate(testbed, run, tmp_path):
    report = settings_of(tmp_path, others=1, **SMALL)
    # So small a buffer waits for the peer's delayed acknowledgements, so its rate differs many
    # times between launches, and the interval may contain 1: the factor itself is tested.
    values = ("--values", "2048", "--rounds", "7")
    ran = run(
        tmp_path,
        "netproof",
        "measure",
        "tune",
        *WHERE,
        "socket-buffer",
        *values,
        "--format=json",
        **report,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (swept,) = json.loads(ran.stdout)["sweeps"]
    assert swept["rounds"] == 7
    (smallest,) = swept["values"]
    assert smallest["ranges"]["long"]["factor"] < 1, smallest["ranges"]
    assert swept["recommended"] is None
    (kept,) = (tmp_path / "tuning").glob("run-socket-buffer-*.json")
    # No verdict takes it for an acceptance run.
    assert not list(tmp_path.glob("run-*.json"))
    again = run(tmp_path, "netproof", "measure", "tune", str(kept), "--format=json", **report)
    assert again.stdout == ran.stdout
    read = run(tmp_path, "netproof", "measure", "tune", str(kept), **report)
    assert "socket buffer" in read.stdout
    assert "7 rounds of 1 value, each alongside the default" in read.stdout


@pytest.mark.testbed
def test_what_a_library_cannot_be_told_measures_nothing(testbed, run, tmp_path):
    ran = run(tmp_path, "netproof", "measure", "tune", *WHERE, "eager-limit")
    assert ran.returncode == 2
    assert "TCP has no eager limit: sweep it over MPI" in ran.stdout + ran.stderr
    ran = run(tmp_path, "netproof", "measure", "tune", *WHERE, "socket-buffer", "--protocol", "mpi")
    assert ran.returncode == 2
    assert "not known for MPICH" in ran.stdout + ran.stderr


@pytest.mark.testbed
def test_a_variable_reaches_the_ranks_and_what_fails_by_it_is_named(testbed, run, tmp_path):
    values = ("--values", "nonsense", "--protocol", "mpi", "--rounds", "3")
    settings = settings_of(tmp_path, others=1, **SMALL)
    ran = run(tmp_path, "netproof", "measure", "tune", *WHERE, "FI_PROVIDER", *values, **settings)
    assert ran.returncode == 2
    last = ran.stderr.splitlines()[-1]
    assert "nonsense: 3 of 3 launches failed, the first so: " in last
    assert "the default: " not in last


@pytest.mark.testbed
def test_what_disturbed_every_launch_is_said_and_nothing_is_recommended(testbed, run, tmp_path):
    values = ("--values", "65536", "--rounds", "3")
    settings = settings_of(tmp_path, others=0, **SMALL)
    # On a quiet machine nothing else runs alongside a launch.
    with other_program():
        ran = run(
            tmp_path, "netproof", "measure", "tune", *WHERE, "socket-buffer", *values, **settings
        )
    assert ran.returncode == 2, ran.stdout + ran.stderr
    last = ran.stderr.splitlines()[-1]
    assert "launches were disturbed, the first so: gige-1, gige-2: others used" in last
    assert str(tmp_path / "tuning" / "run-socket-buffer-") in last


@pytest.fixture
def lines(testbed) -> Iterator[None]:
    """Packets of all nodes go through a delay line, in which nothing waits."""
    done("plant", "gige", "delay=0")
    yield
    done("lift")


def planted() -> list[str]:
    """What `testbed status` says is planted."""
    return [line for line in done("status").splitlines() if line.startswith("FAULT ")]


class Killed:
    """A sweep of the MTU, or of ``name``, that is killed, with all that belongs to it."""

    def __init__(self, folder: Path, run, name: str = "mtu", values: str = "1400,1300") -> None:
        self.folder, self.run, self.name, self.values = folder, run, name, values
        self.settings = settings_of(folder, others=1)
        self.record = folder / "tuning" / "not-restored-testbed-gige.json"

    def mtus(self) -> set[str]:
        """What the nodes of the partition have."""
        asked = ("srun", "-p", "gige", "-N4", "-n4", "cat", "/sys/class/net/eth1/mtu")
        return set(self.run(self.folder, *asked).stdout.split())

    def jobs(self) -> list[str]:
        listed = self.run(self.folder, "squeue", "--noheader", "--format=%A").stdout
        return listed.split()

    def begin(self) -> threading.Thread:
        """Start it in the background, its processes in a session of their own."""
        values = ("--values", self.values, "--rounds", "3")
        own = ("setsid", "--wait", "bash", "-c", 'echo $$ >pid; exec "$@"', "-")
        command = (*own, "netproof", "measure", "tune", *WHERE, self.name, *values)

        def sweep() -> None:
            self.ended = self.run(self.folder, *command, **self.settings)

        started = threading.Thread(target=sweep, daemon=True)
        started.start()
        return started

    def kill_programs(self) -> None:
        """The command and ReFrame, which can say nothing either."""
        os.killpg(int((self.folder / "pid").read_text()), signal.SIGKILL)

    def kill_job(self) -> None:
        """Its job, as a node that goes down would: no script gets to say anything."""
        for job in self.jobs():
            self.run(self.folder, "scancel", "--full", "--signal=KILL", job)
        eventually(lambda: not self.jobs(), "the job stays")


@pytest.mark.testbed
@pytest.mark.parametrize("after_s", [0.0, 0.3, 1.0, 3.0, 6.0])
def test_a_sweep_that_is_killed_is_restored_by_whoever_comes_next(testbed, run, tmp_path, after_s):
    killed = Killed(tmp_path, run)
    began = killed.begin()
    eventually(killed.record.exists, "nothing was noted")
    time.sleep(after_s)
    killed.kill_programs()
    killed.kill_job()
    began.join(60)
    assert killed.record.exists()
    restored = run(
        tmp_path, "netproof", "measure", "tune", "--restore", WHERE[0], **killed.settings
    )
    assert restored.returncode == 0, restored.stdout + restored.stderr
    assert killed.mtus() == {"1500"}
    assert not killed.record.exists()


@pytest.mark.testbed
def test_of_a_job_that_is_killed_the_command_restores_the_nodes(testbed, run, tmp_path):
    killed = Killed(tmp_path, run)
    began = killed.begin()
    eventually(killed.record.exists, "nothing was noted")
    time.sleep(2)
    killed.kill_job()
    began.join(60)
    assert killed.ended.returncode == 2
    assert "mtu is 1500 again, as before a sweep that did not end" in killed.ended.stderr
    assert killed.mtus() == {"1500"}
    assert not killed.record.exists()


@pytest.mark.testbed
def test_a_sweep_by_the_hook_that_ends_leaves_the_nodes_as_they_were(testbed, run, tmp_path):
    killed = Killed(tmp_path, run)
    values = ("--values", "576", "--rounds", "3", "--format=json")
    ran = run(tmp_path, "netproof", "measure", "tune", *WHERE, "mtu", *values, **killed.settings)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (swept,) = json.loads(ran.stdout)["sweeps"]
    (value,) = swept["values"]
    # Three times as many packets, each with its headers.
    assert value["ranges"]["long"]["factor"] < 1
    assert killed.mtus() == {"1500"}
    assert not killed.record.exists()


@pytest.mark.testbed
def test_packets_that_are_gathered_cost_latency_and_are_so_no_more_afterwards(lines, run, tmp_path):
    settings = settings_of(tmp_path, others=1, **SMALL)
    values = ("--values", "0,400", "--rounds", "3", "--format=json")
    ran = run(tmp_path, "netproof", "measure", "tune", *WHERE, "coalescing", *values, **settings)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (swept,) = json.loads(ran.stdout)["sweeps"]
    # A sweep in 20 errs by design; but 0 is what the nodes have already.
    assert swept["recommended"] is None
    assert swept["own"] == ["0"]
    short = {one["value"]: one["ranges"]["short"]["factor"] for one in swept["values"]}
    # Half of it on average at each end, on top of some 30 µs.
    assert short["400"] < 0.5 < short["0"] < 2
    assert planted() == ["FAULT gige delay=0"]


@pytest.mark.testbed
@pytest.mark.parametrize("after_s", [0.3, 2.0])
def test_gathering_that_is_killed_is_restored_too(lines, run, tmp_path, after_s):
    killed = Killed(tmp_path, run, "coalescing", "400,800")
    began = killed.begin()
    eventually(killed.record.exists, "nothing was noted")
    time.sleep(after_s)
    killed.kill_programs()
    killed.kill_job()
    began.join(60)
    restored = run(
        tmp_path, "netproof", "measure", "tune", "--restore", WHERE[0], **killed.settings
    )
    assert restored.returncode == 0, restored.stdout + restored.stderr
    assert planted() == ["FAULT gige delay=0"]
    assert not killed.record.exists()


@pytest.mark.testbed
def test_algorithms_have_a_table_and_what_the_library_refuses_spoils_no_other(
    testbed, run, tmp_path
):
    settings = settings_of(tmp_path, others=1)
    function = ("Allreduce", "--ranks", "4")
    values = ("--values", "ring,reduce_scatter_allgather,nonsense", "--rounds", "3")
    asked = ("netproof", "measure", "algorithms", *WHERE, *function, *values)
    ran = run(tmp_path, *asked, "--format=json", **settings)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (swept,) = json.loads(ran.stdout)["sweeps"]
    assert (swept["ranks"], swept["rounds"]) == (4, 3)
    assert [one["value"] for one in swept["algorithms"]] == ["reduce_scatter_allgather", "ring"]
    (refused,) = swept["refused"]
    assert refused["value"] == "nonsense"
    assert "ended with status" in refused["said"]
    # A float on each of 4 ranks cannot be scattered to them.
    (fell_back,) = swept["fell_back"]
    assert fell_back["value"] == "reduce_scatter_allgather"
    assert "not usable for the provided arguments" in fell_back["said"]
    assert len(swept["sizes"]) > 10
    (kept,) = (tmp_path / "tuning").glob("run-algorithm-Allreduce-*.json")
    again = run(tmp_path, "netproof", "measure", "tune", str(kept), "--format=json", **settings)
    assert again.stdout == ran.stdout


@pytest.mark.testbed
def test_without_imb_algorithms_are_refused_before_anything_is_measured(testbed, run, tmp_path):
    where = ("testbed:gige", "Bcast", "--environment", "openmpi4")
    ran = run(tmp_path, "netproof", "measure", "algorithms", *where)
    assert ran.returncode == 2
    said = " ".join((ran.stdout + ran.stderr).split())
    assert "no environment 'openmpi4' with IMB, whose site says: Open MPI has no IMB here" in said
