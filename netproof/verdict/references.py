"""A file of references in ReFrame's format, looked up as ReFrame does."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from netproof.errors import NetproofError, shortened
from netproof.intake import loading, trust, yaml_reading
from netproof.intake.patterns import expression
from netproof.measurement.case import Case

INDEX = "$index"

XFAIL = "$xfail"

Keys = tuple[str | int, ...]

Entry = list[Any]
"""``[value, lower, upper, unit]``, or ``[$xfail, reason, [value, lower, upper, unit]]``."""


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

    ``text``: as it is written; ``data``: as in ReFrame; ``root``: the top node, with the places of
    all nodes in the text. Raises NetproofError where the file is missing, no YAML, or empty.
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
        self.root = compose(self.text)
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
        known = {
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
        reason = shortened(reason)
        for key, node in self.root.value:
            if key.value == check:
                where = key.start_mark
                if variable is not None:
                    where = next((k.start_mark for k in keys_below(node, variable)), where)
                return NetproofError(f"{self.path}:{where.line + 1}: {reason}")
        return NetproofError(f"{self.path}: {reason}")


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

    KeyError where none matches, NetproofError for a key that is no expression.
    """
    if key in level:
        return key
    if isinstance(key, str):
        for pattern in level:
            # As in ReFrame, for which ^a|b$ is two expressions.
            if isinstance(pattern, str) and expression(f"^{pattern}$").match(key):
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


MERGE = "tag:yaml.org,2002:merge"


@dataclass
class Alias:
    """``*name`` at its place."""

    name: str
    target: yaml.Node
    start_mark: yaml.Mark
    end_mark: yaml.Mark
    anchor: None = None


class _Reader(yaml.SafeLoader):
    """PyYAML, with which ReFrame reads references, with the places of aliases."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) and event.anchor in self.anchors:
            self.get_event()
            return Alias(event.anchor, self.anchors[event.anchor], event.start_mark, event.end_mark)
        node = super().compose_node(parent, index)
        node.anchor = event.anchor
        return node


def compose(text: str) -> Any:
    """Return the node of the whole text."""
    reader = _Reader(text)
    try:
        return reader.get_single_node()
    finally:
        reader.dispose()


def plain(node: Any) -> Any:
    """Return a scalar's value as ReFrame sees it."""
    reader = _Reader("")
    try:
        return reader.construct_object(node.target if isinstance(node, Alias) else node)
    finally:
        reader.dispose()


def start_of(node: Any) -> int:
    """Return the offset of a node's first character."""
    return node.start_mark.index


def end_of(node: Any) -> int:
    """Return the offset behind a node's last character; a block's end mark is behind comments."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return end_of(last[1] if isinstance(last, tuple) else last)
    return node.end_mark.index


def descendants(node: Any) -> list[Any]:
    """Return a node and all below it, aliases not followed."""
    if not isinstance(node, yaml.CollectionNode):
        return [node]
    below = [
        child for item in node.value for child in (item if isinstance(item, tuple) else (item,))
    ]
    return [node, *(one for child in below for one in descendants(child))]


def keys_below(node: Any, name: str) -> list[Any]:
    """Return the nodes of the keys of that name in a node and below it."""
    nodes = descendants(node.target if isinstance(node, Alias) else node)
    return [
        key
        for one in nodes
        if isinstance(one, yaml.MappingNode)
        for key, _ in one.value
        if key.value == name
    ]


def effective(node: Any) -> dict[Any, Any]:
    """A mapping's values by key with merges resolved, in the order in which PyYAML has them."""
    node = node.target if isinstance(node, Alias) else node
    merged: list[tuple[Any, Any]] = []
    own: list[tuple[Any, Any]] = []
    for key, value in node.value:
        if key.tag != MERGE:
            own.append((plain(key), value))
            continue
        target = value.target if isinstance(value, Alias) else value
        sources = target.value[::-1] if isinstance(target, yaml.SequenceNode) else [target]
        for source in sources:
            merged += effective(source).items()
    return dict(merged + own)


def scalar(value: Any) -> str:
    """Return a scalar as PyYAML reads it back, quoted where it has to be."""
    if value is None:
        return "null"
    text = yaml.safe_dump(value, default_flow_style=True, width=float("inf"), allow_unicode=True)
    return text.removesuffix("...\n").strip()


_INDENT = "  "


_Edit = tuple[int, int, str]
"""Start and end in the file, and the text that replaces what is between them."""

_Update = dict[str | int, Any]
"""New entries below a place: lists by variable, or further updates by the next level's key."""


