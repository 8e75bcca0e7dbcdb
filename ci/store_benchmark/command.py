"""Make stores of many nights, and time what a history asks of a night.

A night has 6 switches, 7 environments, 8 functions, 3 rank counts, 24 sizes and 3 launches:
72,576 rows of curves. The times are made up; everything else, the writing included, is the
store's own code. docs/validation/store.md has the results.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ci.store_benchmark.nights import ROWS_A_NIGHT, make
from ci.store_benchmark.timing import BYTES_IN_MIB, ask
from netproof.store import Store
from netproof.store.folder import MARKER


def main() -> int:
    """Make a store, or time queries of one; print JSON."""
    parser = argparse.ArgumentParser(prog="ci/store-benchmark", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make", help="add nights to a generated store")
    making.add_argument("store", type=Path)
    making.add_argument("--nights", type=int, required=True)
    making.add_argument("--seconds", type=float, default=float("inf"), help="stop after these")
    asking = commands.add_parser("ask", help="time the questions")
    asking.add_argument("store", type=Path)
    asking.add_argument("--pandas", action="store_true", help="alongside the naive way")
    arguments = parser.parse_args()
    if arguments.command == "make":
        there = make(arguments.store, arguments.nights, arguments.seconds)
        print(f"{there} nights, {there * ROWS_A_NIGHT} rows of curves")
        return 0
    if not (arguments.store / MARKER).exists():
        print(f"ci/store-benchmark: {arguments.store} is no store; make one first", file=sys.stderr)
        return 2
    nights = len(Store(arguments.store).sessions())
    size = sum(path.stat().st_size for path in arguments.store.rglob("*.parquet"))
    asked = ask(arguments.store, naive=arguments.pandas)
    document = {
        "nights": nights,
        "rows": nights * ROWS_A_NIGHT,
        "store_mib": round(size / BYTES_IN_MIB),
        "questions": asked,
    }
    print(json.dumps(document, indent=1))
    return 0
