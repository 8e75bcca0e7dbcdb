"""A YAML text as nodes with their places, and with aliases where they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

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


def aliased(root: Any) -> set[str]:
    """Return the anchors that are used below a node."""
    return {node.name for node in descendants(root) if isinstance(node, Alias)}


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
