"""Sweeps as they are asked for: the values of a setting, and the algorithms of a collective."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from netproof.benchmarks import imb, netpipe, registry
from netproof.errors import NetproofError
from netproof.experiments import parameters, sweep
from netproof.experiments.experiment import Experiment
from netproof.experiments.sweep import Sweep
from netproof.session import plan
from netproof.session.plan import PLAN_FILE, JobPlan, Step


@dataclass(frozen=True, kw_only=True)
class SweepAsked(Experiment):
    """So many launches of each value, or of each of ``values`` where these are given."""

    values: tuple[str, ...] = ()
    rounds: int

    FOLDER: ClassVar[str] = parameters.FOLDER
    FIGURES_AT_ONCE = True

    def sweep(self, planned: JobPlan) -> Sweep:
        """Return the sweep, without launches; NetproofError if it cannot be set."""
        raise NotImplementedError

    def steps(self, planned: JobPlan) -> tuple[Step, ...]:
        """Return the steps with their values; NetproofError if these cannot be set."""
        return sweep.steps(self.sweep(planned), planned.srun)

    def words(self, planned: JobPlan) -> str:
        """Return what is measured, in words."""
        jobs = len(planned.partition.rank_counts) if self.FULL_NODES and not self.ranks else 1
        return f"{jobs * len(planned.rounds[0])} launches"

    def result(self, folder: Path, jobid: str) -> Sweep:
        """Return the sweep with its launches."""
        return sweep.of_job(folder, jobid, self.sweep(JobPlan.read(folder / PLAN_FILE)))


@dataclass(frozen=True, kw_only=True)
class TuningAsked(SweepAsked):
    """NetPIPE, one way, on two nodes, with each value of a parameter or an environment variable.

    ``record``: path of the nodes' own values while the site's hook has set others.
    """

    parameter: str
    protocol: str = "tcp"
    path: str = "inter-node"
    record: str = ""

    TEST, TASK, LABEL = "Tuning", "setting", "NetPIPE"

    def __post_init__(self) -> None:
        for given, known in ((self.protocol, netpipe.PROTOCOLS), (self.path, netpipe.PATHS)):
            if given not in known:
                raise NetproofError(f"unknown {given!r}; choose {' or '.join(known)}")

    @property
    def subject(self) -> str:
        """Return the subject in the report's name."""
        return self.parameter

    def features(self) -> Collection[str]:
        """Return that of NetPIPE over the protocol."""
        return (netpipe.BENCHMARK.feature(self.protocol),)

    def sweep(self, planned: JobPlan) -> Sweep:
        """Return the sweep, without launches; NetproofError if it cannot be set."""
        setting = parameters.found(self.parameter, self.values)
        library, partition = planned.environment_extras["mpi"], planned.partition
        how = setting.assignment(self.protocol, library, self.path)
        values = self.values or setting.values_on(partition.rails)
        parameters.insist_on_values(values)
        if setting.by_hook and not partition.tuning_hook:
            raise NetproofError(
                f"{setting.title} takes root: give {':'.join(planned.where[:2])} a tuning_hook in"
                " its site's file"
            )
        case = netpipe.BENCHMARK.case(planned.where, self.protocol, self.path)
        order, seed = sweep.turns(values, self.rounds, planned.seed), planned.seed
        return Sweep(case, setting.name, setting.title, how, "", seed, planned.extras, order)


@dataclass(frozen=True, kw_only=True)
class AlgorithmsAsked(SweepAsked):
    """A function of IMB with each of its algorithms, on these ranks, or on each rank count."""

    function: str

    TEST, TASK, FULL_NODES = "Algorithm", "algorithms", True
    FEATURES, LABEL = imb.BENCHMARK.features, imb.BENCHMARK.label

    @property
    def subject(self) -> str:
        """Return the subject in the report's name."""
        return f"{sweep.ALGORITHM}-{self.function}"

    def sweep(self, planned: JobPlan) -> Sweep:
        """Return the sweep, without launches; NetproofError for unknown algorithms and ranks."""
        library, partition = planned.environment_extras["mpi"], planned.partition
        names = parameters.algorithms(library, self.function, self.values)
        counts, where = partition.rank_counts, ":".join(planned.where[:2])
        if self.ranks not in (0, *counts):
            on = f"{', '.join(map(str, sorted(counts)))} ranks, and not on {self.ranks}"
            raise NetproofError(f"{where} measures {self.function} on {on}")
        how, seed = parameters.library_of(library).setting(self.function), planned.seed
        ranks, per_node = self.ranks or min(counts), partition.ranks_per_node
        case = imb.BENCHMARK.case(planned.where, self.function, ranks, per_node)
        name, order = sweep.ALGORITHM, sweep.turns(tuple(names), self.rounds, seed)
        own = (case, name, f"{self.function} {name}", how, "", seed, planned.extras, order)
        return Sweep(*own, library=library, names=names)

    def files(self, planned: JobPlan) -> dict[str, str]:
        """Return the list of message sizes, none of a function without messages."""
        case = self.sweep(planned).case
        without = registry.function_of(case).least_bytes is None
        sizes = plan.sizes_asked(case, planned.partition)
        return {} if without else plan.size_files({case.function: sizes})
