"""YAML, JSON, patterns and files from outside: read within limits, or refused in words.

Every limit is far above what netproof or a site writes, and low enough that a file made in bad
intent, or damaged, costs a second and not a night. Patterns are not timed: whether one can take
long is told from what it is, so that the same one is refused on every machine, before ReFrame,
which has no limit, matches with it.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import stat
import time
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from re import _constants, _parser
from typing import Any

import yaml

from netproof.errors import NetproofError, shortened

VARIABLE = "NETPROOF_MOST_MB"
"""Names, in 10⁶ bytes, how large a file may be that is read: a report, an output, a record."""


class NoJsonError(NetproofError):
    """A text that is no JSON: ``place``, its ``line``, and why."""

    def __init__(self, place: object, line: int, reason: str) -> None:
        self.place, self.line, self.reason = place, line, reason
        super().__init__(f"{place}:{line}: is no JSON: {reason}")


class NoYamlError(NetproofError):
    """A text that is no YAML: ``place``, its ``line`` where that is known, and why."""

    def __init__(self, place: object, line: int | None, reason: str) -> None:
        self.place, self.line, self.reason = place, line, reason
        super().__init__(f"{place}{f':{line}' if line else ''}: no YAML: {reason}")


_MERGE = "tag:yaml.org,2002:merge"
_NOT_SHOWN = 80


@dataclass(frozen=True)
class ReadLimits:
    """How much a text may hold.

    ``characters``: of the text; ``values``: scalars, lists and mappings, each as often as aliases
    repeat it; ``depth``: lists and mappings within each other; ``seconds``: that reading YAML takes
    (JSON is read by C, in less than a second for each 10⁷ characters).
    """

    characters: int
    values: int
    depth: int
    seconds: float


YAML_LIMITS = ReadLimits(characters=2_000_000, values=200_000, depth=40, seconds=20)
"""A line of references is some ten values: 200,000 are those of more than 2,000 cases."""

JSON_LIMITS = ReadLimits(characters=64_000_000, values=2_000_000, depth=60, seconds=20)
"""A report has some hundred values for each case and launch."""

MOST_MB = 64.0
"""Twice what a report of so many values takes that it could still be read."""

PATTERN_CHARACTERS = 1000
PATTERN_REPEATS = 1000
PATTERN_WAYS = 64.0**4
"""In how many ways a pattern may be laid over a text of ``PATTERN_TEXT`` characters."""
PATTERN_TEXT = 64

_FORMS = {
    stat.S_ISFIFO: "a pipe",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
}


def read_bytes(path: Path, most: int | None = None) -> bytes:
    """What a regular file holds; a pipe or a device is not waited for.

    ``most``: bytes that it may have; what ``NETPROOF_MOST_MB`` says if left out. Raises OSError
    where it cannot be read, and NetproofError where it is no file, or larger.
    """
    most = _most_bytes() if most is None else most
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        form = next((word for is_it, word in _FORMS.items() if is_it(found.st_mode)), "other")
        raise NetproofError(f"{path}: cannot be read: it is {form} and no file")
    with open(descriptor, "rb") as file:
        # One more than is allowed, for a file that grows.
        content = b"" if found.st_size > most else file.read(most + 1)
    if found.st_size > most or len(content) > most:
        raise NetproofError(
            f"{path}: is larger than the {most / 1e6:g} MB that are read; {VARIABLE} raises that"
        )
    return content


def read_text(path: Path, most: int | None = None) -> str:
    """What a regular file of UTF-8 holds, line ends as they are; raises as ``read_bytes`` does.

    UnicodeDecodeError, which is a ValueError, where it is none.
    """
    return read_bytes(path, most).decode("utf-8")


def json_file(path: Path) -> Any:
    """A file of JSON as ``json_value`` reads it. Raises NetproofError and OSError."""
    try:
        text = read_text(path)
    except UnicodeDecodeError as error:
        raise NetproofError(
            f"{path}: is no UTF-8 text, byte {error.start} is none of it"
        ) from error
    return json_value(text, path)


def json_value(text: str, place: object, limits: ReadLimits = JSON_LIMITS) -> Any:
    """What a JSON text says; ``place`` is named in errors.

    Raises NetproofError, with the line, for what is no JSON, for a key that is there twice, for
    NaN, Infinity and numbers beyond all floats, half characters, and what is beyond the limits.
    """
    if len(text) > limits.characters:
        raise NetproofError(_too_much(place, f"{limits.characters} characters"))
    if text.count(",") + text.count("[") + text.count("{") > limits.values:
        raise NetproofError(_too_much(place, f"{limits.values} values"))
    odd_numbers = _LARGE.search(text) is not None
    decoder = json.JSONDecoder(
        object_pairs_hook=_object,
        parse_constant=_no_number,
        parse_float=_float if odd_numbers else None,
        parse_int=_int if odd_numbers else None,
    )
    try:
        value = decoder.decode(text)
        if _HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        line = _line_beyond(text, limits.depth)
        raise NetproofError(f"{place}:{line}: {_too_deep(limits)}") from None
    except _Twice as error:
        line = _line_of_second(text, error.key)
        raise NetproofError(
            f"{place}:{line}: duplicate key {_shown(error.key)}; remove one of them"
        ) from None
    except _NoNumber as error:
        raise NetproofError(
            f"{place}:{_line_of_word(text, error.word)}: is no JSON: {error}"
        ) from error
    except json.JSONDecodeError as error:
        reason = f"{error.msg} at character {error.colno}"
        raise NoJsonError(place, error.lineno, reason) from error
    except UnicodeEncodeError as error:
        raise NetproofError(f"{place}: has half a character, which is no text: {error}") from None
    except ValueError as error:
        raise NetproofError(f"{place}: is no JSON: {error}") from error
    level, depth = [value] if isinstance(value, dict | list) else [], 0
    while level:
        depth += 1
        if depth > limits.depth:
            line = _line_beyond(text, limits.depth)
            raise NetproofError(f"{place}:{line}: {_too_deep(limits)}")
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
    return value


def yaml_value(text: str, place: object, limits: ReadLimits = YAML_LIMITS) -> Any:
    """What a YAML text says, as PyYAML, and with it ReFrame, has it; ``place`` is named in errors.

    Raises NetproofError, with the line, for what is no YAML, for a key that is there twice (a key
    beside a merge that has it too is none), for numbers that are none, and for what is beyond the
    limits.
    """
    reader = _strict(text, place, limits)
    return _constructed(reader, place, lambda: reader.get_single_data())


def check_yaml(text: str, place: object, limits: ReadLimits = YAML_LIMITS) -> None:
    """The same refusals for a text that another reader than PyYAML takes values from.

    But for numbers: it is for that reader to say which of them it takes.
    """
    reader = _strict(text, place, limits)
    reader.numbers = False
    _constructed(reader, place, lambda: reader.get_single_node())


def expression(text: object, *, search: bool = False) -> re.Pattern[str]:
    """A regular expression that cannot take long on a name or a case.

    ``search``: it is looked for anywhere in a text and need not begin with it. Raises
    NetproofError for what is no expression, and for one that could.
    """
    if not isinstance(text, str):
        raise NetproofError(f"{_shown(text)} is no regular expression: it is no text")
    return _expression(text, search)


@cache
def _expression(text: str, search: bool) -> re.Pattern[str]:
    if len(text) > PATTERN_CHARACTERS:
        raise NetproofError(
            f"{_shown(text)} is longer than the {PATTERN_CHARACTERS} characters of an expression"
        )
    try:
        ways = _ways(_parser.parse(text))
        compiled = re.compile(text)
    except (re.error, OverflowError) as error:
        raise NetproofError(f"{_shown(text)} is no regular expression: {error}") from error
    except RecursionError:
        raise NetproofError(f"{_shown(text)} has more brackets than an expression may") from None
    if ways * (PATTERN_TEXT if search else 1) > PATTERN_WAYS:
        raise NetproofError(
            f"{_shown(text)} could take for ever: it repeats what repeats, or has more than"
            f" {3 if search else 4} parts with * or +; give fewer"
        )
    return compiled


# JSON

_LARGE = re.compile(r"[0-9]{19}|[eE][+-]?[0-9]{3}")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,\n]', re.DOTALL)


class _Twice(ValueError):
    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(key)


class _NoNumber(ValueError):
    def __init__(self, word: str, reason: str) -> None:
        self.word = word
        super().__init__(reason)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Twice(key)
            seen.add(key)
    return made


def _no_number(word: str) -> Any:
    raise _NoNumber(word, f"{word} is no number")


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _NoNumber(digits, f"{_shown(digits)} is beyond all numbers")
    return value


def _int(digits: str) -> int:
    if len(digits) > 20:
        raise _NoNumber(digits, f"{_shown(digits)} is beyond all numbers")
    return int(digits)


def _line_beyond(text: str, depth: int) -> int:
    """The line at which brackets are deeper than that."""
    line, open_ = 1, 0
    for found in _TOKENS.finditer(text):
        token = found[0]
        line += token == "\n"
        open_ += (token in "[{") - (token in "]}")
        if open_ > depth:
            break
    return line


def _line_of_word(text: str, word: str) -> int:
    """The line at which a word stands outside of quotes for the first time."""
    line = 1
    for found in re.finditer(rf'"(?:[^"\\]|\\.)*"|\n|{re.escape(word)}', text, re.DOTALL):
        if found[0] == word:
            break
        line += found[0] == "\n"
    return line


def _line_of_second(text: str, key: str) -> int:
    """The line of the first object's key that is there twice and is this one."""
    line, stack, before = 1, [set()], ""
    for found in _TOKENS.finditer(text):
        token = found[0]
        if token == "\n":
            line += 1
            continue
        if token in "[{":
            stack.append(set())
        elif token in "]}" and len(stack) > 1:
            stack.pop()
        elif token == ":" and before.startswith('"') and json.loads(before, strict=False) == key:
            if key in stack[-1]:
                return line
            stack[-1].add(key)
        before = token
    return line


