"""A try of another Debian release: `ci/test --release NAME`, and what `ci/test` ends with.

Parsers, loading and store are tested there with its Python, and `ci/quickstart --smoke` is run;
`--tests` has all be tested that needs no testbed.

The release is a debootstrap in a folder of its own, made once and used again. What runs there has
mount, process, IPC and name namespaces of its own, and the testbed a network of its own too: when
the first process ends, or is killed, the kernel ends the others and takes away mounts and links.
"""

from __future__ import annotations

import argparse
import configparser
import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RELEASES = ("bookworm", "trixie")
OTHER = "other"
"""Names whichever of the two the machine itself is not."""
FOLDERS = Path("/var/tmp")
LOCKS = Path("/run")
CHECKOUT = "srv/netproof"
"""Where the copy of this checkout is in the release's folder."""
KEPT = (".venv", ".opt")
"""What stays of an earlier copy: the environments that ci/setup made there."""
DOCUMENT = "verdict.json"
KILL_SECONDS = 30.0
POLL_S = 0.05
DONE, FAILED, CANNOT_RUN = 0, 1, 2
PASSED_ON = re.compile(
    r"PIP_\w+|(http|https|ftp|all|no)_proxy|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE",
    re.IGNORECASE,
)
"""The variables by which pip, apt and what they use reach their registries."""
PIP_FILES = ("/etc/pip.conf", "/etc/xdg/pip/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf")
APT_SETTINGS = re.compile(r"Acquire::(https?::|Check-|Retries|ForceIPv)\S* \"[^\"]+\";")
CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/usr/local/share/ca-certificates")
TESTS = " ".join(
    f"tests/netproof/{name}.py"
    for name in ("benchmarks/test_parse_*", "intake/test_loading", "store/test_store")
)
"""What most depends on the release's Python."""
TARGETS = ("apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(ORIGIN) $(REPO_URI)")
NAMESPACES = ("unshare", "--mount", "--pid", "--ipc", "--uts", "--net", "--fork", "true")
ENTER = """set -e
# What ends before the release is entered says nothing of it.
trap 'exit 2' EXIT
tree=$1
shift
# A node's namespaces can only be made below a root that is a mount.
mount --bind "$tree" "$tree"
mount -t proc proc "$tree/proc"
mount --rbind /sys "$tree/sys"
mount --rbind /dev "$tree/dev"
mount -t tmpfs -o mode=1777 tmpfs "$tree/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$tree/run"
mkdir "$tree/run/lock"
for folder; do
    mkdir -p "$tree$folder"
    mount --bind "$folder" "$tree$folder"
    mount -o remount,bind,ro "$tree$folder"
done
# Below a chroot the kernel lets nobody make a user namespace, as a machine does.
cd "$tree"
pivot_root . .
umount --lazy .
exec chroot . /bin/bash -c "$WITHIN"
"""
"""Mounts what a machine has, and folders that are to be seen inside, then enters the release."""
WITHIN = f"""set -e
cd /{CHECKOUT}
prepare() {{
    dpkg --configure -a && ci/setup ${{ALL_TESTS:+--test}} &&
        .venv/bin/pip --quiet --disable-pip-version-check install --editable '.[test]'
}}
prepare || exit {CANNOT_RUN}
. /etc/os-release
echo "==> $PRETTY_NAME, $(cat /etc/debian_version)"
for package in slurmctld python3 openmpi-bin libmpich12 mariadb-server-core; do
    dpkg-query --show --showformat='==> ${{Package}} ${{Version}}\\n' "$package"
done
if [ "$ALL_TESTS" ]; then
    echo "==> test all that needs no testbed"
    (. ci/activate && pytest -q -m "not testbed") || exit {FAILED}
fi
exec unshare --net bash -c '
    ip link set dev lo up
    if [ -z "$ALL_TESTS" ]; then
        echo "==> test what reads and keeps"
        (. ci/activate && pytest -q {TESTS}) || exit {FAILED}
    fi
    status=0
    ci/quickstart --smoke || status=$?
    if [ "$status" -eq 2 ]; then
        . ci/activate
        set -- reports/run-quickstart-*.json
        netproof verdict "$1" --system testbed:gige --json >{DOCUMENT} || true
    fi
    exit "$status"'
"""
"""Installs with the machine's network, as a test does that builds the wheel; measures without it.

``ALL_TESTS`` in its environment is empty unless all are asked for.
"""


