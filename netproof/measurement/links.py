"""The part of a time that a link's rate explains: time on the wire, and messages that cross it.

With it, configurations over different links are compared by their network and library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from netproof.measurement import transports
from netproof.measurement.transports import Transport
from netproof.measurement.units import mb_s


@dataclass(frozen=True)
class Link:
    """A node's link: its rate in Mbit/s (10⁶), its MTU in bytes, and its transport."""

    mbit_s: float
    mtu: int
    transport: Transport = Transport.TCP

    def line_rate_mb_s(self) -> float:
        """Return the most payload in MB/s that it carries."""
        return transports.line_rate_mb_s(self.mbit_s, self.mtu, self.transport)

    def wire_us(self, size: int) -> float:
        """Return the µs that a message of ``size`` bytes takes from a node over a switch to a node.

        Payload and headers of all packets, and the first packet once more: a switch that stores and
        forwards sends it on when it is complete. With these headers no frame is shorter than
        Ethernet's least.
        """
        payload, overhead = transports.packet(self.mtu, self.transport)
        packets = -(-size // payload)
        again = min(size, payload) + overhead
        return (size + packets * overhead + again) / mb_s(self.mbit_s)

    def __str__(self) -> str:
        """Return its text in a sentence."""
        over = "" if self.transport is Transport.TCP else f" of {self.transport}"
        return f"{self.mbit_s:g} Mbit/s with MTU {self.mtu}{over}"


def link_of(extras: Mapping[str, Any], *, over_tcp: bool, rails: int = 1) -> Link | None:
    """Return so many links of a partition's node as one; ``extras``: the partition's keys.

    None where it is not TCP, and the site does not name the transport, ``rdma``.
    """
    rate, mtu, named = rails * extras["link_mbit_s"], extras["mtu"], extras.get("rdma", "")
    if over_tcp:
        return Link(rate, mtu)
    if not named:
        return None
    transport = Transport(named)
    if transport is Transport.INFINIBAND:
        mtu = transport.usual_mtu
    return Link(rate, extras.get("rdma_mtu", 0) or mtu, transport)


def link_or_tcp(extras: Mapping[str, Any], *, over_tcp: bool, rails: int = 1) -> Link:
    """Return ``link_of``, with TCP's headers, the largest, where the transport is not known."""
    found = link_of(extras, over_tcp=over_tcp, rails=rails)
    return found or link_of(extras, over_tcp=True, rails=rails)


@dataclass(frozen=True)
class Crossing:
    """The link that the messages of a case cross.

    ``least`` and ``most``: message sizes that cross it one after the other in the benchmark's time,
    equal where the function determines it. Else ``least`` is required, and ``most`` is the largest
    number of any algorithm.
    """

    link: Link
    least: float
    most: float


def messages(time_us: Mapping[int, float], crossing: Crossing) -> dict[int, float]:
    """Return how many message sizes cross the link one after the other, by size, from a curve.

    ``time_us``: by size in bytes, increasing, above 0. At a size it is the slope of time over time
    on the wire, the median from every smaller size on: latency cancels, and one disturbed size does
    not count. Where the wire's part is lost in noise, or the size is the least, larger sizes are
    better: it is never below the median of theirs. The function's limits apply.
    """
    if crossing.least == crossing.most:
        return dict.fromkeys(time_us, crossing.most)
    points = [(size, time, crossing.link.wire_us(size)) for size, time in time_us.items()]
    if len(points) == 1:
        return dict.fromkeys(time_us, crossing.most)
    slopes = [
        median((time - before) / (wire - shorter) for _, before, shorter in points[:place])
        for place, (_, time, wire) in enumerate(points)
        if place > 0
    ]
    found = {}
    for place, (size, _, _) in enumerate(points):
        by_slope = [median(slopes[place:])] if place < len(slopes) else []
        by_slope += [slopes[place - 1]] if place > 0 else []
        found[size] = min(max(crossing.least, *by_slope), crossing.most)
    return found


def explained_us(
    crossed: Mapping[int, float], own: Crossing | None, slower: Crossing | None
) -> dict[int, float]:
    """Return the µs by size that another configuration's link adds to a time; never below 0.

    ``crossed``: ``messages`` of the configuration with this time, over ``own``. Where the other one
    has more or fewer ranks on a node, the messages on its link change in proportion to ``most``.
    Nothing is added where one of them crosses no link.
    """
    if own is None or slower is None:
        return dict.fromkeys(crossed, 0.0)
    added = {}
    for size, count in crossed.items():
        there = max(slower.least, count * slower.most / own.most)
        more = there * slower.link.wire_us(size) - count * own.link.wire_us(size)
        added[size] = max(0.0, more)
    return added
