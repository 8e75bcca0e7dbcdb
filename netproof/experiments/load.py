"""Victims alongside aggressors: which launches count, what congestion costs, and its causes.

Congestion impact factors are those of GPCNeT (Chunduri et al., SC19): a victim's time alongside an
aggressor over its time alone, for the mean, the median and the 99th percentile of its times. A
round's factor compares two consecutive launches, on the same nodes.

Three observations separate causes. A slow port is slow even without load, whenever its node is
measured. An uplink that carries less than its leaf sends is fast alone, and slow alongside pairs
that cross it, while a victim within a leaf is not. Buffers that are too small lose packets at every
port, even alone; a single port that loses stands out.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from statistics import fmean, median

import scipy

from netproof.benchmarks.registry import OF_PAIRS
from netproof.criteria.counters import MORE, TIMES, CountedSettings, sent_again
from netproof.errors import NetproofError, grouped
from netproof.experiments import load_plan
from netproof.experiments.load_plan import Aggressor, Victim, VictimPlace, VictimTurn
from netproof.experiments.tails import nearest_rank
from netproof.measurement.case import Case
from netproof.measurement.disturbance import disturbed
from netproof.measurement.interval import (
    MAD_OF_NORMAL,
    Interval,
    Side,
    of_pseudomedian,
    pseudomedian,
    side,
)
from netproof.pairs.losses import Resent, port_losses
from netproof.session import job_files, node_facts
from netproof.session.measured import Launch
from netproof.session.plan import PLAN_FILE, JobPlan
from netproof.session.session import MeasuredJob
from netproof.site.partition import PairSettings, Partition

AGGRESSORS_FILE = "aggressors.json"

Aggression = tuple[float, float, int, str]
"""First and last time at which an aggressor certainly sent, in seconds since the epoch, the rows
that it printed, and why it did not send throughout, empty where it did."""


@dataclass(frozen=True)
class VictimRun:
    """One launch of a victim.

    ``times_us``: of its repetitions, in order; ``fault``: why it has no times and no ``launch``;
    ``uncongested``: why its aggressor did not send from its beginning to its end.
    """

    turn: VictimTurn
    launch: Launch | None
    times_us: tuple[float, ...]
    uncongested: str = ""
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
        loads = self.launch.loads
        emulated = len({load.machine for load in loads}) < len(self.turn.nodes)
        if self.turn.beside and emulated:
            return self.uncongested
        disturbances = disturbed(loads, partition.settings().disturbance)
        return "; ".join(disturbances) or self.uncongested

    @property
    def waited_share(self) -> float | None:
        """Return the largest share of time that a node's load waited for a CPU, if known."""
        loads = self.launch.loads if self.launch else ()
        shares = [one.pressure_share for one in loads if one.pressure_share is not None]
        return max(shares, default=None)


LEAST_ROUNDS = 3
"""Least rounds that allow an estimate of chance."""
LEAST_ALONE = 6
"""Launches alone that are needed to call one of them slower than the others."""
MOST_NAMED = 8
"""Most nodes that are listed by name; beyond it their number is."""
MAD_EFFICIENCY = 0.37
"""Efficiency of the MAD for normal noise, compared with its standard deviation."""


class Statistic(StrEnum):
    """Statistic of a victim's times."""

    MEAN = "mean"
    MEDIAN = "median"
    TAIL = "99th percentile"


@dataclass(frozen=True)
class Factor:
    """How many times as bad a figure is under load, with a 95 % interval over rounds.

    ``most``: its bound, None without one. Where the factor is not known, it has the reason in
    ``why``. ``alone``, ``loaded``: medians of the figure over rounds, in its unit.
    """

    value: float | None
    interval: Interval | None
    most: float | None
    why: str = ""
    alone: float | None = None
    loaded: float | None = None

    @property
    def side(self) -> Side | None:
        """Return the side of the bound on which its interval is."""
        if self.most is None or self.interval is None:
            return None
        return side(self.interval, 0, self.most)

    @property
    def undecided(self) -> bool:
        """Check whether it has a bound, and is inconclusive."""
        return self.most is not None and self.side in (None, Side.ASTRIDE)


@dataclass(frozen=True)
class Impact:
    """The effect of one aggressor on one victim at one place.

    Of GPCNeT, ``victim`` is one of its tests and ``aggressor`` all of its congestors. ``rounds``:
    those that count; ``refused``: reasons for the others, a sentence each; ``waited``: share of a
    launch's time in which something on the victim's nodes waited for a CPU, alone and alongside,
    medians over rounds, None where it is not known; ``unit``: of the factors' figures.
    """

    place: str
    victim: str
    aggressor: str
    factors: Mapping[Statistic, Factor]
    rounds: int
    refused: tuple[str, ...] = ()
    waited: tuple[float, float] | None = None
    unit: str = "usec"


