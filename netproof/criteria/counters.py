"""Counters of the network: carrier changes, errors, drops and retransmissions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from netproof.criteria.findings import FLAGGED, Above, Finding, Level, undefined
from netproof.criteria.interface import CaseCurves, CountedLaunch, Criterion
from netproof.errors import NetproofError
from netproof.measurement.counters import (
    CARRIER,
    DRIVER,
    INFINIBAND,
    INTERFACE,
    SOFTNET,
    TCP,
    Counters,
    CounterSource,
    NodeCounters,
)

LOOPBACK = "lo"

DAMAGE = ("interface errors", "drops")
"""Names of findings on packets that a node's interface lost or damaged itself."""

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
_PORT_DOWN = ("counters/link_downed",)
_PORT_PACKETS = ("counters/port_xmit_packets", "counters/port_rcv_packets")
_DRIVER_DOWN = ("link_down_events_phy",)
_DRIVER_DROPS = ("rx_discards_phy", "tx_discards_phy")
_INTERFACE_PACKETS = ("rx_packets", "tx_packets")


@dataclass(frozen=True)
class CountedSettings(Above):
    """Bounds of a share of packets; ``least``: fewer of them are no share.

    ``not_known``: 1 fails a case whose counters are not known, 0 does not; one setting for all.
    """

    least: int = 1
    not_known: int = 0

    def __post_init__(self) -> None:
        """Check the values as the class describes."""
        super().__post_init__()
        if self.not_known not in (0, 1):
            raise NetproofError(f"not_known={self.not_known}: it is 0 or 1")


RETRANSMISSIONS = CountedSettings(1e-3, 1e-2, least=20)
"""Shares of segments that were sent again.

TCP's bandwidth goes with one over the root of the share (Mathis et al. 1997).
"""

MORE, TIMES = 1e-3, 3.0
"""A port, or a way, stands out where it loses so much more than the others, and so many times."""

CARRIER_CHANGES = CountedSettings(None, 0.0)
"""Any change of the carrier fails on an interface under test, and warns elsewhere."""

INTERFACE_ERRORS = CountedSettings(0.0, 1e-5, least=3)
"""Shares of damaged packets: any error warns.

A link within its specification has one bit in 10¹² wrong, one frame of 1,500 bytes in 80 million.
One in 100,000 fails, from the third on.
"""

DROPS = CountedSettings(1e-4, 1e-2, least=20)
"""Shares of packets that a node, its card or its port dropped."""


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


def _of_shares(
    criterion: str,
    case: CaseCurves,
    settings: CountedSettings,
    read: Callable[[Counters, NodeCounters, Sequence[str]], Iterator[Share]],
    counted_as: str,
    advice: str,
) -> list[Finding]:
    """Return a finding for each flagged node and interface, or one of the largest share."""
    undisturbed = [launch for launch in case.counted if launch.undisturbed]
    found: dict[tuple[str, str], Share] = {}
    for launch in undisturbed or case.counted:
        for node in launch.counters.nodes:
            for one in read(launch.counters, node, case.rails):
                key = (one.node, one.interface)
                found[key] = found[key] + one if key in found else one
    findings, unknown = [], {}
    for one in found.values():
        if one.count is None or one.of is None:
            unknown.setdefault(one.why, one)
            continue
        level, bound = settings.level(one.value)
        if level is Level.FAIL and (one.count < settings.least or not undisturbed):
            level, bound = (Level.PASS, settings.fail) if not one.count else (Level.WARN, bound)
        if level is Level.WARN and one.count < settings.least and settings.warn:
            level, bound = Level.PASS, settings.warn
        flagged = level in FLAGGED and bound is not None
        held = f", bound {_percent(bound)}; {advice}" if flagged else ""
        findings.append(
            Finding(
                criterion,
                level,
                case.where,
                f"{one.node} {one.interface}: {one.count:,} of {one.of:,} {counted_as}"
                f" ({_percent(one.value)}){held}",
                value=one.value,
                bound=bound,
                node=one.node,
                interface=one.interface,
            )
        )
    reported = [one for one in findings if one.level in FLAGGED]
    if not reported and findings:
        reported = [max(findings, key=lambda one: one.value or 0)]
    return reported + [
        undefined(
            criterion,
            case.where,
            f"{one.interface or TCP}: {why}",
            node=one.node,
            interface=one.interface,
        )
        for why, one in unknown.items()
    ]


