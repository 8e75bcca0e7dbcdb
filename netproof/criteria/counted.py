"""Criterion 15: counters of the network: carrier changes, errors, drops and retransmissions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from netproof.criteria.counted_shares import (
    Reader,
    again_of,
    drops_of,
    errors_of,
    ports_of,
    shares,
    sum_of,
)
from netproof.criteria.findings import Bounds, Finding, Level, undefined
from netproof.criteria.interface import CaseCurves, CountedLaunch, Criterion
from netproof.errors import NetproofError
from netproof.measurement.counters import (
    CARRIER,
    DRIVER,
    INTERFACE,
    TCP,
    Counters,
    NodeCounters,
)

LOOPBACK = "lo"

_PORT_DOWN = ("counters/link_downed",)
_DRIVER_DOWN = ("link_down_events_phy",)


@dataclass(frozen=True)
class CountedSettings(Bounds):
    """Bounds of a share of packets; ``least``: fewer of them are no share.

    ``not_known``: 1 fails a case whose counters are not known. Raises NetproofError for another
    number than 0 or 1.
    """

    least: int = 1
    not_known: int = 0
    reached: ClassVar[Callable[[float, float], bool]] = operator.gt

    def __post_init__(self) -> None:
        """Check the values as the class describes."""
        super().__post_init__()
        if self.not_known not in (0, 1):
            raise NetproofError(f"{type(self).__name__}: not_known={self.not_known}: it is 0 or 1")


@dataclass(frozen=True)
class CarrierChangeSettings(CountedSettings):
    """Bounds of carrier changes: any fails on an interface under test, and warns elsewhere."""

    fail: float | None = 0.0


@dataclass(frozen=True)
class InterfaceErrorSettings(CountedSettings):
    """Bounds of the share of damaged packets: any error warns.

    A link within its specification has one bit in 10¹² wrong, one frame of 1,500 bytes in 80
    million. One in 100,000 fails, from the third on.
    """

    warn: float | None = 0.0
    fail: float | None = 1e-5
    least: int = 3


@dataclass(frozen=True)
class DropSettings(CountedSettings):
    """Bounds of the share of packets that a node, its card or its port dropped."""

    warn: float | None = 1e-4
    fail: float | None = 1e-2
    least: int = 20


@dataclass(frozen=True)
class RetransmissionSettings(CountedSettings):
    """Bounds of the share of segments that were sent again: one in 1,000 warns, one in 100 fails.

    TCP's bandwidth goes with one over the root of the share (Mathis et al. 1997). A node stands out
    where its port loses ``beyond`` more in a session than the median of the other nodes of its
    partition, and ``times`` as much.
    """

    warn: float | None = 1e-3
    fail: float | None = 1e-2
    least: int = 20
    beyond: float = 1e-3
    times: float = 3.0


def finding_of(
    criterion: str,
    level: Level,
    where: str,
    reason: str,
    *,
    value: float,
    bound: float | None = None,
    node: str | None = None,
    interface: str | None = None,
) -> Finding:
    """Return a finding on counters; ``reason``: what was found, without where."""
    return Finding(
        criterion, level, where, reason, value=value, bound=bound, node=node, interface=interface
    )


def _of_shares(
    criterion: str,
    case: CaseCurves,
    settings: CountedSettings,
    read: Reader,
    counted_as: str,
    advice: str,
) -> list[Finding]:
    """Return a finding for each flagged node and interface, or one of the largest share."""
    undisturbed = [launch for launch in case.counted if launch.undisturbed]
    found = shares(undisturbed or case.counted, case.rails, read)
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
        flagged = level in (Level.WARN, Level.FAIL)
        held = f", bound {_percent(bound)}; {advice}" if flagged and bound is not None else ""
        findings.append(
            finding_of(
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
    reported = [one for one in findings if one.level in (Level.WARN, Level.FAIL)]
    if not reported and findings:
        reported = [max(findings, key=lambda one: one.value or 0)]
    return reported + [
        replace(
            undefined(criterion, case.where, f"{one.interface or TCP}: {why}"),
            node=one.node,
            interface=one.interface,
        )
        for why, one in unknown.items()
    ]


def carrier_changes(
    launches: Sequence[CountedLaunch],
    rails: Sequence[str],
    where: str,
    settings: CarrierChangeSettings,
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
        level, bound = settings.level(count)
        if level is Level.FAIL and not _is_rail(name, launches, rails, node):
            level = Level.WARN
        if count:
            times = "once" if count == 1 else f"{count} times"
            why = (
                f"{node} {name}: its carrier came or went {times} while its jobs ran;"
                " look at the cable, the transceiver and both of its ports"
            )
            findings.append(
                finding_of(
                    "carrier changes",
                    level,
                    where,
                    why,
                    value=count,
                    bound=bound,
                    node=node,
                    interface=name,
                )
            )
    if changes and not findings:
        why = f"no carrier came or went on {len(changes)} interfaces of its nodes"
        findings.append(finding_of("carrier changes", Level.PASS, where, why, value=0.0))
    return findings + [
        replace(undefined("carrier changes", where, why), node=node, interface=name)
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


def _judge(case: CaseCurves, settings: Any) -> list[Finding]:
    if not case.counted:
        return []
    # Errors during the paired launch are the link's as well.
    case = replace(case, counted=(*case.counted, *case.counted_alongside))
    return [
        *carrier_changes(case.counted, case.rails, case.where, settings.carrier_change),
        *_of_shares(
            "interface errors",
            case,
            settings.interface_error,
            errors_of,
            "packets had errors",
            "look at the cable, the transceiver and the settings of both ends",
        ),
        *_of_shares(
            "drops",
            case,
            settings.drop,
            drops_of,
            "packets were dropped",
            "look at the rings, the interrupts and flow control",
        ),
        *_of_shares(
            "retransmissions",
            case,
            settings.retransmission,
            again_of,
            "segments sent again",
            "packets were lost between this node and those that it sent to",
        ),
    ]


_SETTINGS: Mapping[str, CountedSettings] = {
    "carrier_change": CarrierChangeSettings(),
    "interface_error": InterfaceErrorSettings(),
    "drop": DropSettings(),
    "retransmission": RetransmissionSettings(),
}

CRITERION = Criterion(
    15,
    _SETTINGS,
    {
        "carrier changes": "carrier_change",
        "interface errors": "interface_error",
        "drops": "drop",
        "retransmissions": "retransmission",
    },
    _judge,
    of_counters=True,
)
