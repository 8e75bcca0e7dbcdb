"""The testbed's network: a namespace for all switches and one for each node, links by veth.

All bridges are in a namespace of their own, so that the machine's firewall and bridges are never
touched. The machine itself gets one interface, into the management network. Its alias names the
state folder, and is set last: a network without it is incomplete.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ci.testbed import cables, mending, processes
from ci.testbed.cables import PREFIX, SWITCHES, TWINS, Bucket, Cable, namespace
from ci.testbed.errors import CannotRunError, StepFailedError
from ci.testbed.faults import Faults
from ci.testbed.mending import Orders, Seen
from ci.testbed.processes import Process
from ci.testbed.topology import CONTROLLER_ADDRESS, Topology

HOST_INTERFACE = "netproof0"
MANAGEMENT = "Management"
MANAGEMENT_NETWORK = "198.18.0."
MACHINE = "Machine"
NAMED_NAMESPACES = Path("/run/netns")
SETTLE_SECONDS = 20.0
"""Time limit for a carrier to come or go.

The kernel gathers such changes for a second; on a busy machine a reading takes longer.
"""
POLL_SECONDS = 0.05
AT_ONCE = 2 * (os.cpu_count() or 1)
"""Nodes that are set up or read at the same time."""


def existing() -> list[str]:
    """Return the names of all testbed namespaces on this machine, whoever made them."""
    if not NAMED_NAMESPACES.is_dir():
        return []
    return sorted(path.name for path in NAMED_NAMESPACES.iterdir() if path.name.startswith(PREFIX))


def by_inode() -> dict[int, str]:
    """Return the names of nodes and other owners by the number of their namespace."""
    own = os.stat("/proc/self/ns/net")
    stats = [(name, os.stat(NAMED_NAMESPACES / name)) for name in existing()]
    return {s.st_ino: name.removeprefix(PREFIX) for name, s in stats if s.st_dev == own.st_dev}


def inodes() -> set[int]:
    """Return the kernel's numbers of the testbed namespaces on this machine, but this process'."""
    return by_inode().keys() - {os.stat("/proc/self/ns/net").st_ino}


def in_nodes(state: Path, role: str) -> dict[str, list[Process]]:
    """Return the processes of a role of the testbed in the folder ``state``, by node."""
    names = by_inode()
    found: dict[str, list[Process]] = {}
    for process in processes.running():
        if (process.state, process.role) == (str(state), role) and process.network in names:
            found.setdefault(names[process.network], []).append(process)
    return found


def built_for() -> str | None:
    """Return the alias of the machine's management interface; None without one."""
    for link in json.loads(_run(["ip", "-json", "link", "show"]) or "[]"):
        if link["ifname"] == HOST_INTERFACE:
            return link.get("ifalias")
    return None