# YAML


class _Strict(yaml.SafeLoader):
    """PyYAML as ReFrame uses it, which counts as it reads."""

    place: object
    limits: ReadLimits
    numbers = True

    def begin(self, place: object, limits: ReadLimits) -> None:
        self.place, self.limits = place, limits
        self.depth = 0
        self.sizes: dict[int, int] = {}
        self.until = time.monotonic() + limits.seconds

    def refuse(self, line: int, reason: str) -> NetproofError:
        return NetproofError(f"{self.place}:{line + 1}: {reason}")

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        line = event.start_mark.line
        if time.monotonic() > self.until:
            raise self.refuse(line, f"takes longer to read than {self.limits.seconds:g} s")
        self.depth += 1
        if self.depth > self.limits.depth + 1:
            raise self.refuse(line, _too_deep(self.limits))
        node = super().compose_node(parent, index)
        self.depth -= 1
        if isinstance(event, yaml.AliasEvent):
            if id(node) not in self.sizes:
                raise self.refuse(line, f"*{event.anchor} is within what it names")
        else:
            size = 1 + sum(self.sizes.get(id(child), 1) for child in _children(node))
            self.sizes[id(node)] = size
            if size > self.limits.values:
                raise self.refuse(
                    line, f"has more than {self.limits.values} values, those of aliases counted"
                )
        return node

    def compose_scalar_node(self, anchor: Any) -> Any:
        node = super().compose_scalar_node(anchor)
        if self.numbers and node.tag.endswith((":float", ":int")):
            try:
                finite = math.isfinite(float(self.construct_object(node)))
            except OverflowError:
                finite = False
            if not finite:
                line = node.start_mark.line
                raise self.refuse(line, f"{_shown(node.value)} is no number that can be used")
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen: set[Hashable] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self.refuse(key.start_mark.line, "a list or a mapping is no key")
            value = "<<" if key.tag == _MERGE else self.construct_object(key)
            if value in seen:
                hint = "give one a list" if key.tag == _MERGE else "remove one of them"
                raise self.refuse(key.start_mark.line, f"duplicate key {_shown(value)}; {hint}")
            seen.add(value)
        return node


