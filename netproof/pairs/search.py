"""Search for the fewest slow nodes, pairs, switches and uplinks that explain the measurements.

A forward search over fits (orthogonal matching pursuit: Pati, Rezaiifar and Krishnaprasad,
Asilomar 1993), each step of which takes the thing that raises the likelihood most, less what
looking among so many of its kind raises it by chance; what is no longer needed is dropped. Tests
are repeated after every round, and err together as a whole run may.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from netproof.measurement.interval import MAD_OF_NORMAL
from netproof.pairs.model import (
    PRIOR_WEIGHT,
    WIDER,
    Fit,
    Floats,
    Ints,
    Kind,
    NoiseShape,
    PairTable,
    Posterior,
    Thing,
    information_of,
)
from netproof.pairs.topology import UPLINK_OF, Topology


@dataclass(frozen=True)
class Search:
    """All things of a table that may be slow, and the expected noise."""

    table: PairTable
    topology: Topology | None
    disturbed_share: float
    resolution: float

    def node(self, number: int) -> Thing:
        """Return a node."""
        mine = np.flatnonzero((self.table.one == number) | (self.table.other == number))
        return Thing(Kind.NODE, self.table.names[number], (number,), mine)

    def pair(self, number: int) -> Thing:
        """Return a pair, by its number in the table."""
        mine = np.flatnonzero(self.table.pair == number)
        ends = sorted((int(self.table.one[mine[0]]), int(self.table.other[mine[0]])))
        name = " – ".join(self.table.names[end] for end in ends)
        return Thing(Kind.PAIR, name, tuple(ends), mine)

    @cached_property
    def groups(self) -> tuple[Thing, ...]:
        """Switches and uplinks that some pairs cross, and others do not."""
        if self.topology is None:
            return ()
        table, topology = self.table, self.topology
        leaves = [None, *topology.leaves]
        of = {leaf: place for place, leaf in enumerate(leaves)}
        leaf = np.array([of[topology.leaf_of.get(name)] for name in table.names])
        codes, row_codes = np.unique(
            leaf[table.one] * len(leaves) + leaf[table.other], return_inverse=True
        )
        crossing: dict[str, list[int]] = defaultdict(list)
        for place, code in enumerate(codes.tolist()):
            for name in topology.between(leaves[code // len(leaves)], leaves[code % len(leaves)]):
                crossing[name].append(place)
        number = {name: place for place, name in enumerate(table.names)}
        things = []
        for name in sorted(crossing):
            crossed = np.zeros(len(codes), dtype=bool)
            crossed[crossing[name]] = True
            rows = np.flatnonzero(crossed[row_codes.reshape(-1)])
            if len(rows) < table.rows:
                switch = name.removeprefix(UPLINK_OF)
                nodes = tuple(number[node] for node in topology.below[switch] if node in number)
                kind = Kind.UPLINK if name != switch else Kind.SWITCH
                things.append(Thing(kind, name, nodes, rows))
        return tuple(things)

    @cached_property
    def repeated_pairs(self) -> Ints:
        """Pairs measured more than once: one measurement does not distinguish a pair from noise."""
        return np.flatnonzero(np.bincount(self.table.pair, minlength=self.table.pairs) > 1)

    def price(self, thing: Thing) -> float:
        """Return by how much one more effect has to raise the logarithm of the likelihood."""
        if thing.kind is Kind.NODE:
            among = len(self.table.names)
        elif thing.kind is Kind.PAIR:
            among = max(len(self.repeated_pairs), len(self.table.names))
        else:
            among = len(self.groups)
        return math.log(among) + _FIXED_PRICE


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


def explained(search: Search, most: int) -> Fit | None:
    """Return the best explanation found with at most so many things; None without any fit."""
    best = now = explanation_of(search, ())
    if now is None:
        return None
    small = len(search.table.names) <= _SMALL
    without = 0
    while len(now.things) < most:
        found = _step(search, now, small)
        if found is None:
            break
        now = _pruned(search, found)
        if now.value > best.value:
            best, without = now, 0
        else:
            without += 1
            if not small or without >= _AHEAD or found.things != now.things:
                break
    return best


def _step(search: Search, now: Fit, small: bool) -> Fit | None:
    tried = [
        explanation
        for thing in _candidates(search, now, small)
        if (explanation := _with(search, now, thing)) is not None
    ]
    groups = [e for e in tried if e.things[-1].kind not in (Kind.NODE, Kind.PAIR)]
    if groups:
        best = max(groups, key=lambda explanation: explanation.value)
        instead = _split(search, now, best.things[-1])
        tried += [instead] if instead is not None else []
    return max(tried, key=lambda explanation: explanation.value, default=None)


def _split(search: Search, now: Fit, group: Thing) -> Fit | None:
    """Replace a group by its slow nodes: most nodes of a leaf are not the leaf."""
    if len(group.nodes) > _MOST_SPLIT:
        return None
    there = {thing.key for thing in now.things}
    off = now.left + np.append(now.effects, 0.0)[now.owner]
    nodes = [
        node for node in map(search.node, group.nodes) if len(node.rows) and node.key not in there
    ]
    medians = np.array([float(np.median(off[node.rows])) for node in nodes])
    if not len(medians):
        return None
    slow = np.flatnonzero(medians > medians.max() / 2)
    things = (*now.things, *(nodes[place] for place in slow))
    return explanation_of(search, things, np.append(now.effects, medians[slow]))


def _with(search: Search, now: Fit, thing: Thing) -> Fit | None:
    off = (now.left + np.append(now.effects, 0.0)[now.owner])[thing.rows]
    free = _open(now)[thing.rows]
    first = float(np.median(off[free])) if free.any() else 0.0
    things = (*now.things, thing)
    return explanation_of(search, things, np.append(now.effects, first))


def explanation_of(
    search: Search, things: Sequence[Thing], start: Sequence[float] | Floats = ()
) -> Fit | None:
    """Fit levels, the effects of these things, and the noise; ``start``: effects to begin with.

    None if the rows leave no degree of freedom for the noise, or a thing is not slower.
    """
    table = search.table
    members = [thing.rows for thing in things]
    count, total = len(members), table.rows
    least_freedom = total - table.rounds - count
    if least_freedom < 1:
        return None
    off = table.slowness - table.medians[table.round]
    effects = np.array(start, dtype=np.float64)
    owner = _owners(table, members, effects)
    taken = _taken(effects, owner)
    left = off - taken
    left -= (np.bincount(table.round, left) / np.bincount(table.round))[table.round]
    if least_freedom < FEW_FREE:
        scale = math.sqrt(float(left @ left) / least_freedom)
    else:
        scale = MAD_OF_NORMAL * float(np.median(np.abs(left))) * math.sqrt(total / least_freedom)
    scale = max(scale, search.resolution)
    shape = NoiseShape(_FIRST_WIDE, search.disturbed_share)
    # By residuals from each round's median: the mean of three rows follows one that is far.
    far = np.maximum(np.abs(off - taken), 1e-9)
    weights, there = np.minimum(1.0, FIRST_FAR * scale / far), float(total)
    levels = np.zeros(table.rounds)
    density = np.zeros(total)
    for step in range(_STEPS):
        of_rounds = np.maximum(np.bincount(table.round, weights, table.rounds), 1e-9)
        if count:
            owner = _owners(table, members, effects)
            effects = _solved(table, owner, weights, of_rounds, effects)
        taken = _taken(effects, owner)
        clean = table.slowness - taken
        levels = np.bincount(table.round, weights * clean, table.rounds) / of_rounds
        left = clean - levels[table.round]
        before = scale
        if step:
            freedom = max(there - table.rounds - count, 1.0)
            scale = max(math.sqrt(float(weights @ left**2) / freedom), search.resolution)
        core, wide, flat = shape.parts((left / scale) ** 2, scale)
        density = core + wide + flat
        in_core, in_wide = core / density, wide / density
        weights = in_core + in_wide / WIDER**2
        wider = float(in_wide.sum())
        there = float(in_core.sum()) + wider
        expected, of = search.disturbed_share * PRIOR_WEIGHT, total + PRIOR_WEIGHT
        shape = NoiseShape((wider + WIDER_OFTEN * expected) / of, (total - there + expected) / of)
        if step and abs(scale - before) < 1e-3 * before:
            break
    freedom = there - table.rounds - count
    if freedom < 1 or (effects <= 0).any():
        return None
    log_likelihood = float(np.log(density).sum())
    return Fit(
        table,
        tuple(things),
        effects,
        owner,
        levels,
        left,
        weights,
        scale,
        freedom,
        shape,
        log_likelihood,
        log_likelihood - sum(map(search.price, things)),
    )


def _owners(table: PairTable, members: Sequence[Ints], effects: Floats) -> Ints:
    owner = np.full(table.rows, -1)
    for effect in np.argsort(effects, kind="stable"):
        owner[members[effect]] = effect
    return owner


def _taken(effects: Floats, owner: Ints) -> Floats:
    return np.concatenate([effects, [0.0]])[owner]


def _solved(
    table: PairTable, owner: Ints, weights: Floats, of_rounds: Floats, before: Floats
) -> Floats:
    """Weighted least squares of the effects, the levels of the rounds swept out."""
    count = len(before)
    mine = owner >= 0
    place = table.round[mine] * count + owner[mine]
    owned = np.bincount(place, weights[mine], table.rounds * count).reshape(-1, count)
    sums = np.bincount(owner[mine], (weights * table.slowness)[mine], count)
    means = np.bincount(table.round, weights * table.slowness, table.rounds) / of_rounds
    information, score = information_of(owned, of_rounds), sums - owned.T @ means
    if count == 1:
        solved = score / max(float(information[0, 0]), 1e-9)
    else:
        solved = np.linalg.pinv(information, hermitian=True) @ score
    # An effect of no row, or of disturbed ones only, stays as it is.
    return np.where(owned.sum(axis=0) > 1e-6, solved, before)


def _pruned(search: Search, now: Fit) -> Fit:
    """Drop what the last step made superfluous."""
    while len(now.things) > 1:
        several = (
            explanation_of(
                search,
                now.things[:place] + now.things[place + 1 :],
                np.delete(now.effects, place),
            )
            for place in range(len(now.things) - 1)
        )
        fewer = [one for one in several if one is not None and one.value > now.value]
        if not fewer:
            break
        now = max(fewer, key=lambda explanation: explanation.value)
    return now


def _open(now: Fit) -> NDArray[np.bool_]:
    """Mark rows that no node or pair sets: the nodes of a group may explain its rows better."""
    groups = [
        place for place, thing in enumerate(now.things) if thing.kind not in (Kind.NODE, Kind.PAIR)
    ]
    return np.isin(now.owner, [-1, *groups])


def _candidates(search: Search, now: Fit, small: bool) -> list[Thing]:
    """Return the few things whose residuals are slowest for their number."""
    table = search.table
    free = _open(now)
    standard = now.left / now.scale
    shapes = [np.clip(standard, -_CLIP, _CLIP)]
    if small:
        shapes.append(standard)
    there = {thing.key for thing in now.things}
    count = _TRIED[small]
    found: dict[tuple[Kind, str], Thing] = {}
    repeated = search.repeated_pairs
    is_repeated = np.zeros(table.pairs, dtype=bool)
    is_repeated[repeated] = True
    node_free = np.concatenate([free, free])
    for values in shapes:
        values = np.where(free, values, 0.0)
        scores = _scores(table.nodes_of_rows, np.tile(values, 2), node_free, len(table.names))
        least = 0.7 * math.sqrt(2 * math.log(max(len(table.names), 2)))
        for number in _largest(scores, count, least):
            thing = search.node(number)
            found[thing.key] = thing
        if len(repeated):
            scores = _scores(table.pair, values, free, table.pairs)
            scores[~is_repeated] = -math.inf
            for number in _largest(scores, 1, 2.0):
                thing = search.pair(number)
                found[thing.key] = thing
        sizes = [max(float(free[thing.rows].sum()), 1.0) for thing in search.groups]
        of_groups = np.array(
            [
                values[thing.rows].sum() / math.sqrt(size)
                for thing, size in zip(search.groups, sizes, strict=True)
            ]
        )
        for number in _largest(of_groups, count, 2.0):
            found[search.groups[number].key] = search.groups[number]
    return [thing for key, thing in found.items() if key not in there]


def _scores(group: Ints, values: Floats, free: NDArray[np.bool_], count: int) -> Floats:
    members = np.bincount(group, free, count)
    return np.bincount(group, values, count) / np.sqrt(np.maximum(members, 1.0))


def _largest(scores: Floats, count: int, least: float) -> list[int]:
    if not len(scores):
        return []
    some = np.argpartition(-scores, min(count, len(scores)) - 1)[:count]
    return [int(place) for place in some if scores[place] >= least]


def of_others(now: Fit, thing: Thing) -> Floats:
    """Return the slowness of each row of the table by all other things that explain it."""
    slow = np.zeros(now.table.rows)
    for other, effect in zip(now.things, now.effects, strict=True):
        if other.key != thing.key:
            slow[other.rows] = np.maximum(slow[other.rows], effect)
    return slow


def contrasts(now: Fit, thing: Thing, *, beyond: bool = False) -> tuple[Floats, Floats]:
    """Return a thing's contrast with the others in each round, and the scales of these.

    Others have the effects that the explanation gives them; rows that another thing of it sets are
    left out. A round has one row of a node or pair, and the weighted mean of a group's rows.
    ``beyond``: slowness beyond what the others explain, by rows that they do not explain if two
    rounds have any.
    """
    table = now.table
    place = next((p for p, t in enumerate(now.things) if t.key == thing.key), None)
    mine = -1 if place is None else place
    rows = thing.rows[now.owner[thing.rows] == mine]
    effect = 0.0 if place is None else float(now.effects[place])
    slow = of_others(now, thing) if beyond else np.zeros(table.rows)
    free = rows[slow[rows] == 0]
    if len(np.unique(table.round[free])) >= LEAST_ROUNDS:
        rows = free
    rounds = table.round[rows]
    if thing.kind in (Kind.NODE, Kind.PAIR):
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
    return found, scales * _alongside_others(now, rows, place)


def contrasts_of_nodes(now: Fit, numbers: Ints) -> tuple[Floats, Floats]:
    """``contrasts`` of many nodes without effects: nodes x rounds, infinite scales for none."""
    table = now.table
    place = np.full(len(table.names), -1)
    place[numbers] = np.arange(len(numbers))
    rows = np.tile(np.arange(table.rows), 2)
    mine = place[table.nodes_of_rows]
    there = (mine >= 0) & (now.owner[rows] < 0)
    rows, mine = rows[there], mine[there]
    rounds = table.round[rows]
    weights, whole = now.weights[rows], now.round_weights[rounds]
    rest = np.maximum(whole - weights, 1e-3)
    zeros = np.zeros(len(rows))
    _, joint = now.added(mine, len(numbers), rows, zeros)
    alone = np.bincount(mine, weights - weights**2 / whole, len(numbers))
    sure = alone >= _LEAST_WEIGHT
    ratio = np.where(sure, alone, 1.0) / np.where(sure, np.maximum(joint, 1e-9), 1.0)
    found = np.zeros((len(numbers), table.rounds))
    scales = np.full_like(found, np.inf)
    found[mine, rounds] = now.left[rows] * whole / rest
    scales[mine, rounds] = now.scale * np.sqrt((1 + 1 / rest) * ratio[mine])
    return found, scales


def _alongside_others(now: Fit, rows: Ints, place: int | None) -> float:
    """Return the factor by which other effects, estimated from the same rows, widen an error."""
    if place is None:
        if not len(now.effects):
            return 1.0
        zero = np.zeros(len(rows), dtype=np.int64)
        alone = float(
            np.sum(
                now.weights[rows]
                - now.weights[rows] ** 2 / now.round_weights[now.table.round[rows]]
            )
        )
        _, joint = now.added(zero, 1, rows, np.zeros(len(rows)))
        if alone < _LEAST_WEIGHT:
            return 1.0
        return math.sqrt(alone / joint[0]) if joint[0] > 1e-9 * alone else math.inf
    alone = now.information[place, place]
    variance = np.linalg.pinv(now.information)[place, place]
    return math.sqrt(max(alone * variance, 1.0)) if alone > 1e-9 else math.inf


def posterior(now: Fit, thing: Thing, *, beyond: bool = False) -> Posterior | None:
    """Return the distribution of a thing's effect; None without contrasts. ``beyond``: as there."""
    found, scales = contrasts(now, thing, beyond=beyond)
    if not len(found) or not np.isfinite(scales).all():
        return None
    return Posterior.of(found, scales, now.shape)[0]


