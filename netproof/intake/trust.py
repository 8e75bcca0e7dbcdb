"""Check whether others can write a place, before anything is taken from it.

Code, and files that decide which code runs or what passes (sites' files, references, hooks, Slurm's
configuration), are *strict*. Every component from the root of the path down belongs to root, the
effective user or netproof's owner, and no one else can write it. *Data* (stores, reports) may be a
project's, which several users write; files that everybody can write are refused. The rules are in
docs/security.md.

``python -m netproof.intake.trust`` checks SLURM_CONF for ``ci/activate``.
"""

from __future__ import annotations

import functools
import grp
import os
import pwd
import re
import shlex
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from netproof.errors import NetproofError

USERS = "NETPROOF_TRUSTED_USERS"
"""Variable with names or numbers, separated by commas, of further users whose code may run."""
GROUPS = "NETPROOF_TRUSTED_GROUPS"
"""Variable with groups whose members may all write what is run."""

SLURM_CONF = "SLURM_CONF"
SLURM_USERS = ("slurm",)
"""Owners of slurm.conf besides root: on most clusters it belongs to Slurm's own user."""

_LINKS = 40
"""Symbolic links that a path may go through, the kernel's limit."""


def insist(path: Path | str, what: str, *, data: bool = False, users: Sequence[str] = ()) -> None:
    """Raise NetproofError where others can write ``path``, or the existing part of it.

    ``what``: name of the place in the error. ``data``: by the rules for data. ``users``: names of
    further trusted owners. Symbolic links are followed, and each is checked.
    """
    trusted = _trusted_users(users)
    holder: os.stat_result | None = None
    for component, found in _components(path):
        reason = _fault(component, found, holder, trusted, data)
        if reason:
            place = str(path) if component == str(path) else f"{path}: {component}"
            raise NetproofError(f"{what} {place} {reason} (docs/security.md)")
        if not stat.S_ISLNK(found.st_mode):
            holder = found


def insist_on_slurm(*, may_lack: bool = False) -> None:
    """Raise NetproofError where SLURM_CONF is missing or others can write it; unset is fine.

    A missing file fails at once, unless it ``may_lack``: Slurm's commands would look for it for a
    minute.
    """
    named = os.environ.get(SLURM_CONF)
    if named:
        insist(named, SLURM_CONF, users=SLURM_USERS)
        # Slurm's commands load the plugins that it names, into their own process.
        plugins = Path(named).with_name("plugstack.conf")
        insist(plugins, f"next to {SLURM_CONF},", users=SLURM_USERS)
    if named is not None and not (may_lack or os.path.isfile(named)):
        raise NetproofError(
            f"{SLURM_CONF} is {named!r}, and there is no such file; set it to the cluster's"
            f" slurm.conf, or 'unset {SLURM_CONF}' where Slurm's commands know it themselves"
        )


