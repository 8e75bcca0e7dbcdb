"""After every round of pairs: which nodes are cleared, which are accused, which are undecided.

Accusations err in at most ``error`` of healthy runs, over all nodes, pairs, groups, quantities and
rounds: each kind and quantity has its share, each node its part of that (Bonferroni), and each
round what ``spending`` gives it. A node is cleared where it can hardly be slower by what counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from netproof.errors import NetproofError
from netproof.localization.accused import (
    DEFAULTS,
    MOST_THINGS,
    AccusationSettings,
    Accused,
    Effect,
    Floats,
    Judgement,
    Noise,
    QuantityVerdict,
    effect_of,
    named,
)
from netproof.localization.observations import PairObservation, PairQuantity
from netproof.localization.pair_table import PairTable, table_of
from netproof.localization.posterior import Posterior, tails
from netproof.localization.searching import (
    LEAST_ROUNDS,
    Explanation,
    Kind,
    Search,
    Thing,
    contrasts,
    contrasts_of_nodes,
    explained,
    explanation_of,
    posterior,
)
from netproof.localization.spending import nominal_levels
from netproof.localization.telling import judgement_on
from netproof.localization.topology import Topology
from netproof.measurement.interval import CONFIDENCE

EQUALLY_WELL = math.log(20)
"""Difference of log likelihoods within which two explanations fit equally well."""

ENOUGH_NODES = 8
"""Nodes from which on their own scatter can be told from noise."""

_SHARES = {Kind.NODE: 0.8, Kind.PAIR: 0.1, Kind.SWITCH: 0.05, Kind.UPLINK: 0.05}

_CLIP = 2.5

_CLIPPED_VARIANCE = 0.9553
"""Of a standard normal variable cut off at ``_CLIP``."""

_ODD = 0.3


def judge(
    observations: Sequence[PairObservation],
    nodes: Sequence[str],
    topology: Topology | None = None,
    settings: AccusationSettings = DEFAULTS,
) -> Judgement:
    """Judges every one of ``nodes`` by all observations of a run so far.

    Raises NetproofError where ``nodes`` has a name twice.
    """
    if len(set(nodes)) != len(nodes):
        raise NetproofError("nodes: a name is there twice")
    tables = {quantity: table_of(observations, nodes, quantity) for quantity in PairQuantity}
    tables = {quantity: table for quantity, table in tables.items() if table.rows}
    verdicts = [
        judge_table(table, quantity, topology, settings, quantities=len(tables))
        for quantity, table in tables.items()
    ]
    return judgement_on(nodes, verdicts, observations)


def judge_table(
    table: PairTable,
    quantity: PairQuantity,
    topology: Topology | None = None,
    settings: AccusationSettings = DEFAULTS,
    *,
    quantities: int = 1,
) -> QuantityVerdict:
    """Judges one of so many quantities that share the error."""
    count = len(table.names)
    search = Search(table, topology, settings.disturbed_share, settings.resolution)
    explanation = explained(search, min(MOST_THINGS, max(count // 2, 1)))
    if explanation is None:
        unknown = np.full(count, math.nan)
        return QuantityVerdict(
            quantity,
            table,
            None,
            (),
            np.zeros(count, dtype=bool),
            unknown,
            unknown,
            (),
            (),
            Noise(quantity, None, 0.0, 0.0, 0.0),
        )
    fitted, counts = explanation.fit, settings.counts(quantity)
    estimates, errors = _estimates(explanation)
    scatter = _scatter(explanation, estimates / errors, counts)
    levels = _Levels(search, settings, quantities, table.rounds)
    bound = (counts - estimates) / errors
    cleared = np.nan_to_num(scipy.special.stdtr(fitted.freedom, -bound), nan=1.0) <= levels.clearing
    # A node that is far from its others in some round is looked at by the shape of the noise.
    odd = np.bincount(
        table.nodes_of_rows, np.tile((1 - fitted.weights) * (fitted.owner < 0), 2), count
    )
    numbers = np.flatnonzero(odd > _ODD)
    if len(numbers):
        found, scales = contrasts_of_nodes(explanation, numbers)
        chances = tails(found, scales, fitted.shape, counts)
        deviates = -scipy.special.ndtri(np.clip(chances, 1e-300, 1 - 1e-12))
        cleared[numbers] = scipy.special.stdtr(fitted.freedom, -deviates) <= levels.clearing
    accused = []
    for thing in explanation.things:
        if thing.kind is Kind.NODE and cleared[thing.nodes[0]]:
            continue
        where = posterior(explanation, thing)
        if where is not None and _slow(thing, explanation, scatter, levels, counts):
            effect = _effect(where, thing, explanation, quantity)
            accused.append(Accused(thing, effect, _alternatives(search, explanation, thing)))
    suspects = _suspects(explanation, estimates, errors, cleared, counts)
    inflated = math.sqrt(max(scatter**2 - 1, 0.0)) * float(np.nan_to_num(errors).mean())
    noise = Noise(
        quantity, fitted.scale, inflated, fitted.freedom, fitted.shape.wide + fitted.shape.disturbed
    )
    taken = {item.thing.key for item in accused}
    return QuantityVerdict(
        quantity,
        table,
        explanation,
        tuple(accused),
        cleared,
        estimates,
        errors,
        tuple(suspects),
        _suspected_pairs(explanation, taken, counts),
        noise,
    )


class _Levels:
    """Nominal levels of the newest look."""

    def __init__(
        self, search: Search, settings: AccusationSettings, quantities: int, rounds: int
    ) -> None:
        self._look = rounds - 1
        self._looks = max(settings.rounds, rounds)
        self._error = settings.error / quantities
        nodes = len(search.table.names)
        groups = [thing.kind for thing in search.groups]
        self._among = {
            Kind.NODE: nodes,
            # All pairs that the rounds of a run can show.
            Kind.PAIR: max(self._looks * (nodes // 2), 1),
            Kind.SWITCH: max(groups.count(Kind.SWITCH), 1),
            Kind.UPLINK: max(groups.count(Kind.UPLINK), 1),
        }
        self.clearing = self._at(settings.missed)

    def _at(self, error: float) -> float:
        return nominal_levels(error, self._looks)[self._look]

    def accusing(self, kind: Kind) -> float:
        """The level at which one thing of a kind is accused."""
        return self._at(self._error * _SHARES[kind] / self._among[kind])


def _estimates(explanation: Explanation) -> tuple[Floats, Floats]:
    """Of each node by number: by how much it is slower, and the standard error of that."""
    fitted, table = explanation.fit, explanation.fit.table
    rows = np.tile(np.arange(table.rows), 2)
    count = len(table.names)
    score, information = fitted.added(
        table.nodes_of_rows, count, rows, np.tile(fitted.weights * fitted.left, 2)
    )
    known = information > 1e-6
    estimates = np.full(count, math.nan)
    errors = np.full(count, math.nan)
    estimates[known] = score[known] / information[known]
    errors[known] = fitted.scale / np.sqrt(information[known])
    covariance = fitted.scale**2 * np.linalg.pinv(fitted.information)
    for place, thing in enumerate(explanation.things):
        if thing.kind is Kind.NODE:
            estimates[thing.nodes[0]] = fitted.effects[place]
            errors[thing.nodes[0]] = math.sqrt(max(covariance[place, place], 1e-12))
    return estimates, errors


def _scatter(explanation: Explanation, standard: Floats, counts: float) -> float:
    """How far apart nodes lie that are not clearly slow, in standard errors: 1 where all noise."""
    slow = [
        thing.nodes[0]
        for thing, effect in zip(explanation.things, explanation.fit.effects, strict=True)
        if thing.kind is Kind.NODE and effect > counts / 2
    ]
    standard = np.delete(standard, slow)
    standard = standard[np.isfinite(standard)]
    if len(standard) < ENOUGH_NODES:
        return 1.0
    scale = 1.0
    for _ in range(12):
        clipped = np.clip(standard / scale, -_CLIP, _CLIP)
        scale = max(scale * math.sqrt(float(np.mean(clipped**2)) / _CLIPPED_VARIANCE), 1e-3)
    return max(scale, 1.0)


def _slow(
    thing: Thing,
    explanation: Explanation,
    scatter: float,
    levels: _Levels,
    counts: float,
) -> bool:
    """Whether chance explains a thing's slowness in too few healthy runs, and whether it counts.

    It counts where it lies nearer to what counts than to nothing, and may be as slow as that; of a
    node behind a slow uplink this is what the uplink does not explain. One round is not enough.
    """
    if len(np.unique(explanation.fit.table.round[thing.rows])) < LEAST_ROUNDS:
        return False
    where = posterior(explanation, thing, beyond=True)
    if (
        where is None
        or where.quantile(0.5) <= counts / 2
        or _is_less(where, explanation, levels.clearing, counts)
    ):
        return False
    return chance(explanation, thing, scatter) <= levels.accusing(thing.kind)


def chance(explanation: Explanation, thing: Thing, scatter: float = 1.0) -> float:
    """The probability that a thing without an effect looks as slow as this one, or slower.

    As slow beyond what others explain: whatever is behind a slow uplink is slow with it.
    ``scatter``: of healthy nodes, in standard errors. The scale of the noise is known only as well
    as its degrees of freedom say; over what it may be, the probability is a mean.
    """
    found, scales = contrasts(explanation, thing, beyond=True)
    fitted = explanation.fit
    factors, shares = scale_factors(fitted.freedom)
    shape = fitted.shape
    if thing.kind in (Kind.NODE, Kind.PAIR):
        shape = shape.with_rows(found / scales, scales, fitted.table.rows)
    several = Posterior.of(found, scales * scatter, shape, factors)
    logs = np.array([one.log_at_most(0.0) for one in several])
    return float(shares @ np.exp(logs))


def scale_factors(freedom: float) -> tuple[Floats, Floats]:
    """What the true scale may be of the estimated one, and how probable: inverse chi distributed.

    Spaced evenly in the logarithm, from where it matters for levels of 10⁻¹² on.
    """
    # Wilson and Hilferty's cube root is close enough to say how far to go.
    tail = 2 / (9 * freedom)
    least = max(1 - tail - 7.5 * math.sqrt(tail), 0.02) ** 1.5
    most = (1 - tail + 4 * math.sqrt(tail)) ** 1.5
    logs = np.linspace(-math.log(most), -math.log(least), 17 if freedom > 100 else 33)
    inverse = np.exp(-2 * logs)
    weights = freedom / 2 * (np.log(inverse) - inverse)
    shares = np.exp(weights - weights.max())
    return np.exp(logs), shares / shares.sum()


def _is_less(where: Posterior, explanation: Explanation, level: float, counts: float) -> bool:
    deviate = -float(scipy.special.ndtri_exp(min(where.log_at_least(counts), -1e-12)))
    return float(scipy.special.stdtr(explanation.fit.freedom, -deviate)) <= level


def _effect(
    where: Posterior, thing: Thing, explanation: Explanation, quantity: PairQuantity
) -> Effect:
    tail = (1 - CONFIDENCE) / 2
    middle = where.quantile(0.5)
    freedom = explanation.fit.freedom
    wider = float(scipy.special.stdtrit(freedom, 1 - tail)) / float(
        scipy.special.stdtrit(math.inf, 1 - tail)
    )
    low = middle - wider * (middle - where.quantile(tail))
    high = middle + wider * (where.quantile(1 - tail) - middle)
    rounds = len(contrasts(explanation, thing)[0])
    return effect_of(quantity, middle, low, high, rounds)


def _alternatives(search: Search, explanation: Explanation, thing: Thing) -> tuple[str, ...]:
    """What explains the measurements as well in the place of a thing."""
    table = search.table
    place = next(p for p, t in enumerate(explanation.things) if t.key == thing.key)
    rest = explanation.things[:place] + explanation.things[place + 1 :]
    start = np.delete(explanation.fit.effects, place)
    effect = explanation.fit.effects[place]
    others: list[tuple[Thing, ...]] = []
    half = len(thing.rows) / 2
    if thing.kind in (Kind.NODE, Kind.PAIR):
        ends = np.concatenate([table.one[thing.rows], table.other[thing.rows]])
        names, counts = np.unique(ends, return_counts=True)
        others += [(search.node(int(n)),) for n in names[counts >= half]]
        pairs, counts = np.unique(table.pair[thing.rows], return_counts=True)
        others += [(search.pair(int(p)),) for p in pairs[counts >= half]]
    if thing.kind is Kind.PAIR:
        others.append(tuple(search.node(number) for number in thing.nodes))
    mine = np.zeros(table.rows, dtype=bool)
    mine[thing.rows] = True
    others += [(group,) for group in search.groups if mine[group.rows].sum() >= half]
    known = {other.key for other in explanation.things}
    found = []
    for several in others:
        if any(other.key in known for other in several):
            continue
        begin = np.concatenate([start, np.full(len(several), effect)])
        instead = explanation_of(search, (*rest, *several), begin)
        if instead is not None and (
            instead.fit.log_likelihood > explanation.fit.log_likelihood - EQUALLY_WELL
        ):
            found.append(" and ".join(named(other.kind, other.name) for other in several))
    return tuple(found)


def _suspects(
    explanation: Explanation,
    estimates: Floats,
    errors: Floats,
    cleared: NDArray[np.bool_],
    counts: float,
) -> list[int]:
    """Nodes not cleared that look slow, worst first: those found so far, then the slowest."""
    found = {
        number: math.inf if thing.kind is Kind.NODE else 0.0
        for thing in explanation.things
        if thing.kind in (Kind.NODE, Kind.PAIR)
        for number in thing.nodes
        if not cleared[number]
    }
    slowest = np.where(cleared, -math.inf, np.nan_to_num(estimates / errors, nan=-math.inf))
    least = max(2.0, 0.7 * math.sqrt(2 * math.log(max(len(estimates), 2))))
    for number in np.flatnonzero((slowest >= least) & (estimates > counts / 2)):
        found.setdefault(int(number), float(slowest[number]))
    return sorted(found, key=lambda number: (-found[number], number))


def _suspected_pairs(
    explanation: Explanation,
    accused: set[tuple[Kind, str]],
    counts: float,
) -> tuple[tuple[int, int], ...]:
    """Pairs of which all rows are far too slow for what is known of their nodes."""
    fitted, table = explanation.fit, explanation.fit.table
    far = (fitted.weights < 0.5) & (fitted.left > counts / 2) & (fitted.owner < 0)
    both = np.bincount(table.pair, far, table.pairs) == np.bincount(
        table.pair, minlength=table.pairs
    )
    rows = np.flatnonzero(both[table.pair])
    found = {
        (int(min(table.one[row], table.other[row])), int(max(table.one[row], table.other[row])))
        for row in rows
    }
    for thing in explanation.things:
        if thing.kind is Kind.PAIR and thing.key not in accused:
            found.add((thing.nodes[0], thing.nodes[1]))
    return tuple(sorted(found))
