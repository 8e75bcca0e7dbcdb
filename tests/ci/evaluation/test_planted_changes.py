"""Changes that are planted into recorded sessions."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest

from ci.evaluation import __main__ as evaluate
from ci.evaluation import histories, pair_power, power, scale
from ci.evaluation.histories import AFTER, BEFORE, NORMAL, Size
from ci.evaluation.pair_power import (
    HEALTHY,
    ROUNDS,
    Fault,
    Portion,
    follow,
    needed,
    quick,
)
from ci.evaluation.scale import ROOT, Recorded
from netproof import codec
from netproof.criteria import Level
from netproof.errors import NetproofError
from netproof.measurement.case import Curve
from netproof.session import records, session
from netproof.session.measured import Measured
from netproof.site.matrix import Matrix
from netproof.site.partition import ScoreBaseline
from netproof.verdict import derive, session_verdict
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
    return next(one for one in power.PLANTED if name in one.said)


def test_a_change_slows_the_sizes_that_it_is_of(recorded):
    curve = Curve((512, 1024, 2048), (1.0, 2.0, 3.0), (512.0, 512.0, 682.0))
    slower = power.Plant(said="x", of={}, times=4, sizes=(1024, 1024)).changing(
        measured_of(recorded)
    )
    assert slower(curve).time_us == (1.0, 8.0, 3.0)
    assert slower(curve).bandwidth_mb_s == (512.0, 128.0, 682.0)


def test_less_bandwidth_is_that_much_less_at_large_sizes_and_nothing_at_the_shortest(recorded):
    measured = measured_of(recorded)
    slow = power.Plant(said="x", of={}, bandwidth=0.8).into(measured)
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
def test_the_tables_count_sessions_and_cases(recorded, capsys):
    power.print_false([recorded])
    enough = power.print_planted([recorded])
    text = capsys.readouterr().out
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
    less = power.Plant(said="x", of={"path": "inter-node"}, bandwidth=0.8, floor=0.1)
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


# The benchmark of change detection finds what it put there, and its aims are met.

SIZE = Size(150, 200, 300)
THRESHOLD = 2e-3


def least(aim: float) -> float:
    """The least share of so many series that an aim still explains, at 3 standard deviations."""
    return aim - 3 * math.sqrt(aim * (1 - aim) / SIZE.series)


@pytest.fixture(scope="module")
def five_percent():
    change = histories.changed(BEFORE, AFTER, histories.step(0.05))
    return histories.found(THRESHOLD, NORMAL, SIZE, change)


@pytest.mark.slow
def test_a_step_of_5_percent_is_found_as_often_as_it_is_to_be(five_percent):
    assert five_percent.within(3) >= least(0.80)
    assert five_percent.within(4) >= least(0.93)
    assert five_percent.within(1) <= 0.02


@pytest.mark.slow
def test_false_alarms_come_at_the_rate_that_the_threshold_is_brought_to():
    found, nights = histories.false_alarms(NORMAL, SIZE, THRESHOLD, BEFORE, seed=1)
    expected = histories.TARGET * nights
    assert found == pytest.approx(expected, abs=4 * math.sqrt(expected))


def test_every_table_has_rows():
    rows = histories.rows(histories.SMOKE)
    assert {table for table, *_ in rows} == set(histories.HEADS)


# The simulation makes its pair rounds, and netproof finds faults as soon as documented.

HALF = Fault("node", 1, 0.5)


def test_a_fault_slows_what_it_is_of():
    one, other = np.array([0, 1, 2, 0]), np.array([5, 3, 3, 1])
    slowed = {
        kind: (Fault(kind, 1, 0.5).slowness(one, other, 2) > 0).tolist()
        for kind in ("node", "pair", "uplink")
    }
    assert slowed == {
        "node": [True, False, False, True],
        "pair": [False, False, False, True],
        "uplink": [True, True, False, False],
    }
    assert Fault("node", 2, 0.5).slowness(one, other, 2).tolist() == pytest.approx(
        [np.log(2), np.log(2), 0, np.log(2)]
    )


@pytest.mark.slow
def test_half_rate_is_found_where_it_is():
    runs = [follow(64, HALF, "normal", (1, number)) for number in range(10)]
    assert needed([run.right for run in runs], 0.9) <= 3
    assert not any(run.wrong for run in runs)


@pytest.mark.slow
def test_recorded_noise_accuses_nobody():
    runs = [follow(16, HEALTHY, "recorded", (2, number)) for number in range(6)]
    assert not any(run.wrong for run in runs)


def test_a_pair_is_found_by_measuring_it_again():
    run, rounds = quick(16, Fault("pair", 1, 0.5), "normal", (3, 1))
    assert run.right is not None
    assert run.right <= rounds <= ROUNDS
    assert not run.wrong


def test_99_percent_are_there_or_it_is_never():
    assert needed([2] * 99 + [None]) == 2
    assert needed([2] * 98 + [3, None]) == 3
    assert needed([2] * 98 + [None, None]) is None


@pytest.mark.slow
def test_tables_and_chart_are_of_what_was_simulated(tmp_path):
    for fault in (HALF, HEALTHY):
        portion = Portion("random", 16, fault, "normal", 2)
        (tmp_path / f"{portion.name}.json").write_text(json.dumps(portion.simulate(60)))
    found = pair_power.results(tmp_path)
    lines = list(pair_power.tables(found))
    assert any("| normal | 1 node | 16 |" in line for line in lines)
    assert any(line.startswith("| normal | 16 | 2 | 0 | 0.000 to 84.189 % |") for line in lines)
    pair_power.chart(found, tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").read_text().startswith("<svg")


# A session made larger is whole: every case that its site expects is there, and passes.

REFERENCES = ROOT / "reference-values" / "testbed.yaml"


@pytest.fixture
def made(tmp_path, monkeypatch):
    found = scale.make(tmp_path, Recorded(scale.SMALL), 24, REFERENCES)
    for name, value in found.environment().items():
        monkeypatch.setenv(name, value)
    return found


def test_a_session_of_copies_is_measured_as_its_site_expects_it(made):
    judged = session_verdict.judge_session(session.load(made.report))
    assert made.cases == 24
    assert len(judged.matrix.cases) == 24
    assert {one.case.partition for one in judged.verdict.cases} == {"gige", "gigec1", "gigec2"}
    assert [one.findings for one in judged.verdict.cases if one.result.measured is None] == []


def test_a_copy_has_nodes_and_records_of_its_own(made):
    measured = [one.measured for one in session.load(made.report).results if one.measured]
    named = {node for one in measured for node in one.launches[0].ranks}
    assert named == {f"gige{copy}-{node}" for copy in ("", "c1", "c2") for node in (1, 2)}
    paths = [*made.report.parent.glob("session-*/*.json")]
    assert len(paths) == 24 + 1
    path = next(path for path in paths if path.name != records.HEADER)
    path.write_text(path.read_text() + " ")
    with pytest.raises(NetproofError, match="SHA-256"):
        session.load(made.report)


def test_earlier_sessions_are_the_same_on_other_days(made):
    now = session.load(made.report)
    for days, path in enumerate(made.earlier, 1):
        before = session.load(Path(path))
        assert before.info["time_start_unix"] == now.info["time_start_unix"] - 86400 * days
        assert before.info["uuid"] != now.info["uuid"]
        assert len(before.results) == len(now.results)


@pytest.mark.slow
def test_it_prints_what_the_verbs_take(tmp_path, capsys):
    verbs = ["verdict", "store add", "stored verdict"]
    words = ["--cases", "16", "--verbs", *verbs, "--keep", str(tmp_path)]
    assert evaluate.main(["scale", *words]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[2] == "|  | 16 | exponent |"
    assert [line.split(" | ")[0] for line in table[4:-1]] == [f"| {verb}" for verb in verbs]
    report = json.loads((tmp_path / "cases-16" / "reports" / "run-1.json").read_text())
    assert report["session_info"]["num_cases"] == 18
