"""Site configuration: what netproof adds to ReFrame's own format, gathered and validated.

Each file of ``site-config/`` but ``settings.py`` holds a ``site_configuration`` in ReFrame's
format. netproof reads the ``extras`` of partitions and environments; ``PartitionExtras`` and
``EnvironmentExtras`` define their keys. A file is read as far as it is usable: defaults are filled
in, and faults collected.
"""

from __future__ import annotations

import copy
import difflib
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
from netproof.errors import NetproofError, counted, without_middle
from netproof.intake import models, trust
from netproof.intake.models import Written, expression
from netproof.site.partition import (
    CONTROL,
    EnvironmentExtras,
    PairSettings,
    PartitionExtras,
    fewest_ranks_feature,
    makes_pairs,
    ranks_feature,
    time_limit_s,
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
"""Names of systems, partitions and environments, as ReFrame allows them too."""

_NEAR = 0.85
"""Likeness from which a feature is one of ours, mistyped: a letter less or more."""

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


class SiteError(NetproofError):
    """A site's file that cannot be used; the text names file, place, key and remedy."""

    def __init__(self, path: Path | str, place: str, key: str, reason: str) -> None:
        self.path = str(path)
        self.place, self.key, self.reason = map(without_middle, (place, key, reason))
        super().__init__(f"{path}: {self.place}: {self.key}: {self.reason}")


class SiteFile:
    """A site's file: what of it is usable, and every fault of it, not just the first.

    ``usable``: its configuration with defaults filled in, without what has a fault. Raises
    NetproofError where others can write the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.faults: list[SiteError] = []
        self.usable: dict[str, Any] = {"systems": [], "environments": []}
        if (stated := self._stated()) is None:
            return
        configuration = {**self.usable, **copy.deepcopy(stated)}
        for section, value in configuration.items():
            if not isinstance(value, list) or (section in self.usable and not value):
                self.refuse("site_configuration", section, "is missing or no list")
                configuration[section] = []
        self.usable = configuration
        self._names: set[str] = set()
        sound = [one for one in configuration["environments"] if self._environment(one)]
        self._sound = {environment["name"]: environment for environment in sound}
        systems = [system for one in configuration["systems"] if (system := self._system(one))]
        configuration["systems"], configuration["environments"] = systems, sound
        for environment in sound:
            environment.setdefault("target_systems", [system["name"] for system in systems])

    def refuse(self, place: str, key: str, reason: str) -> None:
        """Add a fault."""
        self.faults.append(SiteError(self.path, place, key, reason))

    def _stated(self) -> dict[str, Any] | None:
        """Run the file and return its configuration, None where it has none."""
        loader = SourceFileLoader(f"netproof_site_{self.path.stem}", str(self.path))
        for place in (self.path, cache_from_source(str(self.path))):
            trust.insist(place, CONFIGURATION)
        if not self.path.is_file():
            # A pipe would be waited for.
            self.refuse("the file", "Python", "is no regular file; move it out of the folder")
            return None
        module = ModuleType(loader.name)
        module.__file__ = loader.path
        try:
            loader.exec_module(module)
        except (Exception, SystemExit) as error:
            self.refuse("the file", "Python", f"{type(error).__name__}: {error}")
            return None
        configuration = getattr(module, "site_configuration", None)
        if not isinstance(configuration, dict):
            why = "is missing; see example.py for its form"
            self.refuse("the file", "site_configuration", why)
            return None
        return configuration

    def _system(self, system: Any) -> dict[str, Any] | None:
        """Return a system with its usable partitions, or None."""
        name = self._name(system, "a system")
        if name is None:
            return None
        partitions = system.get("partitions")
        if not isinstance(partitions, list) or not partitions:
            self.refuse(f"system {name}", "partitions", "is missing or empty; add one")
            return None
        usable, names = [], []
        for partition in partitions:
            before = len(self.faults)
            own = self._name(partition, f"a partition of system {name}")
            if own is not None:
                here = f"partition {name}:{own}"
                if own in names:
                    self.refuse(here, "name", "is there twice; names are unique in a system")
                names.append(own)
                self._partition(here, partition)
            if len(self.faults) == before and self._sound.keys() >= set(partition["environs"]):
                _add_features(partition)
                usable.append(partition)
        named = [
            str(entry.get("name"))
            for entry in partitions
            if isinstance(entry, dict)
            and isinstance(entry.get("extras"), dict)
            and entry["extras"].get("baseline")
        ]
        if len(named) > 1:
            self.refuse(
                f"system {name}",
                "extras['baseline']",
                "one partition names the environment that scores are relative to, and"
                f" {', '.join(named)} do",
            )
        elif usable and not named:
            usable[0]["extras"]["baseline"] = usable[0]["environs"][0]
        return {**system, "partitions": usable} if usable else None

    def _name(self, entry: Any, what: str) -> str | None:
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not name:
            self.refuse(what, "name", "is missing")
            return None
        if not _NAME.fullmatch(name):
            # It becomes part of paths, of Slurm's options and of ReFrame's expressions.
            why = f"is {name!r}; it takes letters, digits, - and _, no digit first"
            self.refuse(what, "name", why)
            return None
        return name

    def _environment(self, environment: Any) -> bool:
        """Fill in an environment's extras, and return whether it is usable."""
        name = self._name(environment, "an environment")
        if name is None:
            return False
        place, before = f"environment {name}", len(self.faults)
        if name in self._names:
            self.refuse(place, "name", "is there twice; names are unique in a file")
        self._names.add(name)
        extras, good = self._complete(place, environment, EnvironmentExtras)
        features = self._list(place, environment, "features")
        for feature, meaning in FEATURES.items() if "absent" in good else ():
            if feature in features and feature in extras["absent"]:
                why = f"{feature!r} ({meaning}) is here and in extras['absent']"
                self.refuse(place, "features", f"{why}: take it out of one of the two")
        for feature in features:
            meant = difflib.get_close_matches(feature.lower(), FEATURES, 1, _NEAR)
            if meant and meant[0] not in features:
                self.refuse(place, "features", f"has {feature!r}; did you mean {meant[0]!r}?")
        environment["extras"] = extras
        return len(self.faults) == before

    def _partition(self, place: str, partition: dict[str, Any]) -> None:
        """Refuse the faults of a partition, and fill in its extras."""
        for key, wanted in (("scheduler", "slurm"), ("launcher", "srun")):
            if partition.get(key) != wanted:
                self.refuse(place, key, f"is {partition.get(key)!r}; the checks need {wanted!r}")
        try:
            time_limit_s(partition)
        except NetproofError as error:
            self.refuse(place, "time_limit", str(error))
        environs = self._list(place, partition, "environs")
        if not environs:
            why = "is missing or empty; name an environment of this file"
            self.refuse(place, "environs", why)
        for environ in environs:
            if environ not in self._names:
                has = ", ".join(sorted(self._names)) or "none"
                why = f"{environ!r} is not defined in this file; it has {has}"
                self.refuse(place, "environs", why)
        for key in ("access", "sched_options"):
            for option in self._list(place, partition, key):
                if CONTROL.search(option):
                    why = f"{option!r} has a control character; an option is a line"
                    self.refuse(place, key, why)
        extras, good = self._complete(place, partition, PartitionExtras)
        for key, reason in self._misfits(partition, environs, extras, good):
            self.refuse(place, key, reason)
        extras["contention_domain"] = extras["contention_domain"] or extras["switch"]
        partition["extras"] = extras

    def _misfits(
        self, partition: dict[str, Any], environs: list[str], extras: dict[str, Any], good: set[str]
    ) -> Iterator[tuple[str, str]]:
        """Yield key and reason where ``good`` extras contradict each other or the partition."""
        there = ", ".join(map(str, environs))
        if extras["baseline"] and "baseline" in good and extras["baseline"] not in environs:
            why = f"{extras['baseline']!r} is not among its environs: {there}"
            yield "extras['baseline']", why
        for environ in extras["retired"] if "retired" in good else ():
            if environ in environs:
                why = f"{environ!r} is among its environs: take it out of one of the two"
                yield "extras['retired']", why
        sound = [name for name in environs if name in self._sound]
        able = [name for name in sound if makes_pairs(self._sound[name].get("features", []))]
        pairs = PairSettings.of_site(extras["pairs"]).environments if "pairs" in good else ()
        for name in pairs:
            why = f"environments: {name!r}"
            if name not in environs:
                yield "extras['pairs']", f"{why} is not among its environs: {there}"
            elif name in sound and name not in able:
                others = " or ".join(able) or "none"
                yield "extras['pairs']", f"{why} has no IMB, which measures pairs; name {others}"
        if {"ranks_per_node", "nodes", "rank_counts"} <= good:
            processor = partition.get("processor")
            cpus = processor.get("num_cpus") if isinstance(processor, dict) else None
            for reason in _ranks_that_do_not_fit(extras, cpus):
                yield "rank_counts", reason

    def _list(self, place: str, entry: dict[str, Any], key: str) -> list[Any]:
        value = entry.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            self.refuse(place, key, f"is {value!r}, and has to be a list of names")
            return []
        return value

    def _complete(
        self, place: str, entry: dict[str, Any], model: type[Written]
    ) -> tuple[dict[str, Any], set[str]]:
        """Return an entry's extras, complete, None for faulty ones, and keys without a fault."""
        given = entry.get("extras", {})
        if not isinstance(given, dict):
            self.refuse(place, "extras", f"is {given!r}, and has to be a dictionary")
            given = {}
        wrong: set[str | int] = set()
        try:
            model.model_validate(given)
        except ValidationError as error:
            for (faulty, *_), reason in models.faults(model, error):
                wrong.add(faulty)
                self.refuse(place, f"extras[{faulty!r}]", reason)
        complete: dict[str, Any] = {}
        for name, key in model.model_fields.items():
            default = None if key.is_required() else copy.copy(key.default)
            complete[name] = None if name in wrong else given.get(name, default)
        return complete, set(complete) - wrong


def insist(faults: Sequence[SiteError]) -> None:
    """Raise the first fault, if any, and say how many more there are."""
    if not faults:
        return
    first, more = faults[0], len(faults) - 1
    if not more:
        raise first
    further = f"and {counted(more, 'more fault')}, which 'netproof site check' reports"
    raise SiteError(first.path, first.place, first.key, f"{first.reason}; {further}")


def _add_features(partition: dict[str, Any]) -> None:
    """Let checks find the partition by its rank counts.

    Its jobs start in an environment in which srun passes variables on and PMI is the job's own.
    """
    partition["prepare_cmds"] = [OWN_ENVIRONMENT, *partition.get("prepare_cmds", [])]
    counts = partition["extras"]["rank_counts"]
    partition["features"] = [
        *partition.get("features", []),
        *(ranks_feature(count) for count in counts),
        *map(fewest_ranks_feature, counts[:1]),
    ]


def _ranks_that_do_not_fit(extras: dict[str, Any], cpus: object) -> Iterator[str]:
    per_node, nodes = extras["ranks_per_node"], extras["nodes"]
    if nodes > 1 and not extras["rank_counts"]:
        yield f"is empty, and nodes is {nodes}; give some, [{2 * per_node}] for instance"
    if nodes < 2 and extras["rank_counts"]:
        yield f"nodes is {nodes}, inside which NetPIPE alone is measured; give []"
        return
    if isinstance(cpus, int) and per_node > cpus:
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


def gather(folder: Path) -> dict[str, Any]:
    """Return ReFrame's configuration of all systems in ``folder``, complete. Raises SiteError."""
    configuration, _, faults = survey(folder)
    insist(faults)
    return configuration


def load(path: Path) -> dict[str, Any]:
    """Return one file's configuration, validated, with defaults filled in. Raises SiteError."""
    file = SiteFile(path)
    insist(file.faults)
    return file.usable


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
        systems = []
        for system in file.usable["systems"]:
            if (name := system["name"]) in seen:
                file.refuse(f"system {name}", "name", f"{seen[name]} has a system of that name too")
            else:
                seen[name] = path
                systems.append(system)
        file.usable["systems"] = systems
        for key, value in file.usable.items():
            merged[key] = merged.get(key, []) + value
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
