"""What of a link's rate is left for messages: by TCP, by RDMA over Ethernet, by InfiniBand."""

from __future__ import annotations

from enum import StrEnum

from netproof.errors import NetproofError
from netproof.measurement import units


class Transport(StrEnum):
    """What carries MPI's messages over the link."""

    TCP = "tcp"
    ROCE = "roce"
    INFINIBAND = "infiniband"

    @property
    def usual_mtu(self) -> int:
        """MTU in bytes where nobody says another: of Ethernet, or InfiniBand's path MTU."""
        return 4096 if self is Transport.INFINIBAND else 1500


PATH_MTUS = (4096, 2048, 1024, 512, 256)
"""Bytes of payload that a packet of InfiniBand's can have, largest first; RoCE has the same."""
_ROCE_HEADER_BYTES = 44
"""IP 20, UDP 8, base transport header 12, invariant CRC 4."""
_ROCE_LEFT_FREE_BYTES = 96
"""What Linux keeps free of an Ethernet MTU for the longest headers, when it chooses a path MTU."""
_INFINIBAND_OVERHEAD_BYTES = 26
"""Local route header 8, base transport header 12, invariant CRC 4, variant CRC 2."""


def line_rate_mb_s(link_mbit_s: float, mtu_bytes: int, transport: Transport) -> float:
    """Most payload in MB/s that a link of so many Mbit/s carries.

    TCP: ``units.line_rate_mb_s``. RoCE v2 over IPv4: link · P / (P + 44 + 38) with the path MTU P
    that Linux takes for an Ethernet MTU: 1024 at 1500, 4096 from 4192 on. InfiniBand:
    link · P / (P + 26) with ``mtu_bytes`` as path MTU P, and as rate of the link what is left after
    its coding, which products are named by: 100 Gbit/s for EDR. The first packet of a message has
    16 bytes more, which large messages do not show. Raises NetproofError for an MTU that carries
    nothing or that InfiniBand does not have.
    """
    if transport is Transport.TCP:
        rate = units.line_rate_mb_s(link_mbit_s, mtu_bytes)
        if rate <= 0:
            raise NetproofError(f"an MTU of {mtu_bytes} has no room for a message")
        return rate
    if transport is Transport.INFINIBAND:
        if mtu_bytes not in PATH_MTUS:
            raise NetproofError(
                f"InfiniBand has MTUs of {', '.join(map(str, PATH_MTUS))}, not of {mtu_bytes}"
            )
        payload, overhead = mtu_bytes, _INFINIBAND_OVERHEAD_BYTES
    else:
        room = mtu_bytes - _ROCE_LEFT_FREE_BYTES
        fitting = [size for size in PATH_MTUS if size <= room]
        if not fitting:
            least = PATH_MTUS[-1] + _ROCE_LEFT_FREE_BYTES
            raise NetproofError(f"RoCE takes an MTU of {least} or more, not {mtu_bytes}")
        payload = fitting[0]
        overhead = _ROCE_HEADER_BYTES + units.ETHERNET_OVERHEAD_BYTES
    return units.mb_s(link_mbit_s) * payload / (payload + overhead)
