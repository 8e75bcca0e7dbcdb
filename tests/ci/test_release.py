"""What `ci/test --release` takes from this machine, what it believes, and what it leaves behind."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ci import release
from ci.release import CannotRunError, Mirror

ROOT = Path(__file__).resolve().parents[2]
# What apt-get of Debian 12 lists, with other addresses, and an archive that is not Debian's.
TARGETS = """\
bookworm main Debian http://mirror.example/debian/
bookworm-updates main Debian http://mirror.example/debian/
bookworm-security main Debian http://mirror.example/debian-security/
nodistro main . https://other.example/node/
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces take root")


def test_the_other_release_comes_from_the_machine_s_own_mirror():
    found = release.mirror(TARGETS, "bookworm")
    assert found == Mirror("http://mirror.example/debian", "http://mirror.example/debian-security")
    assert found.sources("trixie").splitlines() == [
        "deb http://mirror.example/debian trixie main",
        "deb http://mirror.example/debian trixie-updates main",
        "deb http://mirror.example/debian-security trixie-security main",
    ]


def test_a_machine_without_security_updates_asks_for_none():
    found = release.mirror(TARGETS.splitlines()[0], "bookworm")
    assert "security" not in found.sources("trixie")


def test_the_other_release_is_the_one_that_the_machine_is_not():
    assert release.other_than("bookworm") == "trixie"
    assert release.other_than("trixie") == "bookworm"


@pytest.mark.parametrize("codename", ["noble", ""])
def test_a_machine_of_neither_release_does_not_choose(codename):
    with pytest.raises(CannotRunError, match=r"bookworm and trixie only: name it by --release"):
        release.other_than(codename)


@pytest.mark.parametrize("fetched", [True, False])
def test_a_machine_without_apt_s_lists_fetches_them(monkeypatch, fetched):
    lists, asked = [""], []

    def apt_get(*words):
        asked.append(words)
        lists[0] = TARGETS if fetched else ""
        return fetched

    monkeypatch.setattr(release, "_said", lambda command: lists[0])
    monkeypatch.setattr(release, "_apt_get", apt_get)
    if fetched:
        assert release._archive("bookworm").main == "http://mirror.example/debian"
    else:
        with pytest.raises(CannotRunError, match="apt has no lists"):
            release._archive("bookworm")
    assert asked == [("update",)]


def test_what_is_tested_on_the_other_release_is_there():
    for pattern in release.TESTS.split():
        assert list(ROOT.glob(pattern)), pattern
    assert f"pytest -q {release.TESTS}" in release.WITHIN


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        ("", "apt has no lists of Debian's bookworm main"),
        (TARGETS.replace("Debian http", "Other http"), "apt has no lists"),
        ("bookworm main Debian cdrom:[Debian 12]/", "is no http address"),
    ],
)
def test_no_mirror_is_refused_in_words(targets, said):
    with pytest.raises(CannotRunError, match=said):
        release.mirror(targets, "bookworm")


def test_of_the_environment_only_the_ways_to_registries_pass():
    given = {"PIP_CERT": "/a", "https_proxy": "b", "NO_PROXY": "c", "TERM": "xterm"}
    others = {"SLURM_CONF": "x", "PYTHONPATH": "y", "PATH": "/mine", "MY_PIP_X": "z"}
    found = release.passed_on(given | others)
    assert found.items() >= given.items()
    assert found.keys() - given.keys() == {"PATH", "HOME", "LC_ALL"}
    assert found["PATH"] != "/mine"


def test_what_pip_s_settings_name_is_found(tmp_path):
    wheels, certificate = tmp_path / "wheels", tmp_path / "ca.crt"
    wheels.mkdir()
    certificate.touch()
    settings = tmp_path / "pip.conf"
    settings.write_text(
        f"[global]\ncert = {certificate}\nfind-links =\n  https://a.example/%7Eb\n  {wheels}\n"
    )
    assert release.named_paths({}, [settings]) == [certificate, wheels]
    variables = {"PIP_FIND_LINKS": f"file://{wheels} /not/there", "OTHER": str(certificate)}
    assert release.named_paths(variables, []) == [wheels]


