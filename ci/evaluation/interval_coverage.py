"""Measure how often the stated 95 % intervals contain the value of all launches.

The truth is a report with many launches of each case, all within one job: the landmarks of their
median curve. Groups of few launches are drawn from them, and each group's intervals contain the
truth or not.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from ci.evaluation.markdown import markdown
from netproof.errors import NetproofError
from netproof.measurement.curve import Curve, median_curve
from netproof.measurement.landmark_table import LANDMARKS, Better
from netproof.measurement.landmarks import Landmarks, landmarks
from netproof.present import terminal
from netproof.session import session as sessions

GROUPS = (3, 6, 9, 12)
"""Launches of a group."""

LEAST_LAUNCHES = 5 * GROUPS[-1]
"""Least launches of a case, so that a group is a small part of them."""

HELD = (0.93, 0.97)
"""Aim: share of the intervals of all cases that contain the truth."""

QUANTITIES = tuple(one.name for one in LANDMARKS.values() if one.better is not Better.NEITHER)


def shares(
    launches: Sequence[Curve], tries: int, chance: random.Random
) -> dict[tuple[str, int], float]:
    """Return the share of groups that contain the truth, by landmark and number of launches.

    Undefined landmarks, and groups without an interval, are left out.
    """
    truth = landmarks(median_curve(launches), None)
    found = {}
    for count in GROUPS:
        hits: Mapping[str, list[bool]] = defaultdict(list)
        for _ in range(tries):
            group = tuple(chance.sample(launches, count))
            stated = landmarks(median_curve(group), None, launches=group)
            for name, value in _defined(truth):
                interval = stated.interval(name)
                if interval is not None:
                    hits[name].append(interval[0] <= value <= interval[1])
        found |= {(name, count): sum(each) / len(each) for name, each in hits.items()}
    return found


def _defined(truth: Landmarks) -> Iterator[tuple[str, float]]:
    for name in QUANTITIES:
        value = getattr(truth, name)
        if value is not None:
            yield name, value


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table; return 0 if the aim is met, 1 if it is missed, 2 on an error."""
    parser = argparse.ArgumentParser(prog="ci/interval-coverage", description=__doc__)
    parser.add_argument("reports", nargs="+", type=Path, metavar="REPORT")
    parser.add_argument("--tries", type=int, default=400, metavar="N", help="groups of each kind")
    parser.add_argument("--seed", type=int, help="of what is drawn; drawn by default")
    options = parser.parse_args(arguments)
    seed = random.randrange(2**32) if options.seed is None else options.seed
    out = terminal.console()
    try:
        several = [case for path in options.reports for case in _cases(path)]
        if not several:
            raise NetproofError(
                f"no case has {LEAST_LAUNCHES} launches or more; measure with reframe -S"
                " launches=200"
            )
    except NetproofError as error:
        terminal.say(terminal.console(stderr=True), f"ci/interval-coverage: {error}", "red")
        return 2
    chance = random.Random(seed)
    out.print(f"{len(several)} cases, {options.tries} groups of each size, seed {seed}\n")
    return 0 if _print([shares(one, options.tries, chance) for one in several], out) else 1


def _cases(path: Path) -> Iterator[tuple[Curve, ...]]:
    """Yield the launches of each case of a report that has enough of them."""
    for result in sessions.load(path).results:
        if result.case is None or not result.measured:
            continue
        launches = result.measured.launches
        if len(launches) >= LEAST_LAUNCHES:
            yield tuple(one.curve for one in launches)


def _print(found: Sequence[Mapping[tuple[str, int], float]], out: Console) -> bool:
    """Print a row for each landmark and one for all; return whether all groups meet the aim."""
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
    shown = [
        [title, *map(_share, cells)] for title, cells in [*rows, ("all", together)] if any(cells)
    ]
    for line in markdown([heading, *shown]):
        out.print(line, soft_wrap=True)
    return all(HELD[0] <= sum(each) / len(each) <= HELD[1] for each in together if each)


def _share(several: Sequence[float]) -> str:
    """Format the mean of some shares, with the least and the largest."""
    if not several:
        return "-"
    mean = sum(several) / len(several)
    return f"{mean:.1%} ({min(several):.0%} to {max(several):.0%})"
