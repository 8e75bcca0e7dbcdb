"""Studies as the terminal has them."""

from __future__ import annotations

from pathlib import Path

from made_text import printed

from netproof.experiments.literature import DIRECTORY, SessionInStudy, load, names
from netproof.present.studies import blocks

RECORDED = Path(__file__).resolve().parents[2] / "data" / "sessions"


def shown(study=None, directory=DIRECTORY, stored=None):
    alongside = SessionInStudy(stored) if stored else None
    several = [study] if study else names(directory)
    return "".join(printed(blocks(load(name, directory), alongside), 140) for name in several)
