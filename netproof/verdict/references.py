"""A file of references in ReFrame's format, looked up as ReFrame does."""

from __future__ import annotations

import difflib
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.mergevalue import MergeValue
from ruamel.yaml.scalarstring import SingleQuotedScalarString

from netproof.benchmarks.registry import check_name
from netproof.errors import NetproofError, shortened
from netproof.intake import disk, trust, yaml_reading
from netproof.intake.models import expression
from netproof.measurement.case import Case

INDEX = "$index"

XFAIL = "$xfail"

Keys = tuple[str | int, ...]

Entry = list[Any]
"""``[value, lower, upper, unit]``, or ``[$xfail, reason, [value, lower, upper, unit]]``."""

Entries = Callable[[Case], Mapping[str, Any]]
"""A case's entries in a file of references by variable; raises NotThere, and NetproofError."""


class NotThere(NetproofError):
    """A case without an entry in the file.

    ``keys``: looked up one below the other, from the check to the missing one; ``alongside``: the
    keys at its level.
    """

    def __init__(self, path: Path, keys: Keys, alongside: Sequence[str | int]) -> None:
        self.keys, self.alongside = keys, tuple(alongside)
        super().__init__(f"{path}: has no {', '.join(map(str, keys))}")


class ReferenceFile:
    """References of one system.

    ``text``: as it is written; ``data``: as in ReFrame. Raises NetproofError where the file is
    missing, no YAML, or empty.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        trust.insist(path, "references")
        try:
            # Line ends are not changed.
            self.text = disk.read_text(path)
        except FileNotFoundError as error:
            raise NetproofError(
                f"{path}: is not there; copy {path.parent / 'example.yaml'} and put your system's"
                " partitions in"
            ) from error
        except (OSError, UnicodeDecodeError) as error:
            raise NetproofError(f"{path}: cannot be read: {shortened(str(error))}") from error
        self.data = loaded(self.text, path)
        for check, level in self.data.items():
            for key in _keys_of(level, set()):
                try:
                    expression(f"^{key}$")
                except NetproofError as error:
                    # ReFrame could match it for ever; invalid ones are reported on look-up.
                    if not isinstance(error.__cause__, re.error):
                        raise self.fault(check, str(error), key) from error

    def find(self, check: str, case: Case) -> dict[str, Entry]:
        """Return the entries of a case by variable, as ReFrame finds them for the check's class.

        Raises NotThere without an entry, and NetproofError for a malformed entry or index.
        """
        level, place = self.data.get(check), check
        if not isinstance(level, dict):
            raise NotThere(self.path, (check,), [key for key in self.data if key[:1] != "."])
        looked_up: Keys = (check,)
        for key in self.keys_to(check, case):
            place += f", {key}"
            looked_up += (key,)
            try:
                level = level[matching(level, key)]
            except KeyError as error:
                alongside = [other for other in level if other != INDEX]
                raise NotThere(self.path, looked_up, alongside) from error
            except NetproofError as error:
                raise self.fault(
                    check, f"a key next to {key!r} is no expression: {error.__cause__ or error}"
                ) from error
            if not isinstance(level, dict):
                raise self.fault(check, f"{place}: found {level!r}, expected a mapping")
        for variable, entry in level.items():
            if not _is_entry(entry):
                raise self.fault(
                    check,
                    f"{place}, {variable}: found {entry!r}, expected [value, lower, upper, unit]",
                    variable,
                )
        return level

    def keys_to(self, check: str, case: Case) -> Keys:
        """Return the keys of a case below its check; NetproofError for a malformed index."""
        index = self.data[check].get(INDEX)
        known: dict[str, str | int] = {
            "$system": case.system,
            "$partition": f"{case.system}:{case.partition}",
            "$environ": case.environment,
            "ranks": case.ranks,
            "path": case.path,
            "direction": case.direction,
        }
        if (
            not isinstance(index, list)
            or not index
            or not all(isinstance(one, str) and one in known for one in index)
        ):
            raise self.fault(
                check, f"{INDEX}: found {index!r}, expected a list of some of {', '.join(known)}"
            )
        return tuple(known[one] for one in index)

    def fault(self, check: str, reason: str, variable: str | None = None) -> NetproofError:
        """Return an error at the line of a check's variable, or of the check."""
        where = ""
        root = yaml.compose(self.text, yaml.SafeLoader)
        for key, node in root.value if isinstance(root, yaml.MappingNode) else ():
            if key.value == check:
                line = next(_lines_of(node, variable), key.start_mark.line)
                where = f":{line + 1}"
        return NetproofError(f"{self.path}{where}: {shortened(reason)}")


