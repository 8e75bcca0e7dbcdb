"""Changes that are planted into recorded sessions."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import pytest
from rich.console import Console

from ci.evaluation import __main__ as evaluate
from ci.evaluation import power
from netproof import codec
from netproof.criteria import Level
from netproof.measurement.case import Curve
from netproof.session import session
from netproof.session.measured import Measured
from netproof.site.matrix import Matrix
from netproof.site.partition import ScoreBaseline
from netproof.verdict import derive
from netproof.verdict.judge import judge

SESSIONS = Path(__file__).resolve().parents[2] / "data" / "sessions"


@pytest.fixture(scope="module")
def recorded() -> power.Recorded:
    """PingPong and NetPIPE of two environments on two healthy switches, three launches each."""
    stored = session.load(SESSIONS / "healthy.json")
    cases = tuple(one.case for one in stored.results if one.case is not None)
    matrix = Matrix(cases, (), True, {}, {}, ScoreBaseline("gige", "mpich"), frozenset())
    return power.Recorded(stored, matrix, judge(matrix, stored), None)


def measured_of(recorded: power.Recorded) -> Measured:
    """Measurement by NetPIPE over TCP between nodes."""
    (found, *_) = [
        one.measured
        for one in recorded.session.results
        if one.case.function == "tcp" and one.case.path == "inter-node"
    ]
    return codec.decode_part(Measured, found, "a case")


def plant(recorded: power.Recorded, name: str) -> power.Plant:
    return next(one for one in power.plants(recorded.matrix) if name in one.name)


def test_a_change_slows_the_sizes_that_it_is_of(recorded):
    curve = Curve((512, 1024, 2048), (1.0, 2.0, 3.0), (512.0, 512.0, 682.0))
    slower = power.longer(4, 1024, 1024)(measured_of(recorded))
    assert slower(curve).time_us == (1.0, 8.0, 3.0)
    assert slower(curve).bandwidth_mb_s == (512.0, 128.0, 682.0)


def test_less_bandwidth_is_that_much_less_at_large_sizes_and_nothing_at_the_shortest(recorded):
    measured = measured_of(recorded)
    slow = power.Plant("x", lambda case: True, power.less_bandwidth(0.2)).into(measured)
    share = slow.curve.bandwidth_mb_s[-1] / measured.curve.bandwidth_mb_s[-1]
    assert share == pytest.approx(0.8, abs=0.01)
    first = slow.curve.time_us[0] / measured.curve.time_us[0]
    assert first == pytest.approx(1, abs=0.01)


def test_a_spike_is_found_in_the_cases_that_have_it_and_in_no_other(recorded):
    verdict, having = recorded.judged_with(plant(recorded, "20 times slower at 2 KiB"))
    new = set(power.red(verdict)) - set(power.red(recorded.verdict))
    assert having
    assert new & having
    over_mpi = {one.case.key() for one in recorded.verdict.cases if one.case.function == "mpi"}
    assert having == over_mpi


def test_a_benchmark_that_is_slow_at_all_sizes_disagrees_with_the_other(recorded):
    verdict, having = recorded.judged_with(plant(recorded, "IMB of the score baseline 3 times"))
    new = [one for key, one in power.red(verdict).items() if key in having]
    assert new
    assert set(power.criteria_of(new)) == {"agreement"}
    assert any("common sizes" in why for one in new for why in one.said(Level.FAIL))


@pytest.mark.slow
def test_the_tables_count_sessions_and_cases(recorded):
    out = Console(file=io.StringIO(), width=300)
    power.print_false([recorded], out)
    enough = power.print_planted([recorded], out)
    text = out.file.getvalue()
    assert "| criterion, nothing planted | fail | inconclusive | warn | pass |" in text
    assert "| NetPIPE over MPI 20 times slower at 2 KiB | as they stand | 1 of 1 | - |" in text
    alltoall = "Alltoall 4 times slower from 32 to 64 KiB, one MPI"
    assert f"| {alltoall} | as they stand | 0 of 1 | - | 0 | 0 of 0 | - |" in text
    assert (
        "| 5% less bandwidth between nodes | derived, at least ±2.5% | takes 4 sessions |" in text
    )
    assert not enough


@pytest.fixture
def several(recorded, monkeypatch) -> list[power.Recorded]:
    """As many sessions as derived references take, which agree to the last digit."""
    monkeypatch.setenv("RFM_REFERENCE_PREFIX", str(SESSIONS.parents[2] / "reference-values"))
    count = derive.LEAST_SESSIONS + 1
    return [
        dataclasses.replace(
            recorded,
            session=dataclasses.replace(
                recorded.session, info={**recorded.session.info, "uuid": str(number)}
            ),
        )
        for number in range(count)
    ]


@pytest.mark.slow
def test_references_of_the_other_sessions_find_what_is_beyond_their_tolerance(several):
    first, *others = several
    first = first.by_derived(others, 0.1)
    assert not any("reference" in power.criteria_of([one]) for one in first.verdict.cases)
    less = power.Plant("x", lambda case: case.path == "inter-node", power.less_bandwidth(0.2), 0.1)
    verdict, having = first.judged_with(less)
    new = [
        one
        for key, one in power.red(verdict).items()
        if key in having and key not in power.red(first.verdict)
    ]
    assert power.criteria_of(new)["reference"]


def test_a_session_that_is_none_cannot_be_judged(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RFM_CONFIG_PATH", str(SESSIONS.parents[2] / "site-config"))
    monkeypatch.setenv("RFM_REFERENCE_PREFIX", str(SESSIONS.parents[2] / "reference-values"))
    broken = tmp_path / "run-1.json"
    broken.write_text("{")
    assert evaluate.main(["power", str(broken)]) == 2
    assert "ci/evaluate power: " in capsys.readouterr().err
