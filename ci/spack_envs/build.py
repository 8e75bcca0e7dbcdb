"""Builds one environment: concretize, install, note what was built. Goes on where it stopped."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ci.spack_envs import fabrics, lock, toolchains
from ci.spack_envs.program import Spack
from netproof.errors import NetproofError
from netproof.intake import json_reading
from netproof.site import spack
from netproof.site.spack import RECORD_FORMAT, RECORDS, BuildRecord, Combination
from netproof.site.spack_files import SpackFileError

NOTE = "concretized.json"
"""Next to a kept lock: what it was made of."""
CLUSTERS = ("slurm", "pmix")
"""Packages that have to be those that the cluster runs."""


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


@dataclass(frozen=True)
class Wanted:
    """How environments are to be built.

    ``jobs``: processes that a package's build may start. ``locks``: folder that keeps the lock
    files; one that was made of the same is used again. ``locked``: by the lock that is there and no
    other. ``slurm``: Slurm and PMIx may be built. ``install``: not the lock only.
    """

    jobs: int
    locks: Path | None = None
    locked: bool = False
    slurm: bool = False
    install: bool = True


def build(
    combination: Combination, program: Spack, wanted: Wanted, folder: Path = spack.FOLDER
) -> Outcome:
    """Brings one environment to what its files say now, for the site that is chosen.

    A failure is part of the outcome.
    """
    begun = time.monotonic()
    own = spack.build_folder(combination, folder)
    log = own / RECORDS / "build.log"
    site = spack.chosen_site(folder)
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _alone(own / RECORDS / "busy", combination.name):
            now = {
                **program.made_by,
                "site": site,
                "files": spack.inputs(combination, site, folder),
            }
            if wanted.install and _is_built(combination, now, wanted, folder):
                return Outcome(combination.name, "was built", 0.0, log)
            (own / RECORDS / "failed.json").unlink(missing_ok=True)
            log.write_text("", encoding="utf-8")
            _concretize(combination, program, log, now, wanted, folder)
            _insist(toolchains.lock_faults(combination, folder))
            _insist(fabrics.lock_faults(combination, site, folder))
            if not wanted.install:
                return Outcome(combination.name, "concretized", time.monotonic() - begun, log)
            agreed = lock.hashes(own / "spack.lock")
            if program.run(log, "-e", str(own), "install", "-j", str(wanted.jobs)):
                raise NetproofError(first_error(log))
            if lock.hashes(own / "spack.lock") != agreed:
                raise NetproofError(f"Spack installed other hashes than {own}/spack.lock had")
            _require_programs(combination, folder)
            _insist(fabrics.library_faults(combination, site, folder))
            packages = _roots(own / "spack.lock", spack.mpi(combination, site, folder).package)
            seconds = round(time.monotonic() - begun, 1)
            record = BuildRecord(
                site,
                datetime.now().astimezone().isoformat(timespec="seconds"),
                seconds,
                now["spack"],
                now["recipes"],
                spack.sha256(own / "spack.lock"),
                now["files"],
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


def changes(
    combination: Combination, program: Spack, site: str, place: Path, folder: Path = spack.FOLDER
) -> list[str]:
    """What ``program`` makes of an environment, compared with its committed lock of the site.

    A line for each package that is another version, or new, or gone; "error: …" where it does not
    concretize. Works in ``place``.
    """
    tried = lay_out(combination, site, folder, place / "upgrade" / combination.name)
    log = tried / "concretize.log"
    log.write_text("", encoding="utf-8")
    if program.run(log, "-e", str(tried), "concretize", "--force"):
        return [f"error: {first_error(log)} (log: {log})"]
    kept = folder / "locks" / (site or "none") / combination.name / "spack.lock"
    if not kept.exists():
        return [f"concretizes; there is no {kept} to compare it with"]
    before, after = lock.versions(kept), lock.versions(tried / "spack.lock")
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
    kept = wanted.locks / combination.name / "spack.lock"
    own = spack.build_folder(combination, folder) / "spack.lock"
    return kept.exists() and lock.hashes(kept) == lock.hashes(own)


def lay_out(
    combination: Combination, site: str, folder: Path = spack.FOLDER, own: Path | None = None
) -> Path:
    """Copies what an environment is made of to ``own``, by default where it is built; returns that.

    Spack writes into a spack.yaml where it pleases, the compilers that it finds for instance: so
    never into the checkout's.
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
    """The line of a log that says best what went wrong first, stripped.

    Spack marks what it takes for errors in a package's own log by ``>>`` and its line there, for
    warnings of Autoconf too: so it is the first of these that speaks of an error, or the first.
    Else it is the first line that speaks of an error, or the last that says anything.
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
    """Takes away all that was made of an environment; False where there was nothing.

    What Spack installed stays in its store.
    """
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
    """Leaves a spack.lock that was made of the files as they are now, and may be built."""
    own = spack.build_folder(combination, folder)
    lock_file, noted = own / "spack.lock", own / RECORDS / NOTE
    kept = wanted.locks / own.name if wanted.locks else None
    if wanted.locked or (kept and not kept_fault(kept, now)):
        if kept is None:
            raise NetproofError("--locked needs a folder of locks")
        fault = kept_fault(kept, now) or lock.elsewhere(kept / "spack.lock")
        if fault:
            raise NetproofError(
                f"the lock {kept}/spack.lock is not used: {fault}."
                f" 'ci/spack-envs concretize {own.name} --locks {kept.parent}' makes it anew"
            )
        lay_out(combination, now["site"], folder)
        shutil.copyfile(kept / "spack.lock", lock_file)
        shutil.copyfile(kept / NOTE, noted)
    elif kept_fault(own, now, noted):
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
    if kept and not wanted.locked:
        kept.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(lock_file, kept / "spack.lock")
        shutil.copyfile(noted, kept / NOTE)


def kept_fault(kept: Path, now: dict[str, Any], noted: Path | None = None) -> str:
    """Why a lock that was kept cannot be used, in words; empty where it can.

    ``now``: what a lock that is made now would be made of. ``noted``: the note of what the kept one
    was made of, next to it by default.
    """
    noted = noted or kept / NOTE
    for path in (kept / "spack.lock", noted):
        if not path.exists():
            return f"there is no {path}"
    made_of = json_reading.json_file(noted)
    if made_of.get("lock") != spack.sha256(kept / "spack.lock"):
        return f"it is not the one that {noted.name} next to it is of"
    return lock.stale(made_of, now)


def _require_programs(combination: Combination, folder: Path) -> None:
    if missing := spack.missing_program(combination, folder):
        raise NetproofError(f"Spack installed all, and still there is no {missing}")


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