class CannotRunError(Exception):
    """The run cannot be made here; the sentence says why."""


class StoppedError(Exception):
    """A signal asked for the end."""

    def __init__(self, number: int) -> None:
        """``number``: the signal's."""
        super().__init__(signal.Signals(number).name)
        self.number = number


@dataclass(frozen=True)
class Mirror:
    """Where the machine's own apt gets Debian from; ``security`` is None if it gets no updates."""

    main: str
    security: str | None

    def sources(self, release: str) -> str:
        """The lines of a sources.list for ``release``."""
        lines = [f"deb {self.main} {release} main", f"deb {self.main} {release}-updates main"]
        if self.security:
            lines.append(f"deb {self.security} {release}-security main")
        return "\n".join(lines) + "\n"


def mirror(targets: str, codename: str) -> Mirror:
    """The mirror in ``targets``, lines of `apt-get indextargets`, for the release ``codename``.

    Raises CannotRunError when Debian's main archive is not among them, or is no http address.
    """
    found: dict[str, str] = {}
    for line in targets.splitlines():
        release, component, origin, address = line.split(" ", 3)
        if component == "main" and origin == "Debian":
            found.setdefault(release, address.rstrip("/"))
    if codename not in found:
        raise CannotRunError(
            f"apt has no lists of Debian's {codename} main, so its mirror is not known: add it to"
            " /etc/apt/sources.list"
        )
    for address in found.values():
        if not re.match(r"https?://", address):
            raise CannotRunError(f"apt's mirror {address} is no http address, as debootstrap needs")
    return Mirror(found[codename], found.get(f"{codename}-security"))


def other_than(codename: str) -> str:
    """The release to try on a machine of the release ``codename``.

    Raises CannotRunError when that is none of the two.
    """
    if codename not in RELEASES:
        raise CannotRunError(
            f"this machine is Debian's {codename or 'no release'}, and which is the other one is"
            f" known of {' and '.join(RELEASES)} only: name it by --release"
        )
    return next(release for release in RELEASES if release != codename)


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """What of ``environment`` the release's programs get, besides a plain path and locale."""
    kept = {name: value for name, value in environment.items() if PASSED_ON.fullmatch(name)}
    plain = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LC_ALL": "C.UTF-8",
        "TERM": environment.get("TERM", "dumb"),
    }
    return kept | plain


def pip_files(environment: Mapping[str, str]) -> list[Path]:
    """The files that pip takes settings from here."""
    named = [
        os.path.expanduser(name)
        for name in (*PIP_FILES, environment.get("PIP_CONFIG_FILE"))
        if name
    ]
    return [Path(name) for name in named if Path(name).is_file()]


def named_paths(environment: Mapping[str, str], files: Iterable[Path]) -> list[Path]:
    """The absolute paths that are there and that pip's variables or ``files`` name."""
    values = [value for name, value in environment.items() if PASSED_ON.fullmatch(name)]
    for file in files:
        settings = configparser.RawConfigParser()
        try:
            settings.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError) as error:
            raise CannotRunError(f"{file}: pip's settings cannot be read: {error}") from error
        values += [value for section in settings.values() for value in section.values()]
    words = {word.removeprefix("file://") for value in values for word in value.split()}
    return sorted(Path(word) for word in words if word.startswith("/") and Path(word).exists())


def refuse_unsafe(path: Path) -> None:
    """CannotRunError when someone but root could have put something in the place of ``path``."""
    for place in [path, *path.parents]:
        try:
            found = place.lstat()
        except FileNotFoundError:
            continue
        shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        # In a sticky folder nobody takes away what is root's.
        sticky = place != path and found.st_mode & stat.S_ISVTX
        if found.st_uid != 0 or not stat.S_ISDIR(found.st_mode) or (shared and not sticky):
            raise CannotRunError(
                f"{place}: should be a folder of root's that nobody else may write to; remove it"
            )


def all_worked(document: Mapping[str, Any]) -> bool:
    """Whether all cases of a run, as `netproof verdict --json` says it, were measured.

    None has failed then and nothing is missing; some may be inconclusive.
    """
    cases = document["cases"]
    words = {case["verdict"] for case in cases}
    measured = all(case["measured"] for case in cases)
    whole = bool(cases) and measured and words <= {"pass", "warn", "inconclusive"}
    return whole and "inconclusive" in words and not document["faults"]


