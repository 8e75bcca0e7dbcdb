"""The command ci/evaluate: a program by its name, which has arguments of its own."""

from __future__ import annotations

import importlib
import sys

from ci.evaluation import command

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
    "scale-sessions": "scale_sessions",
}
"""Programs, and their modules: an evaluation by plants on the testbed, or a ``main``."""


def main(arguments: list[str]) -> int:
    """Run a program; return its exit status, 2 for an unknown one."""
    if not arguments or arguments[0] not in PROGRAMS:
        print(f"usage: ci/evaluate NAME ...; NAME is one of {', '.join(PROGRAMS)}", file=sys.stderr)
        return 2
    module = importlib.import_module(f"ci.evaluation.{PROGRAMS[arguments[0]]}")
    if hasattr(module, "EVALUATION"):
        return command.main(module.EVALUATION, arguments[1:])
    return module.main(arguments[1:]) or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
