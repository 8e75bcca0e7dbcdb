"""Rounds: disjoint pairs of nodes that are measured at the same time, in one launch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from netproof.errors import NetproofError
from netproof.localization.observations import Pair
from netproof.localization.topology import Topology


@dataclass(frozen=True)
class PairRound:
    """Disjoint pairs for one launch.

    ``idle``: nodes that stay silent; ``alone``: whether that is all but one pair; ``why``: for the
    report. Raises NetproofError where a node is there twice.
    """

    pairs: tuple[Pair, ...]
    idle: tuple[str, ...] = ()
    alone: bool = False
    why: str = ""

    def __post_init__(self) -> None:
        nodes = [*(node for pair in self.pairs for node in pair), *self.idle]
        twice = [node for node, count in Counter(nodes).items() if count > 1]
        if twice:
            raise NetproofError(f"a round has {twice[0]} twice")


class Rounds(Sequence[PairRound]):
    """``count`` rounds, each made when it is asked for: of thousands, one at a time is needed."""

    def __init__(self, count: int, make: Callable[[int], PairRound]) -> None:
        self._numbers, self._make = range(count), make

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, number: int) -> PairRound:
        return self._make(self._numbers[number])


def tournament(nodes: Sequence[str]) -> Rounds:
    """Every pair once, by the circle method: N-1 rounds, or N where N is odd and one is idle."""
    circle: list[str | None] = [*nodes, None] if len(nodes) % 2 else list(nodes)
    half = len(circle) // 2

    def make(number: int) -> PairRound:
        turned = [circle[0], *_turned(circle[1:], number)]
        ends = list(zip(turned[:half], reversed(turned[half:]), strict=True))
        pairs = tuple((a, b) for a, b in ends if a is not None and b is not None)
        idle = tuple(a or b for a, b in ends if a is None or b is None)
        return PairRound(pairs, tuple(filter(None, idle)), why="every pair once")

    return Rounds(len(circle) - 1, make)


def _turned(line: list[str | None], places: int) -> list[str | None]:
    return [*line[-places:], *line[:-places]] if places else line


def random_round(
    nodes: Sequence[str],
    before: Collection[Pair],
    random: np.random.Generator,
    *,
    why: str = "random pairs",
) -> PairRound:
    """A random round, without a pair of ``before`` while there is one.

    ``before``: the pairs of all rounds so far, each as often as it was measured. Where N is odd,
    a node that was in most of them is idle.
    """
    met = Counter(frozenset(pair) for pair in before)
    idle: tuple[str, ...] = ()
    taking = list(nodes)
    if len(taking) % 2:
        often = Counter(node for pair in before for node in pair)
        most = max(often[node] for node in taking)
        last = [node for node in taking if often[node] == most]
        idle = (last[int(random.integers(len(last)))],)
        taking.remove(idle[0])
    return PairRound(_matched(taking, met, random), idle, why=why)


_SHUFFLES = 8
_EXACT = 64
"""Nodes up to which it is searched for a round without repetition before one is repeated."""
_STEPS = 3000


def _matched(
    nodes: list[str], met: Counter[frozenset[str]], random: np.random.Generator
) -> tuple[Pair, ...]:
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
    """Exchanges partners where a pair was measured before."""
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
) -> tuple[Pair, ...] | None:
    """A round of pairs that met ``allowed`` times at most, by search; None where none is found."""
    partners = {
        node: {
            other for other in nodes if other != node and met[frozenset((node, other))] <= allowed
        }
        for node in nodes
    }
    rank = {nodes[place]: int(r) for r, place in enumerate(random.permutation(len(nodes)))}
    steps = 0

    def below(left: set[str]) -> list[Pair] | None:
        nonlocal steps
        if not left:
            return []
        steps += 1
        if steps > _STEPS:
            return None
        node = min(left, key=lambda name: (len(partners[name] & left), rank[name]))
        for other in sorted(partners[node] & left, key=rank.__getitem__):
            rest = below(left - {node, other})
            if rest is not None:
                return [(node, other), *rest]
        return None

    found = below(set(nodes))
    return None if found is None else tuple(found)


def suspects_round(
    nodes: Sequence[str],
    suspects: Sequence[str],
    cleared: Collection[str],
    before: Collection[Pair],
    random: np.random.Generator,
    *,
    again: Sequence[Pair] = (),
) -> PairRound:
    """Suspects against cleared nodes that they have met least; the others at random.

    ``again``: pairs to be repeated first. Where no cleared node is left, a suspect meets one that
    is no suspect.
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
    good = dict.fromkeys(node for node in free if node in cleared)
    unsuspected = dict.fromkeys(node for node in free if node not in suspected)
    for suspect in suspects:
        if suspect not in free:
            continue
        del free[suspect]
        good.pop(suspect, None)
        others = good or unsuspected
        if not others:
            free[suspect] = None
            good |= {suspect: None} if suspect in cleared else {}
            continue
        times = met[suspect]
        among = [node for node in others if node not in times]
        if not among:
            fewest = min(times[node] for node in others)
            among = [node for node in others if times[node] == fewest]
        partner = among[int(random.integers(len(among)))]
        pairs.append((suspect, partner))
        for waiting in (free, good, unsuspected):
            waiting.pop(partner, None)
    rest = random_round(list(free), before, random)
    told = [*suspects, *(f"{one} – {other}" for one, other in again)]
    why = f"{_few(told)} against cleared nodes" if suspects else f"{_few(told)} again"
    return PairRound((*pairs, *rest.pairs), rest.idle, why=why)


