"""Counters of the network: carrier, errors, drops, retransmissions, path, directions.

A message there and back is timed as a whole: no benchmark here separates the two ways, since no
two nodes share a clock. Retransmissions do: what a node sent again was lost on the way from it.
"""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Annotated, Any

from pydantic import Field

from netproof.criteria.findings import FLAGGED, Above, CannotJudgeError, Finding, Level, undefined
from netproof.criteria.interface import CaseCurves, CountedLaunch, Criterion, Shows
from netproof.measurement.case import MEBI
from netproof.measurement.counters import (
    CARRIER,
    DRIVER,
    INFINIBAND,
    INTERFACE,
    SOFTNET,
    TCP,
    WORD_BYTES,
    Counters,
    CounterSource,
    added,
)

LOOPBACK = "lo"

_ALL, _ERRORS, _DROPS, _AGAIN, _DOWN = "all packets", "errors", "drops", "sent again", "link down"
_COUNTED: dict[str, dict[str, tuple[str, ...]]] = {
    INTERFACE: {
        _ALL: ("rx_packets", "tx_packets"),
        _ERRORS: ("rx_errs", "tx_errs", "tx_colls"),
        _DROPS: ("rx_drop", "tx_drop"),
    },
    DRIVER: {
        _DROPS: ("rx_discards_phy", "tx_discards_phy"),
        _DOWN: ("link_down_events_phy",),
    },
    INFINIBAND: {
        _ALL: ("counters/port_xmit_packets", "counters/port_rcv_packets"),
        _ERRORS: (
            *("counters/symbol_error", "counters/link_error_recovery", "counters/port_rcv_errors"),
            "counters/port_rcv_remote_physical_errors",
            "counters/local_link_integrity_errors",
            "counters/excessive_buffer_overrun_errors",
            *("counters/port_xmit_constraint_errors", "counters/port_rcv_constraint_errors"),
        ),
        _DROPS: ("counters/port_xmit_discards",),
        _AGAIN: (
            *("hw_counters/packet_seq_err", "hw_counters/implied_nak_seq_err"),
            "hw_counters/local_ack_timeout_err",
        ),
        _DOWN: ("counters/link_downed",),
    },
    SOFTNET: {_ALL: ("processed",), _DROPS: ("dropped",)},
}
"""Counters by the kind of their source and what they count."""

_PORT_SENT = "counters/port_xmit_data"

CARRIERS, PATH = "carrier changes", "path"
"""Names of findings on carriers that came or went, and on the interface that traffic took."""

SHARED_FROM = MEBI
"""Bytes of a largest message from which on libraries that use several rails share it out."""

_STREAM = "tcp"
"""NetPIPE's operation that is a single stream of TCP, which takes one rail."""

_NOWHERE = (
    "no interface counted what was sent: it went through memory that the nodes share, or over a"
    " device whose counters are not known"
)

ALIKE = 2.0
"""Largest ratio of the bytes that both nodes send: of acknowledgements few are lost."""


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


@dataclass(frozen=True)
class CountedSettings(Above):
    """Bounds of a share of packets; ``least``: fewer of them are no share.

    ``not_known``: 1 fails a case whose counters are not known, 0 does not; one setting for all.
    """

    least: int = 1
    not_known: Annotated[int, Field(ge=0, le=1, title="0 or 1")] = 0
    percent = " %"


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
        count, of = self.count + other.count, self.of + other.of
        return Share(self.node, self.interface, count, of, self.why)

    def counted(self, what: str = "") -> str:
        """Return the count in words, of what."""
        return f"{self.count:,} of {self.of:,}{what} ({_percent(self.value)})"

    @property
    def value(self) -> float:
        """Share, 0 where nothing was sent."""
        return (self.count or 0) / self.of if self.of else 0.0


def sent_again(counters: Counters, node: str, interface: str = "") -> Share:
    """Return the TCP segments that a node had to send again, of all that it sent."""
    found = counters.sent_again.get(node) or counters.why(node, TCP, "", "")
    counted = (None, None, found) if isinstance(found, str) else found
    return Share(node, interface, *counted)


def _ports_of(counters: Counters, node: str, rails: Sequence[str]) -> list[CounterSource]:
    """Return the ports of InfiniBand and RoCE devices that are rails, or whose interfaces are."""
    return [
        port
        for port in counters.sources[node]
        if port.kind == INFINIBAND
        and {port.name, port.name.partition("/")[0], *port.interfaces} & {*rails}
    ]