def chance(explanation: Fit, thing: Thing, scatter: float = 1.0) -> float:
    """Return the probability that a thing without an effect looks as slow as this, or slower.

    Only slowness beyond what others explain counts: everything behind a slow uplink is slow.
    ``scatter``: of healthy nodes, in standard errors. The probability is a mean over the scales
    that the noise may have, given its degrees of freedom.
    """
    found, scales = contrasts(explanation, thing, beyond=True)
    factors, shares = scale_factors(explanation.freedom)
    shape = explanation.shape
    if thing.kind in (Kind.NODE, Kind.PAIR):
        shape = shape.with_rows(found / scales, scales, explanation.table.rows)
    several = Posterior.of(found, scales * scatter, shape, factors)
    logs = np.array([one.log_at_most(0.0) for one in several])
    return float(shares @ np.exp(logs))


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


def alternatives(search: Search, explanation: Fit, thing: Thing) -> list[tuple[Thing, ...]]:
    """Return what explains the measurements as well in the place of a thing."""
    table = search.table
    place = next(p for p, t in enumerate(explanation.things) if t.key == thing.key)
    rest = explanation.things[:place] + explanation.things[place + 1 :]
    start = np.delete(explanation.effects, place)
    effect = explanation.effects[place]
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
            instead.log_likelihood > explanation.log_likelihood - EQUALLY_WELL
        ):
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
    weights = np.full(_GRID_POINTS, 2.0)
    weights[1::2] = 4.0
    weights[0] = weights[-1] = 1.0
    return points, weights * (points[1] - points[0]) / 3
