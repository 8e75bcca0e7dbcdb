"""Whether ReFrame can load modules in this shell."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from netproof.site.discover import module_says
from netproof.site.matrix import Matrix

LOGIN_SHELL = "bash -lc '…'"

_WITHOUT_PATH = ("nomod", "spack")
"""ReFrame's module systems that read no MODULEPATH."""


def left_to_jobs(configuration: Mapping[str, Any], system: str) -> bool:
    """Check whether only jobs load modules, and not ReFrame itself."""
    return any(
        one.get("resolve_module_conflicts") is False
        for one in configuration.get("general", ())
        if {system, "*"} & set(one.get("target_systems", ["*"]))
    )


def missing(configuration: Mapping[str, Any], system: str, expected: Matrix) -> str:
    """Return why this shell can load no module that a run needs, or an empty text.

    ReFrame loads modules itself, unless the site sets ``resolve_module_conflicts`` to false.
    """
    (described,) = (one for one in configuration["systems"] if one["name"] == system)
    without_path = described.get("modules_system", "nomod") in _WITHOUT_PATH
    if os.environ.get("MODULEPATH") or without_path or left_to_jobs(configuration, system):
        return ""
    used = expected.configurations()
    partitions, environments = ({each[place] for each in used} for place in (0, 1))
    needing = [
        described,
        *(one for name, one in expected.entries.items() if name in partitions),
        *(one for name, one in expected.environments.items() if name in environments),
    ]
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


def no_python(modules: Sequence[str], modules_system: str) -> str:
    """Return the first line of what modules print to ReFrame that is no Python, empty if all is."""
    program = {"lmod": '"$LMOD_CMD"', "nomod": "", "spack": ""}.get(modules_system, "modulecmd")
    if not program:
        return ""
    mark = "netproof: modules"
    said = module_says(f"echo {mark}; {program} python load {shlex.join(modules)} 2>/dev/null")
    _, _, code = said.partition(f"{mark}\n")
    try:
        compile(code, "modules", "exec")
    except SyntaxError as error:
        return (error.text or code).strip()
    return ""
