"""A sweep of a collective's algorithms; nothing runs unless -S names the function."""

import reframe as rfm

from netproof.run.experiments import AlgorithmCheck, AlgorithmLaunches


@rfm.simple_test
class AlgorithmJob(AlgorithmLaunches):
    """A function with each algorithm of the library, interleaved with the default."""


@rfm.simple_test
class Algorithm(AlgorithmCheck):
    """Reading of the job's measurements."""

    launched_by = AlgorithmJob
