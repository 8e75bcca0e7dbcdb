"""Search for the fewest slow nodes, pairs, switches and uplinks that explain the measurements.

A forward search over fits (orthogonal matching pursuit: Pati, Rezaiifar and Krishnaprasad,
Asilomar 1993), whose steps each take the thing that raises the likelihood most, less what
looking among so many of its kind raises it by chance; what is no longer needed is dropped. Tests
are repeated after every round, and err together as a whole run may.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from operator import attrgetter

import numpy as np
import scipy

from netproof.measurement.interval import MAD_OF_NORMAL
from netproof.pairs.model import (
    PRIOR_WEIGHT,
    WIDER,
    Bools,
    Fit,
    Floats,
    Ints,
    Kind,
    NoiseShape,
    PairTable,
    Posterior,
    Thing,
    information_of,
    owned_weights,
    round_weights,
    taken,
)
from netproof.site.partition import DEFAULTS

MOST_THINGS = 24
"""Things that are looked for at most: more of them are no exceptions."""

LEAST_ROUNDS = 2
"""One round is not enough to call anything slow."""

EQUALLY_WELL = math.log(20)
"""Difference of log likelihoods within which two explanations fit equally well."""

WIDER_OFTEN = 10.0
"""Expected ratio of wider to disturbed measurements."""

FEW_FREE = 20
"""Degrees of freedom below which the first scale is of all measurements."""

FIRST_FAR = 3.0
"""Standard deviations beyond which a row has less weight at first."""

NO_EFFECTS: Floats = np.zeros(0)

_STEPS = 40
_FIRST_WIDE = 0.1
_FIXED_PRICE = 2.0
_CLIP = 5.0
_SMALL = 32
"""Most nodes with which the search also continues from steps that are not better."""

_AHEAD = 3
_LEAST_WEIGHT = 0.5
_MOST_SPLIT = 128
_TRIED = {True: 3, False: 2}


def price(table: PairTable, thing: Thing) -> float:
    """Return by how much one more effect has to raise the logarithm of the likelihood."""
    among = len(table.groups) if thing.shared else len(table.names)
    if thing.kind is Kind.PAIR:
        among = max(int(table.repeated.sum()), among)
    return math.log(among) + _FIXED_PRICE


def explained(table: PairTable) -> Fit | None:
    """Return the best fit found, of up to half of the nodes; None without any."""
    best = now = fit(table)
    if best is None or now is None:
        return None
    count = len(table.names)
    small, without = count <= _SMALL, 0
    while len(now.things) < min(MOST_THINGS, max(count // 2, 1)):
        following = _step(table, now, small)
        if following is None:
            break
        now = _pruned(table, following)
        if now.value > best.value:
            best, without = now, 0
        else:
            without += 1
            if not small or without >= _AHEAD or following.things != now.things:
                break
    return best


_value = attrgetter("value")


def _step(table: PairTable, now: Fit, small: bool) -> Fit | None:
    tried = []
    for thing in _candidates(table, now, small):
        free = _open(now)[thing.rows]
        first = float(np.median(now.off[thing.rows][free])) if free.any() else 0.0
        tried.append(fit(table, (*now.things, thing), np.append(now.effects, first)))
    fits = [one for one in tried if one is not None]
    groups = [one for one in fits if one.things[-1].shared]
    if groups and (instead := _split(table, now, max(groups, key=_value).things[-1])):
        fits.append(instead)
    return max(fits, key=_value, default=None)


def _split(table: PairTable, now: Fit, group: Thing) -> Fit | None:
    """Replace a group by its slow nodes: most nodes of a leaf are not the leaf."""
    if len(group.nodes) > _MOST_SPLIT:
        return None
    known = {thing.key for thing in now.things}
    every = map(table.as_node, group.nodes)
    nodes = [node for node in every if len(node.rows) and node.key not in known]
    medians = np.array([float(np.median(now.off[node.rows])) for node in nodes])
    if not len(medians):
        return None
    slow = np.flatnonzero(medians > medians.max() / 2)
    things = (*now.things, *(nodes[place] for place in slow))
    return fit(table, things, np.append(now.effects, medians[slow]))


def fit(table: PairTable, things: Sequence[Thing] = (), start: Floats = NO_EFFECTS) -> Fit | None:
    """Fit levels, the effects of these things, and the noise; ``start``: effects to begin with.

    None if the rows leave no degree of freedom for the noise, or a thing is not slower.
    """
    members = [thing.rows for thing in things]
    count, total = len(members), table.rows
    least_freedom = total - table.rounds - count
    if least_freedom < 1:
        return None
    off = table.slowness - table.medians[table.round]
    effects = start
    owner = _owners(table, members, effects)
    slow = taken(effects, owner)
    left = off - slow
    left -= (np.bincount(table.round, left) / np.bincount(table.round))[table.round]
    if least_freedom < FEW_FREE:
        scale = math.sqrt(float(left @ left) / least_freedom)
    else:
        scale = MAD_OF_NORMAL * float(np.median(np.abs(left))) * math.sqrt(total / least_freedom)
    scale = max(scale, DEFAULTS.resolution)
    shape = NoiseShape(_FIRST_WIDE, DEFAULTS.disturbed_share)
    # By residuals from each round's median: the mean of three rows follows one that is far.
    far = np.maximum(np.abs(off - slow), 1e-9)
    weights, there = np.minimum(1.0, FIRST_FAR * scale / far), float(total)
    levels = np.zeros(table.rounds)
    density = np.zeros(total)
    for step in range(_STEPS):
        of_rounds = round_weights(table, weights)
        if count:
            owner = _owners(table, members, effects)
            effects = _solved(table, owner, weights, of_rounds, effects)
        clean = table.slowness - taken(effects, owner)
        levels = np.bincount(table.round, weights * clean, table.rounds) / of_rounds
        left = clean - levels[table.round]
        before = scale
        if step:
            freedom = max(there - table.rounds - count, 1.0)
            scale = max(math.sqrt(float(weights @ left**2) / freedom), DEFAULTS.resolution)
        core, wide, flat = shape.parts((left / scale) ** 2, scale)
        density = core + wide + flat
        in_core, in_wide = core / density, wide / density
        weights = in_core + in_wide / WIDER**2
        wider = float(in_wide.sum())
        there = float(in_core.sum()) + wider
        expected, of = DEFAULTS.disturbed_share * PRIOR_WEIGHT, total + PRIOR_WEIGHT
        shape = NoiseShape((wider + WIDER_OFTEN * expected) / of, (total - there + expected) / of)
        if step and abs(scale - before) < 1e-3 * before:
            break
    freedom = there - table.rounds - count
    if freedom < 1 or (effects <= 0).any():
        return None
    log_likelihood = float(np.log(density).sum())
    value = log_likelihood - sum(price(table, thing) for thing in things)
    of_rows, noise = (effects, owner, levels, left, weights), (scale, freedom, shape)
    return Fit(table, tuple(things), *of_rows, *noise, log_likelihood, value)


def _owners(table: PairTable, members: Sequence[Ints], effects: Floats) -> Ints:
    owner = np.full(table.rows, -1)
    for effect in np.argsort(effects, kind="stable"):
        owner[members[effect]] = effect
    return owner


def _solved(
    table: PairTable, owner: Ints, weights: Floats, of_rounds: Floats, before: Floats
) -> Floats:
    """Weighted least squares of the effects, the levels of the rounds swept out."""
    count, mine = len(before), owner >= 0
    owned = owned_weights(table, owner, weights, count)
    sums = np.bincount(owner[mine], (weights * table.slowness)[mine], count)
    means = np.bincount(table.round, weights * table.slowness, table.rounds) / of_rounds
    information, score = information_of(owned, of_rounds), sums - owned.T @ means
    if count == 1:
        solved = score / max(float(information[0, 0]), 1e-9)
    else:
        solved = np.linalg.pinv(information, hermitian=True) @ score
    # An effect of no row, or of disturbed ones only, stays as it is.
    return np.where(owned.sum(axis=0) > 1e-6, solved, before)


def _pruned(table: PairTable, now: Fit) -> Fit:
    """Drop what the last step made superfluous."""
    while len(now.things) > 1:
        several = (fit(table, *_without(now, place)) for place in range(len(now.things) - 1))
        fewer = [one for one in several if one is not None and one.value > now.value]
        if not fewer:
            break
        now = max(fewer, key=_value)
    return now


def _without(now: Fit, place: int) -> tuple[tuple[Thing, ...], Floats]:
    return now.things[:place] + now.things[place + 1 :], np.delete(now.effects, place)


def _open(now: Fit) -> Bools:
    """Mark rows that no node or pair sets: the nodes of a group may explain its rows better."""
    groups = [place for place, thing in enumerate(now.things) if thing.shared]
    return np.isin(now.owner, [-1, *groups])


def _candidates(table: PairTable, now: Fit, small: bool) -> list[Thing]:
    """Return the few things whose residuals are slowest for their number."""
    free, count = _open(now), _TRIED[small]
    standard = now.left / now.scale
    shapes = [np.clip(standard, -_CLIP, _CLIP)]
    if small:
        shapes.append(standard)
    things: list[Thing] = []
    for values in shapes:
        values = np.where(free, values, 0.0)
        scores = _scores(table.nodes_of_rows, np.tile(values, 2), np.tile(free, 2))
        things += map(table.as_node, _largest(scores, count, unusual(len(table.names))))
        scores = _scores(table.pair, values, free)
        scores[~table.repeated] = -math.inf
        things += map(table.as_pair, _largest(scores, 1, 2.0))
        of_groups = [
            values[thing.rows].sum() / math.sqrt(max(float(free[thing.rows].sum()), 1.0))
            for thing in table.groups
        ]
        things += [table.groups[at] for at in _largest(np.array(of_groups), count, 2.0)]
    known = {thing.key for thing in now.things}
    return [thing for key, thing in {one.key: one for one in things}.items() if key not in known]


def unusual(count: int) -> float:
    """Return the deviate from which one of so many nodes is looked at."""
    return 0.7 * math.sqrt(2 * math.log(max(count, 2)))


def _scores(group: Ints, values: Floats, free: Bools) -> Floats:
    return np.bincount(group, values) / np.sqrt(np.maximum(np.bincount(group, free), 1.0))


def _largest(scores: Floats, count: int, least: float) -> list[int]:
    if not len(scores):
        return []
    some = np.argpartition(-scores, min(count, len(scores)) - 1)[:count]
    return [int(place) for place in some if scores[place] >= least]


def contrasts(now: Fit, place: int, *, beyond: bool = False) -> tuple[Floats, Floats]:
    """Return the contrast of the thing in that place with the others in each round, and scales.

    Others have the effects that the fit gives them; rows that another thing sets are left out. A
    round has one row of a node or pair, and the weighted mean of a group's rows. ``beyond``:
    slowness beyond what the others explain, by rows that they do not explain if two rounds have
    any.
    """
    table, thing, effect = now.table, now.things[place], float(now.effects[place])
    rows = thing.rows[now.owner[thing.rows] == place]
    slow = np.zeros(table.rows)
    if beyond:
        for other, its in zip(*_without(now, place), strict=True):
            slow[other.rows] = np.maximum(slow[other.rows], its)
    free = rows[slow[rows] == 0]
    if len(np.unique(table.round[free])) >= LEAST_ROUNDS:
        rows = free
    rounds = table.round[rows]
    if not thing.shared:
        whole = now.round_weights[rounds]
        rest = np.maximum(whole - now.weights[rows], 1e-3)
        found = effect - slow[rows] + now.left[rows] * whole / rest
        scales = now.scale * np.sqrt(1 + 1 / rest)
    else:
        own = np.bincount(rounds, now.weights[rows], table.rounds)
        sums = np.bincount(rounds, now.weights[rows] * now.left[rows], table.rounds)
        others = np.bincount(rounds, now.weights[rows] * slow[rows], table.rounds)
        rest = now.round_weights - own
        usable = (own > 0.5) & (rest > 0.5)
        own, sums, rest = own[usable], sums[usable], rest[usable]
        found = effect - others[usable] / own + sums / own * (own + rest) / rest
        scales = now.scale * np.sqrt(1 / own + 1 / rest)
    # Other effects, estimated from the same rows, widen the error.
    alone, joint = now.information[place, place], now.covariance[place, place]
    return found, scales * (math.sqrt(max(alone * joint, 1.0)) if alone > 1e-9 else math.inf)


def posterior_of_node(now: Fit, number: int) -> Posterior | None:
    """Return the distribution of the effect of a node that has none; None without contrasts."""
    rows = now.table.as_node(number).rows
    rows = rows[now.owner[rows] < 0]
    weights, whole = now.weights[rows], now.round_weights[now.table.round[rows]]
    rest = np.maximum(whole - weights, 1e-3)
    alone = float((weights - weights**2 / whole).sum())
    if alone < _LEAST_WEIGHT:
        return None
    _, joint = now.added(np.zeros(len(rows), int), 1, rows, np.zeros(len(rows)))
    scales = now.scale * np.sqrt((1 + 1 / rest) * alone / max(float(joint[0]), 1e-9))
    return Posterior.of(now.left[rows] * whole / rest, scales, now.shape)[0]


def posterior(now: Fit, place: int, *, beyond: bool = False) -> Posterior | None:
    """Return the distribution of the effect in that place; None without contrasts."""
    found, scales = contrasts(now, place, beyond=beyond)
    if not len(found) or not np.isfinite(scales).all():
        return None
    return Posterior.of(found, scales, now.shape)[0]


def chance(now: Fit, place: int, scatter: float) -> float:
    """Return the probability that a thing without an effect looks as slow as this, or slower.

    Only slowness beyond what others explain counts: everything behind a slow uplink is slow.
    ``scatter``: of healthy nodes, in standard errors. The probability is a mean over the scales
    that the noise may have, given its degrees of freedom.
    """
    found, scales = contrasts(now, place, beyond=True)
    factors, shares = scale_factors(now.freedom)
    shape = now.shape
    if not now.things[place].shared:
        shape = shape.with_rows(found / scales, scales, now.table.rows)
    several = Posterior.of(found, scales * scatter, shape, factors)
    return float(shares @ np.exp([one.log_at_most(0.0) for one in several]))


def scale_factors(freedom: float) -> tuple[Floats, Floats]:
    """Return ratios of the true scale to the estimate, and their probabilities (inverse chi).

    Spaced evenly in the logarithm, as far as matters for levels of 10⁻¹².
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


