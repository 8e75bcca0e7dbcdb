"""A spike between two sizes: looked for where a curve bends, found, named, and ruled on.

The curves are recorded ones of a healthy switch. What a launch would have measured between their
sizes is on the line between two neighbours, and a spike is planted into both.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from bisect import bisect_right

import pytest
from made_measured import result_in, slowed, slower

from netproof.criteria import Level
from netproof.measurement.case import Curve
from netproof.measurement.disturbance import NodeLoad
from netproof.session.measured import Launch
from netproof.session.session import CheckResult
from netproof.verdict import confirmations, engine
from netproof.verdict.engine import Subject

ON = {"slopes": 0.5}


@pytest.fixture(autouse=True)
def many_places(monkeypatch):
    monkeypatch.setattr(confirmations, "MOST_PLACES", 6)


BUSY = NodeLoad("gige-1", "m", 2, 1.0, 0.8, 0.4, 0.0, 0.0, 0.5, 0.0)
SPIKE = 5200


def spike(size: float) -> float:
    """Up to 40 times as slow at 5200 bytes, 1.6 times at 4096 and 1.2 times at 6144."""
    return 1 + 39 * math.exp(-((math.log(size / SPIKE) / 0.117) ** 2))


def healthy(size: float) -> float:
    return 1.0


def between(curve: Curve, sizes: tuple[int, ...]) -> Curve:
    """The curve at other sizes, on straight lines of its logarithms."""
    times = []
    for size in sizes:
        at = min(max(bisect_right(curve.sizes, size), 1), len(curve.sizes) - 1)
        (low, high), (before, after) = curve.sizes[at - 1 : at + 1], curve.time_us[at - 1 : at + 1]
        share = math.log(size / low) / math.log(high / low)
        times.append(before * (after / before) ** share)
    rates = None
    if curve.bandwidth_mb_s is not None:
        rates = tuple(size / time for size, time in zip(sizes, times, strict=True))
    return Curve(sizes, tuple(times), rates)


def subject_of(result, how=healthy, refine=ON, known=None) -> Subject:
    measured = result.measured
    extras = {**result.extras["partition_extras"], "criteria": {}}
    if refine:
        extras["criteria"]["refine"] = refine
    return Subject.of_extras(slower(measured, how), extras, {"known": known or {}})


def again_of(
    subject: Subject, result, how=healthy, count=3, faults=(), loads=()
) -> tuple[Launch, ...]:
    """The recorded launches at closer sizes, ``how`` much slower there."""
    sizes = tuple(sorted({*itertools.chain(*confirmations.closer_sizes(subject))}))
    recorded = [one.curve for one in result.measured.launches]
    curves = [between(one, sizes) for one in (recorded * count)[:count]]
    several = itertools.zip_longest(curves, loads, fillvalue=())
    return (
        *(slowed(Launch(1, 0, 0.0, 0.0, (), (curve,), load), how) for curve, load in several),
        *(Launch(1, 0, 0.0, 0.0, (), (), said=fault) for fault in faults),
    )


@pytest.fixture(scope="module")
def result() -> CheckResult:
    """PingPong of Intel MPI between two nodes of a healthy switch, three launches."""
    return result_in("healthy", "PingPong", "intelmpi")


@pytest.fixture(scope="module")
def spiked(result) -> Subject:
    return subject_of(result, spike)


def test_a_spike_between_two_sizes_is_red_and_named(spiked, result):
    again = again_of(spiked, result, spike)
    (finding,) = confirmations.closer_findings(spiked, again)
    assert finding.level is Level.FAIL
    assert finding.size == 5161
    assert finding.why.startswith(
        f"{spiked}: at 5161 bytes, between the 4096 and 8192 bytes of its curve, "
    )
    assert "3 of 3 launches at closer sizes show it on gige-1, gige-2, job 2" in finding.why
    assert "Looked for since the slopes next to" in finding.why
    assert finding in confirmations.rule_all(spiked, engine.along(spiked), again)
    assert confirmations.failed(spiked, (), again, 9)


def test_places_near_a_flagged_size_are_not_looked_at_as_they_are_measured_closer_anyway(result):
    sizes = result.measured.curve.sizes
    subject = subject_of(result, lambda size: 40.0 if size == 8192 else 3.0 if size == 256 else 1.0)
    flagged = {one.size for one in confirmations.flagged(engine.smoothness(subject))} - {None}
    assert 8192 in flagged
    assert 256 not in flagged
    found = [one.size for one in confirmations.places(subject)]
    near = {size for size in sizes for at in flagged if at / 2 <= size <= 2 * at}
    assert found
    assert near.isdisjoint(found)
    # Nor where no criterion judges.
    names = ("inversion", "jump", "dropout")
    nothing = {
        name: dataclasses.replace(getattr(subject.settings, name), warn=None, fail=None)
        for name in names
    }
    settings = dataclasses.replace(subject.settings, **nothing)
    assert confirmations.places(dataclasses.replace(subject, settings=settings)) == ()


def test_what_was_not_measured_at_closer_sizes_is_shown(spiked, result):
    curve = between(spiked.measured.curve, (64, 96, 128))
    elsewhere = (Launch(1, 0, 0.0, 0.0, (), (curve,)),)
    for again in (None, elsewhere):
        findings = confirmations.closer_findings(spiked, again)
        assert findings
        assert {one.level for one in findings} == {Level.SHOWN}
        assert all("it was not measured at closer sizes. Looked" in one.why for one in findings)
    assert not confirmations.closer_settled(spiked, None, 9)


def test_launches_that_are_not_complete_leave_it_open(spiked, result):
    few = again_of(spiked, result, spike, count=2, faults=("step x.3 hung",))
    none = again_of(spiked, result, spike, count=0, faults=("a", "b", "c"))
    for again, said in ((few, "Step x.3 hung"), (none, "A. B. C")):
        findings = confirmations.closer_findings(spiked, again)
        assert findings
        assert {one.level for one in findings} == {Level.INCONCLUSIVE}
        assert all(one.why.endswith(said) for one in findings)
        assert not confirmations.failed(spiked, (), again, 3)
    assert not confirmations.closer_settled(spiked, few, 9)
    assert confirmations.closer_settled(spiked, few, 3)
    assert not confirmations.closer_settled(spiked, again_of(spiked, result, spike, count=2), 9)
    assert confirmations.closer_settled(spiked, again_of(spiked, result, spike), 9)


def test_what_only_disturbed_launches_show_is_inconclusive(spiked, result):
    all_busy = again_of(spiked, result, spike, loads=((BUSY,),) * 3)
    some = again_of(spiked, result, spike, loads=((BUSY,), (), ()))
    for again in (all_busy, some):
        (finding,) = confirmations.closer_findings(spiked, again)
        assert finding.level is Level.INCONCLUSIVE
        assert "The machine was disturbed: gige-1: others used 40 % of the CPUs" in finding.why
    assert confirmations.closer_settled(spiked, all_busy, 9)
    assert not confirmations.closer_settled(spiked, some, 9)
    quiet = again_of(spiked, result, spike, count=4, loads=((BUSY,), (), (), ()))
    (finding,) = confirmations.closer_findings(spiked, quiet)
    assert finding.level is Level.FAIL
    assert "3 of 3 launches" in finding.why
