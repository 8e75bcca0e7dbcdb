"""Intel MPI Benchmarks: the functions beyond a plain acceptance run (-R, tag imb)."""

import reframe as rfm
from reframe.core.builtins import fixture

from netproof.rfm import ImbCheck, OtherImbJob


class OtherImbCheck(ImbCheck):
    """Shares one job with the other functions of this file."""

    job_of = fixture(OtherImbJob, scope="environment")


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
