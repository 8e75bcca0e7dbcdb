"""The command ci/evaluate: an evaluation by its name, with the options of evaluations.yaml."""

from __future__ import annotations

import argparse
import importlib
import random
import signal
import sys
from collections.abc import Sequence
from typing import Any

from ci.evaluation import engine
from ci.evaluation.machine import CANNOT, code_digest, this_machine
from ci.evaluation.plants import CAMPAIGN, EVALUATIONS, REPLAYS, RUNS, Evaluation
from ci.options import add
from netproof.errors import NetproofError

MET, MISSED = 0, 1
"""Exit statuses: all aims met, one missed; CANNOT: not possible."""
WHERE = ("out", "resume", "table", "judge_again")
"""Options that choose what to do with an evaluation of plants."""


class Ended(BaseException):
    """A signal ended the evaluation; no handler of errors may catch it."""


def options_of(evaluation: Evaluation, arguments: Sequence[str]) -> dict[str, Any]:
    """Parse an evaluation's options; one that exists has its settings and takes none."""
    parser = argparse.ArgumentParser(
        prog=f"ci/evaluate {evaluation.name}", description=evaluation.about, allow_abbrev=False
    )
    where = parser.add_mutually_exclusive_group(required=True)
    again = {} if evaluation.verb == "measure" else CAMPAIGN["again"]
    add(where, CAMPAIGN["where"] | again)
    settings = parser.add_argument_group("with --out")
    for plant in {plant.counted: plant for plant in evaluation.plants.values()}.values():
        what = "each kind of fault" if plant.counted == RUNS else plant.said
        count = {"of": "whole number", "least": 0, "default": plant.least_runs}
        add(settings, {f"--{plant.counted}": {**count, "help": f"runs: {what}"}})
    if kinds := list(evaluation.faults):
        only = {"nargs": "+", "choices": kinds, "metavar": "KIND", "help": ", ".join(kinds)}
        settings.add_argument("--kinds", default=kinds, **only)
    if evaluation.verb == "diagnose":
        add(settings, CAMPAIGN["pairs"])
    add(settings, CAMPAIGN["settings"])
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
            plan = evaluation.plan(options)
            engine.begin(folder, engine.Campaign(options, plan, code_digest(), this_machine()))
        if folders["out"] or folders["resume"]:
            engine.go_on(evaluation, folder)
        found = (engine.judged_again if folders["judge_again"] else engine.read)(evaluation, folder)
    except Ended as ended:
        print(
            f"ci/evaluate {evaluation.name}: ended by {ended}; go on with --resume {folder}",
            file=sys.stderr,
        )
        return CANNOT
    print(engine.table(evaluation, *found))
    return MISSED if engine.missed(evaluation, *found) else MET


def main(arguments: list[str]) -> int:
    """Run an evaluation; return its exit status, CANNOT for an unknown one or after an error."""
    name, *rest = arguments or [""]
    try:
        if name in EVALUATIONS:
            return run(EVALUATIONS[name], options_of(EVALUATIONS[name], rest))
        if name in REPLAYS:
            replay = REPLAYS[name]
            parser = argparse.ArgumentParser(
                f"ci/evaluate {name}", description=replay["about"], allow_abbrev=False
            )
            add(parser, replay["options"])
            module = importlib.import_module(f"ci.evaluation.{replay['module']}")
            return MET if module.run(parser.parse_args(rest)) else MISSED
    except (NetproofError, OSError) as error:
        print(f"ci/evaluate {name}: {error}", file=sys.stderr)
        return CANNOT
    known = ", ".join([*EVALUATIONS, *REPLAYS])
    print(f"usage: ci/evaluate NAME ...; NAME is one of {known}", file=sys.stderr)
    return CANNOT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
