"""The release's folder: made by debootstrap, with this checkout and ways to registries."""

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
KEPT = (".venv", ".opt")
"""What stays of an earlier copy: the environments that ci/setup made there."""
APT_SETTINGS = re.compile(r"Acquire::(https?::|Check-|Retries|ForceIPv)\S* \"[^\"]+\";")
CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/usr/local/share/ca-certificates")


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


def install_debootstrap() -> None:
    """Has apt install debootstrap, unless it is there; CannotRunError where it does not."""
    if shutil.which("debootstrap"):
        return
    wanted = ("install", "--yes", "--no-install-recommends", "debootstrap")
    if not (apt_get("update") and apt_get(*wanted)):
        raise CannotRunError("debootstrap is missing, and apt-get does not install it")


def release_tree(
    folder: Path, release: str, archive: Mirror, environment: Mapping[str, str]
) -> Path:
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


def settle_registries(tree: Path, release: str, archive: Mirror) -> list[Path]:
    """Gives the release this machine's ways to its registries; the folders it has to see for it."""
    _write(tree / "etc/apt/sources.list", archive.sources(release))
    said = output_of(["apt-config", "dump", "Acquire"]).splitlines()
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


def copy_checkout(tree: Path) -> None:
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
    for name in output_of([*git, "--cached", "--others", "--exclude-standard"]).split("\0"):
        source, target = ROOT / name, tree / CHECKOUT / name
        if name and os.path.lexists(source) and name.split("/", 1)[0] not in KEPT:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
