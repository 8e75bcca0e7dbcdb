"""Share of a link's rate that remains for messages, by what carries them."""

from __future__ import annotations

from enum import StrEnum

from netproof.errors import NetproofError
from netproof.measurement import units


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
        return _USUAL_MTU.get(self, 1500)


RDMA = (Transport.ROCE, Transport.INFINIBAND)
"""Transports that a site may name for an MPI that does not go over TCP."""

INSIDE = (Transport.NVLINK, Transport.SHARED_MEMORY)
"""Transports inside a node, or between nodes that share memory."""

PATH_MTUS = (4096, 2048, 1024, 512, 256)
"""Bytes of payload that an InfiniBand packet can have, largest first; RoCE has the same."""
OMNIPATH_MTUS = (10240, 8192, 4096, 2048)
"""Bytes of payload that an Omni-Path packet can have, largest first."""

_USUAL_MTU = {
    Transport.INFINIBAND: PATH_MTUS[0],
    # fi_efa(7): "the MTU of the underlying hardware (approximately 8 KiB)".
    Transport.EFA: 8192,
    # What MPI by PSM2 takes; storage takes 10240.
    Transport.OMNIPATH: 8192,
    Transport.SLINGSHOT: 2048,
    Transport.NVLINK: 256,
    Transport.SHARED_MEMORY: 4096,
}

_ROCE_HEADER_BYTES = 44
"""IP 20, UDP 8, base transport header 12, invariant CRC 4."""
_ROCE_LEFT_FREE_BYTES = 96
"""Bytes of an Ethernet MTU that Linux reserves for headers when it chooses a path MTU."""
_OVERHEAD_BYTES = {
    # Local route header 8, base transport header 12, invariant CRC 4, variant CRC 2.
    Transport.INFINIBAND: 26,
    # Preamble 8, IP 20, frame check sequence 4: between its own ends Slingshot leaves out the
    # header of Ethernet and the gap between frames (De Sensi et al., SC20). Its transport header
    # is not public.
    Transport.SLINGSHOT: 32,
    # Ethernet 38, IP 20, UDP 8. The headers of its protocol SRD are not public.
    Transport.EFA: units.ETHERNET_OVERHEAD_BYTES + 28,
    # Local route header 8, base transport header 12, KDETH of PSM2 36, invariant CRC 4 (libfabric's
    # provider opx). Of 66 bits on the wire 64 are data, which the rate of 100 Gbit/s leaves out
    # (Birrittella et al., HOTI 2015).
    Transport.OMNIPATH: 60,
    # A flit of 16 bytes before up to 16 of data, 94.1 % (Foley and Danskin, IEEE Micro 37, 2017).
    Transport.NVLINK: 16,
    Transport.SHARED_MEMORY: 0,
}
"""Bytes around a packet's payload. Where a part is not public, it is the least that is known: the
line rate then is above what can be reached, and no sound rate is above it."""


def packet(mtu_bytes: int, transport: Transport) -> tuple[int, int]:
    """Return the bytes of payload, and of all else that the link carries, of a full packet.

    TCP: timestamps on, as ``units.line_rate_mb_s``. RoCE v2 over IPv4: the path MTU that Linux
    takes for an Ethernet MTU, 1024 at 1500, 4096 from 4192 on, and 44 + 38 bytes around it.
    Others: ``mtu_bytes`` is the payload. The first packet of an RDMA message has 16 bytes more,
    negligible in large messages. Raise NetproofError for an MTU that carries nothing or that the
    transport does not have.
    """
    known = {
        Transport.INFINIBAND: ("InfiniBand", PATH_MTUS),
        Transport.OMNIPATH: ("Omni-Path", OMNIPATH_MTUS),
        Transport.NVLINK: ("NVLink", PATH_MTUS[-1:]),
    }
    if transport in known:
        name, mtus = known[transport]
        if mtu_bytes not in mtus:
            several = (
                f"MTUs of {', '.join(map(str, mtus))}" if mtus[1:] else f"packets of {mtus[0]}"
            )
            raise NetproofError(f"{name} has {several}, not of {mtu_bytes}")
    if transport in _OVERHEAD_BYTES:
        return mtu_bytes, _OVERHEAD_BYTES[transport]
    if transport is Transport.ROCE:
        room = mtu_bytes - _ROCE_LEFT_FREE_BYTES
        fitting = [size for size in PATH_MTUS if size <= room]
        if not fitting:
            least = PATH_MTUS[-1] + _ROCE_LEFT_FREE_BYTES
            raise NetproofError(f"RoCE takes an MTU of {least} or more, not {mtu_bytes}")
        return fitting[0], _ROCE_HEADER_BYTES + units.ETHERNET_OVERHEAD_BYTES
    headers = units.IP_TCP_HEADER_BYTES + units.TCP_TIMESTAMPS_BYTES
    if mtu_bytes <= headers:
        raise NetproofError(f"an MTU of {mtu_bytes} has no room for a message")
    return mtu_bytes - headers, headers + units.ETHERNET_OVERHEAD_BYTES


def line_rate_mb_s(link_mbit_s: float, mtu_bytes: int, transport: Transport) -> float:
    """Return the most payload in MB/s on a link in Mbit/s: its rate · P / (P + overhead).

    InfiniBand's rate is that after coding, as in products' names: 100 Gbit/s for EDR. Raise
    NetproofError as ``packet``.
    """
    payload, overhead = packet(mtu_bytes, transport)
    return units.mb_s(link_mbit_s) * payload / (payload + overhead)
