"""A verdict is judged once and read from the store: whole, by known bounds, or not at all."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from made_few import slowed
from made_reports import altered, another, cases_in
from made_rounds import BUSY, EXTRAS, NODES, recorded
from made_text import printed as shown
from typer.testing import CliRunner

from netproof import codec
from netproof.commands.cli import app
from netproof.commands.stores import faults
from netproof.diagnosis.diagnosis import ingest
from netproof.errors import NetproofError
from netproof.measurement.counters import CARRIER, INTERFACE, Counters, CounterSource
from netproof.present import documents
from netproof.present.session import traffic_blocks
from netproof.present.verdict import brief, sentences
from netproof.session import session
from netproof.session.measured import Launch
from netproof.site import folders, matrix
from netproof.store import Store, StoredSession, questions
from netproof.store import folder as store_folder
from netproof.store.folder import VERDICT
from netproof.verdict import confirmations, session_verdict
from netproof.verdict import stored as stored_verdicts
from netproof.verdict.verdict import CaseVerdict, Verdict

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
SESSIONS = ROOT / "tests" / "data" / "sessions"
WHOLE = ("faulty", "ranges", "sick", "two-switches")
"""Recorded sessions that a store takes: failed, with provenance, flagged, of two switches."""


@pytest.fixture
def site(tmp_path, monkeypatch) -> Path:
    """A folder with the project's configuration and references, which a test may change."""
    for name in ("site-config", "reference-values"):
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.setenv("RFM_CONFIG_PATH", str(tmp_path / "site-config"))
    monkeypatch.setenv("RFM_REFERENCE_PREFIX", str(tmp_path / "reference-values"))
    monkeypatch.setenv("RFM_REPORT_FILE", str(tmp_path / "reports" / "run-0.json"))
    monkeypatch.delenv("NETPROOF_STORE", raising=False)
    return tmp_path


@pytest.fixture
def store(site) -> Store:
    """A store without a session."""
    return Store.create(site / "store")


def stored(store: Store, name: str = "healthy", **asked: Any) -> StoredSession:
    """The place of a recorded session in a store, with the verdict on it."""
    done = ingest(store, SESSIONS / f"{name}.json", **asked)
    assert not done.not_judged
    return done.stored


def said(judged: session_verdict.JudgedSession) -> str:
    """The document of a verdict, without what is said of its being kept."""
    document = documents.of_judged(judged)
    del document["stored"], document["changed"]
    return json.dumps(document)


def changed(store: Store, place: StoredSession, change: Callable[[dict[str, Any]], None]) -> Path:
    """Change a stored verdict as one who also corrects the checksums would; its file."""
    folder = store.path(place)
    head, *cases = store_folder.unpacked((folder / VERDICT).read_bytes(), VERDICT)
    document = {**head, "cases": cases}
    change(document)
    cases = document["cases"]
    document["cases"] = head["cases"]
    (folder / VERDICT).write_bytes(store_folder.packed([document, *cases]))
    files = {name: (folder / name).read_bytes() for name in store.files(place)}
    (folder / store_folder.CHECKSUMS).write_bytes(store_folder._checksums(files))
    return folder / VERDICT


def never_judged(monkeypatch) -> None:
    """Let nothing be judged by criteria from here on."""

    def fail(*arguments: Any, **named: Any) -> None:
        raise AssertionError("was judged though a verdict is kept")

    monkeypatch.setattr(session_verdict, "judge", fail)
    monkeypatch.setattr(confirmations, "findings_along", fail)


def printed(judged: session_verdict.JudgedSession) -> str:
    """Return the printed lines of a verdict."""
    return shown(sentences(judged)) + shown(traffic_blocks(judged.verdict.traffic, ()))


def insist_on_equal(one: Verdict, other: Verdict) -> None:
    """Compare all parts of two verdicts, one of them perhaps stored."""
    assert dataclasses.replace(one, cases=()) == dataclasses.replace(other, cases=())
    names = [field.name for field in dataclasses.fields(CaseVerdict) if field.compare]
    names += ["level", "result", "measured", "complete"]
    for case, its in zip(one.cases, other.cases, strict=True):
        assert [getattr(case, name) for name in names] == [getattr(its, name) for name in names]
    assert one.status == other.status


