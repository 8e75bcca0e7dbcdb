"""Sessions with a label: the folder of their reports, and what a report keeps of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from netproof import codec
from netproof.errors import NetproofError
from netproof.session import session

SESSION = Path(__file__).resolve().parents[2] / "data" / "sessions" / "netpipe.json"


def test_the_folder_is_found_from_that_of_reports_and_from_itself():
    folder = Path("reports", "load")
    assert session.folder_of(Path("reports"), "load") == folder
    assert session.folder_of(folder, "load") == folder


def report(folder: Path, **of_test: object) -> Path:
    """A recorded report whose first test has these keys, and no other test."""
    session = json.loads(SESSION.read_text())
    tests = session["runs"][0]["testcases"]
    session["runs"][0]["testcases"] = [{**tests[0], "display_name": "Sweep", **of_test}]
    path = folder / "run.json"
    path.write_text(json.dumps(session))
    return path


@dataclass(frozen=True)
class Sweep(session.JobRecord):
    KEY = "kept"
    CALLED = "sweep"

    figure: int
    partition_extras: dict[str, Any]


def recorded_sweep() -> Sweep:
    tests = json.loads(SESSION.read_text())["runs"][0]["testcases"]
    measured = next(test["netproof_measured"] for test in tests if test["netproof_measured"])
    return Sweep(7, measured["partition_extras"])


def test_what_tests_kept_is_read(tmp_path):
    sweep = recorded_sweep()
    assert Sweep.of_report(report(tmp_path, kept=codec.encode(sweep))) == [sweep]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"figure": "7"}, "a sweep cannot be read: figure: found '7', expected a whole number"),
        ({"more": 1}, "a sweep cannot be read: has 'more', which is no key of it"),
        ({"partition_extras": {}}, "a sweep cannot be read: "),
    ],
)
def test_what_cannot_be_read_names_report_and_test(tmp_path, change, reason):
    path = report(tmp_path, kept=codec.encode(recorded_sweep()) | change)
    with pytest.raises(NetproofError, match=rf"run\.json: Sweep: {reason}"):
        Sweep.of_report(path)


def test_a_report_without_any_says_why_its_tests_failed(tmp_path):
    path = report(tmp_path, result="fail", fail_reason="no node answered")
    with pytest.raises(NetproofError, match="has no sweep that is whole: Sweep: no node answered"):
        Sweep.of_report(path)
