"""`ci/test --release` tries another Debian release in namespaces of its own."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from made_programs import program

from ci import release
from ci.release import CannotRunError
from ci.testbed import processes
from netproof.errors import NetproofError

ROOT = Path(__file__).resolve().parents[2]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces take root")
# What apt-get of Debian 12 lists, with other addresses, and an archive that is not Debian's.
TARGETS = """\
bookworm main Debian http://mirror.example/debian/
bookworm-updates main Debian http://mirror.example/debian/
bookworm-security main Debian http://mirror.example/debian-security/
nodistro main . https://other.example/node/
"""


class TestContained:
    """The release leaves no process behind."""

    @pytest.mark.slow
    @as_root
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
    def test_a_signal_leaves_no_process_and_no_mount(self, tmp_path, number):
        """The process has left its parent and its session, and has mounted something."""
        where = tmp_path / "mounted"
        where.mkdir()
        inside = f"mount -t tmpfs tmpfs {where}; setsid sleep 4711.5 & sleep 4711.5"
        script = (
            "import os, sys\n"
            "from ci import release\n"
            "release.stopping()\n"
            "try:\n"
            f"    release.contained(['sh', '-c', {inside!r}], os.environ)\n"
            "except release.StoppedError as stopped:\n"
            "    sys.exit(128 + stopped.args[0])\n"
        )
        process = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
        self.await_count(2)
        process.send_signal(number)
        status = process.wait(timeout=30)
        if number is signal.SIGKILL:
            self.await_count(0)
        assert status == (-number if number is signal.SIGKILL else 128 + number)
        assert self.sleeping() == 0
        assert str(where) not in Path("/proc/mounts").read_text()

    def await_count(self, count: int) -> None:
        """Waits until there are ``count`` of the sleeps."""
        deadline = time.monotonic() + 30
        while self.sleeping() != count:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def sleeping(self) -> int:
        titles = [processes.title(int(name)) for name in os.listdir("/proc") if name.isdigit()]
        return titles.count("sleep 4711.5")


class TestInside:
    """Programs in the release, and their view of the machine."""

    @as_root
    def test_a_node_s_namespaces_can_be_made_and_no_way_leads_back(self, tmp_path):
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
        ! nsenter --mount=/proc/self/ns/mnt test -e /srv
        """
        enter = ["sh", str(release.ENTER), str(tmp_path), "/usr"]
        environment = release.passed_on(os.environ)
        assert release.contained(enter, {**environment, "WITHIN": within}) == 0
        assert (tmp_path / "written").exists()
        assert not list((tmp_path / "run").iterdir())
        assert str(tmp_path) not in Path("/proc/mounts").read_text()

        enter[2] = str(tmp_path / "none")
        # A release that cannot be entered is no failed network.
        assert release.contained(enter, {**environment, "WITHIN": "exit 1"}) == 2

    @pytest.fixture
    def inside(self, tmp_path):
        """Runs what runs in it, where what it starts are stand-ins: status, and what ran."""
        (tmp_path / "ci").mkdir()
        (tmp_path / "ci" / "activate").write_text("")
        script = release.WITHIN.read_text().replace(f"cd /{release.CHECKOUT}", f"cd {tmp_path}")
        started = tmp_path / "started"

        def run(all_tests: str, only_prepare: str = "", **statuses: int) -> tuple[int, list[str]]:
            started.write_text("")
            for name in ("ci/setup", ".venv/bin/pip", "dpkg", "dpkg-query", "pytest", "quickstart"):
                path = tmp_path / name.replace("quick", "ci/quick")
                status = statuses.get(path.name, 0)
                program(path, f'echo "{path.name} $*" >>{started}\nexit {status}')
            environment = release.passed_on(os.environ) | {"ALL_TESTS": all_tests}
            environment["ONLY_PREPARE"] = only_prepare
            environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
            ran = subprocess.run(["bash", "-c", script], env=environment)
            words = ("setup", "pytest", "quickstart")
            lines = started.read_text().splitlines()
            return ran.returncode, [line for line in lines if line.startswith(words)]

        return run

    @as_root
    def test_what_is_asked_for_is_tested_before_the_smoke_run_and_fails_the_try(self, inside):
        tests, smoke = "pytest -q -m not testbed", "quickstart --smoke"
        assert inside("yes") == (0, ["setup --test", tests, smoke])
        assert inside("yes", quickstart=100) == (100, ["setup --test", tests, smoke])
        assert inside("yes", pytest=5) == (1, ["setup --test", tests])
        assert inside("", only_prepare="yes") == (0, ["setup "])
        status, ran = inside("")
        assert (status, ran[0], ran[2]) == (0, "setup ", smoke)
        assert ran[1].startswith("pytest -q --numprocesses auto tests/netproof/benchmarks/test_pa")
        status, ran = inside("", pytest=2)
        assert (status, [line.split()[0] for line in ran]) == (1, ["setup", "pytest"])


