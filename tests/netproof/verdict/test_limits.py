"""References by interval: within, beyond, containing a limit, and undefined variables."""

from __future__ import annotations

import dataclasses
import types
from pathlib import Path
from statistics import geometric_mean

import pytest
from made_measured import recorded, result_in, slowed, with_figures
from reframe.utility.sanity import reference_bounds

from netproof.criteria import Level
from netproof.measurement import twin
from netproof.measurement.case import Case, Curve
from netproof.session import job_files
from netproof.session.measured import Measured
from netproof.site import site
from netproof.site.partition import Partition
from netproof.verdict import limits
from netproof.verdict.limits import Limits, not_defined

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def pingpong() -> Measured:
    """PingPong between two nodes of a healthy switch, three launches."""
    return result_in("healthy", "PingPong").measured


def stretched(measured: Measured, *factors: float) -> Measured:
    """The case of launches that take these times as long as its first one."""
    return measured.with_launches([slowed(measured.launches[0], by) for by in factors])


def level(measured: Measured, low: float, high: float) -> Level:
    (finding,) = limits.judge(measured, {"latency_us": Limits(low, high)}, "here").values()
    return finding.level


def test_all_of_the_interval_decides_and_not_the_value(pingpong):
    case = stretched(pingpong, 1.0, 1.01, 1.02)
    latency = case.landmarks.latency_us
    assert level(case, 0, 2 * latency) is Level.PASS
    assert level(case, 0, latency / 2) is Level.FAIL
    # The value is within by a thousandth, and beyond by one: the interval says neither.
    assert level(case, 0, 1.001 * latency) is Level.INCONCLUSIVE
    assert level(case, 0, 0.999 * latency) is Level.INCONCLUSIVE


def test_a_landmark_that_has_a_reference_and_is_not_defined_does_not_pass(pingpong):
    landmarks = dataclasses.replace(
        pingpong.landmarks, peak_mb_s=None, undefined={"peak_mb_s": "no bandwidth"}
    )
    case = with_figures(pingpong, landmarks=landmarks)
    (finding,) = limits.judge(case, {"peak_mb_s": Limits(100, 120)}, "here").values()
    assert finding.level is Level.UNDEFINED
    assert "no bandwidth" in finding.why


@pytest.mark.parametrize(
    "entry",
    [(25, None, 0.4, "us"), (112, -0.1, None, "MB/s"), (0, None, None, "B"), (-5, -0.1, 0.2, "B")],
)
def test_limits_are_reckoned_as_reframe_does(entry):
    found = Limits.of_entry(entry)
    assert (found.low, found.high) == pytest.approx(reference_bounds(*entry[:3]))


def test_what_nobody_can_ask_for_has_no_finding(pingpong):
    case = with_figures(
        dataclasses.replace(pingpong, line_rate_mb_s=None),
        landmarks=dataclasses.replace(
            pingpong.landmarks, line_rate_share=None, undefined={"line_rate_share": "no link"}
        ),
    )
    assert limits.judge(case, {"line_rate_share": Limits(80, 102)}, "here") == {}
    assert limits.judge(case, {"time_us_3": Limits(0, 1)}, "here") == {}


def alongside_twin(measured: Measured, slower: float, machine: float = 1.0) -> Measured:
    """Return its launches, each ``slower`` than its twin, which has the line rate."""
    sizes, launches = (65536, 131072), []
    rate = measured.line_rate_mb_s * machine
    for launch in measured.launches:
        curve = launch.curve
        times = dict(zip(curve.sizes, curve.time_us, strict=True)) | {
            size: slower * size / rate for size in sizes
        }
        own = dataclasses.replace(curve, time_us=tuple(times[size] for size in curve.sizes))
        twin = Curve(sizes, tuple(size / rate for size in sizes), (rate, rate))
        launches.append(dataclasses.replace(launch, curves=(own,), twin=twin))
    return measured.with_launches(launches)


def of_twin(measured: Measured):
    (finding,) = limits.judge(measured, {"paired_share": Limits(80, 125)}, "here").values()
    return finding


def test_half_of_what_the_healthy_twin_carries_fails_whatever_the_machine_carries(pingpong):
    for machine in (1.0, 0.65):
        assert of_twin(alongside_twin(pingpong, 1.0, machine)).level is Level.PASS
        finding = of_twin(alongside_twin(pingpong, 2.0, machine))
        assert finding.level is Level.FAIL
        assert finding.value == pytest.approx(50)
        carried = pingpong.line_rate_mb_s * machine
        assert f"healthy twin of this link carried {carried:.4g} MB/s" in finding.why
        assert f"{machine:.0%} of the line rate" in finding.why


def test_what_carries_far_more_than_the_twin_is_another_link_and_a_slow_machine_decides_nothing(
    pingpong,
):
    assert of_twin(alongside_twin(pingpong, 0.5)).level is Level.FAIL
    for slower in (1.0, 2.0):
        finding = of_twin(alongside_twin(pingpong, slower, machine=0.5))
        assert finding.level is Level.INCONCLUSIVE
        assert "only 50% of the line rate: on a machine as slow as that" in finding.why
        assert finding.doubt == "its twin carried only 50% of the line rate"


