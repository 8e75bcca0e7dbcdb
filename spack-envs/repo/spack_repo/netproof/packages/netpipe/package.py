# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

import socket
import subprocess
import time

from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class Netpipe(MakefilePackage):
    """NetPIPE is a protocol-independent ping-pong benchmark. It measures
    latency and bandwidth over TCP and over MPI for message sizes at regular
    intervals, each perturbed by a few bytes."""

    homepage = "http://bitspjoule.org/netpipe/"
    url = "http://bitspjoule.org/netpipe/code/NetPIPE-3.7.2.tar.gz"

    # Its files are under the GNU General Public License and name no version, and the
    # tarball has no copy of any: which leaves the choice among all that were published.
    license("GPL-1.0-or-later")

    version("3.7.2", sha256="13dac884ff52951636f651c421f5ff4a853218a95aa28a4a852402ee385a2ab8")

    variant("mpi", default=True, description="Build NPmpi, which measures over MPI")

    depends_on("c", type="build")
    depends_on("mpi", when="+mpi")

    @property
    def build_targets(self):
        return ["tcp", "mpi"] if self.spec.satisfies("+mpi") else ["tcp"]

    def build(self, spec, prefix):
        variables = [f"CC={spack_cc}", "CFLAGS=-O2 -g"]
        if spec.satisfies("+mpi"):
            variables.append(f"MPICC={spec['mpi'].mpicc}")
        # One make for each: run together they would share object files.
        for target in self.build_targets:
            make(target, *variables)

    def install(self, spec, prefix):
        mkdirp(prefix.bin)
        for target in self.build_targets:
            install(f"NP{target}", prefix.bin)

    def test_loopback(self):
        """NPtcp sends to itself over loopback and writes a curve"""
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
                if subprocess.run(sender, timeout=60, check=False).returncode == 0:
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
