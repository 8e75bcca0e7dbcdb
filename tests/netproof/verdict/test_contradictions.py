"""A report that contradicts itself is refused, and its figures are judged again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import made_reports
import pytest
import yaml
from made_reports import cases_in
from typer.testing import CliRunner

from netproof.commands.cli import app
from netproof.criteria import Level
from netproof.diagnosis.diagnosis import ingest
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.session import session
from netproof.session.records import PAIRS
from netproof.store import Store, StoredSession, questions
from netproof.store.folder import SESSION, packed_session, packed_tables
from netproof.verdict import session_verdict
from netproof.verdict.references import ReferenceFile, edited

ROOT = Path(__file__).resolve().parents[3]
RECORDED = ROOT / "tests" / "data" / "sessions"
BOTH = RECORDED / "two-switches.json"
SENDRECV = Case("testbed", "gige", "mpich", "imb", "Sendrecv", 4, 1)
NAME = str(SENDRECV)


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("project")]


def altered(tmp_path: Path, change) -> Path:
    """The recorded session with what was measured of one case changed."""

    def of_case(document):
        for test in cases_in(document):
            measured = test.get("netproof_measured") or {"case": {}}
            case = measured["case"]
            where = (test["partition"], test["environ"], case.get("function"), case.get("ranks"))
            if where == ("gige", "mpich", "Sendrecv", 4):
                return change(measured)
        raise AssertionError(f"no {NAME}")

    return made_reports.altered(tmp_path, of_case, "two-switches")


def other_sizes(measured):
    measured["launches"][0]["curves"][0]["sizes"][-1] += 1


CONTRADICTIONS = [
    (lambda m: m["case"].update(environment="openmpi4"), "what was measured is of"),
    (lambda m: m.update(launches=[]), "a case without a launch has no curve"),
    (other_sizes, "was measured at other sizes than launch 1"),
    (lambda m: m["partition_extras"].pop("mtu"), "cannot be read: KeyError('mtu')"),
]


@pytest.mark.parametrize(("change", "reason"), CONTRADICTIONS)
def test_a_report_that_contradicts_itself_is_refused_with_its_test(tmp_path, change, reason):
    report = altered(tmp_path, change)
    with pytest.raises(NetproofError) as refused:
        session.load(report)
    assert str(refused.value).startswith(f"{report}: ImbSendrecv")
    assert reason in str(refused.value)
    ran = CliRunner().invoke(app, ["verdict", str(report), "testbed:gige"])
    assert ran.exit_code == 2
    with pytest.raises(NetproofError) as refused:
        ingest(Store.create(tmp_path / "store"), report)
    assert str(refused.value).startswith(f"{report}: ImbSendrecv")


def test_a_line_rate_is_that_of_the_link_whatever_the_report_says(tmp_path):
    read = session.load(altered(tmp_path, lambda m: m.update(line_rate_mb_s=1e9, peak_from=1)))
    assert read.results == session.load(BOTH).results


def another(good: StoredSession) -> StoredSession:
    """A place for a session like another one."""
    return StoredSession(good.name[:-1] + ("0" if good.name[-1] != "0" else "1"), good.system)


def test_a_stored_session_that_contradicts_itself_is_refused(tmp_path):
    store = Store.create(tmp_path / "store")
    good = ingest(store, BOTH).stored
    bad = another(good)
    change, reason = CONTRADICTIONS[2]
    document = json.loads(altered(tmp_path, change).read_text())
    tables = packed_tables([questions.tables(store, good)])
    store.put(bad, tables | {SESSION: packed_session(document, PAIRS)})
    named = ["--store", str(store.folder), "testbed:gige"]
    for asked in (
        ["verdict", bad.name, *named],
        ["report", bad.name, "--to", str(tmp_path / "pages"), *named],
        ["store", "check", "--store", str(store.folder)],
    ):
        ran = CliRunner().invoke(app, asked)
        assert ran.exit_code == (1 if asked[0] == "store" else 2), (asked, ran.output)
        printed = " ".join(ran.output.split())
        assert reason in printed, (asked, printed)
        assert "add the session's report again" in printed
    # The other one stands.
    assert CliRunner().invoke(app, ["verdict", good.name, *named]).exit_code != 2


@pytest.fixture
def references(tmp_path, monkeypatch):
    """``references(latency)``: the testbed's references with this entry for the Sendrecv."""

    def write(latency: str) -> Path:
        path = tmp_path / "references" / "testbed.yaml"
        path.parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "reference-values" / "testbed.yaml", path)
        file, place = ReferenceFile(path), ("ImbSendrecv", SENDRECV)
        path.write_text(edited(file, {place: {"latency_us": yaml.safe_load(latency)}}))
        monkeypatch.setenv("RFM_REFERENCE_PREFIX", str(path.parent))
        return path

    return write


def judged(report: Path = BOTH):
    verdict = session_verdict.judge_session(session.load(report), system="testbed:gige").verdict
    return verdict, next(one for one in verdict.cases if str(one.case) == NAME)


def test_references_are_rejudged_and_a_difference_is_reported(references):
    references("[0, null, null, us]")
    verdict, case = judged()
    assert case.level is not Level.FAIL
    assert not any(NAME in note for note in verdict.notes)
    references("[1, -0.5, 0.5, us]")
    verdict, case = judged()
    assert case.level is Level.FAIL
    assert any("latency_us is" in why and "0.5 to 1.5 us" in why for why in case.said(Level.FAIL))
    (note,) = (note for note in verdict.notes if " failed, and passed during" in note)
    assert note == (
        "the file of references has changed since the run: by it 1 case failed, and passed during"
        f" the run: {NAME}"
    )


def test_a_known_fault_stays_expected_and_one_that_is_fixed_fails(references):
    references("[$xfail, 'ticket 4711', [1, null, 0.5, us]]")
    verdict, case = judged()
    assert not case.failed
    assert case.expected == "fails as expected: ticket 4711"
    assert any(" failed as expected, and passed during" in note for note in verdict.notes)
    references("[$xfail, 'ticket 4711', [1000000000.0, null, 0.5, us]]")
    _, case = judged()
    assert case.failed
    assert "was expected to fail: ticket 4711; the entry has to go" in case.faults[0]


def test_a_case_that_failed_by_references_of_then_can_pass_now(references, tmp_path):
    reason = "performance error: failed to meet reference(s): latency_us=5 us, expected 1"

    def failed(document):
        for test in cases_in(document):
            if test["display_name"].startswith("ImbSendrecv") and test["partition"] == "gige":
                test.update(result="fail", fail_phase="performance", fail_reason=reason)

    report = made_reports.altered(tmp_path, failed, "two-switches")
    references("[0, null, null, us]")
    verdict, case = judged(report)
    assert not case.failed
    assert any(" passed, and failed during the run" in note for note in verdict.notes)


def test_what_references_do_not_name_fails(references):
    path = references("[0, null, null, us]")
    path.write_text(path.read_text().replace("\nImbSendrecv:", "\nImbReceivesend:"))
    _, case = judged()
    assert "has no reference: " in case.faults[0]
