"""Delay lines: packets that wait, in order or not, and what is left when they are lifted."""

from __future__ import annotations

import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_testbed import TESTBED, done, inside, verb

from ci.testbed import delays, network, processes
from ci.testbed.state import DEFAULT

pytestmark = [pytest.mark.testbed, pytest.mark.usefixtures("lines"), pytest.mark.nightly]

TOPOLOGY = """switches:
  one:
    link_mbps: 100
    mtu: 1500
    buffer: 100000
    nodes: 4
    cpus: 2
    faults:
      one-4: {delay: 300}
"""
PROBE = """
import ctypes, json, os, select, socket, struct, sys, time

def end(node, address):
    place = os.open(f"/run/netns/netproof-{node}", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(place, 0x40000000):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(place)
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((address, 9))
    return made

_, sender, source, receiver, target, count, gap = sys.argv
gives, takes = end(sender, source), end(receiver, target)
takes.setblocking(False)
found, sent, due, quiet = [], 0, time.monotonic(), time.monotonic() + 1
while time.monotonic() < quiet:
    if sent < int(count) and time.monotonic() >= due:
        gives.sendto(struct.pack("qq", sent, time.monotonic_ns()), (target, 9))
        sent, due = sent + 1, due + float(gap)
    try:
        number, left = struct.unpack("qq", takes.recv(99))
    except BlockingIOError:
        continue
    found.append((number, left / 1000, time.monotonic_ns() / 1000))
    quiet = time.monotonic() + 0.3
print(json.dumps(found))
"""
"""Sends datagrams from one end to the other: number, when it left and when it came, in µs."""


@pytest.fixture(scope="module")
def lines(other_testbed, tmp_path_factory) -> None:
    file = tmp_path_factory.mktemp("topology") / "lines.yaml"
    file.write_text(TOPOLOGY)
    other_testbed(file)


@pytest.fixture(autouse=True)
def as_in_the_file() -> Iterator[None]:
    """A test that fails leaves nothing planted for the next."""
    yield
    done("up", "--topology", str(DEFAULT / "topology.yaml"))


def programs() -> dict[str, list[int]]:
    """The programs that hold packets, by the node in whose network they are."""
    names = network.by_inode()
    found: dict[str, list[int]] = {}
    for process in processes.running():
        if process.role == delays.ROLE:
            found.setdefault(names.get(process.network, "nowhere"), []).append(process.pid)
    return found


def numbers(node: str) -> list[str]:
    """Delay, jitter, batch and reordering that the node's program was started with."""
    (pid,) = programs()[node]
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[2:6]


def traffic(count: int, gap_s: float, ends: tuple[str, ...] = ()) -> list[tuple[int, float, float]]:
    """Datagrams from one-1 to one-2: number, when it left and when it came, in µs."""
    ends = ends or ("one-1", "198.18.1.1", "one-2", "198.18.1.2")
    told = subprocess.run(
        [sys.executable, "-c", PROBE, *ends, str(count), str(gap_s)],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=processes.go_first,
    )
    return [tuple(one) for one in json.loads(told.stdout)]


TWIN = ("one@twin-1", "198.19.1.1", "one@twin-2", "198.19.1.2")


def held_us(ends: tuple[str, ...] = ()) -> float:
    """Median time from one end to the other."""
    return statistics.median(came - left for _, left, came in traffic(200, 0.002, ends))


def rules() -> dict[str, str]:
    return {n: inside(n, "iptables-save") for n in ("one-1", "one-2", "one-4", "one@twin-1")}


def test_a_node_s_packets_wait_and_those_of_the_twin_do_not():
    before, twin = held_us(), held_us(TWIN)
    done("plant", "one-1", "delay=5000")
    assert 4500 < held_us() - before < 8000
    assert held_us(TWIN) - twin < 2500
    assert held_us(("one-2", "198.18.1.2", "one-1", "198.18.1.1")) - before < 2500
    done("lift")
    assert held_us() - before < 2500


def test_a_node_goes_before_its_switch_and_what_is_lifted_leaves_no_trace():
    done("lift")
    before = rules()
    assert "NFQUEUE" not in str(before)
    assert not programs()
    done("plant", "one", "delay=100", "jitter=30")
    assert {node: len(pids) for node, pids in programs().items()} == dict.fromkeys(
        ("one-1", "one-2", "one-3", "one-4"), 1
    )
    untouched = programs()["one-1"]
    done("plant", "one-2", "delay=0", "batch=50")
    assert numbers("one-2") == ["0", "30", "50", "0"]
    assert numbers("one-3") == ["100", "30", "0", "0"]
    assert programs()["one-1"] == untouched
    assert "DOWN" not in done("status")
    done("lift", "one-2", "batch")
    assert numbers("one-2") == ["0", "30", "0", "0"]
    done("lift", "one")
    assert list(programs()) == ["one-2"]
    done("lift")
    assert not programs()
    left = rules()
    assert "NFQUEUE" not in str(left)
    assert left["one@twin-1"] == before["one@twin-1"]