def insist_on_the_same(read: session.Session) -> session_verdict.JudgedSession:
    """The stored verdict equals, in each form, the one that is judged now."""
    by_store, now = (
        session_verdict.judge_session(read),
        session_verdict.judge_session(read, again=True),
    )
    assert by_store.stored
    assert not by_store.differs
    assert now.changed == ()
    insist_on_equal(by_store.verdict, now.verdict)
    assert said(by_store) == said(now)
    assert printed(by_store) == printed(now)
    assert by_store.session.provenance == now.session.provenance
    return by_store


@pytest.mark.parametrize("name", WHOLE)
def test_a_kept_verdict_is_byte_for_byte_what_judging_gives(store, name):
    insist_on_the_same(questions.load(store, stored(store, name)))


SAID = ["libfabric provider: tcp"]
NOT_DISTURBED = {"disturbance": codec.encode(BUSY)}


def suffering(launch: Launch) -> Launch:
    """A launch in which the third node has half the rate, and the second lost its carrier."""
    names = (CARRIER, "Tcp.OutSegs", "Tcp.RetransSegs")
    sources = (
        CounterSource(INTERFACE, EXTRAS["interface"], {CARRIER: 2}, 0),
        CounterSource("tcp", "", {"Tcp.OutSegs": 9000, "Tcp.RetransSegs": 900}, 0),
    )
    counters = Counters({NODES[1]: sources}, (names,), {NODES[1]: {}})
    return dataclasses.replace(slowed(launch, NODES[2], 2.0), counters=counters)


def with_pairs(folder: Path, change: Callable[[Launch], Launch], faults: tuple = ()) -> Path:
    """The report of a session that also made rounds of pairs, and asked for its transport."""
    several = [change(one) for one in recorded(3).launches]
    rounds = recorded(launches=tuple(several), faults=faults)
    job = {"display_name": "PairLaunches", "unique_name": "PairLaunches"}
    check = {"display_name": "PairCheck", "unique_name": "PairCheck", "netproof_kind": "pairs"}

    def measured(document: dict[str, Any]) -> None:
        tests = cases_in(document)
        first = next(test for test in tests if test["partition"] == rounds.partition)
        plain = {key: value for key, value in first.items() if not key.startswith("netproof_")}
        plain |= {"environ": rounds.environment, "dependencies_actual": []}
        of_pairs = {**codec.encode(rounds), "partition_extras": EXTRAS}
        tests += [
            {**plain, **job, "netproof_transport": SAID},
            {**plain, **check, "netproof_pairs": of_pairs},
        ]
        document["runs"][0]["num_cases"] += 2

    return altered(folder, measured, "two-switches", "run-7.json")


def lenient(monkeypatch) -> None:
    """Let the site call nothing disturbed."""
    real = matrix.gather

    def gather(folder: Path) -> dict[str, Any]:
        configuration = real(folder)
        for system in configuration["systems"]:
            for partition in system["partitions"]:
                partition["extras"]["criteria"] |= NOT_DISTURBED
        return configuration

    monkeypatch.setattr(matrix, "gather", gather)


def test_rounds_of_pairs_are_kept_with_what_they_accuse(store, site, monkeypatch):
    lenient(monkeypatch)
    report = with_pairs(site, suffering, ("pairs.4 did not run",))
    done = ingest(store, report)
    assert not done.not_judged
    read, as_reported = questions.load(store, done.stored), session.load(report)
    of_pairs = [result.rounds for result in as_reported.results if result.rounds]
    assert of_pairs
    assert [result.rounds for result in read.results if result.rounds] == of_pairs
    for several in (read, as_reported):
        assert [codec.encode(one.transport) for one in several.results if one.transport] == [SAID]
    by_store = insist_on_the_same(read)
    insist_on_equal(by_store.verdict, session_verdict.judge_session(as_reported).verdict)
    (judged,) = by_store.verdict.pairs
    assert judged.rounds == of_pairs[0]
    assert by_store.verdict.status == 1
    assert any("fast-ethernet" in fault for fault in by_store.verdict.faults)


