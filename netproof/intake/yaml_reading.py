"""Read YAML that people write, strictly and within limits, with clear errors."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Any

import yaml

from netproof.errors import NetproofError, shortened
from netproof.intake.disk import (
    TOO_DEEP,
    YAML_CHARACTERS,
    YAML_VALUES,
    MalformedError,
    shown,
    too_much,
)

_MERGE = "tag:yaml.org,2002:merge"


def yaml_value(text: str, place: object) -> Any:
    """Return the value of a YAML text as PyYAML, and so ReFrame, reads it; errors name ``place``.

    Raise NetproofError, with the line, for invalid YAML, a duplicate key (except one that a merge
    has too), unusable numbers, and whatever exceeds the limits.
    """
    if len(text) > YAML_CHARACTERS:
        raise NetproofError(too_much(place, f"{YAML_CHARACTERS} characters"))
    try:
        return _Strict(text, place).get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise MalformedError("YAML", place, line, shortened(str(error.problem))) from error
    except RecursionError:
        raise NetproofError(f"{place}: {TOO_DEEP}") from None
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError) as error:
        # PyYAML's constructors raise for text that resembles a date or a number.
        raise MalformedError("YAML", place, 0, shown(" ".join(str(error).split()))) from error


class _Strict(yaml.SafeLoader):
    """PyYAML's loader as ReFrame uses it, with limits.

    libyaml, which parses faster, takes TABs and question marks that PyYAML refuses.
    """

    def __init__(self, text: str, place: object) -> None:
        super().__init__(text)
        self.place = place
        self.sizes: dict[int, int] = {}

    def refuse(self, line: int, reason: str) -> NetproofError:
        return NetproofError(f"{self.place}:{line + 1}: {reason}")

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line
        node = super().compose_node(parent, index)
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
        if node.tag.endswith((":float", ":int")):
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