def _lines_of(node: yaml.Node, name: str | None) -> Iterator[int]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == name:
                yield key.start_mark.line
            yield from _lines_of(value, name)


def entries_of(folder: Path, system: str) -> Entries:
    """Read the entries of a system's file in ``folder``; NetproofError where that fails."""
    file = ReferenceFile(folder / f"{system}.yaml")
    return lambda case: file.find(check_name(case.benchmark, case.function), case)


@cache
def readable(path: Path) -> None:
    """Raise NetproofError where a file has no references; checked once per path."""
    ReferenceFile(path)


def loaded(text: str, path: Path) -> dict[str, Any]:
    """Return the levels below each check; NetproofError for another kind of file."""
    data = yaml_reading.yaml_value(text, path)
    if not isinstance(data, dict):
        found = shortened(repr(data), 80)
        raise NetproofError(f"{path}:1: found {found}, expected the checks' names as keys")
    for key, value in data.items():
        if not isinstance(key, str):
            found = shortened(f"{key!r}: {value!r}", 80)
            raise NetproofError(f"{path}: found the key {found}, expected a check's name")
    return data


def _keys_of(level: Any, seen: set[int]) -> Iterator[str]:
    """Yield the keys below a level that ReFrame may take for expressions."""
    if isinstance(level, dict) and id(level) not in seen:
        seen.add(id(level))
        for key, below in level.items():
            if isinstance(key, str):
                yield key
            yield from _keys_of(below, seen)


def matching(level: Mapping[Any, Any], key: str | int) -> str | int:
    """Return the key that ReFrame matches: the equal one, or the first expression that fits.

    An expression also fits a number of ranks, which ``run.mixins`` has to do itself in ReFrame.
    KeyError where none matches, NetproofError for a key that is no expression.
    """
    if key in level:
        return key
    for pattern in level:
        # As in ReFrame, for which ^a|b$ is two expressions.
        if isinstance(pattern, str) and expression(f"^{pattern}$").match(str(key)):
            return pattern
    raise KeyError(key)


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, list):
        return False
    if entry[:1] == [XFAIL]:
        return len(entry) == 3 and isinstance(entry[1], str) and _is_entry(entry[2])
    # Of YAML's own types, True being no number.
    value, *bounds, unit = map(type, entry) if len(entry) == 4 else 4 * [None]
    return value in _NUMBERS and unit is str and {*bounds} <= {*_NUMBERS, type(None)}


_NUMBERS = (int, float)


_Update = dict[str | int, Any]
"""New entries below a place: lists by variable, or further updates by the next level's key."""


def edited(
    references: ReferenceFile, changes: Mapping[tuple[str, Case], Mapping[str, Entry]]
) -> str:
    """Return the file's text with new entries for cases, by check's class and case.

    A case that found its entries by a regular expression, an alias or a merge gets keys of its own,
    with the entries from there behind them. Lines without a new entry stay byte for byte. Raises
    NotThere as ``ReferenceFile.find``, and NetproofError where a place cannot be edited without
    changing or losing another.
    """
    wanted: _Update = {}
    for (check, case), variables in changes.items():
        references.find(check, case)
        update = wanted.setdefault(check, {})
        for key in references.keys_to(check, case):
            update = update.setdefault(key, {})
        update.update(variables)
    lines = _lines(references.text)
    tree = _Tree("\n".join(content for content, _ in lines), references.path)
    before = tree.lines()
    tree.change(tree.root, wanted)
    text = _merged(lines, before, tree.lines(), references.path)
    after = loaded(text, references.path)
    for check, level in _with(references.data, wanted).items():
        if _ordered(after.get(check)) != _ordered(level):
            reason = f"{check}: cannot be edited as it is written; write it in block style"
            raise references.fault(check, reason)
    return text


