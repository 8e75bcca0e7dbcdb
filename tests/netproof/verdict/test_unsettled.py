"""Inconclusive cases, and those measured while the machine was disturbed, settle nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from netproof.commands.cli import app
from netproof.session import session
from netproof.session.measured import Measured
from netproof.store import Store, questions
from netproof.verdict import judge
from netproof.verdict.judging import ingest

ROOT = Path(__file__).resolve().parents[3]
SESSIONS = ROOT / "tests" / "data" / "sessions"
HEALTHY, SICK = (SESSIONS / f"{name}.json" for name in ("healthy", "sick"))
BUSY = {
    **{"node": "gige-2", "machine": "m", "cpus": 2, "wall_s": 1.0, "others_cpu_s": 0.8},
    **{"others_share": 0.38, "network_share": 0.0, "steal_share": 0.0, "pressure_share": 0.5},
    **{"pressure_full_share": 0.0, "absent": []},
}
WORDS = "the machine was disturbed: gige-2: others used 38 % of the CPUs"
LATENCY = {
    **{"criterion": "reference", "level": "inconclusive", "where": "it", "value": 6.0},
    **{"why": "it: latency_us is 6 us (95% interval 5 to 7)", "bound": 5.5, "interval": [5, 7]},
    "variable": "latency_us",
}

Change = Callable[[dict], None]


def changed_here(test: dict) -> bool:
    """The case that the tests change: no ruling on it is inconclusive as it was recorded."""
    case = test.get("netproof_case") or {}
    where = (test["partition"], test["environ"], case.get("function"))
    return bool(test.get("netproof_measured")) and where == ("gige", "mpich", "Barrier")


def disturbed(test: dict, launches: int = 3) -> None:
    for launch in test["netproof_measured"]["launches"][:launches]:
        launch["loads"] = [BUSY]


def unsure(test: dict) -> None:
    test["netproof_references"] = [LATENCY]


def report(folder: Path, number: int, change: Change = lambda test: None) -> Path:
    """The healthy session once more, with ``change`` applied to one of its cases."""
    document = json.loads(HEALTHY.read_text())
    for test in document["runs"][0]["testcases"]:
        if changed_here(test):
            change(test)
    info = document["session_info"]
    info["uuid"] = f"{number:08x}{info['uuid'][8:]}"
    info["time_start_unix"] += number
    path = folder / f"run-{number}.json"
    path.write_text(json.dumps(document))
    return path


def of_case(path: Path) -> judge.Unsettled:
    found = judge.unsettled_of(session.load(path))
    return found["testbed", "gige", "mpich", "imb", "Barrier", 2, "between", "oneway"]


def test_what_is_inconclusive_across_configurations_is_told_without_the_case():
    found = judge.unsettled_of(session.load(HEALTHY))
    assert len(found) == 16
    (why,) = found["testbed", "gige", "mpich", "imb", "PingPong", 2, "between", "oneway"].all
    assert why.startswith("12.98 µs at 256 bytes is 2.23 times (95% interval 0.221 to 14.3)")
    assert sum(bool(one.all) for one in found.values()) == 4


@pytest.mark.slow
def test_a_reference_whose_interval_contains_its_bound_is_reported(tmp_path):
    assert of_case(report(tmp_path, 1)).all == ()
    found = of_case(report(tmp_path, 2, unsure))
    assert found.all == found.why_no_value == ("latency_us is 6 us (95% interval 5 to 7)",)


def test_disturbed_launches_are_told_though_nothing_failed(tmp_path):
    found = of_case(report(tmp_path, 1, disturbed))
    assert found.all == found.why_no_value == (WORDS,)
    assert not found.failed


def test_a_failure_is_one_whatever_else_is_inconclusive():
    found = judge.unsettled_of(session.load(SICK))
    both = [one for one in found.values() if one.failed and one.inconclusive]
    assert both
    assert all(one.why_no_value == () for one in both)


class TestBaseline:
    @pytest.fixture(autouse=True)
    def references(self, tmp_path, monkeypatch):
        shutil.copy(ROOT / "reference-values" / "testbed.yaml", tmp_path)
        monkeypatch.setenv("RFM_REFERENCE_PREFIX", str(tmp_path))

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("change", "why"),
        [(unsure, "latency_us is 6 us (95% interval 5 to 7)"), (disturbed, WORDS)],
    )
    def test_what_one_session_leaves_open_makes_no_reference(self, tmp_path, change, why):
        reports = [report(tmp_path, 1), report(tmp_path, 2, change), report(tmp_path, 3)]
        ran = CliRunner().invoke(app, ["references", "derive", *map(str, reports)])
        line = "testbed:gige mpich IMB Barrier 2 ranks: no references: inconclusive in run-2.json:"
        assert f"{line} {why}\n" in ran.stderr
        assert ran.exit_code == 0

    @pytest.mark.slow
    def test_enough_other_launches_make_one(self, tmp_path):
        def one_more(test: dict) -> None:
            found = Measured.from_json(test["netproof_measured"])
            more = found.with_launches([*found.launches, found.launches[-1]])
            test["netproof_measured"] |= more.as_json()
            disturbed(test, 1)

        reports = [report(tmp_path, number, one_more) for number in (1, 2, 3)]
        ran = CliRunner().invoke(app, ["references", "derive", *map(str, reports)])
        assert "IMB Barrier 2 ranks: no references" not in ran.stderr


class TestStore:
    def row(self, store: Store, path: Path) -> dict:
        (found,) = (
            row
            for row in questions.tables(store, ingest(store, path).stored, ["cases"])[
                "cases"
            ].to_pylist()
            if (row["partition"], row["environment"], row["function"])
            == ("gige", "mpich", "Barrier")
        )
        return found

    @pytest.mark.slow
    def test_it_knows_which_figures_tell_nothing(self, tmp_path):
        store = Store.create(tmp_path / "store")
        assert self.row(store, report(tmp_path, 1))["inconclusive"] == []
        assert self.row(store, report(tmp_path, 2, disturbed))["inconclusive"] == [WORDS]

    @pytest.mark.slow
    def test_a_session_of_other_settings_is_stored_and_nothing_is_known_of_it(self, tmp_path):
        def formerly(test: dict) -> None:
            test["netproof_measured"]["partition_extras"]["criteria"] = {"of old": {"warn": 2}}

        store = Store.create(tmp_path / "store")
        assert self.row(store, report(tmp_path, 1, formerly))["inconclusive"] is None

    @pytest.mark.slow
    def test_what_is_open_has_not_passed_for_whoever_looks_for_a_good_result(self, tmp_path):
        key = ("testbed", "gige", "mpich", "imb", "Barrier", 2, "between", "oneway")
        store = Store.create(tmp_path / "store")
        good, noisy = (
            ingest(store, path).stored
            for path in (report(tmp_path, 1), report(tmp_path, 2, disturbed))
        )
        assert key in questions.passed(store, good)
        assert key not in questions.passed(store, noisy)
