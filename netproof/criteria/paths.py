"""Criterion 16: whether inter-node traffic of a benchmark went over the interface under test."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from netproof.criteria.counted import LOOPBACK, CountedSettings, finding_of
from netproof.criteria.counted_shares import ports_of
from netproof.criteria.findings import Finding, Level, undefined
from netproof.criteria.interface import CaseCurves, CountedLaunch, Criterion
from netproof.measurement.counters import (
    INFINIBAND,
    INTERFACE,
    WORD_BYTES,
    Counters,
    NodeCounters,
)

_PORT_SENT = "counters/port_xmit_data"


@dataclass(frozen=True)
class PathSettings(CountedSettings):
    """``warn`` and ``fail`` below this share of the payload on the interfaces under test."""

    fail: float | None = 0.95
    reached: ClassVar[Callable[[float, float], bool]] = operator.lt


@dataclass(frozen=True)
class Path:
    """Bytes that interfaces carried between the nodes of a launch.

    ``payload``: bytes that it had to send; ``on_rails``: sent by the interfaces under test, with
    headers; ``elsewhere``: sent by other interfaces, by name.
    """

    payload: int
    on_rails: int
    elsewhere: dict[str, int]

    def share(self, bound: float) -> float:
        """Return the share of the payload on the interfaces under test, 1 at most.

        A benchmark sends more than its payload. Where other interfaces sent as much as may be
        missing, it is the share of all bytes sent.
        """
        share = self.on_rails / self.payload
        others = sum(self.elsewhere.values())
        if others > (1 - bound) * self.payload:
            share = min(share, self.on_rails / (self.on_rails + others))
        return min(1.0, share)


def path_of(launch: CountedLaunch, rails: Sequence[str]) -> Path | str:
    """Return the path of a launch, or why it is not known.

    RDMA bypasses the kernel: ports count it, in words of 4 bytes. IPoIB is counted both by the
    interface and by a port of InfiniBand; a port of RoCE counts RDMA alone.
    """
    if launch.payload.bytes is None:
        return launch.payload.why
    on_rails, elsewhere = 0, {}
    for node in launch.counters.nodes:
        sent = _sent(launch.counters, node, rails)
        if isinstance(sent, str):
            return sent
        on_rails += sent
        for name, count in _elsewhere(launch.counters, node, rails).items():
            elsewhere[name] = elsewhere.get(name, 0) + count
    return Path(launch.payload.bytes, on_rails, elsewhere)


def _sent(counters: Counters, node: NodeCounters, rails: Sequence[str]) -> int | str:
    total = 0
    ports = ports_of(node, rails)
    by_port: dict[str, int] = {}
    for port in ports:
        words = counters.of_source(port, _PORT_SENT)
        if words is None:
            why = port.absent.get(_PORT_SENT, "is not there")
            return f"{node.node} {port.name}: {_PORT_SENT} {why}"
        names = port.interfaces if port.layer == "InfiniBand" else ()
        for name in names:
            by_port[name] = words * WORD_BYTES
        total += words * WORD_BYTES
    named = {rail for rail in rails if node.source(INTERFACE, rail) is not None}
    missing = set(rails) - named - {port.name.partition("/")[0] for port in ports}
    if missing - {port.name for port in ports}:
        name = sorted(missing)[0]
        why = node.absent.get(f"{INTERFACE} {name}") or node.absent.get(INTERFACE)
        return f"{node.node} {name}: {why or 'is no interface of the node'}"
    for name in named | {name for port in ports for name in port.interfaces}:
        source = node.source(INTERFACE, name)
        if source is None:
            continue
        sent = counters.of_source(source, "tx_bytes")
        if sent is None:
            return f"{node.node} {name}: {source.absent.get('tx_bytes', 'was not read')}"
        if name not in by_port:
            total += sent
    return total


def _elsewhere(counters: Counters, node: NodeCounters, rails: Sequence[str]) -> dict[str, int]:
    """Return bytes sent by other interfaces, without those above and below the rails."""
    interfaces = {source.name: set(source.interfaces) for source in node.of_kind(INTERFACE)}
    same = {*rails, *(name for port in ports_of(node, rails) for name in port.interfaces)}
    while True:
        more = {name for name, below in interfaces.items() if below & same}
        more |= {one for name in same for one in interfaces.get(name, ())}
        if more <= same:
            break
        same |= more
    found = {}
    for source in node.of_kind(INTERFACE):
        sent = counters.of_source(source, "tx_bytes")
        if source.name not in same and source.name != LOOPBACK and sent:
            found[source.name] = sent
    own = {port.name for port in ports_of(node, rails)}
    for port in node.of_kind(INFINIBAND):
        words = counters.of_source(port, _PORT_SENT)
        if port.name not in own and words:
            found[port.name] = words * WORD_BYTES
    return found


def path(
    launches: Sequence[CountedLaunch], rails: Sequence[str], where: str, settings: PathSettings
) -> Finding | None:
    """Return the finding for the launch with the least share; None without inter-node traffic.

    ``rails``: the interfaces under test; ``where``: the label of the case.
    """
    worst: tuple[float, int, Path] | None = None
    reasons: dict[str, None] = {}
    bound = settings.fail if settings.fail is not None else settings.warn or 0.0
    for launch in launches:
        if launch.payload.bytes == 0:
            continue
        found = path_of(launch, rails)
        if isinstance(found, str):
            reasons.setdefault(found)
            continue
        share = found.share(bound)
        if worst is None or share < worst[0]:
            worst = (share, launch.number, found)
    if worst is None or settings.level(worst[0])[0] is Level.PASS:
        if reasons:
            return undefined("path", where, "; ".join(reasons))
        if worst is None:
            return None
    share, number, found = worst
    level, held = settings.level(share)
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
    return finding_of("path", level, where, why, value=share, bound=held, interface=interface)


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


def _judge(case: CaseCurves, settings: Any) -> tuple[Finding, ...]:
    found = path(case.counted, case.rails, case.where, settings.path)
    return () if found is None else (found,)


CRITERION = Criterion(16, {"path": PathSettings()}, {"path": "path"}, _judge, of_counters=True)
