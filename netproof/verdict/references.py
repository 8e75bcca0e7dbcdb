"""A file of references in ReFrame's format: looked up as ReFrame does, edited without reflowing it.

Entries are changed at their place in the text, so that comments, anchors, order and layout of
everything else stay byte for byte; what came out is read again and held against what was meant.
"""

from __future__ import annotations

import difflib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from netproof.errors import NetproofError, shortened
from netproof.intake import loading, trust
from netproof.intake.loading import expression
from netproof.measurement import twin
from netproof.measurement.case import Case
from netproof.measurement.landmarks import ASYMPTOTIC
from netproof.session.measured import Measured

VARIABLE_UNITS = {
    "latency_us": "us",
    "peak_mb_s": "MB/s",
    "peak_size": "B",
    "half_power_size": "B",
    "rate_1_kib_mb_s": "MB/s",
    "rate_4_kib_mb_s": "MB/s",
    "rate_16_kib_mb_s": "MB/s",
    "rate_64_kib_mb_s": "MB/s",
    "asymptotic_mb_s": "MB/s",
    "half_performance_bytes": "B",
    "line_rate_share": "%",
    "twin_mb_s": "MB/s",
    "twin_share": "%",
}
"""The landmarks that are performance variables of a check, and the unit of each one's reference."""

INDEX = "$index"
XFAIL = "$xfail"
_MERGE = "tag:yaml.org,2002:merge"
_INDENT = "  "

Keys = tuple[str | int, ...]
Entry = list[Any]
"""``[value, lower, upper, unit]``, or ``[$xfail, reason, [value, lower, upper, unit]]``."""


def not_defined(bounds: Mapping[str, Any], measured: Measured) -> str:
    """Why a case fails of which a reference asks for r∞, n½ or a share, and it has none.

    ``bounds``: the case's references by variable, as ReFrame has them, which wraps what is expected
    to fail. Empty where all of them are there, where no bound asks, and of what nobody can ask
    for: a benchmark without bandwidth, a path without a line rate.
    """
    for name in (*ASYMPTOTIC, *twin.NAMES):
        entry = bounds.get(name)
        if (
            entry is None
            or getattr(measured.landmarks, name) is not None
            or measured.curve.bandwidth_mb_s is None
            or (name == "line_rate_share" and measured.line_rate_mb_s is None)
        ):
            continue
        _, lower, upper, *_ = getattr(entry, "data", entry)
        if (lower, upper) != (None, None):
            why = measured.landmarks.why(name)
            return f"the references ask for {name}, which is not defined: {why}"
    return ""


class NotThere(NetproofError):
    """The file has no entry for a case.

    ``keys``: what was looked up one below the other, the check first, to what is not there;
    ``beside``: the keys that are there in its place.
    """

    def __init__(self, path: Path, keys: Keys, beside: Sequence[str | int]) -> None:
        self.keys, self.beside = keys, tuple(beside)
        super().__init__(f"{path}: has no {', '.join(map(str, keys))}")


@dataclass
class _Alias:
    """``*name`` where it stands."""

    name: str
    target: yaml.Node
    start_mark: yaml.Mark
    end_mark: yaml.Mark
    anchor: None = None


class _Reader(yaml.SafeLoader):
    """PyYAML, which ReFrame reads references with, keeping where aliases stand."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) and event.anchor in self.anchors:
            self.get_event()
            return _Alias(
                event.anchor, self.anchors[event.anchor], event.start_mark, event.end_mark
            )
        node = super().compose_node(parent, index)
        node.anchor = event.anchor
        return node


@dataclass
class _Edit:
    """Text that takes the place of ``start`` to ``end``, offsets into the file."""

    start: int
    end: int
    text: str


@dataclass
class _Update:
    """New entries below a place: those of a leaf by variable, or by the next level's key."""

    variables: dict[str, Entry] = field(default_factory=dict)
    below: dict[str | int, _Update] = field(default_factory=dict)


