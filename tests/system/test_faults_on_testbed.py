"""Leaves, delay lines and faults that are planted and lifted: what the kernel and transfers say."""

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
from made_testbed import TESTBED, done, inside, refused, verb

from ci.testbed import delays, mending, network, planting, processes, topology_reading
from ci.testbed.state import DEFAULT, StateFolder

pytestmark = [pytest.mark.testbed, pytest.mark.usefixtures("leaves"), pytest.mark.nightly]

LEAVES = """switches:
  one:
    link_mbps: 10
    mtu: 1500
    buffer: 100000
    nodes: 4
    cpus: 2
    leaves: 2
    uplink_mbps: 10
    faults:
      one-4: {rate: 0.5, delay: 300}
"""
FROM_FILE = {"one-4": {"rate": 0.5, "delay": 300}}


@pytest.fixture(scope="module")
def leaves(other_testbed, tmp_path_factory) -> None:
    file = tmp_path_factory.mktemp("topology") / "leaves.yaml"
    file.write_text(LEAVES)
    other_testbed(file)


def restored() -> None:
    done("up", "--topology", str(DEFAULT / "topology.yaml"))


@pytest.fixture(autouse=True)
def as_in_the_file() -> Iterator[None]:
    """A test that fails leaves nothing planted for the next."""
    yield
    if recorded() != FROM_FILE:
        restored()


def recorded() -> dict[str, dict[str, object]]:
    return planting.load(
        StateFolder(DEFAULT), topology_reading.load(DEFAULT / "topology.yaml")
    ).planted


def kernel(*, patience_s: float = 3) -> dict[str, str]:
    """Disciplines, filters, rules, links, addresses and TCP's sysctls of all, and loops."""
    show = (
        "tc qdisc show; ip neigh show nud permanent | sort; ip address show | grep -v valid_lft;"
        " for i in $(ls /sys/class/net); do tc filter show dev $i ingress; done;"
        " sysctl -a 2>/dev/null | grep '^net.ipv4.tcp_' | grep -v tcp_fastopen_key;"
        " iptables-save | grep NFQUEUE"
    )
    found = {name: inside(name, "sh", "-c", f"{show}; true") for name in ("one-1", "one-2")}
    found["switches"] = inside("switches", "sh", "-c", "tc qdisc show; ip link show")
    found["programs"] = str(sorted(programs()))
    found["loops"] = str(sorted(p.role for p in processes.running() if p.role == "busy"))
    # An address of IPv6 is tried for a second or two before it is taken.
    if any("tentative" in text for text in found.values()) and patience_s > 0:
        time.sleep(0.2)
        return kernel(patience_s=patience_s - 0.2)
    return found


def programs() -> dict[str, int]:
    """The programs that hold packets, by the node in whose network they are."""
    names = network.by_inode()
    running = (process for process in processes.running() if process.role == delays.ROLE)
    return {names.get(process.network, "nowhere"): process.pid for process in running}


@pytest.mark.parametrize(
    "fault",
    [
        ("one-1", "rate=0.5"),
        ("one-1", "send_rate=0.1", "receive_rate=0.25"),
        ("one-1", "loss=0.005"),
        ("one-1", "mtu=1400"),
        ("one-1", "mtu=1200"),
        ("one-1", "link=down"),
        ("one-1", "busy_cpus=2"),
        ("one-1", "net.ipv4.tcp_sack=0"),
        ("one-1", "net.ipv4.tcp_rmem=4096 16384 32768"),
        ("one-1", "delay=100", "jitter=30"),
        ("one-leaf-2", "rate=0.5"),
        ("one-leaf-2", "loss=0.01"),
        ("one-leaf-2", "link=down"),
        ("one", "buffer=20000"),
        ("one", "mgmt_mbps=100"),
    ],
    ids=" ".join,
)
def test_a_fault_is_planted_and_lifted_without_a_trace(fault):
    before = kernel()
    done("plant", *fault)
    assert kernel() != before
    assert len(recorded()[fault[0]]) == len(fault) - 1
    done("lift", fault[0])
    assert kernel() == before
    assert recorded() == FROM_FILE


