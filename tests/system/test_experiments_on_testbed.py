"""``netproof measure`` on the testbed, whose nodes are as they were afterwards."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from made_site import SMALL, settings_of
from made_testbed import done, eventually, verb

pytestmark = [pytest.mark.testbed, pytest.mark.usefixtures("testbed"), pytest.mark.nightly]

WHERE = ("testbed:gige", "--environment", "mpich")

Measure = Callable[..., dict[str, Any]]


@pytest.fixture
def measure(run, tmp_path) -> Measure:
    """``measure(settings, kind, *words)``: the document of a measurement, and of its report."""

    def measured(settings: dict[str, str], kind: str, *words: str) -> dict[str, Any]:
        settings = settings | {"RFM_PREFIX": str(tmp_path / "prefix")}
        ran = run(tmp_path, "netproof", "measure", kind, *words, "--format=json", **settings)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        kind = {"algorithms": "tune"}.get(kind, kind)
        (kept,) = (tmp_path / {"tune": "tuning"}.get(kind, kind)).glob("run-*.json")
        # No verdict takes it for an acceptance run.
        assert not list(tmp_path.glob("run-*.json"))
        again = run(tmp_path, "netproof", "measure", kind, str(kept), "--format=json", **settings)
        assert (again.returncode, again.stdout) == (0, ran.stdout)
        document: dict[str, Any] = json.loads(ran.stdout)
        return document

    return measured


def test_a_socket_buffer_that_is_far_too_small_is_seen_to_cost_rate(measure, tmp_path):
    # So small a buffer waits for the peer's delayed acknowledgements, so its rate differs many
    # times between launches, and the interval may contain 1: the factor itself is tested.
    values = ("socket-buffer", "--values", "2048", "--rounds", "7")
    (swept,) = measure(settings_of(tmp_path, **SMALL), "tune", *WHERE, *values)["sweeps"]
    assert swept["rounds"] == 7
    (smallest,) = swept["values"]
    assert smallest["ranges"]["long"]["factor"] < 1, smallest["ranges"]
    assert swept["recommended"] is None


def test_algorithms_have_a_table_and_what_the_library_refuses_spoils_no_other(measure, tmp_path):
    values = ("--values", "ring,reduce_scatter_allgather,nonsense", "--rounds", "3")
    asked = (*WHERE, "Allreduce", "--ranks", "4", *values)
    (swept,) = measure(settings_of(tmp_path), "algorithms", *asked)["sweeps"]
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


@pytest.fixture
def lines() -> Iterator[None]:
    """Packets of all nodes go through a delay line, in which nothing waits."""
    done("plant", "gige", "delay=0")
    yield
    done("lift")


def planted() -> list[str]:
    """Faults that `testbed status` shows."""
    return [line for line in done("status").splitlines() if line.startswith("FAULT ")]


def test_packets_that_are_gathered_cost_latency_and_are_so_no_more_afterwards(
    measure, lines, tmp_path
):
    values = ("coalescing", "--values", "0,400", "--rounds", "3")
    (swept,) = measure(settings_of(tmp_path, **SMALL), "tune", *WHERE, *values)["sweeps"]
    # A sweep in 20 errs by design; but 0 is what the nodes have already.
    assert swept["recommended"] is None
    assert swept["own"] == ["0"]
    short = {one["value"]: one["ranges"]["short"]["factor"] for one in swept["values"]}
    # Half of it on average at each end, on top of some 30 µs.
    assert short["400"] < 0.5 < short["0"] < 2
    assert planted() == ["FAULT gige delay=0"]


class Killed:
    """A sweep that is killed, with all that belongs to it."""

    def __init__(self, folder: Path, run, name: str, values: str) -> None:
        self.folder, self.run = folder, run
        self.settings = settings_of(folder)
        self.record = folder / "tuning" / "not-restored-testbed-gige.json"
        # In the background, its processes in a session of their own.
        own = ("setsid", "--wait", "bash", "-c", 'echo $$ >pid; exec "$@"', "-")
        command = ("netproof", "measure", "tune", *WHERE, name, "--values", values, "--rounds", "3")

        def sweep() -> None:
            self.ended = run(folder, *own, *command, **self.settings)

        self.began = threading.Thread(target=sweep, daemon=True)
        self.began.start()
        eventually(self.record.exists, "nothing was noted")

    def kill_job(self) -> None:
        """Its job, as a node that goes down would: no script gets to say anything."""

        def jobs() -> list[str]:
            return self.run(self.folder, "squeue", "--noheader", "--format=%A").stdout.split()

        for job in jobs():
            self.run(self.folder, "scancel", "--full", "--signal=KILL", job)
        eventually(lambda: not jobs(), "the job stays")
        self.began.join(60)

    def insist_on_restored(self) -> None:
        asked = ("srun", "-p", "gige", "-N4", "-n4", "cat", "/sys/class/net/eth1/mtu")
        assert {*self.run(self.folder, *asked).stdout.split()} == {"1500"}
        assert planted() == ["FAULT gige delay=0"]
        assert not self.record.exists()


@pytest.mark.parametrize(
    ("name", "values", "after_s"),
    [
        *(("mtu", "1400,1300", after_s) for after_s in (0.0, 1.0, 6.0)),
        ("coalescing", "400,800", 2.0),
    ],
)
def test_a_sweep_that_is_killed_is_restored_by_whoever_comes_next(
    run, lines, tmp_path, name, values, after_s
):
    killed = Killed(tmp_path, run, name, values)
    time.sleep(after_s)
    # The command and ReFrame, which can say nothing either.
    os.killpg(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    killed.kill_job()
    assert killed.record.exists()
    restore = ("netproof", "measure", "tune", "--restore", WHERE[0])
    restored = run(tmp_path, *restore, **killed.settings)
    assert restored.returncode == 0, restored.stdout + restored.stderr
    killed.insist_on_restored()


def test_of_a_job_that_is_killed_the_command_restores_the_nodes(run, lines, tmp_path):
    killed = Killed(tmp_path, run, "mtu", "1400,1300")
    time.sleep(2)
    killed.kill_job()
    assert killed.ended.returncode == 2
    assert "mtu is 1500 again, as before a sweep that did not end" in killed.ended.stderr
    killed.insist_on_restored()


def take_down_later(folder: Path, moments: list[float], said: list[str]) -> None:
    """Take a link down for a second, once the long launch has printed some calls."""

    def calls() -> int:
        found = folder.rglob("tail.1.out")
        return sum(path.read_text(errors="replace").count("\n") for path in found)

    eventually(lambda: calls() >= 2000, "no calls", 180)
    moments.append(time.time())
    ran = verb("plant", "gige-2", "link=down", "--for", "1")
    said.append(f"{ran.returncode} {ran.stdout}{ran.stderr}")


def test_a_link_that_went_down_is_a_pause_of_single_calls_at_its_time(measure, tmp_path):
    moments, said = [], []
    planting = threading.Thread(target=take_down_later, args=(tmp_path, moments, said))
    planting.start()
    try:
        settings = settings_of(tmp_path)
        (found,) = measure(settings, "tails", *WHERE, "--seconds", "12")["tails"]
    finally:
        planting.join()
        verb("lift")
    assert said[0].startswith("0 "), said
    assert found["nodes"] == ["gige-1", "gige-2"]
    assert found["calls"] > 2000
    assert 6 < found["seconds"] < 40
    longest = found["pauses"][0]
    # TCP waits ever longer before it sends again.
    assert 0.5e6 < longest["took_us"] < 6e6
    assert 0 < longest["until"] - moments[0] < 5
    changes = {(one["node"], one["interface"]) for one in found["carrier_changes"]}
    assert ("gige-2", "eth1") in changes
