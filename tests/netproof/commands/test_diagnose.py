"""``netproof diagnose``: its exit statuses, its screen, and what it cannot do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_calls import called
from made_programs import program

from netproof.commands import reframe as reframe_command

ROOT = Path(__file__).resolve().parents[3]
SESSIONS = ROOT / "tests" / "data" / "sessions"


@pytest.fixture
def call(project):
    """``call(*arguments)``: status, standard output and standard error, in words on few lines."""

    def diagnose(*arguments: str) -> tuple[int, str, str]:
        status, out, error = called("diagnose", *arguments)
        return status, out, " ".join(error.split())

    return diagnose


@pytest.mark.slow
def test_what_is_wrong_is_1_and_fits_on_a_screen(call):
    status, out, _ = call(str(SESSIONS / "sick.json"))
    assert status == 1
    lines = out.splitlines()
    assert lines[0] == "gige: something is wrong at 1 place; 0 of 4 cases passed, 4 failed"
    assert len(lines) <= 25
    assert lines[-1].startswith("session ")


@pytest.mark.slow
def test_what_is_inconclusive_is_3_with_what_is_missing(call):
    status, out, _ = call("testbed:gige", str(SESSIONS / "healthy.json"))
    assert status == 3
    why = "how many nodes there are: the session does not have what Slurm said"
    assert f"gige: nothing found, but not everything is known ({why}; " in out
    deciding, besides = out.partition("Not known besides: 3")[::2]
    assert "Not known, so inconclusive: 3\n" in deciding
    assert why in deciding
    assert "whether nodes are alike" in besides
    assert "no rounds of pairs were measured" in " ".join(out.split())
    assert "fast-ethernet" not in out


@pytest.mark.slow
def test_what_nothing_explains_is_no_culprit_and_is_not_seen_directly(call):
    _, out, _ = call(str(SESSIONS / "faulty.json"))
    first, named, *lines = out.splitlines()
    assert first.startswith(
        "gige: something is wrong, and nothing explains it; 5 of 8 cases passed"
    )
    crashes = "crashes of tasks on gige-2: 2 of 2, too few to accuse it, so measure on other nodes"
    assert named == f"1 unexplained: gige: 3 red cases; {crashes}"
    assert "how sure  not known: the failure was seen, its cause was not" in lines


@pytest.mark.slow
@pytest.mark.parametrize("store", [False, True], ids=["no store", "a store that is not there yet"])
def test_the_sessions_alongside_it_show_since_when(call, tmp_path, monkeypatch, store):
    if store:
        monkeypatch.setenv("NETPROOF_STORE", str(tmp_path / "none"))
    folder = tmp_path / "reports"
    folder.mkdir()
    for name in ("run-1.json", "run-2.json", "run-3.json"):
        (folder / name).write_bytes((SESSIONS / "sick.json").read_bytes())
    for back, count in (((), 3), (("--back", "1"), 2)):
        status, out, _ = call("--format=json", *back)
        (culprit,) = json.loads(out)["partitions"][0]["culprits"]
        assert status == 1
        assert (culprit["since"]["began"], culprit["since"]["sessions"]) == ("at least", count)
    _, out, _ = call("--store", str(tmp_path / "other"), "--format=json")
    assert "is no store" in json.loads(out)["partitions"][0]["culprits"][0]["since"]["why"]


@pytest.fixture
def reframe(tmp_path, monkeypatch):
    """Install a script in place of ReFrame: ``reframe(script)``."""

    def made(script: str | None) -> None:
        if script is not None:
            program(tmp_path / "bin" / "reframe", script)
        monkeypatch.setattr(reframe_command.sys, "executable", str(tmp_path / "bin" / "python"))

    return made


@pytest.mark.slow
def test_measure_runs_the_rounds_of_pairs_and_diagnoses_their_report(call, tmp_path, reframe):
    recorded = SESSIONS / "sick.json"
    reframe(f'echo "$@" >{tmp_path}/asked; cp {recorded} "$RFM_REPORT_FILE"; exit 1')
    status, out, _ = call("testbed:gige", "--measure", "--format=json")
    assert status == 1
    (report,) = (tmp_path / "reports").iterdir()
    assert json.loads(out)["session"] == str(report)
    asked = (tmp_path / "asked").read_text().split()
    assert asked[:3] == ["--system", "testbed:gige", "-c"]
    assert asked[3].endswith("checks/pairs.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "said"), [(None, "reframe: is not there"), ("exit 3", "left no report")]
)
def test_measure_without_reframe_or_its_report_says_so(call, reframe, script, said):
    reframe(script)
    status, _, error = call("testbed:gige", "--measure")
    assert (status, said in error) == (2, True)
