"""NetPIPE over TCP and MPI: inter-node and intra-node, one way and bidirectional."""

import reframe as rfm

from netproof.run.rfm import (
    NetpipeCheck,
    NetpipeComparedRepeat,
    NetpipeConfigurations,
    NetpipeCurves,
    NetpipeLaunches,
    NetpipeRepeat,
)


@rfm.simple_test
class NetpipeJob(NetpipeLaunches):
    """All variants, as launches of one job for each environment."""


@rfm.simple_test
class NetpipeJobFurther(NetpipeRepeat):
    """Repeated launches that the job left undecided."""

    launched_by = NetpipeJob


class VariantCheck(NetpipeCheck):
    """Reading of the job's measurements."""

    launched_by = NetpipeJob
    repeated_by = NetpipeJobFurther


@rfm.simple_test
class NetpipeTcp(VariantCheck):
    """The network without MPI."""

    protocol = "tcp"


@rfm.simple_test
class NetpipeMpi(VariantCheck):
    """The network with MPI."""

    protocol = "mpi"


@rfm.simple_test
class NetpipeSmoothness(NetpipeCurves):
    """Inversions, jumps, dropouts, the line rate, and the loss by MPI."""

    launched_by = NetpipeJob
    repeated_by = NetpipeJobFurther


@rfm.simple_test
class NetpipeComparisonFurther(NetpipeComparedRepeat):
    """Repeated launches that comparing all jobs leaves undecided."""

    launched_by = NetpipeJob
    repeated_by = NetpipeJobFurther


@rfm.simple_test
class NetpipeComparison(NetpipeConfigurations):
    """Envelope and score."""

    launched_by = NetpipeJob
    repeated_by = NetpipeJobFurther
    comparison_repeated_by = NetpipeComparisonFurther
