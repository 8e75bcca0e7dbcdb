"""Leaves, and faults that are planted and lifted: what kernel, Slurm and a transfer say of them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_testbed import TESTBED, done, inside, refused, verb

from ci.testbed import mending, planting, processes, topology_reading
from ci.testbed.state import DEFAULT, StateFolder
from netproof.site import slurm

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
      one-4: {rate: 0.5}
"""
FROM_FILE = {"one-4": {"rate": 0.5}}


@pytest.fixture(scope="module")
def leaves(other_testbed, tmp_path_factory) -> None:
    file = tmp_path_factory.mktemp("topology") / "leaves.yaml"
    file.write_text(LEAVES)
    other_testbed(file)


def recorded() -> dict[str, dict[str, object]]:
    return planting.load(
        StateFolder(DEFAULT), topology_reading.load(DEFAULT / "topology.yaml")
    ).planted


@pytest.fixture(autouse=True)
def as_in_the_file() -> Iterator[None]:
    """A test that fails leaves nothing planted for the next."""
    yield
    if recorded() != FROM_FILE:
        done("up", "--topology", str(DEFAULT / "topology.yaml"))


def kernel(*, patience_s: float = 3) -> dict[str, str]:
    """Disciplines, filters, links, addresses and TCP's sysctls of nodes and switches, and loops."""
    show = (
        "tc qdisc show; ip neigh show nud permanent | sort; ip address show | grep -v valid_lft;"
        " for i in $(ls /sys/class/net); do tc filter show dev $i ingress; done;"
        " sysctl -a 2>/dev/null | grep '^net.ipv4.tcp_' | grep -v tcp_fastopen_key"
    )
    found = {name: inside(name, "sh", "-c", show) for name in ("one-1", "one-2", "one-3")}
    found["switches"] = inside("switches", "sh", "-c", "tc qdisc show; ip link show")
    found["loops"] = str(sorted(p.role for p in processes.running() if p.role == "busy"))
    # An address of IPv6 is tried for a second or two before it is taken.
    if any("tentative" in text for text in found.values()) and patience_s > 0:
        time.sleep(0.2)
        return kernel(patience_s=patience_s - 0.2)
    return found


