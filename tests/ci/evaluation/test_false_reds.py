"""An acceptance run's answer is its verdict, and what cannot be understood counts against it."""

from __future__ import annotations

import copy
import dataclasses
import json
import time
from pathlib import Path

import pytest
from runs_without_testbed import campaign, planned
from runs_without_testbed import result as result_of

from ci.evaluation import engine, judges, machine
from ci.evaluation.engine import Campaign, Result
from ci.evaluation.plants import EVALUATIONS, Answer, Grade, Run

ROOT = Path(__file__).resolve().parents[3]
EVALUATION = EVALUATIONS["false-reds"]
SICK = "sick"
CONDITIONS = EVALUATION.plants
RED = json.loads((ROOT / "tests" / "data" / "verdicts" / "red.json").read_text())
RUNS = planned(EVALUATION)


def green() -> dict:
    """The recorded verdict without the cases that failed."""
    document = copy.deepcopy(RED)
    document["verdict"] = "pass"
    document["cases"] = [case for case in document["cases"] if case["verdict"] != "fail"]
    return document


def inconclusive() -> dict:
    """The recorded verdict, as if failed findings were inconclusive."""
    text = json.dumps(RED).replace('"fail"', '"inconclusive"')
    return {**json.loads(text), "verdict": "inconclusive"}


def judged(status: int, document: object) -> Answer:
    return judges.graded(EVALUATION, RUNS[0], status, json.dumps(document), "")


def test_a_recorded_red_verdict_is_red_with_its_cases_and_their_criteria():
    found = judged(1, RED)
    assert (found.found, found.by) == (Grade.RED, ("envelope",))
    assert [one.partition(": 96.33")[0].partition(": ")[0] for one in found.said] == [
        "gige openmpi4 NetPIPE mpi intra-node oneway",
        "gige mpich NetPIPE mpi intra-node oneway",
    ]
    assert ": 96.33 µs at 393216 bytes is 14.3 times the 6.72" in found.said[0]


def test_a_passed_verdict_with_warnings_is_green():
    assert judged(0, green()) == Answer(Grade.GREEN)


def test_inconclusive_cases_and_no_failed_one_are_inconclusive():
    found = judged(3, inconclusive())
    assert (found.found, len(found.said), found.by) == (Grade.INCONCLUSIVE, 2, ())
    beyond = judged(3, {**green(), "verdict": "inconclusive", "undecided": [UNDECIDED]})
    assert (beyond.found, beyond.said) == (Grade.INCONCLUSIVE, (UNDECIDED,))


def test_a_fault_beyond_a_case_is_red():
    found = judged(1, {**green(), "verdict": "fail", "faults": ["a job left no record"]})
    assert (found.found, found.said) == (Grade.RED, ("a job left no record",))


UNDECIDED = "testbed:gige mpich: gige-[1-4] undecided: in each launch something else ran alongside"


def without(key: str) -> dict:
    return {name: value for name, value in green().items() if name != key}


@pytest.mark.parametrize(
    ("status", "document"),
    [
        (0, RED),
        (0, {**RED, "verdict": "pass"}),
        (0, {**green(), "faults": ["a job left no record"]}),
        (0, {**green(), "skipped": [{"planned": True}]}),
        (0, {**green(), "undecided": ["gige-1 undecided"]}),
        (0, {**green(), "cases": []}),
        (0, {**green(), "format": 1}),
        (0, without("undecided")),
        (0, None),
        (1, green()),
        (2, {**RED, "verdict": "cannot be judged"}),
        (-9, green()),
    ],
)
def test_what_does_not_fit_together_is_not_judged(status, document):
    found = judged(status, document)
    assert found.found is Grade.NOT_JUDGED
    assert found.said[0]


def run_of(kind: str, number: int = 1) -> Run:
    (run,) = planned(EVALUATION, *(f"--{one}={int(one == kind)}" for one in CONDITIONS))
    return dataclasses.replace(run, number=number)


