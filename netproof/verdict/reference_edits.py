"""Edit a file of references without reflowing it.

Entries are changed at their place in the text, so that comments, anchors, order and layout of
everything else stay byte for byte. The result is read and compared with the intended values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.verdict.references import Entry, ReferenceFile, loaded, matching
from netproof.verdict.yaml_nodes import (
    MERGE,
    Alias,
    aliased,
    descendants,
    effective,
    end_of,
    plain,
    scalar,
    start_of,
)

_INDENT = "  "


@dataclass
class _Edit:
    """Text that replaces ``start`` to ``end``, offsets into the file."""

    start: int
    end: int
    text: str


@dataclass
class _Update:
    """New entries below a place: those of a leaf by variable, or by the next level's key."""

    variables: dict[str, Entry] = field(default_factory=dict)
    below: dict[str | int, _Update] = field(default_factory=dict)


def edited(
    references: ReferenceFile, changes: Mapping[tuple[str, Case], Mapping[str, Entry]]
) -> str:
    """Return the file's text with new entries for cases, by check's class and case.

    A case that found its entries by a regular expression, an alias or a merge gets keys of its
    own, with the entries from there behind them. Raises NotThere as ``ReferenceFile.find``, and
    NetproofError where a place cannot be edited without changing another.
    """
    wanted: dict[str, _Update] = {}
    for (check, case), variables in changes.items():
        references.find(check, case)
        update = wanted.setdefault(check, _Update())
        for key in references.keys_to(check, case):
            update = update.below.setdefault(key, _Update())
        update.variables.update(variables)
    return _Editor(references).edited(wanted)


class _Editor:
    """Collects and applies the edits of one file."""

    def __init__(self, references: ReferenceFile) -> None:
        self._references = references
        self._path, self._text = references.path, references.text
        self._shared = aliased(references.root)

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
            key, node = found[-1]
            if isinstance(node, Alias):
                self._replace(key, node, update, edits)
            else:
                self._edit(key, node, update, edits)
        text = _spliced(self._text, edits)
        self._verify(text, wanted)
        return text

    def _edit(self, key: Any, node: Any, update: _Update, edits: list[_Edit]) -> None:
        """Change a mapping at its place."""
        if node.anchor in self._shared:
            raise NetproofError(
                f"{self._path}:{node.start_mark.line + 1}: &{node.anchor} is defined here and used"
                " elsewhere; move what it names to a key of its own at the top, that begins with a"
                " dot, and write an alias here"
            )
        if node.flow_style:
            self._replace(key, node, update, edits)
            return
        own = {plain(k): (k, value) for k, value in node.value if k.tag != MERGE}
        found = effective(node)
        late: list[_Edit] = []
        for name, entry in update.variables.items():
            if name not in own:
                late.append(self._inserted(node, name, _entry_text(entry)))
                continue
            variable, value = own[name]
            if value.anchor in self._shared:
                raise NetproofError(
                    f"{self._path}:{value.start_mark.line + 1}: &{value.anchor} is defined here and"
                    " used elsewhere; write the entry out in both places"
                )
            self._insist_on_no_comments(value, after=variable)
            start, gap = start_of(value), ""
            if "\n" in self._text[end_of(variable) : start]:
                start, gap = len(self._text[:start].rstrip()), " "
            edits.append(_Edit(start, end_of(value), gap + _entry_text(entry)))
        for name, below in update.below.items():
            if name in own:
                child_key, child = own[name]
                if isinstance(child, Alias):
                    self._replace(child_key, child, below, edits)
                else:
                    self._edit(child_key, child, below, edits)
                continue
            lines = self._block(
                found[matching(found, name)], below, " " * (node.start_mark.column + len(_INDENT))
            )
            late.append(self._inserted(node, name, "\n" + "\n".join(lines)))
        edits += late

    def _inserted(self, node: Any, name: str | int, text: str) -> _Edit:
        """Insert a further key at the end of a block mapping.

        ReFrame takes the first expression that fits, and a name with a dot is one too: at the end
        it does not hide earlier keys.
        """
        at = self._line_end(end_of(node))
        separator = "" if text.startswith("\n") else " "
        return _Edit(at, at, f"\n{' ' * node.start_mark.column}{scalar(name)}:{separator}{text}")

    def _replace(self, key: Any, node: Any, update: _Update, edits: list[_Edit]) -> None:
        """Write an alias or a mapping in flow style as a block, a comment behind it staying."""
        if self._text[: start_of(key)].rpartition("\n")[2].strip():
            raise NetproofError(
                f"{self._path}:{key.start_mark.line + 1}: {plain(key)!r} shares its line with what"
                " is before it; begin a line with it"
            )
        self._insist_on_no_comments(node)
        for below in descendants(node)[1:]:
            self._insist_on_no_anchor(below)
        indent = " " * (key.start_mark.column + len(_INDENT))
        at = self._line_end(end_of(node))
        lines = self._block(node, update, indent, in_place=True)
        anchor = f" &{node.anchor}" if node.anchor else ""
        edits.append(_Edit(len(self._text[: start_of(node)].rstrip()), end_of(node), anchor))
        edits.append(_Edit(at, at, "\n" + "\n".join(lines)))

    def _block(
        self, node: Any, update: _Update, indent: str, *, in_place: bool = False
    ) -> list[str]:
        """Return the lines of a mapping with new entries: anchors by name, the rest copied.

        ``in_place``: the lines take the place of the node, so that its own anchor stays there.
        """
        found = effective(node)
        new: dict[str | int, list[str]] = {
            key: [f"{indent}{scalar(key)}: {_entry_text(entry)}"]
            for key, entry in update.variables.items()
        }
        for key, below in update.below.items():
            child = found[matching(found, key)]
            new[key] = [
                f"{indent}{scalar(key)}:",
                *self._block(child, below, indent + _INDENT),
            ]
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
            return [head, *self._block(value, _Update(), indent + _INDENT)]
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
            raise NetproofError(
                f"{self._path}:{node.start_mark.line + 1}: &{node.anchor} would be defined twice or"
                " lost; move what it names to a key of its own at the top, that begins with a dot"
            )

    def _insist_on_no_comments(self, node: Any, after: Any = None) -> None:
        text = self._text[start_of(node) if after is None else end_of(after) : end_of(node)]
        if "\n" in text and "#" in text:
            raise NetproofError(
                f"{self._path}:{node.start_mark.line + 1}: the comments between these lines would"
                " be lost; move them above"
            )

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
    after = {**level, **update.variables}
    for key, below in update.below.items():
        after[key] = _with(level[matching(level, key)], below)
    return after


def _ordered(level: Any) -> Any:
    """Return a level for comparing: the order of keys counts, since some are expressions."""
    if not isinstance(level, dict):
        return level
    return [(key, _ordered(value)) for key, value in level.items()]


def _spliced(text: str, edits: Sequence[_Edit]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    parts, done = [], 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        parts += [text[done : edit.start], edit.text.replace("\n", newline)]
        done = edit.end
    return "".join([*parts, text[done:]])


def _entry_text(entry: Entry) -> str:
    return f"[{', '.join(scalar(one) for one in entry)}]"
