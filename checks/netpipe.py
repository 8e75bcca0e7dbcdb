"""NetPIPE over TCP and over MPI: between two nodes and inside one, one way and bidirectional."""

import reframe as rfm

from netproof.run.rfm import (
    NetpipeCheck,
    NetpipeComparedFurther,
    NetpipeConfigurations,
    NetpipeCurves,
    NetpipeFurther,
    NetpipeLaunches,
)


@rfm.simple_test
class NetpipeJob(NetpipeLaunches):
    """All variants, as the launches of one job for each environment."""


@rfm.simple_test
class NetpipeJobFurther(NetpipeFurther):
    """Launches on what that job left undecided."""

    launched_by = NetpipeJob


class VariantCheck(NetpipeCheck):
    """Reads what that job measured."""

    launched_by = NetpipeJob
    launched_further_by = NetpipeJobFurther


@rfm.simple_test
class NetpipeTcp(VariantCheck):
    """What the network gives without MPI."""

    protocol = "tcp"


@rfm.simple_test
class NetpipeMpi(VariantCheck):
    """What MPI leaves of it."""

    protocol = "mpi"


@rfm.simple_test
class NetpipeSmoothness(NetpipeCurves):
    """Inversions, jumps, dropouts, the line rate, and what MPI loses."""

    launched_by = NetpipeJob
    launched_further_by = NetpipeJobFurther


@rfm.simple_test
class NetpipeComparisonFurther(NetpipeComparedFurther):
    """Launches on what comparing all jobs leaves undecided."""

    launched_by = NetpipeJob
    launched_further_by = NetpipeJobFurther


@rfm.simple_test
class NetpipeComparison(NetpipeConfigurations):
    """Envelope and score."""

    launched_by = NetpipeJob
    launched_further_by = NetpipeJobFurther
    compared_further_by = NetpipeComparisonFurther
