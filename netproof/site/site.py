"""Site configuration: what netproof adds to ReFrame's own format, gathered and validated.

Each file of ``site-config/`` but ``settings.py`` holds a ``site_configuration`` in ReFrame's
format. netproof reads the ``extras`` of partitions and environments; the keys are those of
``PARTITION_KEYS`` and ``ENVIRONMENT_KEYS``.
"""

from __future__ import annotations

import copy
import difflib
import importlib.util
import os
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from netproof.benchmarks.catalogue import FEATURES
from netproof.criteria.settings import Settings
from netproof.errors import MOST_SHOWN, NetproofError
from netproof.intake import trust
from netproof.intake.loading import expression
from netproof.measurement.links import Link


class SiteError(NetproofError):
    """A site's file that cannot be used; the text names file, place, key and remedy."""

    def __init__(self, path: Path | str, place: str, key: str, reason: str) -> None:
        self.path = str(path)
        self.place, self.key, self.reason = map(_without_middle, (place, key, reason))
        super().__init__(f"{path}: {self.place}: {self.key}: {self.reason}")


def _without_middle(text: str) -> str:
    """The text; of a very long one, which quotes what a file says, beginning and end."""
    if len(text) <= 4 * MOST_SHOWN:
        return text
    more = len(text) - 2 * MOST_SHOWN
    return f"{text[:MOST_SHOWN]}… ({more} characters more) …{text[-MOST_SHOWN:]}"


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


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""What ends a line or is no character to read: of a job script's lines, tables and file names."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
"""Names of systems, partitions and environments, as ReFrame takes them too."""
_INTERFACE = re.compile(r"[^\s/-][^\s/]{0,14}")
"""What Linux takes for an interface, but for a dash in front, which programs take for an option."""


def _line(value: str) -> str | None:
    if _CONTROL.search(value):
        return f"{value!r} has a control character; give one line of text"
    return None


def _text(value: str) -> str | None:
    return _line(value) if value.strip() else "give a name, it is empty"


def _word(value: str) -> str | None:
    if value and not _CONTROL.search(value) and not re.search(r"\s", value):
        return None
    return f"{value!r} is no word without white space"


