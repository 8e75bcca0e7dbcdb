"""Studies as the terminal has them."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from netproof.experiments.literature import DIRECTORY, SessionInStudy, load, names
from netproof.present.studies import blocks
from netproof.present.terminal import show

RECORDED = Path(__file__).resolve().parents[2] / "data" / "sessions"


def shown(study=None, directory=DIRECTORY, stored=None):
    out = io.StringIO()
    alongside = SessionInStudy(stored) if stored else None
    for name in [study] if study else names(directory):
        show(blocks(load(name, directory), alongside), Console(file=out, width=140))
    return out.getvalue()
