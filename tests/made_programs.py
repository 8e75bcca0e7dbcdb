"""Programs that stand in for others."""

from __future__ import annotations

from pathlib import Path


def program(path: Path, script: str = "") -> Path:
    """Write a program of bash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)
    return path
