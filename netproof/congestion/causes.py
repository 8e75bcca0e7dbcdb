"""Cause of figures under load: a port, its uplinks, or small buffers.

Three observations separate them. A slow port is slow even without load, whenever its node is
measured. An uplink that carries less than its leaf sends is fast alone, and slow alongside pairs
that cross it, while a victim within a leaf is not. Buffers that are too small lose packets at every
port, even alone; a single port that loses stands out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, median

import scipy

from netproof.congestion import factors
from netproof.congestion.factors import Impacts, Statistic
from netproof.congestion.loaded import Loaded, VictimRun
from netproof.congestion.planning import Aggressor, Victim, VictimPlace
from netproof.criteria.counters import RetransmissionSettings, sent_again
from netproof.measurement.interval import MAD_OF_NORMAL, Interval, Side
from netproof.pairs.losses import Resent, port_losses
from netproof.site.pair_settings import PairSettings

LEAST_ALONE = 6
"""Launches alone that are needed to call one of them slower than the others."""

MOST_NAMED = 8
"""Most nodes that are listed by name; beyond it their number is."""

MAD_EFFICIENCY = 0.37
"""Efficiency of the MAD for normal noise, compared with its standard deviation."""


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


@dataclass(frozen=True)
class LoadFindings:
    """The factors of a job and their causes; ``not_examined``: why a cause was not."""

    impacts: Impacts
    causes: tuple[LoadCause, ...]
    not_examined: tuple[str, ...]

    def beyond(self) -> bool:
        """Check whether a factor exceeds its bound, or a cause its limit."""
        return self.impacts.beyond() or any(one.fails for one in self.causes)

    def undecided(self) -> bool:
        """Check whether a factor is inconclusive."""
        return self.impacts.undecided()


def findings(loaded: Loaded) -> LoadFindings:
    """Return the findings of a job, by the settings of its partition.

    Losses make all times scatter: where all ports lose, no other cause is examined.
    """
    impacts = factors.impacts(loaded)
    partition = loaded.where
    alone = [run for run in loaded.runs if not run.turn.beside and not run.refused(partition)]
    losing, unknown = _losing(alone, partition.settings().retransmission)
    not_examined = [unknown] if unknown else []
    if any(one.kind is CauseKind.SMALL_BUFFERS for one in losing):
        return LoadFindings(impacts, tuple(losing), tuple(not_examined))
    settings = partition.pair_settings()
    slow, unknown = _slow_ports(alone, settings)
    unknown += _not_measured(alone, loaded.nodes)
    not_examined += unknown
    apart = {node for one in losing for node in one.nodes}
    slow = [one for one in slow if apart.isdisjoint(one.nodes)]
    return LoadFindings(
        impacts, (*losing, *slow, *_uplinks(impacts, settings.slower)), tuple(not_examined)
    )


def _losing(
    alone: Sequence[VictimRun], bounds: RetransmissionSettings
) -> tuple[list[LoadCause], str]:
    """Return losses without load, and why they are not known."""
    resent = []
    for number, run in enumerate(alone):
        one, other = run.turn.nodes
        if run.launch.counters is None:
            return [], f"losses: no node said what it counted in {run.turn.step}"
        for node, peer in ((one, other), (other, one)):
            share = sent_again(run.launch.counters, node)
            if share.count is None or share.of is None:
                return [], f"losses: {node}: {share.why}"
            resent.append(Resent(number, node, (peer,), share.count, share.of))
    ports = port_losses(resent)
    if not ports or bounds.warn is None:
        return [], "" if ports else "losses: fewer than three nodes were measured alone"

    def fails(share: float) -> bool:
        return bounds.fail is not None and share > bounds.fail

    usual = median(one.count / one.of if one.of else 0.0 for one in resent)
    lost = sum(one.count for one in resent)
    if usual > bounds.warn and lost >= bounds.least:
        launches = len({one.launch for one in resent if one.count})
        return [LoadCause(CauseKind.SMALL_BUFFERS, (), usual, None, launches, fails(usual))], ""
    standing_out = [
        port
        for port in ports
        if port.count >= bounds.least
        and port.share - port.usual > bounds.beyond
        and port.share > bounds.times * port.usual
    ]
    found = {
        port.nodes: LoadCause(
            CauseKind.LOSING_PORT,
            port.nodes,
            port.share,
            None,
            port.seen,
            fails(port.share),
        )
        for port in standing_out
    }
    return list(found.values()), ""


def _slow_ports(
    alone: Sequence[VictimRun], settings: PairSettings
) -> tuple[list[LoadCause], list[str]]:
    """Return nodes whose launches of large messages are all slower, by more than noise.

    The noise is the MAD of all these launches, without the middle one of each place, which is 0 by
    construction. The chance that any launch of a sound network with normal noise counts as slow is
    at most ``settings.error``.
    """
    runs = [run for run in alone if run.turn.victim is Victim.BANDWIDTH]
    if len(runs) < LEAST_ALONE:
        few = f"{len(runs)} launches of bandwidth alone count"
        return [], [f"slow ports: {few}, and it takes {LEAST_ALONE}"]
    groups: dict[VictimPlace, list[float]] = {}
    for run in runs:
        groups.setdefault(run.turn.place, []).append(math.log(fmean(run.times_us)))
    off = [math.log(fmean(run.times_us)) - median(groups[run.turn.place]) for run in runs]
    free = len(runs) - len(groups)
    noise = MAD_OF_NORMAL * median(sorted(map(abs, off))[len(groups) :])
    deviates = -float(scipy.special.stdtrit(MAD_EFFICIENCY * free, settings.error / len(runs)))
    bound = max(-math.log1p(-settings.slower), noise * deviates)
    slow = [(set(run.turn.nodes), one) for run, one in zip(runs, off, strict=True) if one > bound]
    sound = {
        node for run, one in zip(runs, off, strict=True) if one <= bound for node in run.turn.nodes
    }
    found, left = _explaining(slow, sound)
    once = [" – ".join(sorted(nodes)) for nodes, _ in left]
    return found, [f"slow ports: {one}: slow in a launch, and fast in another" for one in once]


def _not_measured(alone: Sequence[VictimRun], nodes: Sequence[str]) -> list[str]:
    """Return the nodes that cannot be judged slow or not, since none of their launches counts."""
    measured = {
        node for run in alone if run.turn.victim is Victim.BANDWIDTH for node in run.turn.nodes
    }
    left = [node for node in nodes if node not in measured]
    if not left or not measured:
        return []
    named = ", ".join(left) if len(left) <= MOST_NAMED else f"{len(left)} of {len(nodes)} nodes"
    return [f"slow ports: no launch of bandwidth alone counts of {named}"]


def _explaining(
    slow: list[tuple[set[str], float]], sound: Collection[str]
) -> tuple[list[LoadCause], list[tuple[set[str], float]]]:
    """Return the fewest nodes that explain slow launches but no fast one; launches left over."""
    found = []
    while slow:
        shown: dict[str, int] = {}
        for nodes, _ in slow:
            for node in nodes.difference(sound):
                shown[node] = shown.get(node, 0) + 1
        most = max(shown.values(), default=0)
        if not most:
            break
        first = min(node for node, count in shown.items() if count == most)
        explained = [one for one in slow if first in one[0]]
        # Nodes that always occur together explain the same launches.
        alike = set.intersection(*(nodes for nodes, _ in explained)).difference(sound)
        value = math.exp(median(off for _, off in explained))
        found.append(
            LoadCause(CauseKind.SLOW_PORT, tuple(sorted(alike)), value, None, len(explained), True)
        )
        slow = [one for one in slow if first not in one[0]]
    return found, slow


def _uplinks(impacts: Impacts, slower: float) -> list[LoadCause]:
    """Return uplinks that slow pairs across leaves alongside crossing pairs, but none within."""
    by_place = {
        one.place: one
        for one in impacts.impacts
        if (one.victim, one.aggressor) == (Victim.BANDWIDTH, Aggressor.ONE_TO_ONE)
    }
    if not {VictimPlace.WITHIN, VictimPlace.ACROSS} <= by_place.keys():
        return []
    within, across = (
        by_place[place].factors[Statistic.MEDIAN]
        for place in (VictimPlace.WITHIN, VictimPlace.ACROSS)
    )
    if within.interval is None or across.interval is None:
        return []
    if across.interval[0] * (1 - slower) <= within.interval[1]:
        return []
    fails = by_place[VictimPlace.ACROSS].factors[Statistic.MEAN].side is Side.BEYOND
    return [
        LoadCause(
            CauseKind.UPLINKS,
            (),
            across.value,
            across.interval,
            by_place[VictimPlace.ACROSS].rounds,
            fails,
        )
    ]
