"""The topology file: which switches the testbed has, and the addresses that follow from it."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from ci.testbed import faults
from ci.testbed.faults import FaultError, Faults
from netproof.errors import NetproofError, shortened
from netproof.intake import loading, yaml_reading

CONTROLLER_ADDRESS = "198.18.0.254"
"""The machine's own end of the management network; 198.18.0.0/15 is RFC 2544's test range."""
MAX_NODES = 200
MAX_SWITCHES = 100
MAX_INTERFACE_NAME = 15
MOST_LEAVES = 32
LEAST_NODES_OF_A_LEAF = 2
ETHERNET_HEADER_BYTES = 14
FRAME_OVERHEAD_BYTES = 24
"""What a frame costs on the wire beside what the kernel counts: preamble 8, FCS 4, gap 12."""
HEALTHY_BUFFER_BYTES = 1_000_000
"""What waits at a healthy link's ends at most: more than any message that is measured."""
BURST_US = 56
LATE_TIMER_US = 17
PORT_BURST_US = 512


class TopologyError(NetproofError):
    """A topology file that cannot be built; the text names file, line, key and remedy."""


@dataclass(frozen=True)
class Shape:
    """How a switch's links are slowed down to their rate; sizes in bytes.

    ``burst`` is the token bucket of a node's network card and ``port_burst`` the one of a switch
    port (what it sends to its node); None leaves that end unshaped. ``offload`` lets the nodes
    hand over segments larger than the MTU, as a card with TSO does.
    """

    burst: int | None
    port_burst: int | None
    offload: bool


@dataclass(frozen=True)
class Node:
    """A node: ``address`` on its switch, ``management_address`` for Slurm's own traffic."""

    name: str
    address: str
    management_address: str


@dataclass(frozen=True)
class Leaf:
    """A leaf switch and its nodes; its uplink to the spine goes by the same name."""

    name: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Switch:
    """A switch with its nodes: link rate in Mbit/s, MTU and buffer (queue) in bytes.

    With ``leaves`` it is several, with an uplink of ``uplink_mbps`` each to a spine.
    ``mgmt_mbps``: rate of the nodes' links to a second management network; None: there is none.
    """

    name: str
    link_mbps: int
    mtu: int
    buffer: int
    cpus: int
    shape: Shape
    nodes: tuple[Node, ...]
    leaves: tuple[Leaf, ...] = ()
    uplink_mbps: int | None = None
    mgmt_mbps: int | None = None

    @property
    def spine(self) -> str:
        """Name of the spine, if it has leaves."""
        return f"{self.name}-spine"

    @property
    def uplink(self) -> Switch:
        """A switch whose links are what the uplinks are: their rate, and a shape for it."""
        mbps = self.uplink_mbps or self.link_mbps
        return dataclasses.replace(self, link_mbps=mbps, shape=default_shape(mbps, self.mtu))


@dataclass(frozen=True)
class Twin:
    """Two ends, no nodes of Slurm's, with the links of a switch as they are on a healthy one."""

    switch: Switch
    number: int

    @property
    def ends(self) -> tuple[Node, Node]:
        """Both, with their addresses on a bridge of their own."""
        return tuple(
            Node(f"{self.switch.name}@twin-{end}", f"198.19.{self.number}.{end}", "")
            for end in (1, 2)
        )

    @property
    def healthy(self) -> Switch:
        """The switch that they are on."""
        return dataclasses.replace(
            self.switch,
            name=f"twin-{self.number}",
            buffer=max(self.switch.buffer, HEALTHY_BUFFER_BYTES),
            shape=default_shape(self.switch.link_mbps, self.switch.mtu),
            nodes=self.ends,
            leaves=(),
            uplink_mbps=None,
            mgmt_mbps=None,
        )


