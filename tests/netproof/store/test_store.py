"""The store has what the reports had, takes a session once, and refuses damaged reports whole."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import random
import re
from pathlib import Path

import hypothesis
import pytest
from made_reports import altered, busy
from made_stores import added
from typer.testing import CliRunner

from netproof.commands.cli import app
from netproof.criteria.settings import Settings
from netproof.diagnosis.diagnosis import ingest
from netproof.errors import NetproofError
from netproof.session import session
from netproof.store import Store, StoredSession, questions
from netproof.store.folder import FORMAT, MARKER
from netproof.store.tables import PATH_COLUMNS, TABLES
from netproof.verdict import confirmations, session_verdict
from netproof.verdict.engine import Subject

ROOT = Path(__file__).resolve().parents[3]
SESSIONS = ROOT / "tests" / "data" / "sessions"
PASSED, FAULTY, SICK, RANGES = (
    SESSIONS / f"{name}.json" for name in ("passed", "faulty", "sick", "ranges")
)
PASSED_NAME = "20261120T233238-d1f0d2ad"


@pytest.fixture
def store(tmp_path) -> Store:
    return Store.create(tmp_path / "store")


def measured_test(document: dict) -> dict:
    return next(test for test in document["runs"][0]["testcases"] if test.get("netproof_measured"))


def plain(stored: session.Session) -> list[dict]:
    """A session's results as JSON would have them."""
    return json.loads(json.dumps([dataclasses.asdict(result) for result in stored.results]))


@pytest.mark.slow
@pytest.mark.parametrize("report", [PASSED, FAULTY, SICK, RANGES], ids=lambda report: report.stem)
def test_a_stored_session_is_the_one_that_the_report_had(store, report):
    done = ingest(store, report)
    there, reported = questions.load(store, done.stored), session.load(report)
    assert there.info == reported.info
    assert there.provenance == reported.provenance
    assert plain(there) == plain(reported)


CRASH = {
    **{"number": 2, "order": 7, "start": 0.0, "wall_s": 1.0, "ranks": [], "curves": []},
    **{"attempt": 1, "status": 139, "died_on": ["gige-2"], "said": "SEGV"},
}


def counted(**changes: int) -> dict:
    """Counters of one node's network."""
    source = {"kind": "interface", "name": "eth1", "counted": changes, "read": 0}
    source |= {"absent": {"rx_bytes": "went from 9 to 1"}, "layer": "", "interfaces": ["eth2"]}
    names, absent = [["tx_bytes", "rx_errs", "carrier_changes"]], {"softnet": "no"}
    of_node = {"sources": [source], "absent": absent}
    return {"names": names, **{name: {"gige-1": one} for name, one in of_node.items()}}


def extend(document: dict) -> None:
    """Add all that a job may note of its launches to the report of a sick switch."""
    several = [
        test["netproof_measured"]
        for test in document["runs"][0]["testcases"]
        if test.get("netproof_measured")
    ]
    for found in several:
        found["crashes"] = []
        crash = {**CRASH, "counters": counted(carrier_changes=4)}
        found["again"][0] |= {"steps": 3 - len(found["again"]), "crashes": [CRASH, crash]}
        name = {"mpich": "intelmpi", "intelmpi": "mpich"}.get(found["case"]["environment"])
        for launch in found["launches"] if name else ():
            curve = {**launch["curves"][0], "bandwidth_mb_s": None}
            crash = {**CRASH, "counters": counted(carrier_changes=2)}
            peer = {"environment": name, "curves": [curve], "crashes": [crash]}
            peer |= {"ranks": [], "used": {}, "counters": counted(rx_errs=3)}
            launch["peers"] = [launch | peer]
    launch = several[0]["launches"][0]
    absent = [["machine", "none"], ["pressure_share", "no"]]
    unknown = {"machine": None, "pressure_share": None, "absent": absent}
    launch["loads"] = [busy(0.3) | unknown, busy(0.3, "gige-2")]
    launch |= {"counters": counted(tx_bytes=7), "payload": "not printed"}
    for one in several[0]["launches"]:
        one["exchanged"] = [10**9, 100]
        one["used"]["system_s"] = [0.01] * len(one["ranks"])
    unknown = ["it was not recorded"] * (len(launch["ranks"]) - 1)
    first = {"voluntary": 5, "involuntary": 7, "waited_s": "no"}
    launch["used"] |= {name: [value, *unknown] for name, value in first.items()}
    start = {"wall_s": 0.001, "cpu_s": 0.0002, "system_s": 0.0001}
    used = {name: [seconds] * len(launch["ranks"]) for name, seconds in start.items()}
    several[0]["starts"] = [launch | {"curves": [], "used": used}, "it hung"]


