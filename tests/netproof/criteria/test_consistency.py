"""Consistency: benchmarks that agree, growth and monotony over ranks, and guidelines."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from made_cases import case, compared, curve, launches, only

from netproof.criteria import Level
from netproof.criteria.consistency import GUIDELINE, GUIDELINES
from netproof.criteria.interface import CaseCurves
from netproof.criteria.registry import BY_FINDING
from netproof.measurement.case import Curve


def agreement(own, others, where="x"):
    found = compared("agreement", {where: own, **others}, only=where)
    return found[0] if found else None


def test_the_slower_one_fails_and_names_the_other():
    slow, other = launches(2.9, 3, 3.1), launches(0.99, 1, 1.01)
    found = agreement(slow, {"NetPIPE": other}, where="IMB PingPong")
    assert (found.level, found.against) == (Level.FAIL, "NetPIPE")
    assert found.value == pytest.approx(3)
    assert "a message took 3 times what" in found.why
    assert "by NetPIPE, which sends the same" in found.why
    assert agreement(other, {"IMB": slow}, where="NetPIPE").level is Level.PASS


MANY = tuple(1 << power for power in range(12, 20))


def curves(*factors: float, scatter: int = 1) -> list[Curve]:
    """Return launches; at each size another one is slow, by ``scatter``."""

    def time_us(size: int, number: int, factor: float) -> float:
        slow = MANY.index(size) % 3 == number
        return factor * (50 + size / 117) * (scatter if slow else 1)

    return [
        curve(MANY, partial(time_us, number=number, factor=factor))
        for number, factor in enumerate(factors)
    ]


def test_a_curve_that_is_slow_as_a_whole_fails_though_no_size_is_sure_of_it():
    slow, other = curves(2.9, 3, 3.1, scatter=4), curves(1, 1.02, 0.98, scatter=4)
    found = agreement(slow, {"NetPIPE": other}, where="IMB PingPong")
    assert (found.level, found.size, found.against) == (Level.FAIL, None, "NetPIPE")
    assert found.value == pytest.approx(3, rel=0.05)
    assert found.interval[0] > 2
    assert "over 8 common sizes, 4096 to 524288 bytes" in found.why
    assert "interval over launches" in found.why
    assert "flagged above 2" in found.why


def test_of_one_launch_a_slow_curve_is_inconclusive_and_some_slow_sizes_are_shown():
    found = agreement(curves(3), {"NetPIPE": curves(1)}, where="IMB PingPong")
    assert (found.level, found.size) == (Level.INCONCLUSIVE, None)
    assert "interval over sizes 3 to 3" in found.why
    assert "takes 3 launches of both" in found.why
    assert agreement(curves(1), {"IMB": curves(3)}, where="NetPIPE").level is Level.SHOWN
    spiked = Curve(MANY, tuple((50 + size / 117) * (1 if size < 1 << 15 else 4) for size in MANY))
    assert agreement(spiked, {"NetPIPE": curves(1)}).level is Level.SHOWN


FEW = launches(0.99, 1, 1.01)


def on_ranks(name: str, operation: str, few, many, on: int):
    """Return the finding on 4 or 8 ranks; the work on a link is 2.5 times as much on 8."""
    sides = {
        f"{operation} {ranks} ranks": case(
            several, f"{operation} {ranks} ranks", ranks=ranks, on_link=work
        )
        for ranks, several, work in ((4, few, 4), (8, many, 10))
    }
    (found,) = compared(name, sides, only=f"{operation} {on} ranks")
    return found


def grown(own):
    return on_ranks("growth", "Alltoall", FEW, own, 8)


@pytest.mark.parametrize(
    ("factors", "level"),
    [
        # As its work.
        ((2.4, 2.5, 2.6), Level.PASS),
        ((12.4, 12.5, 12.6), Level.WARN),
        # An interval that contains the bound fails nothing.
        ((10, 26, 60), Level.SHOWN),
        ((2, 15, 60), Level.WARN),
        ((1, 8, 60), Level.PASS),
    ],
)
def test_growth_is_judged_by_all_of_its_interval(factors, level):
    found = grown(launches(*factors))
    assert (found.level, found.against) == (level, "Alltoall 4 ranks")
    assert found.value == pytest.approx(factors[1] / 2.5)


def test_other_sizes_and_readings_that_are_none_are_undefined():
    curve = Curve((8,), (5.0,))
    assert grown(curve).level is Level.UNDEFINED
    assert "no size in common with Alltoall 4 ranks" in grown(curve).why
    wrong = Curve((4,), (0.0,))
    assert "is no reading" in grown(wrong).why


@pytest.mark.parametrize(
    ("own", "level", "value"),
    [
        (launches(0.5, 0.5, 0.5), Level.PASS, 0.5),
        (launches(0.98, 1, 1.02, slow={64: 12}), Level.FAIL, 12),
        # A library that chooses better on more ranks.
        (launches(4.9, 5, 5.1), Level.WARN, 5),
    ],
)
def test_what_takes_far_longer_on_fewer_ranks_fails_at_its_size(own, level, value):
    found = on_ranks("monotony", "Bcast", own, FEW, 4)
    assert (found.criterion, found.level) == ("monotony", level)
    assert found.value == pytest.approx(value)
    if level is Level.FAIL:
        assert found.size == 64
        assert "64 bytes took 132 µs, 12 times the 11 µs of" in found.why
        assert "the 11 µs of Bcast 8 ranks, which has more to do" in found.why
        assert "Look at the nodes of that job" in found.why


DOUBLING = tuple(2**power for power in range(2, 12))


def link(factor: float = 1.0, latency: float = 10.0, slow: dict[int, float] | None = None) -> Curve:
    slow = slow or {}
    return curve(DOUBLING, lambda size: (latency + factor * size / 100) * slow.get(size, 1))


def companion(*launches: Curve) -> CaseCurves:
    return case(launches)


EACH = "a Sendrecv for each message of a rank or a node"


def judged(own, alongside, operation="Alltoall", ranks=4, launches=(), a_node=1, **settings):
    return only(
        "guideline of messages" if set(alongside) == {"Sendrecv"} else "guideline",
        launches or own,
        settings=replace(GUIDELINE, **{"warn": None, "fail": 4, **settings}),
        others=alongside,
        operation=operation,
        ranks=ranks,
        ranks_per_node=a_node,
    )


def test_a_ring_of_exchanges_does_the_work_of_an_alltoall_and_what_was_not_measured_none():
    found = judged(link(3, 30), {"Sendrecv": companion(link())})
    assert (found.level, found.against) == (Level.PASS, EACH)
    assert found.value == pytest.approx(1)
    both = {"Sendrecv": companion(link()), "Bcast": companion(link())}
    assert judged(link(), {"Bcast": companion(link())}) is None
    assert judged(link(), both) is None
    assert judged(link(), {}, "Sendrecv") is None


def test_ranks_that_share_a_link_send_their_parts_over_it_in_turn():
    # 8 ranks, 4 on each of two nodes: 16 messages cross a link, and one of Sendrecv.
    own, alongside = link(16, 160), {"Sendrecv": companion(link())}
    assert judged(own, alongside, ranks=8, a_node=4).value == pytest.approx(1)
    assert judged(own, alongside, ranks=8).value == pytest.approx(16 / 7)
    # Of ranks of one node alone no message crosses a link.
    assert judged(own, alongside, ranks=8, a_node=8).value == pytest.approx(16 / 7)
    # A ring passes on one message at a time, whoever shares a node.
    ring = [judged(own, alongside, "Allgather", 8, a_node=a_node).value for a_node in (1, 4)]
    assert ring == pytest.approx([16 / 7, 16 / 7])


def test_parts_of_a_message_are_looked_up_at_their_own_size():
    # Allreduce of n: Reduce_scatter of n and Allgather of the parts of n / p.
    slow = link(1, 10, {16: 100})
    alongside = {"Reduce_scatter": companion(link()), "Allgather": companion(slow)}
    found = judged(link(1, 10, {64: 20}), alongside, "Allreduce")
    assert found.size != 64
    assert judged(link(1, 10, {64: 2000}), alongside, "Allreduce").size == 64


def test_it_names_what_its_findings_rest_on():
    found = judged(link(), {"Sendrecv": companion(link())})
    assert tuple(BY_FINDING["guideline"].rests_on("Alltoall", found)) == ("Sendrecv",)
    assert set(BY_FINDING["guideline"].others("Allreduce")) == {
        "Reduce",
        "Bcast",
        "Reduce_scatter",
        "Allgather",
    }
    assert BY_FINDING["guideline"].others("PingPong") == ()


@pytest.mark.parametrize("operation", GUIDELINES)
@pytest.mark.parametrize("messages", [True, False])
def test_a_library_that_is_slowed_down_as_a_whole_keeps_all(operation, messages):
    names = ["Sendrecv"] if messages else GUIDELINES
    found = judged(link(7, 70), {name: companion(link(7, 70)) for name in names}, operation)
    assert found is None or found.level is Level.PASS


def test_a_size_that_is_no_multiple_of_the_ranks_is_left_out():
    alongside = {"Reduce_scatter": companion(link()), "Allgather": companion(link())}
    assert "no size in common" in judged(link(), alongside, "Allreduce", ranks=3).why