def edited(
    references: ReferenceFile, changes: Mapping[tuple[str, Case], Mapping[str, Entry]]
) -> str:
    """Return the file's text with new entries for cases, by check's class and case.

    Entries are changed at their place in the text, so that comments, anchors, order and layout of
    everything else stay byte for byte. A case that found its entries by a regular expression, an
    alias or a merge gets keys of its own, with the entries from there behind them. Raises NotThere
    as ``ReferenceFile.find``, and NetproofError where a place cannot be edited without changing
    another.
    """
    wanted: dict[str, _Update] = {}
    for (check, case), variables in changes.items():
        references.find(check, case)
        update = wanted.setdefault(check, {})
        for key in references.keys_to(check, case):
            update = update.setdefault(key, {})
        update.update(variables)
    return _Editor(references).edited(wanted)


class _Editor:
    """Collects and applies the edits of one file."""

    def __init__(self, references: ReferenceFile) -> None:
        self._references = references
        self._path, self._text = references.path, references.text
        self._shared = {
            node.name for node in descendants(references.root) if isinstance(node, Alias)
        }

    def edited(self, wanted: Mapping[str, _Update]) -> str:
        """Return the new text; ``wanted``: by check."""
        edits: list[_Edit] = []
        for check, update in wanted.items():
            # YAML takes the last of equal keys.
            found = [item for item in self._references.root.value if item[0].value == check]
            if not found:
                raise NetproofError(
                    f"{self._path}: {check} comes from a merge (<<); give it a key of its own"
                )
            self._change(*found[-1], update, edits)
        text = _spliced(self._text, edits)
        self._verify(text, wanted)
        return text

    def _change(self, key: Any, node: Any, update: _Update, edits: list[_Edit]) -> None:
        """Change a mapping at its place; an alias or one in flow style is written as a block."""
        if isinstance(node, Alias):
            self._replace(key, node, update, edits)
            return
        if node.anchor in self._shared:
            raise self._fault(
                node,
                f"&{node.anchor} is defined here and used elsewhere; move what it names to a key of"
                " its own at the top, that begins with a dot, and write an alias here",
            )
        if node.flow_style:
            self._replace(key, node, update, edits)
            return
        own = {plain(k): (k, value) for k, value in node.value if k.tag != MERGE}
        found = effective(node)
        late: list[_Edit] = []
        for name, new in update.items():
            if name not in own and isinstance(new, dict):
                indent = " " * (node.start_mark.column + len(_INDENT))
                lines = self._block(found[matching(found, name)], new, indent)
                late.append(self._inserted(node, name, "\n" + "\n".join(lines)))
            elif name not in own:
                late.append(self._inserted(node, name, f" {_entry_text(new)}"))
            elif isinstance(new, dict):
                self._change(*own[name], new, edits)
            else:
                self._replace_entry(*own[name], new, edits)
        edits += late

    def _replace_entry(self, variable: Any, value: Any, entry: Entry, edits: list[_Edit]) -> None:
        if value.anchor in self._shared:
            raise self._fault(
                value,
                f"&{value.anchor} is defined here and used elsewhere; write the entry out in both"
                " places",
            )
        self._insist_on_no_comments(value, after=variable)
        start, gap = value.start_mark.index, ""
        if "\n" in self._text[end_of(variable) : start]:
            start, gap = len(self._text[:start].rstrip()), " "
        edits.append((start, end_of(value), gap + _entry_text(entry)))

    def _inserted(self, node: Any, name: str | int, text: str) -> _Edit:
        """Insert a further key at the end of a block mapping.

        ReFrame takes the first expression that fits, and a name with a dot is one too: at the end
        it does not hide earlier keys.
        """
        at = self._line_end(end_of(node))
        return at, at, f"\n{' ' * node.start_mark.column}{scalar(name)}:{text}"

    def _replace(self, key: Any, node: Any, update: _Update, edits: list[_Edit]) -> None:
        """Write an alias or a mapping in flow style as a block, a comment behind it staying."""
        if self._text[: start_of(key)].rpartition("\n")[2].strip():
            raise self._fault(
                key, f"{plain(key)!r} shares its line with what is before it; begin a line with it"
            )
        self._insist_on_no_comments(node)
        for below in descendants(node)[1:]:
            self._insist_on_no_anchor(below)
        indent = " " * (key.start_mark.column + len(_INDENT))
        at = self._line_end(end_of(node))
        lines = self._block(node, update, indent, in_place=True)
        anchor = f" &{node.anchor}" if node.anchor else ""
        edits.append((len(self._text[: start_of(node)].rstrip()), end_of(node), anchor))
        edits.append((at, at, "\n" + "\n".join(lines)))

    def _block(
        self, node: Any, update: _Update, indent: str, *, in_place: bool = False
    ) -> list[str]:
        """Return the lines of a mapping with new entries: anchors by name, the rest copied.

        ``in_place``: the lines take the place of the node, so that its own anchor stays there.
        """
        found = effective(node)
        new: dict[str | int, list[str]] = {}
        for key, below in update.items():
            head = f"{indent}{scalar(key)}:"
            if isinstance(below, dict):
                child = found[matching(found, key)]
                new[key] = [head, *self._block(child, below, indent + _INDENT)]
            else:
                new[key] = [f"{head} {_entry_text(below)}"]
        name = node.name if isinstance(node, Alias) else None if in_place else node.anchor
        lines = []
        if name:
            lines.append(f"{indent}<<: *{name}")
        else:
            for key, value in node.value:
                if key.tag == MERGE:
                    lines.append(f"{indent}<<: {self._source(value)}")
                elif plain(key) in new:
                    lines += new.pop(plain(key))
                else:
                    lines += self._copied(key, value, indent)
        return lines + [line for several in new.values() for line in several]

    def _copied(self, key: Any, value: Any, indent: str) -> list[str]:
        head = f"{indent}{self._text[start_of(key) : end_of(key)]}:"
        name = value.name if isinstance(value, Alias) else value.anchor
        if name:
            return [f"{head} *{name}"]
        if isinstance(value, yaml.MappingNode) and not value.flow_style:
            return [head, *self._block(value, {}, indent + _INDENT)]
        return [f"{head} {self._source(value)}"]

    def _source(self, node: Any) -> str:
        """Return a value as it is written, on one line."""
        self._insist_on_no_comments(node)
        for below in descendants(node):
            self._insist_on_no_anchor(below)
        if isinstance(node, yaml.SequenceNode) and not node.flow_style:
            return _entry_text([plain(one) for one in node.value])
        return " ".join(self._text[start_of(node) : end_of(node)].split())

    def _insist_on_no_anchor(self, node: Any) -> None:
        if node.anchor:
            raise self._fault(
                node,
                f"&{node.anchor} would be defined twice or lost; move what it names to a key of its"
                " own at the top, that begins with a dot",
            )

    def _insist_on_no_comments(self, node: Any, after: Any = None) -> None:
        text = self._text[start_of(node) if after is None else end_of(after) : end_of(node)]
        if "\n" in text and "#" in text:
            raise self._fault(
                node, "the comments between these lines would be lost; move them above"
            )

    def _fault(self, node: Any, reason: str) -> NetproofError:
        return NetproofError(f"{self._path}:{node.start_mark.line + 1}: {reason}")

    def _line_end(self, offset: int) -> int:
        end = self._text.find("\n", offset)
        end = len(self._text) if end < 0 else end
        return end - 1 if self._text[end - 1 : end] == "\r" else end

    def _verify(self, text: str, wanted: Mapping[str, _Update]) -> None:
        """Raise NetproofError unless the text has the new entries and is otherwise unchanged."""
        after = loaded(text, self._path)
        expected = {
            check: _with(level, wanted[check]) if check in wanted else level
            for check, level in self._references.data.items()
        }
        if _ordered(after) != _ordered(expected):
            differs = next(c for c in expected if _ordered(after.get(c)) != _ordered(expected[c]))
            raise self._references.fault(
                differs, f"{differs}: cannot be edited as it is written; write it in block style"
            )


