"""NetPIPE over TCP and over MPI: between two nodes and inside one, one way and bidirectional."""

import reframe as rfm

from netproof.rfm import NetpipeCheck


@rfm.simple_test
class NetpipeTcp(NetpipeCheck):
    """What the network gives without MPI."""

    protocol = "tcp"


@rfm.simple_test
class NetpipeMpi(NetpipeCheck):
    """What MPI leaves of it."""

    protocol = "mpi"
