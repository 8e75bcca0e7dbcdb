"""Try another Debian release: `ci/test --release NAME`, also the end of `ci/test --all`.

Readers and store are tested with its Python, and `ci/quickstart --smoke` is run; `--tests` runs
all tests that need no testbed. The release is a debootstrap in its own folder, made once and
reused. Its processes have their own mount, process, IPC and name namespaces, and the testbed has
its own network. When the first process ends, or is killed, the kernel ends the others and removes
mounts and links. It needs only Debian's Python.
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
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path[0] = str(ROOT)

from ci.testbed.errors import CannotRunError  # noqa: E402
from netproof.errors import NetproofError  # noqa: E402
from netproof.intake import trust  # noqa: E402

RELEASES = ("bookworm", "trixie")
OTHER = "other"
"""Name for the release that the machine does not have."""
FOLDERS, LOCKS = Path("/var/tmp"), Path("/run")
CHECKOUT = "srv/netproof"
"""Place of this checkout's copy in the release's folder."""
REUSED = (".venv", ".opt")
"""Parts that stay of an earlier copy: the environments made by ci/setup."""
DOCUMENT = "verdict.json"
DONE, CANNOT_RUN = 0, 2
PASSED_ON = re.compile(
    r"PIP_\w+|(http|https|ftp|all|no)_proxy|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE",
    re.IGNORECASE,
)
"""Variables by which pip, apt and their helpers reach registries."""
PIP_FILES = ("/etc/pip.conf", "/etc/xdg/pip/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf")
CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/usr/local/share/ca-certificates")
APT_SETTINGS = re.compile(r"Acquire::(https?::|Check-|Retries|ForceIPv)\S* \"[^\"]+\";")
TARGETS = (
    *("apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(ORIGIN) $(REPO_URI)"),
    "Created-By: Packages",
)
NAMESPACES = ("--mount", "--pid", "--ipc", "--uts")
ENTER, WITHIN = (Path(__file__).with_name(f"release-{name}") for name in ("enter", "within"))
"""Scripts that enter the release, and that run in it."""


class StoppedError(BaseException):
    """A signal requested the end; its number is the argument."""


def stopping() -> None:
    """Raise StoppedError on the first SIGINT, SIGTERM or SIGHUP from now on."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def stop(number: int, frame: FrameType | None) -> None:
        for other in numbers:
            signal.signal(other, signal.SIG_IGN)
        raise StoppedError(number)

    for number in numbers:
        signal.signal(number, stop)


