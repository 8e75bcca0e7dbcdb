"""Criterion 21: whether one way between two nodes loses more than the other.

A message there and back is timed as a whole: no benchmark here separates the two ways, since no
two nodes share a clock. Retransmissions do: what a node sent again was lost on the way from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from netproof.criteria.counted import CountedSettings, finding_of
from netproof.criteria.counted_shares import Share, ports_of, sent_again
from netproof.criteria.findings import Finding, Level, undefined
from netproof.criteria.interface import CaseCurves, CountedLaunch, Criterion
from netproof.errors import NetproofError
from netproof.measurement.counters import INTERFACE

ALIKE = 2.0
"""Largest ratio of the bytes that both nodes send: of acknowledgements few are lost."""


@dataclass(frozen=True)
class DirectionSettings(CountedSettings):
    """``warn`` and ``fail`` above this difference of the shares that both ways lose.

    It is flagged where the worse way lost ``least`` segments and ``times`` the other's share. By
    default nothing fails: retransmissions have bounds of their own. Raises NetproofError for
    ``times`` below 1.
    """

    warn: float | None = 1e-3
    least: int = 20
    times: float = 3.0

    def __post_init__(self) -> None:
        """Check the values as the class describes."""
        super().__post_init__()
        if not self.times >= 1:
            raise NetproofError(f"DirectionSettings: times={self.times}: it is 1 or more")


def directions(
    launches: Sequence[CountedLaunch],
    rails: Sequence[str],
    *,
    where: str,
    settings: DirectionSettings = DirectionSettings(),
) -> Finding | None:
    """Return how much more one way between two nodes loses than the other (criterion 21).

    The difference of the shares of segments that both nodes sent again, over the undisturbed
    launches if any; its ``node`` is the sender on the worse way. None for other than two nodes,
    where one sent more than twice as many bytes over the ``rails`` as the other, and where a port
    of RDMA retransmits by itself. Undefined where something was not counted.
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
            why = way.why or f"{node} did not count what it sent over {', '.join(rails)}"
            return undefined("directions", where, why)
        ways.append(way)
        sent.append(bytes_sent)
    if max(sent) > ALIKE * min(sent):
        return None
    better, worse = sorted(ways, key=lambda way: way.value)
    value = worse.value - better.value
    level, bound = settings.level(value)
    flagged = level in (Level.WARN, Level.FAIL)
    apart = (worse.count or 0) >= settings.least and worse.value >= settings.times * better.value
    if flagged and not apart:
        level, flagged = Level.PASS, False
    elif level is Level.FAIL and not any(launch.undisturbed for launch in launches):
        level = Level.WARN
    advice = ""
    if flagged:
        advice = (
            f", bound {100 * (bound or 0):.2g} % more; look at what {worse.node} sends with, what"
            f" {better.node} receives with, the fibre between them for this way, and duplex"
        )
    return finding_of(
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


def _judge(case: CaseCurves, settings: Any) -> tuple[Finding, ...]:
    if not case.counted or not case.rails or case.inside:
        return ()
    found = directions(case.counted, case.rails, where=case.where, settings=settings.direction)
    return () if found is None else (found,)


CRITERION = Criterion(
    21,
    {"direction": DirectionSettings()},
    {"directions": "direction"},
    _judge,
    of_counters=True,
)
