"""Runs of ReFrame as they were recorded."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from ci.progress import Line, parse

ROOT = Path(__file__).resolve().parents[3]
RECORDED = ROOT / "tests" / "data" / "reframe" / "whole.log"


def recorded(word: str) -> str:
    return next(line for line in RECORDED.read_text().splitlines() if word in line)


def timed(name: str) -> list[tuple[float, Line]]:
    """The lines of a recorded run of one test after the other, each with its second."""
    found = []
    for text in (RECORDED.parent / name).read_text().splitlines():
        stamp, _, rest = text.partition("] info: reframe: ")
        found.append((datetime.fromisoformat(stamp.removeprefix("[")).timestamp(), parse(rest)))
    return [(at - found[0][0], line) for at, line in found]
