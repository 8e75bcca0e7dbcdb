"""What a terminal shows."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from netproof.present.terminal import show


def printed(blocks: Any, width: int = 200) -> str:
    """Return the text of blocks on a terminal of this width, without colours."""
    out = io.StringIO()
    show(blocks, Console(file=out, width=width, color_system=None))
    return out.getvalue()
