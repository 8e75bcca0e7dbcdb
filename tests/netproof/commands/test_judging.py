"""``netproof verdict``: exit 0 passed, 1 failed, 2 cannot be judged, always with the reason."""

from __future__ import annotations

import functools
import os
import shutil
from pathlib import Path

import pytest
from made_calls import in_words
from made_reports import altered, another, cases_in

from netproof.verdict import FAILED, PASSED

ROOT = Path(__file__).resolve().parents[3]
RECORDED = ROOT / "tests" / "data" / "sessions"


@pytest.fixture
def verdict(tmp_path, monkeypatch):
    """The command, with the project's sites and ``tmp_path`` as the folder of reports."""
    monkeypatch.setenv("RFM_CONFIG_PATH", str(ROOT / "site-config"))
    monkeypatch.setenv("RFM_REPORT_FILE", str(tmp_path / "run-{sessionid}.json"))
    return functools.partial(in_words, "verdict", "--all")


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        *(
            (
                f"{verb} {asked}",
                f"{asked} is no file here, and in {{0}}/reports there is no report of a session;"
                f" name one, or run 'netproof run {asked}'",
            )
            for verb in ("verdict", "diagnose", "report")
            for asked in ("nosuch", "testbed:nosuch")
        ),
        ("compare nosuch", "nosuch is no file here, and no store was named to look it up in"),
        ("verdict 2026 --store {0}/none", "2026 is no file here, and {0}/none: is no store"),
        ("history 2026 --store {0}/none", "2026 is no file here, and {0}/none: is no store"),
        *(
            pytest.param(
                f"report {{1}} --to {folder}",
                "{1}: a file is where a folder should be: name another one",
                marks=pytest.mark.slow,
            )
            for folder in ("{1}", "{1}/x")
        ),
        ("store add nosuch --store {0}/none", "nosuch is no file here: name a session's report"),
    ],
)
def test_what_is_not_there_is_named_with_where_it_was_looked_for(tmp_path, arguments, said):
    report = tmp_path / "report.json"
    report.write_bytes((RECORDED / "passed.json").read_bytes())
    status, out = in_words(*arguments.format(tmp_path, report).split())
    assert status == 2
    assert said.format(tmp_path, report) in out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["smoke/green", "sessions/sick"])
def test_the_readme_shows_what_a_green_and_a_faulty_recorded_session_print(
    verdict, monkeypatch, name
):
    monkeypatch.chdir(ROOT)
    report, readme = f"tests/data/{name}.json", (ROOT / "README.md").read_text()
    (shown,) = [text for text in readme.split("```\n")[1::2] if report in text]
    status, said = in_words("verdict", report, "testbed:gige")
    assert status == (PASSED if shown.startswith("PASSED") else FAILED)
    for line in shown.splitlines():
        assert " ".join(line.rstrip(" …").split()) in said


@pytest.mark.slow
def test_a_report_of_several_systems_needs_one_named_and_one_of_none_says_that_nothing_ran(
    verdict, tmp_path
):
    def move(document):
        test = cases_in(document)[-1]
        test["system"] = test["netproof_measured"]["case"]["system"] = "elsewhere"

    altered(tmp_path, move)
    status, said = verdict()
    assert status == 2
    assert "holds results of 2 systems (elsewhere, testbed); name one: SYSTEM" in said
    altered(tmp_path, lambda document: document.update(runs=[]))
    status, said = verdict()
    assert status == 2
    assert "holds no test case, so nothing ran" in said


@pytest.mark.slow
def test_an_environment_that_vanished_from_the_configuration_fails(verdict, tmp_path, monkeypatch):
    earlier = altered(tmp_path)
    later = altered(tmp_path, lambda document: another(document, 1, 1), file="run-2.json")
    site = tmp_path / "site"
    shutil.copytree(ROOT / "site-config", site)
    text = (site / "testbed.py").read_text()
    assert text.count(', "intelmpi", *_from_spack]') == 1
    (site / "testbed.py").write_text(text.replace(', "intelmpi", *', ", *"))
    monkeypatch.setenv("RFM_CONFIG_PATH", str(site))
    status, said = verdict(later)
    assert status == 1
    gone = f"FAIL testbed:gige intelmpi: ran in {earlier}, and the configuration has it no"
    assert gone in said
    # What ran later says nothing of the session before.
    assert "the configuration has it no more" not in verdict(earlier)[1]


@pytest.mark.slow
def test_a_link_to_nothing_alongside_the_reports_is_named_and_stops_no_verdict(verdict, tmp_path):
    shutil.copy(RECORDED / "passed.json", tmp_path / "run-0.json")
    status, said = verdict()
    assert (status, said.endswith("run-0.json")) == (1, True)
    (tmp_path / "run-1.json").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "run-2.json")
    (tmp_path / "run-3.json").mkdir()
    again, said = verdict()
    assert again == status
    assert "run-1.json: is a link to nothing" in said
    assert "run-2.json: is no file" in said
    assert "run-3.json: is no file" in said
    status, said = verdict(tmp_path / "run-2.json")
    assert status == 2
    assert "run-2.json: cannot be read: it is a pipe and no file" in said
