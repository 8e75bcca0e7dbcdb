"""Launches of two configurations next to each other, by which alone the two are then compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from netproof.measurement.curve import Curve
from netproof.measurement.disturbance import disturbed
from netproof.measurement.interval import FEWEST_RANKED
from netproof.measurement.pace import Pace, unlike
from netproof.verdict.subject import Subject

MOST_REASONS = 2
"""That a sentence gives of why launches do not count."""


NOT_TOGETHER = "they were not made next to each other"


@dataclass(frozen=True)
class OneOfTwo:
    """A launch of one of two configurations.

    ``paces``: how far its node's CPUs were apart in both halves, empty where its site does not ask;
    ``noise``: what else the nodes did meanwhile.
    """

    curve: Curve
    paces: tuple[Pace, ...] = ()
    noise: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pair:
    """A launch of each of two configurations; ``why`` they do not show how the two differ."""

    own: Curve
    other: Curve
    why: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pairs:
    """Those by which two configurations are compared; ``short``: why they show no failure."""

    launches: tuple[tuple[Curve, Curve], ...]
    short: str = ""


def pairs_needed(subject: Subject) -> int:
    """How many it takes to fail.

    Where a machine has two paces, two or three ratios can agree by chance and lie far off. From six
    on an interval holds whatever they scatter like. A site that allows fewer launches has those.
    """
    confirm = subject.settings.confirm
    apart = sum(not launch.peers for launch in subject.measured.launches)
    possible = max(confirm.most_launches - apart, confirm.launches)
    return min(max(confirm.launches, FEWEST_RANKED), possible)


def pairs_with(subject: Subject, environment: str) -> tuple[Pair, ...]:
    """Launches of a case with those in ``environment`` that were made next to them."""
    settings, rounds = subject.settings.disturbance, []
    for launch in subject.measured.launches:
        noise = disturbed(launch.loads, settings)
        for peer in launch.peers:
            if peer.environment == environment:
                sides = ((subject.case.environment, launch.curve), (environment, peer.curve))
                rounds.append([_one(name, curve, launch.paces, noise) for name, curve in sides])
    return paired(rounds, settings.pace)


def _one(environment: str, curve: Curve, paces: Sequence[Pace], noise: tuple[str, ...]) -> OneOfTwo:
    return OneOfTwo(curve, tuple(one for one in paces if one.environment == environment), noise)


def paired(rounds: Sequence[Sequence[OneOfTwo]], most: float) -> tuple[Pair, ...]:
    """As many pairs as rounds, each of which made a launch of both; first those that count.

    A launch is paired with that of its round, for both had one pace of the machine. Where it is
    known how far the CPUs were apart it need not be that round: if they were moved in between, a
    launch is paired with the nearest that had them as far apart. ``most``: as ``unlike`` has it.
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
    rounds: Sequence[Sequence[OneOfTwo]], number: int, other: int, most: float
) -> tuple[str, ...]:
    """Why a launch of one round and one of another, or the same, do not count as a pair."""
    one, two = rounds[number][0], rounds[other][1]
    told = unlike(one.paces, two.paces, most)
    if not told and number != other and not (one.paces and two.paces):
        told = NOT_TOGETHER
    return (*dict.fromkeys((*one.noise, *two.noise)), *([told] if told else []))


def chosen(pairs: Sequence[Pair], needed: int) -> Pairs:
    """Those that nothing was in the way of, if they are ``needed`` or more; else all of them."""
    good = [pair for pair in pairs if not pair.why]
    if len(good) >= needed:
        return Pairs(tuple((pair.own, pair.other) for pair in good))
    reasons = list(dict.fromkeys(text for pair in pairs for text in pair.why))
    told = "; ".join(reasons[:MOST_REASONS])
    more = f", and {len(reasons) - MOST_REASONS} more reasons" if reasons[MOST_REASONS:] else ""
    short = (
        f"nothing was in the way of {len(good)} of {len(pairs)} pairs, and a failure takes {needed}"
        f"{': ' if told else ''}{told}{more}"
    )
    return Pairs(tuple((pair.own, pair.other) for pair in pairs), short)