@pytest.fixture(scope="module")
def extended(tmp_path_factory) -> tuple[session.Session, Store, StoredSession]:
    """A report with all that a job may note, and the store that has it."""
    folder = tmp_path_factory.mktemp("extended")
    report = altered(folder, extend, "sick")
    store = Store.create(folder / "store")
    return session.load(report), store, ingest(store, report).stored


@pytest.mark.slow
def test_all_that_a_job_notes_is_kept_and_can_be_asked_for(extended):
    reported, store, stored = extended
    read = questions.load(store, stored)
    assert plain(read) == plain(reported)
    asked = {
        "select load.node, load.others_share, load.absent['machine'] from"
        " (select unnest(loads) as load from launches)": [
            *(("gige-1", 0.3, "none"), ("gige-2", 0.3, None))
        ],
        "select cost.cpu_s > 0 and cost.s_per_gb > 0 from"
        " (select unnest(cpu_costs) as cost from cases) where cost.cpu_s is not null": [
            *((True,), (True,))
        ],
        "select ranks_used[1].involuntary, ranks_used[1].system_s, exchanged.messages,"
        " exchanged.bytes from launches where ranks_used[1].involuntary is not null": [
            (7, 0.01, 100, 10**9)
        ],
        "select source.counted['tx_bytes'] from launches,"
        " unnest(counters.sources['gige-1']) as s(source)": [(7,)],
        "select distinct peer.environment, map_keys(peer.counters.sources)[1],"
        " peer.counters.names[1][2]"
        " from (select unnest(paired) as peer from launches)": [
            ("intelmpi", "gige-1", "rx_errs"),
            ("mpich", "gige-1", "rx_errs"),
        ],
    }
    with questions.connect(store) as connection:
        for question, answer in asked.items():
            assert connection.sql(f"{question} order by all").fetchall() == answer
    cases = [one.measured for one in read.results if one.measured]
    known = [cost for one in cases for cost in one.cpu_costs if cost.cpu_s is not None]
    assert len(known) == 2
    followed = questions.nightly(store, [stored], None).column("cpu_s_per_gb").to_pylist()
    assert {*followed} - {None} == {max(one.s_per_gb for one in known)}


@pytest.mark.slow
def test_crashes_are_counted_with_those_around_flagged_sizes_and_of_paired_environments(extended):
    _, store, stored = extended
    cases = [one.measured for one in questions.load(store, stored).results if one.measured]
    subjects = [Subject(one, "gige", Settings(), {}) for one in cases]
    counts = confirmations.launched(subjects)
    rows = questions.crashes(store, [stored]).to_pylist()
    names = ("partition", "environment", "launches", "crashed")
    assert sorted(tuple(row[name] for name in names) for row in rows) == sorted(
        tuple(getattr(one, name) for name in names) for one in counts
    )
    paired = sum(len(launch.peers) for one in cases for launch in one.launches)
    assert sum(one.crashed for one in counts) == paired + 2 * len(cases)
    (row,) = questions.counted(store, [stored]).to_pylist()
    assert (row["node"], row["carrier_changes"]) == ("gige-1", 2 * paired + 4 * len(cases))


@pytest.mark.slow
def test_another_report_of_a_stored_session_is_refused(store, tmp_path):
    ingest(store, PASSED)

    def slower(document):
        document["session_info"]["time_elapsed"] += 1

    with pytest.raises(NetproofError, match=r"the store has session .* from another report"):
        ingest(store, altered(tmp_path, slower))
    assert questions.load(store, store.newest()).info == session.load(PASSED).info


