"""Builds one environment: concretize, install, note what was built. Goes on where it stopped."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ci.spack_envs import fabrics, lock
from ci.spack_envs.program import Spack
from netproof import loading, spack
from netproof.errors import NetproofError
from netproof.spack import RECORD_FORMAT, RECORDS, Combination, Record
from netproof.spack_files import SpackFileError


class BusyError(NetproofError):
    """Another process is building the environment; what becomes of it is for that one to note."""


@dataclass(frozen=True)
class Outcome:
    """What became of one environment; ``error`` is empty where all went well."""

    name: str
    what: str
    seconds: float
    log: Path
    error: str = ""


def build(
    combination: Combination,
    program: Spack,
    jobs: int,
    folder: Path = spack.FOLDER,
    locks: Path | None = None,
) -> Outcome:
    """Brings one environment to what its files say now, for the site that is chosen.

    ``jobs``: processes that a package's build may start. ``locks``: folder that keeps the lock
    files; one that was made of the same files is used again. A failure is part of the outcome.
    """
    begun = time.monotonic()
    own = spack.environment_folder(combination, folder)
    log = own / RECORDS / "build.log"
    site = spack.chosen_site(folder)
    log.parent.mkdir(exist_ok=True)
    try:
        with _alone(own / RECORDS / "busy", combination.name):
            if spack.state(combination, folder, site).word == "built":
                return Outcome(combination.name, "was built", 0.0, log)
            (own / RECORDS / "failed.json").unlink(missing_ok=True)
            log.write_text("", encoding="utf-8")
            files = spack.inputs(combination, site, folder)
            _concretize(own, program, log, {"site": site, "files": files}, locks)
            _insist(fabrics.lock_faults(combination, site, folder))
            if program.run(log, "-e", str(own), "install", "-j", str(jobs)):
                raise NetproofError(first_error(log))
            _require_programs(combination, folder)
            _insist(fabrics.library_faults(combination, site, folder))
            packages = _roots(own / "spack.lock", spack.mpi(combination, site, folder).package)
            seconds = round(time.monotonic() - begun, 1)
            record = Record(
                site,
                datetime.now().astimezone().isoformat(timespec="seconds"),
                seconds,
                program.version,
                spack.sha256(own / "spack.lock"),
                files,
                packages,
            )
            _write(
                own / RECORDS / "built.json",
                {"format": RECORD_FORMAT, **dataclasses.asdict(record)},
            )
    except BusyError as error:
        return Outcome(combination.name, "left alone", 0.0, log, str(error))
    except NetproofError as error:
        _write(
            own / RECORDS / "failed.json",
            {
                "when": datetime.now().astimezone().isoformat(timespec="seconds"),
                "error": str(error),
                "log": str(log),
            },
        )
        return Outcome(combination.name, "failed", time.monotonic() - begun, log, str(error))
    return Outcome(combination.name, "built", seconds, log)


def first_error(log: Path) -> str:
    """The line of a log that says best what went wrong first, stripped.

    Spack marks the errors that it found in a package's own log by ``>>`` and its line there; else
    it is the first line that speaks of an error, or the last that says anything.
    """
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines()]
    for pattern in (r">>\s+(?:\d+\s+)?(.+)", r"(?:==> )?(.*\berror\b.*)"):
        for line in lines:
            found = re.fullmatch(pattern, line, re.IGNORECASE)
            if found and not re.match(r"\d+ errors? found", line):
                return found[1]
    said = [line for line in lines if line]
    return said[-1] if said else "spack said nothing"


def clean(combination: Combination, folder: Path = spack.FOLDER) -> bool:
    """Takes away all of an environment but its spack.yaml; False where there was nothing else.

    What Spack installed stays in its store.
    """
    own = spack.environment_folder(combination, folder)
    left = [path for path in own.iterdir() if path.name != "spack.yaml"]
    for path in left:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return bool(left)


def _concretize(
    own: Path, program: Spack, log: Path, made_of: dict[str, Any], locks: Path | None
) -> None:
    """Leaves a spack.lock that was made of the files as they are now."""
    lock_file, noted = own / "spack.lock", own / RECORDS / "concretized.json"
    kept = locks / own.name if locks else None
    if kept and _made_of(kept / "spack.lock", kept / noted.name, made_of):
        shutil.copy(kept / "spack.lock", lock_file)
        shutil.copy(kept / noted.name, noted)
        return
    if not _made_of(lock_file, noted, made_of):
        noted.unlink(missing_ok=True)
        if program.run(log, "-e", str(own), "concretize", "--force"):
            raise NetproofError(first_error(log))
        _write(noted, {**made_of, "lock": spack.sha256(lock_file)})
    if kept:
        kept.mkdir(parents=True, exist_ok=True)
        shutil.copy(lock_file, kept / "spack.lock")
        shutil.copy(noted, kept / noted.name)


def _made_of(lock_file: Path, noted: Path, made_of: dict[str, Any]) -> bool:
    if not lock_file.exists() or not noted.exists():
        return False
    content = loading.json_file(noted)
    return content == {**made_of, "lock": spack.sha256(lock_file)}


def _require_programs(combination: Combination, folder: Path) -> None:
    for name in spack.benchmarks(folder)["programs"]:
        path = spack.view(combination, folder) / "bin" / name
        if not os.access(path, os.X_OK):
            raise NetproofError(f"Spack installed all, and still there is no {path}")


def _insist(faults: list[str]) -> None:
    if faults:
        raise NetproofError("; ".join(faults))


def _roots(lock_file: Path, mpi_package: str) -> dict[str, dict[str, str]]:
    found = lock.roots(lock_file)
    if mpi_package not in found:
        raise SpackFileError(lock_file, "roots", f"has no {mpi_package}, only {', '.join(found)}")
    return found


def _write(path: Path, content: dict[str, Any]) -> None:
    """Writes all of it or nothing: an interruption leaves no half a record."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


@contextmanager
def _alone(path: Path, name: str) -> Iterator[None]:
    with path.open("w", encoding="utf-8") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(f"another ci/spack-envs is building {name}") from None
        yield