def _sum(counters: Counters, source: CounterSource, names: Iterable[str]) -> tuple[int | None, str]:
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


_Read = Callable[[Counters, str, Sequence[str]], Iterator[Share]]


def _packets(what: str, counters: Counters, node: str, rails: Sequence[str]) -> Iterator[Share]:
    """Yield the packets of ``what`` on each rail, its card and its port, and in the kernel."""
    sources = {name: counters.source(node, INTERFACE, name) for name in rails}
    for name, source in sources.items():
        if source is None and not _ports_of(counters, node, [name]):
            why = _why_no_interface(counters, node, name) or f"{node} has no {name}"
            yield Share(node, name, None, None, why)
    kernel = counters.of_kind(node, SOFTNET)
    if what == _DROPS and not kernel:
        why = counters.absent[node].get(SOFTNET, "was not read")
        yield Share(node, SOFTNET, None, None, why)
    counted = [(one.name, one, one) for one in sources.values() if one]
    for card in counters.of_kind(node, DRIVER):
        if (own := sources.get(card.name)) is not None:
            counted.append((f"{card.name} (card)", card, own))
    counted += [(port.name, port, port) for port in _ports_of(counters, node, rails)]
    counted += [(SOFTNET, one, one) for one in kernel]
    for label, source, of_all in counted:
        if what in _COUNTED[source.kind]:
            count, why = _sum(counters, source, _COUNTED[source.kind][what])
            of, why_of = _sum(counters, of_all, _COUNTED[of_all.kind][_ALL])
            yield Share(node, label, count, of, why or why_of)


def _why_no_interface(counters: Counters, node: str, name: str) -> str | None:
    absent = counters.absent[node]
    return absent.get(f"{INTERFACE} {name}") or absent.get(INTERFACE)


def _again(counters: Counters, node: str, rails: Sequence[str]) -> Iterator[Share]:
    """Yield the retransmissions of TCP, and of each port that counts them."""
    yield sent_again(counters, node, ", ".join(rails))
    for port in _ports_of(counters, node, rails):
        names, sent = _COUNTED[INFINIBAND][_AGAIN], _COUNTED[INFINIBAND][_ALL][:1]
        if any(counters.of_source(port, name) is not None for name in names):
            count, why = _sum(counters, port, names)
            of, why_of = _sum(counters, port, sent)
            yield Share(node, port.name, count, of, why or why_of)


def _shares(
    name: str,
    read: _Read,
    counted_as: str,
    advice: str,
    case: CaseCurves,
    settings: CountedSettings,
) -> list[Finding]:
    """Return a finding for each flagged node and interface, or one of the largest share.

    Of all launches, since errors during a paired one are the link's as well.
    """
    undisturbed, counted = _sums(case)
    found: dict[tuple[str, str], Share] = {}
    for counters in undisturbed or counted:
        for node in counters.sources:
            for one in read(counters, node, case.rails):
                key = (one.node, one.interface)
                found[key] = found[key] + one if key in found else one
    known: list[tuple[Share, tuple[Level, float | None]]] = []
    unknown: dict[str, Finding] = {}
    for one in found.values():
        if one.count is None or one.of is None:
            at: dict[str, Any] = {"node": one.node, "interface": one.interface}
            why = f"{one.interface or TCP}: {one.why}"
            unknown.setdefault(one.why, undefined(name, case.where, why, **at))
            continue
        (level, bound), few = settings.level(one.value), one.count < settings.least
        if level is Level.FAIL and (few or not undisturbed):
            level = Level.WARN
        if level is Level.WARN and few and settings.warn:
            level, bound = Level.PASS, settings.warn
        known.append((one, (level, bound)))
    reported = [it for it in known if it[1][0] in FLAGGED]
    findings = []
    for one, decided in reported or sorted(known, key=lambda it: -it[0].value)[:1]:
        why = f"{one.node} {one.interface}: {one.counted(f' {counted_as}')}"
        finding = settings.finding(one.value, why, advice, decided=decided)
        findings.append(finding.but(node=one.node, interface=one.interface))
    return [*findings, *unknown.values()]