@pytest.mark.slow
def test_of_a_case_that_ran_twice_the_last_one_stands(store, tmp_path):
    def rerun(document):
        first = document["runs"][0]
        again = copy.deepcopy(first)
        for test in first["testcases"]:
            test["result"], test["fail_phase"] = "fail", "sanity"
            test["netproof_measured"] = {}
        document["runs"].append(again)

    report = altered(tmp_path, rerun)
    done = ingest(store, report)
    assert (done.cases, done.measured) == (3, 3)
    with questions.connect(store) as connection:
        assert connection.sql("select attempts, result from cases").fetchall() == [(2, "pass")] * 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d["session_info"].pop("uuid"), "uuid: None is no uuid"),
        (lambda d: d["session_info"].pop("time_start_unix"), "time_start_unix: None is no time"),
        (lambda d: d["session_info"].pop("user"), "session_info: user is missing"),
        (lambda d: d["runs"][0]["testcases"].pop(), "its header counts others"),
        (
            lambda d: measured_test(d).update(system="other"),
            "what was measured is of testbed:gige",
        ),
        (
            lambda d: measured_test(d)["netproof_measured"]["launches"][0]["curves"][0][
                "time_us"
            ].pop(),
            "cannot hold",
        ),
        (
            lambda d: measured_test(d)["netproof_measured"].update(line_rate_mb_s=float("nan")),
            "NaN is no number",
        ),
        (
            lambda d: [t.update(netproof_measured={}) for t in d["runs"][0]["testcases"]],
            "a dry run is not stored",
        ),
    ],
)
def test_a_damaged_report_is_refused_with_the_reason_and_the_others_go_in(
    tmp_path, capfd, change, reason
):
    damaged = altered(tmp_path, change)
    folder = tmp_path / "store"
    assert added([damaged, FAULTY], folder) == 2
    message = capfd.readouterr().err
    assert f"refused {damaged}:" in message
    assert re.search(reason, message), message
    assert [stored.name for stored in Store(folder).sessions()] == ["20261120T232229-7117da51"]


def test_a_report_cut_anywhere_or_without_a_test_case_is_refused(store, tmp_path):
    whole = PASSED.read_bytes().rstrip()
    for share in (0.0, 0.2, 0.5, 0.9, 0.9999):
        cut = tmp_path / "cut.json"
        cut.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(NetproofError, match=r"cut\.json: is no whole report"):
            ingest(store, cut)
    empty = altered(tmp_path, lambda document: document.update(runs=[]))
    with pytest.raises(NetproofError, match="holds no test case, so nothing ran"):
        ingest(store, empty)
    assert store.sessions() == ()


@pytest.mark.slow
def test_whatever_is_changed_in_a_report_it_goes_in_whole_or_is_refused(tmp_path):
    whole = json.loads(PASSED.read_text())
    values = [None, -1, 0.5, "", "x", [], {}, True, float("nan"), 1e308, 2**70]
    refusals = []
    # Five times as many with `ci/test --all`.
    for seed in range(2 * hypothesis.settings.default.max_examples):
        chance = random.Random(seed)
        document = copy.deepcopy(whole)
        place = document
        while True:
            key = chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
            inner = place[key]
            if not isinstance(inner, dict | list) or not inner or chance.random() < 0.1:
                place[key] = chance.choice(values)
                break
            place = inner
        report = tmp_path / "changed.json"
        report.write_text(json.dumps(document))
        store = Store.create(tmp_path / f"store-{seed}")
        try:
            done = ingest(store, report)
        except NetproofError as error:
            refusals.append(str(error))
            assert store.sessions() == ()
        else:
            there = questions.load(store, done.stored)
            assert plain(there) == plain(session.load(report))
    assert all(refusal.startswith(f"{report}:") for refusal in refusals)
    assert refusals


