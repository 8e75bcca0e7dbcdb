"""Rounds: disjoint pairs of nodes that are measured at once, in one launch, and which come next."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from itertools import combinations, permutations

import numpy as np

from netproof.errors import NetproofError, grouped, listed
from netproof.pairs.accusation import Judgement, State
from netproof.pairs.alone import LEAST_LONE
from netproof.pairs.model import LEAST_NODES, Kind, Pair, PairObservation, Topology
from netproof.pairs.search import LEAST_ROUNDS
from netproof.session.measured import Launch
from netproof.session.pair_rounds import planned
from netproof.site.partition import DEFAULTS, PairQuantity, PairSettings

Pairs = tuple[Pair, ...]


def rounds_of_all(count: int) -> int:
    """Return in how many rounds each pair of so many nodes meets once."""
    return max(count - 1 + count % 2, 0)


def tournament(nodes: Sequence[str], number: int) -> Pairs:
    """Return a round of those in which each pair meets once, by the circle method; from 0."""
    first, *line = [*nodes, None] if len(nodes) % 2 else list(nodes)
    turned = [first, *line[len(line) - number :], *line[: len(line) - number]]
    half = len(turned) // 2
    ends = zip(turned[:half], reversed(turned[half:]), strict=True)
    return tuple((one, other) for one, other in ends if one is not None and other is not None)


_ORDERS = 8
"""Random orders of nodes whose tournaments are searched for a round without repetition."""


def random_round(
    nodes: Sequence[str],
    before: Collection[Collection[str]],
    apart: Collection[frozenset[str]] = (),
    *,
    seed: int = 0,
    done: int = 0,
) -> Pairs:
    """Return the round of a tournament in random order that repeats the fewest pairs.

    ``before``: the pairs of all rounds so far, each as often as it was measured; ``apart``: pairs
    to avoid even more. All rounds of the same nodes are of one tournament, so that none meet again
    before all have. If N is odd, a node that was in most of them is idle.
    """
    count, turns = len(nodes), rounds_of_all(len(nodes))
    if count < 2:
        return ()
    number = {node: place for place, node in enumerate(nodes)}
    met, avoided = (
        np.array(
            [(number[a], number[b]) for a, b in several if a in number and b in number], int
        ).reshape(-1, 2)
        for several in (before, apart)
    )
    often = np.bincount(met.ravel(), minlength=count)
    found: Pairs = ()
    least: float = np.inf
    for order in range(_ORDERS):
        line = np.random.default_rng([seed, order]).permutation(count)
        place = np.argsort(line)
        # In turn t the places of a pair add up to -2t; the first one's is its partner's.
        repeated = np.zeros(turns, dtype=np.int64)
        for ends, weight in ((met, 1), (avoided, len(met) + 1)):
            one, other = place[ends].T
            both = np.where(one == 0, other, one) + np.where(other == 0, one, other)
            repeated += weight * np.bincount(-both * (turns + 1) // 2 % turns, minlength=turns)
        if count % 2:
            repeated[-place * (turns + 1) // 2 % turns] += often.max() - often
        fewest = int(repeated.min())
        if fewest < least:
            turn = np.random.default_rng([seed, done]).choice(np.flatnonzero(repeated == fewest))
            found, least = tournament([nodes[at] for at in line], int(turn)), fewest
        if not least:
            break
    return found


def suspects_round(
    nodes: Sequence[str],
    judgement: Judgement,
    before: Collection[Collection[str]],
    apart: Collection[frozenset[str]] = (),
    *,
    seed: int = 0,
    done: int = 0,
) -> Launch:
    """Pair suspects with the cleared nodes that they have met least; the others at random.

    Suspected pairs are repeated first. If no cleared node is free, suspects meet unsuspected ones.
    """
    suspects, again = judgement.suspects, judgement.suspected_pairs
    cleared = {name for name, node in judgement.nodes.items() if node.state is State.CLEARED}
    met = Counter(map(frozenset, before))
    order = np.random.default_rng([seed, done]).permutation(len(nodes))
    free = dict.fromkeys(nodes[place] for place in order)
    pairs: list[Pair] = []
    for one, other in again:
        if one in free and other in free:
            pairs.append((one, other))
            del free[one], free[other]
    suspected = set(suspects)
    for suspect in suspects:
        if suspect in free:
            others = [node for node in free if node in cleared and node != suspect]
            others = others or [node for node in free if node not in suspected]
            if others:
                # A suspect has met few: there is one among these that it has not.
                partner = min(others[:_AMONG], key=lambda node: met[frozenset((suspect, node))])
                pairs.append((suspect, partner))
                del free[suspect], free[partner]
    names = [*suspects, *(f"{one} – {other}" for one, other in again)]
    why = f"{listed(names)} against cleared nodes" if suspects else f"{listed(names)} again"
    rest = [node for node in nodes if node in free]
    chosen = random_round(rest, before, apart, seed=seed, done=done)
    return planned((*pairs, *chosen), why=why)


_AMONG = 64


def shortest_paths(topology: Topology, nodes: Sequence[str], number: int) -> Pairs:
    """Return a round within all leaves at the same time, every such pair once in turn; or ()."""
    wanted = set(nodes)
    within = [[node for node in below if node in wanted] for below in topology.leaves.values()]
    leaves = [inside for inside in within if len(inside) > 1]
    number %= max((rounds_of_all(len(inside)) for inside in leaves), default=1)
    return tuple(
        pair
        for inside in leaves
        if number < rounds_of_all(len(inside))
        for pair in tournament(inside, number)
    )


def longest_paths(
    topology: Topology,
    nodes: Sequence[str],
    before: Iterable[Collection[str]],
    random: np.random.Generator,
) -> Pairs:
    """Return a round of pairs across the top of the tree, new ones and nodes least used first.

    ``before``: the pairs of such rounds so far. If one side has more than half of the nodes, some
    of it are idle, in turn. () if no switch has two others below it.
    """
    pairs: list[Pair] = []
    met = Counter(map(frozenset, before))
    used = Counter(node for pair in met.elements() for node in pair)
    for sides in _sides(topology, nodes).values():
        waiting = [
            # Taken from the end.
            sorted(random.permutation(members).tolist(), key=lambda node: -used[node])
            for members in sides.values()
        ]
        while len(waiting := sorted(filter(None, waiting), key=len)) > 1:
            # The largest is always taken from: so it never has more than half at the end.
            one, line = waiting[-1].pop(), waiting[int(random.integers(len(waiting) - 1))]
            places = reversed(range(len(line)))
            new = next((at for at in places if frozenset((one, line[at])) not in met), -1)
            pairs.append((one, line.pop(new)))
    return tuple(pairs)


def evenly(topology: Topology, nodes: Sequence[str], random: np.random.Generator) -> list[str]:
    """Return nodes with equally many below every uplink: of each leaf, and leaves of each side.

    Uplinks are often meant to carry less than all of their nodes send, so one with more nodes is
    slower than others. As many nodes as possible take part, preferably of more leaves; leaves with
    fewer nodes, and sides with fewer leaves, do not.
    """
    sides: dict[str, list[list[str]]] = {}
    for members in _sides(topology, nodes).values():
        for side, below in members.items():
            leaves = grouped((topology.leaf_of[node], node) for node in below)
            sides[side] = list(leaves.values())
    each = _most_even([len(leaf) for several in sides.values() for leaf in several])
    fitting = {
        side: [leaf for leaf in several if len(leaf) >= each] for side, several in sides.items()
    }
    leaves_each = _most_even([len(several) for several in fitting.values() if several])
    taken: set[str] = set()
    for several in fitting.values():
        if len(several) >= leaves_each:
            for place in random.permutation(len(several))[:leaves_each]:
                leaf = several[place]
                taken |= {leaf[node] for node in random.permutation(len(leaf))[:each]}
    return [node for node in nodes if node in taken]


def _most_even(counts: Sequence[int]) -> int:
    """Return the number of each with which most take part, the least such; 0 of none."""
    return max(
        sorted(set(counts)),
        key=lambda each: each * sum(count >= each for count in counts),
        default=0,
    )


def _sides(topology: Topology, nodes: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Return nodes by the switch below the top of their tree, for each tree."""
    trees: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for node in nodes:
        leaf = topology.leaf_of.get(node)
        if leaf is not None:
            line = topology.above(leaf)
            trees[line[-1]][line[max(len(line) - 2, 0)]].append(node)
    return trees


