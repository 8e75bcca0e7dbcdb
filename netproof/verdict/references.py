"""A file of references in ReFrame's format, looked up as ReFrame does."""

from __future__ import annotations

import difflib
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from netproof.benchmarks.registry import check_name
from netproof.errors import NetproofError, shortened
from netproof.intake import loading, trust, yaml_reading
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
            self.text = loading.read_text(path)
        except FileNotFoundError as error:
            raise NetproofError(
                f"{path}: is not there; copy {path.parent / 'example.yaml'} and put your system's"
                " partitions in"
            ) from error
        except (OSError, UnicodeDecodeError) as error:
            raise NetproofError(f"{path}: cannot be read: {shortened(str(error))}") from error
        self.data = loaded(self.text, path)
        self._insist_on_patterns()

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

    def _insist_on_patterns(self) -> None:
        """Raise NetproofError for a key that ReFrame could match for ever."""
        for check, level in self.data.items():
            for key in _keys_of(level, set()):
                try:
                    expression(f"^{key}$")
                except NetproofError as error:
                    # Invalid expressions are reported when they are looked up.
                    if not isinstance(error.__cause__, re.error):
                        raise self.fault(check, str(error), key) from error

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
    numbers = (int, float)
    return (
        len(entry) == 4
        and isinstance(entry[0], numbers)
        and all(bound is None or isinstance(bound, numbers) for bound in entry[1:3])
        and not any(isinstance(one, bool) for one in entry)
        and isinstance(entry[3], str)
    )


_Update = dict[str | int, Any]
"""New entries below a place: lists by variable, or further updates by the next level's key."""

_MERGE = "tag:yaml.org,2002:merge"


def edited(
    references: ReferenceFile, changes: Mapping[tuple[str, Case], Mapping[str, Entry]]
) -> str:
    """Return the file's text with new entries for cases, by check's class and case.

    A case that found its entries by a regular expression, an alias or a merge gets keys of its own,
    with the entries from there behind them. All else stays byte for byte. Raises NotThere as
    ``ReferenceFile.find``, and NetproofError where a place cannot be edited without changing or
    losing another.
    """
    wanted: _Update = {}
    for (check, case), variables in changes.items():
        references.find(check, case)
        update = wanted.setdefault(check, {})
        for key in references.keys_to(check, case):
            update = update.setdefault(key, {})
        update.update(variables)
    text = _Edit(references).text_with(wanted)
    after = loaded(text, references.path)
    for check, level in _with(references.data, wanted).items():
        if _ordered(after.get(check)) != _ordered(level):
            reason = f"{check}: cannot be edited as it is written; write it in block style"
            raise references.fault(check, reason)
    return text