def contained(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run ``command`` in namespaces of its own; return its exit status, and leave no process.

    It ends with this process, however that ends.
    """
    words = ["setpriv", "--pdeathsig", "KILL", "unshare", "--kill-child=KILL", "--fork"]
    child = subprocess.Popen(
        [*words, *NAMESPACES, "--", *command],
        env=environment,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return child.wait()
    finally:
        if child.poll() is None:
            # unshare ends after the first process of the namespace, and that one after all others.
            below = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
            for number in below or [child.pid]:
                with suppress(ProcessLookupError):
                    os.kill(int(number), signal.SIGKILL)
            child.wait()


def output_of(command: Sequence[str]) -> str:
    """Return a command's output. Raises CannotRunError with its message if it fails."""
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise CannotRunError(f"'{shlex.join(command)}' failed: {' '.join(ran.stderr.split())}")
    return ran.stdout


def apt_get(*words: str) -> bool:
    """Run apt-get without questions; return whether it succeeded."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(["apt-get", "-qq", *words], env=environment).returncode == 0


def mirrors(codename: str) -> dict[str, str]:
    """Return the addresses of Debian's archives in the machine's apt, by release.

    apt's lists are fetched first if the machine has none. Raises CannotRunError if Debian's main
    archive of ``codename`` is missing, or one has no http address.
    """
    listed = output_of(TARGETS)
    if not listed.strip() and apt_get("update"):
        listed = output_of(TARGETS)
    found: dict[str, str] = {}
    for line in listed.splitlines():
        release, component, origin, address = line.split(" ", 3)
        if (component, origin) == ("main", "Debian"):
            found.setdefault(release, address.rstrip("/"))
    if codename not in found:
        raise CannotRunError(
            f"apt has no lists of Debian's {codename} main, so its mirror is not known: add it to"
            " /etc/apt/sources.list"
        )
    for address in found.values():
        if not re.match(r"https?://", address):
            raise CannotRunError(f"apt's mirror {address} is no http address, as debootstrap needs")
    return found


def sources(archives: Mapping[str, str], codename: str, release: str) -> str:
    """Return a sources.list for ``release`` from the archives of the machine's ``codename``."""
    main, security = archives[codename], archives.get(f"{codename}-security")
    lines = [f"deb {main} {release} main", f"deb {main} {release}-updates main"]
    lines += [f"deb {security} {release}-security main"] if security else []
    return "\n".join(lines) + "\n"


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for the release's programs, with a plain path and locale."""
    passed = {name: value for name, value in environment.items() if PASSED_ON.fullmatch(name)}
    return passed | {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LC_ALL": "C.UTF-8",
        "TERM": environment.get("TERM", "dumb"),
    }


def named_paths(environment: Mapping[str, str], files: Iterable[Path]) -> list[Path]:
    """Return the existing absolute paths that pip's variables or ``files`` name."""
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


def made_tree(folder: Path, release: str, archive: str, environment: Mapping[str, str]) -> Path:
    """Return the root of ``release`` in ``folder``; make it by debootstrap if it is missing.

    Only root may enter the folder, so that the machine's users reach neither the release's /tmp nor
    its programs that run as root.
    """
    trust.insist(folder, "the release's folder")
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    tree, fresh, log = folder / "root", folder / "new", folder / "debootstrap.log"
    if tree.exists():
        return tree
    if not shutil.which("debootstrap") and not (
        apt_get("update") and apt_get("install", "--yes", "--no-install-recommends", "debootstrap")
    ):
        raise CannotRunError("debootstrap is missing, and apt-get does not install it")
    if fresh.exists():
        shutil.rmtree(fresh)
    fresh.mkdir(mode=0o755)
    print(f"==> make {tree}", flush=True)
    command = ["debootstrap", "--variant=minbase", "--include=ca-certificates"]
    shell = ["sh", "-c", 'exec "$@" >"$0" 2>&1', str(log), *command]
    if contained([*shell, release, str(fresh), archive], environment):
        raise CannotRunError(f"debootstrap failed; {log} says why")
    return fresh.rename(tree)


def settle_registries(tree: Path, listed: str) -> list[Path]:
    """Give the release this machine's ways to registries; return the folders that it needs."""
    dumped = output_of(["apt-config", "dump", "Acquire"]).splitlines()
    settings = [line for line in dumped if APT_SETTINGS.fullmatch(line)]
    for name, text, mode in (
        ("etc/apt/sources.list", listed, 0o644),
        ("etc/apt/apt.conf.d/90machine", "\n".join([*settings, ""]), 0o644),
        # No installed package may start its daemons.
        ("usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0o755),
    ):
        (tree / name).unlink(missing_ok=True)
        (tree / name).write_text(text, encoding="utf-8")
        (tree / name).chmod(mode)
    pip = [
        os.path.expanduser(one) for one in (*PIP_FILES, os.environ.get("PIP_CONFIG_FILE")) if one
    ]
    files, home = [Path(one) for one in pip if Path(one).is_file()], Path.home()
    for file in files:
        inside = Path("/root") / file.relative_to(home) if file.is_relative_to(home) else file
        _copy(file, tree, inside)
    named = named_paths(os.environ, files)
    for file in [*map(Path, CERTIFICATES), Path("/etc/resolv.conf"), Path("/etc/hosts"), *named]:
        if file.is_file() or str(file) in CERTIFICATES:
            _copy(file, tree, file)
    return [path for path in named if path.is_dir()]


def _copy(source: Path, tree: Path, inside: Path) -> None:
    """Copy ``source`` to ``inside`` of ``tree``, with links' targets in place of links."""
    target = tree / inside.relative_to("/")
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    elif source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copyfile(source, target)


def copy_checkout(tree: Path) -> None:
    """Replace an earlier copy by this checkout, without the files that git ignores."""
    for folder in (tree / "tmp", tree / "var/tmp", tree / CHECKOUT):
        folder.mkdir(parents=True, exist_ok=True)
        for entry in folder.iterdir():
            if entry.name in REUSED and folder == tree / CHECKOUT:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
    git = ["git", "-C", str(ROOT), "-c", f"safe.directory={ROOT}", "ls-files", "-z"]
    for name in output_of([*git, "--cached", "--others", "--exclude-standard"]).split("\0"):
        source, target = ROOT / name, tree / CHECKOUT / name
        if name and os.path.lexists(source) and name.split("/", 1)[0] not in REUSED:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)


def other_than(codename: str) -> str:
    """Return the release to try on a machine of the release ``codename``.

    Raises CannotRunError for a third release.
    """
    if codename not in RELEASES:
        raise CannotRunError(
            f"this machine is Debian's {codename or 'no release'}, and which is the other one is"
            f" known of {' and '.join(RELEASES)} only: name it by --release"
        )
    return next(release for release in RELEASES if release != codename)


def all_worked(document: Mapping[str, Any]) -> bool:
    """Check by `netproof verdict --format json` that all cases of a run were measured.

    None may have failed or be missing, and some have to be inconclusive.
    """
    cases = document["cases"]
    words = {case["verdict"] for case in cases}
    measured = all(case["measured"] for case in cases)
    whole = bool(cases) and measured and words <= {"pass", "warn", "inconclusive"}
    return whole and "inconclusive" in words and not document["faults"]


@contextmanager
def _alone(release: str) -> Iterator[None]:
    """Let one run at a time use the folder of ``release``."""
    with (LOCKS / f"netproof-release-{release}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CannotRunError(f"another run of {release} is under way") from error
        yield


def run(named: str, all_tests: bool = False, only_prepare: bool = False) -> int:
    """Try the release ``named``; return the exit status, also 0 if all cases were measured.

    ``all_tests``: run all tests that need no testbed; ``only_prepare``: install everything, and try
    nothing.
    """
    if os.geteuid() != 0:
        raise CannotRunError("namespaces take root: run it as root, or by sudo")
    begun = time.monotonic()
    # root in a container may lack the right to make namespaces.
    output_of(("unshare", *NAMESPACES, "--net", "--fork", "true"))
    codename = output_of(["sh", "-c", '. /etc/os-release; echo "${VERSION_CODENAME:-}"']).strip()
    release = other_than(codename) if named == OTHER else named
    print(f"==> {'prepare' if only_prepare else 'try'} {release}", flush=True)
    with _alone(release):
        archives = mirrors(codename)
        environment = passed_on(os.environ)
        folder = FOLDERS / f"netproof-release-{release}"
        tree = made_tree(folder, release, archives[codename], environment)
        folders = settle_registries(tree, sources(archives, codename, release))
        copy_checkout(tree)
        variables = {"ALL_TESTS": "yes" if all_tests else ""}
        variables |= {"WITHIN": WITHIN.read_text(), "ONLY_PREPARE": "yes" if only_prepare else ""}
        command = ["sh", str(ENTER), str(tree), *map(str, folders)]
        status = contained(command, {**environment, **variables})
        document = tree / CHECKOUT / DOCUMENT
        if status == CANNOT_RUN and not only_prepare and document.is_file():
            with suppress(ValueError, KeyError, TypeError):
                if all_worked(json.loads(document.read_text(encoding="utf-8"))):
                    print("all cases were measured and none failed; some are inconclusive: good")
                    status = DONE
    print(f"release {release}: exit {status}, {time.monotonic() - begun:.0f} s", flush=True)
    return status


def main(arguments: Sequence[str]) -> int:
    """Run the try; return its exit status, 2 on an error, 128 and more on a signal."""
    parser = argparse.ArgumentParser(
        prog="ci/test --release", description="A try of another Debian release."
    )
    parser.add_argument("release", choices=(*RELEASES, OTHER))
    parser.add_argument(
        "--tests", action="store_true", help="run all tests there that need no testbed"
    )
    parser.add_argument(
        "--prepare", action="store_true", help="install everything there, and try nothing"
    )
    options = parser.parse_args(arguments)
    try:
        return run(options.release, options.tests, options.prepare)
    except (NetproofError, OSError) as error:
        print(f"ci/test: {error}", file=sys.stderr)
        return CANNOT_RUN
    except StoppedError as stopped:
        number = signal.Signals(stopped.args[0])
        print(f"ci/test: ended by {number.name}; nothing of the run goes on", file=sys.stderr)
        return 128 + number


if __name__ == "__main__":
    stopping()
    sys.exit(main(sys.argv[1:]))
