"""At which line of a text something stands, for messages that name it."""

from __future__ import annotations

import re
from collections.abc import Iterator


def numbered(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Each place at which ``pattern`` matches, with the number of the line where it begins, from 1.

    It goes over the text once, however many places there are: a step says lines for each rank.
    """
    number, counted_to = 1, 0
    for found in pattern.finditer(text):
        number += text.count("\n", counted_to, found.start())
        counted_to = found.start()
        yield number, found
