"""``nptcp.sh``: a sender waits for its receiver, and no minutes for a host that is not there."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

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


@pytest.fixture
def ran(tmp_path):
    """Shell text in a network of its own: what bash ended with, and what it said."""
    for name in ("nptcp.sh", "load.sh"):
        shutil.copy(SHELL / name, tmp_path)
    script = tmp_path / "nptcp.sh"
    text = script.read_text()
    assert "CONNECT_S=20\n" in text
    script.write_text(text.replace("CONNECT_S=20\n", "CONNECT_S=2\n"))
    unshare = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--mount", "--net"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("this kernel gives us no network namespace")

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*unshare, "bash", "-c", NETWORK + command],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def end(rank: int, address: str) -> str:
    arguments = f"run {address} {PORT} -u 64 -n 10 -o {rank}.np"
    return f"SLURMD_NODENAME=n{rank} SLURM_PROCID={rank} bash ./nptcp.sh {arguments}"


def test_a_sender_to_a_host_that_does_not_answer_is_ended_and_says_so(ran):
    done = ran(end(1, "198.18.77.2"))
    assert done.returncode == 68, done.stderr
    assert "had no answer from 198.18.77.2 in " in done.stderr


@pytest.mark.parametrize("later_s", ["0", "1"])
def test_a_receiver_may_come_up_after_the_sender(ran, tmp_path, later_s):
    receiver = end(0, "127.0.0.1")
    done = ran(
        f"(sleep {later_s}; {receiver}) & {end(1, '127.0.0.1')}; status=$?; wait; exit $status"
    )
    assert done.returncode == 0, done.stderr
    assert "no answer" not in done.stderr
    assert len((tmp_path / "1.np").read_text().splitlines()) > 5


def test_where_nobody_ever_listens_the_sender_says_that_it_was_refused(ran, tmp_path):
    script = tmp_path / "nptcp.sh"
    script.write_text(script.read_text().replace('"$tries" -ge 200', '"$tries" -ge 5'))
    done = ran(end(1, "127.0.0.1"))
    assert done.returncode == 246
    assert "no answer" not in done.stderr


def test_nothing_is_left_of_what_insists_once_the_sender_has_ended(ran, tmp_path):
    script = tmp_path / "nptcp.sh"
    script.write_text(script.read_text().replace("CONNECT_S=2\n", "CONNECT_S=600\n"))
    program = tmp_path / "bin" / "NPtcp"
    program.parent.mkdir()
    # A program that came and went before anybody looked.
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    run = "nptcp.sh run 127.0.0.1 15078"
    done = ran(
        f"PATH=$PWD/bin:$PATH SLURMD_NODENAME=n2 SLURM_PROCID=1 bash ./{run} -o 1.np; echo $?;"
        f" for try in $(seq 100); do ps -e -o args | grep -q '^bash ./{run}' || exit 0; sleep 0.1;"
        " done; exit 9"
    )
    assert (done.stdout, done.returncode) == ("0\n", 0), done.stderr


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
