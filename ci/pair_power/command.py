"""Simulate pair rounds with known faults: rounds until they are found, and false accusations.

docs/validation/pair-rounds.md has the results.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from ci.pair_power.chart import chart
from ci.pair_power.portions import portions, results
from ci.pair_power.tables import cell, tables


def main() -> None:
    """Simulate, or print results."""
    parser = argparse.ArgumentParser(prog="ci/pair-power", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="portions with this in their name")
    parser.add_argument("--seconds", type=float, default=math.inf, help="limit of a portion")
    parser.add_argument("--tables", action="store_true")
    parser.add_argument("--chart", type=Path)
    options = parser.parse_args()
    if options.tables:
        print("\n".join(tables(results(options.folder))))
    if options.chart:
        chart(results(options.folder), options.chart)
    if options.tables or options.chart:
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    for portion in portions():
        file = options.folder / f"{portion.name}.json"
        before = json.loads(file.read_text()) if file.exists() else None
        if options.only in portion.name and len((before or {"found": ()})["found"]) < portion.runs:
            result = portion.simulate(options.seconds, before)
            file.write_text(json.dumps(result))
            print(
                f"{portion.name}: {len(result['found'])} runs in {result['seconds']} s; found and"
                f" right in {cell(result)} rounds; {result['wrong']} wrong",
                flush=True,
            )
