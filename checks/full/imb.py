"""Intel MPI Benchmarks: the functions beyond a plain acceptance run (-R, tag imb)."""

import reframe as rfm

from netproof.run.checks import MpiCheck
from netproof.run.jobs import MpiLaunches


@rfm.simple_test
class OtherImbJob(MpiLaunches):
    """All functions, as launches of one job for each partition and rank count."""

    benchmarks = ("imb",)


class OtherImbCheck(MpiCheck):
    """Check of one function."""

    launched_by = OtherImbJob
    benchmark = "imb"


@rfm.simple_test
class ImbPingPing(OtherImbCheck):
    function = "PingPing"


@rfm.simple_test
class ImbExchange(OtherImbCheck):
    function = "Exchange"


@rfm.simple_test
class ImbUniband(OtherImbCheck):
    function = "Uniband"


@rfm.simple_test
class ImbBiband(OtherImbCheck):
    function = "Biband"


@rfm.simple_test
class ImbAllgatherv(OtherImbCheck):
    function = "Allgatherv"


@rfm.simple_test
class ImbGather(OtherImbCheck):
    function = "Gather"


@rfm.simple_test
class ImbGatherv(OtherImbCheck):
    function = "Gatherv"


@rfm.simple_test
class ImbScatter(OtherImbCheck):
    function = "Scatter"


@rfm.simple_test
class ImbScatterv(OtherImbCheck):
    function = "Scatterv"


@rfm.simple_test
class ImbAlltoallv(OtherImbCheck):
    function = "Alltoallv"


@rfm.simple_test
class ImbReduce(OtherImbCheck):
    function = "Reduce"


@rfm.simple_test
class ImbReduceScatterBlock(OtherImbCheck):
    function = "Reduce_scatter_block"
