"""The ports and ways at which packets are lost, by the segments that TCP on each node sent again.

TCP counts at the sender whatever was lost on the way to the receiver, so both ends of a lossy
port's messages lose. The loss of a node's segments is modelled as that of its own port, and on
average of the ports that it sent to. These are fitted together, as Poisson counts, by multiplying
until nothing changes (Shepp and Vardi, IEEE Transactions on Medical Imaging 1, 1982): no share gets
below 0, and ports that no launch distinguishes have equal shares. What is lost from one node to one
other alone is no port's: it is taken out before, if all else that either port carried shows none.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_STEPS = 500
"""Most steps of the fit."""

STEADY = 1e-4
"""Relative change of a share below which the fit has ended."""

LEAST_SHARE = 1e-9
"""Shares below this are 0: no session sends so many segments."""

EXPECTED = 3
"""Least expected retransmissions with which a launch shows whether there are any."""

OF_EXPECTED = 0.25
"""Least share of the expected ones with which a launch shows the loss."""

LEAST_LAUNCHES = 3
"""Fewer launches do not distinguish a persistent loss from a burst."""

LEAST_NODES = 3
"""Losses between two nodes do not show whose port loses."""


@dataclass(frozen=True)
class Resent:
    """Segments that a node sent to the others of ``nodes``: ``count`` of ``of`` were sent again.

    ``nodes``: that sent to each other in the launch, all of them if more than two.
    """

    launch: int
    node: str
    nodes: tuple[str, ...]
    count: int
    of: int

    @property
    def group(self) -> Hashable:
        """Its launch, and which of the launch's pairs it was in, None if more sent at once."""
        return self.launch, frozenset(self.nodes) if len(self.nodes) == 2 else None

    def partner(self, name: str) -> str | None:
        """Return the other one of two nodes, None of more."""
        return self.nodes[self.nodes[0] == name] if len(self.nodes) == 2 else None


