"""A warning that every recent session had is one line with all the like, and news is not."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from netproof.commands.cli import app
from netproof.criteria import Level
from netproof.diagnosis.diagnosis import ingest
from netproof.session import session
from netproof.session.session import Session
from netproof.site.matrix import Matrix
from netproof.store import Store
from netproof.verdict.judge import judge
from netproof.verdict.session_verdict import NOTHING, recurring

ROOT = Path(__file__).resolve().parents[3]
HEALTHY = ROOT / "tests" / "data" / "sessions" / "healthy.json"
FOLDED = "2 warnings as in the last 3 sessions: inversion, testbed:fast-ethernet mpich"
WARNED = "WARN testbed:fast-ethernet mpich NetPIPE mpi inter-node oneway (switch fast-ethernet)"


SPREAD_SHOWN = {"launch_spread": {"warn": None}, "dip": {"warn": None, "fail": None}}


def with_criteria(stored: Session, criteria: dict) -> Session:
    """The session, its partitions having these settings of the criteria."""
    results = []
    for result in stored.results:
        if result.measured:
            extras = {**result.extras["partition_extras"], "criteria": criteria}
            extras = {**result.extras, "partition_extras": extras}
            result = dataclasses.replace(result, extras=extras)
        results.append(result)
    return dataclasses.replace(stored, results=tuple(results))


@pytest.fixture(scope="module")
def healthy() -> Session:
    """A session with one warning: an inversion at 8 bytes, NetPIPE over MPICH."""
    stored = session.load(HEALTHY)
    return with_criteria(stored, SPREAD_SHOWN)


@pytest.fixture(scope="module")
def matrix(healthy) -> Matrix:
    """Return its expected matrix."""
    expected = tuple(r.case for r in healthy.results if r.case is not None)
    return Matrix(expected, (), True, {}, {}, None, frozenset())


@pytest.fixture(scope="module")
def cases(healthy, matrix):
    """Its cases, judged."""
    return judge(matrix, healthy).cases


def moved(cases, size: int | None, criterion: str = ""):
    """The cases with each warning moved to another size, or made another criterion's."""
    return [
        dataclasses.replace(
            one,
            findings=tuple(
                dataclasses.replace(finding, size=size, criterion=criterion or finding.criterion)
                if finding.level is Level.WARN
                else finding
                for finding in one.findings
            ),
        )
        for one in cases
    ]


def without(stored: Session, **changes) -> Session:
    """The session, its warned case changed; the case taken out where nothing is given."""
    results = []
    for result in stored.results:
        case = result.case
        warned = case and (case.partition, case.environment, case.benchmark, case.function) == (
            *("fast-ethernet", "mpich"),
            *("netpipe", "mpi"),
        )
        if warned and not changes:
            continue
        results.append(dataclasses.replace(result, **changes) if warned else result)
    return dataclasses.replace(stored, results=tuple(results))


def test_a_warning_of_each_of_the_last_sessions_is_folded(cases, matrix, healthy):
    found = recurring(cases, matrix, [healthy] * 12)
    assert found[0] == 10
    ((_, finding),) = found[1]
    assert (finding.criterion, finding.size) == ("inversion", 8)
    assert recurring(cases, matrix, [healthy] * 3)[0] == 3


def test_two_sessions_are_no_habit_and_one_without_the_warning_makes_it_news(
    cases, matrix, healthy
):
    assert recurring(cases, matrix, [healthy] * 2) is NOTHING
    assert recurring(cases, matrix, [healthy] * 10, most=0) is NOTHING
    broken = without(healthy, measured=None, result="fail")
    assert recurring(cases, matrix, [*[healthy] * 5, broken]) is NOTHING
    # One that did not have the case says nothing of it.
    narrowed = without(healthy)
    assert recurring(cases, matrix, [narrowed, *[healthy] * 3])[0] == 3
    assert recurring(cases, matrix, [narrowed, *[healthy] * 2]) is NOTHING


@pytest.mark.parametrize(("size", "folded"), [(8, 1), (16, 1), (4, 1), (17, 0), (3, 0), (None, 0)])
def test_the_same_size_is_one_within_a_factor_of_two(cases, matrix, healthy, size, folded):
    assert len(recurring(moved(cases, size), matrix, [healthy] * 3)[1]) == folded


def test_between_peaks_the_size_is_chance(matrix, healthy):
    bounds = {"mpi_loss": {"warn": -1, "fail": None}}
    stored = with_criteria(healthy, bounds | SPREAD_SHOWN)
    far = moved(judge(matrix, stored).cases, 4096)
    found = recurring(far, matrix, [stored] * 3)
    assert {finding.criterion for _, finding in found[1]} == {"MPI loss at the peak"}
    assert len(found[1]) == 4


