"""Links that carry messages: transport, rate and headers, and the time on the wire.

Share of a link's rate that remains for messages, and the part of a time that it explains: with it,
configurations over different links are compared by their network and library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from statistics import median
from typing import Any

from netproof.errors import NetproofError
from netproof.measurement.case import mb_s

ETHERNET_OVERHEAD_BYTES = 38
"""Preamble 8, header 14, frame check sequence 4, inter-frame gap 12."""
IP_TCP_HEADER_BYTES = 40
TCP_TIMESTAMPS_BYTES = 12


class Transport(StrEnum):
    """The transport of MPI's messages on the link."""

    TCP = "tcp"
    ROCE = "roce"
    INFINIBAND = "infiniband"
    SLINGSHOT = "slingshot"
    EFA = "efa"
    OMNIPATH = "omnipath"
    NVLINK = "nvlink"
    SHARED_MEMORY = "shared-memory"

    @property
    def usual_mtu(self) -> int:
        """Return the default MTU in bytes: of Ethernet for TCP and RoCE, else of a packet."""
        return _PACKETS[self][1] if self in _PACKETS else 1500


RDMA = (Transport.ROCE, Transport.INFINIBAND)
"""Transports that a site may name for an MPI that does not go over TCP."""

INSIDE = (Transport.NVLINK, Transport.SHARED_MEMORY)
"""Transports inside a node, or between nodes that share memory."""

PATH_MTUS = (4096, 2048, 1024, 512, 256)
"""Bytes of payload that an InfiniBand packet can have, largest first; RoCE has the same."""
OMNIPATH_MTUS = (10240, 8192, 4096, 2048)
"""Bytes of payload that an Omni-Path packet can have, largest first."""

_ROCE_HEADER_BYTES = 44
"""IP 20, UDP 8, base transport header 12, invariant CRC 4."""
_ROCE_LEFT_FREE_BYTES = 96
"""Bytes of an Ethernet MTU that Linux reserves for headers when it chooses a path MTU."""
_PACKETS: Mapping[Transport, tuple[int, int, str, tuple[int, ...]]] = {
    # Local route header 8, base transport header 12, invariant CRC 4, variant CRC 2.
    Transport.INFINIBAND: (26, PATH_MTUS[0], "InfiniBand", PATH_MTUS),
    # Preamble 8, IP 20, frame check sequence 4: between its own ends Slingshot leaves out the
    # header of Ethernet and the gap between frames (De Sensi et al., SC20). Its transport header
    # is not public.
    Transport.SLINGSHOT: (32, 2048, "", ()),
    # Ethernet 38, IP 20, UDP 8. The headers of its protocol SRD are not public. fi_efa(7): "the MTU
    # of the underlying hardware (approximately 8 KiB)".
    Transport.EFA: (ETHERNET_OVERHEAD_BYTES + 28, 8192, "", ()),
    # Local route header 8, base transport header 12, KDETH of PSM2 36, invariant CRC 4 (libfabric's
    # provider opx). Of 66 bits on the wire 64 are data, which the rate of 100 Gbit/s leaves out
    # (Birrittella et al., HOTI 2015). MPI by PSM2 takes packets of 8192, storage of 10240.
    Transport.OMNIPATH: (60, 8192, "Omni-Path", OMNIPATH_MTUS),
    # A flit of 16 bytes before up to 16 of data, 94.1 % (Foley and Danskin, IEEE Micro 37, 2017).
    Transport.NVLINK: (16, PATH_MTUS[-1], "NVLink", PATH_MTUS[-1:]),
    Transport.SHARED_MEMORY: (0, 4096, "", ()),
}
"""Bytes around a packet's payload, its usual MTU, and the MTUs of a transport that has only some.

Where a part is not public, it is the least that is known: the
line rate then is above what can be reached, and no sound rate is above it."""


@cache
def packet(mtu_bytes: int, transport: Transport) -> tuple[int, int]:
    """Return the bytes of payload, and of all else that the link carries, of a full packet.

    TCP: timestamps on. RoCE v2 over IPv4: the path MTU that Linux takes for an Ethernet MTU, and 44
    + 38 bytes around it. Others: ``mtu_bytes`` is the payload. The first packet of an RDMA message
    has 16 bytes more, negligible in large messages. Raise NetproofError for an MTU that carries
    nothing or that the transport does not have.
    """
    if transport in _PACKETS:
        overhead, _, name, mtus = _PACKETS[transport]
        if mtus and mtu_bytes not in mtus:
            several = "MTUs" if mtus[1:] else "packets"
            listed = ", ".join(map(str, mtus))
            raise NetproofError(f"{name} has {several} of {listed}, not of {mtu_bytes}")
        return mtu_bytes, overhead
    if transport is Transport.ROCE:
        room = mtu_bytes - _ROCE_LEFT_FREE_BYTES
        fitting = [size for size in PATH_MTUS if size <= room]
        if not fitting:
            least = PATH_MTUS[-1] + _ROCE_LEFT_FREE_BYTES
            raise NetproofError(f"RoCE takes an MTU of {least} or more, not {mtu_bytes}")
        return fitting[0], _ROCE_HEADER_BYTES + ETHERNET_OVERHEAD_BYTES
    headers = IP_TCP_HEADER_BYTES + TCP_TIMESTAMPS_BYTES
    if mtu_bytes <= headers:
        raise NetproofError(f"an MTU of {mtu_bytes} has no room for a message")
    return mtu_bytes - headers, headers + ETHERNET_OVERHEAD_BYTES