def insist_on_command(command: str, what: str) -> None:
    """Raise NetproofError where others can write a program or script that a shell command names.

    Checked are the first word of each part, as the shell finds it, and every other word that is the
    path of a file, except redirections. Computed words are not seen.
    """
    lexer = shlex.shlex(command, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace_split = True
    # A line end begins another command, and an apparent comment may be part of a word.
    lexer.whitespace, lexer.commenters = " \t\r", ""
    try:
        words = list(lexer)
    except ValueError as error:
        raise NetproofError(f"{what} {command!r} is no command of a shell: {error}") from None
    first, redirected = True, False
    for word in words:
        if re.fullmatch(r"[();<>|&\n]+", word):
            redirected = word[0] in "<>" and "\n" not in word
            first = first if redirected else True
            continue
        if redirected:
            redirected = False
            continue
        if first and re.match(r"[A-Za-z_]\w*=", word):
            continue
        path = shutil.which(word) if first and "/" not in word else word
        if path and "/" in path and os.path.isfile(path):
            insist(path, what)
        first = False


def _components(path: Path | str) -> Iterator[tuple[str, os.stat_result]]:
    """Return every existing component, from the root down, links before their targets."""
    place, links = "/", 0
    whole = path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
    waiting = str(whole).split("/")[::-1]
    yield place, os.lstat(place)
    while waiting:
        part = waiting.pop()
        if part in ("", "."):
            continue
        if part == "..":
            # Its target was checked on the way here.
            place = os.path.dirname(place)
            yield place, os.lstat(place)
            continue
        here = os.path.join(place, part)
        try:
            found = os.lstat(here)
            target = os.readlink(here) if stat.S_ISLNK(found.st_mode) else None
        except (OSError, ValueError):
            # What cannot be examined cannot be opened either; opening it reports that.
            return
        yield here, found
        if target is None:
            place = here
            continue
        links += 1
        if links > _LINKS:
            raise NetproofError(f"{path}: goes through more than {_LINKS} symbolic links")
        if target.startswith("/"):
            place = "/"
            yield place, os.lstat(place)
        waiting += target.split("/")[::-1]


def _fault(
    component: str,
    found: os.stat_result,
    holder: os.stat_result | None,
    trusted: frozenset[int],
    data: bool,
) -> str | None:
    """Return the fault of a component and its remedy; ``holder`` is the folder that contains it."""
    mode, quoted = found.st_mode, shlex.quote(component)
    # In a sticky folder anybody can create a name, and only its owner can remove it.
    anyones = holder is not None and bool(holder.st_mode & stat.S_IWOTH)
    if found.st_uid not in trusted and (anyones or not data):
        owner, me = _user(found.st_uid), _user(os.geteuid())
        fine = " or ".join(dict.fromkeys((me, "root")))
        if _hides_users(found.st_uid):
            return (
                f"belongs to {owner} ({_octal(mode)}), as which this user namespace shows all users"
                f" of the machine that it does not have: set {USERS}={owner} in this container"
                " if they are trusted"
            )
        return (
            f"belongs to {owner} ({_octal(mode)}), and not to {fine}: use a place of"
            f" your own, 'chown -h {me} {quoted}' if you know what is in it, or set"
            f" {USERS}={owner} if what {owner} writes may be run as {me}"
        )
    if stat.S_ISDIR(mode):
        if mode & stat.S_ISVTX:
            return None
    elif not stat.S_ISREG(mode):
        return None
    if mode & stat.S_IWOTH:
        return (
            f"({_octal(mode)}, {_user(found.st_uid)}'s) can be written by everybody:"
            f" 'chmod o-w {quoted}'"
        )
    if mode & stat.S_IWGRP and not data and not _of_one(found.st_gid, trusted):
        group = _group(found.st_gid)
        return (
            f"({_octal(mode)}, {_user(found.st_uid)}'s) can be written by the group {group}:"
            f" 'chmod g-w {quoted}', or set {GROUPS}={group} if what its members write may be run"
            f" as {_user(os.geteuid())}"
        )
    return None


def _octal(mode: int) -> str:
    return f"mode {stat.S_IMODE(mode):04o}"


def _name(find: Callable[[int], Sequence[Any]], number: int) -> str:
    try:
        return str(find(number)[0])
    except KeyError:
        return str(number)


_user, _group = partial(_name, pwd.getpwuid), partial(_name, grp.getgrgid)


def _trusted_users(further: Sequence[str]) -> frozenset[int]:
    """Return root, the effective user, the variable's users, and the existing ones of ``further``.

    netproof's own owner is trusted too: that user's code is running already.
    """
    numbers = {0, os.geteuid()}
    owner = os.stat(__file__).st_uid
    if not _hides_users(owner):
        numbers.add(owner)
    for name in _named(USERS):
        number = int(name) if name.isascii() and name.isdigit() else _uid(name)
        if number is None:
            raise NetproofError(f"{USERS} names {name!r}, and there is no such user")
        numbers.add(number)
    numbers.update(number for number in map(_uid, further) if number is not None)
    return frozenset(numbers)


def _uid(name: str) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def _of_one(group: int, trusted: frozenset[int]) -> bool:
    """Check that a group has only trusted users: it is one's own group, or named as trusted."""
    name = _group(group)
    if {name, str(group)} & set(_named(GROUPS)):
        return True
    try:
        members = set(grp.getgrgid(group).gr_mem)
    except KeyError:
        return False
    for user in trusted:
        try:
            entry = pwd.getpwuid(user)
        except KeyError:
            continue
        if (entry.pw_name, entry.pw_gid) == (name, group) and members <= {name}:
            return True
    return False


def _named(variable: str) -> list[str]:
    return [name for name in os.environ.get(variable, "").split(",") if name]


@functools.cache
def _hides_users(number: int) -> bool:
    """Check whether this number stands for all users outside the user namespace."""
    try:
        mapped = Path("/proc/self/uid_map").read_text().split()
        overflow = int(Path("/proc/sys/kernel/overflowuid").read_text())
    except (OSError, ValueError):
        return False
    return number == overflow and mapped != ["0", "0", "4294967295"]


if __name__ == "__main__":
    try:
        insist_on_slurm(may_lack=True)
    except NetproofError as error:
        sys.exit(f"ci/activate: {error}")
