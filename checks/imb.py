"""Intel MPI Benchmarks: the functions of a plain acceptance run."""

import reframe as rfm

from netproof.benchmarks.catalogue import DEFAULT_IMB
from netproof.run.rfm import (
    ImbCheck,
    ImbComparedFurther,
    ImbConfigurations,
    ImbCurves,
    ImbFurther,
    ImbLaunches,
)


@rfm.simple_test
class ImbJob(ImbLaunches):
    """The functions, as the launches of one job for each environment and rank count."""

    functions = DEFAULT_IMB


@rfm.simple_test
class ImbJobFurther(ImbFurther):
    """Launches on what that job left undecided."""

    launched_by = ImbJob


class DefaultImbCheck(ImbCheck):
    """Reads what that job measured."""

    launched_by = ImbJob
    launched_further_by = ImbJobFurther


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


@rfm.simple_test
class ImbSmoothness(ImbCurves):
    """Inversions, jumps, dropouts, and the line rate."""

    launched_by = ImbJob
    launched_further_by = ImbJobFurther


@rfm.simple_test
class ImbComparisonFurther(ImbComparedFurther):
    """Launches on what comparing all jobs leaves undecided."""

    launched_by = ImbJob
    launched_further_by = ImbJobFurther


@rfm.simple_test
class ImbComparison(ImbConfigurations):
    """Envelope and score."""

    launched_by = ImbJob
    launched_further_by = ImbJobFurther
    compared_further_by = ImbComparisonFurther
