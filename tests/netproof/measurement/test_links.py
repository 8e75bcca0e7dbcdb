"""Like with like: what a link's rate explains is not compared; packets of each transport."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netproof.benchmarks.imb import BENCHMARK as IMB
from netproof.criteria import Level
from netproof.criteria.interface import CaseCurves, ComparedCases
from netproof.criteria.registry import BY_FINDING
from netproof.criteria.settings import Settings
from netproof.errors import NetproofError
from netproof.measurement.case import Curve, line_rate_share
from netproof.measurement.links import (
    ETHERNET_OVERHEAD_BYTES,
    Link,
    Transport,
    explained_us,
    link_of,
    messages,
)

POWERS = tuple(2**n for n in range(2, 23))
SIZED = [function for function in IMB.functions if function.least_bytes is not None]
all_links = st.builds(Link, st.floats(100, 400_000), st.integers(1500, 9000))


def ideal(link: Link, latency_us: float, count: float) -> Curve:
    return Curve(POWERS, tuple(latency_us + count * link.wire_us(size) for size in POWERS))


@st.composite
def like_configurations(draw):
    """Ideal curves of one function over two or three links, each with its link."""
    ranks, a_node = draw(st.sampled_from([(2, 1), (4, 1), (4, 2), (16, 2), (64, 2), (64, 1)]))
    least, most = draw(st.sampled_from(SIZED)).messages_on_link(ranks, a_node)
    count = draw(st.floats(least, most))
    latency = draw(st.floats(0.1, 200))
    several = draw(st.lists(all_links, min_size=2, max_size=3))
    return {
        str(n): (ideal(link, latency, count), replace(link, least=least, most=most))
        for n, link in enumerate(several)
    }


@given(like_configurations())
def test_an_ideal_slower_link_is_never_red(configurations):
    cases = {
        where: CaseCurves.of_launches(where, [curve] * 3, crossing=link)
        for where, (curve, link) in configurations.items()
    }
    for one in cases.values():
        for finding in BY_FINDING["envelope"].on(one, Settings(), ComparedCases(cases)):
            assert finding.level is Level.PASS
            assert 1 <= finding.value < 1.001


def test_a_faster_link_and_none_at_all_explain_nothing():
    slow, fast = Link(1000, 1500), Link(10_000, 9000)
    for own, other in ((fast, slow), (None, slow), (slow, None), (None, None)):
        assert set(explained_us(dict.fromkeys(POWERS, 1.0), other, own).values()) == {0}


def test_time_on_the_wire_is_that_of_all_frames_and_the_first_once_more():
    # By hand: 1448 bytes of payload in a frame of 1538, at 125 bytes a µs.
    link = Link(1000, 1500)
    assert link.wire_us(1448) == pytest.approx(2 * 1538 / 125)
    assert link.wire_us(1449) == pytest.approx((1538 + 91 + 1538) / 125)
    assert 2**26 / link.wire_us(2**26) == pytest.approx(link.line_rate_mb_s(), rel=1e-3)


class TestMessages:
    LINK = Link(1000, 1500)

    def found(self, times: dict[int, float], least=1, most=100) -> dict[int, float]:
        return messages(times, replace(self.LINK, least=least, most=most))

    @given(st.floats(1, 100), st.floats(0, 1000))
    def test_are_those_of_an_ideal_curve(self, count, latency):
        times = {size: latency + count * self.LINK.wire_us(size) for size in POWERS}
        assert list(self.found(times).values()) == pytest.approx([count] * len(POWERS), rel=1e-4)

    def test_stay_within_what_the_function_allows_and_one_disturbed_size_does_not_count(self):
        times = {size: 7 * self.LINK.wire_us(size) for size in POWERS}
        assert set(self.found(times, most=3).values()) == {3}
        assert set(self.found(times, least=9).values()) == {9}
        assert self.found({4: 1.0}) == {4: 100}
        times[4096] *= 40
        crossed = self.found(times)
        assert crossed.pop(4096) == 100
        assert list(crossed.values()) == pytest.approx([7] * len(crossed), rel=1e-3)

    def test_more_ranks_on_a_node_put_more_messages_on_its_link(self):
        dense, sparse = (
            Link(1000, 1500, Transport.TCP, *IMB.function("Bcast").messages_on_link(16, a_node))
            for a_node in (2, 8)
        )
        added = explained_us({65536: 14.0}, dense, sparse)
        assert added == {65536: 0}
        added = explained_us({65536: 4.0}, sparse, dense)
        assert added[65536] == pytest.approx(3 * self.LINK.wire_us(65536))


@pytest.mark.parametrize(
    ("name", "ranks", "a_node", "most"),
    [
        ("Bcast", 64, 2, 62),
        ("Scatterv", 4, 2, 2),
        ("Allreduce", 64, 2, 124),
        ("Reduce_scatter", 4, 1, 4),
        ("Reduce_scatter_block", 4, 1, 15),
        ("Allgather", 4, 1, 3 + 4 * 2),
        ("Alltoall", 4, 1, 4),
        ("Alltoallv", 64, 2, 2 * 32 * 6),
    ],
)
def test_of_a_collective_the_most_is_the_algorithm_that_needs_it_most(name, ranks, a_node, most):
    assert IMB.function(name).messages_on_link(ranks, a_node) == (1, most)


NODE = {"link_mbit_s": 100_000, "mtu": 1500, "rails": ("a", "b"), "rdma": "infiniband"}


@pytest.mark.parametrize(
    ("node", "asked", "link"),
    [
        ({}, {"over_tcp": False}, Link(100_000, 4096, Transport.INFINIBAND)),
        ({}, {"over_tcp": True, "rails": 2}, Link(200_000, 1500)),
        (
            {"rdma": "roce", "rdma_mtu": 4192},
            {"over_tcp": False},
            Link(100_000, 4192, Transport.ROCE),
        ),
        # Nothing says what carries MPI.
        ({"rdma": None}, {"over_tcp": False}, Link(100_000, 1500)),
    ],
)
def test_mpi_of_rdma_has_its_link_and_what_goes_over_tcp_that_of_tcp(node, asked, link):
    assert link_of({**NODE, **node}, **asked) == link


@pytest.mark.parametrize(
    ("link", "mtu", "transport", "rate"),
    [
        (1000, 1500, "tcp", 117.69),
        # 25 Gbit/s RoCE: Open MPI reached 3063.1 MB/s in a public run of two nodes.
        (25_000, 9000, "roce", 3063.67),
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
    assert Link(link, mtu, Transport(transport)).line_rate_mb_s() == pytest.approx(rate, abs=0.01)


def test_a_packet_of_roce_has_the_largest_path_mtu_that_linux_lets_fit():
    for mtu, payload in ((352, 256), (1119, 512), (2143, 1024), (2144, 2048), (9000, 4096)):
        wire = payload + 44 + ETHERNET_OVERHEAD_BYTES
        assert Link(8, mtu, Transport.ROCE).line_rate_mb_s() == pytest.approx(payload / wire)


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
        Link(1000, mtu, Transport(transport)).line_rate_mb_s()


@pytest.mark.parametrize("rate", [0.0, float("nan"), float("inf")])
def test_a_line_rate_that_is_none_is_refused(rate):
    with pytest.raises(NetproofError, match="no line rate"):
        line_rate_share(1.0, rate)