def _children(node: Any) -> Iterator[Any]:
    if isinstance(node, yaml.MappingNode):
        for pair in node.value:
            yield from pair
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _strict(text: str, place: object, limits: ReadLimits) -> _Strict:
    if len(text) > limits.characters:
        raise NetproofError(_too_much(place, f"{limits.characters} characters"))
    try:
        reader = _Strict(text)
    except yaml.YAMLError as error:
        raise NoYamlError(place, None, shortened(" ".join(str(error).split()))) from error
    reader.begin(place, limits)
    return reader


def _constructed(reader: _Strict, place: object, read: Any) -> Any:
    try:
        return read()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise NoYamlError(place, line, shortened(str(error.problem))) from error
    except RecursionError:
        raise NetproofError(f"{place}: {_too_deep(reader.limits)}") from None
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError) as error:
        # PyYAML's constructors trust what looks like a date or a number.
        raise NoYamlError(place, None, _shown(str(error))) from error
    finally:
        reader.dispose()


# Patterns


def _ways(parsed: Any) -> float:
    """In how many ways, at most, a parsed expression can be laid over ``PATTERN_TEXT`` characters.

    Infinite where what repeats without end can repeat in more than one way itself.
    """
    ways = 1.0
    for operation, argument in parsed:
        ways *= _ways_of(operation, argument)
    return ways


def _ways_of(operation: Any, argument: Any) -> float:
    repeats = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)
    if operation in repeats:
        least, most, below = argument
        inner = _ways(below)
        endless = most is _constants.MAXREPEAT
        if least > PATTERN_REPEATS or (not endless and most > PATTERN_REPEATS):
            return math.inf
        if endless:
            return PATTERN_TEXT if inner == 1 else math.inf
        return (min(most - least, PATTERN_TEXT) + 1) * _power(inner, most)
    if operation is _constants.BRANCH:
        return sum(map(_ways, argument[1]))
    if operation is _constants.SUBPATTERN:
        return _ways(argument[-1])
    if operation is _constants.ATOMIC_GROUP:
        return _ways(argument)
    if operation in (_constants.ASSERT, _constants.ASSERT_NOT):
        return _ways(argument[1])
    if operation is _constants.GROUPREF_EXISTS:
        return sum(_ways(one) for one in argument[1:] if one is not None)
    return 1.0


def _power(base: float, exponent: int) -> float:
    try:
        return base**exponent
    except OverflowError:
        return math.inf


# Words


def _most_bytes() -> int:
    stated = os.environ.get(VARIABLE)
    try:
        most_mb = float(stated) if stated else MOST_MB
    except ValueError:
        most_mb = math.nan
    if not 0 < most_mb < math.inf:
        raise NetproofError(f"{VARIABLE} is {stated!r}, and has to be a number of MB")
    return int(most_mb * 1e6)


def _too_deep(limits: ReadLimits) -> str:
    return f"lists and mappings are nested deeper than {limits.depth}"


def _too_much(place: object, most: str) -> str:
    return f"{place}: has more than {most}, the most that is read"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _NOT_SHOWN else f"{text[:_NOT_SHOWN]}…"