def test_a_link_that_carries_enough_itself_is_sound_however_slow_its_twin_was(pingpong):
    assert of_twin(alongside_twin(pingpong, 0.81, machine=0.55)).level is Level.PASS
    # Beyond the bound the slow twin may be why, and one launch is not sure.
    assert of_twin(alongside_twin(pingpong, 0.7, machine=0.55)).level is Level.INCONCLUSIVE
    once = pingpong.with_launches(pingpong.launches[:1])
    assert of_twin(alongside_twin(once, 0.81, machine=0.55)).level is Level.INCONCLUSIVE


@pytest.fixture
def unlike_a_line():
    """A case over a link whose largest messages are on no line, as it was measured."""
    whole = next(one.measured for one in recorded("sick").results if one.measured)
    why = "times lie on no line"
    found = dataclasses.replace(
        whole.landmarks,
        asymptotic_mb_s=None,
        line_rate_share=None,
        undefined={"asymptotic_mb_s": why, "line_rate_share": why},
    )
    return with_figures(whole, landmarks=found)


def test_a_bound_on_a_share_that_is_not_defined_is_a_failure_with_the_reason(unlike_a_line):
    shown, asked = (0, None, None, "%"), (100, None, 0.02, "%")
    assert not_defined({"line_rate_share": shown}, unlike_a_line) == ""
    reason = not_defined({"line_rate_share": asked}, unlike_a_line)
    assert reason == (
        "the references ask for line_rate_share, which is not defined: times lie on no line"
    )
    xfail = types.SimpleNamespace(data=asked)
    assert not_defined({"line_rate_share": xfail}, unlike_a_line) == reason
    assert not_defined({"paired_share": (0, None, None, "%")}, unlike_a_line) == ""
    assert not_defined({"paired_share": (100, -0.2, 0.25, "%")}, unlike_a_line).startswith(
        "the references ask for paired_share, which is not defined"
    )
    # Nobody can ask for the share of a path that has no link, or for what takes bandwidths.
    marks = unlike_a_line.landmarks
    inside = with_figures(dataclasses.replace(unlike_a_line, line_rate_mb_s=None), landmarks=marks)
    assert not_defined({"line_rate_share": (100, None, 0.02, "%")}, inside) == ""
    collective = dataclasses.replace(inside.curve, bandwidth_mb_s=None)
    collective = with_figures(unlike_a_line, curve=collective)
    assert not_defined({"asymptotic_mb_s": (100, -0.1, None, "MB/s")}, collective) == ""


@pytest.fixture(scope="module")
def with_whole_twin() -> Measured:
    """NetPIPE over TCP, two launches with the healthy twin's next to each."""
    configuration = site.load(ROOT / "site-config" / "testbed.py")
    extras = configuration["systems"][0]["partitions"][0]["extras"]
    case = Case("testbed", "gige", "mpich", "netpipe", "tcp", 2, 1, "inter-node", "oneway")
    folder = ROOT / "tests" / "data" / "jobs" / "netpipe-twin"
    partition = Partition.model_validate(extras)
    return job_files.of_job(folder, case, partition, 2, mpi_over_tcp=True)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("latency_us", "us over messages of 1 to 48 bytes ("),
        ("peak_mb_s", "MB/s at {peak} bytes ("),
        ("rate_64_kib_mb_s", "MB/s ("),
        ("asymptotic_mb_s", "MB/s over messages of {eighth} to {last} bytes ("),
    ],
)
def test_a_sentence_has_the_sizes_behind_a_value(with_whole_twin, name, said):
    last = with_whole_twin.curve.sizes[-1]
    sizes = {"peak": with_whole_twin.landmarks.peak_size, "last": last, "eighth": last // 8}
    found = limits.judge(with_whole_twin, {name: Limits(0, 1)}, "it")[name]
    assert said.format(**sizes) in found.why


def test_landmarks_are_compared_with_the_twin_launch_by_launch(with_whole_twin):
    ratios = with_whole_twin.of_twin
    assert set(ratios) == set(twin.VARIABLES)
    first, *_ = with_whole_twin.launches
    times = dict(zip(first.curve.sizes, first.curve.time_us, strict=True))
    of_twin = dict(zip(first.twin.sizes, first.twin.time_us, strict=True))
    assert ratios["paired_rate_4_kib"][0] == pytest.approx(of_twin[4096] / times[4096])
    found = limits.variables(with_whole_twin)["paired_rate_4_kib"]
    assert found == (
        pytest.approx(100 * geometric_mean(ratios["paired_rate_4_kib"]), abs=0.01),
        "%",
    )
    (finding,) = limits.judge(with_whole_twin, {"paired_latency": Limits(0, 1)}, "here").values()
    assert finding.level is Level.FAIL
    assert "paired_latency is" in finding.why
    assert "relative to the healthy twin of this link" in finding.why
