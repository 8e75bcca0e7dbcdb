"""Intel MPI Benchmarks: the functions beyond a plain acceptance run (-R, tag imb)."""

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
class OtherImbJob(MpiLaunches):
    """All functions, as launches of one job for each environment and rank count."""

    benchmark = "imb"
    functions = registry.named("imb").names(default=False)


@rfm.simple_test
class OtherImbJobFurther(MpiRepeat):
    """Repeated launches that the job left undecided."""

    launched_by = OtherImbJob


class OtherImbCheck(MpiCheck):
    """Reading of the job's measurements."""

    launched_by = OtherImbJob
    repeated_by = OtherImbJobFurther


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


@rfm.simple_test
class OtherImbSmoothness(MpiCurves):
    """Inversions, jumps, dropouts, and the line rate."""

    launched_by = OtherImbJob
    repeated_by = OtherImbJobFurther


@rfm.simple_test
class OtherImbComparisonFurther(MpiComparedRepeat):
    """Repeated launches that comparing all jobs leaves undecided."""

    launched_by = OtherImbJob
    repeated_by = OtherImbJobFurther


@rfm.simple_test
class OtherImbComparison(MpiConfigurations):
    """Envelope and score."""

    launched_by = OtherImbJob
    repeated_by = OtherImbJobFurther
    comparison_repeated_by = OtherImbComparisonFurther