class ReferenceFile:
    """The references of one system.

    Raises NetproofError where the file is missing, no YAML, or has no checks in it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        trust.insist(path, "references")
        try:
            # Line ends stay what they are.
            self.text = loading.read_text(path)
        except FileNotFoundError as error:
            raise NetproofError(
                f"{path}: is not there; copy {path.parent / 'example.yaml'} and put your system's"
                " partitions in"
            ) from error
        except (OSError, UnicodeDecodeError) as error:
            raise NetproofError(f"{path}: cannot be read: {shortened(str(error))}") from error
        self._data = _load(self.text, path)
        self._root = _compose(self.text)
        self._shared = _aliased(self._root)
        self._insist_on_patterns()

    def find(self, check: str, case: Case) -> dict[str, Entry]:
        """The entries of a case by variable, as ReFrame finds them for the check's class.

        Raises NotThere where there is none, and NetproofError for an entry or an index that is
        no reference's.
        """
        level, place = self._data.get(check), check
        if not isinstance(level, dict):
            raise NotThere(self.path, (check,), [key for key in self._data if key[:1] != "."])
        looked_up: Keys = (check,)
        for key in self._keys(check, case):
            place += f", {key}"
            looked_up += (key,)
            try:
                level = level[_matching(level, key)]
            except KeyError as error:
                beside = [other for other in level if other != INDEX]
                raise NotThere(self.path, looked_up, beside) from error
            except NetproofError as error:
                raise self._fault(
                    check, f"a key beside {key!r} is no expression: {error.__cause__ or error}"
                ) from error
            if not isinstance(level, dict):
                raise self._fault(check, f"{place}: found {level!r}, expected a mapping")
        for variable, entry in level.items():
            if not _is_entry(entry):
                raise self._fault(
                    check,
                    f"{place}, {variable}: found {entry!r}, expected [value, lower, upper, unit]",
                    variable,
                )
        return level

    def edited(self, changes: Mapping[tuple[str, Case], Mapping[str, Entry]]) -> str:
        """The file's text with new entries for the cases named by check's class and case.

        A case that found its entries by a regular expression, an alias or a merge gets keys of
        its own, with what it found there behind them. Raises NotThere as ``find`` does, and
        NetproofError where a place cannot be edited without changing another.
        """
        wanted: dict[str, _Update] = {}
        for (check, case), variables in changes.items():
            self.find(check, case)
            update = wanted.setdefault(check, _Update())
            for key in self._keys(check, case):
                update = update.below.setdefault(key, _Update())
            update.variables.update(variables)
        edits: list[_Edit] = []
        for check, update in wanted.items():
            # Of a key that is there twice, YAML takes the last.
            found = [item for item in self._root.value if item[0].value == check]
            if not found:
                raise NetproofError(
                    f"{self.path}: {check} comes from a merge (<<); give it a key of its own"
                )
            key, node = found[-1]
            if isinstance(node, _Alias):
                self._replace(key, node, update, edits)
            else:
                self._edit(key, node, update, edits)
        text = _spliced(self.text, edits)
        self._verify(text, wanted)
        return text

    def _keys(self, check: str, case: Case) -> Keys:
        index = self._data[check].get(INDEX)
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
            raise self._fault(
                check, f"{INDEX}: found {index!r}, expected a list of some of {', '.join(known)}"
            )
        return tuple(known[one] for one in index)

    def _insist_on_patterns(self) -> None:
        """Raises NetproofError for a key that ReFrame could match for ever."""
        for check, level in self._data.items():
            for key in _keys_of(level, set()):
                try:
                    expression(f"^{key}$")
                except NetproofError as error:
                    # What is no expression at all is told where it is looked up.
                    if not isinstance(error.__cause__, re.error):
                        raise self._fault(check, str(error), key) from error

    def _fault(self, check: str, reason: str, variable: str | None = None) -> NetproofError:
        """An error at the line of a check's variable, or of the check."""
        reason = shortened(reason)
        for key, node in self._root.value:
            if key.value == check:
                where = key.start_mark
                if variable is not None:
                    where = next((k.start_mark for k in _keys_below(node, variable)), where)
                return NetproofError(f"{self.path}:{where.line + 1}: {reason}")
        return NetproofError(f"{self.path}: {reason}")

    def _edit(self, key: Any, node: Any, update: _Update, edits: list[_Edit]) -> None:
        """Change a mapping where it stands."""
        if node.anchor in self._shared:
            raise NetproofError(
                f"{self.path}:{node.start_mark.line + 1}: &{node.anchor} is defined here and used"
                " elsewhere; move what it names to a key of its own at the top, that begins with a"
                " dot, and write an alias here"
            )
        if node.flow_style:
            self._replace(key, node, update, edits)
            return
        own = {_plain(k): (k, value) for k, value in node.value if k.tag != _MERGE}
        found = _effective(node)
        late: list[_Edit] = []
        for name, entry in update.variables.items():
            if name not in own:
                late.append(self._inserted(node, name, _entry_text(entry)))
                continue
            variable, value = own[name]
            if value.anchor in self._shared:
                raise NetproofError(
                    f"{self.path}:{value.start_mark.line + 1}: &{value.anchor} is defined here and"
                    " used elsewhere; write the entry out in both places"
                )
            self._insist_on_no_comments(value, after=variable)
            start, gap = _start(value), ""
            if "\n" in self.text[_end(variable) : start]:
                start, gap = len(self.text[:start].rstrip()), " "
            edits.append(_Edit(start, _end(value), gap + _entry_text(entry)))
        for name, below in update.below.items():
            if name in own:
                child_key, child = own[name]
                if isinstance(child, _Alias):
                    self._replace(child_key, child, below, edits)
                else:
                    self._edit(child_key, child, below, edits)
                continue
            lines = self._block(
                found[_matching(found, name)], below, " " * (node.start_mark.column + len(_INDENT))
            )
            late.append(self._inserted(node, name, "\n" + "\n".join(lines)))
        edits += late

    def _inserted(self, node: Any, name: str | int, text: str) -> _Edit:
        """A further key at the end of a block mapping.

        ReFrame takes the first expression that fits, and a name with a dot in it is one too: at
        the end it takes nothing from those that were there.
        """
        at = self._line_end(_end(node))
        separator = "" if text.startswith("\n") else " "
        return _Edit(at, at, f"\n{' ' * node.start_mark.column}{_scalar(name)}:{separator}{text}")

    def _replace(self, key: Any, node: Any, update: _Update, edits: list[_Edit]) -> None:
        """Write an alias or a mapping in flow style as a block, a comment behind it staying."""
        if self.text[: _start(key)].rpartition("\n")[2].strip():
            raise NetproofError(
                f"{self.path}:{key.start_mark.line + 1}: {_plain(key)!r} shares its line with what"
                " is before it; begin a line with it"
            )
        self._insist_on_no_comments(node)
        for below in _descendants(node)[1:]:
            self._insist_on_no_anchor(below)
        indent = " " * (key.start_mark.column + len(_INDENT))
        at = self._line_end(_end(node))
        lines = self._block(node, update, indent, in_place=True)
        anchor = f" &{node.anchor}" if node.anchor else ""
        edits.append(_Edit(len(self.text[: _start(node)].rstrip()), _end(node), anchor))
        edits.append(_Edit(at, at, "\n" + "\n".join(lines)))

    def _block(
        self, node: Any, update: _Update, indent: str, *, in_place: bool = False
    ) -> list[str]:
        """Lines of a mapping with new entries: what has a name by that name, the rest copied.

        ``in_place``: the lines take the place of the node, so that its own anchor stays there.
        """
        found = _effective(node)
        new: dict[str | int, list[str]] = {
            key: [f"{indent}{_scalar(key)}: {_entry_text(entry)}"]
            for key, entry in update.variables.items()
        }
        for key, below in update.below.items():
            child = found[_matching(found, key)]
            new[key] = [
                f"{indent}{_scalar(key)}:",
                *self._block(child, below, indent + _INDENT),
            ]
        name = node.name if isinstance(node, _Alias) else None if in_place else node.anchor
        lines = []
        if name:
            lines.append(f"{indent}<<: *{name}")
        else:
            for key, value in node.value:
                if key.tag == _MERGE:
                    lines.append(f"{indent}<<: {self._source(value)}")
                elif _plain(key) in new:
                    lines += new.pop(_plain(key))
                else:
                    lines += self._copied(key, value, indent)
        return lines + [line for several in new.values() for line in several]

    def _copied(self, key: Any, value: Any, indent: str) -> list[str]:
        head = f"{indent}{self.text[_start(key) : _end(key)]}:"
        name = value.name if isinstance(value, _Alias) else value.anchor
        if name:
            return [f"{head} *{name}"]
        if isinstance(value, yaml.MappingNode) and not value.flow_style:
            return [head, *self._block(value, _Update(), indent + _INDENT)]
        return [f"{head} {self._source(value)}"]

    def _source(self, node: Any) -> str:
        """A value as it is written, on one line."""
        self._insist_on_no_comments(node)
        for below in _descendants(node):
            self._insist_on_no_anchor(below)
        if isinstance(node, yaml.SequenceNode) and not node.flow_style:
            return _entry_text([_plain(one) for one in node.value])
        return " ".join(self.text[_start(node) : _end(node)].split())

    def _insist_on_no_anchor(self, node: Any) -> None:
        if node.anchor:
            raise NetproofError(
                f"{self.path}:{node.start_mark.line + 1}: &{node.anchor} would be defined twice or"
                " lost; move what it names to a key of its own at the top, that begins with a dot"
            )

    def _insist_on_no_comments(self, node: Any, after: Any = None) -> None:
        text = self.text[_start(node) if after is None else _end(after) : _end(node)]
        if "\n" in text and "#" in text:
            raise NetproofError(
                f"{self.path}:{node.start_mark.line + 1}: the comments between these lines would be"
                " lost; move them above"
            )

    def _line_end(self, offset: int) -> int:
        end = self.text.find("\n", offset)
        end = len(self.text) if end < 0 else end
        return end - 1 if self.text[end - 1 : end] == "\r" else end

    def _verify(self, text: str, wanted: dict[str, _Update]) -> None:
        """The new text says what was meant and, of everything else, what the old one says."""
        after = _load(text, self.path)
        expected = {
            check: _with(level, wanted[check]) if check in wanted else level
            for check, level in self._data.items()
        }
        if _ordered(after) != _ordered(expected):
            differs = next(c for c in expected if _ordered(after.get(c)) != _ordered(expected[c]))
            raise self._fault(
                differs, f"{differs}: cannot be edited as it is written; write it in block style"
            )


