"""Runs of the testbed with one planted fault each, compared with ``netproof diagnose``'s answers.

Each run is a smoke run of one switch, or rounds of pairs alone. The diagnosis has to name the
planted fault with its place, and nothing else; on a healthy testbed it may name nothing. A run
that broke is not judged, and repeated.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ci.campaigns.command_line import (
    add_counts,
    add_kinds,
    add_limits,
    add_seed,
    add_where,
    campaign_of,
    carry_out,
    number,
    options_of,
    seed_of,
)
from ci.campaigns.keeping import begin
from ci.diagnose_campaign.kinds import KINDS
from ci.diagnose_campaign.making import go_on, read_judged_again
from ci.diagnose_campaign.records import HEALTHY_RUNS, RUNS, Campaign, Settings, planned, read
from ci.diagnose_campaign.table import missed, table

FLAP_WITHIN_S, FLAP_WITHIN_PAIRS_S = 30.0, 3.0
"""Seconds after the first launch within which a link goes down; a run lasts longer."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ci/diagnose-campaign", description=__doc__, allow_abbrev=False
    )
    add_where(parser).add_argument(
        "--judge-again",
        type=Path,
        metavar="FOLDER",
        help="print what it found, its reports judged by the code that is here",
    )
    settings = parser.add_argument_group("with --out")
    add_counts(
        settings,
        ("runs", RUNS, "runs of each kind of fault"),
        ("healthy", HEALTHY_RUNS, "runs without a fault"),
    )
    add_kinds(settings, list(KINDS))
    settings.add_argument(
        "--pairs",
        action="store_true",
        help="a run measures rounds of pairs alone, as netproof diagnose --measure does",
    )
    add_seed(settings, "the order, the places and all else")
    settings.add_argument(
        "--flap-within",
        type=number(float, 0.01),
        metavar="N",
        help="seconds after the first launch in which a link goes down for 2 s (default:"
        f" {FLAP_WITHIN_S:g}, with --pairs {FLAP_WITHIN_PAIRS_S:g}, which are over sooner)",
    )
    add_limits(settings)
    return parser


def _flap_within_s(options: argparse.Namespace) -> float:
    if options.flap_within is not None:
        return options.flap_within
    return FLAP_WITHIN_PAIRS_S if options.pairs else FLAP_WITHIN_S


def _campaign(options: argparse.Namespace) -> Campaign:
    settings = Settings(
        seed_of(options),
        _flap_within_s(options),
        options.quiet_share,
        options.quiet_seconds,
        options.quiet_limit,
        options.run_limit,
        options.pairs,
    )
    kinds = [name for name in KINDS if name in options.kinds]
    runs = planned(kinds, options.runs, options.healthy, settings.seed, pairs=options.pairs)
    return campaign_of(settings, runs)


def main(arguments: Sequence[str]) -> int:
    """Begin, resume or print a campaign: 0 aims met, 1 one missed, 2 not possible."""
    options = options_of(_parser(), arguments, also=("judge_again",))
    again = options.judge_again is not None
    if again:
        options.table = options.judge_again
    return carry_out(
        "ci/diagnose-campaign",
        options,
        lambda folder: begin(folder, _campaign(options)),
        go_on,
        read_judged_again if again else read,
        table,
        missed,
    )
