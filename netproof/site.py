"""Site configuration: what netproof adds to ReFrame's own format, gathered and validated.

Each file of ``site-config/`` but ``settings.py`` holds a ``site_configuration`` in ReFrame's
format. netproof reads the ``extras`` of partitions and environments; the keys are those of
``PARTITION_KEYS`` and ``ENVIRONMENT_KEYS``.
"""

from __future__ import annotations

import copy
import importlib.util
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from netproof.benchmarks import FEATURES
from netproof.errors import NetproofError
from netproof.settings import Settings


class SiteError(NetproofError):
    """A site's file that cannot be used; the text names file, place, key and remedy."""

    def __init__(self, path: Path | str, place: str, key: str, reason: str) -> None:
        self.path, self.place, self.key, self.reason = str(path), place, key, reason
        super().__init__(f"{path}: {place}: {key}: {reason}")


@dataclass(frozen=True)
class Key:
    """One key of ``extras``: its type, what it means, its default, and what its value must obey.

    ``default`` None means that the site has to give the key. ``obeys`` returns the remedy for a
    bad value, None for a good one.
    """

    type: type
    meaning: str
    default: Any = None
    obeys: Callable[[Any], str | None] = lambda value: None


def _text(value: str) -> str | None:
    return None if value.strip() else "give a name, it is empty"


def _positive(value: int) -> str | None:
    return None if value > 0 else f"{value} is not above 0"


def _mtu(value: int) -> str | None:
    return None if 576 <= value <= 65535 else f"{value} is no MTU in bytes: 576 to 65535"


def _power_of_two(value: int) -> str | None:
    if value >= 1024 and value & (value - 1) == 0:
        return None
    return f"{value} is no power of two from 1024 bytes up, 1048576 for instance"


def _rank_counts(value: list[int]) -> str | None:
    if not value or not all(type(count) is int and count >= 2 for count in value):
        return f"{value} is no list of whole numbers from 2 up, [16, 32, 64] for instance"
    if sorted(set(value)) != value:
        return f"{value} has to increase, without repeats"
    return None


def _words(value: list[str]) -> str | None:
    if all(isinstance(word, str) for word in value):
        return None
    return f"{value} is no list of strings, ['-time', '0.1'] for instance"


def _reasons(value: dict[str, str]) -> str | None:
    for feature, reason in value.items():
        if feature not in FEATURES:
            return f"{feature!r} is no benchmark; those are {', '.join(FEATURES)}"
        if not isinstance(reason, str) or not reason.strip():
            return f"say why {feature!r} is absent, in a sentence"
    return None


def _criteria(value: dict[str, dict[str, Any]]) -> str | None:
    try:
        Settings.of_site(value, 0)
    except NetproofError as error:
        return str(error)
    return None


def _known(value: dict[str, str]) -> str | None:
    for text, reason in value.items():
        try:
            re.compile(text)
        except (re.error, TypeError) as error:
            return f"{text!r} is no regular expression: {error}"
        if not isinstance(reason, str) or not reason.strip():
            return f"say what is known of {text!r}, in a sentence"
    return None


def _retired(value: dict[str, str]) -> str | None:
    for environment, reason in value.items():
        if not isinstance(reason, str) or not reason.strip():
            return f"say why {environment!r} is gone, in a sentence"
    return None


PARTITION_KEYS = {
    "switch": Key(str, "the switch's name on site", obeys=_text),
    "nic": Key(str, "the nodes' network card", obeys=_text),
    "driver": Key(str, "its driver and version", obeys=_text),
    "link_mbit_s": Key(int, "link rate in Mbit/s of 10⁶ bits", obeys=_positive),
    "mtu": Key(int, "MTU in bytes", obeys=_mtu),
    "interface": Key(str, "IP interface of the nodes that leads over the switch", obeys=_text),
    "nodes": Key(int, "nodes that a job of this partition can have", obeys=_positive),
    "ranks_per_node": Key(int, "ranks on each node", obeys=_positive),
    "rank_counts": Key(list, "rank counts to measure, increasing", obeys=_rank_counts),
    "max_message_bytes": Key(
        int, "largest message, a power of two", default=4194304, obeys=_power_of_two
    ),
    "contention_domain": Key(
        str,
        "jobs with the same word never measure at the same time; by default the switch's name",
        default="",
    ),
    "netpipe_repeats": Key(
        int,
        "round trips of each message size in a NetPIPE trial (-n); 0 lets NetPIPE choose",
        default=0,
        obeys=lambda value: None if value >= 0 else f"{value} is below 0",
    ),
    "netpipe_mpi_inside_repeats": Key(
        int,
        "the same for MPI inside a node, whose messages take less than a microsecond: too few"
        " round trips measure by how much one rank starts after the other",
        default=0,
        obeys=lambda value: None if value >= 0 else f"{value} is below 0",
    ),
    "imb_arguments": Key(
        list,
        "further arguments of IMB-MPI1, for instance its time limits",
        default=[],
        obeys=_words,
    ),
    "line_rate_from_bytes": Key(
        int,
        "least message held against the line rate; above 0 only for a link that a token bucket"
        " emulates",
        default=0,
        obeys=lambda value: None if value >= 0 else f"{value} is below 0",
    ),
    "step_limit_s": Key(
        int, "seconds after which one launch of a benchmark is ended", default=600, obeys=_positive
    ),
    "baseline": Key(
        str,
        "the environment that scores of the whole system are relative to, on one of its partitions",
        default="",
    ),
    "criteria": Key(
        dict,
        "what differs from the criteria's defaults: criterion to setting to value",
        default={},
        obeys=_criteria,
    ),
    "retired": Key(
        dict,
        "environments that the partition had and has no more, each with the reason",
        default={},
        obeys=_retired,
    ),
}

