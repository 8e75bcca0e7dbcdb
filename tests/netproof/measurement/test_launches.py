from __future__ import annotations

import types
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_ranks import rank

from netproof.errors import NetproofError, ParseError
from netproof.measurement import twin
from netproof.measurement.case import Case, Curve, median_curve, spread
from netproof.measurement.disturbance import paces, unlike
from netproof.session import job_files


def curve_of(*times, sizes=(1, 64, 1024), bandwidth=None):
    return Curve(sizes, times, bandwidth)


def test_a_case_has_medians_of_the_launches_and_their_spread():
    launches = [curve_of(10, 12, 20), curve_of(11, 900, 21), curve_of(12, 13, 22)]
    assert median_curve(launches).time_us == (11, 13, 21)
    assert median_curve(launches[::2]).time_us == (11, 12.5, 21)
    launches = [curve_of(1, 2, 3, bandwidth=(b, 2 * b, 3 * b)) for b in (10.0, 30.0, 20.0)]
    assert median_curve(launches).bandwidth_mb_s == (20.0, 40.0, 60.0)
    launches = [
        ranged((5, 9), (1, 3), (4, 5)),
        ranged((6, 7), (2, 2), (3, 6)),
        ranged((7, 8), (3, 4), (5, 4)),
    ]
    assert median_curve(launches) == ranged((6, 8), (2, 3), (4, 5))
    assert (median_curve(launches[:1]), spread(launches[:1])) == (launches[0], (0, 0))
    # The spread is the unscaled median distance from the median.
    launches = [curve_of(10, 5, 1), curve_of(13, 5, 1), curve_of(20, 5, 9)]
    assert spread(launches) == (3, 0, 0)


ONE = curve_of(1, 2, 3)


@pytest.mark.parametrize(
    ("launches", "said"),
    [
        ([ONE, curve_of(1, 2, sizes=(1, 1024))], "launch 2 of 2 .* lacks 64 bytes"),
        ([ONE, curve_of(1, 2, 3, sizes=(1, 64, 2048))], "lacks 1024 and also has 2048 bytes"),
        ([curve_of(1, 2, 3, bandwidth=(1.0, 2.0, 3.0)), ONE], "launch 2 of 2 has no bandwidth"),
        (
            [Curve((1, 64), (5, 9), None, (1, 3), (4, 5)), curve_of(5, 9, sizes=(1, 64))],
            "launch 2 of 2 has no time of the fastest rank",
        ),
        ([], "without a launch"),
    ],
)
@pytest.mark.parametrize("statistic", [median_curve, spread])
def test_launches_that_measured_something_else_are_refused(statistic, launches, said):
    with pytest.raises(NetproofError, match=said):
        statistic(launches)
    with pytest.raises(NetproofError, match="the fastest rank's time and the mean, or neither"):
        ranged((5, 9), (1, 3), None)


def ranged(slowest, fastest, mean):
    return Curve((1, 64), slowest, None, fastest, mean)


# Share of a healthy twin that a link carries: pair by pair, whatever the machine does to both.

SIZES = (65536, 131072, 262144, 393216, 524288)
factors = st.floats(0.2, 5.0)


def link(mb_s: float, sizes: tuple[int, ...] = SIZES) -> Curve:
    """Return the curve of a link with this rate and no latency."""
    return Curve(sizes, tuple(size / mb_s for size in sizes), (mb_s,) * len(sizes))


@given(st.lists(factors, min_size=2, max_size=12), st.floats(0.1, 2.0))
def test_what_slows_a_launch_and_its_twin_alike_cancels(machine, share):
    pairs = [(link(100 * share * slow), link(100 * slow, SIZES[2:])) for slow in machine]
    found = twin.compared(pairs)
    assert found["paired_share"] == (pytest.approx(share), pytest.approx((share, share)))


@pytest.mark.parametrize(
    "alongside",
    [None, link(100, (262145,)), Curve((262144,), (0.0,), (100.0,)), Curve((262144,), (1.0,))],
)
def test_there_is_none_unless_every_launch_has_a_twin_of_its_sizes(alongside):
    assert twin.compared([(link(50), link(100, SIZES[2:])), (link(50), alongside)]) is None
    assert twin.compared([]) is None


POWERS = (1, 2, 4, 65536, 131072)


@pytest.mark.parametrize("messages", [0.5, 2.0])
def test_a_launch_whose_time_is_of_other_than_one_message_is_compared_with_as_many(messages):
    """osu_bibw's time is of half a message each way, that of IMB's Exchange of two."""
    times = tuple(messages * size / 100 for size in POWERS)
    counted = Curve(POWERS, times, (200.0,) * len(POWERS))
    alongside = twin.alike(link(100, (1, 2, 3, 4, 6, *SIZES[:2])), counted, messages)
    assert (alongside.sizes, alongside.time_us) == (POWERS, pytest.approx(times))
    assert alongside.bandwidth_mb_s == pytest.approx((200.0,) * len(POWERS))
    found = twin.compared([(counted, alongside)])
    assert [value for value, _ in found.values()] == pytest.approx((200, 1))


