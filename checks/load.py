"""The network under load, and tails; nothing runs unless -S selects it."""

import reframe as rfm

from netproof.run.experiments import (
    GpcnetCheck,
    GpcnetLaunches,
    LoadCheck,
    LoadLaunches,
    TailsCheck,
    TailsLaunches,
)


@rfm.simple_test
class LoadJob(LoadLaunches):
    """Latency, bandwidth and Allreduce, alone and with aggressors on the other nodes."""


@rfm.simple_test
class Load(LoadCheck):
    """Reading of the job's measurements."""

    launched_by = LoadJob


@rfm.simple_test
class TailsJob(TailsLaunches):
    """Short messages between two nodes, each call timed."""


@rfm.simple_test
class Tails(TailsCheck):
    """Reading of the job's measurements."""

    launched_by = TailsJob


@rfm.simple_test
class GpcnetJob(GpcnetLaunches):
    """GPCNeT on all nodes, several times."""


@rfm.simple_test
class Gpcnet(GpcnetCheck):
    """Reading of the job's runs."""

    launched_by = GpcnetJob
