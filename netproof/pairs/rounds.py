"""Rounds: disjoint pairs of nodes that are measured at once, in one launch, and which come next."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from itertools import combinations, permutations

import numpy as np

from netproof.errors import NetproofError
from netproof.pairs.accusation import Judgement, State
from netproof.pairs.model import LEAST_NODES, Kind, Pair, PairObservation
from netproof.pairs.search import LEAST_ROUNDS
from netproof.pairs.topology import Topology
from netproof.session.pair_rounds import PlannedLaunch
from netproof.site.pair_settings import DEFAULTS, PairQuantity, PairSettings

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


def random_round(
    nodes: Sequence[str], before: Collection[Pair], random: np.random.Generator
) -> Pairs:
    """Return random pairs, new ones as long as there are any.

    ``before``: the pairs of all rounds so far, each as often as it was measured. If N is odd, a
    node that was in most of them is idle.
    """
    taking = list(nodes)
    if len(taking) % 2:
        often = Counter(node for pair in before for node in pair)
        most = max(often[node] for node in taking)
        last = [node for node in taking if often[node] == most]
        taking.remove(last[int(random.integers(len(last)))])
    return _matched(taking, Counter(frozenset(pair) for pair in before), random)


_SHUFFLES = 8
_EXACT = 64
"""Most nodes for which a round without repetition is searched exhaustively."""
_STEPS = 3000


def _matched(nodes: list[str], met: Counter[frozenset[str]], random: np.random.Generator) -> Pairs:
    if len(nodes) < 2:
        return ()
    best: list[Pair] = []
    least: int | None = None
    for _ in range(_SHUFFLES):
        order = [nodes[place] for place in random.permutation(len(nodes))]
        pairs = list(zip(order[::2], order[1::2], strict=True))
        _swap(pairs, met, random)
        repeated = sum(met[frozenset(pair)] for pair in pairs)
        if least is None or repeated < least:
            best, least = pairs, repeated
        if not repeated:
            break
    if least and len(nodes) <= _EXACT:
        for allowed in range(max(met.values(), default=0)):
            exact = _searched(nodes, met, allowed, random)
            if exact is not None:
                return exact
    return tuple(best)


def _swap(pairs: list[Pair], met: Counter[frozenset[str]], random: np.random.Generator) -> None:
    """Exchange partners if a pair was measured before."""
    for place, pair in enumerate(pairs):
        if not met[frozenset(pair)]:
            continue
        for other in random.integers(len(pairs), size=16):
            (a, b), (c, d) = pairs[place], pairs[other]
            new = frozenset((a, d)), frozenset((c, b))
            if (
                other != place
                and met[new[0]] + met[new[1]] < met[frozenset((a, b))] + met[frozenset((c, d))]
            ):
                pairs[place], pairs[other] = (a, d), (c, b)
                break


def _searched(
    nodes: list[str], met: Counter[frozenset[str]], allowed: int, random: np.random.Generator
) -> Pairs | None:
    """Search for a round of pairs that met ``allowed`` times at most; None if none is found."""
    partners = {
        node: {
            other for other in nodes if other != node and met[frozenset((node, other))] <= allowed
        }
        for node in nodes
    }
    rank = {nodes[place]: int(r) for r, place in enumerate(random.permutation(len(nodes)))}
    steps = 0

    def below(left: set[str]) -> Pairs | None:
        nonlocal steps
        if not left:
            return ()
        steps += 1
        if steps > _STEPS:
            return None
        node = min(left, key=lambda name: (len(partners[name] & left), rank[name]))
        for other in sorted(partners[node] & left, key=rank.__getitem__):
            rest = below(left - {node, other})
            if rest is not None:
                return ((node, other), *rest)
        return None

    return below(set(nodes))


def suspects_round(
    nodes: Sequence[str],
    suspects: Sequence[str],
    cleared: Collection[str],
    before: Collection[Pair],
    random: np.random.Generator,
    *,
    again: Sequence[Pair] = (),
) -> PlannedLaunch:
    """Pair suspects with the cleared nodes that they have met least; the others at random.

    ``again``: pairs to repeat first. If no cleared node is free, suspects meet unsuspected ones.
    """
    met: dict[str, Counter[str]] = defaultdict(Counter)
    for one, other in before:
        met[one][other] += 1
        met[other][one] += 1
    free = dict.fromkeys(nodes)
    pairs: list[Pair] = []
    for one, other in again:
        if one in free and other in free:
            pairs.append((one, other))
            del free[one], free[other]
    suspected = set(suspects)
    for suspect in suspects:
        if suspect not in free:
            continue
        others = [node for node in free if node in cleared and node != suspect]
        others = others or [node for node in free if node not in suspected]
        if others:
            times = met[suspect]
            fewest = min(times.get(node, 0) for node in others)
            among = [node for node in others if times.get(node, 0) == fewest]
            partner = among[int(random.integers(len(among)))]
            pairs.append((suspect, partner))
            del free[suspect], free[partner]
    names = [*suspects, *(f"{one} – {other}" for one, other in again)]
    more = len(names) - _SHOWN
    few = ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    why = f"{few} against cleared nodes" if suspects else f"{few} again"
    return PlannedLaunch(0, (*pairs, *random_round(list(free), before, random)), why=why)


_SHOWN = 4


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
    topology: Topology, nodes: Sequence[str], count: int, random: np.random.Generator
) -> list[Pairs]:
    """Return ``count`` rounds of pairs across the top of the tree, nodes least used first.

    If one side has more than half of the nodes, some of it are idle, in turn; [] if no switch has
    two others below it.
    """
    used: Counter[str] = Counter()
    met: set[frozenset[str]] = set()
    rounds: list[Pairs] = []
    for _ in range(count):
        pairs = tuple(
            pair
            for sides in _sides(topology, nodes).values()
            for pair in _across(sides, used, met, random)
        )
        if pairs:
            met |= {frozenset(pair) for pair in pairs}
            used.update(node for pair in pairs for node in pair)
            rounds.append(pairs)
    return rounds


def evenly(topology: Topology, nodes: Sequence[str], random: np.random.Generator) -> list[str]:
    """Return nodes with equally many below every uplink: of each leaf, and leaves of each side.

    Uplinks are often meant to carry less than all of their nodes send, so one with more nodes is
    slower than others. As many nodes as possible take part, preferably of more leaves; leaves with
    fewer nodes, and sides with fewer leaves, do not.
    """
    sides: dict[str, list[list[str]]] = {}
    for members in _sides(topology, nodes).values():
        for side, below in members.items():
            leaves: dict[str, list[str]] = defaultdict(list)
            for node in below:
                leaves[topology.leaf_of[node]].append(node)
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


def _across(
    sides: dict[str, list[str]],
    used: Counter[str],
    met: set[frozenset[str]],
    random: np.random.Generator,
) -> Iterable[Pair]:
    if len(sides) < 2:
        return
    waiting = []
    for members in sides.values():
        shuffled = [members[place] for place in random.permutation(len(members))]
        # Taken from the end.
        waiting.append(sorted(shuffled, key=lambda node: -used[node]))
    left = np.array([len(line) for line in waiting])
    while True:
        most = int(left.argmax())
        others = np.flatnonzero(left)
        others = others[others != most]
        if not len(others):
            return
        # As long as the largest side has less than half, any other one will do.
        sizes = left[others]
        if 2 * left[most] >= left.sum():
            other = others[int(random.choice(len(others), p=sizes / sizes.sum()))]
        else:
            drawn = random.random(len(others))
            other = others[np.where(sizes == sizes.max(), drawn, -1).argmax()]
        left[[most, other]] -= 1
        one, line = waiting[most].pop(), waiting[other]
        places = reversed(range(len(line)))
        yield one, line.pop(next((p for p in places if frozenset((one, line[p])) not in met), -1))


OF_FEW = 3
"""Launches of each pair, and each stream, if nodes are too few to compare pairs."""


FEW_NODES = 8
"""Most nodes whose pairs mode quick measures all: seven rounds, about as many as it needs."""


def pairs_that_never_met(
    nodes: Sequence[str], met: Iterable[Pair], apart: Collection[frozenset[str]] = ()
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
) -> PlannedLaunch | None:
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
        return PlannedLaunch(0, tournament(nodes, done % rounds), why="every pair once")
    random = np.random.default_rng([seed, done])
    least = LEAST_ROUNDS if mode is Mode.QUICK else 2 * LEAST_ROUNDS
    before = [seen.nodes for seen in observations if not seen.alone]
    few = mode is Mode.QUICK and len(nodes) <= FEW_NODES
    unmet = {*map(frozenset, pairs_that_never_met(nodes, before, apart))} if few else set()
    enough = judgement.decided and not unmet
    if done >= settings.rounds or (done >= least and enough):
        return None
    if mode is Mode.PATHS:
        if topology is None:
            raise NetproofError("mode paths needs a topology")
        return _of_paths(nodes, topology, settings, seed, done)
    often = max(Counter(map(frozenset, before)).values(), default=0) + 1
    before += [(one, other) for one, other in map(sorted, apart) for _ in range(often)]
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
            rest = random_round([node for node in nodes if node not in busy], before, random)
            return PlannedLaunch(0, (*within, *rest), why=WITHIN)
    if done >= LEAST_ROUNDS and (judgement.suspects or judgement.suspected_pairs):
        cleared = {name for name, node in judgement.nodes.items() if node.state is State.CLEARED}
        suspects, again = judgement.suspects, judgement.suspected_pairs
        found = suspects_round(nodes, suspects, cleared, before, random, again=again)
        # A pair apart may be all that is left beside suspects; one pair is compared with none.
        if not any(frozenset(pair) in apart for pair in found.pairs):
            return found
    if unmet:
        order = [nodes[at] for at in np.random.default_rng([seed]).permutation(len(nodes))]
        several = (tournament(order, number) for number in range(rounds_of_all(len(nodes))))
        best = max(several, key=lambda pairs: sum(frozenset(pair) in unmet for pair in pairs))
        return PlannedLaunch(0, best, why="every pair once")
    return PlannedLaunch(0, random_round(nodes, before, random), why="random pairs")


WITHIN, ACROSS = "pairs within a leaf", "pairs across uplinks"


def _of_paths(
    nodes: Sequence[str], topology: Topology, settings: PairSettings, seed: int, done: int
) -> PlannedLaunch | None:
    inside = shortest_paths(topology, nodes, 0)
    # Of as many as a run can have, only the first are needed.
    number = (done // 2 if inside else done) % ((settings.rounds + 1) // 2)
    across = longest_paths(topology, nodes, number + 1, np.random.default_rng([seed]))
    if across and (done % 2 == 0 or not inside):
        return PlannedLaunch(0, across[number], why=ACROSS)
    if not inside:
        return None
    within = shortest_paths(topology, nodes, done // 2 if across else done)
    return PlannedLaunch(0, within, why=WITHIN)


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
) -> PlannedLaunch | None:
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
    across = longest_paths(topology, taking, 1, random)
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
    pairs, why = across[0], ACROSS
    if count and inside and count == len(crossing):
        pairs, why = inside, WITHIN
    elif count >= ACROSS_BOTH_WAYS:
        return None
    return PlannedLaunch(0, pairs, why=f"{why}, both ways at once", both_ways=True)


REPEATS = 3
"""Launches of each pair alone."""

MOST_CONFIRMED = 4
"""Most accusations that are measured alone, the first ones."""


def confirming_rounds(
    judgement: Judgement, observations: Sequence[PairObservation]
) -> tuple[PlannedLaunch, ...]:
    """Return rounds of each accused thing alone, and of as many pairs of cleared nodes, in turn.

    Of a node, switch or uplink: a pair with a cleared node, preferably one that was measured. () if
    nothing is accused or nothing is cleared.
    """
    good = judgement.good
    cleared = set(good)
    pairs: list[Pair] = []
    for accusation in judgement.accusations[:MOST_CONFIRMED]:
        if accusation.kind is Kind.PAIR:
            pairs.append((accusation.nodes[0], accusation.nodes[1]))
            continue
        slow = set(accusation.nodes)
        met = [
            seen.nodes
            for seen in observations
            if len(slow.intersection(seen.nodes)) == 1 and not cleared.isdisjoint(seen.nodes)
        ]
        if met:
            pairs.append(met[-1])
        elif good:
            pairs.append((accusation.nodes[0], good[0]))
    controls = list(zip(good[::2], good[1::2], strict=False))[: max(len(pairs), 2)]
    if not pairs or not controls:
        return ()
    return tuple(
        PlannedLaunch(0, (pair,), alone=True, why=f"{pair[0]} – {pair[1]} alone")
        for _ in range(REPEATS)
        for pair in (*pairs, *controls)
    )


def stream_rounds(nodes: Sequence[str], judgement: Judgement) -> tuple[PlannedLaunch, ...]:
    """Return streams of each accused node to a cleared one and back, and one between cleared ones.

    Each pair is of who sends and who receives. () if no node is accused of its rate, or fewer than
    two are cleared. Of too few nodes to compare, each sends to each of the others.
    """
    if len(nodes) < LEAST_NODES:
        pairs = list(permutations(nodes, 2))
    else:
        good = judgement.good
        accused = [
            accusation.nodes[0]
            for accusation in judgement.accusations[:MOST_CONFIRMED]
            if accusation.kind is Kind.NODE
            and any(effect.quantity is PairQuantity.RATE for effect in accusation.effects)
        ]
        if not accused or len(good) < 2:
            return ()
        pairs = [(good[0], good[1])]
        for node in accused:
            pairs += [(node, good[0]), (good[0], node)]
    return tuple(
        PlannedLaunch(0, (pair,), alone=True, stream=True, why=f"{pair[0]} sends to {pair[1]}")
        for _ in range(REPEATS)
        for pair in pairs
    )
