"""Intel MPI Benchmarks: the functions of a plain acceptance run."""

import reframe as rfm

from netproof.benchmarks import registry
from netproof.run.checks import MpiCheck
from netproof.run.jobs import MpiLaunches


@rfm.simple_test
class ImbJob(MpiLaunches):
    """All functions, as launches of one job for each partition and rank count."""

    benchmark = "imb"
    functions = registry.named("imb").names(default=True)


class DefaultImbCheck(MpiCheck):
    """Check of one function."""

    launched_by = ImbJob


@rfm.simple_test
class ImbPingPong(DefaultImbCheck):
    function = "PingPong"


@rfm.simple_test
class ImbSendrecv(DefaultImbCheck):
    function = "Sendrecv"


@rfm.simple_test
class ImbBcast(DefaultImbCheck):
    function = "Bcast"


@rfm.simple_test
class ImbAllgather(DefaultImbCheck):
    function = "Allgather"


@rfm.simple_test
class ImbAlltoall(DefaultImbCheck):
    function = "Alltoall"


@rfm.simple_test
class ImbReduceScatter(DefaultImbCheck):
    function = "Reduce_scatter"


@rfm.simple_test
class ImbAllreduce(DefaultImbCheck):
    function = "Allreduce"


@rfm.simple_test
class ImbBarrier(DefaultImbCheck):
    function = "Barrier"
