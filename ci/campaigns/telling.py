"""What tables of campaigns have in common."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime

from scipy.stats import binomtest

CONFIDENCE = 0.95
SENTENCE = 200
"""Characters that are kept of a sentence."""


def upper_limit(wrong: int, runs: int) -> float:
    """The largest rate that ``wrong`` of ``runs`` allows, one-sided (Clopper and Pearson 1934)."""
    return binomtest(wrong, runs, alternative="less").proportion_ci(CONFIDENCE, "exact").high


def row(cells: Sequence[str]) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def short(sentence: str) -> str:
    """A sentence of SENTENCE characters at most."""
    return textwrap.shorten(sentence, SENTENCE, placeholder=" …")


def now() -> str:
    """This moment in ISO 8601, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
