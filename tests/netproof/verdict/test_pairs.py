"""Nodes judged by the rounds of a job: recorded ones, and the same with one node slow."""

from __future__ import annotations

import dataclasses
import itertools
from statistics import fmean, median

import pytest
from made_few import among, slowed
from made_rounds import BUSY, NODES, PARTITION, RECORDED, recorded

from netproof.measurement.disturbance import DisturbanceSettings
from netproof.measurement.links import Link
from netproof.pairs import verdict as pairs
from netproof.pairs.accusation import State
from netproof.present.documents import plain
from netproof.session import pair_rounds
from netproof.session.pair_rounds import PairRounds

SETTINGS = PARTITION.pair_settings()


def of_few(
    count: int, slow: str = "", *, streams: bool = True, **settings: float
) -> pairs.PairsVerdict:
    """Recorded pairs as those of a job of so few nodes, each three times; one node may be slow."""
    nodes = NODES[:count]
    launches = list(among(recorded(3).launches, nodes))
    where = ("testbed", "gige", "mpich")
    (stream,), _, _ = pair_rounds.read(RECORDED.with_name("stream"), where, 524288)
    for pair in itertools.permutations(nodes if streams else (), 2):
        to = dict(zip(stream.pairs[0], pair, strict=True))
        loads = tuple(dataclasses.replace(one, node=to[one.node]) for one in stream.loads)
        launches.append(dataclasses.replace(stream, pairs=(pair,), loads=loads))
    launches = [slowed(one, slow, 2.0) for one in launches]
    rounds = dataclasses.replace(recorded(), nodes=nodes, launches=tuple(launches))
    return pairs.judge(rounds, SETTINGS.model_copy(update=settings), BUSY, PARTITION.link())


def test_rounds_alongside_other_work_decide_nothing_and_say_so():
    judged = pairs.judge(recorded(), SETTINGS, PARTITION.settings().disturbance)
    assert {one.state for one in judged.judgement.nodes.values()} == {State.UNDECIDED}
    (sentence,) = judged.undecided()
    assert "in each of its launches something else ran alongside" in sentence
    assert "fast-ethernet-[1-4] undecided: " in sentence
    assert "4 undecided" in str(judged)


def with_latency(rounds: PairRounds, node: str, factor: float) -> PairRounds:
    """The rounds with small messages of a node so many times slower."""
    launches = tuple(slowed(one, node, 1.0, factor) for one in rounds.launches)
    return dataclasses.replace(rounds, launches=launches)


def test_a_latency_accuses_from_a_doubling_on_where_nodes_are_cleared_by_the_rate_alone():
    assert [one.value for one in SETTINGS.quantities] == ["rate"]
    for factor, accused in ((1.4, ()), (10.0, ("fast-ethernet-2",))):
        judged = pairs.judge(with_latency(recorded(2), "fast-ethernet-2", factor), SETTINGS, BUSY)
        assert tuple(one.name for one in judged.judgement.accusations) == accused
        assert judged.undecided_nodes() == ()
    (clear,) = pairs.judge(recorded(), SETTINGS, BUSY).not_judged().values()
    assert clear == 2.0
    both = SETTINGS.model_copy(update={"quantities": ("latency", "rate")})
    assert pairs.judge(recorded(), both, BUSY).not_judged() == {}


def test_pairs_that_never_met_are_named():
    rounds = recorded()
    assert pairs.judge(rounds, SETTINGS, BUSY).never_met() == ""
    two = dataclasses.replace(rounds, launches=rounds.launches[:2])
    assert pairs.judge(two, SETTINGS, BUSY).never_met() == (
        "fast-ethernet-1 – fast-ethernet-2, fast-ethernet-3 – fast-ethernet-4 never met"
    )
    more = dataclasses.replace(rounds, nodes=(*NODES, *"abcd"))
    assert pairs.judge(more, SETTINGS, BUSY).never_met() == "22 of 28 pairs of nodes never met"


LEAVES = {"leaf1": NODES[:2], "leaf2": NODES[2:]}


def test_rounds_of_all_nodes_at_once_tell_the_bisection_bandwidth():
    rounds = dataclasses.replace(recorded(2), leaves=LEAVES)
    found = pairs.judge(rounds, SETTINGS, BUSY, PARTITION.link()).bisection
    rates = [fmean(one.rates_mb_s) for one in rounds.launches]
    assert found.mb_s == pytest.approx(median(rates))
    assert (found.rounds, found.pairs) == (6, 2)
    line = Link(PARTITION.link_mbit_s, PARTITION.mtu).line_rate_mb_s()
    assert found.share == pytest.approx(median(rates) / line)
    assert found.worst == pytest.approx(min(rates) / line)
    infiniband = PARTITION.model_copy(update={"rdma": "infiniband"}).link(over_tcp=False)
    share = pairs.judge(rounds, SETTINGS, BUSY, infiniband).bisection.share
    assert share == pytest.approx(found.share * line / (PARTITION.link_mbit_s / 8 * 4096 / 4122))
    assert found.interval[0] <= found.share <= found.interval[1]
    assert f"; pairs below one leaf {found.within:.1%}, across leaves" in str(found)
    assert 0.5 < found.within < 1.1
    assert 0.5 < found.across < 1.1