@dataclass(frozen=True)
class Topology:
    """All switches, in the order of the file; the first one is Slurm's default partition.

    ``faults``: those that ``up`` plants.
    """

    switches: tuple[Switch, ...]
    faults: Faults = dataclasses.field(default_factory=dict)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Every node, switch by switch."""
        return tuple(node for switch in self.switches for node in switch.nodes)

    @property
    def twins(self) -> tuple[Twin, ...]:
        """The healthy twin of each switch."""
        return tuple(Twin(switch, number) for number, switch in enumerate(self.switches, 1))

    def node(self, name: str) -> Node:
        """The node called ``name``; TopologyError that lists the nodes when there is none."""
        for node in self.nodes:
            if node.name == name:
                return node
        names = " ".join(node.name for node in self.nodes)
        raise TopologyError(f"no node {name!r} in this testbed; its nodes are: {names}")

    @property
    def places(self) -> dict[str, tuple[str, Switch]]:
        """Where faults can be: kind of place and switch, by the name of node, leaf or switch."""
        found: dict[str, tuple[str, Switch]] = {}
        for switch in self.switches:
            found |= {node.name: (faults.NODE, switch) for node in switch.nodes}
            found |= {leaf.name: (faults.LEAF, switch) for leaf in switch.leaves}
            found[switch.name] = (faults.SWITCH, switch)
        return found

    def checked_fault(self, place: object, key: object, value: object) -> faults.Value:
        """The value of a fault as it is kept; FaultError where it cannot be here."""
        kind, switch = (
            self.places.get(place, (None, None)) if isinstance(place, str) else (None,) * 2
        )
        if kind is None or switch is None:
            raise FaultError(
                f"{shortened(str(place), 80)}: no node, leaf or switch of this testbed; it has"
                f" {shortened(' '.join(self.places))}"
            )
        found = faults.checked(kind, key, value)
        least = switch.mtu + ETHERNET_HEADER_BYTES
        if key == "mtu" and found == switch.mtu:
            raise FaultError(f"mtu: {found} is the switch's own; write another")
        if key == "buffer" and int(found) < least:
            raise FaultError(
                f"buffer: found {found}; write at least {least}, a frame of {switch.name}"
            )
        return found

    def delays(self, planted: Faults) -> Faults:
        """The faults.DELAYS of each node that has any: its switch's, changed by its own."""
        found: Faults = {}
        for switch in self.switches:
            for node in switch.nodes:
                keys = planted.get(switch.name, {}) | planted.get(node.name, {})
                held = {key: keys[key] for key in faults.DELAYS if key in keys}
                found |= {node.name: held} if held else {}
        return found

    def with_switch_faults(self, planted: Faults) -> Topology:
        """This topology with what ``planted`` changes of whole switches."""
        fields = {"buffer", "mgmt_mbps"}
        return dataclasses.replace(
            self,
            switches=tuple(
                dataclasses.replace(
                    switch,
                    **{k: v for k, v in planted.get(switch.name, {}).items() if k in fields},
                )
                for switch in self.switches
            ),
        )


