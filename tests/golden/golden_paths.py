"""Make helpers of other tests importable."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("diagnosis", "history", "experiments", "verdict")

sys.path += [
    str(ROOT),
    str(ROOT / "tests"),
    *(str(ROOT / "tests" / "netproof" / room) for room in ROOMS),
]
