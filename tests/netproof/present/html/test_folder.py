"""A report's folder has the earlier report or the new one, whole, and what others put there."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import time
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from netproof.errors import NetproofError
from netproof.present.html import folder
from netproof.present.html.folder import ABANDONED_AFTER_S, MANIFEST, replacing

FORK = multiprocessing.get_context("fork")


def write_for_ever(target: Path, word: str, ready: Event) -> None:
    ready.set()
    while True:
        names = ["index.html", *(f"charts/{word}-{number}.csv" for number in range(20))]
        write(target, *names, text=word)
        word = word[::-1]


def write(target: Path, *names: str, text: str = "new") -> None:
    with replacing(target) as new:
        for name in names:
            (new / name).parent.mkdir(exist_ok=True)
            (new / name).write_text(text)


def found(target: Path) -> dict[str, str]:
    return {
        str(path.relative_to(target)): path.read_text()
        for path in target.rglob("*")
        if path.is_file() and path.name != MANIFEST
    }


@pytest.mark.parametrize("exchanged", [True, False])
def test_of_an_earlier_report_nothing_stays_and_what_others_put_there_does(
    tmp_path, monkeypatch, exchanged
):
    def refuse(one: Path, other: Path) -> None:
        raise OSError(errno.EINVAL, "no exchange here", str(other))

    if not exchanged:
        monkeypatch.setattr(folder, "_exchange", refuse)
    target = tmp_path / "report"
    write(target, "index.html", "charts/a.png", text="old")
    (target / "notes.txt").write_text("mine")
    (target / "charts" / "mine.png").write_text("mine")
    (target / "empty" / "folder").mkdir(parents=True)
    (target / "link").symlink_to("nowhere")
    for _ in range(2):
        write(target, "index.html")
        assert found(target) == {
            "index.html": "new",
            "notes.txt": "mine",
            "charts/mine.png": "mine",
        }
        assert (target / "empty" / "folder").is_dir()
        assert os.readlink(target / "link") == "nowhere"
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_a_folder_of_other_things_or_that_one_stands_in_is_refused_and_an_empty_one_is_taken(
    tmp_path, monkeypatch
):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(NetproofError, match=r"no report, it has 'thesis.tex' and no netproof-rep"):
        write(tmp_path, "index.html")
    assert found(tmp_path) == {"thesis.tex": "mine"}
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    for place in (".", ".."):
        with pytest.raises(NetproofError, match="you are in it"):
            write(Path(place), "index.html")
    assert found(empty) == {}
    monkeypatch.chdir(tmp_path)
    write(empty, "index.html")
    assert found(empty) == {"index.html": "new"}


def test_a_report_that_fails_or_is_in_the_way_of_others_files_leaves_the_earlier_one(tmp_path):
    target = tmp_path / "report"
    write(target, "index.html", text="old")
    with pytest.raises(TypeError):
        write(target, "index.html", text=None)
    (target / "netpipe.html").write_text("mine")
    with pytest.raises(NetproofError, match=r"netpipe\.html: is not of the earlier report"):
        write(target, "index.html", "netpipe.html")
    assert found(target) == {"index.html": "old", "netpipe.html": "mine"}
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is no JSON"),
        ("[]", "cannot be read"),
        ('{"format": 1}', "cannot be read: KeyError"),
        ('{"format": 2, "files": []}', "is of format 2, and this netproof knows 1"),
        ('{"format": 1, "files": ["../thesis.tex"]}', "names ../thesis.tex, which is not in"),
    ],
)
def test_a_manifest_that_is_none_is_refused(tmp_path, text, reason):
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(NetproofError, match=reason):
        write(tmp_path, "index.html")
    assert (tmp_path / MANIFEST).read_text() == text


def test_the_folder_can_be_named_by_a_link_and_keeps_its_mode(tmp_path):
    target = tmp_path / "report"
    target.mkdir(mode=0o750)
    target.chmod(0o750)
    (tmp_path / "link").symlink_to(target)
    for text in ("first", "second"):
        write(tmp_path / "link", "index.html", text=text)
        assert found(target) == {"index.html": text}
        assert (tmp_path / "link").is_symlink()
        assert target.stat().st_mode & 0o777 == 0o750


@pytest.mark.slow
def test_killed_at_whatever_moment_there_is_one_whole_report(tmp_path):
    target = tmp_path / "report"
    write(target, "index.html", text="old")
    (target / "notes.txt").write_text("mine")
    for number in range(12):
        ready = FORK.Event()
        writer = FORK.Process(target=write_for_ever, args=(target, "ab", ready))
        writer.start()
        ready.wait()
        began = (target / MANIFEST).stat().st_ino
        end = time.monotonic() + 0.013 * number
        # Every other time not before it has written one, however slow the machine is.
        while time.monotonic() < end or (number % 2 and (target / MANIFEST).stat().st_ino == began):
            # A reader meanwhile.
            assert (target / "index.html").read_text() in ("old", "ab", "ba")
        writer.kill()
        writer.join()
        there = found(target)
        word = there["index.html"]
        assert word != "old" or number == 0
        charts = {f"charts/{word}-{number}.csv": word for number in range(20)}
        assert there == {"notes.txt": "mine", "index.html": word} | (
            {} if word == "old" else charts
        )
        manifest = json.loads((target / MANIFEST).read_text())
        assert sorted(manifest["files"]) == sorted([MANIFEST, *(there.keys() - {"notes.txt"})])


def test_what_a_killed_writer_left_is_removed_after_a_day(tmp_path):
    target = tmp_path / "report"
    for name, age_s in (("young", 60), ("old", ABANDONED_AFTER_S + 60)):
        left = tmp_path / f".report.netproof-report-{name}"
        left.mkdir()
        (left / "index.html").write_text("half")
        os.utime(left, (time.time() - age_s,) * 2)
    write(target, "index.html")
    assert {path.name for path in tmp_path.iterdir()} == {
        "report",
        ".report.netproof-report-young",
    }
