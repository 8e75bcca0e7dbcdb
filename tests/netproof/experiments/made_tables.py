"""Studies as the terminal has them."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from netproof.experiments.literature import DIRECTORY
from netproof.present.studies import show

RECORDED = Path(__file__).resolve().parents[2] / "data" / "sessions"


def shown(study=None, directory=DIRECTORY, stored=None):
    out = io.StringIO()
    show(study, Console(file=out, width=140), directory, stored)
    return out.getvalue()