ENVIRONMENT_KEYS = {
    "mpi": Key(str, "the MPI library and its version", obeys=_text),
    "pmi": Key(str, "srun's --mpi plugin for it", obeys=_text),
    "absent": Key(
        dict, "benchmarks that the environment lacks, each with the reason", {}, _reasons
    ),
    "known": Key(
        dict,
        "flaws of it that are known: an expression for cases, 'IMB Bcast .* ranks' for instance,"
        " to the reason",
        default={},
        obeys=_known,
    ),
    "mpi_over_tcp": Key(
        bool, "whether its MPI goes over TCP, whose line rate then bounds it", default=True
    ),
    "built": Key(
        dict,
        "how Spack built it: each package's spec, compiler, hash and variants; netproof.spack"
        " fills it in",
        default={},
    ),
    "unusable": Key(
        str,
        "why nothing can be measured with it now, a build that is missing or stale for instance:"
        " its cases fail with that",
        default="",
    ),
}

JUDGE_ENVIRONMENT = "builtin"
"""ReFrame's own environment, in which what compares configurations runs: it measures nothing."""


@dataclass(frozen=True)
class Partition:
    """What a site says of one partition; the fields are the keys of ``PARTITION_KEYS``."""

    switch: str
    nic: str
    driver: str
    link_mbit_s: int
    mtu: int
    interface: str
    nodes: int
    ranks_per_node: int
    rank_counts: tuple[int, ...]
    max_message_bytes: int
    contention_domain: str
    netpipe_repeats: int
    netpipe_mpi_inside_repeats: int
    imb_arguments: tuple[str, ...]
    line_rate_from_bytes: int
    step_limit_s: int
    criteria: dict[str, dict[str, Any]] = field(default_factory=dict)

    def settings(self) -> Settings:
        """The settings of the criteria here."""
        return Settings.of_site(self.criteria, self.line_rate_from_bytes)

    @classmethod
    def from_extras(cls, extras: dict[str, Any]) -> Partition:
        """Partition of extras that ``gather`` has completed."""
        values = {field.name: extras[field.name] for field in fields(cls)}
        values["rank_counts"] = tuple(values["rank_counts"])
        values["imb_arguments"] = tuple(values["imb_arguments"])
        return cls(**values)


def ranks_feature(ranks: int) -> str:
    """Partition feature by which checks of that rank count find the partition."""
    return f"ranks-{ranks}"


def fewest_ranks_feature(ranks: int) -> str:
    """Partition feature of its least rank count, whose job also runs the two-rank functions."""
    return f"fewest-ranks-{ranks}"


def gather(folder: Path) -> dict[str, Any]:
    """ReFrame configuration of all systems in ``folder``, defaults filled in.

    Raises SiteError with file, place, key and remedy for whatever cannot be used.
    """
    files = sorted(path for path in folder.glob("*.py") if path.name != "settings.py")
    if not files:
        raise SiteError(folder, "the folder", "*.py", "holds no system; copy example.py to begin")
    merged: dict[str, Any] = {"systems": [], "environments": []}
    seen: dict[str, Path] = {}
    for path in files:
        configuration = load(path)
        for key, value in configuration.items():
            merged.setdefault(key, [])
            merged[key] += value
        for system in configuration["systems"]:
            name = system["name"]
            if name in seen:
                raise SiteError(
                    path, f"system {name}", "name", f"{seen[name]} has a system of that name too"
                )
            seen[name] = path
    return merged


