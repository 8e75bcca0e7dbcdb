"""Changes that are planted into recorded sessions."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from ci.evaluation import __main__ as evaluate
from ci.evaluation import histories, power, scale
from ci.evaluation.histories import AFTER, BEFORE, NORMAL, Size
from ci.evaluation.pair_power import ROUNDS, Portion, needed
from ci.evaluation.scale import ROOT, Recorded
from netproof.errors import NetproofError
from netproof.session import records, session
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


@pytest.mark.slow
def test_the_tables_count_sessions_and_cases(recorded, capsys, monkeypatch):
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
    # Sessions that agree to the last digit have references that fail none of them.
    monkeypatch.setenv("RFM_REFERENCE_PREFIX", str(ROOT / "reference-values"))
    infos = ({**recorded.session.info, "uuid": str(n)} for n in range(derive.LEAST_SESSIONS))
    sessions = (dataclasses.replace(recorded.session, info=info) for info in infos)
    others = [dataclasses.replace(recorded, session=session) for session in sessions]
    by_others = recorded.by_derived(others, 0.1)
    assert "reference" not in power.criteria_of(power.red(by_others.verdict).values())
    less = power.Plant(said="x", of={"path": "inter-node"}, bandwidth=0.8)
    verdict, having = by_others.judged_with(less)
    red = [one for key, one in power.red(verdict).items() if key in having]
    assert power.criteria_of(red)["reference"]


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


@pytest.mark.slow
def test_a_step_of_5_percent_is_found_and_false_alarms_are_as_rare_as_they_are_to_be():
    nights = histories.found(THRESHOLD, NORMAL, SIZE, histories.changed(BEFORE, AFTER, 0.05))
    for within, aim in ((3, 0.80), (4, 0.93)):
        # The least share of so many series that an aim still explains, at 3 standard deviations.
        least = aim - 3 * math.sqrt(aim * (1 - aim) / SIZE.series)
        assert histories.within(nights, within) >= least
    assert histories.within(nights, 1) <= 0.02
    found, of_nights = histories.false_alarms(NORMAL, SIZE, THRESHOLD, BEFORE, seed=1)
    expected = histories.TARGET * of_nights
    assert found == pytest.approx(expected, abs=4 * math.sqrt(expected))


def test_every_table_has_rows():
    rows = histories.rows(histories.SMOKE)
    assert {table for table, *_ in rows} == set(histories.HEADS)
    change = histories.changed(BEFORE, 7, 0.2)
    assert histories._by_change(NORMAL, Size(1, 1, 8), change, THRESHOLD)[-2:] == ("100.0%", "2")


# The simulation of pair rounds; golden files have what it finds.


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["normal", "recorded", "disturbed"])
def test_a_node_at_half_rate_is_found_among_64_and_nobody_else(noise):
    run = Portion("random", 64, "node", 1, 0.5, noise).run(0)
    assert run.found
    assert not run.wrong


def test_a_pair_is_found_by_measuring_it_again():
    run = Portion("quick", 16, "pair", 1, 0.5, "normal").run(1)
    assert run.right <= run.rounds <= ROUNDS
    assert not run.wrong


def test_99_percent_are_there_or_it_is_never():
    assert needed([2] * 98 + [3, None]) == 3
    assert needed([2] * 98 + [None, None]) is None


@pytest.mark.slow
def test_portions_are_simulated_and_tables_and_chart_are_of_them(tmp_path, capsys):
    for name in ("random-4-node-1-0.5-normal", "random-4-healthy-normal"):
        assert evaluate.main(["pair-power", str(tmp_path), "--only", name, "--seconds", "0"]) == 0
    chart = tmp_path / "chart.svg"
    assert evaluate.main(["pair-power", str(tmp_path), "--tables", "--chart", str(chart)]) == 0
    shown = capsys.readouterr().out
    assert "random-4-node-1-0.5-normal: 20 runs in " in shown
    assert "| normal | 1 node | 4 |" in shown
    assert "| normal | 4 | 20 | 0 | 0.000 to 16.843 % |" in shown
    assert chart.read_text().startswith("<svg")


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
def test_it_prints_what_the_verbs_take(capsys):
    verbs = ["verdict", "store add", "stored verdict"]
    assert evaluate.main(["scale", "--cases", "16", "--verbs", *verbs]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[2] == "|  | 16 | exponent |"
    assert [line.split(" | ")[0] for line in table[4:-1]] == [f"| {verb}" for verb in verbs]
    assert evaluate.main(["scale", "--nodes", "20,40"]) == 0
    assert "| decide a round | 0." in capsys.readouterr().out
