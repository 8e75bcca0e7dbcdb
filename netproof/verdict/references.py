"""A file of references in ReFrame's format, looked up as ReFrame does."""

from __future__ import annotations

import difflib
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
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


def edited(
    references: ReferenceFile, changes: Mapping[tuple[str, Case], Mapping[str, Entry]]
) -> tuple[str, list[str]]:
    """Return the file's text with new entries for cases, by check's class and case, and a diff.

    A case that found its entries by a regular expression, an alias or a merge gets keys of its own,
    with the entries from there behind them. Lines without a new entry stay byte for byte. The diff
    is unified, without line ends, and empty where nothing changes. Raises NotThere as
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
    lines = _Editor(references).changed(wanted)
    text = "\n".join(chain.from_iterable(lines))
    after = loaded(text, references.path)
    for check, level in _with(references.data, wanted).items():
        if _ordered(after.get(check)) != _ordered(level):
            reason = f"{check}: cannot be edited as it is written; write it in block style"
            raise references.fault(check, reason)
    return text, _diff(references, lines)


class _Alias(yaml.Node):
    """A use of a node with an anchor: the anchor's name as ``tag``, and the node as ``value``."""


class _Composer(yaml.SafeLoader):
    """PyYAML's nodes, with aliases where they stand; ``named``: anchors by the node's identity."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.named: dict[int, str] = {}
        self.used: Counter[str] = Counter()

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        used = isinstance(event, yaml.AliasEvent)
        node = super().compose_node(parent, index)
        if used:
            self.used[event.anchor] += 1
            return _Alias(event.anchor, node, event.start_mark, event.end_mark)
        if event.anchor:
            self.named[id(node)] = event.anchor
        return node


class _Editor:
    """A file of references whose lines are replaced where entries change.

    Only mappings in block style are edited in place; a flow mapping becomes one.
    """

    def __init__(self, references: ReferenceFile) -> None:
        self._references = references
        indented = re.search("^ +", references.text, re.MULTILINE)
        self._step = indented[0] if indented else "  "
        self._lines = references.text.split("\n")
        self._end = "\r" if references.text.count("\r\n") else ""
        self._after = [[line] for line in self._lines]
        self._yaml = _Composer(references.text)

    def changed(self, update: _Update) -> list[list[str]]:
        """Return what stands in place of each line of the file with new entries."""
        root: Any = self._yaml.get_single_node()
        data = self._references.data
        if root.flow_style:
            self._replace(root, root, self._items(root, data, update, copied=False))
        else:
            self._change(root, data, update)
        return self._after

    def _change(self, node: Any, level: Mapping[Any, Any], update: _Update) -> None:
        """Put new entries below a mapping in block style that is no alias."""
        own, new = self._own(node), []
        for name, below in update.items():
            if name not in own:
                new += self._added(node, level, name, below)
                continue
            key, value = own[name]
            if isinstance(value, yaml.MappingNode) and not value.flow_style:
                self._insist_on_one_use(value)
                self._change(value, level[name], below)
            else:
                self._replace(key, value, self._item(key, value, level[name], below, copied=False))
        indent = " " * node.start_mark.column if node.value else ""
        self._after[_end(node).line] += [f"{indent}{line}{self._end}" for line in new]

    def _replace(self, first: Any, last: Any, lines: list[str]) -> None:
        """Put lines in the place of two nodes and all between them; the comment behind stays."""
        start, end = first.start_mark, _end(last)
        for number in range(start.line, end.line):
            if re.search(r"(^|\s)#", self._lines[number]):
                raise NetproofError(
                    f"{self._references.path}:{number + 1}: the comment there would be lost; move"
                    " it above its entry"
                )
            self._after[number] = []
        before, behind = self._lines[start.line][: start.column], self._lines[end.line]
        indent = " " * start.column
        self._after[end.line] = [
            f"{before}{lines[0]}{behind[end.column :]}",
            *(f"{indent}{line}{self._end}" for line in lines[1:]),
        ]

    def _own(self, node: Any) -> dict[Any, tuple[Any, Any]]:
        """Return the nodes of a mapping's own keys and values by key."""
        return {
            "<<" if key.tag.endswith(":merge") else self._yaml.construct_object(key): (key, value)
            for key, value in node.value
        }

    def _below(self, node: Any, name: str | int) -> Any:
        """Return the value's node of a mapping or of what it merges; None without the key."""
        own = self._own(node.value if isinstance(node, _Alias) else node)
        if name in own:
            return own[name][1]
        _, merged = own.get("<<", (None, None))
        sources = merged.value if isinstance(merged, yaml.SequenceNode) else [merged]
        found = (self._below(source, name) for source in sources if source is not None)
        return next((value for value in found if value is not None), None)

    def _items(
        self, node: Any, level: Mapping[Any, Any], update: _Update, *, copied: bool
    ) -> list[str]:
        """Return the lines of a mapping with new entries.

        ``copied``: it stands at another place too, and what has an anchor is written by its name.
        """
        anchor = self._yaml.named.get(id(node)) if copied else None
        anchor = node.tag if isinstance(node, _Alias) else anchor
        lines = [f"<<: *{anchor}"] if anchor else []
        own = {} if anchor else self._own(node)
        for name, (key, value) in own.items():
            below = update.get(name)
            lines += self._item(key, value, level.get(name), below, copied=copied)
        for name, below in update.items():
            lines += [] if name in own else self._added(node, level, name, below)
        return lines

    def _item(self, key: Any, value: Any, level: Any, below: Any, *, copied: bool) -> list[str]:
        """Return the lines of a key with new entries below it, or as it is with None."""
        head, anchor = f"{self._source(key)}:", self._yaml.named.get(id(value), "")
        if below is not None and not copied:
            self._insist_on_one_use(value)
        if isinstance(below, list):
            return [f"{head} {_flow(below)}"]
        if below is None and copied and anchor:
            return [f"{head} *{anchor}"]
        source = self._source(value)
        block = isinstance(value, yaml.CollectionNode) and not value.flow_style
        if below is None and not block and not (copied and "&" in source):
            return [f"{head} {source}"]
        if isinstance(value, yaml.SequenceNode):
            return [f"{head} {_flow(level)}"]
        items = self._items(value, level, below or {}, copied=copied)
        head += f" &{anchor}" if anchor and not copied else ""
        return [head, *(self._step + line for line in items)]

    def _added(self, node: Any, level: Mapping[Any, Any], name: str | int, below: Any) -> list[str]:
        """Return the lines of a new key, with the entries of what a case of it found before."""
        head = yaml.safe_dump({name: None}, allow_unicode=True, width=math.inf).rpartition(" ")[0]
        if isinstance(below, list):
            return [f"{head} {_flow(below)}"]
        other = matching(level, name)
        items = self._items(self._below(node, other), level[other], below, copied=True)
        return [head, *(self._step + line for line in items)]

    def _insist_on_one_use(self, value: Any) -> None:
        """Raise NetproofError for a value with an anchor that other places use."""
        if self._yaml.used[anchor := self._yaml.named.get(id(value), "")]:
            raise NetproofError(
                f"{self._references.path}:{value.start_mark.line + 1}: &{anchor} is defined"
                " here and used elsewhere; move what it names to a key of its own at the top,"
                " that begins with a dot, and write an alias here"
            )

    def _source(self, node: Any) -> str:
        """Return a node as it is written, in one line."""
        source = self._references.text[node.start_mark.index : _end(node).index]
        return re.sub(r"\s*\n\s*", " ", source)


def _end(node: Any) -> yaml.Mark:
    """Return where a node ends; PyYAML has comments and empty lines behind a block in it."""
    while isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
        node = node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1]
    mark: yaml.Mark = node.end_mark
    return mark


def _flow(entry: Entry) -> str:
    """Return an entry in one line."""
    text = yaml.safe_dump(entry, default_flow_style=True, allow_unicode=True, width=math.inf)
    return text.strip()


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


def _diff(references: ReferenceFile, after: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a unified diff to what stands in place of each line."""
    before = [[line] for line in references.text.removesuffix("\n").split("\n")]
    # With its number a line is like no other, so that difflib takes no time to find it.
    old, new = (
        [f"{place:9}{line}".rstrip("\r") for place, lines in enumerate(several) for line in lines]
        for several in (before, after[: len(before)])
    )
    shown = os.path.relpath(references.path)
    lines = [*difflib.unified_diff(old, new, shown, shown, lineterm="")]
    return [*lines[:2], *(one if one[0] == "@" else one[0] + one[10:] for one in lines[2:])]
