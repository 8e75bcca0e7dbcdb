"""Pairs of all nodes of a partition, to find slow ones."""

import reframe as rfm

from netproof.run.pairs import PairCheck, PairLaunches


@rfm.simple_test
class PairJob(PairLaunches):
    """Rounds of all nodes at once, until each is cleared or accused."""


@rfm.simple_test
class Pairs(PairCheck):
    """Reading of the job's measurements."""

    launched_by = PairJob
