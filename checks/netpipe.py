"""NetPIPE over TCP and MPI: inter-node and intra-node, one way and bidirectional."""

import reframe as rfm

from netproof.run.checks import NetpipeCheck, TcpCheck
from netproof.run.jobs import NetpipeLaunches


@rfm.simple_test
class NetpipeJob(NetpipeLaunches):
    """All variants, as launches of one job for each partition."""


@rfm.simple_test
class NetpipeTcp(TcpCheck):
    """The network without MPI."""

    launched_by = NetpipeJob
    protocol = "tcp"


@rfm.simple_test
class NetpipeMpi(NetpipeCheck):
    """The network with MPI."""

    launched_by = NetpipeJob
    protocol = "mpi"
