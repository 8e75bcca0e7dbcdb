"""The ReFrame side of netproof; nothing else in the library imports ReFrame.

A run has six kinds of tests, and the leaves in ``checks/`` derive from them:

- *launches* (``NetpipeLaunches``, ``MpiLaunches``): one Slurm job for each partition, environment
  and rank count, in which every launch of every function is a job step;
- *further* (``NetpipeRepeat``, ``MpiRepeat``): one for each job, which repeats its undecided
  cases on the same nodes before anything counts, and does nothing if all are decided;
- *checks* (``NetpipeCheck``, ``MpiCheck``): one for each function, over the files of both: is it
  complete, and do its landmarks hold against the references;
- *curves* (``NetpipeCurves``, ``MpiCurves``): one for each job, with the criteria along each
  curve;
- *compared further* (``NetpipeComparedRepeat``, ``MpiComparedRepeat``): one for each job, once
  all are done, which repeats the cases that comparing configurations leaves undecided;
- *configurations* (``NetpipeConfigurations``, ``MpiConfigurations``): one for each rank count,
  over the jobs of all partitions and environments, with the criteria that compare them.

A job whose cases are all in the file that NETPROOF_LEFT names is skipped, see
``netproof.session.left``; so is one that waits too long for busy nodes, see
``netproof.run.waiting``.

Attributes are due as follows. Class body: ``benchmark``, ``function``, ``protocol`` (NetPIPE),
``launched_by``. After init: ``valid_systems``, ``valid_prog_environs``, ``ranks``, ``reference``,
dependencies. Before setup: the references are there, or the test fails. After setup: ``job_of``,
and for repeat launches whether something is undecided. Before run: a job's plan, its Slurm options,
its files. Sanity: the case is complete and the criteria hold, or every reason why not. Before
performance: the variables.
"""

from netproof.run.checks import (
    Check,
    Configurations,
    Curves,
    MpiCheck,
    MpiConfigurations,
    MpiCurves,
    NetpipeCheck,
    NetpipeConfigurations,
    NetpipeCurves,
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
from netproof.run.jobs import Job, MpiLaunches, NetpipeLaunches, Reader, Steps
from netproof.run.mixins import Launched, Referenced
from netproof.run.pairs import PairCheck, PairLaunches
from netproof.run.repeats import (
    ComparedRepeat,
    MpiComparedRepeat,
    MpiRepeat,
    NetpipeComparedRepeat,
    NetpipeRepeat,
    Repeat,
)
