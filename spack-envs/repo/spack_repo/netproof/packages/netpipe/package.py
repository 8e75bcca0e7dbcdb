"""NetPIPE 3.7.2 for Spack, whose own packages lack it."""

# ruff: noqa: F403, F405 (a package file takes Spack's language by star)

import socket
import subprocess
import time

try:
    from spack_repo.builtin.build_systems.makefile import MakefilePackage
except ImportError:  # Spack 0.23
    from spack.package import MakefilePackage
from spack.package import *


class Netpipe(MakefilePackage):
    """Ping-pong over TCP and over MPI, at sizes that a power of two perturbs.

    Installs NPtcp and NPmpi, both compiled by the environment's compiler, NPmpi with its MPI.
    """

    homepage = "http://bitspjoule.org/netpipe/"
    url = "http://bitspjoule.org/netpipe/code/NetPIPE-3.7.2.tar.gz"

    license("GPL-2.0-or-later")

    version("3.7.2", sha256="13dac884ff52951636f651c421f5ff4a853218a95aa28a4a852402ee385a2ab8")

    depends_on("c", type="build")
    depends_on("mpi")

    build_targets = ("tcp", "mpi")
    programs = ("NPtcp", "NPmpi")

    def build(self, spec, prefix):
        """Compile the two programs, one make for each: together they would share object files."""
        for target in self.build_targets:
            make(target, f"CC={spack_cc}", f"MPICC={spec['mpi'].mpicc}", "CFLAGS=-O2 -g")

    def install(self, spec, prefix):
        """Put them into bin/."""
        mkdirp(prefix.bin)
        for program in self.programs:
            install(program, prefix.bin)

    def test_loopback(self):
        """NPtcp sends to itself over loopback and writes a curve."""
        nptcp = str(self.prefix.bin.NPtcp)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        receiver = subprocess.Popen([nptcp, "-P", port, "-u", "64"])
        sender = [nptcp, "-h", "127.0.0.1", "-P", port, "-u", "64", "-o", "np.out"]
        try:
            # The receiver may not listen yet.
            for _ in range(20):
                time.sleep(0.5)
                if subprocess.run(sender, timeout=60).returncode == 0:
                    break
            else:
                raise RuntimeError(f"{' '.join(sender)} failed 20 times")
        finally:
            receiver.terminate()
            receiver.wait()
        with open("np.out") as curve:
            columns = [len(line.split()) for line in curve]
        assert columns, "np.out is empty"
        assert set(columns) == {3}, "three columns: bytes, Mbps, seconds"
