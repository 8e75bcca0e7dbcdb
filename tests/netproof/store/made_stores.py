"""Reports that are put into a store as ``netproof store add`` does it."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from netproof.commands import stores


def added(reports: list[Path], folder: Path) -> int:
    """Add reports to a store, and return the exit status."""
    with pytest.raises(typer.Exit) as ended:
        stores.add([str(report) for report in reports], folder)
    return ended.value.exit_code
