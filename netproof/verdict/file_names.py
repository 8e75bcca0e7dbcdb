"""Origin of files: configurations by their paths or a list, and two sets that are compared."""

from __future__ import annotations

import csv
import io
import os
import re
from collections import defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path

from netproof.errors import NetproofError, shortened
from netproof.intake import disk

BENCHMARK, LAUNCH = "benchmark", "launch"
MANIFEST = "netproof-report.json"
"""File in a folder that netproof wrote pages to."""

NO_CONFIGURATION = (BENCHMARK, LAUNCH)
"""Names in a pattern that do not distinguish configurations: benchmark and launch."""

FILE_COLUMN = "file"
"""Column of a list that names files."""

_NAME = re.compile(r"\{([^{}]*)\}|(\*)")
_EXTENSIONS = re.compile(r"(?:\.[A-Za-z][A-Za-z0-9]*)*$")


class Pattern:
    """Pattern of names in paths: ``{system}-{mpi}/{benchmark}``, compared with paths' ends.

    A name stands for one or more characters but ``/``, ``*`` for any of them; what stands before
    ``{launch}`` or ``*`` takes as much as it can. An extension of the file may follow. Without a
    part of the configuration, that is what stands before the first name. ``of_sets``: the
    configurations are known. Raises NetproofError for a pattern without a name, with one twice, or
    with two that touch.
    """

    def __init__(self, text: str, *, of_sets: bool = False) -> None:
        self.text = text
        self.names: list[str] = []
        fields = list(_NAME.finditer(text))
        parts, at = [], 0
        for found, following in zip_longest(fields, fields[1:]):
            parts.append(re.escape(text[at : found.start()]))
            at = found.end()
            if following and following.start() == at and following[0] != found[0]:
                both = f"{found[0]} and {following[0]}"
                raise NetproofError(f"--as {text}: {both} touch: write what stands between them")
            if found[2]:
                parts.append(r"[^/]*")
                continue
            if found[1] in self.names or not found[1].isidentifier():
                reason = "names are of letters, digits and _, each once"
                raise NetproofError(f"--as {text}: {found[0]}: {reason}")
            self.names.append(found[1])
            least = "" if following and following[0] in (f"{{{LAUNCH}}}", "*") else "?"
            parts.append(rf"(?P<{found[1]}>[^/]+{least})")
        if not self.names or (of_sets and set(self.names) - set(NO_CONFIGURATION)):
            raise NetproofError(
                f"--as {text}: with --against it names {{benchmark}} and {{launch}} alone"
                if of_sets
                else f"--as {text}: names nothing, as {{system}}-{{mpi}} or {{launch}} does"
            )
        parts.append(re.escape(text[at:]))
        self._pattern = re.compile(f"(?:.*/)?{''.join(parts)}")

    def insist_on_one(self, paths: Sequence[Path]) -> None:
        """Raise NetproofError with the nearest file where none fits."""

        def alike(path: Path) -> float:
            end = "/".join(path.parts[-self.text.count("/") - 1 :])
            return SequenceMatcher(None, self.text, end).ratio()

        if paths and not any(map(self.fits, paths)):
            nearest = max(paths, key=alike)
            raise NetproofError(
                f"--as {self.text}: fits no file; {nearest} is the nearest: a name stands for"
                " anything but /"
            )

    def fits(self, path: Path) -> re.Match[str] | None:
        """Return the parts of a file's path, None where it does not fit."""
        text = str(path)
        dots = [at for at, letter in enumerate(text) if letter == "."]
        extended = len(_EXTENSIONS.sub("", text))
        for end in (*(dot for dot in dots if dot >= extended), len(text)):
            if found := self._pattern.fullmatch(text, 0, end):
                return found
        return None

    def of(self, path: Path) -> tuple[str, str]:
        """Return a file's configuration and benchmark; NetproofError where it does not fit."""
        found = self.fits(path)
        if found is None:
            raise NetproofError(f"{path}: does not fit --as {self.text}")
        parts = [found[name] for name in self.names if name not in NO_CONFIGURATION]
        fixed = _NAME.split(self.text, maxsplit=1)[0].rstrip("/._-") or "these files"
        return " ".join(parts) or fixed, found[BENCHMARK] if BENCHMARK in self.names else ""


