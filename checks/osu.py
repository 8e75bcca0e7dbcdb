"""OSU Micro-Benchmarks: every function that netproof reads."""

import reframe as rfm

from netproof.benchmarks import registry
from netproof.run.checks import MpiCheck
from netproof.run.jobs import MpiLaunches


@rfm.simple_test
class OsuJob(MpiLaunches):
    """All functions, as launches of one job for each partition and rank count."""

    benchmark = "osu"
    functions = registry.named("osu").names(default=True)


class OsuCheck(MpiCheck):
    """Check of one function."""

    launched_by = OsuJob


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
