"""Which release `ci/test --release` tries, and what it believes of the outcome."""

from __future__ import annotations

import fcntl
import json
import subprocess

import pytest
from made_machine import ROOT, TARGETS, as_root

from ci.release import command, entering, registries
from ci.release.errors import CannotRunError


def test_the_other_release_is_the_one_that_the_machine_is_not():
    assert command.other_than("bookworm") == "trixie"
    assert command.other_than("trixie") == "bookworm"


@pytest.mark.parametrize("codename", ["noble", ""])
def test_a_machine_of_neither_release_does_not_choose(codename):
    with pytest.raises(CannotRunError, match=r"bookworm and trixie only: name it by --release"):
        command.other_than(codename)


def document(*verdicts, faults=(), measured=True):
    """A verdict's document with a case for each of ``verdicts``."""
    launches = {"launches": 1} if measured else None
    cases = [{"verdict": verdict, "measured": launches} for verdict in verdicts]
    return {"cases": cases, "faults": list(faults)}


def test_inconclusive_cases_are_good_where_all_was_measured():
    assert command.all_worked(document("pass", "warn", "inconclusive"))


@pytest.mark.parametrize(
    "given",
    [
        document(),
        document("pass", "pass"),
        document("pass", "inconclusive", "fail"),
        document("pass", "inconclusive", "something else"),
        document("pass", "inconclusive", faults=["a case is missing"]),
        document("inconclusive", measured=False),
    ],
)
def test_anything_else_is_not(given):
    assert not command.all_worked(given)


@as_root
def test_root_without_the_right_to_make_namespaces_is_reported():
    lacking = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    words = [*lacking, "/usr/bin/python3", "ci/release", "other"]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 2
    assert "unshare failed: Operation not permitted" in ran.stderr


def test_a_release_that_is_none_runs_nothing():
    ran = subprocess.run(
        [ROOT / "ci" / "test", "--release", "potato"], capture_output=True, text=True
    )
    assert ran.returncode == 2
    assert "choose from" in ran.stderr


@pytest.fixture
def smoke(tmp_path, monkeypatch):
    """Runs `ci/test --release trixie`, where what runs inside is a stand-in."""
    (tmp_path / "netproof-release-trixie" / "root").mkdir(parents=True)
    place = tmp_path / "netproof-release-trixie" / "root" / entering.CHECKOUT

    def run(
        status: int,
        written: str | None = None,
        named: str = "trixie",
        tests: bool = False,
        prepare: bool = False,
    ) -> int:
        def contained(words, environment):
            assert str(place.parents[1]) in words
            assert bool(environment["ALL_TESTS"]) == tests
            assert bool(environment["ONLY_PREPARE"]) == prepare
            if written is not None:
                (place / entering.DOCUMENT).write_text(written)
            return status

        monkeypatch.setattr(command, "contained", contained)
        return command.main([named, *["--tests"] * tests, *["--prepare"] * prepare])

    def said(words):
        return TARGETS if "indextargets" in words else "bookworm\n"

    monkeypatch.setattr(registries, "output_of", said)
    for name, value in {
        "FOLDERS": tmp_path,
        "LOCKS": tmp_path,
        "install_debootstrap": lambda: None,
        "output_of": said,
        "settle_registries": lambda *given: [],
        "copy_checkout": lambda tree: (tree / entering.CHECKOUT).mkdir(parents=True),
    }.items():
        monkeypatch.setattr(command, name, value)
    return run


@as_root
def test_nobody_else_can_enter_the_release(smoke, tmp_path):
    assert smoke(0, named="other") == 0
    assert (tmp_path / "netproof-release-trixie").stat().st_mode & 0o777 == 0o700


@as_root
@pytest.mark.parametrize("tests", [False, True])
@pytest.mark.parametrize("status", [0, 1, 100])
def test_the_status_of_the_smoke_run_is_its_own(smoke, status, tests):
    assert smoke(status, json.dumps(document("inconclusive")), tests=tests) == status


@as_root
@pytest.mark.parametrize("status", [0, 2])
def test_the_status_of_preparing_is_that_of_what_installs(smoke, capsys, status):
    assert smoke(status, prepare=True) == status
    assert "==> prepare trixie" in capsys.readouterr().out


@as_root
def test_a_run_that_cannot_be_judged_is_good_where_all_was_measured(smoke, capsys):
    assert smoke(2, json.dumps(document("pass", "inconclusive"))) == 0
    assert "all cases were measured and none failed; some are inconclusive" in (
        capsys.readouterr().out
    )


@as_root
@pytest.mark.parametrize(
    "written", [None, "", "{}", "[]", json.dumps(document("inconclusive", measured=False))]
)
def test_it_is_not_where_nothing_says_so(smoke, written):
    assert smoke(2, written) == 2


@as_root
def test_one_run_at_a_time_has_the_release(smoke, tmp_path, capsys):
    with (tmp_path / "netproof-release-trixie.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert smoke(0) == 2
    assert "another run of trixie is under way" in capsys.readouterr().err


@as_root
def test_what_the_machine_has_not_or_a_full_disk_is_no_failed_network(smoke, monkeypatch, capsys):
    def missing(words):
        raise FileNotFoundError(2, "No such file or directory", words[0])

    monkeypatch.setattr(command, "output_of", missing)
    assert smoke(0) == 2
    assert capsys.readouterr().err.startswith("ci/test: [Errno 2] No such file or directory: ")
