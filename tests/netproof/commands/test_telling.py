"""JUnit and the summary report what the verdict knows, and nothing in them breaks their readers."""

from __future__ import annotations

import dataclasses
import time
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest
from made_rounds import BUSY, PARTITION, recorded
from typer.testing import CliRunner

from netproof.commands import night as command
from netproof.commands.cli import app
from netproof.commands.night import Night
from netproof.criteria import Level
from netproof.pairs import verdict as pairs
from netproof.session import session
from netproof.session.session import Session
from netproof.site import site
from netproof.site.matrix import matrix
from netproof.verdict import CANNOT, FAILED, INCONCLUSIVE, PASSED, session_verdict
from netproof.verdict.coverage import Coverage
from netproof.verdict.judge import judge
from netproof.verdict.nodes import NodeFinding, NodeFindingKind

ROOT = Path(__file__).resolve().parents[3]
RECORDED = ROOT / "tests" / "data" / "sessions"
STARTED, ENDED = datetime(2026, 11, 21, 2, 0, tzinfo=UTC), datetime(2026, 11, 21, 4, 5, tzinfo=UTC)
DOWN = {"skipped": "partition gige is DOWN", "planned": False}
TURN = {
    "skipped": "NetPIPE, never measured; takes about 60 s, and 0 s were left",
    "planned": True,
}


def judged(stored: Session) -> session_verdict.JudgedSession:
    """Return the session, judged against exactly its own cases."""
    whole = matrix(site.gather(ROOT / "site-config"), "testbed", ["gige"])
    there = {result.case.key() for result in stored.results if result.case}
    expected = dataclasses.replace(
        whole, cases=tuple(case for case in whole.cases if case.key() in there)
    )
    return session_verdict.JudgedSession(stored, expected, judge(expected, stored))


def changed(stored: Session, function: str, **changes) -> Session:
    results = [
        dataclasses.replace(result, **changes)
        if result.case and result.case.function == function
        else result
        for result in stored.results
    ]
    return dataclasses.replace(stored, results=tuple(results))


def a_night(of: session_verdict.JudgedSession | None = None, **more) -> Night:
    folder, times = Path("nowhere"), {"started": STARTED, "ended": ENDED}
    return Night("testbed", folder, folder, judged=of, **times, **more)


def night_of(of: Session, **more) -> Night:
    return a_night(judged(of), **more)


@pytest.fixture
def passed() -> Session:
    return session.load(RECORDED / "passed.json")


@pytest.fixture
def faulty() -> Session:
    return session.load(RECORDED / "faulty.json")


def suite_of(night: Night) -> ElementTree.Element:
    suites = ElementTree.fromstring(command._junit(night))
    assert suites.tag == "testsuites"
    (suite,) = suites
    for name in ("tests", "failures", "errors", "skipped"):
        assert suites.get(name) == suite.get(name)
    return suite


def test_each_case_is_a_test_case_with_its_time_and_its_reasons(passed, faulty):
    suite = suite_of(night_of(passed))
    counts = [suite.get(name) for name in ("tests", "failures", "errors", "skipped", "time")]
    # Of three cases, and of the coverage of the partition.
    assert counts == ["4", "0", "0", "0", "7500.000"]
    names = {(test.get("classname"), test.get("name")) for test in suite}
    assert ("testbed.gige.intelmpi", "IMB PingPong 2 ranks") in names
    covered = suite.findall("testcase[@name='coverage']")
    assert all(float(test.get("time")) > 0 for test in suite if test not in covered)
    assert not [child for test in suite for child in test if child.tag != "system-out"]
    suite = suite_of(night_of(faulty))
    assert suite.get("failures") == "3"
    (barrier,) = suite.findall("testcase[@name='IMB Barrier 2 ranks']/failure")
    assert "Barrier.1 was ended at its limit of 6 s" in barrier.get("message")


