"""Recorded outputs, and the same with a fault."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parents[2] / "data"


def edited(name: str, old: str, new: str) -> str:
    """Return the text of a recorded output, changed in one place."""
    text = (DATA / name).read_text()
    assert old in text, f"{old!r} is not in {name}"
    return text.replace(old, new, 1)