class TestRegistries:
    """It takes the machine's ways to its registries."""

    def test_the_other_release_comes_from_the_machine_s_own_mirror(self, monkeypatch):
        # A machine without apt's lists fetches them.
        lists = ["", TARGETS]
        monkeypatch.setattr(release, "output_of", lambda command: lists.pop(0))
        monkeypatch.setattr(release, "apt_get", lambda *words: words == ("update",))
        lines = [
            "deb http://mirror.example/debian trixie main",
            "deb http://mirror.example/debian trixie-updates main",
            "deb http://mirror.example/debian-security trixie-security main",
        ]
        found = release.mirrors("bookworm")
        assert release.sources(found, "bookworm", "trixie").splitlines() == lines
        del found["bookworm-security"]
        assert release.sources(found, "bookworm", "trixie").splitlines() == lines[:2]

    @pytest.mark.parametrize(
        ("targets", "said"),
        [
            ("", "apt has no lists of Debian's bookworm main"),
            (TARGETS.replace("Debian http", "Other http"), "apt has no lists"),
            ("bookworm main Debian cdrom:[Debian 12]/", "is no http address"),
        ],
    )
    def test_no_mirror_is_refused_in_words(self, monkeypatch, targets, said):
        monkeypatch.setattr(release, "output_of", lambda command: targets)
        monkeypatch.setattr(release, "apt_get", lambda *words: False)
        with pytest.raises(CannotRunError, match=said):
            release.mirrors("bookworm")

    def test_of_the_environment_only_the_ways_to_registries_pass(self):
        given = {"PIP_CERT": "/a", "https_proxy": "b", "NO_PROXY": "c", "TERM": "xterm"}
        others = {"SLURM_CONF": "x", "PYTHONPATH": "y", "PATH": "/mine", "MY_PIP_X": "z"}
        found = release.passed_on(given | others)
        assert found.items() >= given.items()
        assert found.keys() - given.keys() == {"PATH", "HOME", "LC_ALL"}
        assert found["PATH"] != "/mine"

    def test_what_pip_s_settings_name_is_found(self, tmp_path):
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
        settings.write_text("cert = /a\n")
        with pytest.raises(CannotRunError, match=str(settings)):
            release.named_paths({}, [settings])


def test_the_other_release_is_the_one_that_the_machine_is_not():
    assert release.other_than("bookworm") == "trixie"
    with pytest.raises(CannotRunError, match=r"bookworm and trixie only: name it by --release"):
        release.other_than("noble")


def document(*verdicts, faults=(), measured=True):
    """A verdict's document with a case for each of ``verdicts``."""
    launches = {"launches": 1} if measured else None
    cases = [{"verdict": verdict, "measured": launches} for verdict in verdicts]
    return {"cases": cases, "faults": list(faults)}


def test_inconclusive_cases_are_good_where_all_was_measured_and_nothing_else_is():
    assert release.all_worked(document("pass", "warn", "inconclusive"))
    for given in (
        document("pass", "pass"),
        document("pass", "inconclusive", "fail"),
        document("pass", "inconclusive", faults=["a case is missing"]),
        document("inconclusive", measured=False),
    ):
        assert not release.all_worked(given)


@as_root
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "ci/test"],
            "unshare failed: Operation not permitted",
        ),
        (["ci/test", "--release", "potato"], "choose from"),
    ],
)
def test_what_cannot_be_run_is_refused_in_words(words, said):
    words += ["--release", "other"] if words[-1] == "ci/test" else []
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 2
    assert said in ran.stderr


class TestSmoke:
    """A try of trixie, where what runs inside is a stand-in."""

    @pytest.fixture
    def smoke(self, tmp_path, monkeypatch):
        (tmp_path / "netproof-release-trixie" / "root").mkdir(parents=True)
        place = tmp_path / "netproof-release-trixie" / "root" / release.CHECKOUT

        def run(status: int, written: str | None = None, *options: str) -> int:
            def contained(words, environment):
                assert str(place.parents[1]) in words
                assert bool(environment["ALL_TESTS"]) == ("--tests" in options)
                assert bool(environment["ONLY_PREPARE"]) == ("--prepare" in options)
                if written is not None:
                    (place / release.DOCUMENT).write_text(written)
                return status

            monkeypatch.setattr(release, "contained", contained)
            return release.main(["other", *options])

        for name, value in {
            **{"FOLDERS": tmp_path, "LOCKS": tmp_path},
            "output_of": lambda words: TARGETS if "indextargets" in words else "bookworm\n",
            "settle_registries": lambda *given: [],
            "copy_checkout": lambda tree: (tree / release.CHECKOUT).mkdir(parents=True),
        }.items():
            monkeypatch.setattr(release, name, value)
        return run

    @as_root
    @pytest.mark.parametrize(
        ("ended", "options", "status"),
        # A run that cannot be judged is good if all was measured.
        [(1, ("--tests",), 1), (100, (), 100), (2, ("--prepare",), 2), (2, (), 0)],
    )
    def test_the_status_is_that_of_what_ran_and_nobody_else_can_enter(
        self, smoke, tmp_path, ended, options, status
    ):
        assert smoke(ended, json.dumps(document("pass", "inconclusive")), *options) == status
        assert (tmp_path / "netproof-release-trixie").stat().st_mode & 0o777 == 0o700

    @as_root
    def test_one_run_at_a_time_has_the_release(self, smoke, tmp_path, capsys):
        with (tmp_path / "netproof-release-trixie.lock").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            assert smoke(0) == 2
        assert "another run of trixie is under way" in capsys.readouterr().err


@as_root
def test_a_folder_that_others_could_have_filled_is_refused(tmp_path):
    place = tmp_path / "netproof-release-trixie"
    (place / "root").mkdir(parents=True)
    assert release.made_tree(place, "trixie", "", {}) == place / "root"
    place.chmod(0o777)
    with pytest.raises(NetproofError, match="can be written by everybody"):
        release.made_tree(place, "trixie", "", {})