def test_what_the_file_plants_is_there_and_comes_back_with_up():
    done("lift")
    assert "FAULT" not in done("status")
    done("plant", "one-2", "rate=0.5", "net.ipv4.tcp_sack=0", "busy_cpus=1")
    restored()
    faults = {line for line in done("status").splitlines() if line.startswith("FAULT")}
    assert faults == {"FAULT one-4 rate=0.5", "FAULT one-4 delay=300"}
    assert inside("one-2", "sysctl", "-n", "net.ipv4.tcp_sack").strip() == "1"
    assert not [p for p in processes.running() if p.role == planting.BUSY_ROLE]


@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGINT])
def test_a_fault_for_a_time_is_lifted_after_it_and_when_its_command_is_ended(number):
    seconds = "60" if number else "0.5"
    planting_ = subprocess.Popen(
        [TESTBED, "plant", "one-2", "mtu=1400", "--for", seconds],
        stdout=subprocess.PIPE,
        text=True,
        # Behind nohup, or with &, tests are started with some signals ignored.
        preexec_fn=number and (lambda: signal.signal(number, signal.SIG_DFL)),
    )
    assert planting_.stdout.readline() == "planted one-2 mtu=1400\n"
    begun = time.monotonic()
    if number:
        planting_.send_signal(number)
    said, _ = planting_.communicate(timeout=30)
    assert said == "lifted one-2 mtu=1400\n"
    assert number or time.monotonic() - begun > 0.4
    assert "one-2 mtu" not in done("status")


def test_a_fault_that_was_taken_away_by_hand_is_shown_and_mended():
    done("plant", "one-1", "loss=0.1", "busy_cpus=1")
    inside("switches", "tc", "qdisc", "del", "dev", "one-1", "clsact")
    (loop,) = [p for p in processes.running() if p.role == planting.BUSY_ROLE]
    os.kill(loop.pid, signal.SIGKILL)
    os.kill(programs()["one-4"], signal.SIGKILL)
    shown = verb("status")
    assert shown.returncode == 1
    assert "DOWN one-1: share of frames lost at the switch's end is 0.000000" in shown.stdout
    assert "DOWN one-1: 0 CPUs are kept busy and 1 should be" in shown.stdout
    assert "DOWN one-4: its packets are not held as they should be" in shown.stdout
    # They pass.
    inside("one-4", "ping", "-c1", "-W5", "198.18.1.1")
    done("lift", "one-1")
    restored()
    inside("one-4", "iptables", "-D", *delays.RULE)
    assert "DOWN one-4: its packets are not held" in verb("status").stdout
    restored()
    done("status")


def test_what_the_kernel_does_not_take_is_refused_and_all_is_as_before():
    before = kernel()
    ran = verb("plant", "one-1", "rate=0.5", "net.ipv4.tcp_sack=300")
    assert ran.returncode == 1
    assert "one-1: net.ipv4.tcp_sack is 1 and should be 300" in ran.stderr
    assert "planted already: run 'testbed lift one-4'" in refused("plant", "one-4", "rate=0.1")
    assert kernel() == before
    assert recorded() == FROM_FILE


def seconds(sender: str, receiver: str, connections: int = 1) -> float:
    """How long 400 kB over TCP take from one node to the other, by so many connections."""
    (found,) = inside(receiver, "ip", "-4", "-o", "address", "show", "dev", "eth1").splitlines()
    address, size = found.split()[3].split("/")[0], 400_000 // connections
    take = (
        "import socket, time\n"
        "s = socket.create_server(('', 9000)); print('ready', flush=True)\n"
        f"many = [s.accept()[0] for _ in range({connections})]; begun = time.monotonic()\n"
        "got = sum(len(data) for c in many for data in iter(lambda: c.recv(65536), b''))\n"
        "print(got, time.monotonic() - begun)"
    )
    give = (
        "import socket\n"
        f"many = [socket.create_connection(({address!r}, 9000)) for _ in range({connections})]\n"
        f"for c in many: c.sendall(b'x' * {size})"
    )
    python = [str(TESTBED), "exec", receiver, "--", "python3", "-c", take]
    with subprocess.Popen(python, stdout=subprocess.PIPE, text=True) as taking:
        assert taking.stdout.readline() == "ready\n"
        done("exec", sender, "--", "python3", "-c", give)
        got, took_s = taking.stdout.read().split()
    assert int(got) == size * connections
    return float(took_s)


