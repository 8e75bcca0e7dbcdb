"""The command line that all evaluations share: begin one, resume one, print one, judge it again."""

from __future__ import annotations

import argparse
import random
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ci.evaluation.engine import (
    RUNS,
    Campaign,
    Evaluation,
    begin,
    faults,
    go_on,
    judged_again,
    read,
)
from ci.evaluation.table import table
from ci.evaluation.testbed import CANNOT, code_digest, this_machine

MET, MISSED = 0, 1
"""Exit statuses: all aims met, one missed; CANNOT: not possible."""
WHERE = ("out", "resume", "table", "judge_again")
"""Options that choose what to do with an evaluation."""


class Ended(BaseException):
    """A signal ended the evaluation; no handler of errors may catch it."""


def number(kind: type, least: float) -> Any:
    """Return a reader of numbers of this kind, ``least`` or more, for the command line."""

    def read_number(text: str) -> Any:
        value = kind(text)
        if not least <= value < float("inf"):
            raise argparse.ArgumentTypeError(f"{text} is not {least:g} or more")
        return value

    return read_number


def add_options(evaluation: Evaluation, parser: argparse.ArgumentParser) -> None:
    """Add the options of an evaluation."""
    where = parser.add_mutually_exclusive_group(required=True)
    for name, what in (
        ("out", "begin one in a new folder"),
        ("resume", "go on with one"),
        ("table", "print what it found so far"),
        ("judge-again", "print what it found, its reports judged by the code that is here"),
    ):
        if evaluation.rejudges or name != "judge-again":
            where.add_argument(f"--{name}", type=Path, metavar="FOLDER", help=what)
    settings = parser.add_argument_group("with --out")

    def add(kind: type, least: float, name: str, default: float, what: str) -> None:
        said = f"{what} (default: {default:g})"
        settings.add_argument(
            f"--{name}", type=number(kind, least), default=default, metavar="N", help=said
        )

    for plant in {plant.counted: plant for plant in evaluation.plants.values()}.values():
        what = "each kind of fault" if plant.counted == RUNS else plant.said
        add(int, 0, plant.counted, plant.least_runs, f"runs: {what}")
    if kinds := list(faults(evaluation.name)):
        said = f"only these: {', '.join(kinds)}"
        settings.add_argument(
            "--kinds", nargs="+", choices=kinds, default=kinds, metavar="KIND", help=said
        )
    evaluation.add_settings(settings)
    settings.add_argument("--seed", type=int, help="of all that is drawn; drawn by default")
    add(float, 0.01, "quiet-share", 0.05, "share of the CPUs that others may use before a run")
    add(float, 0.01, "quiet-seconds", 5.0, "seconds over which that is measured")
    add(float, 0.01, "quiet-limit", 600.0, "seconds to wait for it")
    add(float, 0.01, "run-limit", 3600.0, "seconds after which a run is ended")


def options_of(
    evaluation: Evaluation, parser: argparse.ArgumentParser, arguments: Sequence[str]
) -> dict[str, Any]:
    """Parse the options; an existing evaluation has its settings and takes none."""
    add_options(evaluation, parser)
    options = vars(parser.parse_args(arguments))
    if not options["out"]:
        defaults = vars(parser.parse_args(["--out", "."]))
        for name, value in options.items():
            if value != defaults[name] and name not in WHERE:
                parser.error(f"--{name.replace('_', '-')} goes with --out")
    return options


def _end_once(number: int, _frame: Any) -> None:
    """End the run; a second signal does not interrupt the cleanup."""
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Not SIG_IGN, which the testbed's daemons would inherit.
        signal.signal(one, lambda *_: None)
    raise Ended(signal.Signals(number).name)


def run(evaluation: Evaluation, options: dict[str, Any]) -> int:
    """Begin, resume, print or rejudge an evaluation; return MET, MISSED, or CANNOT if ended."""
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # An evaluation under nohup ignores the hangup.
        if signal.getsignal(one) is not signal.SIG_IGN:
            signal.signal(one, _end_once)
    folders = {name: options.pop(name, None) for name in WHERE}
    folder = next(one for one in folders.values() if one).resolve()
    try:
        if folders["out"]:
            if options["seed"] is None:
                options["seed"] = random.SystemRandom().randrange(1, 2**31)
            code, host = code_digest(), this_machine()
            begin(folder, Campaign(options, evaluation.plan(options), code, host))
        if folders["out"] or folders["resume"]:
            go_on(evaluation, folder)
        campaign, results = (judged_again if folders["judge_again"] else read)(evaluation, folder)
    except Ended as ended:
        print(
            f"ci/evaluate {evaluation.name}: ended by {ended}; go on with --resume {folder}",
            file=sys.stderr,
        )
        return CANNOT
    print(table(evaluation, campaign, results))
    return MISSED if evaluation.missed(campaign, results) else MET