def carrier_changes(
    launches: Iterable[Counters], rails: Sequence[str], where: str, settings: CountedSettings
) -> list[Finding]:
    """Return a finding for each interface whose carrier came or went while launches ran.

    Ports of rails that went down are among them.
    """
    changes: Counter[tuple[str, str, bool]] = Counter()
    unknown: dict[str, Finding] = {}
    for counters in launches:
        for node in counters.sources:
            for name, on_rail, count, reason in _carriers(counters, node, rails):
                if count is None:
                    why, at = f"{name}: {reason}", {"node": node, "interface": name}
                    unknown.setdefault(why, undefined(CARRIERS, where, why, **at))
                else:
                    changes[node, name, on_rail] += count
    findings = []
    for (label, name, on_rail), count in (+changes).items():
        level, bound = settings.level(count)
        if level is Level.FAIL and not on_rail:
            level = Level.WARN
        times = "once" if count == 1 else f"{count} times"
        why = (
            f"{label} {name}: its carrier came or went {times} while its jobs ran;"
            " look at the cable, the transceiver and both of its ports"
        )
        found = Finding(CARRIERS, level, where, why, value=count, bound=bound, node=label)
        findings.append(found.but(interface=name))
    if changes and not findings:
        why = f"no carrier came or went on {len(changes)} interfaces of its nodes"
        findings.append(Finding(CARRIERS, Level.PASS, where, why, value=0.0))
    return [*findings, *unknown.values()]


def _carriers(
    counters: Counters, node: str, rails: Sequence[str]
) -> Iterator[tuple[str, bool, int | None, str]]:
    """Yield names of interfaces, whether under test, and their changes or why not known."""
    for source in counters.of_kind(node, INTERFACE):
        value, on_rail = counters.of_source(source, CARRIER), source.name in rails
        if source.name != LOOPBACK and (value is not None or on_rail):
            yield source.name, on_rail, value, source.absent.get(CARRIER, "was not read")
    for source in counters.of_kind(node, DRIVER):
        value, _ = _sum(counters, source, _COUNTED[DRIVER][_DOWN])
        if value:
            yield f"{source.name} (card)", source.name in rails, value, ""
    for port in _ports_of(counters, node, rails):
        value, why = _sum(counters, port, _COUNTED[INFINIBAND][_DOWN])
        yield port.name, True, value, why


# For the criteria on one case after the other; kept for each, they would take 5 KB.
@lru_cache(maxsize=1)
def _sums(case: CaseCurves) -> tuple[list[Counters], list[Counters]]:
    """Return the counters over undisturbed launches, and over all, with those alongside."""
    both = (*case.counted, *case.counted_alongside) if case.counted else ()
    quiet = [one.counters for one in both if one.undisturbed]
    every = added(one.counters for one in both)
    return (every if len(quiet) == len(both) else added(quiet)), every


class LeastShares(CountedSettings):
    """Bounds below which a share is flagged."""

    reached = staticmethod(operator.lt)


def sent_over(launch: CountedLaunch, rails: Sequence[str]) -> tuple[int, Counter[str]]:
    """Return the bytes that a launch's nodes sent over the rails, and by each other interface.

    RDMA bypasses the kernel: ports count it, in words of 4 bytes. IPoIB is counted both by the
    interface and by a port of InfiniBand; a port of RoCE counts RDMA alone. Raises CannotJudgeError
    where it is not known.
    """
    on_rails = 0
    elsewhere: Counter[str] = Counter()
    for node in launch.counters.sources:
        on_rails += _sent(launch.counters, node, rails)
        elsewhere.update(_elsewhere(launch.counters, node, rails))
    return on_rails, elsewhere


def _sent(counters: Counters, node: str, rails: Sequence[str]) -> int:
    """Return the bytes that a node sent over the rails and their ports."""

    def known(source: CounterSource, name: str) -> int:
        value = counters.of_source(source, name)
        if value is None:
            why = source.absent.get(name, "was not read")
            raise CannotJudgeError(f"{node} {source.name}: {name} {why}")
        return value

    ports = _ports_of(counters, node, rails)
    sources = {one.name: one for one in counters.of_kind(node, INTERFACE)}
    if not ports and len(rails) == 1 and rails[0] in sources:
        return known(sources[rails[0]], "tx_bytes")
    of_ports = {name for port in ports for name in (port.name, port.name.partition("/")[0])}
    for name in sorted({*rails} - {*sources} - of_ports):
        why = _why_no_interface(counters, node, name) or "is no interface of the node"
        raise CannotJudgeError(f"{node} {name}: {why}")
    total = sum(known(port, _PORT_SENT) * WORD_BYTES for port in ports)
    by_port = {name for port in ports if port.layer == "InfiniBand" for name in port.interfaces}
    for name in {*rails, *(name for port in ports for name in port.interfaces)} & {*sources}:
        sent = known(sources[name], "tx_bytes")
        total += 0 if name in by_port else sent
    return total


