"""What interfaces counted over a session, and the node that loses more than the others."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import made_measured
import pytest

from netproof.measurement.case import Case
from netproof.measurement.counters import Counters, CounterSource
from netproof.pairs import verdict as pairs
from netproof.session import job_files
from netproof.session.measured import Launch
from netproof.session.pair_rounds import PairRounds
from netproof.site.partition import Partition
from netproof.verdict.engine import Subject
from netproof.verdict.traffic import (
    ALL_LOSE,
    LOSES,
    LOST_ONCE,
    Seen,
    all_lose,
    carriers_in_rounds,
    of_cases,
    of_rounds,
    standing_out,
    totals,
)

DATA = Path(__file__).resolve().parents[2] / "data"


@pytest.fixture(scope="module")
def extras() -> dict:
    """Of the partition that the jobs were recorded on."""
    kept = next(one.extras for one in made_measured.recorded("faulty").results if one.measured)
    changed = {"criteria": {}, "max_message_bytes": 524288, "netpipe_mpi_inside_repeats": 0}
    return {**kept["partition_extras"], **changed}


def subject(extras, job: str, step: str = "tcp-inter-node-oneway") -> Subject:
    protocol, path, direction = re.split("-(?!node)", step)
    case = Case("testbed", "gige", "mpich", "netpipe", protocol, 2, 1, path, direction)
    folder = DATA / "jobs" / f"counters-{job}"
    partition = Partition.model_validate(extras)
    found = job_files.of_job(folder, case, partition, 1, mpi_over_tcp=True)
    return Subject.of_extras(found, extras, {})


def with_counters(one: Subject, counters: Counters) -> Subject:
    launches = [dataclasses.replace(launch, counters=counters) for launch in one.measured.launches]
    return dataclasses.replace(one, measured=one.measured.with_launches(launches))


def lossy(**again: int) -> Counters:
    """Nodes that sent so many of 100,000 segments again."""
    names = (("Tcp.OutSegs", "Tcp.RetransSegs", "TcpExt.TCPDSACKRecvSegs"),)
    sources = {
        name: (
            CounterSource("tcp", "", {"Tcp.OutSegs": 100000 - count, "Tcp.RetransSegs": count}, 0),
        )
        for name, count in again.items()
    }
    return Counters(sources, names, {node: {} for node in sources})


def test_each_interface_has_its_sums_and_the_one_under_test_is_marked(extras):
    both = [subject(extras, "healthy"), subject(extras, "healthy")]
    found = {(one.node, one.interface): one for one in totals(of_cases(both))}
    assert set(found) == {(f"gige-{n}", name) for n in (1, 2) for name in ("eth0", "eth1")}
    eth1 = found["gige-1", "eth1"]
    assert (eth1.rail, eth1.counted["tx_bytes"]) == (True, 2 * 57767821)
    assert eth1.faults == (0, 0, 0)
    assert not found["gige-1", "eth0"].rail


def test_what_one_launch_does_not_know_the_sum_does_not(extras):
    one = subject(extras, "healthy")
    counters = one.measured.launches[0].counters
    sources = tuple(
        dataclasses.replace(source, counted={}, read=2, absent={"tx_bytes": "went back"})
        if source.name == "eth1"
        else source
        for source in counters.sources["gige-1"]
    )
    both = {**counters.sources, "gige-1": sources}
    blind = with_counters(one, dataclasses.replace(counters, sources=both))
    found = {(t.node, t.interface): t for t in totals(of_cases([one, blind]))}
    assert found["gige-1", "eth1"].counted["tx_bytes"] is None
    assert {*found["gige-1", "eth1"].faults} != {0}


def test_what_all_lose_and_what_nobody_does_stands_not_out(extras):
    one = subject(extras, "healthy")

    def stands_out(**again: int) -> bool:
        return bool(standing_out(of_cases([with_counters(one, lossy(**again))] * 3)))

    assert stands_out(a=900, b=450, c=450)
    assert not stands_out(a=900, b=800, c=700)
    assert not stands_out(a=60, b=30, c=30)
    assert not stands_out(a=900, b=900)
    assert not stands_out(a=900)
    assert standing_out(of_cases([one])) == ()
    silent = dataclasses.replace(lossy(a=900, b=450, c=450), sources={"a": (), "b": (), "c": ()})
    assert standing_out(of_cases([with_counters(one, silent)] * 3)) == ()


def test_a_loss_that_disturbed_launches_alone_show_is_no_port_s(extras):
    settings = Partition.model_validate(extras).settings()
    counters = lossy(a=900, b=450, c=450)
    quiet = Seen("gige", counters, ("eth1",), settings, frozenset())
    busy = dataclasses.replace(quiet, busy=frozenset("b"))
    assert [one.criterion for one in standing_out([quiet] * 3 + [busy])] == [LOSES]
    (found,) = standing_out([busy] * 4)
    assert found.criterion == LOST_ONCE
    assert "4 of 4 launches show it, in which something else ran" in found.why
    more = dataclasses.replace(busy, counters=lossy(a=9000, b=4500, c=4500))
    assert [one.criterion for one in standing_out([more] * 4)] == [LOSES]


def test_a_node_that_is_always_busy_is_compared_in_its_own_launches(extras):
    settings = Partition.model_validate(extras).settings()

    def between(one: str, other: str, **again: int) -> Seen:
        partners = {one: (other,), other: (one,)}
        return Seen("gige", lossy(**again), ("eth1",), settings, frozenset("d"), partners)

    quiet = [between(*pair, **dict.fromkeys(pair, 0)) for pair in ("ab", "bc", "ca")] * 3
    busy = [between("d", other, **{"d": 450, other: 450}) for other in "abc"] * 3
    (found,) = standing_out(quiet + busy)
    assert (found.node, found.criterion) == ("d", LOST_ONCE)
    assert standing_out(quiet) == ()


@pytest.mark.parametrize(
    ("job", "level", "interface"), [("healthy", "pass", "eth1"), ("management", "fail", "eth0")]
)
def test_rounds_of_pairs_tell_which_interface_carried_them(extras, job, level, interface):
    step = "mpi-inter-node-oneway"
    counters = subject(extras, job, step).measured.launches[0].counters
    launch = Launch(1, 1, 0.0, 1.0, (), (), counters=counters, payload=110100240)
    where = ("testbed", "gige", "mpich", ("gige-1", "gige-2"))
    rounds = PairRounds(*where, (launch,), "7", "quick", 1)
    here = Partition.model_validate(extras)
    found = pairs.path_of_rounds(rounds, here)
    assert (found.level.value, found.interface) == (level, interface)
    judged = dataclasses.replace(
        pairs.judge(rounds, here.pair_settings(), here.settings().disturbance), path=found
    )
    assert bool(judged.what_failed()) is (level == "fail")
    uncounted = dataclasses.replace(rounds, launches=(dataclasses.replace(launch, counters=None),))
    assert pairs.path_of_rounds(uncounted, here) is None


def test_a_carrier_that_changed_in_rounds_of_pairs_is_found(extras):
    counters = subject(extras, "carrier").measured.launches[0].counters
    launch = Launch(1, 1, 0.0, 1.0, (), (), counters=counters)
    rounds = PairRounds(
        "testbed", "gige", "mpich", ("gige-1", "gige-2"), (launch,), "7", "quick", 1
    )
    seen = of_rounds([rounds], {"gige": Partition.model_validate(extras)})
    (found,) = carriers_in_rounds(seen)
    assert (found.level.value, found.node, found.interface) == ("fail", "gige-2", "eth1")
    assert found.why.startswith("pairs on gige: gige-2 eth1: its carrier came or went 2 times")
    assert of_rounds([rounds], {}) == []


@pytest.mark.parametrize(
    ("again", "fails"),
    [
        ({"a": 2000, "b": 1500, "c": 3000}, True),
        ({"a": 2000, "b": 1500, "c": 900}, False),
        ({"a": 19, "b": 1500, "c": 3000}, False),
        ({"a": 1500}, False),
    ],
    ids=["all", "all but one", "one hardly sent", "a node alone"],
)
def test_only_where_every_node_loses_it_is_the_partition(extras, again, fails):
    partition = Partition.model_validate(extras)
    seen = [Seen("gige", lossy(**again), ("eth1",), partition.settings(), frozenset())]
    found = all_lose(seen)
    assert [one.criterion for one in found] == [ALL_LOSE] * fails
    if fails:
        assert found[0].why.startswith("pairs on gige: all 3 nodes send 1.5 % to 3 % of their")
    assert not all_lose([dataclasses.replace(one, busy=frozenset("a")) for one in seen])
