"""Line numbers of matches in a text, for messages that name them."""

from __future__ import annotations

import re
from collections.abc import Iterator


def numbered(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Return each match of ``pattern`` with the number of the line where it begins, from 1.

    It reads the text once, however many matches there are: a step prints lines for each rank.
    """
    number, counted_to = 1, 0
    for found in pattern.finditer(text):
        number += text.count("\n", counted_to, found.start())
        counted_to = found.start()
        yield number, found
