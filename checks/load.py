"""What the network does under load; nothing unless -S names what congests."""

import reframe as rfm

from netproof.run.rfm import LoadCheck, LoadLaunches


@rfm.simple_test
class LoadJob(LoadLaunches):
    """Latency, bandwidth and Allreduce, alone and beside aggressors on the other nodes."""


@rfm.simple_test
class Load(LoadCheck):
    """Reads what that job measured."""

    launched_by = LoadJob