@dataclass(frozen=True)
class PortLoss:
    """Loss of a node's port, or on its way ``to`` one other node alone; a share of 1.

    ``usual``: median of the other nodes' ports; ``seen`` of ``launches`` that can show it do, with
    ``count`` segments sent again by either end; ``or_of``: nodes whose ports explain all of these
    launches as well, empty if one of them is with a node that loses less.
    """

    node: str
    share: float
    usual: float
    seen: int
    launches: int
    count: int
    or_of: tuple[str, ...] = ()
    to: str = ""

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that it concerns: of a way both, of a port those that may have it."""
        return tuple(sorted({self.node, *self.or_of, self.to} - {""}))

    @property
    def persists(self) -> bool:
        """True if most launches show it, and not one burst."""
        return self.launches >= LEAST_LAUNCHES and 2 * self.seen > self.launches


def port_losses(several: Iterable[Resent], beyond: float = -1.0) -> tuple[PortLoss, ...]:
    """Return the losses of ways and of ports; () if fewer than three nodes were counted.

    ``beyond``: ports are left out if none of them can lose a larger share than this; a launch of a
    way shows its loss from this share on.
    Launches between two nodes are best: if more nodes send at once, a switch may drop what they
    send to one of them, without a fault of any port. The others count only if those between two
    nodes have fewer than three nodes.
    """
    counted = [one for one in several if one.of > 0 and len(one.nodes) > 1]
    alone = [one for one in counted if len(one.nodes) == 2]
    together = [one for one in counted if len(one.nodes) > 2]
    sent = alone if len({one.node for one in alone}) >= LEAST_NODES else together
    # All of a group are among the same nodes, 9,000 at times.
    spans = {one.group: one.nodes for one in sent}
    names = sorted({name for nodes in spans.values() for name in nodes})
    if len(names) < LEAST_NODES:
        return ()
    ways = _ways(alone, beyond) if sent is alone else []
    taken = {(way.node, way.to) for way in ways}
    groups: dict[Hashable, list[Resent]] = defaultdict(list)
    for one in sent:
        if (one.node, one.partner(one.node)) not in taken:
            groups[one.group].append(one)
    return (*ways, *_ports([*groups.values()], names, beyond))


def _ways(sent: Sequence[Resent], beyond: float) -> list[PortLoss]:
    """Return the losses from one node to one other that neither's port explains.

    Whatever else the sender sent, and whatever else the receiver got, has to be enough to show the
    loss, and to show none. Few launches go one way, so that two bursts look like its mean loss: a
    launch shows it only if its own share is above ``beyond``.
    """
    of_way: dict[tuple[str, str], list[Resent]] = defaultdict(list)
    counts: Counter[tuple[str | None, str | None]] = Counter()
    segments: Counter[tuple[str | None, str | None]] = Counter()
    for one in sent:
        (to,) = {*one.nodes} - {one.node}
        of_way[one.node, to].append(one)
        for carried in ((one.node, to), (one.node, None), (None, to)):
            counts[carried] += one.count
            segments[carried] += one.of
    found = []
    for way, several in of_way.items():
        (node, to), share = way, counts[way] / segments[way]
        resent = [counts[end] - counts[way] for end in ((node, None), (None, to))]
        rest = [segments[end] - segments[way] for end in ((node, None), (None, to))]
        if counts[way] >= EXPECTED and all(
            share * of >= EXPECTED and count < OF_EXPECTED * share * of
            for count, of in zip(resent, rest, strict=True)
        ):
            due = [one for one in several if share * one.of >= EXPECTED]
            seen = sum(one.count >= max(OF_EXPECTED * share, beyond) * one.of for one in due)
            usual = sum(resent) / sum(rest)
            found.append(PortLoss(node, share, usual, seen, len(due), counts[way], to=to))
    return found


def _ports(
    groups: Sequence[Sequence[Resent]], names: Sequence[str], beyond: float
) -> Iterator[PortLoss]:
    """Yield each port's loss, with how many launches show it, of those that have to."""
    # Segments that each launch led through a port, how many were sent again, and with whom.
    through: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    again: dict[str, Counter[int]] = defaultdict(Counter)
    partners: dict[tuple[str, int], str] = {}
    for group in groups:
        launch, nodes = group[0].launch, group[0].nodes
        own: Counter[str] = Counter()
        for one in group:
            own[one.node] += one.of
        every, count = own.total(), sum(one.count for one in group)
        for name in nodes:
            through[name][launch] += own[name] + (every - own[name]) / (len(nodes) - 1)
            again[name][launch] += count
            if partner := group[0].partner(name):
                partners[name, launch] = partner
    # The fit shares out what was sent again, so that no port loses more than all that it carried.
    if all(again[name].total() <= beyond * sum(of.values()) for name, of in through.items()):
        return
    shares = _fit(groups, names)
    # Of each, the median of the others.
    ordered, middle = np.sort(shares), np.array([len(names) - 2, len(names) - 1]) // 2
    rank = np.searchsorted(ordered, shares)[:, None]
    usual = ordered[middle + (middle >= rank)].mean(axis=1)
    loss_of = dict(zip(names, shares.tolist(), strict=True))
    for place, (name, share) in enumerate(loss_of.items()):
        due = {launch: share * of for launch, of in through[name].items()}
        tried = [launch for launch, expected in due.items() if expected >= EXPECTED]
        seen = [one for one in tried if again[name][one] >= OF_EXPECTED * due[one]]
        with_whom = {partners.get((name, launch), "") for launch in seen}
        alone = any(loss_of.get(one, 0.0) < OF_EXPECTED * share for one in with_whom)
        or_of = () if alone else tuple(sorted(with_whom))
        counts = len(seen), len(tried), again[name].total()
        yield PortLoss(name, share, float(usual[place]), *counts, or_of)


def _fit(groups: Sequence[Sequence[Resent]], names: Sequence[str]) -> NDArray[np.float64]:
    """Return the share that each port loses; 0 if nothing was lost."""
    place = {name: number for number, name in enumerate(names)}
    sent = [one for group in groups for one in group]
    node = np.array([place[one.node] for one in sent], int)
    group = np.repeat(np.arange(len(groups)), [len(several) for several in groups])
    sizes = np.array([len(several[0].nodes) for several in groups], int)
    member = np.array([place[name] for several in groups for name in several[0].nodes], int)
    group_of_member, others = np.repeat(np.arange(len(groups)), sizes), sizes[group] - 1
    counts = np.array([one.count for one in sent], float)
    of = np.array([one.of for one in sent], float)

    def through(values: NDArray[Any]) -> NDArray[Any]:
        """Return by port what its node sent, and its part of what the others sent."""
        parts = values / others
        of_groups = np.bincount(group, parts, len(groups))[group_of_member]
        own = np.bincount(node, values - parts, len(names))
        return own + np.bincount(member, of_groups, len(names))

    whole = through(of)
    shares = np.full(len(names), counts.sum() / whole.sum())
    for _ in range(MOST_STEPS):
        together = np.bincount(group_of_member, shares[member], len(groups))[group]
        expected = (shares[node] + (together - shares[node]) / others) * of
        ratio = np.divide(counts, expected, out=np.zeros_like(counts), where=expected > 0)
        after = shares * through(ratio * of) / whole
        after[after < LEAST_SHARE] = 0
        steady = np.all(np.abs(after - shares) <= STEADY * shares)
        shares = after
        if steady:
            break
    return shares
