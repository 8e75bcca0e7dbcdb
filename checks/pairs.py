"""Every node of a partition in pairs, and which of them is slow."""

import reframe as rfm

from netproof.run.rfm import PairCheck, PairLaunches


@rfm.simple_test
class PairJob(PairLaunches):
    """Rounds of all nodes at once, until each is cleared or accused."""


@rfm.simple_test
class Pairs(PairCheck):
    """Reads what that job measured."""

    launched_by = PairJob
