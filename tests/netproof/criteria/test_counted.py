"""Findings on counters: the node and interface, the share, and the bound."""

from __future__ import annotations

import dataclasses

import made_cases
import pytest

from netproof.criteria import Finding, Level
from netproof.criteria.counters import Share, sent_again, sent_over
from netproof.criteria.interface import CaseCurves, CountedLaunch
from netproof.criteria.registry import BY_FINDING, CRITERIA
from netproof.criteria.settings import Settings
from netproof.measurement.case import Curve
from netproof.measurement.counters import Counters, CounterSource

NAMES = (
    (
        *("rx_bytes", "rx_packets", "rx_errs", "rx_drop", "tx_bytes", "tx_packets", "tx_errs"),
        *("tx_drop", "tx_colls", "carrier_changes"),
    ),
    ("Tcp.OutSegs", "Tcp.RetransSegs", "TcpExt.TCPDSACKRecv", "TcpExt.TCPDSACKRecvSegs"),
    ("processed", "dropped", "time_squeeze"),
    (
        *("counters/port_xmit_data", "counters/port_xmit_packets", "counters/link_downed"),
        *("counters/symbol_error", "hw_counters/packet_seq_err"),
    ),
)

COUNTERS = [criterion for criterion in CRITERIA if criterion.of_counters]


def quiet_node(**counted: int) -> tuple[CounterSource, ...]:
    """Counters of a node: these of eth1, and hardly any of TCP."""
    return (interface("eth1", **counted), tcp(9, 0), SOFTNET)


def judge(case: CaseCurves, settings: Settings) -> list[Finding]:
    return [found for criterion in COUNTERS for found in criterion.on(case, settings)]


def interface(name: str, below: tuple[str, ...] = (), **counted: int) -> CounterSource:
    return CounterSource("interface", name, counted, 0, interfaces=below)


def tcp(sent: int, again: int, twice: int = 0) -> CounterSource:
    names = ("Tcp.OutSegs", "Tcp.RetransSegs", "TcpExt.TCPDSACKRecvSegs")
    values = zip(names, (sent, again, twice), strict=True)
    return CounterSource("tcp", "", {name: count for name, count in values if count}, 1)


def port(name: str, layer: str, interfaces: tuple[str, ...], **counted: int) -> CounterSource:
    values = {f"counters/{name}": count for name, count in counted.items()}
    return CounterSource("infiniband", name, values, 3, {}, layer, interfaces)


SOFTNET = CounterSource("softnet", "", {"processed": 9000}, 2)


def launch(
    *nodes: tuple[CounterSource, ...],
    payload: int | str = 0,
    undisturbed: bool = True,
) -> CountedLaunch:
    sources = {f"n{number}": one for number, one in enumerate(nodes, 1)}
    read = Counters(sources, NAMES, {node: {} for node in sources})
    return CountedLaunch(1, read, payload, undisturbed)


def found(*launches: CountedLaunch, rails: tuple[str, ...] = ("eth1",), **changes):
    sizes = (4, 1 << 20)
    case = made_cases.case(Curve(sizes, sizes), "here", counted=launches, rails=rails)
    settings = Settings.of_site(changes, 0)
    return judge(case, settings)


def one(findings, criterion: str):
    (only,) = [finding for finding in findings if finding.criterion == criterion]
    return only


def test_a_carrier_change_elsewhere_warns_one_of_loopback_is_none_and_none_is_hidden():
    other = (interface("eth0", carrier_changes=1), interface("lo", carrier_changes=4))
    finding = one(found(launch((*other, interface("eth1"), tcp(9, 0), SOFTNET))), "carrier changes")
    assert (finding.level, finding.interface) == (Level.WARN, "eth0")
    noisy = launch(quiet_node(carrier_changes=2), undisturbed=False)
    quiet = launch(quiet_node())
    assert one(found(quiet, noisy), "carrier changes").level is Level.FAIL


def test_a_carrier_change_in_a_launch_next_to_it_fails_and_is_no_path_of_its_own():
    quiet = launch(quiet_node())
    alongside = launch(quiet_node(carrier_changes=2), payload="not asked")
    case = CaseCurves("here", None, None, (), None, counted=(quiet,), rails=("eth1",))
    with_it = dataclasses.replace(case, counted_alongside=(alongside,))
    settings = Settings.of_site({}, 0)
    assert one(judge(case, settings), "carrier changes").level is Level.PASS
    assert one(judge(with_it, settings), "carrier changes").level is Level.FAIL
    assert "path" not in {finding.criterion for finding in judge(with_it, settings)}


