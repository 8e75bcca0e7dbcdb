"""Measurements of a job under load: which of them count, and their record in a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from netproof.benchmarks.outputs import text_of
from netproof.benchmarks.registry import OF_PAIRS
from netproof.congestion import planning
from netproof.congestion.planning import VictimTurn
from netproof.errors import NetproofError, shortened
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve
from netproof.measurement.disturbance import disturbed
from netproof.session import job_files, node_facts
from netproof.session.job_files import Incomplete, StepRecord
from netproof.session.labelled import MeasuredJob
from netproof.session.measured import Launch
from netproof.site.partition import Partition

FOLDER = "load"
"""Folder of its reports in the folder of reports, which no verdict reads."""

AGGRESSORS_FILE = "aggressors.tsv"

AGGRESSORS_HEADER = "step\tbegan\tended\trows\twhy"


@dataclass(frozen=True)
class Aggression:
    """An aggressor's step: first and last time at which it certainly sent, seconds since the epoch.

    ``rows``: printed in between; ``why``: it did not send throughout, empty where it did.
    """

    began: float
    ended: float
    rows: int
    why: str


@dataclass(frozen=True)
class VictimRun:
    """One launch of a victim.

    ``times_us``: of its repetitions, in order; ``fault``: why it has no times and no ``launch``;
    ``aggression``: None where it was alone, and where its aggressor left no record.
    """

    turn: VictimTurn
    launch: Launch | None
    times_us: tuple[float, ...]
    aggression: Aggression | None
    fault: str = ""

    def refused(self, partition: Partition) -> str:
        """Return why it does not count; empty where it does.

        Disturbed launches do not count, nor launches whose aggressor did not send from their
        beginning to their end. Where both nodes of the victim are one machine, an emulated network,
        the aggressor's ranks are other load as well: then only launches alone can show a
        disturbance.
        """
        if self.launch is None:
            return self.fault
        emulated = len({load.machine for load in self.launch.loads}) < len(self.turn.nodes)
        if not (self.turn.beside and emulated):
            said = disturbed(self.launch.loads, partition.settings().disturbance)
            if said:
                return "; ".join(said)
        return self._not_throughout() if self.turn.beside else ""

    def _not_throughout(self) -> str:
        aggression, launch = self.aggression, self.launch
        if aggression is None:
            return f"of {self.turn.aggressor_step} there is no record"
        if aggression.why:
            return f"{self.turn.aggressor_step}: {aggression.why}"
        late = aggression.began - launch.start
        early = launch.start + launch.wall_s - aggression.ended
        if late > 0:
            return f"{self.turn.aggressor_step} began {late:.2f} s after the victim"
        if early > 0:
            return f"{self.turn.aggressor_step} ended {early:.2f} s before the victim"
        return ""

    @property
    def waited_share(self) -> float | None:
        """Return the share of its time that a node's load waited for a CPU, None if not known.

        The largest of its nodes.
        """
        loads = self.launch.loads if self.launch else ()
        shares = [one.pressure_share for one in loads if one.pressure_share is not None]
        return max(shares, default=None)


@dataclass(frozen=True)
class Loaded(MeasuredJob):
    """All launches of a job, in order; ``nodes``: the job's own list."""

    KEY = "netproof_load"
    CALLED = "measurement under load"

    seed: int
    runs: tuple[VictimRun, ...]

    def insist(self) -> None:
        """Raise NetproofError unless each launch has times, on its planned nodes, or a fault."""
        for run in self.runs:
            turn = run.turn
            named = (*turn.nodes, *turn.others)
            each_once = len(set(named)) == len(named) and set(named) <= set(self.nodes)
            if len(turn.nodes) != 2 or not each_once:
                raise NetproofError(f"{turn.step}: its nodes are not those of its job, each once")
            if (run.launch is None) is not bool(run.fault):
                raise NetproofError(f"{turn.step}: has neither a launch nor a fault, or both")
            if run.launch is None:
                continue
            if [use.node for use in run.launch.ranks] != list(turn.nodes):
                raise NetproofError(f"{turn.step}: its ranks ran on other nodes than it was to")
            if not run.times_us or min(run.times_us) <= 0:
                raise NetproofError(f"{turn.step}: has no times, or invalid ones")