def test_a_store_is_made_only_where_nothing_else_is_and_no_other_folder_is_read(tmp_path):
    report = altered(tmp_path)
    for make in (Store, Store.create):
        with pytest.raises(NetproofError, match=r"is a file, .*: name one with --store or NETPRO"):
            make(report)
    with pytest.raises(NetproofError, match=r"is no store and not empty, it has 'run-1\.json'"):
        Store.create(tmp_path)
    with pytest.raises(NetproofError, match=r"cannot be written: .*File name too long"):
        Store.create(tmp_path / ("x" * 300))
    assert added([PASSED], tmp_path) == 2
    with pytest.raises(NetproofError, match=f"is no store, it has no {MARKER}"):
        Store(tmp_path)
    (tmp_path / MARKER).write_text(json.dumps({"format": FORMAT + 1}))
    with pytest.raises(NetproofError, match=f"is a store of format {FORMAT + 1}"):
        Store(tmp_path)


@pytest.mark.slow
def test_a_report_that_may_not_be_read_is_refused_and_the_others_go_in(tmp_path, monkeypatch):
    # Root may read every file: that these may not be read is all that is made up.
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    store = tmp_path / "store"
    ran = CliRunner().invoke(
        app, ["store", "add", str(tmp_path), str(PASSED), "--store", str(store)]
    )
    assert ran.exit_code == 2
    assert "cannot be read" in ran.stderr
    assert f"stored: session {PASSED_NAME}" in ran.stdout


@pytest.mark.slow
def test_sessions_are_in_order_of_their_start_and_found_by_how_they_begin(store):
    for report in (PASSED, FAULTY):
        ingest(store, report)
    names = [stored.name for stored in store.sessions()]
    assert names == ["20261120T232229-7117da51", PASSED_NAME]
    assert store.newest() == store.find("newest") == StoredSession(PASSED_NAME, "testbed")
    assert store.find("20261120T2332").name == PASSED_NAME
    with pytest.raises(NetproofError, match="2 sessions begin with '20261120'"):
        store.find("20261120")
    with pytest.raises(NetproofError, match="has no session '2031'"):
        store.find("2031")
    with pytest.raises(NetproofError, match=f"has no session 'x*'; its newest is {PASSED_NAME} of"):
        session_verdict.find(Path("x" * 300), store.folder)
    with pytest.raises(NetproofError, match="holds no session of system other"):
        store.newest("other")


@pytest.mark.slow
def test_any_reader_of_parquet_reads_it(store):
    import pyarrow.dataset as ds

    ingest(store, PASSED)
    ingest(store, FAULTY)
    files = sorted(map(str, store.folder.glob("system=*/month=*/session=*/curves.parquet")))
    dataset = ds.dataset(files, partitioning="hive", partition_base_dir=str(store.folder))
    assert set(dataset.schema.names) == {*TABLES["curves"].names, *PATH_COLUMNS}
    assert set(dataset.to_table().column("session").to_pylist()) == {
        stored.name for stored in store.sessions()
    }


def test_the_documentation_has_every_table_and_column():
    text = (ROOT / "docs" / "reference" / "tables.md").read_text()
    path, key, *sections = [
        re.findall(r"`(\w+)`", " ".join(re.findall(r"(?m)^\| (`.+?) \|", rows)))
        for rows in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    ]
    assert tuple(path) == PATH_COLUMNS
    documented = dict(zip(re.findall(r"(?m)^## `(\w+)`$", text), sections, strict=True))
    for name, schema in TABLES.items():
        begin = key if schema.names[: len(key)] == key else []
        assert begin + documented[name] == schema.names, name


@pytest.mark.slow
def test_what_a_session_left_is_stored(store, tmp_path):
    left = {"why": "partition gige is DOWN", "planned": False}

    def leave(document: dict) -> None:
        tests = document["runs"][0]["testcases"]
        job = next(test for test in tests if not test.get("netproof_case"))
        case = next(test for test in tests if test.get("netproof_case"))
        job |= {"result": "skip", "netproof_left": left, "unique_name": "Job"}
        where = [f"{job['system']}:{job['partition']}", job["environ"]]
        case |= {"result": "skip", "netproof_measured": {}, "unique_name": "Case"}
        case["dependencies_actual"] = [["Job", *where]]

    ingest(store, altered(tmp_path, leave))
    results = questions.load(store, store.newest()).results
    why = left["why"]
    assert [(r.skipped, r.planned) for r in results if r.result == "skip"] == 2 * [(why, False)]
    assert {r.skipped for r in results if r.result != "skip"} == {""}
