"""``nptcp.sh``: a sender waits for its receiver, and no minutes for a host that is not there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from made_programs import program

from netproof.measurement.counters import Counters, counters

SHELL = Path(__file__).resolve().parents[3] / "netproof" / "run" / "shell"
NETWORK = """
set -e
ip link set lo up
ip link add name one type veth peer name two
ip link set one up
ip link set two up
ip -4 address add 198.18.77.1/24 dev one
ip neighbour add 198.18.77.2 lladdr 02:00:00:00:00:02 dev one nud permanent
set +e
"""
"""A network in which packets to 198.18.77.2 go nowhere."""
PORT = "15077"


def unshared() -> list[str]:
    """Command that begins in namespaces of its own, if the kernel gives us any."""
    command = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--mount", "--net"]
    if subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("this kernel gives us no network namespace")
    return command


def bash(folder: Path, text: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Shell text in a network of its own: what bash ended with, and what it said."""
    env = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", **env}
    command = [*unshared(), "bash", "-c", text]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.fixture
def ran(tmp_path):
    """Shell text in ``NETWORK``, beside ``nptcp.sh``."""
    for name in ("nptcp.sh", "load.sh"):
        shutil.copy(SHELL / name, tmp_path)
    changed(tmp_path, "CONNECT_S=20\n", "CONNECT_S=2\n")
    return lambda command: bash(tmp_path, NETWORK + command)


def changed(folder: Path, old: str, new: str) -> None:
    script = folder / "nptcp.sh"
    assert old in script.read_text()
    script.write_text(script.read_text().replace(old, new))


def end(rank: int, address: str) -> str:
    arguments = f"run {address} {PORT} -u 64 -n 10 -o {rank}.np"
    return f"SLURMD_NODENAME=n{rank} SLURM_PROCID={rank} bash ./nptcp.sh {arguments}"


@pytest.mark.slow
def test_a_sender_to_a_host_that_does_not_answer_is_ended_and_says_so(ran):
    done = ran(end(1, "198.18.77.2"))
    assert done.returncode == 68, done.stderr
    assert "had no answer from 198.18.77.2 in " in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("later_s", ["0", "1"])
def test_a_receiver_may_come_up_after_the_sender(ran, tmp_path, later_s):
    receiver = end(0, "127.0.0.1")
    done = ran(
        f"(sleep {later_s}; {receiver}) & {end(1, '127.0.0.1')}; status=$?; wait; exit $status"
    )
    assert done.returncode == 0, done.stderr
    assert "no answer" not in done.stderr
    assert len((tmp_path / "1.np").read_text().splitlines()) > 5


@pytest.mark.slow
def test_where_nobody_ever_listens_the_sender_says_that_it_was_refused(ran, tmp_path):
    changed(tmp_path, '"$tries" -ge 200', '"$tries" -ge 5')
    done = ran(end(1, "127.0.0.1"))
    assert done.returncode == 246
    assert "no answer" not in done.stderr


@pytest.mark.slow
def test_nothing_is_left_of_what_insists_once_the_sender_has_ended(ran, tmp_path):
    changed(tmp_path, "CONNECT_S=2\n", "CONNECT_S=600\n")
    # A program that came and went before anybody looked.
    program(tmp_path / "bin" / "NPtcp")
    run = "nptcp.sh run 127.0.0.1 15078"
    done = ran(
        f"PATH=$PWD/bin:$PATH SLURMD_NODENAME=n2 SLURM_PROCID=1 bash ./{run} -o 1.np; echo $?;"
        f" for try in $(seq 100); do ps -e -o args | grep -q '^bash ./{run}' || exit 0; sleep 0.1;"
        " done; exit 9"
    )
    assert (done.stdout, done.returncode) == ("0\n", 0), done.stderr


@pytest.mark.slow
def test_connections_are_listed_only_where_a_sender_has_no_figure_for_long(ran, tmp_path):
    """To list them takes the kernel some ms, in which the sender's rate drops."""

    def traced(address: str) -> str:
        arguments = f"run {address} {PORT} -u 64 -n 10 -o 1.np"
        own = "BASH_XTRACEFD=7 SLURMD_NODENAME=n2 SLURM_PROCID=1"
        return f"{own} bash -x ./nptcp.sh {arguments} 7>trace"

    done = ran(f"{end(0, '127.0.0.1')} & {traced('127.0.0.1')}; status=$?; wait; exit $status")
    assert done.returncode == 0, done.stderr
    trace = (tmp_path / "trace").read_text()
    assert "insist_on_answer 127.0.0.1" in trace
    assert "mapfile" not in trace
    (tmp_path / "1.np").unlink()
    assert ran(traced("198.18.77.2")).returncode == 68
    assert "mapfile -t lines" in (tmp_path / "trace").read_text()


# ``counters.sh`` reads every source whole, in lines that srun leaves whole, at little cost.

LAUNCH = """
. ./counters.sh
network_before n1
{meanwhile}
network_after n1 0
"""