def load(path: Path) -> Topology:
    """The topology in the YAML file ``path``.

    Raises TopologyError with file, line, key and remedy for what is unknown, missing or wrong.
    """
    try:
        text = loading.read_text(path)
        yaml_reading.check_yaml(text, path)
        document = YAML(typ="rt").load(text)
    except yaml_reading.NoYamlError as error:
        raise TopologyError(
            f"{path}:{error.line or 1}: not valid YAML: {shortened(error.reason)}"
        ) from error
    except NetproofError as error:
        raise TopologyError(str(error)) from error
    except OSError as error:
        raise TopologyError(f"{path}: cannot read the topology: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TopologyError(f"{path}: not UTF-8 text: {error.reason}") from error
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise TopologyError(
            f"{path}:{line}: not valid YAML: {shortened(str(error.problem))}"
        ) from error
    except YAMLError as error:
        raise TopologyError(f"{path}: not valid YAML: {shortened(str(error))}") from error
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        # ruamel's constructors trust what looks like a date or a number.
        raise TopologyError(f"{path}: not valid YAML: {shortened(str(error))}") from error
    return _Reader(path).topology(document)


class _Reader:
    """Turns the YAML document into a Topology; every complaint knows its line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def topology(self, document: Any) -> Topology:
        if not isinstance(document, CommentedMap):
            raise TopologyError(
                f"{self.path}:1: found no keys; write 'switches:' and a switch below it"
            )
        self._keys(document, "the topology", {"switches"}, set())
        declared = document["switches"]
        if not isinstance(declared, CommentedMap) or not declared:
            self._refuse(document, "switches", "must hold at least one switch, 'name: {keys}'")
        if len(declared) > MAX_SWITCHES:
            self._refuse(document, "switches", f"holds more than {MAX_SWITCHES} switches")
        switches: list[Switch] = []
        owners: dict[str, str] = {}
        nodes_before = 0
        for name in declared:
            switch = self._switch(declared, name, len(switches) + 1, nodes_before)
            own = [("node", node.name) for node in switch.nodes]
            own += [("leaf", leaf.name) for leaf in switch.leaves]
            own += [("spine", switch.spine)] * bool(switch.leaves)
            for what, of_it in own:
                if of_it in owners or of_it in declared:
                    taken_by = owners.get(of_it, of_it)
                    self._refuse(
                        declared, name, f"its {what} {of_it} has the name that {taken_by} uses"
                    )
                owners[of_it] = switch.name
            nodes_before += len(switch.nodes)
            if nodes_before > MAX_NODES:
                self._refuse(declared, name, f"makes more than {MAX_NODES} nodes in all")
            switches.append(switch)
        built = Topology(tuple(switches))
        planted = {
            place: keys
            for switch in switches
            for place, keys in self._faults(declared[switch.name], switch, built).items()
        }
        return dataclasses.replace(built, faults=planted)

    def _faults(self, entry: CommentedMap, switch: Switch, built: Topology) -> Faults:
        """What ``faults:`` of a switch says, which may name nothing of another one."""
        if "faults" not in entry:
            return {}
        declared = entry["faults"]
        if not isinstance(declared, CommentedMap):
            self._refuse(
                entry, "faults", "must hold places, 'node, leaf or switch: {fault: value}'"
            )
        found: Faults = {}
        for place in declared:
            if not isinstance(place, str) or built.places.get(place, ("", None))[1] != switch:
                own = [name for name, (_, of) in built.places.items() if of == switch]
                self._refuse(
                    declared, place, f"no node or leaf of {switch.name}; it has {' '.join(own)}"
                )
            keys = declared[place]
            if not isinstance(keys, CommentedMap) or not keys:
                self._refuse(declared, place, "must hold at least one fault, '{fault: value}'")
            found[place] = {}
            for key in keys:
                try:
                    found[place][key] = built.checked_fault(place, key, keys[key])
                except FaultError as error:
                    line = keys.lc.key(key)[0] + 1
                    raise TopologyError(f"{self.path}:{line}: {place}: {error}") from error
            excluded = faults.contradiction(found[place])
            if excluded:
                self._refuse(declared, place, excluded)
        for node, held in built.delays(found).items():
            useless = faults.nothing_waits(held)
            if useless:
                self._refuse(entry, "faults", f"{node}: {useless}")
        return found

    def _switch(self, declared: CommentedMap, name: Any, number: int, nodes_before: int) -> Switch:
        if not isinstance(name, str) or not re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", name):
            self._refuse(
                declared, name, "a switch's name is lower case letters, digits and '-' between"
            )
        entry = declared[name]
        if not isinstance(entry, CommentedMap):
            self._refuse(declared, name, "must hold link_mbps, mtu, buffer, nodes and cpus")
        required = {"link_mbps", "mtu", "buffer", "nodes", "cpus"}
        optional = {"shape", "leaves", "uplink_mbps", "mgmt_mbps", "faults"}
        self._keys(entry, f"switch {name}", required, optional)
        link_mbps = self._integer(entry, "link_mbps", 1, faults.MOST_MBPS)
        mtu = self._integer(entry, "mtu", faults.LEAST_MTU, faults.MOST_MTU)
        buffer = self._integer(entry, "buffer", mtu + ETHERNET_HEADER_BYTES, faults.MOST_BUFFER)
        count = self._integer(entry, "nodes", 2, 64)
        if len(f"{name}-{count}") > MAX_INTERFACE_NAME:
            self._refuse(
                declared,
                name,
                f"its node {name}-{count} has a name longer than {MAX_INTERFACE_NAME} characters,"
                " more than the kernel takes for an interface; choose a shorter name",
            )
        shape = default_shape(link_mbps, mtu)
        if "shape" in entry:
            shape = self._shape(entry, link_mbps, mtu)
        nodes = tuple(
            Node(
                f"{name}-{index}",
                f"198.18.{number}.{index}",
                f"198.18.0.{nodes_before + index}",
            )
            for index in range(1, count + 1)
        )
        cpus = self._integer(entry, "cpus", 1, 1024)
        leaves, uplink_mbps = self._leaves(entry, name, nodes)
        mgmt_mbps = None
        if "mgmt_mbps" in entry:
            mgmt_mbps = self._integer(entry, "mgmt_mbps", 1, faults.MOST_MBPS)
        return Switch(
            *(name, link_mbps, mtu, buffer, cpus, shape, nodes), leaves, uplink_mbps, mgmt_mbps
        )

    def _leaves(
        self, entry: CommentedMap, name: str, nodes: tuple[Node, ...]
    ) -> tuple[tuple[Leaf, ...], int | None]:
        """The leaves and the rate of their uplinks; nodes are spread over them in their order."""
        if "leaves" not in entry:
            if "uplink_mbps" in entry:
                self._refuse(entry, "uplink_mbps", "there is no uplink without leaves; add leaves")
            return (), None
        most = min(MOST_LEAVES, len(nodes) // LEAST_NODES_OF_A_LEAF)
        if most < 2:
            least = 2 * LEAST_NODES_OF_A_LEAF
            self._refuse(entry, "leaves", f"two leaves take at least {least} nodes")
        count = self._integer(entry, "leaves", 2, most)
        if "uplink_mbps" not in entry:
            self._refuse(entry, "leaves", "uplink_mbps is missing, the rate of a leaf's uplink")
        longest = f"{name}-leaf-{count}"
        if len(longest) > MAX_INTERFACE_NAME:
            self._refuse(
                entry,
                "leaves",
                f"the leaf {longest} has a name longer than {MAX_INTERFACE_NAME} characters, more"
                " than the kernel takes for a bridge; choose a shorter name for the switch",
            )
        ends = [len(nodes) * number // count for number in range(count + 1)]
        leaves = tuple(
            Leaf(f"{name}-leaf-{number}", nodes[ends[number - 1] : ends[number]])
            for number in range(1, count + 1)
        )
        return leaves, self._integer(entry, "uplink_mbps", 1, faults.MOST_MBPS)

    def _shape(self, switch: CommentedMap, link_mbps: int, mtu: int) -> Shape:
        entry = switch["shape"]
        if not isinstance(entry, CommentedMap):
            self._refuse(switch, "shape", "must hold burst, port_burst or offload")
        self._keys(entry, "shape", set(), {"burst", "port_burst", "offload"})
        shape = default_shape(link_mbps, mtu)
        for key in ("burst", "port_burst"):
            if key not in entry:
                continue
            value = (
                None
                if entry[key] is None
                else self._integer(entry, key, mtu + ETHERNET_HEADER_BYTES, faults.MOST_BUFFER)
            )
            shape = dataclasses.replace(shape, **{key: value})
        if shape.burst is None and shape.port_burst is None:
            self._refuse(switch, "shape", "leaves both ends unshaped; give one of them a burst")
        if "offload" in entry:
            if not isinstance(entry["offload"], bool):
                self._refuse(entry, "offload", f"found {entry['offload']!r}; write true or false")
            shape = dataclasses.replace(shape, offload=entry["offload"])
        return shape

    def _integer(self, entry: CommentedMap, key: str, low: int, high: int) -> int:
        value = entry[key]
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self._refuse(entry, key, f"found {value!r}; write a whole number from {low} to {high}")
        return int(value)

    def _keys(self, entry: CommentedMap, what: str, required: set[str], optional: set[str]) -> None:
        allowed = ", ".join(sorted(required | optional))
        for key in entry:
            if key not in required | optional:
                self._refuse(entry, key, f"unknown key of {what}; the keys are {allowed}")
        missing = sorted(required - set(entry))
        if missing:
            line = entry.lc.line + 1
            raise TopologyError(
                f"{self.path}:{line}: {what} has no {', '.join(missing)}; its keys are {allowed}"
            )

    def _refuse(self, entry: CommentedMap, key: Any, reason: str) -> NoReturn:
        line = entry.lc.key(key)[0] + 1
        raise TopologyError(f"{self.path}:{line}: {shortened(str(key))}: {shortened(reason)}")


def default_shape(link_mbps: int, mtu: int) -> Shape:
    """The shape of a healthy link.

    A bucket lets its fill pass above the line rate after each pause, and loses rate if it is too
    shallow for timers that wake late. At the node's end, BURST_US of the link, and at least a frame
    and what LATE_TIMER_US are worth, were measured to keep NPtcp's messages of 64 KiB and more
    between 85 and 101 % of the line rate. At the switch's end the bucket only has to hold back
    what several nodes send to one, and may be deeper.
    """
    frame = mtu + ETHERNET_HEADER_BYTES + FRAME_OVERHEAD_BYTES
    bytes_per_us = link_mbps / 8
    return Shape(
        burst=max(round(BURST_US * bytes_per_us), frame + round(LATE_TIMER_US * bytes_per_us)),
        port_burst=max(round(PORT_BURST_US * bytes_per_us), 4 * frame),
        offload=False,
    )