class CauseKind(StrEnum):
    """Kind of a cause."""

    SLOW_PORT = "slow port"
    LOSING_PORT = "packets lost at a port"
    SMALL_BUFFERS = "packets lost at all ports"
    UPLINKS = "uplinks oversubscribed"


@dataclass(frozen=True)
class LoadCause:
    """A cause and its place.

    ``nodes``: the node of a port; several where they cannot be separated; empty for the whole
    network. ``value``: of a slow port, how many times as long its launches take, alone; of losses,
    the share of segments sent again (of one port, those that it loses); of uplinks, how many times
    as long a message takes (median), with its ``interval``. ``launches``: that show it. ``fails``:
    whether it exceeds the site's limit.
    """

    kind: CauseKind
    nodes: tuple[str, ...]
    value: float
    interval: Interval | None
    launches: int
    fails: bool


class Congested(MeasuredJob):
    """Results of a job with congestion, and its effects, in the order of places and victims."""

    @property
    def impacts(self) -> tuple[Impact, ...]:
        """Return the effects, by the settings of the partition."""
        raise NotImplementedError

    @property
    def factors(self) -> list[Factor]:
        """Return the factors of all effects."""
        return [factor for one in self.impacts for factor in one.factors.values()]

    @property
    def beyond(self) -> bool:
        """Check whether a factor exceeds its bound."""
        return any(factor.side is Side.BEYOND for factor in self.factors)

    @property
    def undecided(self) -> bool:
        """Check whether a factor is inconclusive, or too few rounds count for any."""
        fewest = min((impact.rounds for impact in self.impacts), default=0)
        return fewest < LEAST_ROUNDS or any(factor.undecided for factor in self.factors)


@dataclass(frozen=True)
class Loaded(Congested):
    """All launches of a job, in order; ``nodes``: the job's own list."""

    KEY = "netproof_load"
    CALLED = "measurement under load"

    seed: int
    runs: tuple[VictimRun, ...]

    @cached_property
    def impacts(self) -> tuple[Impact, ...]:
        """Return the effects, in the order of places, victims and aggressors."""
        return tuple(_impacts(self))

    @property
    def beyond(self) -> bool:
        """Check whether a factor exceeds its bound, or a cause its limit."""
        return super().beyond or any(cause.fails for cause in self.causes_and_doubts[0])

    @cached_property
    def causes_and_doubts(self) -> tuple[tuple[LoadCause, ...], tuple[str, ...]]:
        """Return what explains the effects; and why a cause was not examined, a sentence each.

        If all ports lose, nothing else is examined.
        """
        partition = self.where
        alone = [run for run in self.runs if not run.turn.beside and not run.refused(partition)]
        losing, unknown = _losing(alone, partition.settings().retransmission)
        reasons = [unknown] if unknown else []
        if any(cause.kind is CauseKind.SMALL_BUFFERS for cause in losing):
            return tuple(losing), tuple(reasons)
        settings = partition.pair_settings()
        slow, doubts = _slow_ports(alone, self.nodes, settings)
        reasons += doubts
        apart = {node for cause in losing for node in cause.nodes}
        losing += [cause for cause in slow if apart.isdisjoint(cause.nodes)]
        return (*losing, *_uplinks(self.impacts, settings.slower)), tuple(reasons)


def of_job(folder: Path, jobid: str) -> Loaded:
    """Return a job's launches, each with its fault; NetproofError without any."""
    planned = JobPlan.read(folder / PLAN_FILE)
    partition = planned.partition
    turns, job = load_plan.read_turns(folder), job_files.JobFolder(folder)
    aggressions, settings = aggressions_of(folder), partition.load_settings()

    def run_of(turn: VictimTurn) -> VictimRun:
        sent = aggressions.get(turn.aggressor_step)
        if turn.beside and sent and sent[-1] and turn.step not in job.recorded:
            return VictimRun(turn, None, (), "", f"{turn.aggressor_step}: {sent[-1]}")
        size, wanted = turn.victim.size(partition.max_message_bytes), settings.repetitions
        case = Case(*planned.where, OF_PAIRS.name, turn.victim.function, 2, 1)
        try:
            launch, times = load_plan.repeated(job, turn.step, case, size, wanted, "repetition")
            nodes, own = (", ".join(one) for one in (launch.ranks, turn.nodes))
            if nodes != own:
                raise NetproofError(f"{turn.step} ran on {nodes}, and was to run on {own}")
        except (NetproofError, OSError) as error:
            return VictimRun(turn, None, (), "", str(error))
        return VictimRun(turn, launch, times, _uncongested(turn, launch, sent))

    nodes = node_facts.nodes_of_job(folder, jobid)
    runs = tuple(map(run_of, turns))
    return Loaded(*planned.where, jobid, nodes, planned.extras, planned.seed, runs)


