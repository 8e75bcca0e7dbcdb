"""Read YAML that people write, strictly and within limits, with clear errors."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Iterator
from typing import Any

import yaml

from netproof.errors import NetproofError, shortened
from netproof.intake.loading import (
    YAML_CHARACTERS,
    YAML_DEPTH,
    YAML_SECONDS,
    YAML_VALUES,
    shown,
    too_deep,
    too_much,
)


class NoYamlError(NetproofError):
    """Text that is not YAML: ``place``, ``line`` where it is known, and reason."""

    def __init__(self, place: object, line: int | None, reason: str) -> None:
        self.place, self.line, self.reason = place, line, reason
        super().__init__(f"{place}{f':{line}' if line else ''}: no YAML: {reason}")


_MERGE = "tag:yaml.org,2002:merge"


def yaml_value(text: str, place: object) -> Any:
    """Return the value of a YAML text as PyYAML, and so ReFrame, reads it; errors name ``place``.

    Raise NetproofError, with the line, for invalid YAML, a duplicate key (except one that a merge
    has too), unusable numbers, and whatever exceeds the limits.
    """
    reader = _strict(text, place)
    return _constructed(reader, place, lambda: reader.get_single_data())


def check_yaml(text: str, place: object) -> None:
    """Refuse the same as ``yaml_value``, for a text whose values another reader takes.

    Numbers are left to that reader.
    """
    reader = _strict(text, place)
    reader.numbers = False
    _constructed(reader, place, lambda: reader.get_single_node())


class _Strict(yaml.SafeLoader):
    """PyYAML's loader as ReFrame uses it, with limits.

    libyaml, which parses faster, takes TABs and question marks that PyYAML refuses.
    """

    place: object
    numbers = True

    def begin(self, place: object) -> None:
        self.place = place
        self.depth = 0
        self.sizes: dict[int, int] = {}
        # CPU time: a busy machine must not make a good file a bad one.
        self.until = time.thread_time() + YAML_SECONDS

    def refuse(self, line: int, reason: str) -> NetproofError:
        return NetproofError(f"{self.place}:{line + 1}: {reason}")

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line
        if time.thread_time() > self.until:
            raise self.refuse(line, f"takes more than {YAML_SECONDS:g} s of a CPU to read")
        self.depth += 1
        if self.depth > YAML_DEPTH + 1:
            raise self.refuse(line, too_deep(YAML_DEPTH))
        node = super().compose_node(parent, index)
        self.depth -= 1
        if isinstance(event, yaml.AliasEvent):
            if id(node) not in self.sizes:
                raise self.refuse(line, f"*{event.anchor} is within what it names")
        else:
            size = 1 + sum(self.sizes.get(id(child), 1) for child in _children(node))
            self.sizes[id(node)] = size
            if size > YAML_VALUES:
                raise self.refuse(
                    line, f"has more than {YAML_VALUES} values, those of aliases counted"
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
                raise self.refuse(line, f"{shown(node.value)} is no number that can be used")
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
                raise self.refuse(key.start_mark.line, f"duplicate key {shown(value)}; {hint}")
            seen.add(value)
        return node


def _children(node: Any) -> Iterator[Any]:
    if isinstance(node, yaml.MappingNode):
        for pair in node.value:
            yield from pair
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _strict(text: str, place: object) -> _Strict:
    if len(text) > YAML_CHARACTERS:
        raise NetproofError(too_much(place, f"{YAML_CHARACTERS} characters"))
    try:
        reader = _Strict(text)
    except yaml.YAMLError as error:
        raise NoYamlError(place, None, shortened(" ".join(str(error).split()))) from error
    reader.begin(place)
    return reader


def _constructed(reader: _Strict, place: object, read: Any) -> Any:
    try:
        return read()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise NoYamlError(place, line, shortened(str(error.problem))) from error
    except RecursionError:
        raise NetproofError(f"{place}: {too_deep(YAML_DEPTH)}") from None
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError) as error:
        # PyYAML's constructors raise for text that resembles a date or a number.
        raise NoYamlError(place, None, shown(str(error))) from error
    finally:
        reader.dispose()
