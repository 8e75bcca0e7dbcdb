"""The way of traffic: over the interface under test, and with losses one way only.

A message there and back is timed as a whole: no benchmark here separates the two ways, since no
two nodes share a clock. Retransmissions do: what a node sent again was lost on the way from it.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from netproof.criteria.counters import (
    LOOPBACK,
    NOT_COUNTED,
    TIMES,
    CountedSettings,
    Share,
    ports_of,
    sent_again,
)
from netproof.criteria.findings import (
    Above,
    CannotJudgeError,
    Finding,
    Level,
    undefined,
    undefined_if_unreadable,
)
from netproof.criteria.interface import CaseCurves, CountedLaunch, Criterion
from netproof.measurement.counters import (
    INFINIBAND,
    INTERFACE,
    WORD_BYTES,
    Counters,
    NodeCounters,
)

PATH = "path"
"""Name of findings on the interface that traffic took."""

ALIKE = 2.0
"""Largest ratio of the bytes that both nodes send: of acknowledgements few are lost."""

_PORT_SENT = "counters/port_xmit_data"


class PathSettings(CountedSettings):
    """Bounds below which the share of the payload on the interfaces under test is flagged."""

    reached = operator.lt


@dataclass(frozen=True)
class Path:
    """Bytes that a launch had to send, ``payload``, and those that its nodes' interfaces sent."""

    payload: int
    on_rails: int
    elsewhere: dict[str, int]

    def share(self, bound: float) -> float:
        """Return the share of the payload on the interfaces under test, 1 at most.

        Where others sent as much as may be missing, it is the share of all bytes sent.
        """
        share = self.on_rails / self.payload
        others = sum(self.elsewhere.values())
        if others > (1 - bound) * self.payload:
            share = min(share, self.on_rails / (self.on_rails + others))
        return min(1.0, share)


def path_of(launch: CountedLaunch, rails: Sequence[str]) -> Path:
    """Return the path of a launch. Raises CannotJudgeError where it is not known.

    RDMA bypasses the kernel: ports count it, in words of 4 bytes. IPoIB is counted both by the
    interface and by a port of InfiniBand; a port of RoCE counts RDMA alone.
    """
    if launch.payload.bytes is None:
        raise CannotJudgeError(launch.payload.why)
    on_rails, elsewhere = 0, Counter()
    for node in launch.counters.nodes:
        on_rails += _sent(launch.counters, node, rails)
        elsewhere.update(_elsewhere(launch.counters, node, rails))
    return Path(launch.payload.bytes, on_rails, dict(elsewhere))


def _sent(counters: Counters, node: NodeCounters, rails: Sequence[str]) -> int:
    """Return the bytes that a node sent over the rails and their ports."""
    total = 0
    ports = ports_of(node, rails)
    by_port: set[str] = set()
    for port in ports:
        words = counters.of_source(port, _PORT_SENT)
        if words is None:
            why = port.absent.get(_PORT_SENT, "is not there")
            raise CannotJudgeError(f"{node.node} {port.name}: {_PORT_SENT} {why}")
        by_port |= {*port.interfaces} if port.layer == "InfiniBand" else set()
        total += words * WORD_BYTES
    named = {rail for rail in rails if node.source(INTERFACE, rail) is not None}
    of_ports = {name for port in ports for name in (port.name, port.name.partition("/")[0])}
    for name in sorted({*rails} - named - of_ports):
        why = node.absent.get(f"{INTERFACE} {name}") or node.absent.get(INTERFACE)
        raise CannotJudgeError(f"{node.node} {name}: {why or 'is no interface of the node'}")
    for name in named | {name for port in ports for name in port.interfaces}:
        source = node.source(INTERFACE, name)
        if source is None:
            continue
        sent = counters.of_source(source, "tx_bytes")
        if sent is None:
            why = source.absent.get("tx_bytes", "was not read")
            raise CannotJudgeError(f"{node.node} {name}: {why}")
        total += 0 if name in by_port else sent
    return total


def _elsewhere(counters: Counters, node: NodeCounters, rails: Sequence[str]) -> dict[str, int]:
    """Return bytes sent by other interfaces, without those above and below the rails."""
    interfaces = {source.name: set(source.interfaces) for source in node.of_kind(INTERFACE)}
    ports = ports_of(node, rails)
    same = {*rails, *(name for port in ports for name in port.interfaces)}
    while True:
        more = {name for name, below in interfaces.items() if below & same}
        more |= {one for name in same for one in interfaces.get(name, ())}
        if more <= same:
            break
        same |= more
    own = {port.name for port in ports}
    sent = {
        source.name: counters.of_source(source, "tx_bytes")
        for source in node.of_kind(INTERFACE)
        if source.name not in {*same, LOOPBACK}
    }
    sent |= {
        port.name: (counters.of_source(port, _PORT_SENT) or 0) * WORD_BYTES
        for port in node.of_kind(INFINIBAND)
        if port.name not in own
    }
    return {name: count for name, count in sent.items() if count}


