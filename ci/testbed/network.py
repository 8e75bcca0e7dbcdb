"""The testbed's network: a namespace for all switches and one for each node, links by veth.

All bridges live in a namespace of their own, so that the machine's firewall and bridges are
never touched; the machine itself gets one interface, into the management network. That
interface's alias names the state folder and the topology that the network was built for, and it
is set last: a network without it is a half-built one.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci.testbed.errors import CannotRunError, StepFailedError
from ci.testbed.topology import CONTROLLER_ADDRESS, FRAME_OVERHEAD_BYTES, Node, Switch, Topology

PREFIX = "netproof-"
SWITCHES = f"{PREFIX}switches"
TWINS = f"{PREFIX}twins"
HOST_INTERFACE = "netproof0"
MANAGEMENT = "management"
MANAGEMENT_NETWORK = "198.18.0."
NAMED_NAMESPACES = Path("/run/netns")


@dataclass(frozen=True)
class Link:
    """A node's link to its switch as the kernel has it; None for what is not there."""

    address: str | None
    mtu: int | None
    node_mbps: float | None
    port_mbps: float | None

    @property
    def mbps(self) -> float | None:
        """The slower of the two ends' rates in Mbit/s; None when neither is shaped."""
        return min((r for r in (self.node_mbps, self.port_mbps) if r is not None), default=None)


def namespace(node: str) -> str:
    """The name of the network namespace of ``node``."""
    return PREFIX + node


def existing() -> list[str]:
    """The names of all testbed namespaces on this machine, whoever made them."""
    if not NAMED_NAMESPACES.is_dir():
        return []
    return sorted(path.name for path in NAMED_NAMESPACES.iterdir() if path.name.startswith(PREFIX))


def inodes() -> set[int]:
    """The kernel's numbers of the testbed namespaces on this machine."""
    own = os.stat("/proc/self/ns/net")
    stats = [os.stat(NAMED_NAMESPACES / name) for name in existing()]
    return {s.st_ino for s in stats if s.st_dev == own.st_dev and s.st_ino != own.st_ino}


def built_for() -> str | None:
    """The alias of the machine's management interface; None without one."""
    for link in json.loads(_run(["ip", "-json", "link", "show"]) or "[]"):
        if link["ifname"] == HOST_INTERFACE:
            return link.get("ifalias")
    return None


def probe() -> None:
    """CannotRunError when the kernel lacks namespaces, bridges, veth or the tbf discipline."""
    tries = {
        "network, UTS, mount and IPC namespaces": ["sh", "-c", ":"],
        "veth links (CONFIG_VETH)": ["ip", "link", "add", "name", "one", "type", "veth"],
        "bridges (CONFIG_BRIDGE)": ["ip", "link", "add", "name", "one", "type", "bridge"],
        "the tbf queueing discipline (CONFIG_NET_SCH_TBF)": [
            "tc",
            *_bucket("lo", 1000, 6000, 10**5),
        ],
    }
    for what, command in tries.items():
        tried = ["unshare", "--net", "--uts", "--mount", "--ipc", *command]
        result = subprocess.run(tried, capture_output=True, text=True)
        if result.returncode:
            said = " ".join(result.stderr.split()) or f"exit status {result.returncode}"
            raise CannotRunError(
                f"this kernel gives us no {what}, which the testbed is made of; boot one that"
                f" has them, or allow them to this container ('{' '.join(command)}' said: {said})"
            )
    for interface in json.loads(_run(["ip", "-json", "address", "show"])):
        for address in interface["addr_info"]:
            taken = address.get("local", "").startswith(MANAGEMENT_NETWORK)
            if taken and interface["ifname"] != HOST_INTERFACE:
                raise CannotRunError(
                    f"interface {interface['ifname']} has the address {address['local']}, of the"
                    f" testbed's management network {MANAGEMENT_NETWORK}0/24: take it off there"
                )


