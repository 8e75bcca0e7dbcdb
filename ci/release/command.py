"""A try of another Debian release: `ci/test --release NAME`, and what `ci/test` ends with.

Parsers, loading and store are tested there with its Python, and `ci/quickstart --smoke` is run;
`--tests` has all be tested that needs no testbed.

The release is a debootstrap in a folder of its own, made once and used again. What runs there has
mount, process, IPC and name namespaces of its own, and the testbed a network of its own too: when
the first process ends, or is killed, the kernel ends the others and takes away mounts and links.
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
"""Names whichever of the two the machine itself is not."""
FOLDERS = Path("/var/tmp")
LOCKS = Path("/run")
NAMESPACES = ("unshare", "--mount", "--pid", "--ipc", "--uts", "--net", "--fork", "true")


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
def _alone(release: str) -> Iterator[None]:
    """Lets one run at a time use the folder of ``release``."""
    with (LOCKS / f"netproof-release-{release}.lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CannotRunError(f"another run of {release} is under way") from error
        yield


def run(named: str, all_tests: bool = False, only_prepare: bool = False) -> int:
    """Tries the release ``named``: the exit status, which is 0 too where all was measured.

    ``all_tests``: with all tests that need no testbed; ``only_prepare``: install what a try takes,
    and try nothing.
    """
    if os.geteuid() != 0:
        raise CannotRunError("namespaces take root: run it as root, or by sudo")
    begun = time.monotonic()
    # Of a container root may have no rights to make any.
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
        asked = {"ALL_TESTS": "yes" if all_tests else ""}
        asked |= {"WITHIN": WITHIN, "ONLY_PREPARE": "yes" if only_prepare else ""}
        command = ["sh", "-c", ENTER, "sh", str(tree), *map(str, folders)]
        status = contained(command, {**environment, **asked})
        document = tree / CHECKOUT / DOCUMENT
        if status == CANNOT_RUN and not only_prepare and document.is_file():
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
    parser.add_argument(
        "--prepare", action="store_true", help="install there what a try takes, and try nothing"
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
