"""Build one environment: concretize, install, record. Continue where it stopped."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ci.spack_envs import consistency, fabrics, lock
from ci.spack_envs.program import Spack
from netproof.errors import NetproofError
from netproof.intake import disk
from netproof.site import spack
from netproof.site.spack import RECORDS, BuildRecord, Combination, SpackFileError

NOTE = "concretized.json"
"""File beside a stored lock with its sources."""
CLUSTERS = ("slurm", "pmix")
"""Packages that have to be the cluster's own."""


@dataclass(frozen=True)
class Outcome:
    """Outcome for one environment; ``error`` is empty on success."""

    name: str
    what: str
    seconds: float
    log: Path
    error: str = ""


@dataclass(frozen=True)
class Wanted:
    """Options of a build.

    ``jobs``: processes of a package's build. ``locks``: folder of stored lock files; one with the
    same sources is used again. ``locked``: use only the stored lock. ``slurm``: Slurm and PMIx may
    be built. ``install``: not the lock only.
    """

    jobs: int
    locks: Path | None = None
    locked: bool = False
    slurm: bool = False
    install: bool = True


def chosen_site(folder: Path = spack.FOLDER) -> str:
    """Return the name of the site that was chosen last, empty for none."""
    path = spack.builds(folder) / "site"
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


def build(
    combination: Combination, program: Spack, wanted: Wanted, folder: Path = spack.FOLDER
) -> Outcome:
    """Build one environment by its present files for the chosen site; failures are outcomes."""
    begun = time.monotonic()
    records = spack.build_folder(combination, folder) / RECORDS
    name, log = combination.name, records / "build.log"
    busy = f"another ci/spack-envs is building {name}"
    try:
        with disk.locked(records / "busy", f"process {os.getpid()}", busy):
            try:
                return _built(combination, program, wanted, folder, log, begun)
            except NetproofError as error:
                failed = {"when": _now(), "error": str(error), "log": str(log)}
                _write(records / "failed.json", failed)
                return Outcome(name, "failed", time.monotonic() - begun, log, str(error))
    except NetproofError as error:
        # The process that builds it records the outcome.
        return Outcome(name, "left alone", 0.0, log, str(error))


def _built(
    combination: Combination, program: Spack, wanted: Wanted, folder: Path, log: Path, begun: float
) -> Outcome:
    """Build one environment. Raises NetproofError if that fails."""
    own, site = spack.build_folder(combination, folder), chosen_site(folder)
    now = {**program.made_by, "site": site, "files": spack.inputs(combination, site, folder)}
    if wanted.install and _is_built(combination, now, wanted, folder):
        return Outcome(combination.name, "was built", 0.0, log)
    (own / RECORDS / "failed.json").unlink(missing_ok=True)
    log.write_text("", encoding="utf-8")
    _concretize(combination, program, log, now, wanted, folder)
    _insist(consistency.compiler_faults(combination, folder))
    _insist(fabrics.lock_faults(combination, site, folder))
    if not wanted.install:
        return Outcome(combination.name, "concretized", time.monotonic() - begun, log)
    agreed = lock.hashes(own / "spack.lock")
    if program.run(log, "-e", str(own), "install", "-j", str(wanted.jobs)):
        raise NetproofError(first_error(log))
    if lock.hashes(own / "spack.lock") != agreed:
        raise NetproofError(f"Spack installed other hashes than {own}/spack.lock had")
    if missing := spack.missing_program(combination, folder):
        raise NetproofError(f"Spack installed all, and still there is no {missing}")
    _insist(fabrics.library_faults(combination, site, folder))
    packages = lock.roots(own / "spack.lock")
    if (mpi := spack.mpi(combination, site, folder).package) not in packages:
        raise SpackFileError(own / "spack.lock", "roots", f"has no {mpi}")
    seconds, digest = round(time.monotonic() - begun, 1), spack.sha256(own / "spack.lock")
    made_by = now["spack"], now["recipes"]
    record = BuildRecord(site, _now(), seconds, *made_by, digest, now["files"], packages)
    _write(own / RECORDS / "built.json", dataclasses.asdict(record))
    return Outcome(combination.name, "built", seconds, log)


