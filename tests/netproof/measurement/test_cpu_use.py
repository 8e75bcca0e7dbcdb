"""CPU cost of a case: starting and ending subtracted, per GB, per message, asleep or not."""

from __future__ import annotations

import dataclasses

import pytest

from netproof.measurement.disturbance import (
    FIGURES,
    NO_STARTS,
    NodeCost,
    NodeLoad,
    Use,
    costliest,
    interrupts_s,
    node_costs,
)

NAMES = (
    *("ranks", "wall_s", "cpu_s", "user_s", "system_s", "interrupts_s", "sharing", "awake_s"),
    "slept",
)
START = dict(zip(NAMES, (1, 0.5, 0.3, 0.2, 0.1, 0.05, 1, 0.4, 10), strict=True))
SENT = 10**9, 1000


def launch(cpu_s: float, node: str = "n1", **changed: object) -> dict[str, Use]:
    """A launch of 2.5 s, four fifths of its CPU time in the kernel, asleep most of the time."""
    took = (1, 2.5, cpu_s, 0.2 * cpu_s, 0.8 * cpu_s, 0.25, 1, cpu_s + 0.1, 1010)
    return {node: dict(zip(NAMES, took, strict=True)) | changed}


def costs(
    uses: list[dict[str, Use]], starts: list[dict[str, Use]], sent: object = SENT
) -> list[NodeCost]:
    return list(node_costs(uses, starts, [sent] * len(uses)))


def test_the_median_of_starting_and_ending_is_taken_off():
    starts = [{"n1": START | {"cpu_s": cpu_s}} for cpu_s in (0.1, 0.3, 0.9)]
    (cost,) = costs([launch(1.3), launch(1.1), launch(9.0)], starts)
    assert (cost.start_s, cost.cpu_s, cost.seconds) == pytest.approx((0.3, 1.0, 2.0))
    assert cost.cores == pytest.approx(0.5)
    assert cost.user_s == pytest.approx(0.26 - 0.2)
    assert cost.system_s == pytest.approx(1.04 - 0.1)
    assert cost.interrupts_s == pytest.approx(0.2)


def test_what_is_not_known_has_its_reason():
    (without,) = costs([launch(1.3)], [])
    assert {without.why(name) for name in FIGURES} == {NO_STARTS}
    (elsewhere,) = costs([launch(1.3)], [{"n2": START}])
    assert elsewhere.why("cores") == "none of these launches ran on n1"
    (short,) = costs([launch(0.2)], [{"n1": START}])
    assert short.cpu_s is None
    assert "no more than those that only start and end, 0.3 CPU s in 0.5 s" in short.why("s_per_gb")
    (threads,) = costs([launch(4.3, awake_s=4.5)], [{"n1": START}])
    assert threads.asleep_share is None
    assert "several threads" in threads.why("asleep_share")
    bare = {"user_s": None, "system_s": None, "interrupts_s": None, "awake_s": None, "slept": None}
    (old,) = costs([launch(1.3, **bare)], [{"n1": START}])
    assert old.cores is not None
    assert dict(old.absent).keys() == {
        *("user_s", "system_s", "interrupts_s", "asleep_share", "slept_per_message")
    }


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ("osu_bw does not print how often it sends", "osu_bw does not"),
        ((0, 0), "it sends no data"),
    ],
)
def test_without_messages_there_is_no_cost_of_one(sent, why):
    (cost,) = costs([launch(1.3)], [{"n1": START}], sent)
    assert cost.cores is not None
    assert (cost.s_per_gb, cost.us_per_message, cost.slept_per_message) == (None, None, None)
    assert why in cost.why("us_per_message")


def test_the_costliest_node_is_the_one_that_spent_most_of_those_that_are_known():
    known = costs([launch(1.3) | launch(2.3, "n2")], [{"n1": START}])
    assert known[1].cpu_s is None, "no launch that only starts and ends ran there"
    assert costliest(known).node == "n1"
    assert costliest(costs([launch(1.3)], [])).node == "n1"


def test_interrupts_are_those_of_all_cpus_of_the_machine():
    load = NodeLoad("n1", "m", 4, 2.0, 0.0, 0.0, 0.25, 0.0, 0.0, 0.0)
    assert interrupts_s(load) == pytest.approx(2.0)
    assert interrupts_s(dataclasses.replace(load, network_share=None)) is None