def test_settings_that_are_none_are_named(tmp_path):
    settings = tmp_path / "pip.conf"
    settings.write_text("cert = /a\n")
    with pytest.raises(CannotRunError, match=str(settings)):
        release.named_paths({}, [settings])


@as_root
def test_a_folder_that_others_could_have_filled_is_refused(tmp_path):
    place = tmp_path / "netproof-release-trixie"
    release.refuse_unsafe(place)
    place.mkdir(mode=0o755)
    release.refuse_unsafe(place)
    for spoil in (
        lambda: place.chmod(0o777),
        lambda: os.chown(place, 65534, -1),
        lambda: (place.rmdir(), place.symlink_to("/root")),
    ):
        spoil()
        with pytest.raises(CannotRunError, match="should be a folder of root's"):
            release.refuse_unsafe(place)
        if not place.is_symlink():
            place.chmod(0o755)
            os.chown(place, 0, -1)


@as_root
def test_a_sticky_parent_is_safe_and_a_shared_one_is_not(tmp_path):
    tmp_path.chmod(0o1777)
    release.refuse_unsafe(tmp_path / "one")
    tmp_path.chmod(0o777)
    with pytest.raises(CannotRunError, match="nobody else may write to"):
        release.refuse_unsafe(tmp_path / "one")


def document(*verdicts, faults=(), measured=True):
    """A verdict's document with a case for each of ``verdicts``."""
    launches = {"launches": 1} if measured else None
    cases = [{"verdict": verdict, "measured": launches} for verdict in verdicts]
    return {"cases": cases, "faults": list(faults)}


def test_inconclusive_cases_are_good_where_all_was_measured():
    assert release.all_worked(document("pass", "warn", "inconclusive"))


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
    assert not release.all_worked(given)


@as_root
def test_the_status_of_what_ran_is_passed_on():
    environment = release.passed_on(os.environ)
    assert release.contained(["sh", "-c", "exit 7"], environment) == 7


@as_root
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_leaves_no_process_and_no_mount(tmp_path, number):
    """What ran has left its parent and its session, and has mounted something."""
    where = tmp_path / "mounted"
    where.mkdir()
    inside = f"mount -t tmpfs tmpfs {where}; setsid sleep 4711.5 & sleep 4711.5"
    script = (
        "import os, sys\n"
        "from ci import release\n"
        "try:\n"
        "    with release.stopping():\n"
        f"        release.contained(['sh', '-c', {inside!r}], os.environ)\n"
        "except release.StoppedError as stopped:\n"
        "    sys.exit(128 + stopped.number)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    await_count(2)
    process.send_signal(number)
    status = process.wait(timeout=30)
    if number is signal.SIGKILL:
        await_count(0)
    assert status == (-number if number is signal.SIGKILL else 128 + number)
    assert sleeping() == 0
    assert str(where) not in Path("/proc/mounts").read_text()


@as_root
def test_a_node_s_namespaces_can_be_made_inside_and_given_folders_are_only_read(tmp_path):
    for name in ("proc", "sys", "dev", "run", "usr"):
        (tmp_path / name).mkdir()
    for name in ("bin", "lib", "lib64"):
        (tmp_path / name).symlink_to(f"usr/{name}")
    within = """set -e
    unshare --net --uts --mount --ipc true
    unshare --user --map-root-user true
    test ! -e /srv
    touch /run/here /dev/shm/here /written
    ! touch /usr/here 2>/dev/null
    """
    enter = ["sh", "-c", release.ENTER, "sh", str(tmp_path), "/usr"]
    environment = release.passed_on(os.environ)
    assert release.contained(enter, {**environment, "WITHIN": within}) == 0
    assert (tmp_path / "written").exists()
    assert not list((tmp_path / "run").iterdir())
    assert str(tmp_path) not in Path("/proc/mounts").read_text()


@as_root
def test_what_runs_in_the_release_has_no_way_back_to_the_machine_s_files(tmp_path):
    for name in ("proc", "sys", "dev", "run", "usr"):
        (tmp_path / name).mkdir()
    for name in ("bin", "lib", "lib64"):
        (tmp_path / name).symlink_to(f"usr/{name}")
    within = "! nsenter --mount=/proc/self/ns/mnt test -e /srv"
    enter = ["sh", "-c", release.ENTER, "sh", str(tmp_path), "/usr"]
    environment = {**release.passed_on(os.environ), "WITHIN": within}
    assert release.contained(enter, environment) == 0


@pytest.fixture
def inside(tmp_path):
    """Runs what runs in the release, where what it starts are stand-ins: status, and what ran."""
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / "ci").mkdir()
    (tmp_path / "ci" / "activate").write_text("")
    script = release.WITHIN.replace(f"cd /{release.CHECKOUT}", f"cd {tmp_path}")
    started = tmp_path / "started"

    def run(all_tests: str, pytest: int = 0, quickstart: int = 0) -> tuple[int, list[str]]:
        started.write_text("")
        for name, status in {
            "ci/setup": 0,
            ".venv/bin/pip": 0,
            "dpkg": 0,
            "dpkg-query": 0,
            "pytest": pytest,
            "ci/quickstart": quickstart,
        }.items():
            path = tmp_path / name
            told = f'echo "{path.name} $*" >>{started}'
            path.write_text(f"#!/bin/bash\n{told}\nexit {status}\n")
            path.chmod(0o755)
        environment = release.passed_on(os.environ) | {"ALL_TESTS": all_tests}
        environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
        ran = subprocess.run(["bash", "-c", script], env=environment)
        words = ("setup", "pytest", "quickstart")
        return ran.returncode, [
            line for line in started.read_text().splitlines() if line.startswith(words)
        ]

    return run