def test_uplinks_that_too_few_nodes_load_are_named():
    three = {**LEAVES, "leaf3": ("fast-ethernet-5",)}
    plain = dataclasses.replace(recorded(), leaves=three)
    across = next(
        dataclasses.replace(one, both_ways=True)
        for one in plain.launches
        if any(len({node in LEAVES["leaf1"] for node in pair}) == 2 for pair in one.pairs)
    )
    loaded = dataclasses.replace(plain, launches=(*plain.launches, across))
    assert "too few nodes to be loaded: leaf3" in str(pairs.judge(loaded, SETTINGS, BUSY))
    assert "to be loaded" not in str(pairs.judge(plain, SETTINGS, BUSY))


def test_a_share_that_a_site_asks_for_fails_or_stays_open_by_its_interval():
    def judged(least: float) -> pairs.PairsVerdict:
        settings = SETTINGS.model_copy(update={"bisection": least})
        return pairs.judge(recorded(2), settings, BUSY, PARTITION.link())

    low, high = judged(0.5).bisection.interval
    assert judged(0.99 * low).faults() == ()
    (fault,) = judged(1.01 * high).faults()
    assert "effective bisection bandwidth" in fault
    assert fault.endswith("is asked for")
    open_ = judged((low + high) / 2)
    assert open_.faults() == ()
    assert any("is asked for" in why for why in open_.undecided())


def test_where_pairs_take_turns_there_is_no_bisection_and_a_bound_on_it_is_open():
    rounds = recorded()
    single = tuple(
        dataclasses.replace(one, pairs=one.pairs[:1], curves=one.curves[:1])
        for one in rounds.launches
    )
    settings = SETTINGS.model_copy(update={"bisection": 0.9})
    judged = pairs.judge(
        dataclasses.replace(rounds, launches=single), settings, BUSY, PARTITION.link()
    )
    assert judged.bisection is None
    assert any("no round in which all pairs measured at once" in why for why in judged.undecided())
    assert pairs.judge(rounds, SETTINGS, BUSY).bisection is None


def test_a_pair_alone_tells_its_rate_of_the_line_rate_its_latency_and_both_ways():
    judged = of_few(2)
    (one,) = judged.lone
    assert one.nodes == NODES[:2]
    assert one.share == pytest.approx(one.rate_mb_s / PARTITION.link().line_rate_mb_s())
    assert 0.9 < one.interval[0] <= one.share <= one.interval[1] < 1.1
    assert one.streams_mb_s == (pytest.approx(115.5, rel=1e-3), pytest.approx(115.5, rel=1e-3))
    assert f"fast-ethernet-1 – fast-ethernet-2 {one.rate_mb_s:.4g} MB/s" in str(judged)
    assert f"{one.share:.1%} of the line rate" in str(judged)
    assert str(judged).endswith("streams of 115.5 MB/s there and 115.5 MB/s back")
    assert "streams" not in str(of_few(2, streams=False))
    document = plain(judged)
    assert document["lone_pairs"][0]["rate_mb_s"] == one.rate_mb_s
    assert {node["state"] for node in document["nodes"].values()} == {"not compared"}


def test_of_too_few_nodes_a_pair_below_the_share_that_a_site_asks_for_fails_by_name():
    (fault,) = of_few(2, slow=NODES[0], bisection=0.8).faults()
    assert "fast-ethernet-1 – fast-ethernet-2 " in fault
    assert fault.endswith("and at least 80.0% is asked for")
    assert len(of_few(3, slow=NODES[2], bisection=0.8).faults()) == 2
    assert of_few(2, bisection=0.8).faults() == of_few(2, bisection=0.8).undecided() == ()
    assert of_few(2, slow=NODES[0]).faults() == ()


def test_of_too_few_nodes_a_pair_that_was_always_disturbed_meets_no_bound():
    few = of_few(2).rounds
    asked = SETTINGS.model_copy(update={"bisection": 0.8})
    judged = pairs.judge(few, asked, DisturbanceSettings(), PARTITION.link())
    assert "each disturbed" in str(judged)
    (sentence,) = judged.undecided()
    assert sentence.endswith("and at least 80.0% is asked for")
    # Without a bound nothing is left open: the cases were disturbed as much, and say so.
    assert pairs.judge(few, SETTINGS, DisturbanceSettings(), PARTITION.link()).undecided() == ()
