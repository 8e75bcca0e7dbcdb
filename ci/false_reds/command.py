"""Acceptance runs of the healthy testbed under conditions of the machine, and of a sick switch.

Each run is that of ``ci/quickstart``. No healthy one may be red, and every sick one has to be.
Anything missing or unreadable counts against a run, whichever way it was to end.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ci.campaigns.command_line import (
    add_counts,
    add_limits,
    add_seed,
    add_where,
    campaign_of,
    carry_out,
    options_of,
    seed_of,
)
from ci.campaigns.keeping import begin
from ci.false_reds.making import go_on, read_judged_again
from ci.false_reds.records import COUNTS, SAID, Campaign, Condition, Settings, planned, read
from ci.false_reds.table import missed, table


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ci/false-reds", description=__doc__, allow_abbrev=False)
    add_where(parser).add_argument(
        "--judge-again",
        type=Path,
        metavar="FOLDER",
        help="print what it found, its reports judged by the code that is here",
    )
    counts = parser.add_argument_group("runs of each condition, with --out")
    add_counts(counts, *((one, count, SAID[one]) for one, count in COUNTS.items()))
    settings = parser.add_argument_group("what all runs have in common, with --out")
    kind = settings.add_mutually_exclusive_group()
    kind.add_argument(
        "--smoke", dest="whole", action="store_false", help="as ci/quickstart --smoke (the default)"
    )
    kind.add_argument("--whole", action="store_true", help="as ci/quickstart")
    parser.set_defaults(whole=False)
    add_seed(settings, "the order and of all loads")
    add_limits(
        settings,
        ("burst", 2.0, "mean seconds of a burst"),
        ("pause", 2.0, "mean seconds between bursts"),
    )
    return parser


def _campaign(options: argparse.Namespace) -> Campaign:
    settings = Settings(
        seed_of(options),
        options.whole,
        options.burst,
        options.pause,
        options.quiet_share,
        options.quiet_seconds,
        options.quiet_limit,
        options.run_limit,
    )
    counts = {one: getattr(options, one.replace("-", "_")) for one in Condition}
    return campaign_of(settings, planned(counts, settings.seed))


def main(arguments: Sequence[str]) -> int:
    """Begin, resume or print a campaign: 0 aims met, 1 one missed, 2 not possible."""
    options = options_of(_parser(), arguments, also=("judge_again",))
    again = options.judge_again is not None
    if again:
        options.table = options.judge_again
    return carry_out(
        "ci/false-reds",
        options,
        lambda folder: begin(folder, _campaign(options)),
        go_on,
        read_judged_again if again else read,
        table,
        missed,
    )