@cache
def readable(path: Path) -> None:
    """Raises NetproofError where a file is none of references; asked once for each path."""
    ReferenceFile(path)


def diff(path: Path, before: str, after: str) -> list[str]:
    """Lines of a unified diff without their line ends; none where the texts are equal."""
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


def write(path: Path, text: str) -> None:
    """Put a text in a file's place at once, with the file's permissions; links are followed.

    Raises NetproofError where the folder cannot be written.
    """
    path = path.resolve()
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(name, path.stat().st_mode & 0o7777)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise NetproofError(f"{path}: cannot be written: {error}") from error


def _range(start: int, end: int) -> str:
    """Lines from ``start`` (from 0) to before ``end`` as a hunk's head has them."""
    length = end - start
    return f"{start + bool(length)},{length}"


def _load(text: str, path: Path) -> dict[str, Any]:
    data = loading.yaml_value(text, path)
    if not isinstance(data, dict):
        found = shortened(repr(data), 80)
        raise NetproofError(f"{path}:1: found {found}, expected the checks' names as keys")
    for key, value in data.items():
        if not isinstance(key, str):
            found = shortened(f"{key!r}: {value!r}", 80)
            raise NetproofError(f"{path}: found the key {found}, expected a check's name")
    return data


def _keys_of(level: Any, seen: set[int]) -> Iterator[str]:
    """The keys below a level that ReFrame may take for expressions."""
    if isinstance(level, dict) and id(level) not in seen:
        seen.add(id(level))
        for key, below in level.items():
            if isinstance(key, str):
                yield key
            yield from _keys_of(below, seen)


