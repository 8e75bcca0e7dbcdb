"""A warning that every recent session had is one line with all the like, and news is not."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from functools import partial
from pathlib import Path

import pytest
from made_measured import matrix_of, recorded, with_results
from made_reports import altered, cases_in
from typer.testing import CliRunner

from netproof.commands.cli import app
from netproof.criteria import Level
from netproof.session.session import Session
from netproof.site.matrix import Matrix
from netproof.verdict.judge import judge
from netproof.verdict.session_verdict import NOTHING, recurring

ROOT = Path(__file__).resolve().parents[3]
FOLDED = "1 warning as in the last 3 sessions: inversion, testbed:fast-ethernet mpich"
WARNED_CASE = ("fast-ethernet", "mpich", "mpi")
WARNED = "WARN testbed:fast-ethernet mpich NetPIPE mpi inter-node oneway (switch fast-ethernet)"


SPREAD_SHOWN = {"launch_spread": {"warn": None}}


def with_criteria(stored: Session, criteria: dict) -> Session:
    """The session, its partitions having these settings of the criteria."""

    def change(one):
        extras = {**one.extras.get("partition_extras", {}), "criteria": criteria}
        return dataclasses.replace(one, extras={**one.extras, "partition_extras": extras})

    return with_results(stored, change)


@pytest.fixture(scope="module")
def healthy() -> Session:
    """A session with one warning: an inversion at 8 bytes, NetPIPE over MPICH."""
    return with_criteria(recorded("healthy"), SPREAD_SHOWN)


@pytest.fixture(scope="module")
def matrix(healthy) -> Matrix:
    return matrix_of(healthy)


@pytest.fixture(scope="module")
def cases(healthy, matrix):
    """Its cases, judged."""
    return judge(matrix, healthy).cases


def moved(cases, size: int | None):
    """The cases with each warning moved to another size."""

    def of(finding):
        return dataclasses.replace(finding, size=size) if finding.level is Level.WARN else finding

    return [dataclasses.replace(one, findings=tuple(map(of, one.findings))) for one in cases]


def without(stored: Session, **changes) -> Session:
    """The session, its warned case changed; the case taken out where nothing is given."""

    def change(one):
        case = one.case
        if not case or (case.partition, case.environment, case.function) != WARNED_CASE:
            return one
        return dataclasses.replace(one, **changes) if changes else None

    return with_results(stored, change)


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
    stored = with_criteria(healthy, SPREAD_SHOWN | {"mpi_loss": {"warn": -1, "fail": None}})
    far = moved(judge(matrix, stored).cases, 4096)
    found = recurring(far, matrix, [stored] * 3)
    assert {finding.criterion for _, finding in found[1]} == {"MPI loss at the peak"}
    assert len(found[1]) == 4


@pytest.fixture
def written(tmp_path, monkeypatch) -> list[Path]:
    """Reports of four sessions, an hour apart, at a site with the criteria's own bounds."""
    shutil.copytree(ROOT / "site-config", tmp_path / "site-config")
    with (tmp_path / "site-config" / "testbed.py").open("a") as site:
        site.write(
            "\nfor _system in site_configuration['systems']:\n"
            "    for _part in _system['partitions']:\n"
            "        _part['extras']['criteria'] = {'launch_spread': {'warn': None}}\n"
        )
    monkeypatch.setenv("RFM_CONFIG_PATH", str(tmp_path / "site-config"))
    monkeypatch.setenv("RFM_REFERENCE_PREFIX", str(ROOT / "reference-values"))
    monkeypatch.setenv("RFM_REPORT_FILE", str(tmp_path / "run-{sessionid}.json"))

    def later(number: int, document: dict) -> None:
        document["session_info"]["time_start_unix"] += 3600 * number
        document["session_info"]["time_end_unix"] += 3600 * number

    paths = [
        altered(tmp_path, partial(later, number), "healthy", f"run-{number}.json")
        for number in range(4)
    ]
    for number, path in enumerate(paths):
        os.utime(path, (1e9 + number, 1e9 + number))
    return paths


def said(*arguments) -> str:
    ran = CliRunner().invoke(app, ["verdict", *map(str, arguments)])
    assert ran.exit_code in (0, 1), ran.output
    return ran.output


@pytest.mark.slow
def test_one_line_stands_for_what_the_sessions_before_had(written):
    *_, before, newest = written
    shown = said(newest, "--all")
    assert FOLDED in shown
    assert "(2.23, the bound is 2)" in shown
    assert WARNED not in shown
    document = json.loads(said(newest, "--format=json"))
    assert document["recurring"]["sessions"] == 3
    (one,) = document["recurring"]["warnings"]
    assert (one["criterion"], one["size_bytes"], one["function"]) == ("inversion", 8, "mpi")
    # What came later does not count, and a user may want each.
    assert WARNED in said(before, "--all")
    assert WARNED in said(newest, "--all", "--fold", 0)


def of_old(text: str) -> str:
    """A report with settings that this netproof does not know."""
    document = json.loads(text)
    for test in cases_in(document):
        if test.get("netproof_measured"):
            test["netproof_measured"]["partition_extras"]["criteria"] = {"of old": {"warn": 2}}
    return json.dumps(document)


@pytest.mark.slow
@pytest.mark.parametrize("spoilt", [lambda text: "{", of_old])
def test_a_session_that_cannot_be_read_or_judged_is_not_known_to_have_warned(written, spoilt):
    written[1].write_text(spoilt(written[1].read_text()))
    os.utime(written[1], (1e9 + 1, 1e9 + 1))
    shown = said(written[3], "--all")
    assert WARNED in shown
    assert "not compared with an earlier session: " in shown
