"""Show the changes of a file's text."""

from __future__ import annotations

import difflib
import os
from pathlib import Path


def diff(path: Path, before: str, after: str) -> list[str]:
    """Return the lines of a unified diff, without line ends; none where the texts are equal."""
    old, new = before.splitlines(), after.splitlines()
    shown = os.path.relpath(path)
    # unified_diff would take lines that are frequent, as they are here, for junk.
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    lines = []
    for group in matcher.get_grouped_opcodes(3):
        (_, first, _, new_first, _), (_, _, last, _, new_last) = group[0], group[-1]
        lines.append(f"@@ -{_range(first, last)} +{_range(new_first, new_last)} @@")
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                lines += [f" {line}" for line in old[start:end]]
            else:
                lines += [f"-{line}" for line in old[start:end]]
                lines += [f"+{line}" for line in new[new_start:new_end]]
    return [f"--- {shown}", f"+++ {shown}", *lines] if lines else []


def _range(start: int, end: int) -> str:
    """Return the lines from ``start`` (from 0) to before ``end`` for a hunk's head."""
    length = end - start
    return f"{start + bool(length)},{length}"