OF_FEW = 3
"""Launches of each pair, and each stream, if nodes are too few to compare pairs."""


FEW_NODES = 8
"""Most nodes whose pairs mode quick measures all: seven rounds, about as many as it needs."""


def pairs_that_never_met(
    nodes: Sequence[str], met: Iterable[Collection[str]], apart: Collection[frozenset[str]] = ()
) -> list[Pair]:
    """Return the pairs of nodes that no round had, without those that cannot be measured."""
    known = {frozenset(pair) for pair in met} | set(apart)
    return [pair for pair in combinations(nodes, 2) if frozenset(pair) not in known]


class Mode(StrEnum):
    """Choice of rounds; with fewer than ``LEAST_NODES`` nodes, each pair ``OF_FEW`` times.

    Quick: at random, then suspects against cleared nodes, until nothing is undecided, and of up to
    ``FEW_NODES`` nodes every pair has met. Full: every pair once. Paths: across uplinks and within
    leaves, in turn, until nothing is undecided.
    """

    QUICK = "quick"
    FULL = "full"
    PATHS = "paths"


def next_round(
    mode: Mode,
    nodes: Sequence[str],
    observations: Sequence[PairObservation],
    judgement: Judgement,
    *,
    topology: Topology | None = None,
    settings: PairSettings = DEFAULTS,
    seed: int = 0,
    done: int | None = None,
    apart: Collection[frozenset[str]] = (),
) -> Launch | None:
    """Return the next round, or None if no more is needed.

    ``done``: launches so far, failed ones included; by default the rounds of ``observations``.
    ``apart``: pairs that cannot be measured, which rounds have only if nothing else is left to
    pair; whoever plans the launch leaves them out. The same arguments give the same round. Raises
    NetproofError if mode paths has no topology.
    """
    if done is None:
        done = len({seen.round for seen in observations if not seen.alone})
    if len(nodes) < 2:
        return None
    if mode is Mode.FULL or len(nodes) < LEAST_NODES:
        rounds = rounds_of_all(len(nodes))
        times = OF_FEW if len(nodes) < LEAST_NODES else 1
        if done >= times * rounds:
            return None
        return planned(tournament(nodes, done % rounds), why="every pair once")
    least = LEAST_ROUNDS if mode is Mode.QUICK else 2 * LEAST_ROUNDS
    before: list[Collection[str]] = [seen.nodes for seen in observations if not seen.alone]
    few = mode is Mode.QUICK and len(nodes) <= FEW_NODES
    unmet = pairs_that_never_met(nodes, before, apart) if few else []
    if done >= settings.rounds or (done >= least and judgement.decided and not unmet):
        return None
    if mode is Mode.PATHS:
        if topology is None:
            raise NetproofError("mode paths needs a topology")
        across = longest_paths(topology, nodes, before, np.random.default_rng([seed, done]))
        within = shortest_paths(topology, nodes, done // 2 if across else done)
        if across and (done % 2 == 0 or not within):
            return planned(across, why=ACROSS)
        return planned(within, why=WITHIN) if within else None
    # Across a slow switch or uplink, nothing shows of the undecided nodes behind it.
    behind = any(
        judgement.nodes[node].state is State.UNDECIDED
        for accusation in judgement.accusations
        if accusation.kind in (Kind.SWITCH, Kind.UPLINK)
        for node in accusation.nodes
    )
    if topology is not None and behind and done % 2:
        within = shortest_paths(topology, nodes, done // 2)
        if within:
            busy = {node for pair in within for node in pair}
            rest = [node for node in nodes if node not in busy]
            chosen = random_round(rest, before, apart, seed=seed, done=done)
            return planned((*within, *chosen), why=WITHIN)
    if done >= LEAST_ROUNDS and (judgement.suspects or judgement.suspected_pairs):
        found = suspects_round(nodes, judgement, before, apart, seed=seed, done=done)
        # A pair apart may be all that is left beside suspects; one pair is compared with none.
        if not any(frozenset(pair) in apart for pair in found.pairs):
            return found
    why = "random pairs"
    if unmet:
        # Each counts once, so that the round has the most that never met.
        before, why = [*set(map(frozenset, before))], "every pair once"
    chosen = random_round(nodes, before, apart, seed=seed, done=done)
    return planned(chosen, why=why)


WITHIN, ACROSS = "pairs within a leaf", "pairs across uplinks"

ACROSS_BOTH_WAYS = 3
"""Undisturbed bidirectional rounds across uplinks; two are too few for the stated error."""

MOST_BOTH_WAYS = 8
"""Most bidirectional rounds."""


def both_ways_round(
    nodes: Sequence[str],
    observations: Sequence[PairObservation],
    topology: Topology,
    *,
    made: int,
    seed: int = 0,
) -> Launch | None:
    """Return the next bidirectional round, or None if no more is needed.

    A PingPong sends one way at a time, so that several fill half of the uplink that they share.
    ``ACROSS_BOTH_WAYS`` rounds are across the uplinks, and one is within the leaves, to distinguish
    a slow uplink from a slow leaf; disturbed ones are repeated. Equally many nodes take part below
    each uplink. ``made``: such rounds so far.
    """
    if made >= MOST_BOTH_WAYS:
        return None
    random = np.random.default_rng([seed, made])
    taking = evenly(topology, nodes, random)
    across = longest_paths(topology, taking, (), random)
    inside = shortest_paths(topology, nodes, made)
    leaf = topology.leaf_of
    below = Counter(leaf[node] for node in taking)
    # One pair shares no uplink with another, and of two uplinks all pairs cross both.
    if not across or len(below) < 3 or min(below.values()) < 2:
        return None
    crossing: dict[int, bool] = defaultdict(bool)
    for one in observations:
        if one.both_ways_mb_s is not None and not one.disturbed:
            crossing[one.round] |= leaf[one.nodes[0]] != leaf[one.nodes[1]]
    count = sum(crossing.values())
    within = bool(count and inside) and count == len(crossing)
    if not within and count >= ACROSS_BOTH_WAYS:
        return None
    why = f"{WITHIN if within else ACROSS}, both ways at once"
    return planned(inside if within else across, why=why, both_ways=True)


REPEATS = 3
"""Launches of each pair alone."""

MOST_CONFIRMED = 4
"""Most accusations that are measured alone, the first ones."""


def confirming_rounds(
    judgement: Judgement, observations: Sequence[PairObservation]
) -> tuple[Launch, ...]:
    """Return rounds of each accused thing alone, and of as many pairs of cleared nodes, in turn.

    Of a node, switch or uplink: a pair with a cleared node, preferably one that was measured. () if
    nothing is accused or nothing is cleared.
    """
    good = judgement.good
    cleared = set(good)
    pairs: list[Pair] = []
    for accusation in judgement.accusations[:MOST_CONFIRMED]:
        first, *others = accusation.nodes
        met = [(first, good[0])] if good else []
        if accusation.kind is Kind.PAIR:
            met = [(first, others[0])]
        else:
            slow = set(accusation.nodes)
            met += [
                seen.nodes
                for seen in observations
                if len(slow.intersection(seen.nodes)) == 1 and not cleared.isdisjoint(seen.nodes)
            ]
        pairs += met[-1:]
    controls = list(zip(good[::2], good[1::2], strict=False))[: max(len(pairs), 2)]
    several = [*pairs, *controls] if pairs and controls else []
    return REPEATS * tuple(
        planned((pair,), alone=True, why=f"{' – '.join(pair)} alone") for pair in several
    )


def leaf_rounds(topology: Topology, made: int) -> tuple[Launch, ...]:
    """Return pairs alone within two leaves of two nodes, and across, in turn.

    ``made``: launches of a pair alone so far, within or across, the fewer.
    """
    (a, b), (c, d) = (below for below in topology.leaves.values() if below)
    within, across = ((a, b), (c, d)), ((a, c), (b, d), (a, d), (b, c))
    return tuple(
        planned((pair,), alone=True, why=f"{' – '.join(pair)} alone, {where}")
        for turn in range(made, LEAST_LONE)
        for pair, where in ((within[turn % 2], WITHIN), (across[turn % 4], ACROSS))
    )


def stream_rounds(
    nodes: Sequence[str], judgement: Judgement, decided: Collection[str] = ()
) -> tuple[Launch, ...]:
    """Return streams of each accused node to a cleared one and back, and one between cleared ones.

    Each pair is of who sends and who receives. () if no node is accused of its rate, without those
    that are ``decided``, or fewer than two are cleared. Of too few nodes to compare, each sends to
    each of the others.
    """
    if len(nodes) < LEAST_NODES:
        pairs = list(permutations(nodes, 2))
    else:
        good = judgement.good
        accused = [
            accusation.nodes[0]
            for accusation in judgement.accusations[:MOST_CONFIRMED]
            if accusation.kind is Kind.NODE
            and accusation.nodes[0] not in decided
            and any(effect.quantity is PairQuantity.RATE for effect in accusation.effects)
        ]
        if not accused or len(good) < 2:
            return ()
        pairs = [(good[0], good[1])]
        for node in accused:
            pairs += [(node, good[0]), (good[0], node)]
    return REPEATS * tuple(
        planned((pair,), alone=True, stream=True, why=" sends to ".join(pair)) for pair in pairs
    )