@as_root
def test_all_tests_are_run_before_the_smoke_run_where_that_is_asked_for(inside):
    tests, smoke = "pytest -q -m not testbed", "quickstart --smoke"
    assert inside("yes") == (0, ["setup --test", tests, smoke])
    assert inside("yes", quickstart=100) == (100, ["setup --test", tests, smoke])


@as_root
@pytest.mark.parametrize("status", [1, 2, 5])
def test_one_that_fails_there_fails_the_try_and_nothing_is_measured(inside, status):
    assert inside("yes", pytest=status) == (1, ["setup --test", "pytest -q -m not testbed"])
    status, ran = inside("", pytest=status)
    assert (status, [line.split()[0] for line in ran]) == (1, ["setup", "pytest"])


@as_root
def test_else_only_what_reads_and_keeps_is_tested(inside):
    status, ran = inside("")
    assert status == 0
    assert ran[0] == "setup "
    assert ran[1].startswith("pytest -q tests/netproof/benchmarks/test_parse_")
    assert ran[2] == "quickstart --smoke"


@as_root
def test_a_release_that_cannot_be_entered_is_no_failed_network(tmp_path):
    enter = ["sh", "-c", release.ENTER, "sh", str(tmp_path / "none")]
    environment = {**release.passed_on(os.environ), "WITHIN": "exit 1"}
    assert release.contained(enter, environment) == 2


