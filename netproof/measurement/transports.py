"""Share of a link's rate that remains for messages: TCP, RDMA over Ethernet, InfiniBand."""

from __future__ import annotations

from enum import StrEnum

from netproof.errors import NetproofError
from netproof.measurement import units


class Transport(StrEnum):
    """The transport of MPI's messages on the link."""

    TCP = "tcp"
    ROCE = "roce"
    INFINIBAND = "infiniband"

    @property
    def usual_mtu(self) -> int:
        """Return the default MTU in bytes: of Ethernet, or InfiniBand's path MTU."""
        return 4096 if self is Transport.INFINIBAND else 1500


PATH_MTUS = (4096, 2048, 1024, 512, 256)
"""Bytes of payload that an InfiniBand packet can have, largest first; RoCE has the same."""
_ROCE_HEADER_BYTES = 44
"""IP 20, UDP 8, base transport header 12, invariant CRC 4."""
_ROCE_LEFT_FREE_BYTES = 96
"""Bytes of an Ethernet MTU that Linux reserves for headers when it chooses a path MTU."""
_INFINIBAND_OVERHEAD_BYTES = 26
"""Local route header 8, base transport header 12, invariant CRC 4, variant CRC 2."""


def packet(mtu_bytes: int, transport: Transport) -> tuple[int, int]:
    """Return the bytes of payload, and of all else that the link carries, of a full packet.

    TCP: timestamps on, as ``units.line_rate_mb_s``. RoCE v2 over IPv4: the path MTU that Linux
    takes for an Ethernet MTU, 1024 at 1500, 4096 from 4192 on, and 44 + 38 bytes around it.
    InfiniBand: ``mtu_bytes`` as path MTU, and 26 bytes. The first packet of an RDMA message has 16
    bytes more, negligible in large messages. Raise NetproofError for an MTU that carries nothing or
    that InfiniBand does not have.
    """
    if transport is Transport.INFINIBAND:
        if mtu_bytes not in PATH_MTUS:
            raise NetproofError(
                f"InfiniBand has MTUs of {', '.join(map(str, PATH_MTUS))}, not of {mtu_bytes}"
            )
        return mtu_bytes, _INFINIBAND_OVERHEAD_BYTES
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
