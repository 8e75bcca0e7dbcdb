"""Read a topology file, and refuse a wrong one with line and remedy."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from ci.testbed import faults
from ci.testbed.faults import FaultError, Faults
from ci.testbed.topology import (
    ETHERNET_HEADER_BYTES,
    Leaf,
    Node,
    Shape,
    Switch,
    Topology,
    TopologyError,
    default_shape,
)
from netproof.errors import NetproofError, shortened
from netproof.intake import disk, yaml_reading

MAX_NODES = 200
MAX_SWITCHES = 100
MAX_INTERFACE_NAME = 15
MOST_LEAVES = 32
LEAST_NODES_OF_A_LEAF = 2

Place = tuple[str | int, ...]
"""Keys from the document's root to an entry."""
Refuse = Callable[[Place, str], NoReturn]
Mbps = Annotated[int, Field(ge=1, le=faults.MOST_MBPS)]
Bytes = Annotated[int, Field(ge=1, le=faults.MOST_BUFFER)]


class _Keys(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Shape(_Keys):
    burst: Bytes | None = None
    port_burst: Bytes | None = None
    offload: bool = False


class _Switch(_Keys):
    link_mbps: Mbps
    mtu: int = Field(ge=faults.LEAST_MTU, le=faults.MOST_MTU)
    buffer: Bytes
    nodes: int = Field(ge=2, le=64)
    cpus: int = Field(ge=1, le=1024)
    shape: _Shape = Field(default_factory=_Shape)
    leaves: int = Field(0, ge=2, le=MOST_LEAVES)
    uplink_mbps: Mbps | None = None
    mgmt_mbps: Mbps | None = None
    rails: int = Field(1, ge=1, le=2)
    faults: dict[str, dict[str, Any]] = Field(default_factory=dict)


class _File(_Keys):
    switches: dict[str, _Switch] = Field(min_length=1, max_length=MAX_SWITCHES)


def load(path: Path) -> Topology:
    """Read the topology in the YAML file ``path``.

    Raises TopologyError with file, line, key and remedy for unknown, missing or wrong entries.
    """
    try:
        text = disk.read_text(path)
        document = yaml_reading.yaml_value(text, path)
    except disk.MalformedError as error:
        why = f"{path}:{error.line or 1}: not valid YAML: {shortened(error.reason)}"
        raise TopologyError(why) from error
    except NetproofError as error:
        raise TopologyError(str(error)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise TopologyError(f"{path}: cannot read the topology: {error}") from error

    def refuse(place: Place, reason: str) -> NoReturn:
        root = yaml.compose(text, yaml.SafeLoader)
        key = f" {shortened(str(place[-1]))}:" if place else ""
        raise TopologyError(f"{path}:{_line(root, place)}:{key} {shortened(reason)}")

    try:
        file = _File.model_validate(document)
    except ValidationError as error:
        # A misspelt key is missing too.
        several = sorted(error.errors(), key=lambda one: one["type"] == "missing")
        place = tuple(key for key in several[0]["loc"] if key != "[key]")
        refuse(place, _said(several[0]))
    return _topology(file, refuse)


def _line(node: yaml.Node | None, place: Place) -> int:
    """Return the line of an entry's key, or of the closest entry around it."""
    line = 1
    for key in place:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        found = [(k, v) for k, v in pairs if k.value == key]
        if not found:
            break
        (name, node), *_ = found
        line = name.start_mark.line + 1
    return line


def _said(error: ErrorDetails) -> str:
    """Return what is wrong with an entry, and what would be right."""
    kind, place = error["type"], error["loc"]
    if kind == "extra_forbidden":
        model = _File if len(place) == 1 else _Shape if "shape" in place else _Switch
        return f"unknown key; the keys are {', '.join(sorted(model.model_fields))}"
    if kind == "missing":
        return "is missing"
    wanted = "it should hold keys" if kind == "model_type" else error["msg"]
    return f"found {error['input']!r}; {wanted.replace('Input should', 'it should')}"


def _topology(file: _File, refuse: Refuse) -> Topology:
    switches: list[Switch] = []
    owners: dict[str, str] = {}
    before = 0
    for name, entry in file.switches.items():
        switch = _switch(name, entry, len(switches) + 1, before, refuse)
        own = [("node", node.name) for node in switch.nodes]
        own += [("leaf", leaf.name) for leaf in switch.leaves]
        own += [("spine", switch.spine)] * bool(switch.leaves)
        for what, of_it in own:
            if of_it in owners or of_it in file.switches:
                taken_by = owners.get(of_it, of_it)
                refuse(("switches", name), f"its {what} {of_it} has the name that {taken_by} uses")
            owners[of_it] = name
        before += len(switch.nodes)
        if before > MAX_NODES:
            refuse(("switches", name), f"makes more than {MAX_NODES} nodes in all")
        switches.append(switch)
    built = Topology(tuple(switches))
    planted: Faults = {}
    for switch in switches:
        planted |= _faults(file.switches[switch.name].faults, switch, built, refuse)
    return dataclasses.replace(built, faults=planted)


def _switch(name: str, entry: _Switch, number: int, before: int, refuse: Refuse) -> Switch:
    """Return a switch with its nodes and leaves; ``before``: nodes of the switches before it."""
    place = ("switches", name)
    if not re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", name):
        refuse(place, "a switch's name is lower case letters, digits and '-' between them")
    least = entry.mtu + ETHERNET_HEADER_BYTES
    if entry.buffer < least:
        refuse((*place, "buffer"), f"found {entry.buffer}; write at least {least}, a frame")
    longest = f"{name}-leaf-{entry.leaves}" if entry.leaves else f"{name}-{entry.nodes}"
    if len(longest) > MAX_INTERFACE_NAME:
        refuse(
            place,
            f"makes the name {longest}, longer than the {MAX_INTERFACE_NAME} characters that the"
            " kernel takes for an interface; choose a shorter name",
        )
    if entry.rails > 1 and entry.leaves:
        refuse((*place, "rails"), "a switch with leaves has one rail; take out leaves")
    nodes = tuple(
        Node(
            f"{name}-{index}",
            f"198.18.{number}.{index}",
            f"198.18.0.{before + index}",
            f"198.18.{MAX_SWITCHES + number}.{index}" if entry.rails > 1 else None,
        )
        for index in range(1, entry.nodes + 1)
    )
    return Switch(
        *(name, entry.link_mbps, entry.mtu, entry.buffer, entry.cpus),
        *(_shape(entry, (*place, "shape"), refuse), nodes, _leaves(name, entry, nodes, refuse)),
        *(entry.uplink_mbps, entry.mgmt_mbps, entry.rails),
    )


def _leaves(name: str, entry: _Switch, nodes: Sequence[Node], refuse: Refuse) -> tuple[Leaf, ...]:
    """Return the leaves, which share the nodes in their order."""
    place, count = ("switches", name), entry.leaves
    if bool(count) != (entry.uplink_mbps is not None):
        refuse((*place, "leaves" if count else "uplink_mbps"), "leaves and uplink_mbps go together")
    if count * LEAST_NODES_OF_A_LEAF > len(nodes):
        least = count * LEAST_NODES_OF_A_LEAF
        refuse((*place, "leaves"), f"found {count}, which take at least {least} nodes")
    ends = [len(nodes) * number // max(count, 1) for number in range(count + 1)]
    return tuple(
        Leaf(f"{name}-leaf-{number}", tuple(nodes[ends[number - 1] : ends[number]]))
        for number in range(1, count + 1)
    )


def _shape(entry: _Switch, place: Place, refuse: Refuse) -> Shape:
    default, given = default_shape(entry.link_mbps, entry.mtu), entry.shape
    found = {name: getattr(given, name) for name in given.model_fields_set}
    least = entry.mtu + ETHERNET_HEADER_BYTES
    for name, value in found.items():
        if name != "offload" and value is not None and value < least:
            refuse((*place, name), f"found {value}; write at least {least}, a frame")
    shape = dataclasses.replace(default, **found)
    if shape.burst is None and shape.port_burst is None:
        refuse(place, "leaves both ends unshaped; give one of them a burst")
    return shape


def _faults(
    declared: dict[str, dict[str, Any]], switch: Switch, built: Topology, refuse: Refuse
) -> Faults:
    """Read the faults of a switch, which may name no place of another switch."""
    found: Faults = {}
    at: Place = ("switches", switch.name, "faults")
    own = [name for name, (_, of) in built.places.items() if of == switch]
    for place, keys in declared.items():
        if place not in own:
            refuse((*at, place), f"no node or leaf of {switch.name}; it has {' '.join(own)}")
        if not keys:
            refuse((*at, place), "must hold at least one fault, '{fault: value}'")
        found[place] = {}
        for key, value in keys.items():
            try:
                found[place][key] = built.checked_fault(place, key, value)
            except FaultError as error:
                refuse((*at, place, key), str(error).removeprefix(f"{key}: "))
        excluded = faults.contradiction(found[place])
        if excluded:
            refuse((*at, place), excluded)
    for node, held in built.delays(found).items():
        useless = faults.nothing_waits(held)
        if useless:
            refuse(at, f"{node}: {useless}")
    return found
