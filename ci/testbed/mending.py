"""Compare the kernel's links with the testbed's, and give the commands that correct them.

``network`` reads the kernel, and runs the commands of ``orders``.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ci.testbed.cables import MGMT_PORT, RANDOM_RANGE, SWITCHES, Bucket, Cable, End
from ci.testbed.topology import FRAME_OVERHEAD_BYTES


@dataclass(frozen=True)
class Seen:
    """An end as the kernel has it; ``drop`` is None if another filter than a testbed's is there."""

    mtu: int
    up: bool
    carrier: bool
    address: str | None
    bucket: Bucket | None
    drop: int | None


@dataclass
class Orders:
    """Lines for ``ip -batch`` and ``tc -batch`` in one namespace, and shell commands after them."""

    ip: list[str] = field(default_factory=list)
    tc: list[str] = field(default_factory=list)
    shell: list[str] = field(default_factory=list)

    def script(self) -> str:
        """Return a shell script of them that ends at the first failure."""
        lines = ["set -e"]
        for program, given in (("ip", self.ip), ("tc", self.tc)):
            if given:
                lines += [f"{program} -batch - <<'END'", *given, "END"]
        return "\n".join([*lines, *self.shell]) + "\n"


def hardware_address(address: str) -> str:
    """Return the locally administered hardware address for an IP address."""
    return ":".join(["02", "00", *(f"{int(part):02x}" for part in address.split("."))])


def knowing(interface: str, neighbours: Iterable[str]) -> list[str]:
    """Return ``ip``'s lines for permanent neighbours.

    All namespaces share one table of learned ones, with room for 1,024: 64 nodes that talk to each
    other need 4,032.
    """
    return [
        f"neigh add {address} lladdr {hardware_address(address)} nud permanent dev {interface}"
        for address in neighbours
    ]


def differences(wanted: Iterable[Cable], seen: Mapping[tuple[str, str], Seen]) -> list[str]:
    """Return a sentence for each way in which the links are not as ``wanted``."""
    wrong: list[str] = []
    known: set[tuple[str, str]] = set()
    for cable in wanted:
        for end in cable.ends:
            known |= {end.place, (end.where, end.bridge or "")}
            found = seen.get(end.place)
            if found is None:
                wrong.append(f"{cable.name}: the {end.whose} end of its link is not there")
                continue
            wrong += [
                f"{cable.name}: {what} is {is_} and should be {should}"
                for what, is_, should in _compared(cable, end, found)
                if is_ != should
            ]
    wrong += [
        f"{name} is there, of a second management network that should not be"
        for _, name in superfluous(known, seen)
    ]
    return wrong


def _compared(cable: Cable, end: End, found: Seen) -> Iterator[tuple[str, object, object]]:
    def mbps(bucket: Bucket | None) -> str | None:
        return f"{bucket.mbps:g}" if bucket else None

    def lost(drop: int | None) -> str:
        return "not known" if drop is None else f"{drop / RANDOM_RANGE:.6f}"

    if end.address is not None:
        yield "address", found.address, end.address
    yield f"MTU of the {end.whose} end", found.mtu, end.mtu
    yield f"rate of the {end.whose} end", mbps(found.bucket), mbps(end.bucket)
    if found.bucket and end.bucket:
        yield f"buffer of the {end.whose} end", found.bucket.limit, end.bucket.limit
    yield f"share of frames lost at the {end.whose} end", lost(found.drop), lost(end.drop)
    yield f"state of the {end.whose} end", *("up" if one else "down" for one in (found.up, end.up))
    if cable.near is end:
        yield "carrier", *("on" if one else "off" for one in (found.carrier, cable.connected))


