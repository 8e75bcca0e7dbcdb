"""Interleaved launches of two configurations, paired where the machine had one pace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from netproof.criteria.confirming import ConfirmSettings
from netproof.criteria.interface import Pairs
from netproof.measurement.curve import Curve
from netproof.measurement.disturbance import Pace, disturbed, unlike
from netproof.measurement.interval import FEWEST_RANKED

if TYPE_CHECKING:
    from netproof.verdict.engine import Subject

MOST_REASONS = 2
"""Reasons in a sentence on launches that do not count."""


NOT_TOGETHER = "they were not interleaved"


@dataclass(frozen=True)
class InterleavedLaunch:
    """A launch of one of two configurations, with its nodes' paces, and what else these did."""

    curve: Curve
    paces: tuple[Pace, ...] = ()
    noise: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pair:
    """A launch of each of two configurations; ``why`` they cannot be compared, or empty."""

    own: Curve
    other: Curve
    why: tuple[str, ...] = ()


def pairs_needed(subject: Subject) -> int:
    """Return how many pairs a failure takes.

    Where a machine has two paces, two or three ratios can agree by chance and lie far off. From six
    on an interval holds for any distribution. A site that allows fewer launches has fewer.
    """
    confirm: ConfirmSettings = subject.settings.confirm
    apart = sum(not launch.peers for launch in subject.measured.launches)
    possible = max(confirm.most_launches - apart, confirm.launches)
    return min(max(confirm.launches, FEWEST_RANKED), possible)


def pairs_with(subject: Subject, environment: str) -> tuple[Pair, ...]:
    """Return a case's launches with those in ``environment`` that were interleaved with them."""
    settings, rounds = subject.settings.disturbance, []
    for launch in subject.measured.launches:
        noise = disturbed(launch.loads, settings)
        for peer in (one for one in launch.peers if one.environment == environment):
            sides = ((subject.case.environment, launch.curve), (environment, peer.curve))
            paces = {
                name: [one for one in launch.paces if one.environment == name] for name, _ in sides
            }
            rounds.append([InterleavedLaunch(it, tuple(paces[name]), noise) for name, it in sides])
    return paired(rounds, settings.pace)


def paired(rounds: Sequence[Sequence[InterleavedLaunch]], most: float) -> tuple[Pair, ...]:
    """Return one pair per round, first those that count; each round has a launch of both.

    A launch is paired with that of its round, since both had one pace of the machine. If the CPUs
    were moved in between, and their distance is known, it is paired with the nearest launch with
    the same distance. ``most``: as in ``unlike``.
    """
    own, others = list(range(len(rounds))), list(range(len(rounds)))
    found: list[tuple[int, int]] = []
    for apart in range(len(rounds)):
        for number in tuple(own):
            for other in dict.fromkeys((number - apart, number + apart)):
                if other in others and not _why(rounds, number, other, most):
                    found.append((number, other))
                    own.remove(number)
                    others.remove(other)
                    break
    pairs = [Pair(rounds[one][0].curve, rounds[other][1].curve) for one, other in sorted(found)]
    for one, other in zip(own, others, strict=True):
        why = _why(rounds, one, one, most) or _why(rounds, one, other, most)
        pairs.append(Pair(rounds[one][0].curve, rounds[other][1].curve, why))
    return tuple(pairs)


def _why(
    rounds: Sequence[Sequence[InterleavedLaunch]], number: int, other: int, most: float
) -> tuple[str, ...]:
    """Return why launches of two rounds, or of the same, do not count as a pair."""
    one, two = rounds[number][0], rounds[other][1]
    reason = unlike(one.paces, two.paces, most)
    if not reason and number != other and not (one.paces and two.paces):
        reason = NOT_TOGETHER
    return (*dict.fromkeys((*one.noise, *two.noise)), *([reason] if reason else []))


def chosen(pairs: Sequence[Pair], needed: int) -> Pairs:
    """Choose the undisturbed pairs if they are ``needed`` or more; else all of them."""
    good = [pair for pair in pairs if not pair.why]
    if len(good) >= needed:
        return tuple((pair.own, pair.other) for pair in good), ""
    reasons = list(dict.fromkeys(text for pair in pairs for text in pair.why))
    shown = "; ".join(reasons[:MOST_REASONS])
    more = f", and {len(reasons) - MOST_REASONS} more reasons" if reasons[MOST_REASONS:] else ""
    short = (
        f"{len(good)} of {len(pairs)} pairs were undisturbed, and a failure takes {needed}"
        f"{': ' if shown else ''}{shown}{more}"
    )
    return tuple((pair.own, pair.other) for pair in pairs), short


def pairs_of(members: Sequence[Subject]) -> Iterator[tuple[str, Mapping[str, Pairs]]]:
    """Yield each case of one function with its interleaved launches, by the other's label."""
    places = {(one.case.partition, one.case.environment): one for one in members}
    several: dict[str, dict[str, list[Pair]]] = defaultdict(lambda: defaultdict(list))
    needed: dict[tuple[str, str], int] = {}
    for member in members:
        peers = (peer for launch in member.measured.launches for peer in launch.peers)
        for environment in dict.fromkeys(peer.environment for peer in peers):
            other = places.get((member.case.partition, environment))
            if other is None:
                continue
            pairs, one_way = pairs_with(member, environment), (str(member), str(other))
            several[one_way[0]][one_way[1]] += pairs
            several[one_way[1]][one_way[0]] += [Pair(it.other, it.own, it.why) for it in pairs]
            for sides in (one_way, one_way[::-1]):
                needed[sides] = max(needed.get(sides, 0), pairs_needed(member))
    for label, others in several.items():
        yield label, {other: chosen(pairs, needed[label, other]) for other, pairs in others.items()}