def changes(
    combination: Combination, program: Spack, site: str, place: Path, folder: Path = spack.FOLDER
) -> list[str]:
    """Concretize an environment by ``program`` in ``place``; compare it with the site's lock.

    Return a line for each package with another version, new or gone; "error: …" if that fails.
    """
    tried = lay_out(combination, site, folder, place / "upgrade" / combination.name)
    log = tried / "concretize.log"
    log.write_text("", encoding="utf-8")
    if program.run(log, "-e", str(tried), "concretize", "--force"):
        return [f"error: {first_error(log)} (log: {log})"]
    stored = folder / "locks" / (site or "none") / combination.name / "spack.lock"
    if not stored.exists():
        return [f"concretizes; there is no {stored} to compare it with"]
    before, after = lock.versions(stored), lock.versions(tried / "spack.lock")
    lines = [
        f"{name}: {before.get(name, 'new')} -> {after.get(name, 'gone')}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
    return lines or ["the same versions"]


def _is_built(combination: Combination, now: dict[str, Any], wanted: Wanted, folder: Path) -> bool:
    found = spack.state(combination, folder, now["site"])
    if found.word != "built" or found.record is None:
        return False
    if (found.record.spack, found.record.recipes) != (now["spack"], now["recipes"]):
        return False
    if not wanted.locked or not wanted.locks:
        return True
    stored = wanted.locks / combination.name / "spack.lock"
    own = spack.build_folder(combination, folder) / "spack.lock"
    return stored.exists() and lock.hashes(stored) == lock.hashes(own)


def lay_out(
    combination: Combination, site: str, folder: Path = spack.FOLDER, own: Path | None = None
) -> Path:
    """Copy an environment's files to ``own``, by default its build folder; return that folder.

    Spack writes into spack.yaml, found compilers for instance, so that it gets a copy.
    """
    own = own or spack.build_folder(combination, folder)
    own.mkdir(parents=True, exist_ok=True)
    copied = own / "files"
    shutil.rmtree(copied, ignore_errors=True)
    for name in spack.inputs(combination, site, folder):
        target = copied / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / name, target)
    if site:
        text = (folder / "site" / site / "packages.yaml").read_text(encoding="utf-8")
        chosen = copied / "site" / spack.CHOSEN
        chosen.write_text(spack.in_project(text), encoding="utf-8")
    text = (spack.environment_folder(combination, folder) / "spack.yaml").read_text("utf-8")
    (own / "spack.yaml").write_text(text.replace("../../", "files/"), encoding="utf-8")
    return own


def first_error(log: Path) -> str:
    """Return the line of a log that best explains the first error, stripped.

    Spack marks errors in a package's log by ``>>`` and the line there, warnings of Autoconf too.
    So take the first marked line with "error", or the first marked one; else the first line with
    "error", or the last line that is not empty.
    """
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines()]
    marked = r">>\s+(?:\d+\s+)?"
    for pattern in (rf"{marked}(.*\berror\b.*)", rf"{marked}(.+)", r"(?:==> )?(.*\berror\b.*)"):
        for line in lines:
            found = re.fullmatch(pattern, line, re.IGNORECASE)
            if found and not re.match(r"\d+ errors? found", line):
                return found[1]
    said = [line for line in lines if line]
    return said[-1] if said else "spack said nothing"


def clean(combination: Combination, folder: Path = spack.FOLDER) -> bool:
    """Remove an environment's build folder, not Spack's store; return False if there was none."""
    own = spack.build_folder(combination, folder)
    if not own.exists():
        return False
    shutil.rmtree(own)
    return True


def _concretize(
    combination: Combination,
    program: Spack,
    log: Path,
    now: dict[str, Any],
    wanted: Wanted,
    folder: Path,
) -> None:
    """Leave a spack.lock of the present files that may be built."""
    own = spack.build_folder(combination, folder)
    lock_file, noted = own / "spack.lock", own / RECORDS / NOTE
    stored = wanted.locks / own.name if wanted.locks else None
    if wanted.locked or (stored and not stored_fault(stored, now)):
        if stored is None:
            raise NetproofError("--locked needs a folder of locks")
        fault = stored_fault(stored, now) or lock.elsewhere(stored / "spack.lock")
        if fault:
            raise NetproofError(
                f"the lock {stored}/spack.lock is not used: {fault}."
                f" 'ci/spack-envs concretize {own.name} --locks {stored.parent}' makes a new one"
            )
        lay_out(combination, now["site"], folder)
        shutil.copyfile(stored / "spack.lock", lock_file)
        shutil.copyfile(stored / NOTE, noted)
    elif stored_fault(own, now, noted):
        noted.unlink(missing_ok=True)
        lock_file.unlink(missing_ok=True)
        lay_out(combination, now["site"], folder)
        if program.run(log, "-e", str(own), "concretize", "--force"):
            raise NetproofError(first_error(log))
        _write(noted, {**now, "lock": spack.sha256(lock_file)})
    foreign = lock.built_among(lock_file, CLUSTERS)
    if foreign and not wanted.slurm:
        raise NetproofError(
            f"Spack would build {' and '.join(foreign)}, which have to be those that the cluster"
            " runs: 'spack external find slurm pmix' shows where they are; write them into"
            " spack-envs/site/NAME/packages.yaml with `buildable: false` (docs/spack.md), and"
            " build with --site NAME. --build-slurm builds them all the same"
        )
    if stored and not wanted.locked:
        stored.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(lock_file, stored / "spack.lock")
        shutil.copyfile(noted, stored / NOTE)


def stored_fault(stored: Path, now: dict[str, Any], noted: Path | None = None) -> str:
    """Return why a stored lock cannot be used; empty if it can.

    ``now``: sources of a lock made now. ``noted``: file with the stored lock's sources, by default
    beside it.
    """
    noted = noted or stored / NOTE
    for path in (stored / "spack.lock", noted):
        if not path.exists():
            return f"there is no {path}"
    made_of = disk.json_file(noted)
    if made_of.get("lock") != spack.sha256(stored / "spack.lock"):
        return f"it is not the one that {noted.name} describes"
    return lock.stale(made_of, now)


def _insist(faults: list[str]) -> None:
    if faults:
        raise NetproofError("; ".join(faults))


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")


def _write(path: Path, content: dict[str, Any]) -> None:
    """Write a record whole or not at all."""
    disk.replace(path, json.dumps(content, indent=1) + "\n")
