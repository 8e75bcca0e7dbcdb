"""OSU Micro-Benchmarks: every function that netproof reads."""

import reframe as rfm

from netproof.benchmarks import registry
from netproof.run.checks import MpiCheck, MpiConfigurations, MpiCurves, MpiReading
from netproof.run.jobs import MpiLaunches


@rfm.simple_test
class OsuJob(MpiLaunches):
    """All functions, as launches of one job for each partition and rank count."""

    benchmark = "osu"
    functions = registry.named("osu").names(default=True)


@rfm.simple_test
class OsuResults(MpiReading):
    """Reading of the job's measurements in each environment."""

    launched_by = OsuJob


class OsuCheck(MpiCheck):
    """Check of one function."""

    read_by = OsuResults


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


@rfm.simple_test
class OsuSmoothness(MpiCurves):
    """Inversions, jumps, dropouts, and the line rate."""

    read_by = OsuResults


@rfm.simple_test
class OsuComparison(MpiConfigurations):
    """Envelope and score."""

    read_by = OsuResults