class _Tree:
    """A file of references as ruamel's round trip has it, without comments.

    ruamel holds a comment at the entry above it, and would put a new entry behind the comment.
    """

    def __init__(self, text: str, path: Path) -> None:
        self._path = path
        indented = re.search("^ +", text, re.MULTILINE)
        self._yaml = YAML()
        self._yaml.preserve_quotes, self._yaml.width = True, 10**9
        self._yaml.indent(mapping=len(indented[0]) if indented else 2)
        for kind in (type(None), float):
            self._yaml.representer.add_representer(kind, _represented)
        try:
            self.root = self._yaml.load(text)
        except YAMLError as error:
            raise NetproofError(
                f"{self._path}: cannot be edited: {shortened(str(error))}"
            ) from error
        self._uses: Counter[int] = Counter()
        self._defined: dict[int, tuple[int, Any]] = {}
        self._visit(None, None, self.root)

    def lines(self) -> list[str]:
        """Return the lines of the file, without empty ones."""
        stream = io.StringIO()
        self._yaml.dump(self.root, stream)
        return [line for line in stream.getvalue().splitlines() if line.strip()]

    def change(self, level: CommentedMap, update: _Update) -> None:
        """Put new entries below a mapping that is no alias."""
        if level.fa.flow_style():
            level.fa.set_block_style()
        own = {key for key, _ in level.non_merged_items()}
        for key, new in update.items():
            value = level[matching(level, key)] if isinstance(new, dict) else level.get(key)
            here = key in own and value is not None
            if here and self._uses[id(value)] > 1 and self._defined[id(value)] == (id(level), key):
                raise NetproofError(
                    f"{self._path}:{level.lc.key(key)[0] + 1}: &{value.anchor.value} is defined"
                    " here and used elsewhere; move what it names to a key of its own at the top,"
                    " that begins with a dot, and write an alias here"
                )
            if not isinstance(new, dict):
                entry = level[_scalar(key)] = CommentedSeq(map(_scalar, new))
                entry.fa.set_flow_style()
                continue
            if not here or self._uses[id(value)] > 1:
                value = level[_scalar(key)] = self._own(value)
            self.change(value, new)

    def _own(self, value: Any) -> Any:
        """Return a copy of a mapping: what has an anchor by its name, the rest written out."""
        copy = CommentedMap()
        if value.anchor.value:
            copy.add_yaml_merge(_merge_of([value]))
            return copy
        copy.fa.set_flow_style() if value.fa.flow_style() else copy.fa.set_block_style()
        if merged := list(value.merge):
            copy.add_yaml_merge(_merge_of(merged))
        for key, below in value.non_merged_items():
            if isinstance(below, CommentedMap) and not below.anchor.value:
                below = self._own(below)
            elif isinstance(below, CommentedSeq) and not below.anchor.value:
                below = CommentedSeq(below)
                below.fa.set_flow_style()
            copy[key] = below
        return copy

    def _visit(self, parent: Any, key: Any, value: Any) -> None:
        """Count the uses of each collection, and note the first one, where its anchor is."""
        if not isinstance(value, CommentedMap | CommentedSeq):
            return
        self._uses[id(value)] += 1
        if self._uses[id(value)] > 1:
            return
        self._defined[id(value)] = (id(parent), key)
        if value.anchor.value:
            value.anchor.always_dump = True
        items: Iterable[tuple[Any, Any]] = enumerate(value)
        if isinstance(value, CommentedMap):
            items = [*((INDEX, source) for source in value.merge), *value.non_merged_items()]
        for name, below in items:
            self._visit(value, name, below)


def _represented(representer: Any, value: float | None) -> Any:
    """Return the node of a value as PyYAML, and so ReFrame, reads it back."""
    node = yaml.SafeDumper(io.StringIO()).represent_data(value)
    return representer.represent_scalar(node.tag, node.value)


def _scalar(value: str | float | None) -> Any:
    """Return a scalar, in quotes where PyYAML would read it as something other than a string."""
    return _string(value) if isinstance(value, str) else value


@cache
def _string(value: str) -> str:
    quoted = yaml.safe_dump(value, allow_unicode=True).startswith("'")
    return SingleQuotedScalarString(value) if quoted else value


def _merge_of(sources: Sequence[CommentedMap]) -> MergeValue:
    merge = MergeValue()
    merge.extend(sources)
    for source in sources:
        # ruamel compares all that merge it with one another, for when a key of it is deleted.
        source._ref.clear()
    merge.merge_pos = 0
    if len(sources) > 1:
        sequence = CommentedSeq(sources)
        sequence.fa.set_flow_style()
        merge.set_sequence(sequence)
    return merge


def _lines(text: str) -> list[tuple[str, str]]:
    """Return each line's content, and what is behind it: spaces, a comment, a carriage return."""
    lines = text.split("\n")
    ends = [0] * len(lines)
    for token in yaml.scan(text):
        start, end = token.start_mark, token.end_mark
        for number in range(start.line, end.line):
            ends[number] = len(lines[number].rstrip("\r"))
        if start.index < end.index:
            ends[end.line] = max(ends[end.line], end.column)
    return [(line[:end], line[end:]) for line, end in zip(lines, ends, strict=True)]