OTHERWISE = {
    "coverage_percent": {"coverage_percent": 50},
    "may_differ": {"may_differ": {"kernel": "a node is being replaced"}},
    "pairs": {"pairs": {"slower": 0.2}},
    "rails": {"rails": ["eth1", "eth2"]},
    "switch": {"switch": "new"},
    "inversion": {"criteria": {"inversion": {"fail": 99}}},
}
"""Changes of a site's file by the words that name them."""


def test_what_the_site_says_otherwise_is_named(store, monkeypatch):
    read = questions.load(store, stored(store))
    real = matrix.gather
    for named, extras in OTHERWISE.items():
        configuration = real(folders.of_site())
        (testbed,) = (one for one in configuration["systems"] if one["name"] == "testbed")
        (gige,) = (one for one in testbed["partitions"] if one["name"] == "gige")
        criteria = {**gige["extras"]["criteria"], **extras.get("criteria", {})}
        gige["extras"] |= {**extras, "criteria": criteria}
        monkeypatch.setattr(matrix, "gather", lambda folder, made=configuration: made)
        assert session_verdict.judge_session(read).differs == (f"{named} of gige",)


def test_it_is_read_by_session_and_by_its_own_report_and_nothing_is_judged(
    store, site, monkeypatch
):
    place = stored(store)
    never_judged(monkeypatch)
    report = session.load(SESSIONS / "healthy.json")
    assert session_verdict.judge_session(questions.load(store, place)).stored
    assert session_verdict.judge_session(report, store=store.folder).stored
    copy = site / "run-1.json"
    copy.write_text((SESSIONS / "healthy.json").read_text() + "\n")
    for other, asked in ((report, None), (session.load(copy), store.folder)):
        with pytest.raises(AssertionError, match="was judged"):
            session_verdict.judge_session(other, store=asked)


def test_who_asks_for_more_than_was_to_run_has_it_judged_now(store):
    read = questions.load(store, stored(store, system="testbed:gige"))
    own = session_verdict.judge_session(read)
    assert own.stored
    assert own.matrix.partitions.keys() == {"gige"}
    assert session_verdict.judge_session(read, system="testbed:gige").stored
    for asked in ({"system": "testbed"}, {"system": "testbed:gige", "full": True}):
        assert session_verdict.judge_session(read, **asked).stored is None


def bound_the_latency(site: Path) -> None:
    """Let no latency of the testbed pass."""
    path = site / "reference-values" / "testbed.yaml"
    text = re.sub(r"latency_us: .*", "latency_us: [0.001, null, 0.1, us]", path.read_text())
    path.write_text(text)


def test_another_netproof_is_reported_and_a_comment_in_the_references_is_no_difference(
    store, site, monkeypatch
):
    read = questions.load(store, stored(store))
    path = site / "reference-values" / "testbed.yaml"
    path.write_text(f"# A comment.\n{path.read_text()}")
    assert session_verdict.judge_session(read).differs == ()
    monkeypatch.setattr(stored_verdicts, "JUDGED_BY", stored_verdicts.JUDGED_BY + 1)
    (difference,) = session_verdict.judge_session(read).differs
    assert "judged it, and this is" in difference


def test_again_tells_case_by_case_what_differs(store, site):
    place = stored(store, "passed")
    bound_the_latency(site)
    runner = CliRunner()
    plain = runner.invoke(app, ["verdict", place.name, "--store", str(store.folder)])
    assert " ".join(plain.stdout.split()).count("today's bounds differ: the references of") == 1
    done = runner.invoke(app, ["verdict", place.name, "--store", str(store.folder), "--again"])
    named = " ".join(done.stdout.split())
    assert done.exit_code == 1
    assert "otherwise than the verdict of" in named
    assert "CHANGED testbed:" in named
    assert ", now fail; now: " in named
    document = json.loads(
        runner.invoke(
            app, ["verdict", place.name, "--store", str(store.folder), "--again", "--format=json"]
        ).stdout
    )
    assert document["stored"] is None
    assert {one["now"] for one in document["changed"]["cases"]} == {"fail"}


