"""Site configuration: what netproof adds to ReFrame's own format, gathered and validated.

Each file of ``site-config/`` but ``settings.py`` holds a ``site_configuration`` in ReFrame's
format. netproof reads the ``extras`` of partitions and environments; ``PartitionExtras`` and
``EnvironmentExtras`` define their keys.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netproof.errors import NetproofError
from netproof.intake import trust
from netproof.intake.models import expression
from netproof.site.site_file import CONFIGURATION, SiteError, SiteFile, insist, read


@dataclass(frozen=True)
class Survey:
    """ReFrame's configuration without what has a fault, the file of each system, and all faults."""

    configuration: dict[str, Any]
    paths: dict[str, Path]
    faults: tuple[SiteError, ...]


def gather(folder: Path) -> dict[str, Any]:
    """Return ReFrame's configuration of all systems in ``folder``, complete. Raises SiteError."""
    found = survey(folder)
    insist(found.faults)
    return found.configuration


def load(path: Path) -> dict[str, Any]:
    """Return one file's configuration, validated, with defaults filled in. Raises SiteError."""
    file = SiteFile(path)
    configuration = read(file)
    insist(file.faults)
    return configuration


def survey(folder: Path) -> Survey:
    """Return all usable systems of ``folder``, with defaults filled in, and all faults.

    Raises SiteError without a system, and NetproofError where others can write what would be run.
    """
    # ReFrame runs it too.
    trust.insist(folder / "settings.py", CONFIGURATION)
    paths = sorted(path for path in folder.glob("*.py") if path.name != "settings.py")
    if not paths:
        raise SiteError(folder, "the folder", "*.py", "holds no system; copy example.py to begin")
    merged: dict[str, Any] = {"systems": [], "environments": []}
    seen: dict[str, Path] = {}
    faults: list[SiteError] = []
    for path in paths:
        file = SiteFile(path)
        configuration = read(file)
        systems = []
        for system in configuration["systems"]:
            name = system["name"]
            if name in seen:
                file.refuse(f"system {name}", "name", f"{seen[name]} has a system of that name too")
                continue
            seen[name] = path
            systems.append(system)
        configuration["systems"] = systems
        for key, value in configuration.items():
            merged.setdefault(key, [])
            merged[key] += value
        faults += file.faults
    return Survey(merged, seen, tuple(faults))


def here(found: Survey) -> str:
    """Return this machine's system: RFM_SYSTEM, or by ``hostnames``. Raises NetproofError."""
    named = os.environ.get("RFM_SYSTEM")
    if named:
        return named.partition(":")[0]
    systems: dict[str, Any] = {one["name"]: one for one in found.configuration["systems"]}
    if len(found.paths) == 1:
        return next(iter(found.paths))
    host = socket.gethostname()
    fitting = [
        name
        for name, system in systems.items()
        if any(expression(text).match(host) for text in system.get("hostnames", []))
    ]
    if len(fitting) == 1:
        return fitting[0]
    those = ", ".join(fitting or found.paths)
    raise NetproofError(f"{'' if fitting else 'no '}hostnames of {those} fit {host}; name a system")