def _uncongested(turn: VictimTurn, launch: Launch, sent: Aggression | None) -> str:
    """Return why a launch's aggressor did not send throughout; empty where it did, or alone."""
    if not turn.beside:
        return ""
    if sent is None:
        return f"of {turn.aggressor_step} there is no record"
    began, ended, _, why = sent
    late, early = began - launch.start, launch.start + launch.wall_s - ended
    if why:
        return f"{turn.aggressor_step}: {why}"
    if late > 0:
        return f"{turn.aggressor_step} began {late:.2f} s after the victim"
    return f"{turn.aggressor_step} ended {early:.2f} s before the victim" if early > 0 else ""


def aggressions_of(folder: Path) -> dict[str, Aggression]:
    """Return when each aggressor of a job sent, by its step; NetproofError for a damaged file."""
    path = folder / AGGRESSORS_FILE
    return job_files.noted(path, dict[str, Aggression]) if path.exists() else {}


def too_few(rounds: int) -> str:
    """Return why so many rounds give no factor; empty where they do."""
    return f"{rounds} rounds count, and it takes {LEAST_ROUNDS}" if rounds < LEAST_ROUNDS else ""


def _impacts(loaded: Loaded) -> Iterator[Impact]:
    """Yield the effects in a job, by the settings of its partition."""
    runs: dict[tuple[VictimPlace, Victim, Aggressor], dict[int, dict[bool, VictimRun]]] = {}
    for run in loaded.runs:
        turn = run.turn
        of_round = runs.setdefault((turn.place, turn.victim, turn.aggressor), {})
        of_round.setdefault(turn.round, {})[turn.beside] = run
    partition = loaded.where
    settings = partition.load_settings()
    bounds = {Statistic.MEAN: settings.most, Statistic.TAIL: settings.most_99th}
    for key in filter(runs.__contains__, itertools.product(VictimPlace, Victim, Aggressor)):
        whole, refused = [], []
        for number, both in sorted(runs[key].items()):
            missing = "" if len(both) == 2 else "one of its two launches is not there"
            reasons = (missing, *(run.refused(partition) for run in both.values()))
            why = next(filter(None, reasons), "")
            if why:
                refused.append(f"round {number}: {why}")
            else:
                whole.append((both[False], both[True]))
        factors = {one: _factor(one, whole, bounds.get(one)) for one in Statistic}
        shares = [(alone.waited_share, alongside.waited_share) for alone, alongside in whole]
        known = bool(shares) and not any(None in both for both in shares)
        waited = tuple(map(median, zip(*shares, strict=True))) if known else None
        yield Impact(*key, factors, len(whole), tuple(refused), waited)


def _factor(
    statistic: Statistic, rounds: Sequence[tuple[VictimRun, VictimRun]], most: float | None
) -> Factor:
    why = too_few(len(rounds))
    fewest = min((len(run.times_us) for both in rounds for run in both), default=0)
    if statistic is Statistic.TAIL and fewest < 100 and not why:
        why = f"a launch has {fewest} repetitions, and a 99th percentile takes 100"
    if why:
        return Factor(None, None, most, why)

    def figure(times: tuple[float, ...]) -> float:
        if statistic is Statistic.TAIL:
            return nearest_rank(sorted(times), 99) or 0.0
        return fmean(times) if statistic is Statistic.MEAN else median(times)

    figures = [(figure(alone.times_us), figure(loaded.times_us)) for alone, loaded in rounds]
    ratios = [loaded / alone for alone, loaded in figures]
    medians = map(median, zip(*figures, strict=True))
    return Factor(pseudomedian(ratios), of_pseudomedian(ratios), most, "", *medians)