@as_root
def test_root_without_the_right_to_make_namespaces_is_told_so():
    lacking = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    command = [*lacking, "/usr/bin/python3", "ci/release.py", "other"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 2
    assert "unshare failed: Operation not permitted" in ran.stderr


def sleeping() -> int:
    """How many of the sleeps are there."""
    found = 0
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += place.read_bytes() == b"sleep\0004711.5\0"
        except OSError:
            continue
    return found


def await_count(count: int) -> None:
    """Waits until there are ``count`` sleeps."""
    deadline = time.monotonic() + 30
    while sleeping() != count:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_release_that_is_none_runs_nothing():
    ran = subprocess.run(
        [ROOT / "ci" / "test", "--release", "potato"], capture_output=True, text=True
    )
    assert ran.returncode == 2
    assert "choose from" in ran.stderr


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
        (tmp_path / "ci" / "release.py").write_text(
            "import sys\n"
            f"open({str(started)!r}, 'a').write('release ' + ' '.join(sys.argv[1:]))\n"
            f"sys.exit({other})\n"
        )
        ran = subprocess.run([tmp_path / "ci" / "test", *arguments], stdin=subprocess.DEVNULL)
        return ran.returncode, started.read_text().splitlines()

    return run


OWN = [
    *("setup --test", "testbed down", "ruff check .", "ruff format --check ."),
    "lint-imports ",
]


def parts(*arguments: str) -> list[str]:
    """How pytest is started, for the two parts of the tests."""
    first = "pytest --part unit --numprocesses auto --dist worksteal"
    return [" ".join([part, *arguments]) for part in (first, "pytest --part system")]


def test_what_ci_runs_ends_with_a_try_of_the_other_release(whole):
    assert whole() == (0, [*OWN, *parts(), "release other"])
    assert whole("-k", "verdict")[1] == [*OWN, *parts("-k", "verdict"), "release other"]
    assert "ci/test\n" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("status", [1, 2, 100, 143])
def test_a_try_that_cannot_be_made_or_fails_fails_the_whole(whole, status):
    assert whole(other=status)[0] == status


def test_the_other_release_waits_for_the_tests_to_pass(whole):
    assert whole(pytest=1) == (1, [*OWN, *parts()])
    assert whole(pytest=1, system=0) == (1, [*OWN, *parts()])
    assert whole(system=1) == (1, [*OWN, *parts()])


def test_what_was_asked_for_may_all_be_in_one_part_and_is_not_to_be_in_none(whole):
    assert whole(pytest=5, system=0) == (0, [*OWN, *parts(), "release other"])
    assert whole(system=5)[0] == 0
    assert whole(pytest=5) == (5, [*OWN, *parts()])


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


@pytest.fixture
def setup(tmp_path):
    """Runs `ci/setup` where only packages may be missing; what it installs."""
    (tmp_path / "ci").mkdir()
    shutil.copy(ROOT / "ci" / "setup", tmp_path / "ci")
    (tmp_path / "ci" / "packages.txt").write_text("libpmi2-0\nmunge\n")
    (tmp_path / "setup.cfg").touch()
    found = tmp_path / "bin"
    python, stamp = tmp_path / ".venv/bin/python", tmp_path / ".venv/installed"
    for folder in (found, python.parent):
        folder.mkdir(parents=True)
    stamp.touch()
    for line in (ROOT / "ci" / "setup").read_text().splitlines():
        if line.startswith("wheel "):
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


@pytest.fixture
def smoke(tmp_path, monkeypatch):
    """Runs `ci/test --release trixie`, where what runs inside is a stand-in."""
    (tmp_path / "netproof-release-trixie" / "root").mkdir(parents=True)
    place = tmp_path / "netproof-release-trixie" / "root" / release.CHECKOUT

    def run(
        status: int, written: str | None = None, named: str = "trixie", tests: bool = False
    ) -> int:
        def contained(command, environment):
            assert str(place.parents[1]) in command
            assert bool(environment["ALL_TESTS"]) == tests
            if written is not None:
                (place / release.DOCUMENT).write_text(written)
            return status

        monkeypatch.setattr(release, "contained", contained)
        return release.main([named, "--tests"] if tests else [named])

    for name, value in {
        "FOLDERS": tmp_path,
        "LOCKS": tmp_path,
        "_install_debootstrap": lambda: None,
        "_said": lambda command: TARGETS if "indextargets" in command else "bookworm\n",
        "_settle": lambda *given: [],
        "_copy_checkout": lambda tree: (tree / release.CHECKOUT).mkdir(parents=True),
    }.items():
        monkeypatch.setattr(release, name, value)
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
    def missing(command):
        raise FileNotFoundError(2, "No such file or directory", command[0])

    monkeypatch.setattr(release, "_said", missing)
    assert smoke(0) == 2
    assert capsys.readouterr().err.startswith("ci/test: [Errno 2] No such file or directory: ")