def _elsewhere(counters: Counters, node: str, rails: Sequence[str]) -> dict[str, int]:
    """Return the bytes sent by other interfaces, without those above and below the rails."""
    ports, interfaces = _ports_of(counters, node, rails), counters.of_kind(node, INTERFACE)
    layers = tuple([(one.name, one.interfaces) for one in interfaces])
    same = _above_and_below((*rails, *(name for port in ports for name in port.interfaces)), layers)
    sent = {
        source.name: counters.of_source(source, "tx_bytes")
        for source in interfaces
        if source.name not in same and source.name != LOOPBACK
    }
    for port in counters.of_kind(node, INFINIBAND):
        if port not in ports:
            sent[port.name] = (counters.of_source(port, _PORT_SENT) or 0) * WORD_BYTES
    return {name: count for name, count in sent.items() if count}


@lru_cache(maxsize=64)
def _above_and_below(
    rails: tuple[str, ...], layers: tuple[tuple[str, tuple[str, ...]], ...]
) -> frozenset[str]:
    """Return the rails, and each interface above or below; ``layers``: those below each."""
    same = frozenset(rails)
    while True:
        more = same.union(*(below for name, below in layers if name in same))
        more |= {name for name, below in layers if not same.isdisjoint(below)}
        if more == same:
            return same
        same = more


def path(
    launches: Sequence[CountedLaunch], rails: Sequence[str], where: str, settings: LeastShares
) -> Finding | None:
    """Return the finding for the launch with the least share; None without inter-node traffic.

    ``rails``: the interfaces under test; ``where``: the label of the case.
    """
    shares: list[tuple[float, int, int, int, Counter[str]]] = []
    reasons: dict[str, None] = {}
    bound = (settings.fail if settings.fail is not None else settings.warn) or 0.0
    for launch in launches:
        payload = launch.payload
        if payload == 0:
            continue
        try:
            if isinstance(payload, str):
                raise CannotJudgeError(payload)
            on_rails, elsewhere = sent_over(launch, rails)
        except CannotJudgeError as error:
            reasons.setdefault(str(error))
            continue
        share, others = on_rails / payload, elsewhere.total()
        # Where others sent as much as may be missing, it is the share of all bytes sent.
        if others > (1 - bound) * payload:
            share = min(share, on_rails / (on_rails + others))
        shares.append((min(1.0, share), launch.number, payload, on_rails, elsewhere))
    worst = min(shares, key=lambda one: one[0], default=None)
    level, held = settings.level(1.0 if worst is None else worst[0])
    if reasons and (worst is None or level is Level.PASS):
        return undefined(PATH, where, "; ".join(reasons))
    if worst is None:
        return None
    share, number, payload, on_rails, elsewhere = worst
    interface: str | None = ", ".join(rails)
    carried, least = f"{on_rails / 1e6:.3g} MB", f"{payload / 1e6:.3g} MB"
    why = f"at least {least} were sent between nodes, and {interface} carried {carried}"
    if level in FLAGGED:
        why = f"{interface} carried {carried} of the {least} or more that were sent between nodes"
        interface, words = None, _NOWHERE
        for name, sent in elsewhere.most_common(1):
            if 2 * sent > payload - on_rails:
                share_of_all = sent / max(payload, on_rails + elsewhere.total())
                interface, words = name, f"{100 * share_of_all:.0f} % went over {name}"
        why = f"launch {number}: {words}; {why}"
    advice = "look at the interface that the MPI library and the addresses choose"
    found = settings.finding(share, why, advice, decided=(level, held), interface=interface)
    return found.but(criterion=PATH, where=where)


