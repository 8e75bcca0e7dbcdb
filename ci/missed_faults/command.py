"""Runs of the testbed, each with a fault of an MPI library or of links, against their verdicts.

Each run is a smoke run of one switch with two environments, or with one if references of the
campaign's healthy runs judge it. A case of the faulty library has to fail by a sentence that names
an affected size; without a fault nothing may fail. A run that broke is not judged, and repeated.
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
from ci.campaigns.errors import CannotRunError
from ci.campaigns.keeping import begin
from ci.missed_faults.kinds import KINDS
from ci.missed_faults.making import go_on
from ci.missed_faults.records import DERIVING_RUNS, RUNS, Campaign, planned, read
from ci.missed_faults.table import missed, table
from netproof.verdict.derive import LEAST_SESSIONS


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ci/missed-faults", description=__doc__, allow_abbrev=False
    )
    add_where(parser)
    settings = parser.add_argument_group("with --out")
    add_counts(
        settings,
        ("runs", RUNS, "runs of each fault"),
        ("healthy", RUNS, "runs without a fault, and as many by derived references"),
        ("deriving", DERIVING_RUNS, "runs without a fault that make those, at least 3"),
    )
    add_kinds(settings, list(KINDS))
    add_seed(settings, "the order and the environments")
    add_limits(settings)
    return parser


def _campaign(options: argparse.Namespace) -> Campaign:
    settings = plain_settings(options)
    kinds = [name for name in KINDS if name in options.kinds]
    if options.deriving < LEAST_SESSIONS:
        raise CannotRunError(
            f"--deriving {options.deriving}: references take {LEAST_SESSIONS} runs"
        )
    runs = planned(kinds, options.runs, options.healthy, options.deriving, settings.seed)
    return campaign_of(settings, runs)


def main(arguments: Sequence[str]) -> int:
    """Begin, resume or print a campaign: 0 aims met, 1 one missed, 2 not possible."""
    options = options_of(_parser(), arguments)
    return carry_out(
        "ci/missed-faults",
        options,
        lambda folder: begin(folder, _campaign(options)),
        go_on,
        read,
        table,
        missed,
    )