def _with(level: dict[Any, Any], update: _Update) -> dict[Any, Any]:
    """Return a level after an update."""
    return level | {
        key: _with(level[matching(level, key)], new) if isinstance(new, dict) else new
        for key, new in update.items()
    }


def _ordered(level: Any) -> Any:
    """Return a level for comparing: the order of keys counts, since some are expressions."""
    if not isinstance(level, dict):
        return level
    return [(key, _ordered(value)) for key, value in level.items()]


def _spliced(text: str, edits: Sequence[_Edit]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    parts, done = [], 0
    for start, end, new in sorted(edits, key=lambda edit: edit[0]):
        parts += [text[done:start], new.replace("\n", newline)]
        done = end
    return "".join([*parts, text[done:]])


def _entry_text(entry: Entry) -> str:
    return f"[{', '.join(scalar(one) for one in entry)}]"


def diff(path: Path, before: str, after: str) -> list[str]:
    """Return the lines of a unified diff, without line ends; none where the texts are equal."""
    old, new = before.splitlines(), after.splitlines()
    shown = os.path.relpath(path)
    # unified_diff would take lines that are frequent, as they are here, for junk.
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    lines = []
    for group in matcher.get_grouped_opcodes(3):
        (_, first, _, new_first, _), (_, _, last, _, new_last) = group[0], group[-1]
        lines.append(f"@@ -{_range(first, last)} +{_range(new_first, new_last)} @@")
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                lines += [f" {line}" for line in old[start:end]]
            else:
                lines += [f"-{line}" for line in old[start:end]]
                lines += [f"+{line}" for line in new[new_start:new_end]]
    return [f"--- {shown}", f"+++ {shown}", *lines] if lines else []


def _range(start: int, end: int) -> str:
    """Return the lines from ``start`` (from 0) to before ``end`` for a hunk's head."""
    length = end - start
    return f"{start + bool(length)},{length}"