def load(path: Path) -> dict[str, Any]:
    """One file's configuration, validated, defaults filled in. Raises SiteError."""
    spec = importlib.util.spec_from_file_location(f"netproof_site_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise SiteError(path, "the file", "Python", f"{type(error).__name__}: {error}") from error
    configuration = getattr(module, "site_configuration", None)
    if not isinstance(configuration, dict):
        raise SiteError(
            path, "the file", "site_configuration", "is missing; see example.py for its form"
        )
    configuration = copy.deepcopy(configuration)
    for section in ("systems", "environments"):
        if not isinstance(configuration.get(section), list) or not configuration[section]:
            raise SiteError(path, "site_configuration", section, "is missing or no list")
    environments = _environments(path, configuration)
    names = [_name(path, system, "a system") for system in configuration["systems"]]
    for environment in configuration["environments"]:
        environment.setdefault("target_systems", names)
    for name, system in zip(names, configuration["systems"], strict=True):
        if not system.get("partitions"):
            raise SiteError(path, f"system {name}", "partitions", "there is none; add one")
        for partition in system["partitions"]:
            place = f"partition {name}:{_name(path, partition, f'a partition of system {name}')}"
            _partition(path, place, partition, environments)
        _one_baseline(path, name, system["partitions"])
    return configuration


def baseline(partitions: list[dict[str, Any]]) -> tuple[str, str] | None:
    """Partition and environment that scores are relative to; None where none of these has it."""
    for partition in partitions:
        if partition["extras"]["baseline"]:
            return partition["name"], partition["extras"]["baseline"]
    return None


def _one_baseline(path: Path, system: str, partitions: list[dict[str, Any]]) -> None:
    named = [entry for entry in partitions if entry["extras"]["baseline"]]
    if len(named) != 1:
        found = ", ".join(entry["name"] for entry in named) or "none does"
        raise SiteError(
            path,
            f"system {system}",
            "extras['baseline']",
            f"one partition names the environment that scores are relative to, and {found}",
        )


def absences(environment_extras: dict[str, Any]) -> dict[str, str]:
    """Benchmarks an environment lacks, to the reason that its site gives."""
    return dict(environment_extras.get("absent", {}))


def _name(path: Path, entry: dict[str, Any], what: str) -> str:
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name:
        raise SiteError(path, what, "name", "is missing")
    return name


def _environments(path: Path, configuration: dict[str, Any]) -> set[str]:
    names: set[str] = set()
    for environment in configuration["environments"]:
        name = _name(path, environment, "an environment")
        place = f"environment {name}"
        if name in names:
            raise SiteError(path, place, "name", "is there twice; names are unique in a file")
        names.add(name)
        extras = _complete(path, place, environment.get("extras", {}), ENVIRONMENT_KEYS)
        features = environment.get("features", [])
        for feature, meaning in FEATURES.items():
            if (feature in features) == (feature in extras["absent"]):
                raise SiteError(
                    path,
                    place,
                    "features",
                    f"name {feature!r} ({meaning}) here or, with the reason, in"
                    f" extras['absent'], and not in both",
                )
        environment["extras"] = extras
    return names


def _partition(path: Path, place: str, partition: dict[str, Any], environments: set[str]) -> None:
    for key, wanted in (("scheduler", "slurm"), ("launcher", "srun")):
        if partition.get(key) != wanted:
            raise SiteError(
                path, place, key, f"is {partition.get(key)!r}; the checks need {wanted!r}"
            )
    if not partition.get("environs"):
        raise SiteError(path, place, "environs", "there is none; name an environment of this file")
    for environ in partition["environs"]:
        if environ not in environments:
            raise SiteError(
                path,
                place,
                "environs",
                f"{environ!r} is not defined in this file; it has"
                f" {', '.join(sorted(environments))}",
            )
    extras = _complete(path, place, partition.get("extras", {}), PARTITION_KEYS)
    extras["contention_domain"] = extras["contention_domain"] or extras["switch"]
    if extras["baseline"] and extras["baseline"] not in partition["environs"]:
        raise SiteError(
            path,
            place,
            "extras['baseline']",
            f"{extras['baseline']!r} is none of its environs, {', '.join(partition['environs'])}",
        )
    for environ in extras["retired"]:
        if environ in partition["environs"]:
            raise SiteError(
                path,
                place,
                "extras['retired']",
                f"{environ!r} is among its environs: take it out of one of the two",
            )
    for reason in _misfits(extras, partition.get("processor", {}).get("num_cpus")):
        raise SiteError(path, place, "rank_counts", reason)
    partition["extras"] = extras
    partition["environs"] = [*partition["environs"], JUDGE_ENVIRONMENT]
    counts = extras["rank_counts"]
    partition["features"] = [
        *partition.get("features", []),
        *(ranks_feature(count) for count in counts),
        fewest_ranks_feature(counts[0]),
    ]


def _misfits(extras: dict[str, Any], cpus: int | None) -> Iterator[str]:
    per_node, nodes = extras["ranks_per_node"], extras["nodes"]
    if nodes < 2:
        yield f"nodes is {nodes}, but a network is measured between 2 nodes at least"
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
    path: Path, place: str, given: dict[str, Any], keys: dict[str, Key]
) -> dict[str, Any]:
    for key in given:
        if key not in keys:
            raise SiteError(
                path, place, f"extras[{key!r}]", f"is unknown; the keys are {', '.join(keys)}"
            )
    complete = {}
    for name, key in keys.items():
        if name not in given:
            if key.default is None:
                raise SiteError(
                    path,
                    place,
                    f"extras[{name!r}]",
                    f"is missing; give {key.meaning} ({key.type.__name__})",
                )
            complete[name] = copy.copy(key.default)
            continue
        value = given[name]
        if type(value) is not key.type:
            raise SiteError(
                path,
                place,
                f"extras[{name!r}]",
                f"is {value!r}, but {key.meaning} is of type {key.type.__name__}",
            )
        remedy = key.obeys(value)
        if remedy:
            raise SiteError(path, place, f"extras[{name!r}]", remedy)
        complete[name] = value
    return complete