def path(
    launches: Sequence[CountedLaunch], rails: Sequence[str], where: str, settings: PathSettings
) -> Finding | None:
    """Return the finding for the launch with the least share; None without inter-node traffic.

    ``rails``: the interfaces under test; ``where``: the label of the case.
    """
    shares: list[tuple[float, int, Path]] = []
    reasons: dict[str, None] = {}
    bound = settings.fail if settings.fail is not None else settings.warn or 0.0
    for launch in launches:
        if launch.payload.bytes == 0:
            continue
        try:
            found = path_of(launch, rails)
            shares.append((found.share(bound), launch.number, found))
        except CannotJudgeError as error:
            reasons.setdefault(str(error))
    share, number, found = min(shares, key=lambda one: one[0], default=(1.0, 0, None))
    level, held = settings.level(share)
    if reasons and (found is None or level is Level.PASS):
        return undefined(PATH, where, "; ".join(reasons))
    if found is None:
        return None
    named = ", ".join(rails)
    carried, least = _mb(found.on_rails), _mb(found.payload)
    interface = named
    if level in (Level.PASS, Level.SHOWN):
        why = f"at least {least} were sent between nodes, and {named} carried {carried}"
    else:
        interface, words = _culprit(found)
        why = (
            f"launch {number}: {words}; {named} carried {carried} of the {least} or more that were"
            f" sent between nodes (below {100 * held:.0f} % is flagged): look at the interface that"
            " the MPI library and the addresses choose"
        )
    return Finding(PATH, level, where, why, value=share, bound=held, interface=interface)


def _culprit(found: Path) -> tuple[str | None, str]:
    """Return the interface that carried the most apart from the rails, and the words for it."""
    all_sent = max(found.payload, found.on_rails + sum(found.elsewhere.values()))
    if found.elsewhere:
        name = max(found.elsewhere, key=lambda one: found.elsewhere[one])
        if 2 * found.elsewhere[name] > found.payload - found.on_rails:
            return name, f"{100 * found.elsewhere[name] / all_sent:.0f} % went over {name}"
    return None, (
        "no interface counted what was sent: it went through memory that the nodes share, or over a"
        " device whose counters are not known"
    )


def _mb(count: int) -> str:
    return f"{count / 1e6:.3g} MB"


@undefined_if_unreadable("directions")
def directions(
    launches: Sequence[CountedLaunch],
    rails: Sequence[str],
    *,
    where: str,
    settings: CountedSettings,
) -> Finding | None:
    """Return how much more one way between two nodes loses than the other.

    The difference of the shares of segments sent again, over the undisturbed launches if any; its
    ``node`` sends on the worse way. None for other than two nodes, where both do not send alike,
    and where a port of RDMA retransmits by itself. It warns
    where a retransmission would, from as many on, and where the worse way lost several times the
    share of the other; how much may be lost at all is for retransmissions to say.
    """
    counted = [launch for launch in launches if launch.undisturbed] or list(launches)
    seen = [one for launch in counted for one in launch.counters.nodes]
    nodes = sorted({one.node for one in seen})
    if len(nodes) != 2 or any(ports_of(one, rails) for one in seen):
        return None
    ways, sent = [], []
    for node in nodes:
        way, bytes_sent = _of_node(counted, node, rails)
        if way.count is None or bytes_sent is None:
            missing = f"{node} did not count what it sent over {', '.join(rails)}"
            raise CannotJudgeError(way.why or missing)
        ways.append(way)
        sent.append(bytes_sent)
    if max(sent) > ALIKE * min(sent):
        return None
    better, worse = sorted(ways, key=lambda way: way.value)
    value = worse.value - better.value
    level, bound = Above(settings.warn).level(value)
    apart = (worse.count or 0) >= settings.least and worse.value >= TIMES * better.value
    flagged = level is Level.WARN and apart
    if level is Level.WARN and not apart:
        level = Level.PASS
    advice = ""
    if flagged:
        advice = (
            f", bound {100 * (bound or 0):.2g} % more; look at what {worse.node} sends with, what"
            f" {better.node} receives with, the fibre between them for this way, and duplex"
        )
    return Finding(
        "directions",
        level,
        where,
        f"from {worse.node} to {better.node} {_in_words(worse)} segments were sent again, and"
        f" {_in_words(better)} on the way back{advice}",
        value=value,
        bound=bound,
        node=worse.node,
        interface=", ".join(rails),
    )


def _of_node(
    launches: Sequence[CountedLaunch], node: str, rails: Sequence[str]
) -> tuple[Share, int | None]:
    """Return a node's retransmissions and the bytes that it sent over the rails."""
    total, bytes_sent = Share(node, "", 0, 0), 0
    for launch in launches:
        total += sent_again(launch.counters, node)
        for rail in rails:
            added = launch.counters.value(node, INTERFACE, rail, "tx_bytes")
            if added is None:
                return total, None
            bytes_sent += added
    return total, bytes_sent


def _in_words(way: Share) -> str:
    return f"{way.count:,} of {way.of:,} ({100 * way.value:.2g} %)"


def _paths(case: CaseCurves, settings: Any) -> tuple[Finding, ...]:
    found = path(case.counted, case.rails, case.where, settings.path)
    return () if found is None else (found,)


def _directions(case: CaseCurves, settings: Any) -> tuple[Finding, ...]:
    if not case.counted or not case.rails or case.inside:
        return ()
    found = directions(case.counted, case.rails, where=case.where, settings=settings.retransmission)
    return () if found is None else (found,)


CRITERIA = (
    Criterion(
        16,
        {"path": PathSettings(None, 0.95)},
        {PATH: "path"},
        _paths,
        of_counters=True,
        note=NOT_COUNTED,
    ),
    Criterion(
        21,
        {},
        {"directions": "retransmission"},
        _directions,
        of_counters=True,
        note=NOT_COUNTED,
    ),
)
