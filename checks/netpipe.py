"""NetPIPE over TCP and MPI: inter-node and intra-node, one way and bidirectional."""

import reframe as rfm

from netproof.run.checks import Configurations, Curves, NetpipeCheck, Results, TcpCheck
from netproof.run.jobs import NetpipeLaunches


@rfm.simple_test
class NetpipeJob(NetpipeLaunches):
    """All variants, as launches of one job for each partition."""


@rfm.simple_test
class NetpipeResults(Results):
    """Reading of the job's measurements in each environment."""

    launched_by = NetpipeJob


@rfm.simple_test
class NetpipeTcp(TcpCheck):
    """The network without MPI."""

    read_by = NetpipeResults
    protocol = "tcp"


@rfm.simple_test
class NetpipeMpi(NetpipeCheck):
    """The network with MPI."""

    read_by = NetpipeResults
    protocol = "mpi"


@rfm.simple_test
class NetpipeSmoothness(Curves):
    """Inversions, jumps, dropouts, the line rate, and the loss by MPI."""

    read_by = NetpipeResults


@rfm.simple_test
class NetpipeComparison(Configurations):
    """Envelope and score."""

    read_by = NetpipeResults
