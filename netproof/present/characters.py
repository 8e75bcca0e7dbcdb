"""Characters that a terminal or a page would obey, shown as what they are."""

from __future__ import annotations

_TURNING = (0x061C, 0x200E, 0x200F, 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""What reverses the text that follows it on a screen, or ends its line."""
_VISIBLE = {
    **{code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) != "\n"},
    **{code: f"\\u{code:04x}" for code in _TURNING},
}
"""Control characters to what is printed for them."""


def visible(text: str) -> str:
    """The text with its control characters as what they are, for what obeys or refuses them."""
    return text.translate(_VISIBLE)