def probe() -> None:
    """Raise CannotRunError if the kernel lacks namespaces, bridges, veth or the tbf discipline."""
    tries = {
        "network, UTS, mount and IPC namespaces": ["sh", "-c", ":"],
        "veth links (CONFIG_VETH)": ["ip", "link", "add", "name", "one", "type", "veth"],
        "bridges (CONFIG_BRIDGE)": ["ip", "link", "add", "name", "one", "type", "bridge"],
        "the tbf queueing discipline (CONFIG_NET_SCH_TBF)": [
            "tc",
            *f"qdisc replace dev lo root tbf rate 1gbit burst 6000 limit {10**5}".split(),
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


def probe_loss() -> None:
    """Raise CannotRunError if the kernel cannot lose frames: by clsact and its BPF classifier."""
    lose = " && ".join(
        [
            "tc qdisc add dev lo clsact",
            "tc filter add dev lo ingress bpf direct-action bytecode '1,6 0 0 0'",
        ]
    )
    tried = subprocess.run(["unshare", "--net", "sh", "-c", lose], capture_output=True, text=True)
    if tried.returncode:
        raise CannotRunError(
            "this kernel cannot lose frames for us: boot one with CONFIG_NET_SCH_INGRESS and"
            f" CONFIG_NET_CLS_BPF ('{lose}' said: {' '.join(tried.stderr.split())})"
        )


def build(topology: Topology, planted: Faults, alias: str) -> None:
    """Make all namespaces and links with the ``planted`` faults.

    ``alias`` is set on the machine's interface at the end.
    """
    wanted = cables.cables(topology, planted)
    nodes = [namespace(node.name) for node in topology.nodes]
    names = dict.fromkeys(end.where for cable in wanted for end in cable.ends)
    _run(["ip", "-batch", "-"], _lines(f"netns add {name}" for name in names))
    ports = [f"M{index}" for index in range(len(nodes))]
    peer = f"type veth peer name {MACHINE} netns {SWITCHES}"
    own = f"address {mending.hardware_address(CONTROLLER_ADDRESS)}"
    _run(["ip", "-batch", "-"], f"link add name {HOST_INTERFACE} {own} {peer}\n")
    bridges = cables.bridges(topology, planted)
    lines = [f"link add name {MANAGEMENT} up type bridge"]
    managed = [node.management_address for node in topology.nodes]
    lines += [
        f"link add name {port} type veth peer name eth0 address {mending.hardware_address(address)}"
        f" netns {node}"
        for port, node, address in zip(ports, nodes, managed, strict=True)
    ]
    lines += [f"link set dev {port} master {MANAGEMENT} up" for port in (MACHINE, *ports)]
    base = {SWITCHES: Orders(ip=lines), TWINS: Orders()}
    for (where, name), mtu in bridges.items():
        base[where].ip.append(_bridge(name, mtu))
    for address, name in zip(managed, nodes, strict=True):
        up = ["link set dev lo up", f"address add {address}/24 dev eth0", "link set dev eth0 up"]
        others = [CONTROLLER_ADDRESS, *(other for other in managed if other != address)]
        base[name] = Orders(ip=up + mending.knowing("eth0", others))
    _make(wanted, base)
    _wait_until_right(wanted)
    host = [
        f"address add {CONTROLLER_ADDRESS}/24 dev {HOST_INTERFACE}",
        f"link set dev {HOST_INTERFACE} up",
        *mending.knowing(HOST_INTERFACE, managed),
    ]
    _run(["ip", "-batch", "-"], _lines(host))
    _run(["ip", "link", "set", "dev", HOST_INTERFACE, "alias", alias])


def mend(topology: Topology, planted: Faults) -> bool:
    """Correct links that differ from the topology with the ``planted`` faults.

    Return False if none did. Raises StepFailedError if that fails, as for a link without an end.
    """
    wanted = cables.cables(topology, planted)
    seen = read(wanted)
    if not mending.differences(wanted, seen):
        return False
    missing = mending.missing(wanted, seen)
    lost = [cable.name for cable in missing if cable.near.interface != cables.MGMT]
    if lost:
        raise StepFailedError(f"network: {', '.join(lost)}: an end of the link is gone")
    orders = mending.orders(wanted, seen)
    _at_once(lambda where: _carry_out(where, orders[where]), orders)
    there = _interfaces(SWITCHES)
    bridges = cables.bridges(topology, planted)
    new = [
        _bridge(name, mtu)
        for (where, name), mtu in bridges.items()
        if where == SWITCHES and name not in there
    ]
    _make(missing, {SWITCHES: Orders(ip=new)})
    known = {end.place for cable in wanted for end in cable.ends} | set(bridges)
    gone = mending.superfluous(known, [(SWITCHES, name) for name in there])
    _carry_out(SWITCHES, Orders(ip=[f"link delete dev {name}" for _, name in gone]))
    _wait_until_right(wanted)
    return True


def _make(new: Iterable[Cable], base: dict[str, Orders]) -> None:
    """Make links, after the commands of ``base`` in their namespaces."""
    first, then = mending.making(new)
    shared = (SWITCHES, TWINS)
    for where in shared:
        bridges = base.get(where, Orders()).ip
        _carry_out(where, Orders(ip=bridges + first.get(where, Orders()).ip))
        _carry_out(where, then.get(where, Orders()))
    inside = {
        name: Orders(base.get(name, Orders()).ip + order.ip, order.tc, order.shell)
        for name in {*base, *then}
        for order in [then.get(name, Orders())]
        if name not in shared
    }
    _at_once(lambda name: _carry_out(name, inside[name]), inside)


def _carry_out(where: str, order: Orders) -> None:
    if order.ip or order.tc or order.shell:
        _inside(where, ["sh", "-s"], order.script())


def _at_once(work: Callable[[str], Any], names: Iterable[str]) -> list[Any]:
    """Do ``work`` for all names, several at a time; return the results in their order."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(work, names))


def _wait_until_right(wanted: Iterable[Cable]) -> None:
    """Read the links until they are as ``wanted``. Raises StepFailedError if they never are."""
    todo = tuple(wanted)
    deadline = time.monotonic() + SETTLE_SECONDS
    while wrong := mending.differences(todo, read(todo)):
        if time.monotonic() > deadline:
            raise StepFailedError(f"network: the kernel has it otherwise: {'; '.join(wrong)}")
        time.sleep(POLL_SECONDS)


def remove() -> int:
    """Remove every testbed namespace and the machine's interface; return their number.

    Links and bridges end with their namespaces.
    """
    present = {link["ifname"] for link in json.loads(_run(["ip", "-json", "link", "show"]))}
    removed = 0
    if HOST_INTERFACE in present:
        _run(["ip", "link", "delete", "dev", HOST_INTERFACE])
        removed += 1
    names = existing()
    _run(["ip", "-batch", "-"], _lines(f"netns delete {name}" for name in names))
    return removed + len(names)


def forget_namespace_folder() -> None:
    """Remove the folder of named namespaces if it is empty."""
    if NAMED_NAMESPACES.is_dir() and not any(NAMED_NAMESPACES.iterdir()):
        # ip mounts the folder on itself, below a shared mount even twice. os.path.ismount does not
        # see a mount of the same file system.
        points = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
        for _ in range(points.count(str(NAMED_NAMESPACES))):
            _run(["umount", str(NAMED_NAMESPACES)])
        NAMED_NAMESPACES.rmdir()


def read(wanted: Iterable[Cable]) -> dict[tuple[str, str], Seen]:
    """Read every interface in the namespaces of these links from the kernel."""
    present = set(existing())
    named = dict.fromkeys(end.where for cable in wanted for end in cable.ends)
    names = [name for name in named if name in present]
    return {
        (name, interface): seen
        for name, of_it in zip(names, _at_once(_look, names), strict=True)
        for interface, seen in of_it.items()
    }


def _look(name: str) -> dict[str, Seen]:
    """Read the interfaces of the namespace ``name``."""
    text = _inside(name, ["sh", "-c", "ip -json address show && tc -json -raw qdisc show"])
    # Each prints one list, the first on a line of its own.
    links, disciplines = (json.loads(part) for part in text.split("\n", 1))
    buckets = {
        entry["dev"]: Bucket(*(int(entry["options"][key]) for key in ("rate", "burst", "limit")))
        for entry in disciplines
        if entry["kind"] == "tbf"
    }
    filtered = {entry["dev"] for entry in disciplines if entry["kind"] == "clsact"}
    found = {}
    for link in links:
        interface = link["ifname"]
        addresses = [a["local"] for a in link["addr_info"] if a["family"] == "inet"]
        found[interface] = Seen(
            mtu=link["mtu"],
            up="UP" in link["flags"],
            carrier=link["operstate"] == "UP",
            address=addresses[0] if addresses else None,
            bucket=buckets.get(interface),
            drop=_drop(name, interface) if interface in filtered else 0,
        )
    return found


def _drop(name: str, interface: str) -> int | None:
    """Read the frames of 2³² that an interface loses; None if it has other filters."""
    odds = set()
    for way in ("ingress", "egress"):
        text = _inside(name, ["tc", "-json", "filter", "show", "dev", interface, way])
        filters = [entry["options"] for entry in json.loads(text or "[]") if "options" in entry]
        odds |= {mending.odds(one.get("bytecode")) for one in filters} or {None}
    return odds.pop() if len(odds) == 1 else None


def _interfaces(name: str) -> set[str]:
    text = _inside(name, ["ip", "-json", "link", "show"])
    return {link["ifname"] for link in json.loads(text)}


def _bridge(name: str, mtu: int) -> str:
    # A bridge takes the least MTU of its ports unless it was given one.
    return f"link add name {name} up mtu {mtu} type bridge"


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def in_node(name: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the network of the node ``name``, whether or not it succeeds."""
    enter = ["nsenter", f"--net={NAMED_NAMESPACES / namespace(name)}"]
    return subprocess.run([*enter, *command], capture_output=True, text=True)


def _inside(name: str, command: list[str], text: str | None = None) -> str:
    return _run(["nsenter", f"--net={NAMED_NAMESPACES / name}", *command], text)


def _run(command: list[str], text: str | None = None) -> str:
    result = subprocess.run(command, input=text, capture_output=True, text=True)
    if result.returncode:
        said = " ".join(result.stderr.split()) or f"exit status {result.returncode}"
        raise StepFailedError(f"network: '{' '.join(command)}' failed: {said}")
    return result.stdout