def test_a_program_that_is_killed_is_down_lets_packets_pass_and_comes_back_with_up():
    assert numbers("one-4") == ["300", "0", "0", "0"]
    (killed,) = programs()["one-4"]
    os.kill(killed, signal.SIGKILL)
    told = verb("status")
    assert told.returncode == 1
    assert "DOWN one-4: its packets are not held as they should be" in told.stdout
    inside("one-4", "ping", "-c1", "-W5", "198.18.1.1")
    done("up", "--topology", str(DEFAULT / "topology.yaml"))
    assert len(programs()["one-4"]) == 1
    assert "DOWN" not in done("status")


def test_a_rule_that_was_taken_away_by_hand_is_down():
    inside("one-4", "iptables", "-D", *delays.RULE)
    assert "DOWN one-4: its packets are not held" in verb("status").stdout
    done("up", "--topology", str(DEFAULT / "topology.yaml"))
    assert "DOWN" not in done("status")


def test_jitter_spreads_packets_and_keeps_their_order():
    done("plant", "one-1", "jitter=5000")
    came = traffic(500, 0.002)
    waits = sorted(there - left for _, left, there in came)
    assert [number for number, _, _ in came] == list(range(500))
    assert waits[450] - waits[50] > 2000


def test_a_batch_goes_together():
    done("plant", "one-1", "batch=20000")
    came = traffic(200, 0.002)
    times = [there for _, _, there in came]
    pauses = [later - sooner for sooner, later in itertools.pairwise(times)]
    # Ten packets in each 20 ms: they come at once, and then nothing does.
    assert 15 <= sum(pause > 10_000 for pause in pauses) <= 25
    assert sum(pause < 1000 for pause in pauses) > 150
    assert [number for number, _, _ in came] == list(range(200))


def test_those_that_do_not_wait_overtake():
    done("plant", "one-1", "delay=10000", "reorder=0.1")
    came = [number for number, _, _ in traffic(500, 0.002)]
    early = sum(later < sooner for sooner, later in itertools.pairwise(came))
    assert sorted(came) == list(range(500))
    assert 15 < early < 100


def test_bursts_of_tcp_are_held_and_none_is_lost():
    done("plant", "one", "delay=250")
    take = (
        "import socket\n"
        "s = socket.create_server(('', 9000)); print('ready', flush=True)\n"
        "many = [s.accept()[0] for _ in range(16)]\n"
        "print(sum(len(d) for c in many for d in iter(lambda: c.recv(65536), b'')))"
    )
    give = (
        "import socket\n"
        "many = [socket.create_connection(('198.18.1.2', 9000)) for _ in range(16)]\n"
        "for c in many: c.sendall(b'x' * 65536)"
    )
    python = [str(TESTBED), "exec", "one-2", "--", "python3", "-c", take]
    with subprocess.Popen(python, stdout=subprocess.PIPE, text=True) as taking:
        assert taking.stdout.readline() == "ready\n"
        done("exec", "one-1", "--", "python3", "-c", give)
        assert int(taking.stdout.read()) == 16 * 65536
    assert "had no place" not in done("status")
    (pid,) = programs()["one-1"]
    table = Path(f"/proc/{pid}/net/netfilter/nfnetlink_queue").read_text()
    assert delays.read_queue(table, pid) == delays.Queue(waiting=0, lost=0)


def test_what_waits_goes_before_the_line_does():
    done("plant", "one-1", "delay=100000")
    command = [sys.executable, "-c", PROBE]
    command += ["one-1", "198.18.1.1", "one-2", "198.18.1.2", "500", "0.002"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sending:
        time.sleep(0.4)
        done("lift", "one-1")
        came = json.loads(sending.stdout.read())
    assert sorted(number for number, _, _ in came) == list(range(500))


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (("one-1", "reorder=0.1"), "one-1: reorder lets packets overtake those that wait"),
        (("one-1", "delay=100001"), "found 100001; write µs, a whole number from 0 to 100000"),
        (("one-4", "delay=10"), "delay is planted already"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)
def test_what_cannot_be_held_is_refused(fault, says):
    before = programs()
    told = verb("plant", *fault)
    assert (told.returncode, told.stderr.count("\n")) == (2, 1)
    assert says in told.stderr
    assert programs() == before


def test_the_program_says_how_it_is_used():
    told = subprocess.run([delays.PROGRAM, "7"], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (
        2,
        "usage: delay QUEUE DELAY JITTER BATCH REORDER SEED\n",
    )
