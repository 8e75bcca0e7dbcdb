"""What a link's rate explains of a time: how long messages are on the wire, and how many cross it.

So that configurations over unlike links are compared by what the network and the library do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from netproof.measurement.units import (
    ETHERNET_OVERHEAD_BYTES,
    IP_TCP_HEADER_BYTES,
    TCP_TIMESTAMPS_BYTES,
    mb_s,
)


@dataclass(frozen=True)
class Link:
    """A node's link: its rate in Mbit/s (10⁶) and its MTU in bytes."""

    mbit_s: float
    mtu: int

    def wire_us(self, size: int) -> float:
        """µs that a message of ``size`` bytes is on the way from a node over a switch to a node.

        Payload and headers of all frames, and the first frame once more: a switch that stores and
        forwards sends it on when it has it all. With these headers no frame is shorter than
        Ethernet's least.
        """
        headers = IP_TCP_HEADER_BYTES + TCP_TIMESTAMPS_BYTES
        payload = self.mtu - headers
        a_frame = headers + ETHERNET_OVERHEAD_BYTES
        frames = -(-size // payload)
        on_the_wire = size + frames * a_frame + min(size, payload) + a_frame
        return on_the_wire / mb_s(self.mbit_s)

    def __str__(self) -> str:
        """As it stands in a sentence."""
        return f"{self.mbit_s:g} Mbit/s with MTU {self.mtu}"


@dataclass(frozen=True)
class Crossing:
    """The link that the messages of a case cross.

    ``least`` and ``most``: how many message sizes cross it one after the other in the time that
    the benchmark gives, equal where the function settles it, else between what has to and what
    the algorithm that needs it most puts there.
    """

    link: Link
    least: float
    most: float


def messages(time_us: Mapping[int, float], crossing: Crossing) -> dict[int, float]:
    """How many message sizes cross the link one after the other, by size, as a curve tells.

    ``time_us``: by size in bytes, increasing, above 0. At a size it is the slope of time over time
    on the wire, the median of those from every smaller size on, so that latency cancels and one
    disturbed size does not count. Where the wire's part is lost in noise, or the size is the
    least, larger sizes know better: it is never below the median of theirs. Within what the
    function allows.
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
        told = [median(slopes[place:])] if place < len(slopes) else []
        told += [slopes[place - 1]] if place > 0 else []
        found[size] = min(max(crossing.least, *told), crossing.most)
    return found


def explained_us(
    crossed: Mapping[int, float], own: Crossing | None, slower: Crossing | None
) -> dict[int, float]:
    """µs by size that the link of another configuration adds to a time; never below 0.

    ``crossed``: ``messages`` of the configuration whose time it is, over ``own``. Where the other
    one has more or fewer ranks on a node, so many more or fewer messages cross its link as its
    ``most`` says. Nothing is added where one of them crosses no link.
    """
    if own is None or slower is None:
        return dict.fromkeys(crossed, 0.0)
    added = {}
    for size, count in crossed.items():
        there = max(slower.least, count * slower.most / own.most)
        more = there * slower.link.wire_us(size) - count * own.link.wire_us(size)
        added[size] = max(0.0, more)
    return added
