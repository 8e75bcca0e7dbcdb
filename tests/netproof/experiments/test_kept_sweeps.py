"""Earlier sweeps: the newest of each setting, and reasons for unreadable ones."""

from __future__ import annotations

import json

import pytest

from netproof.errors import NetproofError
from netproof.experiments import sweep


class OneSweep:
    """The attributes of ``of_report``'s result that are read."""

    def __init__(self, path, system):
        self.path, self.parameter = path, path.name.split("-2")[0].removeprefix("run-")
        self.case = type(
            "", (), {"system": system, "ranks": 2, "key": lambda one: ("gige", "mpich")}
        )()

    table = "what it says"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("run-mtu-20260101T000000", "run-mtu-20260102T000000", "run-other-20260103T000000"):
        (tmp_path / f"{name}.json").write_text("{}")
    monkeypatch.setattr(sweep.Sweep, "of_report", lambda path: [OneSweep(path, "testbed")])
    return tmp_path


def test_the_newest_of_each_setting_is_taken(folder):
    (found,), faults = sweep.newest(folder, "testbed", ("mtu", "coalescing"))
    assert found.path.name == "run-mtu-20260102T000000.json"
    assert faults == {}


def test_sweeps_of_another_system_are_none(folder):
    assert sweep.newest(folder, "mycluster", ("mtu",)) == ([], {})


def test_a_folder_that_is_not_there_has_none(tmp_path):
    assert sweep.newest(tmp_path / "none", "testbed", ("mtu",)) == ([], {})


def test_why_the_newest_says_nothing_is_told_alongside_an_older_one(folder, monkeypatch):
    def of_report(path):
        if path.name == "run-mtu-20260102T000000.json":
            raise NetproofError(f"{path}: has no sweep that is whole")
        return [OneSweep(path, "testbed")]

    monkeypatch.setattr(sweep.Sweep, "of_report", of_report)
    (found,), faults = sweep.newest(folder, "testbed", ("mtu",))
    assert found.path.name == "run-mtu-20260101T000000.json"
    assert faults == {
        "mtu": f"{folder / 'run-mtu-20260102T000000.json'}: has no sweep that is whole"
    }


def test_a_report_without_a_sweep_is_named(tmp_path):
    path = tmp_path / "run-mtu-20260101T000000.json"
    path.write_text(json.dumps({"session_info": {}, "runs": []}))
    found, faults = sweep.newest(tmp_path, "testbed", ("mtu",))
    assert found == []
    assert str(path) in faults["mtu"]
