"""Read a topology file, and refuse a wrong one with line and remedy."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import MarkedYAMLError, YAMLError

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
from netproof.intake import loading, yaml_reading

MAX_NODES = 200
MAX_SWITCHES = 100
MAX_INTERFACE_NAME = 15
MOST_LEAVES = 32
LEAST_NODES_OF_A_LEAF = 2
MOST_RAILS = 2


def load(path: Path) -> Topology:
    """Read the topology in the YAML file ``path``.

    Raises TopologyError with file, line, key and remedy for unknown, missing or wrong entries.
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
    """Turns the YAML document into a Topology; every error has its line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def topology(self, document: Any) -> Topology:
        if not isinstance(document, CommentedMap):
            raise TopologyError(
                f"{self.path}:1: found no keys; write 'switches:' and a switch below it"
            )
        self._keys(document, "the topology", {"switches"}, {"domain", "prolog_prints"})
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
        built = Topology(
            tuple(switches),
            domain=self._text(document, "domain", r"[a-z0-9-]+(\.[a-z0-9-]+)*"),
            prolog_prints=self._text(document, "prolog_prints", r"[ -&(-~]+"),
        )
        planted = {
            place: keys
            for switch in switches
            for place, keys in self._faults(declared[switch.name], switch, built).items()
        }
        return dataclasses.replace(built, faults=planted)

    def _faults(self, entry: CommentedMap, switch: Switch, built: Topology) -> Faults:
        """Read ``faults:`` of a switch, which may name no place of another switch."""
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
        optional = {"shape", "leaves", "uplink_mbps", "mgmt_mbps", "rails", "max_nodes", "faults"}
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
        rails = self._integer(entry, "rails", 1, MOST_RAILS) if "rails" in entry else 1
        if rails > 1 and "leaves" in entry:
            self._refuse(entry, "rails", "a switch with leaves has one rail; take out leaves")
        nodes = tuple(
            Node(
                f"{name}-{index}",
                f"198.18.{number}.{index}",
                f"198.18.0.{nodes_before + index}",
                f"198.18.{MAX_SWITCHES + number}.{index}" if rails > 1 else None,
            )
            for index in range(1, count + 1)
        )
        cpus = self._integer(entry, "cpus", 1, 1024)
        leaves, uplink_mbps = self._leaves(entry, name, nodes)
        mgmt_mbps = None
        if "mgmt_mbps" in entry:
            mgmt_mbps = self._integer(entry, "mgmt_mbps", 1, faults.MOST_MBPS)
        max_nodes = self._integer(entry, "max_nodes", 1, count) if "max_nodes" in entry else None
        return Switch(
            *(name, link_mbps, mtu, buffer, cpus, shape, nodes),
            *(leaves, uplink_mbps, mgmt_mbps, rails, max_nodes),
        )

    def _leaves(
        self, entry: CommentedMap, name: str, nodes: tuple[Node, ...]
    ) -> tuple[tuple[Leaf, ...], int | None]:
        """Read the leaves and the rate of their uplinks; leaves share the nodes in their order."""
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

    def _text(self, entry: CommentedMap, key: str, form: str) -> str:
        value = entry.get(key, "")
        if value and not (isinstance(value, str) and re.fullmatch(form, value)):
            self._refuse(entry, key, f"found {value!r}; write text that fits {form}")
        return value

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
