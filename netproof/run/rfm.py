"""The ReFrame side of netproof; nothing else in the library imports ReFrame.

A run has jobs and what reads them, and the leaves in ``checks/`` derive from these:

- *jobs* (``NetpipeLaunches``, ``MpiLaunches``): one Slurm job for each partition and rank count,
  in which every launch of every function in every environment is a job step, environments next to
  each other; it launches again what is undecided;
- *launches* (``Results``, ``MpiReading``): one for each job and environment, with the
  records of what was measured there;
- *checks* (``NetpipeCheck``, ``MpiCheck``): one for each function: is it complete, and do its
  landmarks hold against the references;
- *curves* (``Curves``, ``MpiCurves``): one for each job and environment, with the criteria
  along each curve;
- *configurations* (``Configurations``, ``MpiConfigurations``): one for each rank count,
  over the jobs of all partitions and environments, with the criteria that compare them.

A job whose cases are all in the file that NETPROOF_LEFT names is skipped, see
``netproof.session.left``; so is one that waits too long for busy nodes, see
``netproof.run.waiting``.

Attributes are due as follows. Class body: ``benchmark``, ``function``, ``protocol`` (NetPIPE),
``launched_by``, ``read_by``. After init: ``valid_systems``, ``valid_prog_environs``, ``ranks``,
``reference``, dependencies. Before setup: the references are there, or the test fails. After setup:
``job_of``. Before run: a job's plan, its Slurm options, its files. Sanity: the case is complete and
the criteria hold, or every reason why not. Before performance: the variables.
"""

from netproof.run.checks import (
    Check,
    Configurations,
    Curves,
    MpiCheck,
    MpiConfigurations,
    MpiCurves,
    NetpipeCheck,
)
from netproof.run.experiments import (
    AlgorithmCheck,
    AlgorithmLaunches,
    GpcnetCheck,
    GpcnetLaunches,
    LoadCheck,
    LoadLaunches,
    TailsCheck,
    TailsLaunches,
    TuningCheck,
    TuningLaunches,
)
from netproof.run.jobs import (
    Job,
    MpiLaunches,
    NetpipeLaunches,
)
from netproof.run.mixins import Launched, Referenced
from netproof.run.pairs import PairCheck, PairLaunches
from netproof.run.results import MpiReading, Results
