"""Sweeps of settings on the testbed whose best value is known, compared with what they recommend.

Each run plants a value worse than those of the sweep, in a library, on the nodes or not at all,
and `netproof measure tune` sweeps. It has to recommend the value planted as best, and nothing where
no value differs. A run that broke is not judged, and repeated.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ci.campaigns.command_line import (
    add_counts,
    add_kinds,
    add_limits,
    add_seed,
    add_where,
    campaign_of,
    carry_out,
    options_of,
    plain_settings,
)
from ci.campaigns.keeping import begin
from ci.tune_campaign.kinds import KINDS
from ci.tune_campaign.making import go_on
from ci.tune_campaign.records import RUNS, Campaign, planned, read
from ci.tune_campaign.table import missed, table


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ci/tune-campaign", description=__doc__, allow_abbrev=False
    )
    add_where(parser)
    settings = parser.add_argument_group("with --out")
    add_counts(settings, ("runs", RUNS, "runs of each kind"))
    add_kinds(settings, list(KINDS))
    add_seed(settings, "order and environments")
    add_limits(settings)
    return parser


def _campaign(options: argparse.Namespace) -> Campaign:
    settings = plain_settings(options)
    kinds = [name for name in KINDS if name in options.kinds]
    return campaign_of(settings, planned(kinds, options.runs, settings.seed))


def main(arguments: Sequence[str]) -> int:
    """Begin, resume or print a campaign: 0 aims met, 1 one missed, 2 not possible."""
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
