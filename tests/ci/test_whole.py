"""Programs that `ci/test` starts, with stand-ins that record them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from made_programs import program

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
        system = pytest if system is None else system
        endings = {"pytest": f"case $* in *system*) exit {system} ;; esac\nexit {pytest}"}
        programs = ("ci/setup", "ci/testbed/testbed", "ruff", "lint-imports", "mypy", "pytest")
        for path in map(tmp_path.joinpath, programs):
            program(path, f'echo "{path.name} $*" >>{started}\n{endings.get(path.name, "")}')
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
VERDICT = ("-k", "verdict")
SHORT = [line.replace(" --all", "") for line in parts(*VERDICT)]


@pytest.mark.parametrize(
    ("arguments", "ended", "status", "started"),
    [
        (("--all",), {}, 0, [*OWN, *parts(), "release other"]),
        (("--all",), {"other": 1}, 1, [*OWN, *parts(), "release other"]),
        (("--all",), {"other": 143}, 143, [*OWN, *parts(), "release other"]),
        # The other release waits for the tests to pass.
        (("--all",), {"pytest": 1, "system": 0}, 1, [*OWN, *parts()]),
        (("--all",), {"system": 1}, 1, [*OWN, *parts()]),
        # Requested tests may all be in one part, and not in none.
        (("--all",), {"pytest": 5, "system": 0}, 0, [*OWN, *parts(), "release other"]),
        (VERDICT, {"system": 5}, 0, [*OWN, *SHORT]),
        (VERDICT, {"pytest": 5}, 5, [*OWN, *SHORT]),
        # Others leave out nightly tests, or the other release alone.
        (VERDICT, {"other": 1}, 0, [*OWN, *SHORT]),
        (("--own-release", *VERDICT), {"other": 1}, 0, [*OWN, *parts(*VERDICT)]),
        (("--release", "trixie"), {"other": 2}, 2, ["release trixie"]),
        (("--release", "other", "--tests"), {"other": 1}, 1, ["release other --tests"]),
        *(
            (
                ("--unit", *VERDICT),
                {"pytest": status},
                status,
                [
                    *("setup --unit", *OWN[2:]),
                    "pytest --part quick --numprocesses auto --dist worksteal -k verdict",
                ],
            )
            for status in (0, 1)
        ),
    ],
)
def test_it_starts_what_was_asked_for_and_ends_as_that_did(
    whole, arguments, ended, status, started
):
    found, lines = whole(*arguments, **ended)
    assert (found, [line for line in lines if line != PREPARED]) == (status, started)
    if arguments[0] == "--all":
        # The preparing ends before the testbed's part.
        (systems,) = (place for place, line in enumerate(lines) if " system " in line)
        assert lines.index(PREPARED) < systems


def test_the_project_s_ci_runs_it():
    assert "ci/test\n" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--tests"], ["--test", "--unit"], ["--unit", ""]]
)
def test_what_it_does_not_know_installs_nothing(arguments):
    ran = subprocess.run([ROOT / "ci" / "setup", *arguments], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "usage: ci/setup [--test | --unit]\n"


# Calls by `ci/quickstart`, with stand-ins that record them.


@pytest.fixture
def quickstart(tmp_path):
    """Runs it in a checkout of stand-ins; its calls, and its exit status."""
    ci, found = tmp_path / "ci", tmp_path / "bin"
    own = (ci / "setup", ci / "spack-envs", ci / "testbed" / "testbed")
    for path in (*own, *map(found.joinpath, ("python", "reframe", "netproof"))):
        program(path, 'echo "CALL ${0##*/} $*"')
    shutil.copy(ROOT / "ci" / "quickstart", ci)
    (ci / "testbed" / "activate").write_text("")

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


def test_reframe_s_lines_go_to_a_log_alongside_the_report(quickstart, tmp_path):
    status, calls = quickstart("--smoke")
    assert status == 0
    assert [call.split()[0] for call in calls] == [
        *("setup", "testbed", "python", "netproof", "testbed")
    ]
    given, _, command = calls[2].partition(" -- ")
    options = "-S launches=1 --exec-policy=serial"
    assert command == f"reframe --system testbed:gige {options} -c checks -r"
    stem = given.split("--report ")[1].partition(".json")[0]
    assert stem.startswith(f"{tmp_path}/reports/run-quickstart-")
    for option in (f"--report {stem}.json", f"--log {stem}.log", "--system testbed:gige"):
        assert option in given


def test_verbose_shows_them_and_keep_leaves_the_testbed_up(quickstart):
    _, calls = quickstart("--verbose", "--keep")
    assert calls[2] == "reframe --system testbed --exec-policy=serial -c checks -r"
    assert calls[-1].startswith("netproof verdict ")


def test_spack_environments_are_built_before_and_tried_under_slurm(quickstart):
    status, calls = quickstart("--spack", "openmpi-gcc", "mpich-gcc", "--smoke")
    assert status == 0
    assert calls[1] == "spack-envs build openmpi-gcc mpich-gcc"
    assert calls[2].split()[:2] == ["testbed", "up"]
    assert calls[3] == ("spack-envs check openmpi-gcc mpich-gcc --slurm --partition=gige --nodes=2")
    assert calls[4].startswith("python ci/progress.py ")


@pytest.mark.parametrize(
    "arguments", [["--fast"], ["--spack"], ["--spack", "--smoke"], ["mpich-gcc"]]
)
def test_what_it_does_not_know_runs_nothing(quickstart, arguments):
    assert quickstart(*arguments) == (2, [])
