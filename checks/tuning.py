"""One setting turned, and what that changes; nothing unless -S names what is turned."""

import reframe as rfm

from netproof.run.rfm import TuningCheck, TuningLaunches


@rfm.simple_test
class TuningJob(TuningLaunches):
    """NetPIPE with each value of a setting, and the default between."""


@rfm.simple_test
class Tuning(TuningCheck):
    """Reads what that job measured."""

    launched_by = TuningJob