def test_segments_that_came_twice_were_not_lost_whichever_way_the_kernel_counts_them():
    assert sent_again(launch((tcp(1000, 90, 70),)).counters, "n1") == Share("n1", "", 20, 1090)
    # Before kernels that count segments, reports are taken.
    counted = {"Tcp.OutSegs": 1000, "Tcp.RetransSegs": 90, "TcpExt.TCPDSACKRecv": 5}
    names = (("Tcp.OutSegs", "Tcp.RetransSegs", "TcpExt.TCPDSACKRecv"),)
    sources = {"n1": (CounterSource("tcp", "", counted, 0),)}
    assert sent_again(Counters(sources, names, {"n1": {}}), "n1").count == 85


def test_the_node_that_sends_again_is_named_with_its_share():
    well = (interface("eth1"), tcp(80000, 3), SOFTNET)
    ill = (interface("eth1"), tcp(80123, 412), SOFTNET)
    finding = one(found(launch(well, ill)), "retransmissions")
    assert (finding.level, finding.node, finding.interface) == (Level.WARN, "n2", "eth1")
    assert (
        "n2 eth1: 412 of 80,535 segments sent again (0.51 %) (flagged above 0.1 %)" in finding.why
    )


@pytest.mark.parametrize(
    ("sent", "again", "undisturbed", "bounds", "level"),
    [
        (8000, 100, True, {}, Level.FAIL),
        (8000, 100, True, {"warn": 0.02, "fail": 0.05}, Level.PASS),
        (8000, 100, False, {}, Level.WARN),
        # So few segments are no share.
        (100, 5, True, {}, Level.PASS),
    ],
)
def test_one_in_a_hundred_fails_in_undisturbed_launches_and_a_site_may_say_otherwise(
    sent, again, undisturbed, bounds, level
):
    ill = launch((interface("eth1"), tcp(sent, again), SOFTNET), undisturbed=undisturbed)
    assert one(found(ill, retransmission=bounds), "retransmissions").level is level


@pytest.mark.parametrize(("errors", "level"), [(0, "pass"), (1, "warn"), (50, "fail")])
def test_errors_on_the_interface_under_test(errors, level):
    eth1 = interface("eth1", rx_packets=1000000, **({"rx_errs": errors} if errors else {}))
    finding = one(found(launch((eth1, tcp(9, 0), SOFTNET))), "interface errors")
    assert finding.level.value == level


def test_what_is_not_known_is_undefined_with_the_reason():
    gone = {"Tcp.RetransSegs": "went from 9 to 1"}
    blind = CounterSource("tcp", "", {"Tcp.OutSegs": 4}, 2, gone)
    finding = one(found(launch((interface("eth1"), blind, SOFTNET))), "retransmissions")
    assert finding.level is Level.UNDEFINED
    assert "went from 9 to 1" in finding.why
    errors = one(found(launch((interface("eth0"), tcp(9, 0), SOFTNET))), "interface errors")
    assert (errors.level, errors.why) == (
        Level.UNDEFINED,
        "here: interface errors undefined: eth1: n1 has no eth1",
    )


def test_ports_of_infiniband_are_rails_by_device_or_interface():
    mlx = port("mlx5_0/1", "InfiniBand", ("ib0",), link_downed=1, port_xmit_packets=1000)
    for rail in ("ib0", "mlx5_0"):
        findings = found(launch((mlx, interface("ib0"), tcp(9, 0), SOFTNET)), rails=(rail,))
        finding = one(findings, "carrier changes")
        assert (finding.level, finding.interface) == (Level.FAIL, "mlx5_0/1")


# Path.


def path(*launches: CountedLaunch, **more):
    return one(found(*launches, **more), "path")


def test_what_nobody_counted_went_through_memory():
    nodes = [(interface("eth1", tx_bytes=2000), interface("eth0"))] * 2
    finding = path(launch(*nodes, payload=10**8))
    assert (finding.level, finding.interface) == (Level.FAIL, None)
    assert "no interface counted what was sent: it went through memory" in finding.why


def test_rails_carry_it_together():
    node = (interface("eth1", tx_bytes=5 * 10**7), interface("eth2", tx_bytes=6 * 10**7))
    assert path(launch(node, payload=10**8), rails=("eth1", "eth2")).level is Level.PASS
    assert path(launch(node, payload=10**8), rails=("eth1",)).level is Level.FAIL