def result(run: Run, found: Grade) -> Result:
    judged_as = {
        Grade.GREEN: Answer(Grade.GREEN),
        Grade.INCONCLUSIVE: judged(3, inconclusive()),
        Grade.RED: judged(1, RED),
        Grade.NOT_JUDGED: Answer(Grade.NOT_JUDGED, ("ReFrame left no report",)),
    }[found]
    more = {"load_cpu_s": 30.0, "pressure_s": 12.0}
    return dataclasses.replace(result_of(run, found), judged=judged_as, **more)


def as_aimed(**odd: Grade) -> tuple[Campaign, list[Result]]:
    """30 healthy and 20 sick runs; ``odd``: the outcome of a condition's first run."""
    results, seen = [], set()
    for run in RUNS:
        grade = Grade.RED if run.kind == SICK else Grade.GREEN
        if run.kind not in seen:
            grade = odd.get(run.kind.replace("-", "_"), grade)
        seen.add(run.kind)
        results.append(result(run, grade))
    return campaign(*RUNS), results


def missed(**odd: Grade) -> list[str]:
    return engine.missed(EVALUATION, *as_aimed(**odd))


@pytest.mark.slow
def test_the_aims_are_met_by_no_red_healthy_run_and_no_other_sick_one():
    assert missed() == missed(quiet=Grade.INCONCLUSIVE) == missed(bursts=Grade.INCONCLUSIVE) == []
    for grade in (Grade.RED, Grade.NOT_JUDGED):
        found = "a compiler alongside: 5 of 6 green or inconclusive"
        assert missed(compiler=grade) == [found]
    for grade in (Grade.GREEN, Grade.INCONCLUSIVE, Grade.NOT_JUDGED):
        found = "sick switch, quiet: 19 of 20 red"
        assert missed(sick=grade) == [found]
    # A job that did not start does not show a sick switch.
    document = {**green(), "verdict": "fail", "faults": ["a job left no record"]}
    assert (
        judges.of_acceptance(CONDITIONS[SICK], run_of(SICK), 1, document).found is Grade.OTHERWISE
    )
    plan, results = as_aimed(quiet=Grade.INCONCLUSIVE)
    last = max(n for n, one in enumerate(results) if one.run.kind == "quiet")
    results[last] = dataclasses.replace(results[last], judged=judged(3, inconclusive()))
    assert engine.missed(EVALUATION, plan, results) == ["quiet: 2 of 10 inconclusive"]


def test_the_table_has_a_row_for_each_condition_and_tells_of_what_is_not_green():
    found = as_aimed(one_cpu=Grade.INCONCLUSIVE, bursts=Grade.NOT_JUDGED)
    text = engine.table(EVALUATION, *found)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({row.count("|") for row in rows}) == 1
    assert (
        rows[2] == "| quiet | gige | 10 | 10 | 0 | 0 | 0 | 0 | 26 % | - | 0.50 | 20 % | 60 | 60 |"
    )
    assert "| all | gige | 50 | 28 | 1 | 20 | 0 | 1 | 9 % |" in text
    assert "| sick switch, quiet | gige | 20 | 0 | 0 | 20 | 0 | 0 | 14 % | envelope 20 |" in text
    assert "**not judged**: ReFrame left no report" in text
    assert "**inconclusive**: gige openmpi4 NetPIPE mpi intra-node oneway: 96.33 µs" in text
    assert text.endswith("taken in bursts: 6 of 7 green or inconclusive.")
    assert engine.table(EVALUATION, *as_aimed()).endswith("Aims met.")


@pytest.mark.slow
def test_a_run_whose_load_ended_early_is_not_judged(fake, tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "settings_of", lambda *_: [{"files": "x"}])
    engine.begin(tmp_path, campaign(run_of("compiler")))
    fake["measure"] = lambda run, folder: time.sleep(1.5) or Answer(Grade.GREEN)
    engine.go_on(EVALUATION, tmp_path)
    (only,) = engine.read(EVALUATION, tmp_path)[1]
    assert only.judged.found is Grade.NOT_JUDGED
    assert "ended by itself, with status 1" in only.judged.said[0]