class _Edit:
    """Edits a file of references by the places of PyYAML's nodes in its text.

    What is copied has anchors by their names, and all else written out.
    """

    def __init__(self, references: ReferenceFile) -> None:
        self._path, self._text = references.path, references.text
        indented = re.search("^ +", self._text, re.MULTILINE)
        self._step = len(indented[0]) if indented else 2
        self._line_end = "\r\n" if "\r\n" in self._text else "\n"
        self._pieces: list[tuple[int, int, str]] = []
        self._uses: Counter[int] = Counter()

    def text_with(self, wanted: _Update) -> str:
        """Return the text with new entries."""
        root: Any = yaml.compose(self._text, yaml.SafeLoader)
        if root.flow_style:
            raise self._fault(0, "cannot be edited as it is laid out; write it in block style")
        self._count(root)
        self._change(root, wanted)
        parts, done = [], 0
        # Of two at one place the first is that of the inner level.
        for start, end, new in sorted(self._pieces, key=lambda piece: piece[0]):
            parts += [self._text[done:start], new]
            done = end
        return "".join([*parts, self._text[done:]])

    def _count(self, node: yaml.Node) -> None:
        self._uses[id(node)] += 1
        if self._uses[id(node)] == 1 and not isinstance(node, yaml.ScalarNode):
            for below in node.value:
                for each in below if isinstance(below, tuple) else (below,):
                    self._count(each)

    def _change(self, level: yaml.MappingNode, update: _Update) -> None:
        """Put new entries below a mapping in block style that is no alias."""
        own = {_value(key): (key, value) for key, value in level.value if key.tag != _MERGE}
        added: _Update = {}
        for key, new in update.items():
            if key not in own:
                added[key] = self._copy(_below(level, key), new) if isinstance(new, dict) else new
                continue
            name, value = own[key]
            alias = _is_alias(name, value)
            if not alias:
                self._insist_on_one_use(name, value)
            if isinstance(new, dict) and not alias and not value.flow_style:
                self._change(value, new)
                continue
            colon = self._behind(r"\s*:", name.end_mark.index, name)
            end = self._behind(r"\s*\*[^\s,]+", colon, name) if alias else self._end(value)
            before = self._text[colon:end]
            if "#" in before and "#" not in str(_value(value)):
                line = self._text.count("\n", 0, colon + before.index("#"))
                why = "the comment there would be lost; move it above its entry"
                raise self._fault(line, why)
            anchor = "" if alias else self._anchor(value)
            written = f" &{anchor}" if anchor else ""
            if isinstance(new, dict):
                made = self._copy(value, new, moved=not alias)
                self._add_lines(end, made, name.start_mark.column + self._step)
            else:
                written += f" {_flow(new)}"
            self._pieces.append((colon, end, written))
        if added:
            self._add_lines(self._end(level), added, level.value[0][0].start_mark.column)

    def _copy(self, node: yaml.MappingNode, update: _Update, *, moved: bool = False) -> _Update:
        """Return a mapping with new entries; ``moved``: it takes the place of the node."""
        made: _Update = {}
        anchor = "" if moved else self._anchor(node)
        if anchor:
            made[_Written("<<")] = _Written(f"*{anchor}")
        for key, value in () if anchor else node.value:
            merge, alias = key.tag == _MERGE, _is_alias(key, value)
            if moved and not alias:
                self._insist_on_one_use(key, value)
            named = "" if moved and not alias else self._anchor(value)
            name = _Written("<<") if merge else _value(key)
            if named:
                made[name] = _Written(f"*{named}")
            elif merge and isinstance(value, yaml.SequenceNode):
                sources = ", ".join(f"*{self._anchor(one)}" for one in value.value)
                made[name] = _Written(f"[{sources}]")
            elif isinstance(value, yaml.MappingNode):
                made[name] = self._copy(value, {}, moved=moved)
            else:
                made[name] = _value(value)
        for key, new in update.items():
            made[key] = self._copy(_below(node, key), new) if isinstance(new, dict) else new
        return made

    def _insist_on_one_use(self, name: yaml.Node, value: yaml.Node) -> None:
        if self._uses[id(value)] > 1:
            raise self._fault(
                name.start_mark.line,
                f"&{self._anchor(value)} is defined here and used elsewhere; move what it names to"
                " a key of its own at the top, that begins with a dot, and write an alias here",
            )

    def _add_lines(self, after: int, made: _Update, indent: int) -> None:
        """Add a mapping in block style behind the line of a place."""
        end = self._text.find(self._line_end, after)
        lines = self._line_end.join(["", *self._lines(made, indent)])
        end = len(self._text) if end < 0 else end
        self._pieces.append((end, end, lines))

    def _lines(self, made: _Update, indent: int) -> Iterator[str]:
        for key, value in made.items():
            block = isinstance(value, dict) and value
            yield f"{' ' * indent}{_flow(key)}:{'' if block else f' {_flow(value)}'}"
            yield from self._lines(value, indent + self._step) if block else ()

    def _anchor(self, node: yaml.Node) -> str:
        found = re.compile(r"&([^\s,\[\]{}]+)").match(self._text, node.start_mark.index)
        return found[1] if found else ""

    def _behind(self, pattern: str, place: int, key: yaml.Node) -> int:
        found = re.compile(pattern).match(self._text, place)
        if found is None:
            why = "cannot be edited as it is laid out; write the key, a colon and its value there"
            raise self._fault(key.start_mark.line, why)
        return found.end()

    def _end(self, node: yaml.CollectionNode) -> int:
        """Return where a node ends, without the comments and empty lines behind it."""
        end = node.end_mark.index
        while not node.flow_style:
            start = self._text.rfind("\n", 0, end) + 1
            if (line := self._text[start:end].strip()) and line[0] != "#":
                break
            end = start - len(self._line_end)
        return end

    def _fault(self, line: int, why: str) -> NetproofError:
        return NetproofError(f"{self._path}:{line + 1}: {why}")


_CONSTRUCTOR = yaml.SafeLoader("")


class _Written(str):
    """YAML as it stands in the file."""


def _is_alias(key: yaml.Node, value: yaml.Node) -> bool:
    """Check whether a value is defined before its key, as that of an alias is."""
    return bool(value.start_mark.index < key.start_mark.index)


def _value(node: yaml.Node) -> Any:
    return _CONSTRUCTOR.construct_object(node, deep=True)


def _below(level: yaml.MappingNode, key: str | int) -> yaml.MappingNode:
    """Return what ReFrame finds by a key, which may be from a merge, as PyYAML orders them."""

    def members(node: yaml.MappingNode) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for name, value in node.value:
            if name.tag == _MERGE:
                sequence = isinstance(value, yaml.SequenceNode)
                for source in value.value[::-1] if sequence else (value,):
                    found |= members(source)
        return found | {_value(name): it for name, it in node.value if name.tag != _MERGE}

    several = members(level)
    found: yaml.MappingNode = several[matching(several, key)]
    return found


def _flow(value: Any) -> str:
    """Return a value in one line, as PyYAML, and so ReFrame, reads it back."""
    if isinstance(value, _Written):
        return value
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=math.inf)
    return text.splitlines()[0]


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
    old, new, shown = _with_keys_above(before), _with_keys_above(after), os.path.relpath(path)
    made = [*difflib.unified_diff(old, new, shown, shown, lineterm="")]
    return [*made[:2], *(one if one[0] == "@" else one[0] + one.split("\0")[1] for one in made[2:])]


def _with_keys_above(text: str) -> list[str]:
    """Return lines behind the keys above them: else difflib takes one for any other like it."""
    above: list[tuple[int, str]] = []
    lines = []
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if line.strip() and line[indent] != "#":
            above = [one for one in above if one[0] < indent]
            above.append((indent, line.partition(":")[0]))
        lines.append(f"{' '.join(key for _, key in above)}\0{line}")
    return lines
