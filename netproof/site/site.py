"""Site configuration: what netproof adds to ReFrame's own format, gathered and validated.

Each file of ``site-config/`` but ``settings.py`` holds a ``site_configuration`` in ReFrame's
format. netproof reads the ``extras`` of partitions and environments; ``PartitionExtras`` and
``EnvironmentExtras`` define their keys. A file is read as far as it is usable: defaults are filled
in, and faults collected.
"""

from __future__ import annotations

import copy
import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import SourceFileLoader
from importlib.util import cache_from_source
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from netproof.benchmarks.registry import FEATURES
from netproof.criteria.settings import gone
from netproof.errors import NetproofError, without_middle
from netproof.intake import models, trust
from netproof.intake.models import Written, expression
from netproof.site.keys import CONTROL, EnvironmentExtras, PartitionExtras
from netproof.site.pair_settings import PairSettings
from netproof.site.partition import (
    fewest_ranks_feature,
    makes_pairs,
    ranks_feature,
    time_limit_s,
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
"""Names of systems, partitions and environments, as ReFrame allows them too."""

CONFIGURATION = "the site's configuration"

OWN_ENVIRONMENT = (
    'export SLURM_EXPORT_ENV=ALL; unset SLURM_LABELIO SLURM_UNBUFFEREDIO "${!PMI_@}" "${!PMIX_@}";'
    ' [ -n "${LOADEDMODULES-}" ] || unset "${!OMPI_@}" "${!I_MPI_@}" "${!MPIR_CVAR_@}" "${!UCX_@}"'
)
"""Commands of a job before the site's own commands and modules.

``--export=NONE`` would leave steps without PATH. The variables unset belong to the shell that
started ReFrame, change what srun prints or how MPI behaves, or belong to a step of another job.
Modules that were loaded there are not loaded again, so their variables stay.
"""

JUDGE_ENVIRONMENT = "builtin"
"""ReFrame's own environment, in which configurations are compared: it measures nothing."""


class SiteError(NetproofError):
    """A site's file that cannot be used; the text names file, place, key and remedy."""

    def __init__(self, path: Path | str, place: str, key: str, reason: str) -> None:
        self.path = str(path)
        self.place, self.key, self.reason = map(without_middle, (place, key, reason))
        super().__init__(f"{path}: {self.place}: {self.key}: {self.reason}")


class SiteFile:
    """A site's file while it is read: every fault of it is collected, not just the first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.faults: list[SiteError] = []

    def refuse(self, place: str, key: str, reason: str) -> None:
        """Add a fault."""
        self.faults.append(SiteError(self.path, place, key, reason))


def insist(faults: Sequence[SiteError]) -> None:
    """Raise the first fault, if any, and say how many more there are."""
    if len(faults) > 1:
        first = faults[0]
        more = f"{len(faults) - 1} more {'fault' if len(faults) == 2 else 'faults'}"
        raise SiteError(
            first.path,
            first.place,
            first.key,
            f"{first.reason}; and {more}, which 'netproof site check' reports",
        )
    if faults:
        raise faults[0]


def _read(file: SiteFile) -> dict[str, Any]:
    """Return a file's usable configuration. Raises NetproofError where others can write it."""
    nothing: dict[str, Any] = {"systems": [], "environments": []}
    loader = SourceFileLoader(f"netproof_site_{file.path.stem}", str(file.path))
    for place in (file.path, cache_from_source(str(file.path))):
        trust.insist(place, CONFIGURATION)
    module = ModuleType(loader.name)
    module.__file__ = loader.path
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        file.refuse("the file", "Python", f"{type(error).__name__}: {error}")
        return nothing
    configuration = getattr(module, "site_configuration", None)
    if not isinstance(configuration, dict):
        file.refuse("the file", "site_configuration", "is missing; see example.py for its form")
        return nothing
    configuration = {**nothing, **copy.deepcopy(configuration)}
    for section, value in configuration.items():
        if not isinstance(value, list) or (section in nothing and not value):
            file.refuse("site_configuration", section, "is missing or no list")
            configuration[section] = []
    defined, sound = _environments(file, configuration["environments"])
    configuration["environments"] = sound
    by_name = {environment["name"]: environment for environment in sound}
    systems = [_system(file, system, defined, by_name) for system in configuration["systems"]]
    configuration["systems"] = [system for system in systems if system is not None]
    names = [system["name"] for system in configuration["systems"]]
    for environment in configuration["environments"]:
        environment.setdefault("target_systems", names)
    return configuration


def _system(
    file: SiteFile, system: Any, environments: set[str], sound: Mapping[str, dict[str, Any]]
) -> dict[str, Any] | None:
    """Return a system with its usable partitions, or None; ``sound``: the usable environments."""
    name = _name(file, system, "a system")
    if name is None:
        return None
    place = f"system {name}"
    partitions = system.get("partitions")
    if not isinstance(partitions, list) or not partitions:
        file.refuse(place, "partitions", "is missing or empty; add one")
        return None
    usable, names = [], []
    for partition in partitions:
        before = len(file.faults)
        own = _name(file, partition, f"a partition of system {name}")
        if own is not None:
            here = f"partition {name}:{own}"
            if own in names:
                file.refuse(here, "name", "is there twice; names are unique in a system")
            names.append(own)
            _partition(file, here, partition, environments, sound)
        if len(file.faults) == before and sound.keys() >= set(partition["environs"]):
            _add_features(partition)
            usable.append(partition)
    _one_baseline(file, place, partitions, usable)
    return {**system, "partitions": usable} if usable else None


def _one_baseline(
    file: SiteFile, place: str, partitions: list[Any], usable: list[dict[str, Any]]
) -> None:
    """Take the first environment of the first partition where none is named; refuse several."""
    named = [
        str(entry.get("name"))
        for entry in partitions
        if isinstance(entry, dict)
        and isinstance(entry.get("extras"), dict)
        and entry["extras"].get("baseline")
    ]
    if len(named) > 1:
        file.refuse(
            place,
            "extras['baseline']",
            "one partition names the environment that scores are relative to, and"
            f" {', '.join(named)} do",
        )
    elif usable and not named:
        usable[0]["extras"]["baseline"] = usable[0]["environs"][0]


def _name(file: SiteFile, entry: Any, what: str) -> str | None:
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name:
        file.refuse(what, "name", "is missing")
        return None
    if not _NAME.fullmatch(name):
        # It becomes part of paths, of Slurm's options and of ReFrame's expressions.
        file.refuse(what, "name", f"is {name!r}; it takes letters, digits, - and _, no digit first")
        return None
    return name


def _environments(file: SiteFile, environments: list[Any]) -> tuple[set[str], list[dict[str, Any]]]:
    """Return the names of all environments, and the usable environments."""
    names: set[str] = set()
    sound = []
    for environment in environments:
        name = _name(file, environment, "an environment")
        if name is None:
            continue
        place, before = f"environment {name}", len(file.faults)
        if name in names:
            file.refuse(place, "name", "is there twice; names are unique in a file")
        names.add(name)
        extras, good = _complete(file, place, environment, EnvironmentExtras)
        features = _list(file, place, environment, "features")
        if "absent" in good:
            for feature, meaning in FEATURES.items():
                if feature in features and feature in extras["absent"]:
                    file.refuse(
                        place,
                        "features",
                        f"{feature!r} ({meaning}) is here and in extras['absent']: take it out of"
                        " one of the two",
                    )
        if len(file.faults) == before:
            environment["extras"] = extras
            sound.append(environment)
    return names, sound


def _partition(
    file: SiteFile,
    place: str,
    partition: dict[str, Any],
    environments: set[str],
    sound: Mapping[str, dict[str, Any]],
) -> None:
    """Refuse the faults of a partition, and fill in its extras."""
    for key, wanted in (("scheduler", "slurm"), ("launcher", "srun")):
        if partition.get(key) != wanted:
            file.refuse(place, key, f"is {partition.get(key)!r}; the checks need {wanted!r}")
    try:
        time_limit_s(partition)
    except NetproofError as error:
        file.refuse(place, "time_limit", str(error))
    environs = _list(file, place, partition, "environs")
    if not environs:
        file.refuse(place, "environs", "is missing or empty; name an environment of this file")
    for environ in environs:
        if environ not in environments:
            file.refuse(
                place,
                "environs",
                f"{environ!r} is not defined in this file; it has"
                f" {', '.join(sorted(environments)) or 'none'}",
            )
    for key in ("access", "sched_options"):
        for option in _list(file, place, partition, key):
            if CONTROL.search(option):
                file.refuse(place, key, f"{option!r} has a control character; an option is a line")
    extras, good = _complete(file, place, partition, PartitionExtras)
    if extras["baseline"] and "baseline" in good and extras["baseline"] not in environs:
        file.refuse(
            place,
            "extras['baseline']",
            f"{extras['baseline']!r} is not among its environs: {', '.join(map(str, environs))}",
        )
    for environ in extras["retired"] if "retired" in good else ():
        if environ in environs:
            file.refuse(
                place,
                "extras['retired']",
                f"{environ!r} is among its environs: take it out of one of the two",
            )
    for reason in gone(extras["criteria"]) if "criteria" in good else ():
        file.refuse(place, "extras['criteria']", reason)
    if "pairs" in good:
        for reason in _no_pairs(extras, environs, sound):
            file.refuse(place, "extras['pairs']", f"environments: {reason}")
    if {"ranks_per_node", "nodes", "rank_counts"} <= good:
        for reason in _misfits(extras, _cpus(partition)):
            file.refuse(place, "rank_counts", reason)
    extras["contention_domain"] = extras["contention_domain"] or extras["switch"]
    partition["extras"] = extras


def _no_pairs(
    extras: dict[str, Any], environs: list[str], sound: Mapping[str, dict[str, Any]]
) -> Iterator[str]:
    """Yield why environments that the site names for rounds of pairs cannot run them."""
    able = [
        name for name in environs if name in sound and makes_pairs(sound[name].get("features", []))
    ]
    for name in PairSettings.of_site(extras["pairs"]).environments:
        if name not in environs:
            yield f"{name!r} is not among its environs: {', '.join(environs)}"
        elif name in sound and name not in able:
            yield f"{name!r} has no IMB, which measures pairs; name {' or '.join(able) or 'none'}"


def _add_features(partition: dict[str, Any]) -> None:
    """Let checks find the partition by its rank counts, and compare its configurations on it.

    Its jobs start in an environment in which srun passes variables on and PMI is the job's own.
    """
    partition["prepare_cmds"] = [OWN_ENVIRONMENT, *partition.get("prepare_cmds", [])]
    partition["environs"] = [*partition["environs"], JUDGE_ENVIRONMENT]
    counts = partition["extras"]["rank_counts"]
    partition["features"] = [
        *partition.get("features", []),
        *(ranks_feature(count) for count in counts),
        *map(fewest_ranks_feature, counts[:1]),
    ]


def _list(file: SiteFile, place: str, entry: dict[str, Any], key: str) -> list[Any]:
    value = entry.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        file.refuse(place, key, f"is {value!r}, and has to be a list of names")
        return []
    return value


def _cpus(partition: dict[str, Any]) -> int | None:
    processor = partition.get("processor", {})
    count = processor.get("num_cpus") if isinstance(processor, dict) else None
    return count if isinstance(count, int) else None


def _misfits(extras: dict[str, Any], cpus: int | None) -> Iterator[str]:
    per_node, nodes = extras["ranks_per_node"], extras["nodes"]
    if nodes > 1 and not extras["rank_counts"]:
        yield f"is empty, and nodes is {nodes}; give some, [{2 * per_node}] for instance"
    if nodes < 2 and extras["rank_counts"]:
        yield f"nodes is {nodes}, inside which NetPIPE alone is measured; give []"
        return
    if cpus is not None and per_node > cpus:
        yield f"ranks_per_node is {per_node}, but processor.num_cpus only {cpus}"
    for count in extras["rank_counts"]:
        if count % per_node:
            yield f"{count} is no multiple of ranks_per_node, which is {per_node}"
        elif count // per_node < 2:
            yield (
                f"{count} ranks at {per_node} a node stay on one node and cross no switch;"
                f" take {2 * per_node} or more"
            )
        elif count // per_node > nodes:
            yield (
                f"{count} ranks at {per_node} a node need {count // per_node} nodes,"
                f" and nodes is {nodes}"
            )


def _complete(
    file: SiteFile, place: str, entry: dict[str, Any], model: type[Written]
) -> tuple[dict[str, Any], set[str]]:
    """Return an entry's extras, complete, None for faulty ones, and the keys without a fault."""
    given = entry.get("extras", {})
    if not isinstance(given, dict):
        file.refuse(place, "extras", f"is {given!r}, and has to be a dictionary")
        given = {}
    wrong: set[str | int] = set()
    try:
        model.model_validate(given)
    except ValidationError as error:
        for (faulty, *_), reason in models.faults(model, error):
            wrong.add(faulty)
            file.refuse(place, f"extras[{faulty!r}]", reason)
    complete: dict[str, Any] = {}
    for name, key in model.model_fields.items():
        default = None if key.is_required() else copy.copy(key.default)
        complete[name] = None if name in wrong else given.get(name, default)
    return complete, set(complete) - wrong


def gather(folder: Path) -> dict[str, Any]:
    """Return ReFrame's configuration of all systems in ``folder``, complete. Raises SiteError."""
    configuration, _, faults = survey(folder)
    insist(faults)
    return configuration


def load(path: Path) -> dict[str, Any]:
    """Return one file's configuration, validated, with defaults filled in. Raises SiteError."""
    file = SiteFile(path)
    configuration = _read(file)
    insist(file.faults)
    return configuration


def survey(folder: Path) -> tuple[dict[str, Any], dict[str, Path], list[SiteError]]:
    """Return the configuration of what has no fault in ``folder``, with defaults filled in.

    Then the file of each usable system, and all faults. Raises SiteError without a system, and
    NetproofError where others can write what would be run.
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
        configuration = _read(file)
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
    return merged, seen, faults


def here(configuration: Mapping[str, Any], paths: Mapping[str, Path]) -> str:
    """Return this machine's system: RFM_SYSTEM, or by ``hostnames``. Raises NetproofError."""
    named = os.environ.get("RFM_SYSTEM")
    if named:
        return named.partition(":")[0]
    systems: dict[str, Any] = {one["name"]: one for one in configuration["systems"]}
    if len(paths) == 1:
        return next(iter(paths))
    host = socket.gethostname()
    fitting = [
        name
        for name, system in systems.items()
        if any(expression(text).match(host) for text in system.get("hostnames", []))
    ]
    if len(fitting) == 1:
        return fitting[0]
    those = ", ".join(fitting or paths)
    raise NetproofError(f"{'' if fitting else 'no '}hostnames of {those} fit {host}; name a system")