def test_a_session_that_could_not_be_judged_is_stored_and_judged_when_it_is_opened(
    store, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.delenv("RFM_CONFIG_PATH")
        done = ingest(store, SESSIONS / "healthy.json")
    assert "RFM_CONFIG_PATH" in done.not_judged
    assert not store.has_verdict(done.stored)
    assert not faults(store, done.stored)
    judged = session_verdict.judge_session(questions.load(store, done.stored))
    assert judged.stored is None
    assert judged.verdict.cases


def test_a_verdict_that_was_changed_is_gone_or_is_very_large_is_named_and_never_used(
    store, monkeypatch
):
    place = stored(store)
    path = store.path(place) / VERDICT
    whole = path.read_bytes()

    def refused(why: str) -> None:
        with pytest.raises(NetproofError, match=why):
            session_verdict.judge_session(questions.load(store, place))

    path.write_bytes(whole[:100] + bytes([whole[100] ^ 4]) + whole[101:])
    refused(f"^{path}: is damaged: ")
    judged = session_verdict.judge_session(
        session.load(SESSIONS / "healthy.json"), store=store.folder
    )
    assert judged.stored is None
    assert str(path) in judged.verdict.notes[-1]
    path.unlink()
    refused("is damaged")
    path.write_bytes(whole)
    monkeypatch.setattr(stored_verdicts, "MOST_BYTES", 1000)
    refused("more than 1000 bytes")


def _ruled(document: dict[str, Any]) -> dict[str, Any]:
    return next(one for one in document["cases"] if one.get("findings"))


SPOILT: dict[str, Callable[[dict[str, Any]], object]] = {
    "a case less": lambda kept: kept["cases"].pop(),
    "another report": lambda kept: kept.update(report_sha256="0" * 64),
    "an unknown level": lambda kept: _ruled(kept)["findings"][0].update(level="green"),
    "a key that nobody knows": lambda kept: kept.update(more=1),
    "no format": lambda kept: kept.pop("format"),
    "another format": lambda kept: kept.update(format=kept["format"] + 1),
    "other rounds": lambda kept: kept["pairs"].append(kept["pairs"][0]),
    "no coverage": lambda kept: kept["verdict"].pop("coverage"),
    "something more": lambda kept: kept["verdict"].update(weather=[]),
}


def test_a_verdict_that_lacks_a_part_or_contradicts_its_session_is_an_error_with_its_file(
    store, site, monkeypatch
):
    lenient(monkeypatch)
    place = ingest(store, with_pairs(site, suffering)).stored
    whole = {path: path.read_bytes() for path in store.path(place).iterdir()}
    for what, change in SPOILT.items():
        path = changed(store, place, change)
        with pytest.raises(NetproofError) as error:
            session_verdict.judge_session(questions.load(store, place))
        assert str(error.value).startswith(f"{path}: the stored verdict cannot be used: "), what
        (fault,) = faults(store, place)
        assert fault == str(error.value), what
        for kept, content in whole.items():
            kept.write_bytes(content)


def test_warnings_of_earlier_sessions_are_read_and_not_judged_again(store, site, monkeypatch):
    places = []
    for number in range(4):
        change = partial(another, number=number, later_s=number * 86400)
        report = altered(site, change, "sick", f"run-{number}.json")
        places.append(ingest(store, report).stored)
    read = questions.load(store, places[-1])
    now = session_verdict.judge_session(read, again=True)
    never_judged(monkeypatch)
    by_store = session_verdict.judge_session(read)
    assert by_store.recurring[0] == 3
    assert by_store.recurring[1]
    assert said(by_store) == said(now)


def test_a_session_dated_in_the_future_is_warned_of_where_it_is_stored_and_judged(store, tmp_path):
    later = datetime(2099, 1, 1, tzinfo=UTC).timestamp()
    report = altered(
        tmp_path, lambda it: it["session_info"].update(time_start_unix=later), "healthy"
    )
    assert ingest(store, report).ahead.endswith("set the clock, or remove that session")
    judged = session_verdict.judge_session(session.load(report))
    assert f"note: {report} is of 2099-01-01" in printed(judged).replace("\n", " ")
    assert f"note: {judged.session.ahead}" in shown(brief(judged), 500)
    assert not session.load(SESSIONS / "healthy.json").ahead