def alternatives(now: Fit, place: int) -> list[tuple[Thing, ...]]:
    """Return what explains the measurements as well in the place of a thing."""
    table, thing = now.table, now.things[place]
    rest, start = _without(now, place)
    others: list[tuple[Thing, ...]] = []
    half = len(thing.rows) / 2
    if not thing.shared:
        ends = np.concatenate([table.one[thing.rows], table.other[thing.rows]])
        for make, of in ((table.as_node, ends), (table.as_pair, table.pair[thing.rows])):
            numbers, counts = np.unique(of, return_counts=True)
            others += [(make(int(number)),) for number in numbers[counts >= half]]
    if thing.kind is Kind.PAIR:
        others.append(tuple(map(table.as_node, thing.nodes)))
    groups = ((one, np.isin(one.rows, thing.rows)) for one in table.groups)
    others += [(group,) for group, mine in groups if mine.sum() >= half]
    known, found = {other.key for other in now.things}, []
    for several in others:
        if known.isdisjoint(other.key for other in several):
            begin = np.concatenate([start, np.full(len(several), now.effects[place])])
            instead = fit(table, (*rest, *several), begin)
            if instead and instead.log_likelihood > now.log_likelihood - EQUALLY_WELL:
                found.append(several)
    return found


_GRID_POINTS = 241

