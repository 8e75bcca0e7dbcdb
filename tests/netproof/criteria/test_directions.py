"""Directions: one way between two nodes that loses more than the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from netproof.criteria import Level
from netproof.criteria.interface import CaseCurves, CountedLaunch
from netproof.criteria.registry import BY_FINDING
from netproof.criteria.settings import Settings
from netproof.measurement.counters import Counters, CounterSource, NodeCounters, Payload, counters

JOBS = Path(__file__).resolve().parents[2] / "data" / "jobs"
NAMES = (("tx_bytes",), ("Tcp.OutSegs", "Tcp.RetransSegs"), ("counters/port_xmit_data",))


def node(
    sent: int, again: int, tx_bytes: int = 10**8, ports: bool = False
) -> tuple[CounterSource, ...]:
    """Return a node's counters: segments, retransmissions, bytes over eth1."""
    segments = {"Tcp.OutSegs": sent, **({"Tcp.RetransSegs": again} if again else {})}
    port = CounterSource("infiniband", "mlx5_0/1", {}, 2, {}, "Ethernet", ("eth1",))
    return (
        CounterSource("interface", "eth1", {"tx_bytes": tx_bytes}, 0),
        CounterSource("tcp", "", segments, 1),
        *([port] if ports else []),
    )


def launch(*nodes: tuple[CounterSource, ...], undisturbed: bool = True) -> CountedLaunch:
    several = tuple(
        NodeCounters(f"n{number}", sources, {}, 0.001) for number, sources in enumerate(nodes, 1)
    )
    return CountedLaunch(1, Counters(several, NAMES), Payload(0), undisturbed)


def found(*launches: CountedLaunch, inside: bool = False, rails=("eth1",), **changes):
    case = CaseCurves("here", None, None, (), None, counted=launches, rails=rails, inside=inside)
    settings = Settings.of_site({"retransmission": changes}, 0)
    return BY_FINDING["directions"].on(case, settings)


def judged(*launches: CountedLaunch, **more):
    (finding,) = found(*launches, **more)
    return finding


def test_the_way_that_loses_more_is_named_from_its_sender_to_its_receiver():
    finding = judged(launch(node(80_000, 3), node(80_123, 412)))
    assert (finding.level, finding.node, finding.interface) == (Level.WARN, "n2", "eth1")
    assert finding.value == pytest.approx(412 / 80_535 - 3 / 80_003)
    assert "from n2 to n1 412 of 80,535 (0.51 %) segments were sent again" in finding.why
    assert "and 3 of 80,003 (0.0037 %) on the way back, bound 0.1 % more" in finding.why
    assert "look at what n2 sends with, what n1 receives with" in finding.why


def test_ways_that_lose_alike_pass_however_much_they_lose():
    finding = judged(launch(node(8_000, 900), node(8_000, 800)))
    assert finding.level is Level.PASS
    assert "look at" not in finding.why


def test_a_few_segments_are_no_difference():
    assert judged(launch(node(800, 19), node(800, 0))).level is Level.PASS
    assert judged(launch(node(800, 20), node(800, 0))).level is Level.WARN


def test_several_launches_count_together():
    several = [launch(node(800, 10), node(800, 0))] * 2
    assert judged(several[0]).level is Level.PASS
    assert judged(*several).level is Level.WARN


def test_whatever_one_way_loses_only_warns_from_where_the_site_lets_retransmissions_warn():
    lossy = launch(node(8_000, 4_000), node(8_000, 0))
    assert judged(lossy).level is Level.WARN
    one_in_200 = launch(node(80_000, 400), node(80_000, 0))
    assert judged(one_in_200).level is Level.WARN
    assert judged(one_in_200, warn=0.009).level is Level.PASS


def test_disturbed_launches_do_not_count_alongside_others():
    noisy = launch(node(8_000, 4_000), node(8_000, 0), undisturbed=False)
    assert judged(noisy).level is Level.WARN
    assert judged(noisy, launch(node(8_000, 1), node(8_000, 0))).level is Level.PASS


def test_a_node_that_only_acknowledges_tells_nothing_of_its_way():
    assert found(launch(node(80_000, 400), node(40_000, 0, tx_bytes=4 * 10**6))) == ()
    assert judged(launch(node(80_000, 400), node(80_000, 0, tx_bytes=5 * 10**7))).node == "n1"


def test_other_than_two_nodes_have_no_two_ways():
    lossy = node(8_000, 400)
    assert found(launch(lossy)) == ()
    assert found(launch(lossy, node(8_000, 0), node(8_000, 0))) == ()
    assert found(launch(lossy, node(8_000, 0)), inside=True) == ()
    assert found(launch(lossy, node(8_000, 0)), rails=()) == ()
    assert found() == ()


def test_rdma_is_not_judged_by_what_tcp_sent_again():
    assert found(launch(node(8_000, 400, ports=True), node(8_000, 0, ports=True))) == ()


def test_what_was_not_counted_is_undefined_with_the_reason():
    gone = CounterSource("tcp", "", {"Tcp.OutSegs": 4}, 0, {"Tcp.RetransSegs": "went from 9 to 1"})
    finding = judged(launch((node(1, 0)[0], gone), node(8_000, 0)))
    assert finding.level is Level.UNDEFINED
    assert "went from 9 to 1" in finding.why
    finding = judged(launch(node(8_000, 0)[1:], node(8_000, 0)))
    assert "n1 did not count what it sent over eth1" in finding.why


def test_a_healthy_recorded_step_loses_alike():
    text = (JOBS / "counters-healthy" / "tcp-inter-node-oneway.1.err").read_text()
    read = counters(Path("x.err"), text, ["gige-1", "gige-2"])
    assert judged(CountedLaunch(1, read, Payload(0))).level is Level.PASS