def rails_of(*nodes: tuple[int, int], sizes=(4, 1 << 20), **known) -> list[Finding]:
    """Return the findings on nodes that sent so many bytes over two rails."""
    counted = launch(
        *([interface(f"eth{n}", tx_bytes=b) for n, b in enumerate(node)] for node in nodes)
    )
    known = {"counted": (counted,), "rails": ("eth0", "eth1"), **known}
    return list(made_cases.along("rail share", Curve(sizes, sizes), **known))


def test_a_rail_that_carries_less_than_half_of_its_part_warns_and_is_named():
    (finding,) = rails_of((9 * 10**7, 2 * 10**7), (6 * 10**7, 5 * 10**7))
    assert (finding.level, finding.node, finding.interface) == (Level.WARN, "n1", "eth1")
    assert finding.value == pytest.approx(4 / 11)
    assert "n1 eth1: it carried 36 % of its part of what n1 sent over 2 rails" in finding.why
    (finding,) = rails_of((7 * 10**7, 3 * 10**7))
    assert (finding.level, finding.value) == (Level.PASS, pytest.approx(0.6))
    assert {one.interface for one in rails_of((10**8, 0))} == {"eth1"}


def test_rails_are_compared_where_a_node_sends_long_messages_over_several():
    alone = {"tx_bytes": 10**8}
    assert rails_of((10**8, 0), rails=("eth0",)) == []
    assert rails_of((10**8, 0), inside=True) == []
    assert rails_of((10**8, 0), operation="tcp") == []
    assert rails_of((10**8, 0), sizes=(4, 65536)) == []
    assert rails_of((0, 0)) == []
    # A node that acknowledges does it over one.
    assert rails_of((10**8, 10**8), (10**6, 0))[0].level is Level.PASS
    noisy = launch([interface("eth0", **alone), interface("eth1")], undisturbed=False)
    quiet = launch([interface("eth0", **alone), interface("eth1", **alone)])
    assert rails_of(counted=(noisy, quiet))[0].level is Level.PASS
    assert rails_of(counted=(noisy,))[0].level is Level.WARN


def test_one_launch_or_half_of_one_over_another_path_is_enough():
    well = launch((interface("eth1", tx_bytes=10**8),), payload=10**8)
    ill = launch((interface("eth1"), interface("eth0", tx_bytes=10**8)), payload=10**8)
    assert path(well, ill).level is Level.FAIL
    # Though the benchmark sent more than it had to.
    node = (interface("eth1", tx_bytes=10**8), interface("eth0", tx_bytes=10**8))
    finding = path(launch(node, payload=8 * 10**7))
    assert finding.level is Level.FAIL
    assert "50 % went over eth0" in finding.why


def test_what_a_bond_sends_its_interfaces_do_not_send_elsewhere():
    bond = interface("bond0", ("eth2", "eth3"), tx_bytes=10**8)
    below = [interface(name, tx_bytes=5 * 10**7) for name in ("eth2", "eth3")]
    vlan = interface("bond0.7", ("bond0",), tx_bytes=10**8)
    node = (bond, *below, vlan)
    assert path(launch(node, payload=9 * 10**7), rails=("bond0",)).level is Level.PASS
    assert path(launch(node, payload=9 * 10**7), rails=("bond0.7",)).level is Level.PASS


def test_rdma_is_counted_by_the_port_in_words_and_over_another_device_is_named():
    roce = (interface("eth1", tx_bytes=4000), port("mlx5_0/1", "Ethernet", ("eth1",)))
    sent = dataclasses.replace(roce[1], counted={"counters/port_xmit_data": 25 * 10**6})
    assert path(launch((roce[0], sent), payload=10**8)).level is Level.PASS
    assert path(launch(roce, payload=10**8)).level is Level.FAIL
    other = port("mlx5_1/1", "InfiniBand", (), port_xmit_data=25 * 10**6)
    finding = path(launch((interface("eth1"), other), payload=10**8))
    assert (finding.level, finding.interface) == (Level.FAIL, "mlx5_1/1")


def test_ipoib_is_not_counted_twice():
    mlx = port("mlx5_0/1", "InfiniBand", ("ib0",), port_xmit_data=25 * 10**6)
    node = launch((interface("ib0", tx_bytes=10**8), mlx), payload=10**8)
    assert sent_over(node, ("ib0",))[0] == 10**8


def test_a_payload_that_is_not_known_is_undefined_and_nothing_to_send_is_no_finding():
    node = quiet_node(tx_bytes=10**8)
    finding = path(launch(node, payload="how much OMB sends is not known"))
    assert (finding.level, finding.why) == (
        Level.UNDEFINED,
        "here: path undefined: how much OMB sends is not known",
    )
    findings = found(launch(node, payload=0))
    assert "path" not in {finding.criterion for finding in findings}


