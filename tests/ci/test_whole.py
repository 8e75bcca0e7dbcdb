"""Programs that `ci/test` starts, with stand-ins that record them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def whole(tmp_path):
    """Runs `ci/test` where what it starts are stand-ins: its exit status and what was started."""
    (tmp_path / "ci" / "testbed").mkdir(parents=True)
    shutil.copy(ROOT / "ci" / "test", tmp_path / "ci")
    (tmp_path / "ci" / "activate").write_text(f"PATH={tmp_path}:$PATH\n")

    def run(
        *arguments: str, pytest: int = 0, system: int | None = None, other: int = 0
    ) -> tuple[int, list[str]]:
        started = tmp_path / "started"
        started.write_text("")
        for name, status in {
            "ci/setup": 0,
            "ci/testbed/testbed": 0,
            "ruff": 0,
            "lint-imports": 0,
            "mypy": 0,
            "pytest": pytest,
        }.items():
            path = tmp_path / name
            path.write_text(f'#!/bin/bash\necho "{path.name} $*" >>{started}\nexit {status}\n')
            path.chmod(0o755)
        if system is not None:
            (tmp_path / "pytest").write_text(
                f'#!/bin/bash\necho "pytest $*" >>{started}\n'
                f"case $* in *system*) exit {system} ;; esac\nexit {pytest}\n"
            )
        # Always the same text: what Python keeps of it compiled may be of the second before.
        (tmp_path / "status").write_text(str(other))
        (tmp_path / "ci" / "release.py").write_text(
            "import sys\n"
            f"open({str(started)!r}, 'a').write('release ' + ' '.join(sys.argv[1:]) + '\\n')\n"
            f"sys.exit(int(open({str(tmp_path / 'status')!r}).read()))\n"
        )
        ran = subprocess.run([tmp_path / "ci" / "test", *arguments], stdin=subprocess.DEVNULL)
        return ran.returncode, started.read_text().splitlines()

    return run


OWN = [
    *("setup --test", "testbed down", "ruff check .", "ruff format --check ."),
    *("lint-imports ", "mypy "),
]


def parts(*arguments: str) -> list[str]:
    """How pytest is started, for the two parts of the tests."""
    longest = "--all --durations 40 --durations-min 5"
    return [
        " ".join(["pytest --part", part, longest, *arguments])
        for part in ("unit --numprocesses auto --dist worksteal", "system")
    ]


PREPARED = "release other --prepare"


def in_order(said: tuple[int, list[str]]) -> tuple[int, list[str]]:
    """Started programs without the preparing, which comes before the testbed's part."""
    status, started = said
    (at,) = (place for place, line in enumerate(started) if line == PREPARED)
    systems = [place for place, line in enumerate(started) if " system " in line]
    assert all(at < place for place in systems)
    return status, [line for line in started if line != PREPARED]


def test_all_tests_end_with_a_try_of_the_other_release(whole):
    assert in_order(whole("--all")) == (0, [*OWN, *parts(), "release other"])
    said = in_order(whole("--all", "-k", "verdict"))
    assert said[1] == [*OWN, *parts("-k", "verdict"), "release other"]


@pytest.mark.parametrize("status", [0, 1])
def test_what_ci_runs_leaves_out_nightly_tests_and_the_other_release(whole, status):
    short = [line.replace(" --all", "") for line in parts("-k", "verdict")]
    assert whole("-k", "verdict", pytest=status, other=1) == (status, [*OWN, *short])
    assert "ci/test\n" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("status", [1, 2, 100, 143])
def test_a_try_that_cannot_be_made_or_fails_fails_the_whole(whole, status):
    assert whole("--all", other=status)[0] == status


def test_the_other_release_waits_for_the_tests_to_pass(whole):
    assert in_order(whole("--all", pytest=1)) == (1, [*OWN, *parts()])
    assert in_order(whole("--all", pytest=1, system=0)) == (1, [*OWN, *parts()])
    assert in_order(whole("--all", system=1)) == (1, [*OWN, *parts()])


def test_what_was_asked_for_may_all_be_in_one_part_and_is_not_to_be_in_none(whole):
    assert in_order(whole("--all", pytest=5, system=0)) == (0, [*OWN, *parts(), "release other"])
    assert whole(system=5)[0] == 0
    assert whole(pytest=5)[0] == 5


@pytest.mark.parametrize("status", [0, 1, 5])
def test_the_quick_tests_take_no_testbed_and_no_other_release(whole, status):
    ended, started = whole("--unit", "-k", "verdict", pytest=status)
    assert ended == status
    assert started == [
        *("setup --unit", *OWN[2:]),
        "pytest --part quick --numprocesses auto --dist worksteal -k verdict",
    ]


@pytest.mark.parametrize("status", [0, 1])
def test_the_other_release_is_left_out_where_that_is_asked_for(whole, status):
    said = whole("--own-release", "-k", "verdict", pytest=status, other=1)
    assert said == (status, [*OWN, *parts("-k", "verdict")])


def test_the_other_release_can_be_tried_alone(whole):
    assert whole("--release", "trixie", other=2) == (2, ["release trixie"])
    assert whole("--release", "other", "--tests", other=1) == (1, ["release other --tests"])
