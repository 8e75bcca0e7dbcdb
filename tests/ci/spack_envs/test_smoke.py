"""`check` runs NPmpi and IMB-MPI1 on 2 ranks, by the MPI library that they were built with."""

from __future__ import annotations

import time

import pytest
from made_programs import program

from ci.spack_envs import smoke
from ci.testbed import processes
from netproof.errors import NetproofError
from netproof.site import spack

# ci/spack-envs runs as a whole, several times a test.
pytestmark = pytest.mark.slow

ONE = "mpich-gcc"


@pytest.fixture
def built(spack_envs, stand_in, folder):
    """An environment that is built; the folder of its programs."""
    assert spack_envs("build", ONE, "--site", "debian12").returncode == 0
    return spack.view(spack.table(folder).named(ONE), folder) / "bin"


def test_all_programs_run_by_its_own_mpiexec(spack_envs, built):
    ran = spack_envs("check", ONE)
    assert ran.returncode == 0, ran.stdout
    assert f"{ONE}: NPmpi, IMB-MPI1, osu_latency, osu_bw, " in ran.stdout
    assert ", osu_reduce_scatter and osu_barrier ran with 2 ranks" in ran.stdout
    log = (built.parents[1] / ".netproof" / "smoke" / "smoke.log").read_text()
    commands = [line for line in log.splitlines() if line.startswith("$ ")]
    assert [line.split()[1:4] for line in commands] == [[commands[0].split()[1], "-n", "2"]] * 12
    assert commands[0].split()[1].endswith(".opt/mpich/bin/mpiexec")
    assert f"{built}/NPmpi" in commands[0]
    assert f"{built}/IMB-MPI1 -npmin 2 -msglen sizes-PingPong.txt" in commands[1]
    omb = built.parent / "libexec" / "osu-micro-benchmarks" / "mpi"
    assert f"{omb}/pt2pt/osu_bw -m 1:64 -i 10" in commands[3]
    assert f"{omb}/collective/osu_allreduce -m 4:64 -f -i 10" in commands[6]


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("NPmpi", "exit 3", "ended with 3"),
        ("NPmpi", "true", "np.out"),
        (
            "NPmpi",
            'head -n 5 "$STAND_IN_DATA/smoke-np.out" >"$2"',
            "has other sizes than NetPIPE measures",
        ),
        ("IMB-MPI1", "true", "IMB-MPI1.out"),
        (
            "IMB-MPI1",
            'sed "/^ *64 /d; /^ *32 /d" "$STAND_IN_DATA/smoke-imb.out"',
            "has the sizes (1, 2, 4, 8, 16), not (1, 2, 4, 8, 16, 32, 64)",
        ),
        (
            "../libexec/osu-micro-benchmarks/mpi/pt2pt/osu_bibw",
            "exit 3",
            "/osu_bibw -m 1:64 -i 10 -x 1 ended with 3",
        ),
    ],
)
def test_one_that_fails_is_a_fault(spack_envs, built, name, text, fault):
    # MPICH's mpiexec dies of SIGPIPE if rank 0 ends before it knows that stdin has ended.
    program(built / name, f'[ -n "${{PMI_RANK#0}}" ] && exit\ncat >/dev/null\n{text}')
    ran = spack_envs("check", ONE)
    assert ran.returncode == 1
    (fault_line,) = (line for line in ran.stdout.splitlines() if line.startswith("FAULT "))
    assert fault_line.startswith(f"FAULT {ONE}: ")
    assert fault in fault_line


def test_another_mpi_library_than_the_prefix_has_is_a_fault(spack_envs, built, tmp_path):
    ldd = tmp_path / "bin" / "ldd"
    program(ldd, "printf '\\tlibmpi.so.12 => /usr/lib/libmpi.so.12 (0x0000)\\n'")
    ran = spack_envs("check", ONE)
    assert ran.returncode == 1
    assert "NPmpi takes libmpi.so.12 from /usr/lib/libmpi.so.12, not from " in ran.stdout


def test_under_slurm_it_is_srun_with_the_mpi_s_pmi_that_starts_them(spack_envs, built, tmp_path):
    program(tmp_path / "bin" / "srun", 'while [[ $1 == -* ]]; do shift; done; exec "$@"')
    ran = spack_envs("check", ONE, "--slurm", "--nodes=2 --partition=build")
    assert ran.returncode == 0, ran.stdout
    log = (built.parents[1] / ".netproof" / "smoke" / "smoke.log").read_text()
    assert f"$ {tmp_path}/bin/srun --mpi=pmi2 --ntasks=2 --nodes=2 --partition=build {built}" in log


def test_one_that_hangs_is_ended_with_its_ranks(tmp_path, monkeypatch):
    monkeypatch.setattr(smoke, "SECONDS", 1)
    hangs = program(tmp_path / "hangs", f"sleep 600 & echo $! >{tmp_path}/rank; wait")
    with pytest.raises(NetproofError, match="hangs took over 1 s"):
        smoke._run([str(hangs)], tmp_path, {"PATH": "/usr/bin:/bin"})
    rank = int((tmp_path / "rank").read_text())
    # A process closes its files, which is what communicate() waits for, before it is a zombie.
    deadline = time.monotonic() + 30
    while any(one.pid == rank for one in processes.running()):
        assert time.monotonic() < deadline, f"rank {rank} still runs"
        time.sleep(0.05)
