"""Whether others can write a place, asked before anything is taken from it.

Code, and what decides what code runs or what passes (sites' files, references, hooks, Slurm's
configuration), is *strict*: from the root of the path down every component belongs to root, the
effective user or whose netproof it is, and no one else can write it. *Data* (stores, reports) may
be a project's, which several users write; what everybody can write is refused. docs/security.md
tells the rules.

``python -m netproof.intake.trust`` looks at SLURM_CONF; ``ci/activate`` asks it.
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
from collections.abc import Iterator, Sequence
from pathlib import Path

from netproof.errors import NetproofError

USERS = "NETPROOF_TRUSTED_USERS"
"""Names or numbers, with commas, of further users whose code may run; a variable."""
GROUPS = "NETPROOF_TRUSTED_GROUPS"
"""The same of groups, all members of which may write what is run."""

SLURM_CONF = "SLURM_CONF"
SLURM_USERS = ("slurm",)
"""Whose slurm.conf may be, other than root's: on most clusters it belongs to Slurm's own user."""

_LINKS = 40
"""Symbolic links that a path may go through, as for the kernel."""


def insist(path: Path | str, what: str, *, data: bool = False, users: Sequence[str] = ()) -> None:
    """Return where no one else can write ``path``, or what is there of it; else NetproofError.

    ``what``: names the place in the error. ``data``: by the rules for data. ``users``: names of
    further owners that are fine here. Symbolic links are followed, and each is looked at.
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


def insist_on_slurm() -> None:
    """Return where SLURM_CONF is unset, or names a file that no one else can write.

    Raises NetproofError at once otherwise: Slurm's commands look for a missing one for a minute.
    """
    named = os.environ.get(SLURM_CONF)
    if named is None:
        return
    insist_on_slurm_s_place()
    if not os.path.isfile(named):
        raise NetproofError(
            f"{SLURM_CONF} is {named!r}, and there is no such file; set it to the cluster's"
            f" slurm.conf, or 'unset {SLURM_CONF}' where Slurm's commands know it themselves"
        )


def insist_on_slurm_s_place() -> None:
    """As ``insist_on_slurm``, but a file that is missing will do."""
    named = os.environ.get(SLURM_CONF)
    if not named:
        return
    insist(named, SLURM_CONF, users=SLURM_USERS)
    # Slurm's commands load the plugins that it names, into their own process.
    insist(Path(named).with_name("plugstack.conf"), f"next to {SLURM_CONF},", users=SLURM_USERS)


def insist_on_command(command: str, what: str) -> None:
    """Insist on the programs and scripts that a shell command names; NetproofError.

    The first word of each part of it as the shell finds it, and every other word that is the path
    of a file, but for what output or input is redirected to. What a shell computes is not seen.
    """
    lexer = shlex.shlex(command, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace_split = True
    # A line end begins another command, and what looks like a comment may be part of a word.
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
    """Every component that there is, from the root down, links before what they lead to."""
    place, links = "/", 0
    whole = path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
    waiting = str(whole).split("/")[::-1]
    yield place, os.lstat(place)
    while waiting:
        part = waiting.pop()
        if part in ("", "."):
            continue
        if part == "..":
            # Where it leads was gone through on the way here.
            place = os.path.dirname(place)
            yield place, os.lstat(place)
            continue
        here = os.path.join(place, part)
        try:
            found = os.lstat(here)
            target = os.readlink(here) if stat.S_ISLNK(found.st_mode) else None
        except (OSError, ValueError):
            # What cannot be looked at cannot be opened either, and is told there.
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
    """What is wrong with a component and what mends it; ``holder`` is the folder that it is in."""
    mode, quoted = found.st_mode, shlex.quote(component)
    # In a sticky folder everybody can put a name, and only its owner can take it away.
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


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def _trusted_users(further: Sequence[str]) -> frozenset[int]:
    """Root, the effective user, those of the variable, and those of ``further`` that there are.

    Also whose netproof this is: that one's code is running already.
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
    """Whether none but trusted users are in the group: it is the own group of one, or named."""
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
    """Whether this is the number that stands for all users whom a user namespace does not have."""
    try:
        mapped = Path("/proc/self/uid_map").read_text().split()
        overflow = int(Path("/proc/sys/kernel/overflowuid").read_text())
    except (OSError, ValueError):
        return False
    return number == overflow and mapped != ["0", "0", "4294967295"]


if __name__ == "__main__":
    try:
        insist_on_slurm_s_place()
    except NetproofError as error:
        sys.exit(f"ci/activate: {error}")