class NameList:
    """A list of files as CSV: a column ``file``, the others being parts of the configuration.

    Paths are relative to the list's folder. Raises NetproofError for any other content.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            rows = list(csv.DictReader(io.StringIO(disk.read_text(path)), strict=True))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise NetproofError(f"{path}: cannot be read: {shortened(str(error))}") from error
        self._names: dict[Path, tuple[str, str]] = {}
        for number, row in enumerate(rows, 2):
            name = row.pop(FILE_COLUMN, None)
            if not name or None in row or None in row.values():
                raise NetproofError(
                    f"{path}:{number}: a list has a column {FILE_COLUMN!r}, others that name the"
                    " configuration, and a value for each"
                )
            parts = [str(value) for key, value in row.items() if key not in NO_CONFIGURATION]
            if not any(parts):
                raise NetproofError(f"{path}:{number}: {name} has no configuration")
            place = (path.parent / name).resolve()
            self._names[place] = " ".join(filter(None, parts)), str(row.get(BENCHMARK, ""))
        if not self._names:
            raise NetproofError(f"{path}: names no file")

    def of(self, path: Path) -> tuple[str, str]:
        """Return a file's configuration and benchmark; NetproofError where it is not listed."""
        try:
            return self._names[path.resolve()]
        except KeyError as error:
            raise NetproofError(f"{path}: is not in {self.path}") from error


class Sets:
    """Two sets of files, the first compared with the second; each is files and folders.

    Files that measured the same are compared; if a set has several, those of the same name on both
    sides, by the path below the folder that was given, or by ``pattern``. All others are launches.
    ``by_name``: without a pattern. Raises NetproofError for a set without a file, or a file of
    both.
    """

    def __init__(
        self, first: Sequence[Path], second: Sequence[Path], pattern: Pattern | None = None
    ) -> None:
        sides = [_members(several) for several in (first, second)]
        both = sides[0].keys() & sides[1].keys()
        if both:
            raise NetproofError(f"{min(both)}: is on both sides of --against")
        here, self.against = (
            # Of letters, and not of folders.
            os.path.commonprefix([*map(str, side)]).rstrip("/._-") or "these files"  # noqa: RUF071
            for side in (first, second)
        )
        if here == self.against:
            here, self.against = f"{here} (first)", f"{here} (--against)"
        self.paths = [path for side in sides for path in side]
        self.by_name = pattern is None
        shared = set(sides[0].values()) & set(sides[1].values())
        self._names = {}
        for side, name in zip(sides, (here, self.against), strict=True):
            for path, own in side.items():
                called = pattern.of(path)[1] if pattern else own if own in shared else ""
                self._names[path] = name, called

    def of(self, path: Path) -> tuple[str, str]:
        """Return a file's set, and its name in both sets."""
        return self._names[path]


def files_in(paths: Sequence[Path]) -> list[Path]:
    """Return files, and those in folders, in the order of their names."""
    return [*_members(paths)]


def differing_in_a_number(paths: Sequence[Path]) -> dict[str, list[Path]]:
    """Return files whose paths differ in one number alone, the last one of several, by a pattern.

    The pattern, for ``--as``, has ``{launch}`` in place of the number.
    """
    found: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for path in map(str, dict.fromkeys(paths)):
        for number in re.finditer("[0-9]+", path) if not _NAME.search(path) else ():
            found[path[: number.start()], path[number.end() :]].append(Path(path))
    groups: dict[str, list[Path]] = {}
    grouped: set[Path] = set()
    for (before, after), several in sorted(found.items(), key=lambda one: -len(one[0][0])):
        new = [path for path in several if path not in grouped]
        if len(new) > 1:
            grouped.update(new)
            groups[f"{before.rpartition('/')[2]}{{{LAUNCH}}}{after}"] = new
    return groups


def _members(paths: Sequence[Path]) -> dict[Path, str]:
    """Return files and those in folders, each with its path below its folder.

    Hidden files are left out, and folders of netproof's own reports.
    """
    members: dict[Path, str] = {}
    for path in paths:
        if not path.is_dir():
            members[path] = path.name
            continue
        reports = {one.parent for one in path.rglob(MANIFEST)}
        inside = {
            one: one.relative_to(path)
            for one in sorted(path.rglob("*"))
            if one.is_file() and reports.isdisjoint(one.parents)
        }
        shown = {one: str(at) for one, at in inside.items() if f"/{at}".find("/.") < 0}
        if not shown:
            raise NetproofError(f"{path}: holds no file")
        members |= shown
    return members