def of_job(folder: Path, jobid: str) -> Loaded:
    """Return a job's launches from ``folder``, each with its fault where it failed.

    Raise NetproofError where the job drew none, or wrote no record.
    """
    question = planning.LoadQuestion.read(folder)
    several = planning.read_turns(folder)
    recorded = job_files.records(folder)
    aggressions = aggressions_of(folder)
    return Loaded(
        *question.where,
        jobid,
        node_facts.nodes_of_job(folder, jobid),
        question.extras,
        question.seed,
        tuple(_of_turn(folder, turn, question, recorded, aggressions) for turn in several),
    )


def _of_turn(
    folder: Path,
    turn: VictimTurn,
    question: planning.LoadQuestion,
    recorded: dict[str, StepRecord],
    aggressions: Mapping[str, Aggression],
) -> VictimRun:
    aggression = aggressions.get(turn.aggressor_step) if turn.beside else None
    if aggression is not None and aggression.why and turn.step not in recorded:
        return VictimRun(turn, None, (), aggression, f"{turn.aggressor_step}: {aggression.why}")
    times: list[float] = []
    try:
        launch = _launch(folder, turn, question, recorded, times)
    except (NetproofError, OSError) as error:
        return VictimRun(turn, None, (), aggression, str(error))
    return VictimRun(turn, launch, tuple(times), aggression)


def _launch(
    folder: Path,
    turn: VictimTurn,
    question: planning.LoadQuestion,
    recorded: dict[str, StepRecord],
    times: list[float],
) -> Launch:
    """Return the launch of a turn, its repetitions in ``times``; Incomplete if it is cut short."""
    partition = question.partition
    function = turn.victim.function
    size = turn.victim.size(partition.max_message_bytes)
    case = Case(*question.where, OF_PAIRS.name, function, 2, 1)
    reader = _reader(folder, function, size, times)
    launch = job_files.read_launch(folder, turn.step, turn.round, recorded, case, (size,), reader)
    ran_on = [use.node for use in launch.ranks]
    if ran_on != list(turn.nodes):
        raise Incomplete(
            [f"{turn.step} ran on {', '.join(ran_on)}, and was to run on {', '.join(turn.nodes)}"]
        )
    wanted = partition.load_settings().repetitions
    if len(times) != wanted:
        raise Incomplete([f"{turn.step}: has {len(times)} of {wanted} repetitions"])
    return launch


def _reader(folder: Path, function: str, size: int, times: list[float]) -> Callable[[str], Curve]:
    """Return a reader of a step's output into ``times``; its curve is their median."""

    def read_output(step: str) -> Curve:
        path = folder / f"{step}.{OF_PAIRS.suffix}"
        times.extend(OF_PAIRS.read_repetitions(text_of(path), str(path), function, 2, size))
        return Curve((size,), (median(times),))

    return read_output


def aggressions_of(folder: Path) -> dict[str, Aggression]:
    """Return a job's record of aggressors, by the names of their steps, empty without any.

    Raise NetproofError for a damaged line.
    """
    path = folder / AGGRESSORS_FILE
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return {}
    if not lines or lines[0] != AGGRESSORS_HEADER:
        raise NetproofError(f"{path}:1: the header {AGGRESSORS_HEADER!r} is missing")
    found = {}
    for number, line in enumerate(lines[1:], 2):
        try:
            step, began, ended, rows, why = line.split("\t")
            found[step] = Aggression(float(began), float(ended), int(rows), why)
        except ValueError as error:
            said = shortened(repr(line))
            raise NetproofError(f"{path}:{number}: {said} is no aggressor: {error}") from error
    return found