def _interface(value: str) -> str | None:
    if _INTERFACE.fullmatch(value) and not _CONTROL.search(value):
        return None
    return (
        f"{value!r} is no interface's name: 1 to 15 characters, no white space, no '/', no '-'"
        " first"
    )


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
    if all(isinstance(word, str) and not _CONTROL.search(word) for word in value):
        return None
    return f"{value} is no list of strings of one line, ['-time', '0.1'] for instance"


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
            expression(text)
        except NetproofError as error:
            return str(error)
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
    "interface": Key(str, "IP interface of the nodes that leads over the switch", obeys=_interface),
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
        obeys=_line,
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
        "least message that can be the peak, and at which MPI is held against TCP; above 0 only"
        " for a link that a token bucket emulates",
        default=0,
        obeys=lambda value: None if value >= 0 else f"{value} is below 0",
    ),
    "step_limit_s": Key(
        int, "seconds after which one launch of a benchmark is ended", default=600, obeys=_positive
    ),
    "crash_retries": Key(
        int,
        "how often a launch that crashes before its first figure is launched again; 0: never, and"
        " its case fails",
        default=3,
        obeys=lambda value: None if value >= 0 else f"{value} is below 0",
    ),
    "twin": Key(
        list,
        "command, word by word, that runs NetPIPE's NPtcp at both ends of a healthy link of the"
        " same kind, with the arguments that follow; empty where there is no such link",
        default=[],
        obeys=_words,
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
    "pmi": Key(str, "srun's --mpi plugin for it", obeys=_word),
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
        "how Spack built it: each package's spec, compiler, hash and variants; netproof.site.spack"
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

_TIME_LIMIT = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")

CONFIGURATION = "the site's configuration"

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
    crash_retries: int = 3
    twin: tuple[str, ...] = ()

    def settings(self) -> Settings:
        """The settings of the criteria here."""
        return Settings.of_site(self.criteria, self.line_rate_from_bytes)

    def link(self) -> Link:
        """The link of each of its nodes."""
        return Link(self.link_mbit_s, self.mtu)

    @classmethod
    def from_extras(cls, extras: dict[str, Any]) -> Partition:
        """Partition of extras that ``gather`` has completed."""
        # Extras that a session stored may be of before there were retries, or twins.
        extras = {"crash_retries": cls.crash_retries, "twin": cls.twin, **extras}
        values = {field.name: extras[field.name] for field in fields(cls)}
        values["rank_counts"] = tuple(values["rank_counts"])
        values["imb_arguments"] = tuple(values["imb_arguments"])
        values["twin"] = tuple(values["twin"])
        return cls(**values)


def ranks_feature(ranks: int) -> str:
    """Partition feature by which checks of that rank count find the partition."""
    return f"ranks-{ranks}"


def fewest_ranks_feature(ranks: int) -> str:
    """Partition feature of its least rank count, whose job also runs the two-rank functions."""
    return f"fewest-ranks-{ranks}"


@dataclass
class _File:
    """A site's file as it is gone through: every fault of it is kept, not just the first."""

    path: Path
    faults: list[SiteError] = field(default_factory=list)

    def refuse(self, place: str, key: str, reason: str) -> None:
        self.faults.append(SiteError(self.path, place, key, reason))


@dataclass(frozen=True)
class Survey:
    """ReFrame's configuration as far as it can be used, and every fault of the files.

    ``configuration`` lacks the partitions and environments that have a fault, and the systems of
    which nothing is left. ``paths``: of each system's file, by name.
    """

    configuration: dict[str, Any]
    paths: dict[str, Path]
    faults: tuple[SiteError, ...]


def gather(folder: Path) -> dict[str, Any]:
    """ReFrame configuration of all systems in ``folder``, defaults filled in.

    Raises SiteError with file, place, key and remedy for whatever cannot be used.
    """
    found = survey(folder)
    _insist(found.faults)
    return found.configuration


def load(path: Path) -> dict[str, Any]:
    """One file's configuration, validated, defaults filled in. Raises SiteError."""
    file = _File(path)
    configuration = _read(file)
    _insist(file.faults)
    return configuration


def survey(folder: Path) -> Survey:
    """All systems of ``folder`` that can be used, defaults filled in, and all that is wrong.

    Raises SiteError where the folder holds no system, and NetproofError where others can write
    what would be run.
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
        file = _File(path)
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
    return Survey(merged, seen, tuple(faults))


def here(found: Survey) -> str:
    """The system that this machine is a login node of: RFM_SYSTEM, or by ``hostnames``.

    Raises NetproofError where that is none or several.
    """
    named = os.environ.get("RFM_SYSTEM")
    if named:
        return named.partition(":")[0]
    systems = {system["name"]: system for system in found.configuration["systems"]}
    if len(found.paths) == 1:
        return next(iter(found.paths))
    host = socket.gethostname()
    fitting = [
        name
        for name, system in systems.items()
        if any(expression(text).match(host) for text in system.get("hostnames", []))
    ]
    if len(fitting) != 1:
        raise NetproofError(
            f"no hostnames of {', '.join(found.paths)} fit {host}; name a system"
            if not fitting
            else f"hostnames of {', '.join(fitting)} fit {host}; name a system"
        )
    return fitting[0]


def _insist(faults: Sequence[SiteError]) -> None:
    if len(faults) > 1:
        first = faults[0]
        more = f"{len(faults) - 1} more {'fault' if len(faults) == 2 else 'faults'}"
        raise SiteError(
            first.path,
            first.place,
            first.key,
            f"{first.reason}; and {more}, which 'netproof site check' tells",
        )
    if faults:
        raise faults[0]


def _read(file: _File) -> dict[str, Any]:
    """A file's configuration as far as it can be used; NetproofError where others can write it."""
    nothing: dict[str, Any] = {"systems": [], "environments": []}
    spec = importlib.util.spec_from_file_location(f"netproof_site_{file.path.stem}", file.path)
    for place in (file.path, spec.cached):
        trust.insist(place, CONFIGURATION)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
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
    systems = [
        _system(file, system, defined, {environment["name"] for environment in sound})
        for system in configuration["systems"]
    ]
    configuration["systems"] = [system for system in systems if system is not None]
    names = [system["name"] for system in configuration["systems"]]
    for environment in configuration["environments"]:
        environment.setdefault("target_systems", names)
    return configuration


def _system(
    file: _File, system: Any, environments: set[str], sound: set[str]
) -> dict[str, Any] | None:
    """A system with those of its partitions that can be used; None where there is none."""
    name = _name(file, system, "a system")
    if name is None:
        return None
    place = f"system {name}"
    partitions = system.get("partitions")
    if not isinstance(partitions, list) or not partitions:
        file.refuse(place, "partitions", "there is none; add one")
        return None
    kept, names = [], []
    for partition in partitions:
        before = len(file.faults)
        own = _name(file, partition, f"a partition of system {name}")
        if own is not None:
            here = f"partition {name}:{own}"
            if own in names:
                file.refuse(here, "name", "is there twice; names are unique in a system")
            names.append(own)
            _partition(file, here, partition, environments)
        if len(file.faults) == before and sound.issuperset(partition["environs"]):
            _add_features(partition)
            kept.append(partition)
    _one_baseline(file, place, partitions)
    return {**system, "partitions": kept} if kept else None


def time_limit_s(partition: dict[str, Any]) -> int | None:
    """Seconds that a partition's jobs may last, of ReFrame's form ``1d2h30m``; None without limit.

    Raises NetproofError for another form.
    """
    stated = partition.get("time_limit")
    if stated is None:
        return None
    found = _TIME_LIMIT.fullmatch(stated) if isinstance(stated, str) and stated else None
    if not found:
        raise NetproofError(f"is {stated!r}; it looks like 1d2h30m, or 30m")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((24 * days + hours) * 60 + minutes) * 60 + seconds


@dataclass(frozen=True)
class ScoreBaseline:
    """The configuration that scores are relative to."""

    partition: str
    environment: str

    def __str__(self) -> str:
        return f"{self.partition} {self.environment}"


def score_baseline(partitions: list[dict[str, Any]]) -> ScoreBaseline | None:
    """The configuration that scores are relative to; None where none of these partitions has it."""
    for partition in partitions:
        if partition["extras"]["baseline"]:
            return ScoreBaseline(partition["name"], partition["extras"]["baseline"])
    return None


def _one_baseline(file: _File, place: str, partitions: list[Any]) -> None:
    named = [
        str(entry.get("name"))
        for entry in partitions
        if isinstance(entry, dict)
        and isinstance(entry.get("extras"), dict)
        and entry["extras"].get("baseline")
    ]
    if len(named) != 1:
        file.refuse(
            place,
            "extras['baseline']",
            "one partition names the environment that scores are relative to, and"
            f" {', '.join(named) or 'none does'}",
        )


def absences(environment_extras: dict[str, Any]) -> dict[str, str]:
    """Benchmarks an environment lacks, to the reason that its site gives."""
    return dict(environment_extras.get("absent", {}))


def _name(file: _File, entry: Any, what: str) -> str | None:
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name:
        file.refuse(what, "name", "is missing")
        return None
    if not _NAME.fullmatch(name):
        # It becomes part of paths, of Slurm's options and of ReFrame's expressions.
        file.refuse(what, "name", f"is {name!r}; it takes letters, digits, - and _, no digit first")
        return None
    return name


def _environments(file: _File, environments: list[Any]) -> tuple[set[str], list[dict[str, Any]]]:
    """Names of all environments, and those environments that can be used."""
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
        extras, good = _complete(file, place, environment, ENVIRONMENT_KEYS)
        features = _list(file, place, environment, "features")
        if "absent" in good:
            for feature, meaning in FEATURES.items():
                if (feature in features) == (feature in extras["absent"]):
                    file.refuse(
                        place,
                        "features",
                        f"name {feature!r} ({meaning}) here or, with the reason, in"
                        f" extras['absent'], and not in both",
                    )
        if len(file.faults) == before:
            environment["extras"] = extras
            sound.append(environment)
    return names, sound


def _partition(file: _File, place: str, partition: dict[str, Any], environments: set[str]) -> None:
    """Refuse what is wrong with a partition, and fill its extras in."""
    for key, wanted in (("scheduler", "slurm"), ("launcher", "srun")):
        if partition.get(key) != wanted:
            file.refuse(place, key, f"is {partition.get(key)!r}; the checks need {wanted!r}")
    try:
        time_limit_s(partition)
    except NetproofError as error:
        file.refuse(place, "time_limit", str(error))
    environs = _list(file, place, partition, "environs")
    if not environs:
        file.refuse(place, "environs", "there is none; name an environment of this file")
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
            if _CONTROL.search(option):
                file.refuse(place, key, f"{option!r} has a control character; an option is a line")
    extras, good = _complete(file, place, partition, PARTITION_KEYS)
    if extras["baseline"] and "baseline" in good and extras["baseline"] not in environs:
        file.refuse(
            place,
            "extras['baseline']",
            f"{extras['baseline']!r} is none of its environs, {', '.join(map(str, environs))}",
        )
    for environ in extras["retired"] if "retired" in good else ():
        if environ in environs:
            file.refuse(
                place,
                "extras['retired']",
                f"{environ!r} is among its environs: take it out of one of the two",
            )
    if {"ranks_per_node", "nodes", "rank_counts"} <= good:
        for reason in _misfits(extras, _cpus(partition)):
            file.refuse(place, "rank_counts", reason)
    extras["contention_domain"] = extras["contention_domain"] or extras["switch"]
    partition["extras"] = extras


def _add_features(partition: dict[str, Any]) -> None:
    """Let checks find the partition by its rank counts, and what judges all run on it."""
    partition["environs"] = [*partition["environs"], JUDGE_ENVIRONMENT]
    counts = partition["extras"]["rank_counts"]
    partition["features"] = [
        *partition.get("features", []),
        *(ranks_feature(count) for count in counts),
        fewest_ranks_feature(counts[0]),
    ]


def _list(file: _File, place: str, entry: dict[str, Any], key: str) -> list[Any]:
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
    file: _File, place: str, entry: dict[str, Any], keys: dict[str, Key]
) -> tuple[dict[str, Any], set[str]]:
    """The extras of an entry with defaults filled in, and the keys that nothing is wrong with.

    A key that is missing without a default, or wrong, has None.
    """
    given = entry.get("extras", {})
    if not isinstance(given, dict):
        file.refuse(place, "extras", f"is {given!r}, and has to be a dictionary")
        given = {}
    for key in given:
        if key not in keys:
            near = difflib.get_close_matches(str(key), keys, n=1)
            meant = f"did you mean {near[0]!r}? " if near else ""
            file.refuse(
                place, f"extras[{key!r}]", f"is unknown; {meant}the keys are {', '.join(keys)}"
            )
    complete: dict[str, Any] = {}
    good = set()
    for name, key in keys.items():
        complete[name] = None
        if name not in given:
            if key.default is None:
                file.refuse(
                    place,
                    f"extras[{name!r}]",
                    f"is missing; give {key.meaning} ({key.type.__name__})",
                )
                continue
            complete[name] = copy.copy(key.default)
            good.add(name)
            continue
        value = given[name]
        if type(value) is not key.type:
            file.refuse(
                place,
                f"extras[{name!r}]",
                f"is {value!r}, but {key.meaning} is of type {key.type.__name__}",
            )
            continue
        remedy = key.obeys(value)
        if remedy:
            file.refuse(place, f"extras[{name!r}]", remedy)
            continue
        complete[name] = value
        good.add(name)
    return complete, good