def _merged(
    lines: Sequence[tuple[str, str]], before: Sequence[str], after: Sequence[str], path: Path
) -> str:
    """Return the text of a file with the lines that differ, and its own comments and layout.

    ``lines``: from ``_lines``; ``before``, ``after``: ruamel's, before and after an edit. Raises
    NetproofError where a comment would be lost, or the file has another layout than ruamel.
    """
    rows = [number for number, (content, _) in enumerate(lines) if content]
    owned: list[list[int]] = []
    for place, row in _aligned(before, [lines[number][0] for number in rows]):
        if place is not None:
            owned.append([])
        if row is not None and owned:
            owned[-1].append(row)
    behind = [lines[number + 1 : end] for number, end in pairwise([*rows, len(lines)])]
    newline = "\r" if any(rest.endswith("\r") for _, rest in lines) else ""
    out, pending = [], lines[: rows[owned[0][0]]]
    for place, number in _aligned(before, after):
        if place is None:
            out += [] if number is None else [(after[number], newline)]
            continue
        here = owned[place]
        if number is not None and before[place] == after[number]:
            for row in here:
                out += [*pending, lines[rows[row]]]
                pending = behind[row]
            continue
        if len(here) != 1 or owned[place + 1 : place + 2] == [[]]:
            line = rows[next(row for several in owned[place::-1] for row in several)]
            raise NetproofError(
                f"{path}:{line + 1}: cannot be edited as it is laid out; begin with the line"
                f" {before[place]!r}"
            )
        (row,) = here
        rest = lines[rows[row]][1]
        if number is not None:
            out += [*pending, (after[number], rest)]
            pending = behind[row]
        elif rest.strip():
            raise NetproofError(
                f"{path}:{rows[row] + 1}: the comment there would be lost; move it above its entry"
            )
        else:
            pending = [*pending, *behind[row]]
    return "\n".join(content + rest for content, rest in (*out, *pending))


def _aligned(before: Sequence[str], after: Sequence[str]) -> list[tuple[int | None, int | None]]:
    """Return the numbers of lines that have the same keys above them, and of lines without such.

    difflib's cost grows with the square of the lines, where many of them are alike.
    """
    there = dict(zip(_places(after), range(len(after)), strict=False))
    pairs: list[tuple[int | None, int | None]] = []
    done = 0
    for number, place in zip(range(len(before)), _places(before), strict=False):
        other = there.get(place, -1)
        if other < done:
            pairs.append((number, None))
            continue
        pairs += [(None, new) for new in range(done, other)]
        pairs.append((number, other))
        done = other + 1
    return pairs + [(None, new) for new in range(done, len(after))]


def _places(lines: Sequence[str]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield for each line the keys above it and its own, and the number of it there.

    A comment or an empty line has the place of the key below it.
    """
    above: list[tuple[int, str]] = []
    seen: Counter[tuple[str, ...]] = Counter()
    waiting: list[str] = []
    for line in (*lines, "end:"):
        text = line.strip()
        if not text or text.startswith("#"):
            waiting.append(text)
            continue
        indent = len(line) - len(line.lstrip())
        while above and above[-1][0] >= indent:
            above.pop()
        above.append((indent, re.split(r" *:(?: |$)", text, maxsplit=1)[0]))
        for behind in (*waiting, None):
            place = (*(key for _, key in above), *([] if behind is None else ["", behind]))
            seen[place] += 1
            yield place, seen[place]
        waiting = []


def _with(level: dict[Any, Any], update: _Update) -> dict[Any, Any]:
    return level | {
        key: _with(level[matching(level, key)], new) if isinstance(new, dict) else new
        for key, new in update.items()
    }


def _ordered(level: Any) -> Any:
    """Return a level for comparing: the order of keys counts, since some are expressions."""
    if not isinstance(level, dict):
        return level
    return [(key, _ordered(value)) for key, value in level.items()]


def diff(path: Path, before: str, after: str) -> list[str]:
    """Return the lines of a unified diff, without line ends; none where the texts are equal."""
    old, new = before.splitlines(), after.splitlines()
    sides: tuple[list[str], list[str]] = ([], [])
    # With its place a line is like no other, so that difflib takes no time to find it.
    for place, numbers in enumerate(_aligned(old, new)):
        for side, lines, number in zip(sides, (old, new), numbers, strict=True):
            side += [] if number is None else [f"{place:9}{lines[number]}"]
    shown = os.path.relpath(path)
    made = [*difflib.unified_diff(*sides, shown, shown, lineterm="")]
    return [*made[:2], *(one if one[0] == "@" else one[0] + one[10:] for one in made[2:])]
