"""Intel MPI Benchmarks: the functions of a plain acceptance run."""

import reframe as rfm

from netproof.rfm import ImbCheck


@rfm.simple_test
class ImbPingPong(ImbCheck):
    function = "PingPong"


@rfm.simple_test
class ImbSendrecv(ImbCheck):
    function = "Sendrecv"


@rfm.simple_test
class ImbBcast(ImbCheck):
    function = "Bcast"


@rfm.simple_test
class ImbAllgather(ImbCheck):
    function = "Allgather"


@rfm.simple_test
class ImbAlltoall(ImbCheck):
    function = "Alltoall"


@rfm.simple_test
class ImbReduceScatter(ImbCheck):
    function = "Reduce_scatter"


@rfm.simple_test
class ImbAllreduce(ImbCheck):
    function = "Allreduce"


@rfm.simple_test
class ImbBarrier(ImbCheck):
    function = "Barrier"