def test_a_counter_that_went_back_leaves_the_path_not_known():
    lost = dataclasses.replace(interface("eth1"), read=2, absent={"tx_bytes": "went from 9 to 1"})
    finding = path(launch((lost,), payload=10**8))
    assert finding.level is Level.UNDEFINED
    assert "n1 eth1: tx_bytes went from 9 to 1" in finding.why


# Directions.


def way(sent: int, again: int, tx_bytes: int = 10**8, ports: bool = False):
    """Return a node's counters: segments, retransmissions, bytes over eth1."""
    mlx = [port("mlx5_0/1", "Ethernet", ("eth1",))] if ports else []
    return (interface("eth1", tx_bytes=tx_bytes), tcp(sent, again), *mlx)


def directions(*launches: CountedLaunch, inside: bool = False, rails=("eth1",), **changes):
    case = CaseCurves("here", None, None, (), None, counted=launches, rails=rails, inside=inside)
    settings = Settings.of_site({"retransmission": changes}, 0)
    return BY_FINDING["directions"].on(case, settings)


def both_ways(*launches: CountedLaunch, **more):
    (finding,) = directions(*launches, **more)
    return finding


def test_the_way_that_loses_more_is_named_from_its_sender_to_its_receiver():
    finding = both_ways(launch(way(80_000, 3), way(80_123, 412)))
    assert (finding.level, finding.node, finding.interface) == (Level.WARN, "n2", "eth1")
    assert finding.value == pytest.approx(412 / 80_535 - 3 / 80_003)
    assert "from n2 to n1 412 of 80,535 (0.51 %) segments were sent again" in finding.why
    assert "and 3 of 80,003 (0.0037 %) on the way back (flagged above 0.1 %" in finding.why
    assert "Look at what n2 sends with, what n1 receives with" in finding.why


@pytest.mark.parametrize(
    ("one", "other", "bounds", "level"),
    [
        # Alike, however much is lost.
        ((8_000, 900), (8_000, 800), {}, Level.PASS),
        # A few segments.
        ((800, 19), (800, 0), {}, Level.PASS),
        ((800, 20), (800, 0), {}, Level.WARN),
        # However much one way loses.
        ((8_000, 4_000), (8_000, 0), {}, Level.WARN),
        ((80_000, 400), (80_000, 0), {}, Level.WARN),
        ((80_000, 400), (80_000, 0), {"warn": 0.009}, Level.PASS),
    ],
)
def test_a_way_that_loses_more_only_warns_from_where_the_site_lets_retransmissions_warn(
    one, other, bounds, level
):
    finding = both_ways(launch(way(*one), way(*other)), **bounds)
    assert finding.level is level
    assert ("Look at" in finding.why) is (level is Level.WARN)


def test_disturbed_launches_do_not_count_alongside_others():
    noisy = launch(way(8_000, 4_000), way(8_000, 0), undisturbed=False)
    assert both_ways(noisy).level is Level.WARN
    assert both_ways(noisy, launch(way(8_000, 1), way(8_000, 0))).level is Level.PASS


def test_a_node_that_only_acknowledges_tells_nothing_of_its_way():
    assert directions(launch(way(80_000, 400), way(40_000, 0, tx_bytes=4 * 10**6))) == ()
    assert both_ways(launch(way(80_000, 400), way(80_000, 0, tx_bytes=5 * 10**7))).node == "n1"


def test_other_than_two_nodes_have_no_two_ways_and_rdma_is_not_judged_by_what_tcp_sent_again():
    lossy = way(8_000, 400)
    assert directions(launch(lossy)) == ()
    assert directions(launch(lossy, way(8_000, 0), way(8_000, 0))) == ()
    assert directions(launch(lossy, way(8_000, 0)), inside=True) == ()
    assert directions(launch(lossy, way(8_000, 0)), rails=()) == ()
    assert directions() == ()
    assert directions(launch(way(8_000, 400, ports=True), way(8_000, 0, ports=True))) == ()


def test_what_was_not_counted_of_a_way_is_undefined_with_the_reason():
    gone = CounterSource("tcp", "", {"Tcp.OutSegs": 4}, 2, {"Tcp.RetransSegs": "went from 9 to 1"})
    finding = both_ways(launch((way(1, 0)[0], gone), way(8_000, 0)))
    assert finding.level is Level.UNDEFINED
    assert "went from 9 to 1" in finding.why
    finding = both_ways(launch(way(8_000, 0)[1:], way(8_000, 0)))
    assert "n1 eth1: is no interface of the node" in finding.why