MOST_JOINT_LOOKS = 40
"""Looks up to which their dependence is computed; beyond, each has its own share of the error."""


@cache
def nominal_levels(error: float, looks: int) -> tuple[float, ...]:
    """Return one-sided levels of the tests after each of ``looks`` rounds that together err so.

    After round k of K the share k/K is spent (Lan and DeMets, Biometrika 70, 1983; Kim and
    DeMets, Biometrika 74, 1987), for a sum to which every round adds the same information
    (Armitage, McPherson and Rowe, J. R. Statist. Soc. A 132, 1969). For more rounds than
    ``MOST_JOINT_LOOKS`` each round's share is its level, which is stricter.
    """
    shares = np.full(looks, error / looks)
    if looks > MOST_JOINT_LOOKS:
        return tuple(shares)
    levels = [float(shares[0])]
    bound = -float(scipy.special.ndtri(shares[0]))
    # The density of the sum where no bound was crossed so far, at points of their own each round.
    points, weights = _grid(bound)
    density = np.exp(-(points**2) / 2) / np.sqrt(2 * np.pi)
    for look in range(2, looks + 1):
        mass = density * weights
        low, high = 0.0, -float(scipy.special.ndtri(shares[look - 1] / 4)) * np.sqrt(look)
        for _ in range(50):
            middle = (low + high) / 2
            beyond = float(mass @ scipy.special.ndtr(points - middle))
            low, high = (middle, high) if beyond > shares[look - 1] else (low, middle)
        bound = (low + high) / 2
        levels.append(float(np.exp(scipy.special.log_ndtr(-bound / np.sqrt(look)))))
        new, new_weights = _grid(bound, look)
        density = (np.exp(-((new[:, None] - points) ** 2) / 2) / np.sqrt(2 * np.pi)) @ mass
        points, weights = new, new_weights
    return tuple(levels)


def _grid(bound: float, look: int = 1) -> tuple[Floats, Floats]:
    """Return points from far below up to the bound, and Simpson's weights."""
    low = -8.0 * np.sqrt(look)
    points = np.linspace(low, bound, _GRID_POINTS)
    weights = np.resize([2.0, 4.0], _GRID_POINTS)
    weights[[0, -1]] = 1.0
    return points, weights * (points[1] - points[0]) / 3
