"""Options that all campaigns share: begin one, resume one, print one."""

from __future__ import annotations

import argparse
import random
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from ci.campaigns.errors import CannotRunError, Ended
from ci.campaigns.keeping import code_digest
from ci.campaigns.machine import PlainSettings, this_machine
from ci.campaigns.records import Campaign, SomeRun, SomeSettings
from netproof.errors import NetproofError

MET, MISSED, CANNOT = 0, 1, 2
"""Exit statuses: all aims met, one missed, not possible."""

WHERE = ("out", "resume", "table")
"""Options that choose what to do with a campaign."""


def add_where(parser: argparse.ArgumentParser) -> Any:
    """Add the options that choose what to do; return their group, for further choices."""
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--out", type=Path, metavar="FOLDER", help="begin a campaign in a new folder"
    )
    where.add_argument("--resume", type=Path, metavar="FOLDER", help="go on with one")
    where.add_argument("--table", type=Path, metavar="FOLDER", help="print what it found so far")
    return where


def add_limits(group: Any, *more: tuple[str, float, str]) -> None:
    """Add settings in seconds or shares: ``more``, each as name, default, help, and Settings."""
    for name, default, what in (
        *more,
        ("quiet-share", 0.05, "share of the CPUs that others may use before a run"),
        ("quiet-seconds", 5.0, "seconds over which that is measured"),
        ("quiet-limit", 600.0, "seconds to wait for it"),
        ("run-limit", 3600.0, "seconds after which a run is ended"),
    ):
        group.add_argument(
            f"--{name}",
            type=number(float, 0.01),
            default=default,
            metavar="N",
            help=f"{what} (default: %(default)g)",
        )


def add_counts(group: Any, *counts: tuple[str, int, str]) -> None:
    """Add settings that are counts, from 0 on: each as name, default, help."""
    for name, count, what in counts:
        group.add_argument(
            f"--{name}",
            type=number(int, 0),
            default=count,
            metavar="N",
            help=f"{what} (default: %(default)s)",
        )


def add_kinds(group: Any, kinds: Sequence[str]) -> None:
    """Add the option that selects kinds of runs."""
    group.add_argument(
        "--kinds",
        nargs="+",
        choices=list(kinds),
        default=list(kinds),
        metavar="KIND",
        help=f"only these: {', '.join(kinds)}",
    )


def add_seed(group: Any, what: str) -> None:
    """Add the seed's option; ``what``: the choices that it draws."""
    group.add_argument("--seed", type=int, help=f"of {what}; drawn by default")


def seed_of(options: argparse.Namespace) -> int:
    """Return the requested seed, or draw one."""
    if options.seed is not None:
        return options.seed
    return random.SystemRandom().randrange(1, 2**31)


def plain_settings(options: argparse.Namespace) -> PlainSettings:
    """Return the settings of ``add_seed`` and ``add_limits``."""
    return PlainSettings(
        seed_of(options),
        *(options.quiet_share, options.quiet_seconds, options.quiet_limit, options.run_limit),
    )


def campaign_of(
    settings: SomeSettings, runs: tuple[SomeRun, ...]
) -> Campaign[SomeSettings, SomeRun]:
    """Return a campaign of these runs with this code. Raises CannotRunError without runs."""
    if not runs:
        raise CannotRunError("no run was asked for")
    return Campaign(settings, runs, code_digest(), this_machine())


def number(kind: type, least: float) -> Any:
    """Return a reader of numbers of this kind, ``least`` or more, for the command line."""

    def read_number(text: str) -> Any:
        value = kind(text)
        if not least <= value < float("inf"):
            raise argparse.ArgumentTypeError(f"{text} is not {least:g} or more")
        return value

    return read_number


def options_of(
    parser: argparse.ArgumentParser, arguments: Sequence[str], also: Sequence[str] = ()
) -> argparse.Namespace:
    """Parse the options; an existing campaign has its settings and takes none.

    ``also``: names of further options that an existing campaign takes.
    """
    options = parser.parse_args(arguments)
    if not options.out:
        defaults = vars(parser.parse_args(["--out", "."]))
        given = [name for name, value in vars(options).items() if value != defaults[name]]
        other = [name for name in given if name not in (*WHERE, *also)]
        if other:
            parser.error(f"--{other[0].replace('_', '-')} goes with --out")
    return options


def _end_once(number: int, _frame: FrameType | None) -> None:
    """End the run; a second signal does not interrupt the cleanup."""
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Not SIG_IGN, which the testbed's daemons would inherit.
        signal.signal(one, lambda *_: None)
    raise Ended(signal.Signals(number).name)


def carry_out(
    program: str,
    options: argparse.Namespace,
    begin_in: Callable[[Path], None],
    go_on: Callable[[Path], Any],
    read: Callable[[Path], tuple[Any, Sequence[Any]]],
    table: Callable[[Any, Sequence[Any]], str],
    missed: Callable[[Any, Sequence[Any]], Sequence[str]],
) -> int:
    """Do what ``options`` request; return MET, MISSED or CANNOT.

    ``read``: reads a campaign and its results from a folder; ``missed``: lists missed aims.
    """
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A campaign under nohup ignores the hangup.
        if signal.getsignal(one) is not signal.SIG_IGN:
            signal.signal(one, _end_once)
    folder = (options.out or options.resume or options.table).resolve()
    try:
        if options.out:
            begin_in(folder)
        if not options.table:
            go_on(folder)
        campaign, results = read(folder)
    except (NetproofError, OSError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return CANNOT
    except Ended as ended:
        print(f"{program}: ended by {ended}; go on with --resume {folder}", file=sys.stderr)
        return CANNOT
    print(table(campaign, results))
    return MISSED if missed(campaign, results) else MET
