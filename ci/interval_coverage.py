"""How often the stated 95 % intervals hold what all launches together say.

A report with many launches of each case, all made within one job, is taken for the truth: the
landmarks of their median curve. Groups of few launches are drawn from them at random, and each
group's intervals, as a session of so many launches states them, either hold the truth or do not.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from netproof.errors import NetproofError
from netproof.measurement.curve import Curve
from netproof.measurement.landmark_table import LANDMARKS, Better
from netproof.measurement.landmarks import Landmarks, landmarks
from netproof.measurement.launches import median_curve
from netproof.present import tables
from netproof.session import session as sessions
from netproof.session.measured import Measured

GROUPS = (3, 6, 9, 12)
"""Launches of a group."""

LEAST_LAUNCHES = 5 * GROUPS[-1]
"""Of a case, so that a group is a small part of them."""

HELD = (0.93, 0.97)
"""Aim: the share of the intervals that hold the truth, of all cases together."""

QUANTITIES = tuple(one.name for one in LANDMARKS.values() if one.better is not Better.NEITHER)


def shares(
    launches: Sequence[Curve], tries: int, chance: random.Random
) -> dict[tuple[str, int], float]:
    """Of each landmark and number of launches, the share of the groups that hold the truth.

    What the launches do not define, or a group gives no interval, is left out.
    """
    truth = landmarks(median_curve(launches), None)
    found = {}
    for count in GROUPS:
        held: Mapping[str, list[bool]] = defaultdict(list)
        for _ in range(tries):
            group = tuple(chance.sample(launches, count))
            stated = landmarks(median_curve(group), None, launches=group)
            for name, value in _defined(truth):
                interval = stated.interval(name)
                if interval is not None:
                    held[name].append(interval[0] <= value <= interval[1])
        found |= {(name, count): sum(each) / len(each) for name, each in held.items()}
    return found


def _defined(truth: Landmarks) -> Iterator[tuple[str, float]]:
    for name in QUANTITIES:
        value = getattr(truth, name)
        if value is not None:
            yield name, value


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table; 0 where the aim is met, 1 where it is missed, 2 where nothing can be said."""
    parser = argparse.ArgumentParser(prog="ci/interval-coverage", description=__doc__)
    parser.add_argument("reports", nargs="+", type=Path, metavar="REPORT")
    parser.add_argument("--tries", type=int, default=400, metavar="N", help="groups of each kind")
    parser.add_argument("--seed", type=int, help="of what is drawn; drawn by default")
    asked = parser.parse_args(arguments)
    seed = random.randrange(2**32) if asked.seed is None else asked.seed
    out = tables.console()
    try:
        several = [case for path in asked.reports for case in _cases(path)]
    except NetproofError as error:
        tables.say(tables.console(stderr=True), f"ci/interval-coverage: {error}", "red")
        return 2
    if not several:
        tables.say(
            tables.console(stderr=True),
            f"ci/interval-coverage: no case has {LEAST_LAUNCHES} launches or more; measure with"
            " reframe -S launches=200",
            "red",
        )
        return 2
    chance = random.Random(seed)
    out.print(f"{len(several)} cases, {asked.tries} groups of each size, seed {seed}\n")
    return 0 if _print([shares(one, asked.tries, chance) for one in several], out) else 1


def _cases(path: Path) -> Iterator[tuple[Curve, ...]]:
    """The launches of each case of a report that has enough of them."""
    for result in sessions.load(path).results:
        if result.case is None or not result.measured or "launches" not in result.measured:
            continue
        launches = Measured.from_json(result.measured).launches
        if len(launches) >= LEAST_LAUNCHES:
            yield tuple(one.curve for one in launches)


def _print(found: Sequence[Mapping[tuple[str, int], float]], out: Console) -> bool:
    """A row for each landmark and one for all; whether all groups together meet the aim."""
    titles = {one.name: one.title for one in LANDMARKS.values()}
    rows = [
        (
            titles[name],
            [[one[name, count] for one in found if (name, count) in one] for count in GROUPS],
        )
        for name in QUANTITIES
    ]
    together = [
        [share for _, cells in rows for share in cells[place]] for place in range(len(GROUPS))
    ]
    heading = ("95 % interval of", *(f"{count} launches" for count in GROUPS))
    for row in (heading, ["---"] * len(heading)):
        out.print(f"| {' | '.join(row)} |", soft_wrap=True)
    for title, cells in [*rows, ("all", together)]:
        if any(cells):
            out.print(f"| {' | '.join([title, *map(_share, cells)])} |", soft_wrap=True)
    return all(HELD[0] <= sum(each) / len(each) <= HELD[1] for each in together if each)


def _share(several: Sequence[float]) -> str:
    """The mean of some shares, and the least and the largest of cases."""
    if not several:
        return "-"
    mean = sum(several) / len(several)
    return f"{mean:.1%} ({min(several):.0%} to {max(several):.0%})"


if __name__ == "__main__":
    raise SystemExit(main())
