"""Guidelines: whether a collective takes longer than calls of its library that do its work."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_cases import case, only

from netproof.criteria import Level
from netproof.criteria.consistency import GUIDELINE, GUIDELINES
from netproof.criteria.interface import CaseCurves
from netproof.criteria.registry import BY_FINDING
from netproof.measurement.curve import Curve

SIZES = tuple(2**power for power in range(2, 12))


def curve(
    factor: float = 1.0, latency: float = 10.0, slow: dict[int, float] | None = None
) -> Curve:
    slow = slow or {}
    return Curve(
        SIZES, tuple((latency + factor * size / 100) * slow.get(size, 1) for size in SIZES)
    )


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


def test_a_ring_of_exchanges_does_the_work_of_an_alltoall():
    found = judged(curve(3, 30), {"Sendrecv": companion(curve())})
    assert (found.level, found.against) == (Level.PASS, EACH)
    assert found.value == pytest.approx(1)


def test_ranks_that_share_a_link_send_their_parts_over_it_in_turn():
    # 8 ranks, 4 on each of two nodes: 16 messages cross a link, and one of Sendrecv.
    own, alongside = curve(16, 160), {"Sendrecv": companion(curve())}
    assert judged(own, alongside, ranks=8, a_node=4).value == pytest.approx(1)
    assert judged(own, alongside, ranks=8).value == pytest.approx(16 / 7)
    # Of ranks of one node alone no message crosses a link.
    assert judged(own, alongside, ranks=8, a_node=8).value == pytest.approx(16 / 7)
    # A ring passes on one message at a time, whoever shares a node.
    ring = [judged(own, alongside, "Allgather", 8, a_node=a_node).value for a_node in (1, 4)]
    assert ring == pytest.approx([16 / 7, 16 / 7])


def test_the_size_at_which_it_is_slow_is_named_with_both_times():
    own = curve(3, 30, {64: 5})
    found = judged(own, {"Sendrecv": companion(curve())})
    assert (found.level, found.size) == (Level.FAIL, 64)
    assert found.value == pytest.approx(5)
    assert "Alltoall of 64 bytes took 159.6 µs, 5 times" in found.why
    assert f"{EACH}, which does its work" in found.why


def test_parts_of_a_message_are_looked_up_at_their_own_size():
    # Allreduce of n: Reduce_scatter of n and Allgather of the parts of n / p.
    slow = curve(1, 10, {16: 100})
    alongside = {"Reduce_scatter": companion(curve()), "Allgather": companion(slow)}
    found = judged(curve(1, 10, {64: 20}), alongside, "Allreduce")
    assert found.size != 64
    assert judged(curve(1, 10, {64: 2000}), alongside, "Allreduce").size == 64


def test_a_size_that_is_no_multiple_of_the_ranks_is_left_out():
    alongside = {"Reduce_scatter": companion(curve()), "Allgather": companion(curve())}
    found = judged(curve(), alongside, "Allreduce", ranks=3)
    assert found.level is Level.UNDEFINED
    assert "no size in common" in found.why


def test_what_was_not_measured_asserts_nothing():
    assert judged(curve(), {"Bcast": companion(curve())}) is None
    both = {"Sendrecv": companion(curve()), "Bcast": companion(curve())}
    assert judged(curve(), both) is None
    assert judged(curve(), {}, "Sendrecv") is None


def test_a_part_of_the_interval_below_the_bound_is_inconclusive():
    own = [curve(3, 30 * factor) for factor in (2, 6, 6.5)]
    alongside = {"Sendrecv": companion(curve(0.001), curve(0.001), curve(0.001))}
    found = judged(own[1], alongside, launches=own)
    assert found.level is Level.INCONCLUSIVE
    assert found.interval[0] < 4 < found.interval[1]


def test_a_time_of_nothing_is_no_reading():
    zero = Curve(SIZES, (0.0,) * len(SIZES))
    found = judged(curve(), {"Sendrecv": companion(zero)})
    assert found.level is Level.UNDEFINED
    assert "of Sendrecv, 0 µs at 4 bytes is no reading" in found.why


def test_by_default_an_order_of_magnitude_fails():
    settings = GUIDELINE
    assert settings.level(5)[0] is Level.WARN
    assert settings.level(11, (10.5, 12))[0] is Level.FAIL


def test_it_names_what_its_findings_rest_on():
    found = judged(curve(), {"Sendrecv": companion(curve())})
    assert tuple(BY_FINDING["guideline"].rests_on("Alltoall", found)) == ("Sendrecv",)
    assert set(BY_FINDING["guideline"].others("Allreduce")) == {
        "Reduce",
        "Bcast",
        "Reduce_scatter",
        "Allgather",
    }
    assert BY_FINDING["guideline"].others("PingPong") == ()


@pytest.mark.parametrize("operation", GUIDELINES)
@given(factor=st.floats(1.01, 50), ranks=st.sampled_from([2, 4, 8]))
def test_a_library_that_keeps_all_and_is_slowed_down_as_a_whole_is_never_flagged(
    operation, factor, ranks
):
    # Every operation as a chain of messages of all that its ranks have.
    def whole(times: float) -> CaseCurves:
        return companion(curve(factor * times, 10 * factor * times))

    alongside = {name: whole(1) for name in GUIDELINES}
    alongside["Sendrecv"] = whole(1)
    for messages in (False, True):
        sides = {name: one for name, one in alongside.items() if messages == (name == "Sendrecv")}
        found = judged(curve(factor, 10 * factor), sides, operation, ranks)
        if found is not None:
            assert found.level is Level.PASS
            assert found.value < 4
