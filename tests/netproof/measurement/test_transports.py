"""The line rate by transport, compared with rates that real links were seen to carry."""

from __future__ import annotations

import pytest

from netproof.errors import NetproofError
from netproof.measurement.links import ETHERNET_OVERHEAD_BYTES, Transport, line_rate_mb_s


@pytest.mark.parametrize(
    ("link", "mtu", "transport", "rate"),
    [
        (1000, 1500, "tcp", 117.69),
        # 25 Gbit/s RoCE: Open MPI reached 3063.1 MB/s in a public run of two nodes.
        (25_000, 9000, "roce", 3063.67),
        (25_000, 4192, "roce", 3063.67),
        # 50 Gbit/s RoCE at the usual MTU: 5785.1 MB/s in another.
        (50_000, 1500, "roce", 5786.62),
        (100_000, 4096, "infiniband", 12421.15),
        # Slingshot: 24.0 GB/s of osu_bw and 24.3 of fi_write are public.
        (200_000, 2048, "slingshot", 24615.38),
        # UCX takes 11.8 GB/s for what it reaches.
        (100_000, 8192, "efa", 12400.10),
        # Its makers name 12.3 GB/s.
        (100_000, 8192, "omnipath", 12409.11),
        # Four links of Pascal, 80 GB/s each way.
        (640_000, 256, "nvlink", 75294.12),
        (400_000, 4096, "shared-memory", 50_000),
    ],
)
def test_a_line_rate_is_what_a_link_leaves_for_payload(link, mtu, transport, rate):
    assert line_rate_mb_s(link, mtu, Transport(transport)) == pytest.approx(rate, abs=0.01)


@pytest.mark.parametrize(
    ("mtu", "payload"),
    [(352, 256), (1119, 512), (1500, 1024), (2143, 1024), (2144, 2048), (4191, 2048), (9000, 4096)],
)
def test_a_packet_of_roce_has_the_largest_path_mtu_that_linux_lets_fit(mtu, payload):
    wire = payload + 44 + ETHERNET_OVERHEAD_BYTES
    assert line_rate_mb_s(8, mtu, Transport.ROCE) == pytest.approx(payload / wire)


@pytest.mark.parametrize(
    ("mtu", "transport", "said"),
    [
        (52, "tcp", "an MTU of 52 has no room for a message"),
        (351, "roce", "RoCE takes an MTU of 352 or more, not 351"),
        (1500, "infiniband", "InfiniBand has MTUs of 4096, 2048, 1024, 512, 256, not of 1500"),
        (9000, "omnipath", "Omni-Path has MTUs of 10240, 8192, 4096, 2048, not of 9000"),
        (1500, "nvlink", "NVLink has packets of 256, not of 1500"),
    ],
)
def test_an_mtu_that_carries_nothing_is_refused(mtu, transport, said):
    with pytest.raises(NetproofError, match=said):
        line_rate_mb_s(1000, mtu, Transport(transport))


def test_each_transport_has_a_usual_mtu_that_it_carries():
    for transport in Transport:
        share = line_rate_mb_s(8, transport.usual_mtu, transport)
        assert share == 1 if transport is Transport.SHARED_MEMORY else 0.9 < share < 1