def test_without_bandwidth_times_are_compared_and_an_empty_message_with_the_least():
    collective = Curve((4, 65536, 131072), (30.0, 1000.0, 2000.0))
    alongside = twin.alike(link(131.072), collective)
    assert alongside.sizes == (65536, 131072)
    found = twin.compared([(collective, alongside)])
    assert found["paired_share"][0] == pytest.approx(0.5)
    assert found["paired_mb_s"][0] == pytest.approx(131.072)
    barrier = Curve((0,), (60.0,))
    alongside = twin.alike(Curve((1, 2, 3), (20.0, 21.0, 22.0), (1.0, 1.0, 1.0)), barrier)
    assert alongside == Curve((0,), (20.0,))
    assert twin.compared([(barrier, alongside)]) is None


# How far the CPUs of a node are apart, as a launch's step reports it.

ERRORS = Path("mpi-intra-node-oneway.1.err")


def test_it_is_read_from_among_other_lines_and_what_is_not_known_has_its_reason():
    text = "netproof rank 0 on n1: 1 s wall\nnetproof pace on n1\t148\tend\nmore\n"
    assert paces(ERRORS, text) == (148.0,)
    assert paces(ERRORS, "netproof rank 0 on n1: 1 s wall\n") == ()
    before = "netproof pace on n1\t25\tend\n"
    assert paces(ERRORS, before + text) == (25.0, 148.0)
    text = "netproof pace on n1\tabsent: pace: there is one CPU\tend\n"
    assert paces(ERRORS, text) == ("pace: there is one CPU",)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("netproof pace on n1\t14", "it is not whole"),
        ("netproof pace on n1\t\tend", "it is not whole"),
        ("netproof pace on n1\t0\tend", "no time in ns"),
        ("netproof pace on n1\t1e999\tend", "no time in ns"),
        ("\n".join(["netproof pace on n1\t1\tend"] * 3), "a pace more than 2 of one launch"),
    ],
)
def test_what_is_damaged_is_refused(text, why):
    with pytest.raises(ParseError, match=why):
        paces(ERRORS, text)


def test_launches_are_compared_where_the_cpus_were_as_far_apart():
    near, far = {"mpich": (25.0, 25.0)}, {"intelmpi": (148.0, 148.0)}
    assert unlike({**near, "intelmpi": (30.0, 30.0)}, 1.5) == ""
    assert "25 ns apart for mpich and 148 ns for intelmpi" in unlike({**near, **far}, 1.5)
    assert unlike({**far, **near}, 1.5) == unlike({**near, **far}, 1.5)
    assert unlike({**far, "mpich": ()}, 1.5) == ""
    assert "not known: none" in unlike({**near, "intelmpi": ("none",)}, 1.5)


@pytest.mark.parametrize(("count", "whole"), [(0, False), (1, False), (2, True)])
def test_a_launch_inside_a_node_has_a_pace_for_both_halves(tmp_path, monkeypatch, count, whole):
    case = Case("s", "p", "e", "netpipe", "mpi", 2, 2, path="intra-node")
    launch = types.SimpleNamespace(paces=(25.0,) * count)
    partition = types.SimpleNamespace(pace=["pace"])
    (tmp_path / job_files.LAUNCHES_FILE).write_text(f"{job_files.LAUNCHES_HEADER}\n")
    monkeypatch.setattr(job_files.JobFolder, "launch", lambda *asked: launch)
    job, step = job_files.JobFolder(tmp_path), "mpi-intra-node-oneway.1"
    if whole:
        assert job.whole_launch(step, case, partition, (1,), with_twin=False) is launch
        return
    with pytest.raises(job_files.Incomplete, match=rf"{step}\.err: .* node's pace {count} times"):
        job.whole_launch(step, case, partition, (1,), with_twin=False)


@pytest.mark.parametrize(
    ("command", "nodes", "want"),
    [
        ("echo 25 148", "1", (25.0, 148.0)),
        ("printf '2 CPUs\\nneeded\\n' >&2; exit 1", "1", ("2 CPUs needed",) * 2),
        ("echo 148", "1", ("148",) * 2),
        # It gets "watch", and ends when the launch did.
        ('echo "$(cat)25" "${1/watch/148}"', "1", (25.0, 148.0)),
        ("true", "1", ("the command said nothing",) * 2),
        ("echo 25 148", "2", ()),
        (None, "1", ()),
    ],
)
def test_a_rank_has_it_watched_while_a_launch_inside_one_node_runs(tmp_path, command, nodes, want):
    if command is not None:
        (tmp_path / "pace.sh").write_text(f"{command}\n")
    ran = rank(tmp_path, "true", SLURM_STEP_NUM_NODES=nodes)
    assert ran.returncode == 0
    assert paces(ERRORS, ran.stderr) == want
