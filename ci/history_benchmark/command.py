"""Measure how well changes in nightly series are found, on histories with known answers.

A history has a level, noise and a change that begins on a known night. Every method is first
calibrated on histories without a change to one false alarm in 1,000 series-nights.
docs/validation/history.md has the results.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from ci.history_benchmark.histories import FULL, SMOKE
from ci.history_benchmark.jobs import jobs, results, tables
from ci.history_benchmark.stores import print_added_night, record
from netproof.errors import NetproofError


def main() -> int:
    """Print the tables, the noise of a store, or the time of one more night."""
    parser = argparse.ArgumentParser(prog="ci/history-benchmark", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="fewer series: about a minute")
    parser.add_argument("--otava", metavar="PYTHON", help="a Python with apache-otava")
    commands = parser.add_subparsers(dest="command")
    recording = commands.add_parser("noise", help="print the noise of stored sessions")
    recording.add_argument("store", type=Path)
    recording.add_argument("system")
    adding = commands.add_parser("night", help="time the last night of a store, and all of them")
    adding.add_argument("store", type=Path)
    adding.add_argument("--least", type=int, default=1, metavar="N", help="the shortest of N runs")
    arguments = parser.parse_args()
    if arguments.command == "night":
        return print_added_night(arguments.store, arguments.least)
    if arguments.command == "noise":
        try:
            print(json.dumps(record(arguments.store, arguments.system), indent=0))
        except NetproofError as error:
            raise SystemExit(f"ci/history-benchmark: {error}") from error
        return 0
    if arguments.otava and shutil.which(arguments.otava) is None:
        parser.error(f"--otava: {arguments.otava} is no program")
    size = SMOKE if arguments.smoke else FULL
    rows = jobs(size, arguments.otava)
    done = results(rows, size)
    print(tables(list(zip(rows, done, strict=True))))
    return 0
