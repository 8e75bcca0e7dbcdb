"""A sweep of one setting; nothing runs unless -S names it."""

import reframe as rfm

from netproof.run.experiments import TuningCheck, TuningLaunches


@rfm.simple_test
class TuningJob(TuningLaunches):
    """NetPIPE with each value of a setting, interleaved with the default."""


@rfm.simple_test
class Tuning(TuningCheck):
    """Reading of the job's measurements."""

    launched_by = TuningJob