@contextmanager
def stopping() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP raise StoppedError within, once."""

    def stop(number: int, frame: FrameType | None) -> None:
        for other in numbers:
            signal.signal(other, signal.SIG_IGN)
        raise StoppedError(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def contained(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """The exit status of ``command`` in namespaces of its own; nothing of it is left afterwards.

    With this process it ends as well, however that ends.
    """
    words = ["setpriv", "--pdeathsig", "KILL", "unshare", "--kill-child=KILL", "--fork"]
    words += ["--mount", "--pid", "--ipc", "--uts", "--"]
    child = subprocess.Popen(
        [*words, *command], env=environment, stdin=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return child.wait()
    finally:
        if child.poll() is None:
            namespace = _namespace(child.pid, "pid_for_children")
            child.kill()
            child.wait()
            _await_end(namespace)


def _namespace(pid: int | str, kind: str) -> int | None:
    """The kernel's number of a namespace of the process ``pid``.

    None when it is gone, or has rights that this process lacks, as none has that it started.
    """
    try:
        return os.stat(f"/proc/{pid}/ns/{kind}").st_ino
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def _await_end(namespace: int | None) -> None:
    """Waits until no process is left in the process ``namespace``, whose first was killed."""
    if namespace in (None, _namespace("self", "pid")):
        return
    deadline = time.monotonic() + KILL_SECONDS
    while left := [
        p for p in os.listdir("/proc") if p.isdigit() and _namespace(p, "pid") == namespace
    ]:
        if time.monotonic() > deadline:
            raise CannotRunError(f"still running after SIGKILL: processes {', '.join(left)}")
        time.sleep(POLL_S)


@contextmanager
def _alone(release: str) -> Iterator[None]:
    """Lets one run at a time use the folder of ``release``."""
    with (LOCKS / f"netproof-release-{release}.lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CannotRunError(f"another run of {release} is under way") from error
        yield


def _said(command: Sequence[str]) -> str:
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise CannotRunError(f"'{shlex.join(command)}' failed: {' '.join(ran.stderr.split())}")
    return ran.stdout


def _apt_get(*words: str) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(["apt-get", "-qq", *words], env=environment).returncode == 0


def _install_debootstrap() -> None:
    if shutil.which("debootstrap"):
        return
    wanted = ("install", "--yes", "--no-install-recommends", "debootstrap")
    if not (_apt_get("update") and _apt_get(*wanted)):
        raise CannotRunError("debootstrap is missing, and apt-get does not install it")


def _archive(codename: str) -> Mirror:
    """The machine's mirror; a machine may come without apt's lists, which are fetched then."""
    asked = (*TARGETS, "Created-By: Packages")
    said = _said(asked)
    if not said.strip() and _apt_get("update"):
        said = _said(asked)
    return mirror(said, codename)


def _made(folder: Path, release: str, archive: Mirror, environment: Mapping[str, str]) -> Path:
    """The root of ``release`` in ``folder``, made unless it is there.

    Nobody but root may enter the folder: what is everybody's in the release, as its /tmp and the
    programs that run as root, is not there for the machine's users.
    """
    refuse_unsafe(folder)
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    tree, fresh, log = folder / "root", folder / "new", folder / "debootstrap.log"
    if tree.exists():
        return tree
    if fresh.exists():
        shutil.rmtree(fresh)
    fresh.mkdir(mode=0o755)
    print(f"==> make {tree}", flush=True)
    command = ["debootstrap", "--variant=minbase", "--include=ca-certificates"]
    shell = ["sh", "-c", 'exec "$@" >"$0" 2>&1', str(log), *command]
    if contained([*shell, release, str(fresh), archive.main], environment):
        raise CannotRunError(f"debootstrap failed; {log} says why")
    return fresh.rename(tree)


def _settle(tree: Path, release: str, archive: Mirror) -> list[Path]:
    """Gives the release this machine's ways to its registries; the folders it has to see for it."""
    _write(tree / "etc/apt/sources.list", archive.sources(release))
    said = _said(["apt-config", "dump", "Acquire"]).splitlines()
    settings = [line for line in said if APT_SETTINGS.fullmatch(line)]
    _write(tree / "etc/apt/apt.conf.d/90machine", "\n".join([*settings, ""]))
    # Nothing that is installed may start its daemons.
    _write(tree / "usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0o755)
    files = pip_files(os.environ)
    home = Path.home()
    for file in files:
        inside = Path("/root") / file.relative_to(home) if file.is_relative_to(home) else file
        _copy(file, tree, inside)
    named = named_paths(os.environ, files)
    for file in [*map(Path, CERTIFICATES), Path("/etc/resolv.conf"), Path("/etc/hosts"), *named]:
        if file.is_file() or str(file) in CERTIFICATES:
            _copy(file, tree, file)
    return [path for path in named if path.is_dir()]


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.unlink(missing_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def _copy(source: Path, tree: Path, inside: Path) -> None:
    """Copies ``source`` to ``inside`` of ``tree``, with what links name and not the links."""
    target = tree / inside.relative_to("/")
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    elif source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copyfile(source, target)


def _copy_checkout(tree: Path) -> None:
    """Puts this checkout as it is, less what git ignores, in the place of an earlier copy."""
    for folder in (tree / "tmp", tree / "var/tmp", tree / CHECKOUT):
        folder.mkdir(parents=True, exist_ok=True)
        for entry in folder.iterdir():
            if entry.name in KEPT and folder == tree / CHECKOUT:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
    git = ["git", "-C", str(ROOT), "-c", f"safe.directory={ROOT}", "ls-files", "-z"]
    for name in _said([*git, "--cached", "--others", "--exclude-standard"]).split("\0"):
        source, target = ROOT / name, tree / CHECKOUT / name
        if name and os.path.lexists(source) and name.split("/", 1)[0] not in KEPT:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)


def run(named: str, all_tests: bool = False) -> int:
    """Tries the release ``named``: the exit status, which is 0 too where all was measured.

    ``all_tests``: with all tests that need no testbed.
    """
    if os.geteuid() != 0:
        raise CannotRunError("namespaces take root: run it as root, or by sudo")
    begun = time.monotonic()
    # Of a container root may have no rights to make any.
    _said(NAMESPACES)
    codename = _said(["sh", "-c", '. /etc/os-release; echo "${VERSION_CODENAME:-}"']).strip()
    release = other_than(codename) if named == OTHER else named
    print(f"==> try {release}", flush=True)
    with _alone(release):
        _install_debootstrap()
        archive = _archive(codename)
        environment = passed_on(os.environ)
        folder = FOLDERS / f"netproof-release-{release}"
        tree = _made(folder, release, archive, environment)
        folders = _settle(tree, release, archive)
        _copy_checkout(tree)
        asked = {"WITHIN": WITHIN, "ALL_TESTS": "yes" if all_tests else ""}
        command = ["sh", "-c", ENTER, "sh", str(tree), *map(str, folders)]
        status = contained(command, {**environment, **asked})
        document = tree / CHECKOUT / DOCUMENT
        if status == CANNOT_RUN and document.is_file():
            with suppress(ValueError, KeyError, TypeError):
                if all_worked(json.loads(document.read_text(encoding="utf-8"))):
                    print("all cases were measured and none failed; some are inconclusive: good")
                    status = DONE
    print(f"release {release}: exit {status}, {time.monotonic() - begun:.0f} s", flush=True)
    return status


def main(arguments: Sequence[str]) -> int:
    """The run's exit status; 2 and a sentence when it cannot be made, 128 and more by a signal."""
    parser = argparse.ArgumentParser(
        prog="ci/test --release", description="A try of another Debian release."
    )
    parser.add_argument("release", choices=(*RELEASES, OTHER))
    parser.add_argument(
        "--tests", action="store_true", help="run all tests there that need no testbed"
    )
    options = parser.parse_args(arguments)
    try:
        with stopping():
            return run(options.release, options.tests)
    except (CannotRunError, OSError) as error:
        print(f"ci/test: {error}", file=sys.stderr)
        return CANNOT_RUN
    except StoppedError as stopped:
        print(f"ci/test: ended by {stopped}; nothing of the run goes on", file=sys.stderr)
        return 128 + stopped.number


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
