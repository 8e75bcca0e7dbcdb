"""Try another Debian release: `ci/test --release NAME`, also the end of `ci/test`.

Parsers, loading and store are tested with its Python, and `ci/quickstart --smoke` is run; `--tests`
runs all tests that need no testbed.

The release is a debootstrap in its own folder, made once and reused. Its processes have their own
mount, process, IPC and name namespaces, and the testbed has its own network. When the first process
ends, or is killed, the kernel ends the others and removes mounts and links.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ci.release.containing import StoppedError, contained, stopping
from ci.release.entering import CANNOT_RUN, CHECKOUT, DOCUMENT, DONE, ENTER, WITHIN
from ci.release.errors import CannotRunError
from ci.release.programs import output_of
from ci.release.registries import machine_archive, passed_on
from ci.release.tree import copy_checkout, install_debootstrap, release_tree, settle_registries

RELEASES = ("bookworm", "trixie")
OTHER = "other"
"""Name for the release that the machine does not have."""
FOLDERS = Path("/var/tmp")
LOCKS = Path("/run")
NAMESPACES = ("unshare", "--mount", "--pid", "--ipc", "--uts", "--net", "--fork", "true")


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
    output_of(NAMESPACES)
    codename = output_of(["sh", "-c", '. /etc/os-release; echo "${VERSION_CODENAME:-}"']).strip()
    release = other_than(codename) if named == OTHER else named
    print(f"==> {'prepare' if only_prepare else 'try'} {release}", flush=True)
    with _alone(release):
        install_debootstrap()
        archive = machine_archive(codename)
        environment = passed_on(os.environ)
        folder = FOLDERS / f"netproof-release-{release}"
        tree = release_tree(folder, release, archive, environment)
        folders = settle_registries(tree, release, archive)
        copy_checkout(tree)
        variables = {"ALL_TESTS": "yes" if all_tests else ""}
        variables |= {"WITHIN": WITHIN, "ONLY_PREPARE": "yes" if only_prepare else ""}
        command = ["sh", "-c", ENTER, "sh", str(tree), *map(str, folders)]
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
        with stopping():
            return run(options.release, options.tests, options.prepare)
    except (CannotRunError, OSError) as error:
        print(f"ci/test: {error}", file=sys.stderr)
        return CANNOT_RUN
    except StoppedError as stopped:
        print(f"ci/test: ended by {stopped}; nothing of the run goes on", file=sys.stderr)
        return 128 + stopped.number