_SHOWN = 4


def _few(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def shortest_paths(topology: Topology, nodes: Sequence[str]) -> Rounds:
    """Pairs within a leaf, in all leaves at the same time: every such pair once."""
    wanted = set(nodes)
    leaves = [
        tournament(inside)
        for members in topology.leaves.values()
        if len(inside := [node for node in members if node in wanted]) > 1
    ]

    def make(number: int) -> PairRound:
        pairs = tuple(pair for leaf in leaves if number < len(leaf) for pair in leaf[number].pairs)
        return _with_idle(pairs, nodes, "pairs within a leaf")

    return Rounds(max(map(len, leaves), default=0), make)


def longest_paths(
    topology: Topology, nodes: Sequence[str], count: int, random: np.random.Generator
) -> tuple[PairRound, ...]:
    """``count`` rounds of pairs across the top of the tree, nodes least used first.

    Where one side has more than half of the nodes, some of it are idle, in turn. () where no
    switch has two others below it.
    """
    used: Counter[str] = Counter()
    met: set[frozenset[str]] = set()
    rounds = []
    for _ in range(count):
        pairs = [
            pair
            for sides in _sides(topology, nodes).values()
            for pair in _across(sides, used, met, random)
        ]
        if not pairs:
            return tuple(rounds)
        met |= {frozenset(pair) for pair in pairs}
        used.update(node for pair in pairs for node in pair)
        rounds.append(_with_idle(tuple(pairs), nodes, "pairs across uplinks"))
    return tuple(rounds)


def evenly(topology: Topology, nodes: Sequence[str], random: np.random.Generator) -> list[str]:
    """Nodes so that every uplink has as many below it: as many of each leaf, and leaves of a side.

    Where uplinks carry less than all of their nodes send, as is often meant, the one with more
    nodes below it is slower, and nothing is wrong. What takes part is as much as can, rather of
    more leaves; leaves with fewer nodes, and sides with fewer leaves, do not.
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
    alongside = _most_even([len(several) for several in fitting.values() if several])
    taken: set[str] = set()
    for several in fitting.values():
        if len(several) >= alongside:
            for place in random.permutation(len(several))[:alongside]:
                leaf = several[place]
                taken |= {leaf[node] for node in random.permutation(len(leaf))[:each]}
    return [node for node in nodes if node in taken]


def _most_even(counts: Sequence[int]) -> int:
    """How many of each there may be so that most take part, the fewest of such; 0 of none."""
    return max(
        sorted(set(counts)),
        key=lambda each: each * sum(count >= each for count in counts),
        default=0,
    )


def _sides(topology: Topology, nodes: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Nodes by what is below the top of their tree, for each tree."""
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


def _with_idle(pairs: tuple[Pair, ...], nodes: Sequence[str], why: str) -> PairRound:
    busy = {node for pair in pairs for node in pair}
    return PairRound(pairs, tuple(node for node in nodes if node not in busy), why=why)


def alone_rounds(pairs: Sequence[Pair], nodes: Sequence[str]) -> tuple[PairRound, ...]:
    """One round for each pair, in which all other nodes are silent."""
    return tuple(
        PairRound(
            (pair,),
            tuple(node for node in nodes if node not in pair),
            alone=True,
            why=f"{pair[0]} – {pair[1]} alone",
        )
        for pair in pairs
    )
