"""What the network does under load, and for long; nothing unless -S names what or how long."""

import reframe as rfm

from netproof.run.rfm import (
    GpcnetCheck,
    GpcnetLaunches,
    LoadCheck,
    LoadLaunches,
    TailsCheck,
    TailsLaunches,
)


@rfm.simple_test
class LoadJob(LoadLaunches):
    """Latency, bandwidth and Allreduce, alone and alongside aggressors on the other nodes."""


@rfm.simple_test
class Load(LoadCheck):
    """Reads what that job measured."""

    launched_by = LoadJob


@rfm.simple_test
class TailsJob(TailsLaunches):
    """Short messages between two nodes, each call timed."""


@rfm.simple_test
class Tails(TailsCheck):
    """Reads what that job measured."""

    launched_by = TailsJob


@rfm.simple_test
class GpcnetJob(GpcnetLaunches):
    """GPCNeT on all nodes, several times."""


@rfm.simple_test
class Gpcnet(GpcnetCheck):
    """Reads what that job ran."""

    launched_by = GpcnetJob