def _compose(text: str) -> Any:
    reader = _Reader(text)
    try:
        return reader.get_single_node()
    finally:
        reader.dispose()


def _plain(node: Any) -> Any:
    """A scalar's value as ReFrame sees it."""
    reader = _Reader("")
    try:
        return reader.construct_object(node.target if isinstance(node, _Alias) else node)
    finally:
        reader.dispose()


def _start(node: Any) -> int:
    return node.start_mark.index


def _end(node: Any) -> int:
    """Offset behind a node's last character: a block's own end mark lies behind comments too."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return node.end_mark.index


def _descendants(node: Any) -> list[Any]:
    """A node and all below it, aliases not followed."""
    if not isinstance(node, yaml.CollectionNode):
        return [node]
    below = [
        child for item in node.value for child in (item if isinstance(item, tuple) else (item,))
    ]
    return [node, *(one for child in below for one in _descendants(child))]


def _keys_below(node: Any, name: str) -> list[Any]:
    nodes = _descendants(node.target if isinstance(node, _Alias) else node)
    return [
        key
        for one in nodes
        if isinstance(one, yaml.MappingNode)
        for key, _ in one.value
        if key.value == name
    ]


def _aliased(root: Any) -> set[str]:
    return {node.name for node in _descendants(root) if isinstance(node, _Alias)}


def _effective(node: Any) -> dict[Any, Any]:
    """A mapping's values by key with merges resolved, in the order in which PyYAML has them."""
    node = node.target if isinstance(node, _Alias) else node
    merged: list[tuple[Any, Any]] = []
    own: list[tuple[Any, Any]] = []
    for key, value in node.value:
        if key.tag != _MERGE:
            own.append((_plain(key), value))
            continue
        target = value.target if isinstance(value, _Alias) else value
        sources = target.value[::-1] if isinstance(target, yaml.SequenceNode) else [target]
        for source in sources:
            merged += _effective(source).items()
    return dict(merged + own)


