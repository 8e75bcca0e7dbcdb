"""Whether this shell has what ReFrame loads modules by."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from netproof.site.matrix import Matrix, environments_in, partitions_in

LOGIN_SHELL = "bash -lc '…'"

_WITHOUT_PATH = ("nomod", "spack")
"""ReFrame's module systems that read no MODULEPATH."""


def missing(configuration: Mapping[str, Any], system: str, expected: Matrix) -> str:
    """Return why this shell can load no module that a run needs, or an empty text.

    ReFrame loads modules itself, unless the site sets ``resolve_module_conflicts`` to false.
    """
    (described,) = (one for one in configuration["systems"] if one["name"] == system)
    left_to_jobs = any(
        one.get("resolve_module_conflicts") is False
        for one in configuration.get("general", ())
        if {system, "*"} & set(one.get("target_systems", ["*"]))
    )
    without_path = described.get("modules_system", "nomod") in _WITHOUT_PATH
    if os.environ.get("MODULEPATH") or without_path or left_to_jobs:
        return ""
    partitions = partitions_in(configuration, system)
    environments = environments_in(configuration, system)
    needing = [described]
    for partition, environment in sorted(expected.configurations()):
        needing += [partitions[partition], environments[environment]]
    modules = [
        one if isinstance(one, str) else one["name"]
        for each in needing
        for one in each.get("modules", ())
        # One with a path of its own needs no other.
        if isinstance(one, str) or not one.get("path")
    ]
    if not modules:
        return ""
    return (
        f"modules {', '.join(dict.fromkeys(modules))} cannot be loaded: MODULEPATH is not set, as"
        f" in cron's shell; use a login shell: {LOGIN_SHELL}"
    )
