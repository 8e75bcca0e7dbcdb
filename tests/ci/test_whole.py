"""Programs that `ci/test` starts, with stand-ins that record them."""

from __future__ import annotations

import os
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


# Which packages `ci/setup` has apt install.


@pytest.fixture
def setup(tmp_path):
    """Runs `ci/setup` where only packages may be missing; what it installs."""
    (tmp_path / "ci").mkdir()
    shutil.copy(ROOT / "ci" / "setup", tmp_path / "ci")
    (tmp_path / "ci" / "packages.txt").write_text("libpmi2-0\nmunge\n")
    for name in ("setup.cfg", "ci/requirements.lock"):
        (tmp_path / name).touch()
    found = tmp_path / "bin"
    python, stamp = tmp_path / ".venv/bin/python", tmp_path / ".venv/installed"
    for folder in (found, python.parent):
        folder.mkdir(parents=True)
    stamp.touch()
    for line in (ROOT / "ci" / "setup").read_text().splitlines():
        if line.strip().startswith("wheel "):
            _, prefix, requirement = line.split()
            for folder in ("bin", "lib"):
                (tmp_path / ".opt" / prefix / folder).mkdir(parents=True)
            (tmp_path / ".opt" / prefix / requirement).touch()

    def run(listed: str) -> str:
        for path, text in {
            python: "exit 0",
            found / "id": "echo 0",
            found / "apt-get": f'echo "$*" >>{tmp_path}/apt',
            found / "dpkg-query": f"cat <<'END'\n{listed}\nEND",
        }.items():
            path.write_text(f"#!/bin/bash\n{text}\n")
            path.chmod(0o755)
        subprocess.run(
            [tmp_path / "ci" / "setup"],
            env={**os.environ, "PATH": f"{found}:{os.environ['PATH']}"},
            check=True,
        )
        said = tmp_path / "apt"
        return said.read_text() if said.exists() else ""

    return run


def test_a_package_of_another_name_that_provides_the_listed_one_is_there(setup):
    """Debian 13 has libpmi2-0t64 for libpmi2-0."""
    there = "installed libpmi2-0t64, libpmi2-0 (= 24.11.5-4+deb13u1)\ninstalled munge, "
    assert setup(there) == ""


def test_a_package_that_was_removed_is_installed(setup):
    said = setup("config-files libpmi2-0, \ninstalled munge-doc, \ninstalled munge, ")
    assert said.splitlines()[-1].endswith("--no-install-recommends libpmi2-0")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--tests"], ["--test", "--unit"], ["--unit", ""]]
)
def test_what_it_does_not_know_installs_nothing(arguments):
    ran = subprocess.run([ROOT / "ci" / "setup", *arguments], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "usage: ci/setup [--test | --unit]\n"


# Calls by `ci/quickstart`, with stand-ins that record them.

SAYS = '#!/bin/bash\necho "CALL ${0##*/} $*"\n'


@pytest.fixture
def quickstart(tmp_path):
    """Runs it in a checkout of stand-ins; its calls, and its exit status."""
    ci, found = tmp_path / "ci", tmp_path / "bin"
    (ci / "testbed").mkdir(parents=True)
    found.mkdir()
    shutil.copy(ROOT / "ci" / "quickstart", ci)
    (ci / "testbed" / "activate").write_text("")
    own = (ci / "setup", ci / "spack-envs", ci / "testbed" / "testbed")
    for path in (*own, *map(found.joinpath, NAMES)):
        path.write_text(SAYS)
        path.chmod(0o755)

    def run(*arguments: str) -> tuple[int, list[str]]:
        ran = subprocess.run(
            [ci / "quickstart", *arguments],
            env={**os.environ, "PATH": f"{found}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        calls = [line[5:] for line in ran.stdout.splitlines() if line.startswith("CALL ")]
        return ran.returncode, calls

    return run


NAMES = ("python", "reframe", "netproof")


def test_reframe_s_lines_go_to_a_log_alongside_the_report(quickstart, tmp_path):
    status, calls = quickstart("--smoke")
    assert status == 0
    assert [call.split()[0] for call in calls] == [
        *("setup", "testbed", "python", "netproof", "testbed")
    ]
    words = calls[2].split()
    assert words[1] == "ci/progress.py"
    given = dict(zip(words[2:8:2], words[3:8:2], strict=True))
    stem = given["--report"].removesuffix(".json")
    assert given == {
        "--report": f"{stem}.json",
        "--log": f"{stem}.log",
        "--system": "testbed:gige",
    }
    assert stem.startswith(f"{tmp_path}/reports/run-quickstart-")
    options = "-S launches=1 --exec-policy=serial"
    command = f"-- reframe --system testbed:gige {options} -c checks -r"
    assert calls[2].endswith(command)


def test_verbose_shows_them(quickstart):
    _, calls = quickstart("--verbose", "--keep")
    assert calls[2] == "reframe --system testbed --exec-policy=serial -c checks -r"
    # It is kept up.
    assert calls[-1].startswith("netproof verdict ")


def test_what_it_does_not_know_runs_nothing(quickstart):
    assert quickstart("--fast") == (2, [])


def test_spack_environments_are_built_before_and_tried_under_slurm(quickstart):
    status, calls = quickstart("--spack", "openmpi-gcc", "mpich-gcc", "--smoke")
    assert status == 0
    assert calls[1] == "spack-envs build openmpi-gcc mpich-gcc"
    assert calls[2].split()[:2] == ["testbed", "up"]
    assert calls[3] == ("spack-envs check openmpi-gcc mpich-gcc --slurm --partition=gige --nodes=2")
    assert calls[4].startswith("python ci/progress.py ")


@pytest.mark.parametrize("arguments", [["--spack"], ["--spack", "--smoke"], ["mpich-gcc"]])
def test_environments_are_named_behind_spack_and_nowhere_else(quickstart, arguments):
    assert quickstart(*arguments) == (2, [])