def superfluous(
    wanted: Iterable[tuple[str, str]], seen: Iterable[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return existing bridges and ports of second management networks that are not ``wanted``."""
    there = (one for one in seen if one[0] == SWITCHES and one[1].startswith(MGMT_PORT))
    return sorted(set(there) - set(wanted))


def missing(wanted: Iterable[Cable], seen: Mapping[tuple[str, str], Seen]) -> list[Cable]:
    """Return links that lack an end."""
    return [cable for cable in wanted if any(end.place not in seen for end in cable.ends)]


def orders(wanted: Iterable[Cable], seen: Mapping[tuple[str, str], Seen]) -> dict[str, Orders]:
    """Return the commands that make existing links as ``wanted``, by namespace."""
    found: dict[str, Orders] = {}
    for end in (end for cable in wanted for end in cable.ends):
        if end.place in seen:
            _order(end, seen[end.place], found.setdefault(end.where, Orders()))
    return {where: order for where, order in found.items() if order.ip or order.tc}


def _order(end: End, now: Seen, order: Orders) -> None:
    at = f"dev {end.interface}"
    if now.mtu != end.mtu:
        order.ip.append(f"link set {at} mtu {end.mtu}")
    if now.up != end.up:
        order.ip.append(f"link set {at} {'up' if end.up else 'down'}")
    if end.bucket is None and now.bucket is not None:
        order.tc.append(f"qdisc del {at} root")
    elif end.bucket is not None and (
        now.bucket is None
        or (now.bucket.rate, now.bucket.limit) != (end.bucket.rate, end.bucket.limit)
    ):
        order.tc.append(
            f"qdisc replace {at} root tbf rate {end.bucket.rate * 8}bit burst {end.bucket.burst}"
            f" limit {end.bucket.limit} overhead {FRAME_OVERHEAD_BYTES}"
        )
    if now.drop != end.drop:
        if now.drop != 0:
            order.tc.append(f"qdisc del {at} clsact")
        if end.drop:
            order.tc.append(f"qdisc add {at} clsact")
            order.tc += [
                f"filter add {at} {way} prio 1 bpf direct-action bytecode '{_lottery(end.drop)}'"
                for way in ("ingress", "egress")
            ]


def _lottery(drop: int) -> str:
    """Return a classic BPF program in tc's notation that drops ``drop`` of 2³² frames at random.

    Each instruction is code, jump if true, jump if false, operand: load a random number of 32
    bits, skip one if it is at least ``drop``, return TC_ACT_SHOT, return TC_ACT_OK.
    """
    return f"4,32 0 0 {2**32 - 4096 + 56},53 1 0 {drop},6 0 0 2,6 0 0 0"


def odds(program: Any) -> int | None:
    """Return ``drop`` of a filter's bytecode in ``tc -json``; None for any other program."""
    try:
        found = [(one["code"], one["jt"], one["jf"], one["k"]) for one in program["insns"]]
        drop = int(found[1][3])
    except (IndexError, KeyError, TypeError, ValueError):
        return None
    _, *ours = _lottery(drop).split(",")
    return drop if found == [tuple(map(int, one.split())) for one in ours] else None


def making(wanted: Iterable[Cable]) -> tuple[dict[str, Orders], dict[str, Orders]]:
    """Return the commands that make missing links: first at the far ends, then at both."""
    first: dict[str, Orders] = {}
    fresh: dict[tuple[str, str], Seen] = {}
    new = list(wanted)
    for cable in new:
        near, far = cable.ends
        peer = f"peer name {near.interface} mtu {near.mtu}"
        if near.address is not None:
            peer += f" address {hardware_address(near.address)}"
        if near.where != far.where:
            peer += f" netns {near.where}"
        line = f"link add name {far.interface} mtu {far.mtu} type veth {peer}"
        first.setdefault(far.where, Orders()).ip.append(line)
        fresh |= {end.place: Seen(end.mtu, False, False, None, None, 0) for end in cable.ends}
    then = orders(new, fresh)
    for end in (end for cable in new for end in cable.ends):
        order = then.setdefault(end.where, Orders())
        if end.bridge is not None:
            order.ip.insert(0, f"link set dev {end.interface} master {end.bridge}")
        if end.address is not None:
            order.ip.append(f"address add {end.address}/24 dev {end.interface}")
            order.ip += knowing(end.interface, end.neighbours)
        if not end.offload:
            words = ["ethtool", "-K", end.interface, "tso", "off", "gso", "off"]
            order.shell.append(shlex.join(words))
    return first, then
