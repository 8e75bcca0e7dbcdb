"""The release's folder: debootstrap, this checkout, and ways to registries."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

from ci.release.containing import contained
from ci.release.entering import CHECKOUT
from ci.release.errors import CannotRunError
from ci.release.programs import apt_get, output_of
from ci.release.registries import Mirror, named_paths, pip_files

ROOT = Path(__file__).resolve().parents[2]
REUSED = (".venv", ".opt")
"""Parts that stay of an earlier copy: the environments made by ci/setup."""
APT_SETTINGS = re.compile(r"Acquire::(https?::|Check-|Retries|ForceIPv)\S* \"[^\"]+\";")
CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/usr/local/share/ca-certificates")


def refuse_unsafe(path: Path) -> None:
    """Raise CannotRunError if anyone but root could have replaced ``path``."""
    for place in [path, *path.parents]:
        try:
            found = place.lstat()
        except FileNotFoundError:
            continue
        shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        # In a sticky folder nobody can remove root's files.
        sticky = place != path and found.st_mode & stat.S_ISVTX
        if found.st_uid != 0 or not stat.S_ISDIR(found.st_mode) or (shared and not sticky):
            raise CannotRunError(
                f"{place}: should be a folder of root's that nobody else may write to; remove it"
            )


def install_debootstrap() -> None:
    """Install debootstrap by apt unless present. Raises CannotRunError if that fails."""
    if shutil.which("debootstrap"):
        return
    wanted = ("install", "--yes", "--no-install-recommends", "debootstrap")
    if not (apt_get("update") and apt_get(*wanted)):
        raise CannotRunError("debootstrap is missing, and apt-get does not install it")


def release_tree(
    folder: Path, release: str, archive: Mirror, environment: Mapping[str, str]
) -> Path:
    """Return the root of ``release`` in ``folder``; make it if it is missing.

    Only root may enter the folder, so that the machine's users reach neither the release's /tmp nor
    its programs that run as root.
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


def settle_registries(tree: Path, release: str, archive: Mirror) -> list[Path]:
    """Give the release this machine's ways to registries; return the folders that it needs."""
    _write(tree / "etc/apt/sources.list", archive.sources(release))
    dumped = output_of(["apt-config", "dump", "Acquire"]).splitlines()
    settings = [line for line in dumped if APT_SETTINGS.fullmatch(line)]
    _write(tree / "etc/apt/apt.conf.d/90machine", "\n".join([*settings, ""]))
    # No installed package may start its daemons.
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