def build(topology: Topology, alias: str) -> None:
    """Makes all namespaces and links; ``alias`` goes on the machine's interface at the end."""
    twins = [twin.healthy for twin in topology.twins]
    made = [f"netns add {SWITCHES}", f"netns add {TWINS}"]
    made += [f"netns add {namespace(node.name)}" for node in topology.nodes]
    made += [f"netns add {namespace(end.name)}" for twin in twins for end in twin.nodes]
    _batch(None, made)
    inside = [_bridge(MANAGEMENT)]
    inside += [_bridge(switch.name, switch.mtu) for switch in topology.switches]
    _batch(SWITCHES, inside)
    _batch(TWINS, [_bridge(twin.name, twin.mtu) for twin in twins])
    host = f"name {HOST_INTERFACE} type veth peer name machine netns {SWITCHES}"
    _batch(None, [f"link add {host}"])
    ports = [f"link set dev machine master {MANAGEMENT} up"]
    for index, node in enumerate(topology.nodes):
        peer = namespace(node.name)
        _batch(SWITCHES, [f"link add name m{index} type veth peer name eth0 netns {peer}"])
        ports.append(f"link set dev m{index} master {MANAGEMENT} up")
        up = [f"address add {node.management_address}/24 dev eth0", "link set dev eth0 up"]
        _batch(peer, ["link set dev lo up", *up])
    _batch(SWITCHES, ports)
    for switch in topology.switches:
        for node in switch.nodes:
            _connect(SWITCHES, node.name, switch, node)
    for twin in twins:
        for number, end in enumerate(twin.nodes, 1):
            _connect(TWINS, f"{twin.name}-{number}", twin, end)
    _batch(
        None,
        [
            f"address add {CONTROLLER_ADDRESS}/24 dev {HOST_INTERFACE}",
            f"link set dev {HOST_INTERFACE} up",
        ],
    )
    _run(["ip", "link", "set", "dev", HOST_INTERFACE, "alias", alias])


def _connect(where: str, port: str, switch: Switch, node: Node) -> None:
    """Joins a node's eth1 to ``port`` of its switch, in namespace ``where``, and shapes both."""
    peer = namespace(node.name)
    veth = f"mtu {switch.mtu} type veth peer name eth1 mtu {switch.mtu} netns {peer}"
    _batch(where, [f"link add name {port} {veth}", f"link set dev {port} master {switch.name} up"])
    _batch(peer, [f"address add {node.address}/24 dev eth1", "link set dev eth1 up"])
    rate, shape, limit = switch.link_mbps, switch.shape, switch.buffer
    if shape.burst is not None:
        _inside(peer, ["tc", *_bucket("eth1", rate, shape.burst, limit)])
    if shape.port_burst is not None:
        _inside(where, ["tc", *_bucket(port, rate, shape.port_burst, limit)])
    if not shape.offload:
        _inside(peer, ["ethtool", "-K", "eth1", "tso", "off", "gso", "off"])


def remove() -> int:
    """Takes away every testbed namespace and the machine's interface; returns their number.

    Links and bridges go with the namespace that they are in.
    """
    present = {link["ifname"] for link in json.loads(_run(["ip", "-json", "link", "show"]))}
    removed = 0
    if HOST_INTERFACE in present:
        _run(["ip", "link", "delete", "dev", HOST_INTERFACE])
        removed += 1
    for name in existing():
        _run(["ip", "netns", "delete", name])
        removed += 1
    return removed


def forget_namespace_folder() -> None:
    """Takes away the folder of named namespaces if it is empty."""
    if NAMED_NAMESPACES.is_dir() and not any(NAMED_NAMESPACES.iterdir()):
        # ip mounts the folder on itself, below a shared mount even twice. os.path.ismount does not
        # see a mount of the same file system.
        points = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
        for _ in range(points.count(str(NAMED_NAMESPACES))):
            _run(["umount", str(NAMED_NAMESPACES)])
        NAMED_NAMESPACES.rmdir()