@dataclass(frozen=True)
class Link:
    """A node's link: its rate in Mbit/s (10⁶), its MTU in bytes, and its transport.

    ``least``, ``most``: message sizes of a case that cross it one after the other in the
    benchmark's time, by any algorithm; equal where the function determines it.
    """

    mbit_s: float
    mtu: int
    transport: Transport = Transport.TCP
    least: float = 1.0
    most: float = 1.0

    def line_rate_mb_s(self) -> float:
        """Return the most payload in MB/s that it carries: its rate · P / (P + overhead).

        InfiniBand's rate is that after coding, as in products' names: 100 Gbit/s for EDR. Raise
        NetproofError as ``packet``.
        """
        payload, overhead = packet(self.mtu, self.transport)
        return mb_s(self.mbit_s) * payload / (payload + overhead)

    def wire_us(self, size: int) -> float:
        """Return the µs that a message of ``size`` bytes takes from a node over a switch to a node.

        Payload and headers of all packets, and the first packet once more: a switch that stores and
        forwards sends it on when it is complete.
        """
        payload, overhead = packet(self.mtu, self.transport)
        packets = -(-size // payload)
        again = min(size, payload) + overhead
        return (size + packets * overhead + again) / mb_s(self.mbit_s)

    def __str__(self) -> str:
        """Return its text in a sentence."""
        over = "" if self.transport is Transport.TCP else f" of {self.transport}"
        return f"{self.mbit_s:g} Mbit/s with MTU {self.mtu}{over}"


def link_of(extras: Mapping[str, Any], *, over_tcp: bool, rails: int = 1) -> Link:
    """Return so many links of a partition's node as one; ``extras``: the partition's keys.

    With TCP's headers, the largest, where the site does not name the transport, ``rdma``.
    """
    rate, mtu, named = rails * extras["link_mbit_s"], extras["mtu"], extras.get("rdma", "")
    if over_tcp or not named:
        return Link(rate, mtu)
    transport = Transport(named)
    if transport is Transport.INFINIBAND:
        mtu = transport.usual_mtu
    return Link(rate, extras.get("rdma_mtu", 0) or mtu, transport)


def messages(time_us: Mapping[int, float], link: Link) -> dict[int, float]:
    """Return how many message sizes cross the link one after the other, by size, from a curve.

    ``time_us``: by size in bytes, increasing, above 0. At a size it is the slope of time over time
    on the wire, the median from every smaller size on: latency cancels, and one disturbed size does
    not count. Where the wire's part is lost in noise, or the size is the least, larger sizes are
    better: it is never below the median of theirs. The function's limits apply.
    """
    if link.least == link.most or len(time_us) == 1:
        return dict.fromkeys(time_us, link.most)
    points = [*zip(time_us.values(), _on_wire(link, (*time_us,)), strict=True)]
    slopes = [
        median((time - before) / (wire - shorter) for before, shorter in points[:place])
        for place, (time, wire) in enumerate(points)
        if place > 0
    ]
    found = {}
    for place, size in enumerate(time_us):
        larger = [median(slopes[place:])] if place < len(slopes) else []
        by_slope = [*larger, *slopes[max(place - 1, 0) : place]]
        found[size] = min(max(link.least, *by_slope), link.most)
    return found


def explained_us(
    crossed: Mapping[int, float], own: Link | None, slower: Link | None
) -> dict[int, float]:
    """Return the µs by size that another configuration's link adds to a time; never below 0.

    ``crossed``: ``messages`` of the configuration with this time, over ``own``. Those on the other
    one's link change in proportion to ``most``. Nothing is added where one crosses no link.
    """
    if own is None or slower is None or own == slower:
        return dict.fromkeys(crossed, 0.0)
    wires = (_on_wire(link, (*crossed,)) for link in (slower, own))
    added = {}
    for (size, count), slow_us, own_us in zip(crossed.items(), *wires, strict=True):
        there = max(slower.least, count * slower.most / own.most)
        added[size] = max(0.0, there * slow_us - count * own_us)
    return added


@lru_cache(maxsize=256)
def _on_wire(link: Link, sizes: tuple[int, ...]) -> list[float]:
    """Return ``wire_us`` at sizes that most cases over a link have in common."""
    return [*map(link.wire_us, sizes)]