def _losing(alone: Sequence[VictimRun], bounds: CountedSettings) -> tuple[list[LoadCause], str]:
    """Return losses without load, and why they are not known."""
    resent = []
    for number, run in enumerate(alone):
        counters = run.launch.counters if run.launch else None
        if counters is None:
            return [], f"losses: no node reported what it counted in {run.turn.step}"
        for node in run.turn.nodes:
            share = sent_again(counters, node)
            if share.count is None or share.of is None:
                return [], f"losses: {node}: {share.why}"
            resent.append(Resent(number, node, run.turn.nodes, share.count, share.of))
    ports = port_losses(resent)
    if not ports or bounds.warn is None:
        return [], "" if ports else "losses: fewer than three nodes were measured alone"

    def cause(kind: CauseKind, nodes: Sequence[str], share: float, launches: int) -> LoadCause:
        fails = bounds.fail is not None and share > bounds.fail
        return LoadCause(kind, tuple(nodes), share, None, launches, fails)

    usual = median(one.count / one.of if one.of else 0.0 for one in resent)
    if usual > bounds.warn and sum(one.count for one in resent) >= bounds.least:
        launches = len({one.launch for one in resent if one.count})
        return [cause(CauseKind.SMALL_BUFFERS, (), usual, launches)], ""
    found = {
        one.nodes: cause(CauseKind.LOSING_PORT, one.nodes, one.share, one.seen)
        for one in ports
        if one.share > max(TIMES * one.usual, one.usual + MORE) and one.count >= bounds.least
    }
    return list(found.values()), ""


def _slow_ports(
    alone: Sequence[VictimRun], nodes: Sequence[str], settings: PairSettings
) -> tuple[list[LoadCause], list[str]]:
    """Return nodes whose launches of large messages are all slower, by more than noise; and doubts.

    The noise is the MAD of all these launches, without the middle one of each place, which is 0 by
    construction. The chance that any launch of a sound network with normal noise counts as slow is
    at most ``settings.error``.
    """
    runs = [run for run in alone if run.turn.victim is Victim.BANDWIDTH]
    measured = {node for run in runs for node in run.turn.nodes}
    doubts, missing = [], [node for node in nodes if node not in measured]
    if missing and measured:
        few = len(missing) <= MOST_NAMED
        named = ", ".join(missing) if few else f"{len(missing)} of {len(nodes)} nodes"
        doubts = [f"slow ports: no launch of bandwidth alone counts of {named}"]
    if len(runs) < LEAST_ALONE:
        few_of = f"{len(runs)} launches of bandwidth alone count"
        return [], [f"slow ports: {few_of}, and it takes {LEAST_ALONE}", *doubts]
    logs = [math.log(fmean(run.times_us)) for run in runs]
    groups = grouped((run.turn.place, log) for run, log in zip(runs, logs, strict=True))
    off = [log - median(groups[run.turn.place]) for run, log in zip(runs, logs, strict=True)]
    free = len(runs) - len(groups)
    noise = MAD_OF_NORMAL * median(sorted(map(abs, off))[len(groups) :])
    deviates = -float(scipy.special.stdtrit(MAD_EFFICIENCY * free, settings.error / len(runs)))
    bound = max(-math.log1p(-settings.slower), noise * deviates)
    launches = [({*run.turn.nodes}, log) for run, log in zip(runs, off, strict=True)]
    slow = [one for one in launches if one[1] > bound]
    sound = {node for of_launch, log in launches if log <= bound for node in of_launch}
    found = []
    while shown := Counter(node for of_launch, _ in slow for node in of_launch - sound):
        # The fewest nodes that explain slow launches, but no fast one.
        first = max(sorted(shown), key=shown.__getitem__)
        explained = [launch for launch in slow if first in launch[0]]
        # Nodes that always occur together explain the same launches.
        alike = set.intersection(*(of_launch for of_launch, _ in explained)) - sound
        value, count = math.exp(median(log for _, log in explained)), len(explained)
        found.append(LoadCause(CauseKind.SLOW_PORT, (*sorted(alike),), value, None, count, True))
        slow = [launch for launch in slow if first not in launch[0]]
    once = (" – ".join(sorted(of_launch)) for of_launch, _ in slow)
    inexplicable = [f"slow ports: {pair}: slow in a launch, and fast in another" for pair in once]
    return found, [*inexplicable, *doubts]


def _uplinks(impacts: Sequence[Impact], slower: float) -> list[LoadCause]:
    """Return uplinks that slow pairs across leaves alongside crossing pairs, but none within."""
    by_place = {
        impact.place: impact
        for impact in impacts
        if (impact.victim, impact.aggressor) == (Victim.BANDWIDTH, Aggressor.ONE_TO_ONE)
    }
    if not {VictimPlace.WITHIN, VictimPlace.ACROSS} <= by_place.keys():
        return []
    of_within, of_across = by_place[VictimPlace.WITHIN], by_place[VictimPlace.ACROSS]
    within, across = (one.factors[Statistic.MEDIAN] for one in (of_within, of_across))
    if within.interval is None or across.interval is None or across.value is None:
        return []
    if across.interval[0] * (1 - slower) <= within.interval[1]:
        return []
    fails = of_across.factors[Statistic.MEAN].side is Side.BEYOND
    rounds = of_across.rounds
    return [LoadCause(CauseKind.UPLINKS, (), across.value, across.interval, rounds, fails)]