def carrier_changes(
    launches: Sequence[CountedLaunch],
    rails: Sequence[str],
    where: str,
    settings: CountedSettings,
) -> list[Finding]:
    """Return a finding for each interface whose carrier came or went while launches ran.

    Ports of rails that went down are among them.
    """
    changes: dict[tuple[str, str], int] = {}
    unknown: dict[str, tuple[str, str]] = {}
    for launch in launches:
        for node in launch.counters.nodes:
            for name, count, why in _carriers(launch.counters, node, rails):
                if count is None:
                    unknown.setdefault(f"{name}: {why}", (node.node, name))
                else:
                    key = (node.node, name)
                    changes[key] = changes.get(key, 0) + count
    findings = []
    for (node, name), count in changes.items():
        if not count:
            continue
        level, bound = settings.level(count)
        if level is Level.FAIL and not _is_rail(name, launches, rails, node):
            level = Level.WARN
        times = "once" if count == 1 else f"{count} times"
        why = (
            f"{node} {name}: its carrier came or went {times} while its jobs ran;"
            " look at the cable, the transceiver and both of its ports"
        )
        found = Finding("carrier changes", level, where, why, value=count, bound=bound)
        findings.append(replace(found, node=node, interface=name))
    if changes and not findings:
        why = f"no carrier came or went on {len(changes)} interfaces of its nodes"
        findings.append(Finding("carrier changes", Level.PASS, where, why, value=0.0))
    return findings + [
        undefined("carrier changes", where, why, node=node, interface=name)
        for why, (node, name) in unknown.items()
    ]


def _is_rail(name: str, launches: Sequence[CountedLaunch], rails: Sequence[str], node: str) -> bool:
    if name.partition(" ")[0] in rails:
        return True
    return any(
        name == port.name
        for launch in launches
        for one in [launch.counters.of(node)]
        if one is not None
        for port in ports_of(one, rails)
    )


def _carriers(
    counters: Counters, node: NodeCounters, rails: Sequence[str]
) -> Iterator[tuple[str, int | None, str]]:
    for source in node.of_kind(INTERFACE):
        if source.name == LOOPBACK:
            continue
        value = counters.of_source(source, CARRIER)
        if value is not None or source.name in rails:
            yield source.name, value, source.absent.get(CARRIER, "was not read")
    for source in node.of_kind(DRIVER):
        value, _ = sum_of(counters, source, _DRIVER_DOWN)
        if value:
            yield f"{source.name} (card)", value, ""
    for port in ports_of(node, rails):
        value, why = sum_of(counters, port, _PORT_DOWN)
        yield port.name, value, why


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


_SHARES = {
    "interface errors": (
        "interface_error",
        errors_of,
        "packets had errors",
        "look at the cable, the transceiver and the settings of both ends",
    ),
    "drops": (
        "drop",
        drops_of,
        "packets were dropped",
        "look at the rings, the interrupts and flow control",
    ),
    "retransmissions": (
        "retransmission",
        again_of,
        "segments sent again",
        "packets were lost between this node and those that it sent to",
    ),
}
"""Findings on shares: the key of their bounds, what reads them, their words and advice."""


def _judge(case: CaseCurves, settings: Any) -> list[Finding]:
    if not case.counted:
        return []
    # Errors during the paired launch are the link's as well.
    case = replace(case, counted=(*case.counted, *case.counted_alongside))
    findings = carrier_changes(case.counted, case.rails, case.where, settings.carrier_change)
    for criterion, (key, *how) in _SHARES.items():
        findings += _of_shares(criterion, case, getattr(settings, key), *how)
    return findings


NOT_COUNTED = "{name} of {count} not known: {why}: {cases}"
"""Note on the cases whose counters are not known."""

CRITERIA = (
    Criterion(
        15,
        {
            "carrier_change": CARRIER_CHANGES,
            "interface_error": INTERFACE_ERRORS,
            "drop": DROPS,
            "retransmission": RETRANSMISSIONS,
        },
        {
            "carrier changes": "carrier_change",
            "interface errors": "interface_error",
            "drops": "drop",
            "retransmissions": "retransmission",
        },
        _judge,
        of_counters=True,
        note=NOT_COUNTED,
    ),
)