def test_one_slow_direction_is_slow_and_the_other_is_not():
    healthy = seconds("one-1", "one-2")
    assert 0.3 < healthy < 2
    done("plant", "one-1", "send_rate=0.1")
    there, back = seconds("one-1", "one-2"), seconds("one-2", "one-1")
    done("lift", "one-1")
    assert there > 5 * healthy
    assert back < 2 * healthy


def test_a_slow_uplink_slows_what_crosses_it_and_nothing_else():
    healthy = seconds("one-1", "one-3")
    done("plant", "one-leaf-2", "receive_rate=0.2")
    across, alongside = seconds("one-1", "one-3"), seconds("one-1", "one-2")
    done("lift", "one-leaf-2")
    assert across > 3 * healthy
    assert alongside < 2 * healthy


def test_neighbours_are_known_and_asked_for_nothing():
    known = inside("one-1", "ip", "neigh", "show", "dev", "eth1", "nud", "permanent").splitlines()
    assert len(known) == 3
    assert mending.hardware_address("198.18.1.2") in inside("one-2", "ip", "link", "show", "eth1")


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

HERE = ("one-1", "198.18.1.1", "one-2", "198.18.1.2")
TWIN = ("one@twin-1", "198.19.1.1", "one@twin-2", "198.19.1.2")


def sending(count: int, ends: tuple[str, ...] = HERE) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROBE, *ends, str(count), "0.002"]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, preexec_fn=processes.go_first
    )


def traffic(count: int, ends: tuple[str, ...] = HERE) -> list[tuple[int, float, float]]:
    """A datagram each 2 ms: number, when it left and when it came, in µs."""
    with sending(count, ends) as probe:
        return [tuple(one) for one in json.load(probe.stdout)]


def held_us(ends: tuple[str, ...] = HERE) -> float:
    """Median time from one end to the other."""
    return statistics.median(came - left for _, left, came in traffic(200, ends))


def test_a_node_s_packets_wait_and_those_of_the_twin_do_not():
    before, twin = held_us(), held_us(TWIN)
    done("plant", "one-1", "delay=5000")
    assert 4500 < held_us() - before < 8000
    assert held_us(TWIN) - twin < 2500
    assert held_us((*HERE[2:], *HERE[:2])) - before < 2500
    done("lift", "one-1")
    assert held_us() - before < 2500


def test_jitter_spreads_packets_and_keeps_their_order():
    done("plant", "one-1", "jitter=5000")
    came = traffic(500)
    waits = sorted(there - left for _, left, there in came)
    assert [number for number, _, _ in came] == list(range(500))
    assert waits[450] - waits[50] > 2000


def test_a_batch_goes_together():
    done("plant", "one-1", "batch=20000")
    came = traffic(200)
    times = [there for _, _, there in came]
    pauses = [later - sooner for sooner, later in itertools.pairwise(times)]
    # Ten packets in each 20 ms: they come at once, and then nothing does.
    assert 15 <= sum(pause > 10_000 for pause in pauses) <= 25
    assert sum(pause < 1000 for pause in pauses) > 150
    assert [number for number, _, _ in came] == list(range(200))


def test_those_that_do_not_wait_overtake():
    done("plant", "one-1", "delay=10000", "reorder=0.1")
    came = [number for number, _, _ in traffic(500)]
    early = sum(later < sooner for sooner, later in itertools.pairwise(came))
    assert sorted(came) == list(range(500))
    assert 15 < early < 100


def test_bursts_of_tcp_are_held_and_none_is_lost():
    done("plant", "one-1", "delay=250")
    seconds("one-1", "one-2", connections=16)
    assert "had no place" not in done("status")
    pid = programs()["one-1"]
    table = Path(f"/proc/{pid}/net/netfilter/nfnetlink_queue").read_text()
    assert delays.read_queue(table, pid) == delays.Queue(waiting=0, lost=0)


def test_what_waits_goes_before_the_line_does():
    done("plant", "one-1", "delay=100000")
    with sending(500) as probe:
        time.sleep(0.4)
        done("lift", "one-1")
        came = json.load(probe.stdout)
    assert sorted(number for number, _, _ in came) == list(range(500))
