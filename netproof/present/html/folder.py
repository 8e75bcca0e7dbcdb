"""A report's folder: written aside and put in place whole, for an earlier report or nothing."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from netproof.errors import NetproofError
from netproof.intake import json_reading

MANIFEST = "netproof-report.json"
"""File that lists all that netproof wrote into a report's folder."""

FORMAT = 1
"""Format of the manifest; raised when its keys change."""

ABANDONED_AFTER_S = 86400
"""Age at which a killed writer's remains beside the folder are removed."""

_ASIDE = "netproof-report"
_EXCHANGE = 2
"""``RENAME_EXCHANGE`` of Linux's renameat2."""
_HERE = -100
"""Its ``AT_FDCWD``: paths are relative to the process's folder."""
_NO_EXCHANGE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
"""Errors of file systems that cannot exchange, such as NFS."""


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Give a new folder beside ``folder`` to write into, which replaces it when all is written.

    Until then, and where anything is raised, ``folder`` stays as it is. It has to be new, empty, or
    an earlier report, whose files go; files in it that netproof did not write stay. Raises
    NetproofError where it holds other things than a report, or the process is in it, and OSError.
    """
    target = folder.resolve()
    here = Path.cwd()
    if target in (here, *here.parents):
        raise NetproofError(
            f"{target}: you are in it, and a report takes its folder's place as a whole; name a"
            " folder within it"
        )
    _written_before(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target)
    aside = _alongside(target)
    aside.mkdir()
    try:
        yield aside
        _write_manifest(aside)
        for path in (*aside.rglob("*"), aside):
            _to_disk(path)
        _link_foreign(target, aside)
        _put_in_place(aside, target)
        _to_disk(target.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _written_before(folder: Path) -> tuple[Path, ...]:
    """Return the files of the report in ``folder``, relative to it; none if it is new or empty.

    Raises NetproofError where it holds other things than a report, OSError where it is no folder.
    """
    if not folder.exists() or not any(folder.iterdir()):
        return ()
    manifest = folder / MANIFEST
    try:
        document = json_reading.json_file(manifest)
        if document["format"] != FORMAT:
            raise NetproofError(
                f"{manifest}: is of format {document['format']}, and this netproof knows {FORMAT};"
                " name a new folder"
            )
        files = tuple(Path(name) for name in document["files"])
    except FileNotFoundError:
        some = min(path.name for path in folder.iterdir())
        raise NetproofError(
            f"{folder}: is not empty and no report, it has {some!r} and no {MANIFEST}; name a new"
            " folder"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise NetproofError(f"{manifest}: cannot be read: {error!r}; name a new folder") from error
    strays = [path for path in files if path.is_absolute() or ".." in path.parts]
    if strays:
        raise NetproofError(f"{manifest}: names {strays[0]}, which is not in the folder")
    return files


def _write_manifest(folder: Path) -> None:
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    document = {"format": FORMAT, "files": [*files, MANIFEST]}
    (folder / MANIFEST).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _link_foreign(target: Path, aside: Path) -> None:
    """Link the old folder's files that netproof did not write into the new one."""
    if not target.exists():
        return
    shutil.copymode(target, aside)
    own = set(_written_before(target))
    for path in sorted(target.rglob("*")):
        place = path.relative_to(target)
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                (aside / place).mkdir(parents=True, exist_ok=True)
            continue
        if place in own:
            continue
        linked = aside / place
        if linked.exists():
            raise NetproofError(
                f"{path}: is not of the earlier report, and the new one has a file of this name;"
                " move it away, or name a new folder"
            )
        linked.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, linked, follow_symlinks=False)
        except OSError:
            shutil.copy2(path, linked, follow_symlinks=False)


def _put_in_place(aside: Path, target: Path) -> None:
    """Replace ``target`` by ``aside`` at once; the old ``target`` stays in ``aside``."""
    try:
        # Replaces an empty folder too.
        aside.rename(target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    else:
        return
    try:
        _exchange(aside, target)
    except OSError as error:
        if error.errno not in _NO_EXCHANGE:
            raise
        before = _alongside(target, "before")
        target.rename(before)
        aside.rename(target)
        before.rename(aside)


def _exchange(one: Path, other: Path) -> None:
    """Exchange the names of two folders in one step."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(other))


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _alongside(target: Path, word: str = _ASIDE) -> Path:
    return target.with_name(f".{target.name}.{word}-{secrets.token_hex(6)}")


def _sweep(target: Path) -> None:
    """Remove the remains of killed writers beside the folder, once they are a day old."""
    for path in target.parent.glob(f".{target.name}.{_ASIDE}-*"):
        try:
            old = time.time() - path.stat().st_mtime > ABANDONED_AFTER_S
        except FileNotFoundError:
            continue
        if old:
            shutil.rmtree(path, ignore_errors=True)
