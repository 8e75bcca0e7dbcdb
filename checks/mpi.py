"""MPI on several ranks: Intel MPI Benchmarks and OSU Micro-Benchmarks (tags imb, osu)."""

import reframe as rfm

from netproof.run.checks import MpiCheck
from netproof.run.jobs import MpiLaunches


@rfm.simple_test
class MpiJob(MpiLaunches):
    """All functions, as launches of one job for each partition and rank count."""

    benchmarks = ("imb", "osu")
    limited = False


@rfm.simple_test
class ImbJob(MpiLaunches):
    """Those of IMB, where a partition bounds the length of jobs."""

    benchmarks = ("imb",)
    limited = True


@rfm.simple_test
class OsuJob(MpiLaunches):
    """Those of OMB, where a partition bounds the length of jobs."""

    benchmarks = ("osu",)
    limited = True


class ImbCheck(MpiCheck):
    """Check of one function of a plain run."""

    launched_by = MpiJob
    limited_by = ImbJob
    benchmark = "imb"


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


class OsuCheck(MpiCheck):
    """Check of one function."""

    launched_by = MpiJob
    limited_by = OsuJob
    benchmark = "osu"


@rfm.simple_test
class OsuLatency(OsuCheck):
    function = "latency"


@rfm.simple_test
class OsuBw(OsuCheck):
    function = "bw"


@rfm.simple_test
class OsuBibw(OsuCheck):
    function = "bibw"


@rfm.simple_test
class OsuMbwMr(OsuCheck):
    function = "mbw_mr"


@rfm.simple_test
class OsuAllreduce(OsuCheck):
    function = "allreduce"


@rfm.simple_test
class OsuAlltoall(OsuCheck):
    function = "alltoall"


@rfm.simple_test
class OsuAllgather(OsuCheck):
    function = "allgather"


@rfm.simple_test
class OsuBcast(OsuCheck):
    function = "bcast"


@rfm.simple_test
class OsuReduceScatter(OsuCheck):
    function = "reduce_scatter"


@rfm.simple_test
class OsuBarrier(OsuCheck):
    function = "barrier"
