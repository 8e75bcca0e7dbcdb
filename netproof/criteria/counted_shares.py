"""Shares of a node's packets or segments that were damaged, dropped or sent again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from netproof.criteria.interface import CountedLaunch
from netproof.measurement.counters import (
    DRIVER,
    INFINIBAND,
    INTERFACE,
    SOFTNET,
    TCP,
    Counters,
    CounterSource,
    NodeCounters,
)

_PORT_ERRORS = tuple(
    f"counters/{name}"
    for name in (
        *("symbol_error", "link_error_recovery", "port_rcv_errors"),
        *("port_rcv_remote_physical_errors", "local_link_integrity_errors"),
        *("excessive_buffer_overrun_errors", "port_xmit_constraint_errors"),
        "port_rcv_constraint_errors",
    )
)
_PORT_DROPS = ("counters/port_xmit_discards",)
_PORT_AGAIN = (
    *("hw_counters/packet_seq_err", "hw_counters/implied_nak_seq_err"),
    "hw_counters/local_ack_timeout_err",
)
_PORT_PACKETS = ("counters/port_xmit_packets", "counters/port_rcv_packets")
_DRIVER_DROPS = ("rx_discards_phy", "tx_discards_phy")
_INTERFACE_PACKETS = ("rx_packets", "tx_packets")


@dataclass(frozen=True)
class Share:
    """Packets counted on a node, of all; None where not known, and ``why`` has the reason."""

    node: str
    interface: str
    count: int | None
    of: int | None
    why: str = ""

    def __add__(self, other: Share) -> Share:
        """Return the sum; unknown where either is."""
        if self.count is None or self.of is None:
            return self
        if other.count is None or other.of is None:
            return other
        return replace(self, count=self.count + other.count, of=self.of + other.of)

    @property
    def value(self) -> float:
        """Share, 0 where nothing was sent."""
        return (self.count or 0) / self.of if self.of else 0.0


def sent_again(counters: Counters, node: str) -> Share:
    """Return the TCP segments that a node had to send again, of all that it sent.

    Segments that receivers reported as duplicates (D-SACK, RFC 2883) were late and not lost, as
    where frames overtake each other, and are subtracted.
    """

    def value(counter: str) -> int | None:
        return counters.value(node, TCP, "", counter)

    again, sent = value("Tcp.RetransSegs"), value("Tcp.OutSegs")
    if again is None or sent is None:
        missing = "Tcp.RetransSegs" if again is None else "Tcp.OutSegs"
        return Share(node, "", None, None, counters.why(node, TCP, "", missing))
    # Kernels before 5.9 count reports and not the segments in them, which are as many or more.
    for name in ("TcpExt.TCPDSACKRecvSegs", "TcpExt.TCPDSACKRecv"):
        late = value(name)
        if late is not None:
            break
    # Linux leaves out of OutSegs what is sent again.
    return Share(node, "", max(0, again - (late or 0)), sent + again)


def ports_of(node: NodeCounters, rails: Sequence[str]) -> tuple[CounterSource, ...]:
    """Return the ports of InfiniBand and RoCE devices that are rails, or whose interfaces are."""
    return tuple(
        port
        for port in node.of_kind(INFINIBAND)
        if {port.name, port.name.partition("/")[0], *port.interfaces} & set(rails)
    )


def sum_of(
    counters: Counters, source: CounterSource, names: Iterable[str]
) -> tuple[int | None, str]:
    """Return the sum of several counters' increases; None, and why, where one is not known.

    A counter that the card does not have counts nothing.
    """
    total = 0
    for name in names:
        value = counters.of_source(source, name)
        if value is None and name in source.absent:
            return None, f"{name} {source.absent[name]}"
        total += value or 0
    return total, ""


def _share(
    counters: Counters,
    node: str,
    source: CounterSource,
    names: Iterable[str],
    packets: Iterable[str],
) -> Share:
    count, why = sum_of(counters, source, names)
    of, why_of = sum_of(counters, source, packets)
    return Share(node, source.name, count, of, why or why_of)


def errors_of(counters: Counters, node: NodeCounters, rails: Sequence[str]) -> Iterator[Share]:
    """Yield the packets with errors at each of the rails, and at their ports."""
    names = ("rx_errs", "tx_errs", "tx_colls")
    yield from _on_interfaces(counters, node, rails, names)
    for port in ports_of(node, rails):
        yield _share(counters, node.node, port, _PORT_ERRORS, _PORT_PACKETS)


def drops_of(counters: Counters, node: NodeCounters, rails: Sequence[str]) -> Iterator[Share]:
    """Yield the packets dropped by each rail, its card, its ports and the node's kernel."""
    yield from _on_interfaces(counters, node, rails, ("rx_drop", "tx_drop"))
    for source in node.of_kind(DRIVER):
        interface = node.source(INTERFACE, source.name)
        if source.name in rails and interface is not None:
            count, why = sum_of(counters, source, _DRIVER_DROPS)
            of, why_of = sum_of(counters, interface, _INTERFACE_PACKETS)
            yield Share(node.node, f"{source.name} (card)", count, of, why or why_of)
    for port in ports_of(node, rails):
        yield _share(counters, node.node, port, _PORT_DROPS, _PORT_PACKETS)
    softnet = node.source(SOFTNET)
    if softnet is None:
        yield Share(node.node, SOFTNET, None, None, node.absent.get(SOFTNET, "was not read"))
    else:
        found = _share(counters, node.node, softnet, ("dropped",), ("processed",))
        yield replace(found, interface=SOFTNET)


def _on_interfaces(
    counters: Counters, node: NodeCounters, rails: Sequence[str], names: Iterable[str]
) -> Iterator[Share]:
    for name in rails:
        source = node.source(INTERFACE, name)
        if source is not None:
            yield _share(counters, node.node, source, names, _INTERFACE_PACKETS)
        elif not ports_of(node, [name]):
            why = node.absent.get(f"{INTERFACE} {name}") or node.absent.get(INTERFACE)
            yield Share(node.node, name, None, None, why or f"{node.node} has no {name}")


def again_of(counters: Counters, node: NodeCounters, rails: Sequence[str]) -> Iterator[Share]:
    """Yield the retransmissions of TCP, and of each port that counts them."""
    yield replace(sent_again(counters, node.node), interface=", ".join(rails))
    for port in ports_of(node, rails):
        if any(counters.of_source(port, name) is not None for name in _PORT_AGAIN):
            yield _share(counters, node.node, port, _PORT_AGAIN, _PORT_PACKETS[:1])


Reader = Callable[[Counters, NodeCounters, Sequence[str]], Iterator[Share]]


def shares(
    launches: Sequence[CountedLaunch], rails: Sequence[str], read: Reader
) -> dict[tuple[str, str], Share]:
    """Return the sum over the launches, by node and interface."""
    found: dict[tuple[str, str], Share] = {}
    for launch in launches:
        for node in launch.counters.nodes:
            for one in read(launch.counters, node, rails):
                key = (one.node, one.interface)
                found[key] = found[key] + one if key in found else one
    return found