class TestCommand:
    """``netproof verdict`` over a folder of reports, or a store."""

    @pytest.fixture
    def written(self, tmp_path, monkeypatch):
        """Writes the session as the Nth of some, and gives its path."""
        # With the criteria's own bounds, and not the testbed's.
        monkeypatch.setenv("RFM_CONFIG_PATH", str(tmp_path / "site-config"))
        shutil.copytree(ROOT / "site-config", tmp_path / "site-config")
        with (tmp_path / "site-config" / "testbed.py").open("a") as site:
            site.write(
                "\nfor _system in site_configuration['systems']:\n"
                "    for _part in _system['partitions']:\n"
                "        _part['extras']['criteria'] = {'launch_spread': {'warn': None}}\n"
            )
        monkeypatch.setenv("RFM_REFERENCE_PREFIX", str(ROOT / "reference-values"))
        monkeypatch.setenv("RFM_REPORT_FILE", str(tmp_path / "run-{sessionid}.json"))

        def write(number: int) -> Path:
            document = json.loads(HEALTHY.read_text())
            document["session_info"]["time_start_unix"] += 3600 * number
            document["session_info"]["time_end_unix"] += 3600 * number
            path = tmp_path / f"run-{number}.json"
            path.write_text(json.dumps(document))
            os.utime(path, (1e9 + number, 1e9 + number))
            return path

        return write

    @staticmethod
    def said(*arguments) -> str:
        whole = ["--all"] if arguments[0] == "verdict" and "--format=json" not in arguments else []
        ran = CliRunner().invoke(app, [*map(str, arguments), *whole])
        assert ran.exit_code in (0, 1), ran.output
        return ran.output

    @pytest.mark.slow
    def test_one_line_stands_for_what_the_sessions_before_had(self, written):
        *_, newest = [written(number) for number in range(4)]
        for everything in ([], ["--all"]):
            said = self.said("verdict", newest, *everything)
            assert FOLDED in said
            assert "(2.23, the bound is 2)" in said
            assert WARNED not in said
        document = json.loads(self.said("verdict", newest, "--format=json"))
        assert document["recurring"]["sessions"] == 3
        one, other = document["recurring"]["warnings"]
        assert (one["criterion"], one["size_bytes"], one["function"]) == ("inversion", 8, "mpi")
        assert other["criterion"] == "dip"
        # It stays a warning.
        levels = [
            found["level"]
            for case in document["cases"]
            for found in case["findings"]
            if (case["function"], case["environment"], case["partition"], found["criterion"])
            == ("mpi", "mpich", "fast-ethernet", "inversion")
        ]
        assert levels == ["warn"]

    @pytest.mark.slow
    def test_none_is_folded_that_came_later_or_where_the_user_wants_each(self, written):
        paths = [written(number) for number in range(4)]
        assert WARNED in self.said("verdict", paths[2])
        assert WARNED in self.said("verdict", paths[3], "--fold", 0)

    @staticmethod
    def of_old(text: str) -> str:
        """A report with settings that this netproof does not know."""
        document = json.loads(text)
        for test in document["runs"][0]["testcases"]:
            if test.get("netproof_measured"):
                extras = test["netproof_measured"]["partition_extras"]
                extras["criteria"] = {"of old": {"warn": 2}}
        return json.dumps(document)

    @pytest.mark.slow
    @pytest.mark.parametrize("spoilt", [lambda text: "{", of_old])
    def test_a_session_that_cannot_be_read_or_judged_is_not_known_to_have_warned(
        self, written, spoilt
    ):
        paths = [written(number) for number in range(4)]
        began = paths[1].stat().st_mtime
        paths[1].write_text(spoilt(paths[1].read_text()))
        os.utime(paths[1], (began, began))
        said = self.said("verdict", paths[3])
        assert WARNED in said
        assert "not compared with an earlier session: " in said

    @pytest.mark.slow
    def test_a_session_of_a_store_has_those_that_the_store_has(self, written, tmp_path):
        folder = tmp_path / "store"
        store = Store.create(folder)
        names = []
        for number in range(4):
            names.append(ingest(store, written(number)).stored.name)
        for path in tmp_path.glob("run-*.json"):
            path.unlink()
        assert FOLDED in self.said("verdict", names[3], "--store", folder)
        assert WARNED in self.said("verdict", names[2], "--store", folder)
