"""Sessions with a label: the folder of their reports, and what a report keeps of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from netproof.errors import NetproofError
from netproof.session import labelled

SESSION = Path(__file__).resolve().parents[2] / "data" / "sessions" / "netpipe.json"


def test_the_folder_is_found_from_that_of_reports_and_from_itself():
    folder = Path("reports", "load")
    assert labelled.folder_of(Path("reports"), "load") == folder
    assert labelled.folder_of(folder, "load") == folder


def report(folder: Path, **of_test: object) -> Path:
    """A recorded report whose first test has these keys, and no other test."""
    session = json.loads(SESSION.read_text())
    tests = session["runs"][0]["testcases"]
    session["runs"][0]["testcases"] = [{**tests[0], "display_name": "Sweep", **of_test}]
    path = folder / "run.json"
    path.write_text(json.dumps(session))
    return path


def test_what_tests_kept_is_read(tmp_path):
    path = report(tmp_path, kept={"figure": 7})
    assert labelled.of_report(path, "kept", lambda values: values["figure"], "sweep") == [7]


def test_what_cannot_be_read_names_report_and_test(tmp_path):
    def refuse(values: object) -> None:
        raise NetproofError("it is of format 9")

    path = report(tmp_path, kept={"figure": 7})
    with pytest.raises(NetproofError, match=r"run\.json: Sweep: it is of format 9"):
        labelled.of_report(path, "kept", refuse, "sweep")


def test_a_report_without_any_says_why_its_tests_failed(tmp_path):
    path = report(tmp_path, result="fail", fail_reason="no node answered")
    with pytest.raises(NetproofError, match="has no sweep that is whole: Sweep: no node answered"):
        labelled.of_report(path, "kept", dict, "sweep")
