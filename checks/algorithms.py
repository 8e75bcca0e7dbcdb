"""A collective's algorithms, each in turn; nothing unless -S names the function."""

import reframe as rfm

from netproof.run.rfm import AlgorithmCheck, AlgorithmLaunches


@rfm.simple_test
class AlgorithmJob(AlgorithmLaunches):
    """A function with each algorithm of the library, and its own choice between."""


@rfm.simple_test
class Algorithm(AlgorithmCheck):
    """Reads what that job measured."""

    launched_by = AlgorithmJob
