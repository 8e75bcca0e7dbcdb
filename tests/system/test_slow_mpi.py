"""An MPI library that is made slower at some sizes, by real programs on one node."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ci.evaluation.machine import compiled_slow_mpi, slower
from netproof.benchmarks import netpipe

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = {"mpich": ROOT / ".opt" / "mpich", "intelmpi": ROOT / ".opt" / "intelmpi"}


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    return compiled_slow_mpi(tmp_path_factory.mktemp("slow"))


def started(prefix: Path, place: Path, variables: dict[str, str], *command: str) -> str:
    """Output of two ranks on this node."""
    mine = {
        "PATH": f"{prefix}/bin:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": f"{prefix}/lib",
        "FI_PROVIDER": "tcp",
        **variables,
    }
    ran = subprocess.run(
        ["mpiexec.hydra", "-launcher", "fork", "-n", "2", *command],
        cwd=place,
        env=mine,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return ran.stdout + ran.stderr + f"\nended with {ran.returncode}\n"


def one_way_us(prefix: Path, place: Path, variables: dict[str, str]) -> dict[int, float]:
    """One-way times by message size, of NetPIPE."""
    out = place / "np.out"
    said = started(prefix, place, variables, "NPmpi", "-u", "4096", "-n", "3", "-o", str(out))
    assert "ended with 0" in said, said
    (printed,) = netpipe.read_file(out.read_text(), str(out), bidirectional=False).tables
    curve = printed.curve()
    return dict(zip(curve.sizes, curve.time_us, strict=True))


@pytest.mark.parametrize("name", LIBRARIES)
def test_messages_of_some_sizes_take_longer_and_no_others(name, library, tmp_path):
    variables = {"LD_PRELOAD": str(library), "SLOW_MPI": "Send:2900-3100:5000:0"}
    times = one_way_us(LIBRARIES[name], tmp_path, variables)
    slow = {size for size, time in times.items() if time > 4000}
    assert slow == {size for size in times if 2900 <= size <= 3100}
    assert slow


def test_time_is_added_by_the_byte_in_the_named_program_unless_a_variable_spares_it(
    library, tmp_path
):
    def times(program: str = "NPmpi", **variables: str) -> dict[int, float]:
        unless = ("NETPROOF_ALGORITHM", "ring")
        asked = slower(library, "Send:0-8192:3000:1000", program, unless) | variables
        return one_way_us(LIBRARIES["mpich"], tmp_path, asked)

    slow = times()
    assert 3000 < slow[1] < 6000
    assert 7000 < slow[4096] < 10000
    assert max(times("IMB-MPI1").values()) < 2500
    assert max(times(NETPROOF_ALGORITHM="ring").values()) < 2500
    for other in ("rin", "ring2"):
        assert min(times(NETPROOF_ALGORITHM=other).values()) > 2900


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"SLOW_MPI_UNLESS": "ring"}, "SLOW_MPI_UNLESS is no NAME=VALUE: ring"),
        ({"SLOW_MPI": "Send:0-4:3000"}, "SLOW_MPI cannot be read from here on: Send:0-4:3000"),
    ],
)
def test_what_cannot_be_read_ends_the_program(library, tmp_path, changed, says):
    asked = {**slower(library, "Send:0-4096:3000:0"), **changed}
    said = started(LIBRARIES["mpich"], tmp_path, asked, "NPmpi", "-u", "64", "-n", "5")
    assert f"slow_mpi: {says}" in said
    assert "ended with 0" not in said