def links(topology: Topology) -> dict[str, Link]:
    """What the kernel says of the link of each node, and of each twin's end, by its name."""
    present = set(existing())
    ports = _rates(SWITCHES) if SWITCHES in present else {}
    twins = _rates(TWINS) if TWINS in present else {}
    found = {node.name: _link(node, present, ports.get(node.name)) for node in topology.nodes}
    for twin in topology.twins:
        for number, end in enumerate(twin.ends, 1):
            port = f"{twin.healthy.name}-{number}"
            found[end.name] = _link(end, present, twins.get(port))
    return found


def _link(node: Node, present: set[str], port_mbps: float | None) -> Link:
    name = namespace(node.name)
    address = mtu = node_mbps = None
    if name in present:
        for link in json.loads(_inside(name, ["ip", "-json", "address", "show"])):
            if link["ifname"] == "eth1" and link["operstate"] == "UP":
                mtu = link["mtu"]
                locals_ = [a["local"] for a in link["addr_info"] if a["family"] == "inet"]
                address = locals_[0] if locals_ else None
        node_mbps = _rates(name).get("eth1")
    return Link(address, mtu, node_mbps, port_mbps)


def faults(topology: Topology, found: dict[str, Link]) -> list[str]:
    """In which ways the links ``found`` are not those of the topology, a sentence each."""
    wrong = []
    for switch in (*topology.switches, *(twin.healthy for twin in topology.twins)):
        want_node = switch.link_mbps if switch.shape.burst is not None else None
        want_port = switch.link_mbps if switch.shape.port_burst is not None else None
        for node in switch.nodes:
            link = found[node.name]
            wanted = {
                "address": (link.address, node.address),
                "MTU": (link.mtu, switch.mtu),
                "rate of the node's end": (link.node_mbps, want_node),
                "rate of the switch's end": (link.port_mbps, want_port),
            }
            wrong += [
                f"{node.name}: {what} is {is_} and should be {should}"
                for what, (is_, should) in wanted.items()
                if is_ != should
            ]
    return wrong


def _bridge(name: str, mtu: int | None = None) -> str:
    # A bridge takes the least MTU of its ports unless it was given one.
    return f"link add name {name} up{f' mtu {mtu}' if mtu else ''} type bridge"


def _bucket(interface: str, rate_mbps: int, burst: int, limit: int) -> list[str]:
    """tc's words for a token bucket with a queue of ``limit`` bytes."""
    sizes = f"rate {rate_mbps}mbit burst {burst} limit {limit} overhead {FRAME_OVERHEAD_BYTES}"
    return ["qdisc", "replace", "dev", interface, "root", "tbf", *sizes.split()]


def _rates(name: str) -> dict[str, float]:
    """Mbit/s of the tbf on each interface of the namespace ``name``."""
    disciplines: list[dict[str, Any]] = json.loads(_inside(name, ["tc", "-json", "qdisc", "show"]))
    return {
        entry["dev"]: entry["options"]["rate"] * 8 / 1e6
        for entry in disciplines
        if entry["kind"] == "tbf"
    }


def _batch(name: str | None, commands: list[str]) -> None:
    """Runs lines of ``ip`` in one go, in the namespace ``name`` or in the machine's own."""
    text = "\n".join(commands) + "\n"
    words = ["ip", "-batch", "-"]
    if name is None:
        _run(words, text)
    else:
        _inside(name, words, text)


def _inside(name: str, command: list[str], text: str | None = None) -> str:
    return _run(["nsenter", f"--net={NAMED_NAMESPACES / name}", *command], text)


def _run(command: list[str], text: str | None = None) -> str:
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    if result.returncode:
        said = " ".join(result.stderr.split()) or f"exit status {result.returncode}"
        raise StepFailedError(f"network: '{' '.join(command)}' failed: {said}")
    return result.stdout