def _matching(level: Mapping[Any, Any], key: str | int) -> str | int:
    """The key that ReFrame takes for another: the equal one, or the first expression that fits."""
    if key in level:
        return key
    if isinstance(key, str):
        for pattern in level:
            # Written as ReFrame writes it, for which ^a|b$ is two expressions.
            if isinstance(pattern, str) and expression(f"^{pattern}$").match(key):
                return pattern
    raise KeyError(key)


def _with(level: dict[Any, Any], update: _Update) -> dict[Any, Any]:
    """What a level has to say after an update."""
    after = {**level, **update.variables}
    for key, below in update.below.items():
        after[key] = _with(level[_matching(level, key)], below)
    return after


def _ordered(level: Any) -> Any:
    """A level for comparing: the order of keys counts, since some of them are expressions."""
    if not isinstance(level, dict):
        return level
    return [(key, _ordered(value)) for key, value in level.items()]


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


def _spliced(text: str, edits: Sequence[_Edit]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    parts, done = [], 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        parts += [text[done : edit.start], edit.text.replace("\n", newline)]
        done = edit.end
    return "".join([*parts, text[done:]])


def _entry_text(entry: Entry) -> str:
    return f"[{', '.join(_scalar(one) for one in entry)}]"


def _scalar(value: Any) -> str:
    """A scalar as PyYAML reads it back, quoted where it has to be."""
    if value is None:
        return "null"
    text = yaml.safe_dump(value, default_flow_style=True, width=float("inf"), allow_unicode=True)
    return text.removesuffix("...\n").strip()