FAULTS = [
    ("one-1", "rate=0.5"),
    ("one-1", "send_rate=0.1", "receive_rate=0.25"),
    ("one-1", "loss=0.005"),
    ("one-1", "mtu=1400"),
    ("one-1", "mtu=1200"),
    ("one-1", "link=down"),
    ("one-1", "busy_cpus=2"),
    ("one-1", "net.ipv4.tcp_sack=0"),
    ("one-1", "net.ipv4.tcp_rmem=4096 16384 32768"),
    ("one-leaf-2", "rate=0.5"),
    ("one-leaf-2", "loss=0.01"),
    ("one-leaf-2", "link=down"),
    ("one", "buffer=20000"),
    ("one", "mgmt_mbps=100"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=" ".join)
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
    done("up", "--topology", str(DEFAULT / "topology.yaml"))
    assert [line for line in done("status").splitlines() if line.startswith("FAULT")] == [
        "FAULT one-4 rate=0.5"
    ]
    assert inside("one-2", "sysctl", "-n", "net.ipv4.tcp_sack").strip() == "1"
    assert not [p for p in processes.running() if p.role == planting.BUSY_ROLE]


def test_a_fault_for_a_time_is_lifted_after_it():
    changes = Path("/sys/class/net/eth1/carrier_changes")

    def seen() -> int:
        return int(done("exec", "one-2", "--", "cat", str(changes)))

    before, begun = seen(), time.monotonic()
    done("plant", "one-2", "link=down", "--for", "0.5")
    assert time.monotonic() - begun > 0.5
    assert seen() == before + 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_fault_for_a_time_is_lifted_when_its_command_is_ended(number):
    planting_ = subprocess.Popen(
        [TESTBED, "plant", "one-2", "mtu=1400", "--for", "60"],
        stdout=subprocess.PIPE,
        text=True,
        # Behind nohup, or with &, tests are started with some signals ignored.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    assert planting_.stdout.readline() == "planted one-2 mtu=1400\n"
    planting_.send_signal(number)
    said, _ = planting_.communicate(timeout=30)
    assert said == "lifted one-2 mtu=1400\n"
    assert "one-2 mtu" not in done("status")


def test_a_fault_that_was_taken_away_by_hand_is_told_and_mended_by_lift():
    done("plant", "one-1", "loss=0.1", "busy_cpus=1")
    inside("switches", "tc", "qdisc", "del", "dev", "one-1", "clsact")
    (loop,) = [p for p in processes.running() if p.role == planting.BUSY_ROLE]
    os.kill(loop.pid, signal.SIGKILL)
    told = verb("status")
    assert told.returncode == 1
    assert "DOWN one-1: share of frames lost at the switch's end is 0.000000" in told.stdout
    assert "DOWN one-1: 0 CPUs are kept busy and 1 should be" in told.stdout
    done("lift", "one-1")
    done("status")


def test_what_the_kernel_does_not_take_is_told_and_all_is_as_before():
    before = kernel()
    ran = verb("plant", "one-1", "rate=0.5", "net.ipv4.tcp_sack=300")
    assert ran.returncode == 1
    assert "one-1: net.ipv4.tcp_sack is 1 and should be 300" in ran.stderr
    assert kernel() == before
    assert "FAULT one-1" not in done("status")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (("plant", "one-9", "rate=0.5"), "no node, leaf or switch of this testbed; it has one-1"),
        (("plant", "one-1", "rate=2"), "found 2; write a share of its rate"),
        (("plant", "one-1", "rate"), "give each fault once, as KEY=VALUE"),
        (("plant", "one-4", "rate=0.1"), "planted already: run 'testbed lift one-4'"),
        (("plant", "one-4", "send_rate=0.1"), "rate is of both directions"),
        (("plant", "one-1", "net.ipv4.tcp_nothing=1"), "has no sysctl net.ipv4.tcp_nothing"),
        (("lift", "one-1", "rate"), "rate is not planted"),
        (("lift", "one-9"), "no node, leaf or switch"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)
def test_what_cannot_be_planted_or_lifted_is_refused_and_changes_nothing(asked, says):
    before = kernel()
    assert says in refused(*asked)
    assert kernel() == before
    assert recorded() == FROM_FILE


def seconds(sender: str, receiver: str, size: int = 400_000) -> float:
    """How long ``size`` bytes over TCP take from one node to the other."""
    address = inside(receiver, "ip", "-4", "-o", "address", "show", "dev", "eth1").split()[3]
    take = (
        "import socket, time\n"
        "s = socket.create_server(('', 9000)); print('ready', flush=True); c, _ = s.accept()\n"
        "begun = time.monotonic()\n"
        "while c.recv(65536): pass\n"
        "print(time.monotonic() - begun)"
    )
    give = (
        f"import socket; s = socket.create_connection(({address.split('/')[0]!r}, 9000));"
        f" s.sendall(b'x' * {size})"
    )
    python = [str(TESTBED), "exec", receiver, "--", "python3", "-c", take]
    with subprocess.Popen(python, stdout=subprocess.PIPE, text=True) as taking:
        assert taking.stdout.readline() == "ready\n"
        done("exec", sender, "--", "python3", "-c", give)
        return float(taking.stdout.read())


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


def test_lost_frames_are_sent_again():
    def again() -> int:
        rows = inside("one-1", "cat", "/proc/net/snmp").splitlines()
        names, values = (row.split() for row in rows if row.startswith("Tcp:"))
        return int(values[names.index("RetransSegs")])

    before = again()
    done("plant", "one-1", "loss=0.05")
    seconds("one-1", "one-2")
    done("lift", "one-1")
    assert again() > before


def test_slurm_knows_the_leaves_and_the_spine(monkeypatch):
    monkeypatch.setenv("SLURM_CONF", str(DEFAULT / "slurm.conf"))
    leaves, parents = slurm.topology()
    assert leaves == {"one-leaf-1": ("one-1", "one-2"), "one-leaf-2": ("one-3", "one-4")}
    assert parents == {"one-leaf-1": "one-spine", "one-leaf-2": "one-spine"}


def test_the_site_s_partition_is_ready_on_it(run, tmp_path):
    checked = run(tmp_path, "netproof", "site", "check", "testbed:one")
    assert checked.returncode == 0, checked.stdout


def test_neighbours_are_known_and_asked_for_nothing():
    known = inside("one-1", "ip", "neigh", "show", "dev", "eth1", "nud", "permanent").splitlines()
    assert len(known) == 3
    assert mending.hardware_address("198.18.1.2") in inside("one-2", "ip", "link", "show", "eth1")