def _directions(case: CaseCurves, settings: CountedSettings) -> Finding | None:
    """Return how much more one way between two nodes loses than the other.

    The difference of the shares of segments sent again, over the undisturbed launches if any; its
    ``node`` sends on the worse way. None for other than two nodes, where both do not send alike,
    and where a port of RDMA retransmits by itself. It warns where a retransmission would, and where
    the worse way lost several times the share of the other. How much may be lost at all is for
    retransmissions to say.
    """
    rails, interface = case.rails, ", ".join(case.rails)
    if not rails or case.inside:
        return None
    counted = [one.counters for one in _undisturbed(case)]
    seen = {node for one in counted for node in one.sources}
    if len(seen) != 2 or any(_ports_of(one, node, rails) for one in counted for node in seen):
        return None
    ways: list[Share] = []
    sent: list[int] = []
    for node in sorted(seen):
        way = sum((sent_again(one, node) for one in counted), Share(node, "", 0, 0))
        if way.count is None:
            raise CannotJudgeError(way.why)
        ways.append(way)
        sent.append(sum(_sent(one, node, rails) for one in counted))
    if max(sent) > ALIKE * min(sent):
        return None
    better, worse = sorted(ways, key=lambda way: way.value)
    value = worse.value - better.value
    bounds = replace(settings, fail=None)
    level, bound = bounds.level(value)
    few = worse.value < TIMES * better.value or (worse.count or 0) < settings.least
    if level is Level.WARN and few:
        level = Level.PASS
    return bounds.finding(
        value,
        f"from {worse.node} to {better.node} {worse.counted()} segments were sent again, and"
        f" {better.counted()} on the way back",
        f"look at what {worse.node} sends with, what {better.node} receives with, the fibre between"
        " them for this way, and duplex",
        decided=(level, bound),
        node=worse.node,
        interface=interface,
    )


def _undisturbed(case: CaseCurves) -> Sequence[CountedLaunch]:
    """Return the undisturbed launches that were counted, or all of them without any."""
    return [one for one in case.counted if one.undisturbed] or case.counted


def _rail_shares(case: CaseCurves, settings: LeastShares) -> list[Finding]:
    """Return each rail of a node that carried too little, or the one that comes nearest to it.

    The value is a rail's share of what the node sent over all of them, in undisturbed launches if
    any, times their number: 1 is its part. Not judged are a single stream, curves without a message
    that libraries share out, and nodes that sent less than others by ``ALIKE``, which acknowledge.
    """
    rails = case.rails
    single = len(rails) < 2 or case.inside or case.operation == _STREAM
    if single or not case.counted or case.curve.sizes[-1] < SHARED_FROM:
        return []
    by_node: dict[str, Counter[str]] = defaultdict(Counter)
    for launch in _undisturbed(case):
        for node in launch.counters.sources:
            by_node[node].update({rail: _sent(launch.counters, node, (rail,)) for rail in rails})
    most, findings = max(sent.total() for sent in by_node.values()), []
    for node, sent in by_node.items():
        for rail, count in sent.items() if 0 < most <= ALIKE * sent.total() else ():
            value = len(rails) * count / sent.total()
            findings.append(
                settings.finding(
                    value,
                    f"{node} {rail}: it carried {_percent(value)} of its part of what {node} sent"
                    f" over {len(rails)} rails",
                    "look at its link, its cable, and whether the library takes it",
                    node=node,
                    interface=rail,
                )
            )
    flagged = [one for one in findings if one.level in FLAGGED]
    return flagged or sorted(findings, key=lambda one: one.value or 0)[:1]


def _carriers_of(case: CaseCurves, settings: CountedSettings) -> list[Finding]:
    return carrier_changes(_sums(case)[1], case.rails, case.where, settings)


_criterion = partial(
    Criterion, of_counters=True, note="{name} of {count} not known: {why}: {cases}"
)


CRITERIA = (
    _criterion(CARRIERS, "carrier_change", CARRIER_CHANGES, _carriers_of, sets=("fail",)),
    _criterion(
        "interface errors",
        "interface_error",
        INTERFACE_ERRORS,
        partial(
            _shares,
            "interface errors",
            partial(_packets, _ERRORS),
            "packets had errors",
            "look at the cable, the transceiver and the settings of both ends",
        ),
        shows=Shows.DAMAGE,
    ),
    _criterion(
        "drops",
        "drop",
        DROPS,
        partial(
            _shares,
            "drops",
            partial(_packets, _DROPS),
            "packets were dropped",
            "look at the rings, the interrupts and flow control",
        ),
        shows=Shows.DAMAGE,
    ),
    _criterion(
        "retransmissions",
        "retransmission",
        RETRANSMISSIONS,
        partial(
            _shares,
            "retransmissions",
            _again,
            "segments sent again",
            "packets were lost between this node and those that it sent to",
        ),
    ),
    _criterion(
        PATH,
        "path",
        LeastShares(None, 0.95),
        lambda case, settings: path(case.counted, case.rails, case.where, settings),
        sets=("fail",),
        shows=Shows.PATH,
    ),
    _criterion("directions", "retransmission", RETRANSMISSIONS, _directions),
    _criterion("rail share", "rail_share", LeastShares(0.5), _rail_shares, sets=()),
)
