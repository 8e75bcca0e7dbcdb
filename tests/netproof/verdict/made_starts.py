"""Recorded sessions to which launches that only start and end, and messages, are added."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).resolve().parents[2] / "data" / "sessions"

MESSAGES, BYTES = 2000, 10**8
"""Messages and bytes that the ranks of each launch sent to each other."""

START = {"wall_s": 0.001, "cpu_s": 0.002, "system_s": 0.001}
"""Times that each rank takes to start and end."""


def with_starts(name: str, folder: Path, function: str | None = None) -> Path:
    """A recorded report, as a file of ``folder``; ``function``: added to its cases alone."""
    document = json.loads((RECORDED / f"{name}.json").read_text())
    for test in document["runs"][0]["testcases"]:
        measured: dict[str, Any] | None = test.get("netproof_measured")
        if not measured or function not in (None, measured["case"]["function"]):
            continue
        ranks = measured["launches"][0]["ranks"]
        started = {name: [seconds] * len(ranks) for name, seconds in START.items()}
        measured["starts"] = [measured["launches"][0] | {"curves": [], "used": started}]
        for launch in measured["launches"]:
            launch["exchanged"] = [BYTES, MESSAGES]
            launch["used"]["system_s"] = [one / 2 for one in launch["used"]["cpu_s"]]
    path = folder / "run-starts.json"
    path.write_text(json.dumps(document))
    return path