def test_faults_changes_and_pairs_have_test_cases_of_their_own(passed):
    of, worse = judged(passed), "gige mpich is worse since 2026-11-18: latency +20 %"
    first, *_ = recorded().launches
    one = dataclasses.replace(first, pairs=first.pairs[:1], curves=first.curves[:1])
    rounds = recorded(nodes=first.pairs[0], launches=(one,))
    found = pairs.judge(rounds, PARTITION.pair_settings(), BUSY)
    verdict = dataclasses.replace(of.verdict, pairs=(found,), faults=("job died",))
    night = a_night(dataclasses.replace(of, verdict=verdict), worse=(worse,), faults=["is full"])
    suite = suite_of(night)
    for kind, where, message in (
        ("failure", "testbed", "job died"),
        ("failure", "testbed.history", worse),
        ("error", "testbed.night", "is full"),
    ):
        (one,) = suite.findall(f"testcase[@classname='{where}']/{kind}")
        assert one.get("message") == message
    # Two nodes that cannot be compared are no error.
    assert suite.get("errors") == "1"
    alone = suite_of(dataclasses.replace(night, system="testbed:gige"))
    assert [test.attrib for test in alone] == [test.attrib for test in suite]
    why = "\npairs: fast-ethernet mpich: too few nodes to compare with each other (2); "
    assert why in command.summary(night)


@pytest.mark.slow
def test_a_verdict_is_junit_too_with_its_own_exit_status(project):
    ran = CliRunner().invoke(app, ["verdict", str(RECORDED / "passed.json"), "--format", "junit"])
    (suite,) = ElementTree.fromstring(ran.stdout_bytes)
    assert (ran.exit_code, suite.get("name")) == (FAILED, "netproof testbed")
    assert (suite.get("tests"), suite.get("failures")) == ("104", "99")
    assert datetime.fromisoformat(suite.get("timestamp"))


@pytest.mark.slow
def test_a_failure_counts_before_what_could_not_be_judged(passed, faulty):
    assert night_of(passed).status == PASSED
    assert command.headline(night_of(passed)) == (
        "netproof testbed: PASSED, 3 of 3 cases passed (2026-11-21 02:00, 2 h 5 min)"
    )
    assert night_of(passed, faults=["/store: is full"]).status == CANNOT
    assert "netproof testbed: NOT JUDGED (" in command.headline(a_night(faults=["no"]))
    assert night_of(faulty, faults=["/store: is full"]).status == FAILED
    assert night_of(passed, worse=("slower",)).status == FAILED
    down, turn = (
        night_of(changed(passed, "tcp", result="skip", measured=None, **why))
        for why in (DOWN, TURN)
    )
    assert (down.status, turn.status) == (INCONCLUSIVE, PASSED)
    assert {one.get("message") for one in suite_of(down).iter("error")} == {DOWN["skipped"]}
    assert {one.get("message") for one in suite_of(turn).iter("skipped")} == {TURN["skipped"]}


@pytest.mark.slow
def test_the_summary_has_failures_what_was_left_and_where_to_read_on(faulty, passed):
    text = command.summary(night_of(faulty, stored="20261121T020000-00000000"))
    assert "FAIL testbed:gige mpich IMB Barrier 2 ranks: fail in sanity" in text
    assert text.endswith("session 20261121T020000-00000000\nexit status 1\n")
    left = changed(passed, "PingPong", result="skip", measured=None, **TURN)
    said = command.summary(night_of(left))
    assert f"1 case of gige intelmpi deferred: {TURN['skipped']}" in said


def test_of_very_many_sentences_the_first_are_shown_and_a_hook_need_not_read_them(passed):
    text = command.summary(night_of(passed, worse=tuple(f"change {n}" for n in range(50))))
    assert text.count("WORSE change") == command.SENTENCES
    assert "WORSE and 30 more, in the report" in text
    assert command._tell("true", "text\n" * 100_000) is None


@pytest.mark.slow
def test_a_hook_that_does_not_end_is_ended_with_all_that_it_began(monkeypatch, tmp_path):
    monkeypatch.setattr(command, "HOOK_S", 0.5)
    late = tmp_path / "late"
    began = time.monotonic()
    assert command._tell(f"(sleep 2; touch {late}) & sleep 60", "text") == (
        "did not end within 0.5 s"
    )
    assert time.monotonic() - began < 30
    time.sleep(2.5)
    assert not late.exists()


