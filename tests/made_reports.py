"""Recorded reports with changes, and the load of a node that other programs used."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

SESSIONS = Path(__file__).resolve().parent / "data" / "sessions"

Document = dict[str, Any]


def altered(
    folder: Path,
    change: Callable[[Document], object] = lambda document: None,
    name: str = "passed",
    file: str = "run-1.json",
) -> Path:
    """Write a recorded report into a folder, with its document changed."""
    document = json.loads((SESSIONS / f"{name}.json").read_text())
    change(document)
    path = folder / file
    path.write_text(json.dumps(document))
    return path


def cases_in(document: Document) -> list[Document]:
    """Return the test cases of its first run."""
    found: list[Document] = document["runs"][0]["testcases"]
    return found


def another(document: Document, number: int, later_s: float = 0) -> None:
    """Make it a session of its own, so many seconds later."""
    info = document["session_info"]
    info["uuid"] = f"{number:08x}{info['uuid'][8:]}"
    info["time_start_unix"] += later_s


def busy(share: float = 0.4, node: str = "gige-1") -> Document:
    """Return the load of a node whose CPUs other programs used by a share."""
    return {
        **{"node": node, "machine": "m", "cpus": 2, "wall_s": 1.0, "others_cpu_s": 0.8},
        **{"others_share": share, "network_share": 0.0, "steal_share": 0.0},
        **{"pressure_share": 0.5, "pressure_full_share": 0.0, "absent": []},
    }