def counted(meanwhile: str, *, before: str = "", **env: str) -> str:
    """Standard error of a launch in namespaces of its own."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(SHELL, folder, dirs_exist_ok=True)
        launch = LAUNCH.format(meanwhile=meanwhile)
        done = bash(Path(folder), f"set -e\n{before}\nset +e\n{launch}", **env)
    assert done.returncode == 0, done.stderr
    return done.stderr


def read(said: str) -> Counters:
    found = counters(Path("x.err"), said, ["n1"])
    assert found is not None
    return found


OWN_SYSFS = (
    "mount -t sysfs sysfs /sys; ip link set lo up; ip link add name one type veth peer name two;"
)


FLAP = "ip link set two down; ip link set two up"
LAUNCHED = ". ./counters.sh; set +e; network_before n1; network_after n1 0 2>/dev/null"


@pytest.mark.parametrize(
    ("before", "meanwhile"),
    [
        ("", FLAP),
        (f"{LAUNCHED}; {FLAP}", ""),
        # The second launch fails.
        (
            f"{LAUNCHED}; network_before n1; ip link set two down;"
            " network_after n1 137 2>/dev/null; ip link set two up",
            "",
        ),
        pytest.param(
            f"SLURMD_NODENAME=n1 python3 -IS ./node.py node one >/dev/null; {FLAP}",
            "",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["during a launch", "between two", "in a failed one", "since a node described itself"],
)
def test_what_a_carrier_did_until_the_end_of_a_launch_counts_with_it(before, meanwhile):
    # An interface that comes up with IPv6 sends packets of its own.
    quiet = "for file in /proc/sys/net/ipv6/conf/{one,two}/disable_ipv6; do"
    quiet += " [ ! -e $file ] || echo 1 >$file; done"
    up = "ip link set one up; ip link set two up"
    found = read(counted(meanwhile, before=f"{OWN_SYSFS} {quiet}; {up}; {before}"))
    assert found.value("n1", "interface", "one", "carrier_changes") == 2
    assert found.value("n1", "interface", "one", "rx_bytes") == 0
    assert found.value("n1", "interface", "lo", "carrier_changes") == 0


def test_without_a_sysfs_of_its_own_carriers_are_not_known():
    before = "ip link set lo up; ip link add name eth0 type veth peer name two;"
    said = counted("bash -c 'echo hello > /dev/udp/127.0.0.1/9'", before=before)
    found = read(said)
    # The machine has no interface two, and an lo of its own, which has seen other bytes.
    assert found.value("n1", "interface", "two", "carrier_changes") is None
    assert "/sys/class/net/two" in found.why("n1", "interface", "two", "carrier_changes")
    assert found.value("n1", "interface", "lo", "tx_bytes") > 0


def test_what_went_over_loopback_is_counted_in_short_lines():
    said = counted("bash -c 'echo hello > /dev/udp/127.0.0.1/9'", before=OWN_SYSFS)
    found = read(said)
    sent = found.value("n1", "interface", "lo", "tx_bytes")
    assert sent == found.value("n1", "interface", "lo", "rx_bytes") > 0
    assert found.value("n1", "tcp", "", "Tcp.RetransSegs") == 0
    assert max(map(len, said.splitlines())) < 1024


INFINIBAND = """
mount -t tmpfs none /sys/class
port=/sys/class/infiniband/mlx5_0/ports/1
mkdir -p $port/counters $port/hw_counters /sys/class/infiniband/mlx5_0/device/net/ib0
echo 0 >/sys/class/infiniband/mlx5_0/device/net/ib0/dev_port
echo InfiniBand >$port/link_layer
echo 1000 >$port/counters/port_xmit_data
echo 0 >$port/counters/symbol_error
echo 12 >$port/hw_counters/lifespan
echo 5 >$port/hw_counters/out_of_sequence
"""


def test_ports_are_read_whole():
    said = counted("echo 1500 >$port/counters/port_xmit_data", before=INFINIBAND)
    port = read(said).source("n1", "infiniband", "mlx5_0/1")
    assert (port.layer, port.interfaces) == ("InfiniBand", ("ib0",))
    assert port.counted == {"counters/port_xmit_data": 500}
    assert read(said).value("n1", "infiniband", "mlx5_0/1", "hw_counters/out_of_sequence") == 0


ETHTOOL = """
if [ "$2" != eth1 ]; then echo "no stats available"; exit 94; fi
echo "NIC statistics:"
echo "     rx_discards_phy: $(cat count)"
echo "     rx_prio3_pause: 4"
echo "     rx0_packets: 9"
echo "     [3]: tx_bytes: 9"
"""


def test_drivers_are_asked_where_the_site_says_so_and_queues_left_out(tmp_path):
    program(tmp_path / "ethtool", ETHTOOL.replace("count)", f"{tmp_path}/count)"))
    (tmp_path / "count").write_text("1")
    asked = {"PATH": f"{tmp_path}:/usr/bin:/bin:/usr/sbin:/sbin", "netproof_rails": "eth1 eth2"}
    said = counted(f"echo 4 >{tmp_path}/count", netproof_driver_counters="1", **asked)
    found = read(said)
    driver = found.source("n1", "driver", "eth1")
    assert driver.counted == {"rx_discards_phy": 3}
    assert found.names[driver.read] == ("rx_discards_phy", "rx_prio3_pause")
    assert found.absent["n1"]["driver eth2"] == "ethtool -S: no stats available"
    silent = read(counted(":", netproof_driver_counters="0", **asked))
    assert "driver_counters" in silent.absent["n1"]["driver"]
