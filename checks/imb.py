"""Intel MPI Benchmarks: the functions of a plain acceptance run."""

import reframe as rfm

from netproof.benchmarks import registry
from netproof.run.rfm import (
    MpiCheck,
    MpiComparedRepeat,
    MpiConfigurations,
    MpiCurves,
    MpiLaunches,
    MpiRepeat,
)


@rfm.simple_test
class ImbJob(MpiLaunches):
    """All functions, as launches of one job for each environment and rank count."""

    benchmark = "imb"
    functions = registry.named("imb").names(default=True)


@rfm.simple_test
class ImbJobFurther(MpiRepeat):
    """Repeated launches that the job left undecided."""

    launched_by = ImbJob


class DefaultImbCheck(MpiCheck):
    """Reading of the job's measurements."""

    launched_by = ImbJob
    repeated_by = ImbJobFurther


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
class ImbSmoothness(MpiCurves):
    """Inversions, jumps, dropouts, and the line rate."""

    launched_by = ImbJob
    repeated_by = ImbJobFurther


@rfm.simple_test
class ImbComparisonFurther(MpiComparedRepeat):
    """Repeated launches that comparing all jobs leaves undecided."""

    launched_by = ImbJob
    repeated_by = ImbJobFurther


@rfm.simple_test
class ImbComparison(MpiConfigurations):
    """Envelope and score."""

    launched_by = ImbJob
    repeated_by = ImbJobFurther
    comparison_repeated_by = ImbComparisonFurther
