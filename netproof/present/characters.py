"""Control characters for a terminal or a page, shown by their code."""

from __future__ import annotations

_TURNING = (0x061C, 0x200E, 0x200F, 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Characters that reverse the text that follows them on a screen, or end its line."""
_VISIBLE = {
    **{code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) != "\n"},
    **{code: f"\\u{code:04x}" for code in _TURNING},
}
"""Control characters, each with the text that is printed for it."""


def visible(text: str) -> str:
    """Return the text with its control characters shown by their code."""
    return text.translate(_VISIBLE)
