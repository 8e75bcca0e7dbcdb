"""The command ci/evaluate: a program by its name, which has arguments of its own."""

from __future__ import annotations

import argparse
import importlib
import sys

from ci.evaluation import command
from ci.evaluation.testbed import CANNOT
from netproof.errors import NetproofError

PROGRAMS = {
    "false-reds": "false_reds",
    "missed-faults": "missed_faults",
    "diagnose-campaign": "diagnosed_faults",
    "tune-campaign": "sweeps",
    "attacks": "attacks",
    "history-benchmark": "histories",
    "power": "power",
    "pair-power": "pair_power",
    "store-flips": "store_flips",
    "scale": "scale",
}
"""Programs and their modules: an evaluation by plants, or ``add_options`` and ``run``."""


def main(arguments: list[str]) -> int:
    """Run a program; return its exit status, CANNOT for an unknown one or where it has an error."""
    if not arguments or arguments[0] not in PROGRAMS:
        print(f"usage: ci/evaluate NAME ...; NAME is one of {', '.join(PROGRAMS)}", file=sys.stderr)
        return CANNOT
    name, *rest = arguments
    module = importlib.import_module(f"ci.evaluation.{PROGRAMS[name]}")
    parser = argparse.ArgumentParser(
        prog=f"ci/evaluate {name}", description=module.__doc__, allow_abbrev=False
    )
    try:
        if evaluation := getattr(module, "EVALUATION", None):
            return command.run(evaluation, command.options_of(evaluation, parser, rest))
        module.add_options(parser)
        return module.run(parser.parse_args(rest))
    except (NetproofError, OSError) as error:
        print(f"ci/evaluate {name}: {error}", file=sys.stderr)
        return CANNOT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