@pytest.mark.slow
def test_the_mail_of_the_documentation_is_what_a_night_writes(project):
    sick = session_verdict.judge_session(
        session.load(RECORDED / "sick.json"), system="testbed:gige"
    )
    night = dataclasses.replace(a_night(sick), system="testbed:gige", ended=STARTED)
    written = command.summary(night)
    shown = (ROOT / "docs" / "nightly.md").read_text().split("```\n")[1]
    for line in shown.replace("14 min", "0 s").splitlines():
        assert line.rstrip(" …") in written


def test_in_what_jobs_differ_and_what_is_found_of_nodes_is_reported(passed):
    of = judged(passed)
    kind, why = NodeFindingKind.NOT_KNOWN, "gige-2: driver not known"
    finding = NodeFinding("gige", "driver", kind, why, (), level=Level.WARN)
    covered = Coverage("gige", ("gige-1",), ("gige-1", "gige-2"), ("gige-2",))
    jobs = ("job 8 ran with other files", "requeued: job 9")
    verdict = dataclasses.replace(
        of.verdict, nodes=(finding,), coverage=(covered,), beyond_nodes=jobs
    )
    with_it = dataclasses.replace(of, verdict=verdict)
    night = a_night(with_it)
    text = command.summary(night)
    assert "\nnodes differ: job 8 ran with other files\nrequeued: job 9\n" in text
    assert "\nWARN gige: gige-2: driver not known\n" in text
    line = "gige: 1 of 2 usable nodes measured; not measured gige-2"
    assert f"\ncoverage: {line}\n" in text
    suite = suite_of(night)
    assert [
        test.findtext("system-out") for test in suite.findall("testcase[@name='coverage']")
    ] == [line]
    (warning,) = suite.findall("testcase[@classname='testbed.nodes']")
    assert warning.findtext("system-out") == "gige: gige-2: driver not known"


def test_what_failed_for_one_reason_is_reported_once_and_the_worst_first(faulty):
    results = []
    for result in faulty.results:
        if result.case is None:
            result = dataclasses.replace(
                result, result="fail", phase="run", reason="sbatch: error", name="ImbJob"
            )
        elif result.case.function != "Barrier":
            result = dataclasses.replace(
                result, result="fail_deps", measured=None, failed_job="ImbJob"
            )
        results.append(result)
    text = command.summary(night_of(dataclasses.replace(faulty, results=tuple(results))))
    first, second = (line for line in text.splitlines() if line.startswith("FAIL"))
    assert first == (
        "FAIL testbed:gige mpich ImbJob: fail in run: sbatch: error; 7 cases did not run for it"
        " (IMB PingPong 2 ranks, IMB Sendrecv 2 ranks, IMB Bcast 2 ranks and 4 more)"
    )
    assert "IMB Barrier 2 ranks: fail in sanity: " in second


def test_what_is_inconclusive_is_an_error_and_is_reported(passed):
    of = judged(passed)
    first, *others = of.verdict.cases
    unsure = dataclasses.replace(first.findings[0], level=Level.INCONCLUSIVE)
    cases = (dataclasses.replace(first, findings=(unsure,)), *others)
    with_it = dataclasses.replace(of, verdict=dataclasses.replace(of.verdict, cases=cases))
    night = a_night(with_it)
    assert night.status == INCONCLUSIVE
    headline = command.headline(night)
    assert headline.startswith(
        "netproof testbed: INCONCLUSIVE, 2 of 3 cases passed, 1 inconclusive ("
    )
    faulty = dataclasses.replace(night, faults=["the store is full"])
    assert command.headline(faulty).startswith("netproof testbed: NOT JUDGED, ")
    assert f"\nINCONCLUSIVE {unsure.why}\n" in command.summary(night)
    (error,) = suite_of(night).iter("error")
    assert error.get("message") == unsure.why
