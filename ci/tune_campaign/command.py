"""Sweeps of settings on the testbed whose best value is known, held against what they recommend.

In each run a value is planted as worse than those of the sweep, in a library, on the nodes or not
at all, and `netproof tune` sweeps. It has to recommend a value that is planted as best, and nothing
where no value differs. A run that broke is not judged, and made again.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence

from ci.campaigns.command_line import add_limits, add_where, carry_out, number, options_of
from ci.campaigns.errors import CannotRunError
from ci.campaigns.keeping import begin, code_digest
from ci.campaigns.machine import this_machine
from ci.tune_campaign.kinds import KINDS
from ci.tune_campaign.making import go_on
from ci.tune_campaign.records import RUNS, Campaign, Settings, planned, read
from ci.tune_campaign.table import missed, table


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ci/tune-campaign", description=__doc__, allow_abbrev=False
    )
    add_where(parser)
    settings = parser.add_argument_group("with --out")
    settings.add_argument(
        "--runs",
        type=number(int, 0),
        default=RUNS,
        metavar="N",
        help="runs of each kind (default: %(default)s)",
    )
    settings.add_argument(
        "--kinds",
        nargs="+",
        choices=list(KINDS),
        default=list(KINDS),
        metavar="KIND",
        help=f"only these: {', '.join(KINDS)}",
    )
    settings.add_argument("--seed", type=int, help="of order and environments; drawn by default")
    add_limits(settings)
    return parser


def _campaign(options: argparse.Namespace) -> Campaign:
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1, 2**31)
    settings = Settings(
        seed, options.quiet_share, options.quiet_seconds, options.quiet_limit, options.run_limit
    )
    runs = planned([name for name in KINDS if name in options.kinds], options.runs, seed)
    if not runs:
        raise CannotRunError("no run was asked for")
    return Campaign(settings, runs, code_digest(), this_machine())


def main(arguments: Sequence[str]) -> int:
    """Make a campaign, go on with one, or print one: 0 aims met, 1 one missed, 2 not done."""
    options = options_of(_parser(), arguments)
    return carry_out(
        "ci/tune-campaign",
        options,
        lambda folder: begin(folder, _campaign(options)),
        go_on,
        read,
        table,
        missed,
    )
