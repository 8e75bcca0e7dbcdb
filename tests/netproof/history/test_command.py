"""``netproof history``: what it prints, what it exits with, and every message that can be met."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from made_answers import insist_on_keys
from made_nights import by, mtu, recorded, unchanged
from typer.testing import CliRunner

from netproof.commands.cli import app

ROOT = Path(__file__).resolve().parents[3]
SLOW = by(1.2, environment="mpich")


def history(nights, *arguments: str) -> tuple[int, str, str]:
    ran = CliRunner().invoke(app, ["history", *arguments, "--store", str(nights.store.folder)])
    return ran.exit_code, ran.stdout, ran.stderr


def accepted(nights, *arguments: str, reason="intended", name="jd") -> tuple[int, str, str]:
    return history(nights, "accept", *arguments, "--reason", reason, "--name", name)


def test_an_empty_store_cannot_be_followed(nights):
    status, out, err = history(nights)
    assert (status, out) == (2, "")
    assert "netproof: cannot follow: " in err
    assert "holds no session; 'netproof store add REPORT' brings one" in err


@pytest.mark.slow
def test_a_change_for_the_worse_is_reported_with_its_session_and_fails(stepped):
    status, out, _ = history(stepped)
    assert status == 1
    assert "\nWORSE: 1 change in 1 configuration, " in out
    assert "▼ gige mpich since 2026-09-25 01:00 (session 20260925T010000-00000018)" in out
    (pooled,) = [line for line in out.splitlines() if "latency, 7 cases pooled" in line]
    assert re.search(r"\+(19|20|21)\.\d %", pooled)
    assert "Nothing that is recorded changed since the session before, 2026-09-24 01:00." in out


@pytest.mark.slow
def test_a_change_for_the_better_is_to_be_accepted(nights):
    nights.add_many(30, {24: by(1 / 1.2, environment="mpich")})
    status, out, _ = history(nights)
    assert status == 0
    assert "▲ gige mpich since 2026-09-25 01:00" in out
    assert "accept it, so that losing it again shows (netproof history accept)" in out


@pytest.mark.slow
def test_the_series_of_a_case_are_shown_session_by_session(stepped):
    status, out, _ = history(stepped, "--case", "sendrecv", "--case", "4 ranks", "-p", "mpich")
    assert status == 1
    assert "gige mpich IMB Sendrecv 4 ranks" in out
    assert "other" not in out
    rows = [line for line in out.splitlines() if line.startswith("20260925T010000-00000018")]
    assert len(rows) == 1
    assert "▼" in rows[0]
    assert sum(line.startswith("202609") for line in out.splitlines()) == 30
    status, out, _ = history(stepped, "--environment", "other")
    assert status == 0


@pytest.mark.slow
def test_a_session_of_two_systems_is_of_the_one_that_is_named(nights):
    for system in ("testbed", "moon"):
        nights.add(0, system=system)
        nights.add(1, system=system)
    _, _, err = accepted(nights, "--case", ".", "newest")
    assert "holds 2 systems, moon, testbed; name one: SYSTEM" in err
    for session in ("newest", "20260902"):
        assert accepted(nights, "--case", ".", session, "moon")[0] == 0
        assert history(nights, session, "moon")[0] == 3
    assert nights.store.acceptances("testbed") == ()


@pytest.mark.slow
def test_without_a_baseline_it_says_so(nights):
    def no_baseline(rows):
        for row in rows["cases"]:
            row["partition_extras"] = row["partition_extras"].replace('"baseline"', '"formerly"')

    for night in range(6):
        nights.add(night, change=no_baseline)
    assert "No scores are followed: no session names a score baseline." in history(nights)[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--case", "("), "'(' is no regular expression"),
        (("--case", "nothing"), "no series of testbed fits: cases with 'nothing'"),
        (("testbed:roce",), "no series of testbed fits: partition roce"),
        (("moon",), "no session of system moon; it has testbed"),
        (("2020",), "has no session '2020'"),
        (("--since", "2027-01-01"), "no session of testbed began on 2027-01-01 or later"),
        (("--label", "rack"), "'rack' is no label: KEY=VALUE"),
        (("--label", "rack=b"), "is labelled rack=b; the labels there are: none"),
        (("--to", "series.gif"), "series.gif: unknown format; choose .html, .svg, .png, .pdf"),
        (("--to", "series.svg"), "series are too many for one plot, 24 fit"),
        (("--case", "pingpong", "--to", "/nowhere/x.svg"), "x.svg: No such file or directory"),
    ],
)
def test_what_cannot_be_is_said_with_the_remedy(nights, arguments, said):
    nights.add_many(2)
    status, out, err = history(nights, *arguments)
    assert status == 2
    assert out == ""
    # The parser of options wraps its messages on a narrow terminal.
    assert said in " ".join(err.replace("│", " ").split())


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["html", "svg"])
def test_series_are_drawn_with_their_changes(stepped, tmp_path, suffix):
    path = tmp_path / f"series.{suffix}"
    arguments = ("--case", "sendrecv 4 r", "-p", "mpich", "--to", str(path))
    status, out, _ = history(stepped, *arguments)
    assert status == 1
    assert out.endswith(f"plot {path}\n")
    content = path.read_bytes()
    if suffix == "html":
        assert b"2026-09-25 +" in content
        assert not re.search(rb"<(?:script|link)[^>]*(?:src|href)=", content)
    else:
        assert content.startswith(b"<svg")
        assert b"worse, open" in content
        assert content.count(b"2026-09-25") >= 7


@pytest.mark.slow
def test_an_accepted_change_does_not_alarm_again_until_the_acceptance_is_removed(nights):
    nights.add_many(30, {24: SLOW})
    session = nights.stored(24).name
    status, out, _ = accepted(nights, "--case", "gige mpich", session, reason="jumbo frames")
    assert status == 0
    assert f"accepted: cases with 'gige mpich' from session {session} on: jumbo frames (jd, " in out
    assert "ends: gige mpich since 2026-09-25 01:00" in out
    (path,) = nights.store.acceptances("testbed")
    assert f"to take it back, remove {path}" in out.replace("\n", "")
    status, out, _ = history(nights)
    assert status == 0
    assert "accepted: cases with 'gige mpich' from session" in out
    path.unlink()
    assert history(nights)[0] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("from_night", "said", "status"),
    [(10, "stays open, since it began later: ", 1), (23, "ENDS THOUGH IT BEGAN LATER: ", 0)],
)
def test_what_began_later_stays_open_or_is_marked(nights, from_night, said, status):
    nights.add_many(30, {24: SLOW})
    ended, out, _ = accepted(nights, "--case", ".", nights.stored(from_night).name)
    assert ended == 0
    assert f"{said}gige mpich since 2026-09-25 01:00" in out
    assert ("stays open" in out) is bool(status)
    assert history(nights)[0] == status


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "says what it covers: an expression for cases (--case . for all of them)"),
        (("--case", "nothing"), "no series of testbed fits: cases with 'nothing'"),
        (("--case", ".", "moon"), "is of system testbed, not moon"),
        (("--case", ".", "--name", " "), "needs a name: give --name"),
        (("--case", ".", "--reason", ""), "needs a reason: give --reason"),
        (("--case", ".", "2020"), "name one session"),
    ],
)
def test_what_cannot_be_accepted_is_said(nights, arguments, said):
    nights.add_many(2)
    given = ("--reason", "r", "--name", "n", nights.stored(1).name)
    status, out, err = history(nights, "accept", *given, *arguments)
    assert (status, out) == (2, "")
    assert said in " ".join(err.split())
    assert nights.store.acceptances("testbed") == ()


@pytest.mark.slow
def test_a_full_or_closed_store_is_said(nights):
    stored = nights.add(0)
    nights.add(1)
    (nights.store.folder / "accepted").write_text("in the way")
    status, _, err = accepted(nights, "--case", ".", stored.name)
    assert status == 2
    assert "cannot be written: " in err


def crashing(count: int):
    """Change rows so that ``count`` launches of mpich crashed."""
    crash = {"launch": 1, "attempt": 1, "order": 2, "status": 139, "nodes": [], "said": "Segv"}

    def change(rows):
        first = next(r for r in rows["cases"] if r["environment"] == "mpich" and r["launches"])
        first["crashes"] = [crash] * count

    return change


def carriers(changes: int | None):
    """Change rows so that the first launch has counters, of a carrier that changed so often."""
    interface = {"kind": "interface", "name": "eth1", "read": 0, "layer": "", "interfaces": []}
    interface |= {"counted": {"carrier_changes": changes} if changes else {}, "absent": {}}
    if changes is None:
        interface["absent"] = {"carrier_changes": "went from 9 to 1"}
    tcp = {"kind": "tcp", "name": "", "read": 0, "layer": "", "interfaces": [], "absent": {}}
    tcp |= {"counted": {"Tcp.OutSegs": 90, "Tcp.RetransSegs": 10}}
    counters = {"sources": {"gige-1": [interface, tcp]}, "absent": {"gige-1": {}}}
    counters["names"] = [[]]

    def change(rows):
        rows["launches"][0] |= {"counters": counters}

    return change


@pytest.mark.slow
def test_crashes_and_what_nodes_counted_are_listed_from_session_to_session(nights):
    nights.add(0)
    for night, (crashes, changes) in enumerate(((0, 0), (2, 2), (0, None), (1, 1)), 1):

        def change(rows, crashes=crashes, changes=changes):
            crashing(crashes)(rows)
            carriers(changes)(rows)

        nights.add(night, change=change)
    made = sum(row["launches"] or 0 for row in recorded()["cases"]) // 2
    status, out, _ = history(nights)
    assert status == 3
    share = f"{100 * 3 / (5 * made + 3):.2g}"
    assert (
        f"\nlaunches that crashed\ngige mpich: 3 of {5 * made + 3} launches crashed ({share} %),"
        f" in 2 of 5 sessions; in the newest 1 of {made + 1}\n"
    ) in out
    line = "gige gige-1: 3 carrier changes in 2 of 3 sessions"
    assert f"\nwhat nodes' networks counted\n{line}\n" in out
    document = json.loads(history(nights, "--format=json")[1])
    mpich, other = document["crashes"]
    assert (mpich["environment"], mpich["crashed"]) == ("mpich", [0, 0, 2, 0, 1])
    assert (other["environment"], other["crashed"]) == ("other", [0] * 5)
    assert mpich["launches"] == [made, made, made + 2, made, made + 1]
    (one,) = document["counted"]
    assert one["carrier_changes"] == [None, 0, 2, None, 1]
    assert one["again"] == [None, 10, 10, 10, 10]
    assert one["segments"] == [None, 100, 100, 100, 100]


@pytest.mark.slow
def test_the_json_lacks_no_key_and_has_no_other(nights):
    def late(rows):
        crashing(1)(rows)
        mtu(rows)

    twice = by(2.0, environment="mpich")
    for night in range(16):
        nights.add(night, twice if night >= 9 else by(1), late if night > 9 else unchanged)
    accepted(nights, "--environment", "other", nights.stored(3).name)
    status, out, _ = history(nights, "--case", "mpich", "--format=json")
    document = json.loads(out)
    assert status == 1
    insist_on_keys("history", document)
    assert document["verdict"] == "worse"
    assert document["events"][0]["around"][0]["differences"][0]["what"] == "mtu"


@pytest.mark.slow
def test_what_is_inconclusive_is_reported_session_by_session(nights, tmp_path):
    why = "the machine was disturbed: gige-2: others used 38 % of the CPUs"

    def disturbed(rows):
        for row in rows["cases"]:
            if (row["function"], row["environment"], row["ranks"]) == ("Sendrecv", "mpich", 4):
                row["inconclusive"] = [why]

    nights.add_many(11)
    nights.add(11, by(2.0), disturbed)
    line = f"gige mpich IMB Sendrecv 4 ranks: inconclusive: {why}"
    _, out, _ = history(nights)
    flat = " ".join(out.split())
    assert "a case was inconclusive once, in 1 of 12 sessions" in flat
    assert line in flat
    plot = tmp_path / "series.svg"
    arguments = ("--case", "sendrecv 4 r", "--environment", "mpich", "--quantity", "latency_us")
    _, out, _ = history(nights, *arguments, "--to", str(plot))
    assert line in " ".join(out.split())
    assert re.search(r"\d \?\s", next(r for r in out.splitlines() if "-0000000b" in r) + "\n")
    assert ">?</text>" in plot.read_text()
    _, out, _ = history(nights, *arguments, "--format=json")
    document = json.loads(out)
    (one,) = document["inconclusive"]
    assert (one["session"], one["why"]) == (nights.stored(11).name, [why])
    assert document["series"][0]["values"][11] is None
    assert document["series"][0]["inconclusive"][11] > 0


def damage(nights, night: int, name: str = "curves") -> Path:
    """Overwrite what a file of a session has where Parquet's index begins."""
    stored = nights.store.sessions()[night]
    path = nights.store.path(stored) / f"{name}.parquet"
    content = bytearray(path.read_bytes())
    index = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    content[index : index + 60] = b"\xff" * 60
    path.chmod(0o644)
    path.write_bytes(content)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["curves", "cases"])
def test_a_damaged_session_is_named_and_left_out_and_the_exit_status_says_so(nights, name):
    nights.add_many(10)
    path = damage(nights, 4, name)
    status, out, err = history(nights)
    assert status == 3
    assert "history of testbed: 9 sessions from" in out
    assert f"20260905T010000-00000004 is left out: {path}: is damaged: " in err
    status, out, _ = history(nights, "--format=json")
    document = json.loads(out)
    assert status == 3
    assert len(document["sessions"]) == 9
    assert document["verdict"] == "not worse"
    assert str(path) in document["unread"][0]
    status, _, err = history(nights, "20260905T010000")
    assert status == 2
    assert f"{path}: is damaged: " in err


@pytest.mark.slow
def test_where_no_session_can_be_read_the_files_are_named(nights):
    nights.add_many(2)
    paths = [damage(nights, night) for night in (0, 1)]
    status, out, err = history(nights)
    assert (status, out) == (2, "")
    assert all(str(path) in err for path in paths)
