"""The files of spack-envs/ and their builds, as ReFrame environments.

There is a table of combinations; a fragment for each MPI library, compiler and site; a file that
all share; and one environment per combination. They are checked against a schema of the parts that
are used: a key that it does not name is an error, since Spack would ignore some of them silently.

Needs no Spack: ``ci/spack-envs`` writes a record of each build beside the environment, and this
module compares it with the files. Names of MPI libraries and compilers come from the files alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from netproof import codec
from netproof.errors import NetproofError, shortened
from netproof.intake import disk, trust

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("NETPROOF_SPACK_ENVS") or PROJECT / "spack-envs").resolve()
"""Folder of the table, the fragments and the environments; a setting: clones can share it."""
RECORDS = ".netproof"
"""Folder of a build's records, in the environment's own folder."""
CHOSEN = "chosen.yaml"
"""In site/ of a build's copy: the externals of the chosen site, made from its packages.yaml."""
BUILDS = "NETPROOF_SPACK_BUILDS"
"""Variable with the folder of all builds; nothing is built in a checkout."""


class SpackFileError(NetproofError):
    """A file of spack-envs/ that cannot be used; the text names file, place and remedy."""

    def __init__(self, path: Path, place: str, reason: str) -> None:
        self.path, self.place, self.reason = path, place, reason
        super().__init__(f"{path}: {place}: {reason}" if place else f"{path}: {reason}")


SCHEMA: dict[str, Any] = json.loads(Path(__file__).with_name("spack.schema.json").read_text())
"""JSON schema of the files, which has each kind of file under its name below ``$defs``."""

FABRICS = tuple(SCHEMA["$defs"]["reasons"]["properties"])
"""Fabrics, and memories of GPUs, that an MPI library can be required to support."""


def load(path: Path, kind: str) -> dict[str, Any]:
    """Return a file's content, which fits the schema of its kind. Raises SpackFileError."""
    import jsonschema

    content: dict[str, Any] = parsed(path)
    schema = {**SCHEMA, "$ref": f"#/$defs/{kind}"}
    faults = jsonschema.Draft202012Validator(schema).iter_errors(content)
    fault = jsonschema.exceptions.best_match(faults)
    if fault is not None:
        raise SpackFileError(
            path, ".".join(map(str, fault.absolute_path)), shortened(fault.message)
        )
    return content


def parsed(path: Path) -> Any:
    """Return a file's content, of any kind, which nobody may change. Raises SpackFileError."""
    from ruamel.yaml.error import YAMLError

    try:
        return _value(disk.read_text(path), path)
    except (NetproofError, OSError, UnicodeDecodeError, YAMLError) as error:
        why = " ".join(str(error).removeprefix(f"{path}:").split())
        raise SpackFileError(path, "", f"cannot be read: {why}") from error


@lru_cache(maxsize=64)
def _value(text: str, path: Path) -> Any:
    """Return what a text says: every environment includes the same files."""
    from ruamel.yaml import YAML

    from netproof.intake import yaml_reading

    yaml_reading.yaml_value(text, path)
    return YAML(typ="safe", pure=True).load(text)


def includes(environment: Path) -> list[tuple[Path, bool]]:
    """Return the files that a spack.yaml includes, the first over later ones, and if optional."""
    entries = load(environment, "environment")["spack"]["include"]
    return [
        ((environment.parent / entry["path"]).resolve(), entry["optional"])
        if isinstance(entry, dict)
        else ((environment.parent / entry).resolve(), False)
        for entry in entries
    ]


@dataclass(frozen=True, order=True)
class Combination:
    """An MPI library and the compiler that builds it and the benchmarks."""

    mpi: str
    compiler: str

    @property
    def name(self) -> str:
        """Name of the Spack environment and of ReFrame's."""
        return f"{self.mpi}-{self.compiler}"


@dataclass(frozen=True)
class BuildTable:
    """The combinations that a site builds, and those that cannot be built, each with the reason."""

    build: tuple[Combination, ...]
    excluded: dict[Combination, str]

    def named(self, name: str) -> Combination:
        """Return the combination of that name. Raises NetproofError if the table lacks it."""
        for combination in self.build:
            if combination.name == name:
                return combination
        names = ", ".join(combination.name for combination in self.build)
        raise NetproofError(f"spack-envs/matrix.yaml does not build {name!r}; it has {names}")


@dataclass(frozen=True)
class Mpi:
    """An MPI library as ReFrame needs it; ``package`` is its name in Spack.

    ``fabrics``: those that it has to have, ``absent``: those declared absent, each with the reason.
    """

    package: str
    label: str
    kind: str
    pmi: str
    env_vars: tuple[tuple[str, str], ...]
    fabrics: dict[str, str]
    absent: dict[str, str]


@dataclass(frozen=True)
class BuildRecord:
    """A build: packages by root, time, seconds, and files by their path in spack-envs/.

    ``spack``: its version and commit; ``recipes``: the commit of Spack's packages; ``files``: path
    to digest, as of `inputs`.
    """

    site: str
    built: str
    seconds: float
    spack: str
    recipes: str
    lock: str
    files: dict[str, str]
    packages: dict[str, dict[str, str]]


@dataclass(frozen=True)
class BuildState:
    """``word`` is "built", "stale", "failed" or "not built"; ``reason`` says why not "built"."""

    word: str
    reason: str
    record: BuildRecord | None


def table(folder: Path = FOLDER) -> BuildTable:
    """Return the table of combinations. Raises SpackFileError."""
    path = folder / "matrix.yaml"
    content = load(path, "table")
    build = tuple(
        Combination(mpi, compiler)
        for mpi, compilers in content["build"].items()
        for compiler in compilers
    )
    excluded = {
        Combination(mpi, compiler): reason
        for mpi, compilers in content["excluded"].items()
        for compiler, reason in compilers.items()
    }
    for combination in build:
        if combination in excluded:
            raise SpackFileError(
                path, f"build.{combination.mpi}", f"{combination.compiler} is excluded below it"
            )
    return BuildTable(build, excluded)


def environment_folder(combination: Combination, folder: Path = FOLDER) -> Path:
    """Return the folder of the combination's Spack environment in the checkout, only read."""
    return folder / "envs" / combination.name


def builds(folder: Path = FOLDER) -> Path:
    """Return the folder of all builds of ``folder``: each checkout has its own."""
    named = os.environ.get(BUILDS)
    if named:
        return Path(named).resolve()
    home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    digest = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:8]
    return home / "netproof" / f"{folder.resolve().parent.name}-{digest}"


def build_folder(combination: Combination, folder: Path = FOLDER) -> Path:
    """Return the folder of the built Spack environment: a copy of the checkout's, and its view."""
    return builds(folder) / combination.name


def view(combination: Combination, folder: Path = FOLDER) -> Path:
    """Return the environment's view, whose bin/ holds most of its programs."""
    return build_folder(combination, folder) / "view"


def program_folders(combination: Combination, folder: Path = FOLDER) -> list[Path]:
    """Return the folders of the environment's programs: the view's bin/, and the packages'."""
    own = view(combination, folder)
    return [own / "bin", *(own / name for name in benchmarks(folder)["folders"])]


def missing_program(combination: Combination, folder: Path = FOLDER) -> str:
    """Return the first program missing from these folders, and where it should be; or empty."""
    places = program_folders(combination, folder)
    for name in benchmarks(folder)["programs"]:
        if shutil.which(name, path=os.pathsep.join(map(str, places))) is None:
            return f"{name} in {' or '.join(map(str, places))}"
    return ""


def mpi(combination: Combination, site: str, folder: Path = FOLDER) -> Mpi:
    """Return the combination's MPI library, with the site's changes. Raises SpackFileError."""
    path = folder / "mpi" / f"{combination.mpi}.yaml"
    content = load(path, "mpi")
    package = content["definitions"][0]["mpi"][0]
    attributes = dict(content["packages"].get(package, {}).get("package_attributes", {}))
    # A site adds fabrics to those of the fragment: none goes without being declared absent.
    fabrics = dict(attributes.get("netproof_fabrics", {}))
    if site:
        sites = load(folder / "site" / site / "packages.yaml", "site")["packages"]
        for key in (package, f"{package}:"):
            attributes |= sites.get(key, {}).get("package_attributes", {})
            fabrics |= attributes.get("netproof_fabrics", {})
    for name in ("netproof_label", "netproof_kind", "netproof_pmi"):
        if name not in attributes:
            raise SpackFileError(path, f"packages.{package}.package_attributes", f"has no {name}")
    absent = attributes.get("netproof_absent", {})
    for name in absent:
        if name not in fabrics:
            raise SpackFileError(
                path,
                f"packages.{package}.package_attributes.netproof_absent",
                f"{name} is declared absent, and nothing requires it",
            )
    variables = attributes.get("netproof_env_vars", {})
    return Mpi(
        package,
        attributes["netproof_label"],
        attributes["netproof_kind"],
        attributes["netproof_pmi"],
        tuple((name, in_project(value)) for name, value in variables.items()),
        fabrics,
        absent,
    )


def in_project(text: str) -> str:
    """Return ``text`` with the checkout's path for ``${project}``, since externals are absolute."""
    return text.replace("${project}", str(PROJECT))


def benchmarks(folder: Path = FOLDER) -> dict[str, list[str]]:
    """Return ``features``, ``programs`` and ``folders`` that benchmarks give to environments."""
    packages = load(folder / "common.yaml", "common")["packages"]
    attributes = [entry.get("package_attributes", {}) for entry in packages.values()]
    return {
        what: [name for entry in attributes for name in entry.get(f"netproof_{what}", [])]
        for what in ("features", "programs", "folders")
    }


def inputs(combination: Combination, site: str, folder: Path = FOLDER) -> dict[str, str]:
    """Return the files that make an environment, as paths in ``folder``, each with its digest.

    Of YAML that of its content. Raises SpackFileError for a file missing or outside ``folder``.
    """
    environment = environment_folder(combination, folder) / "spack.yaml"
    chosen = (folder / "site" / CHOSEN).resolve()
    paths = [environment, *(path for path, _ in includes(environment) if path != chosen)]
    paths.append(folder / "release.yaml")
    # Spack reads no cache of Python, and nothing hidden, as ruff's is.
    recipes = (path.relative_to(folder) for path in (folder / "repo").rglob("*") if path.is_file())
    paths += sorted(
        folder / path
        for path in recipes
        if not any(part == "__pycache__" or part.startswith(".") for part in path.parts)
    )
    if site:
        paths.append(folder / "site" / site / "packages.yaml")
    for path in paths:
        if not path.resolve().is_relative_to(folder.resolve()):
            raise SpackFileError(environment, "include", f"{path} is not in {folder}")
    return {str(path.resolve().relative_to(folder.resolve())): _digest(path) for path in paths}


def _digest(path: Path) -> str:
    if path.suffix != ".yaml":
        return sha256(path)
    return hashlib.sha256(json.dumps(parsed(path), sort_keys=True).encode()).hexdigest()


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file. Raises SpackFileError where it is missing."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise SpackFileError(path, "", f"cannot be read: {error.strerror}") from error


def state(combination: Combination, folder: Path = FOLDER, site: str | None = None) -> BuildState:
    """Return whether an environment is built from the files as they are now.

    ``site``: compare with that site; by default with its own.
    """
    own = build_folder(combination, folder)
    failed = own / RECORDS / "failed.json"
    if failed.exists():
        failure = disk.json_file(failed)
        return BuildState(
            "failed",
            f"failed {failure['when']}: {failure['error']} (log: {failure['log']})",
            _record(own),
        )
    record = _record(own)
    if record is None:
        return BuildState("not built", "it has not been built", None)
    reason = _stale(combination, folder, record, record.site if site is None else site)
    return BuildState("stale" if reason else "built", reason, record)


def attempted(folder: Path = FOLDER) -> list[str]:
    """Return the environments of the table whose build this machine has begun."""
    begun = {path.parent.name for path in builds(folder).glob(f"*/{RECORDS}")}
    # Reading the table takes as long as all else of a site without builds.
    return [one.name for one in table(folder).build if one.name in begun] if begun else []


def environments(folder: Path = FOLDER) -> list[dict[str, Any]]:
    """Return one ReFrame environment for each combination of the table, built or not.

    One that is not built, or stale, says so in its ``extras['unusable']``. Raises SpackFileError,
    and NetproofError where others can write the folder: it becomes part of jobs' PATH.
    """
    trust.insist(folder, "the Spack environments")
    trust.insist(builds(folder), "what was built of the Spack environments")
    offered = benchmarks(folder)
    return [_environment(combination, offered, folder) for combination in table(folder).build]


def _environment(
    combination: Combination, offered: dict[str, list[str]], folder: Path
) -> dict[str, Any]:
    found = state(combination, folder)
    record = found.record
    library = mpi(combination, record.site if record else "", folder)
    built: dict[str, Any] = {}
    label = f"{library.label}, {found.word}"
    if record is not None:
        label = f"{library.label} {record.packages[library.package]['version']}"
        built = {
            "spack": record.spack,
            "site": record.site,
            "when": record.built,
            "packages": record.packages,
        }
        if library.absent:
            built["absent"] = library.absent
    unusable = ""
    if found.word != "built":
        unusable = (
            f"the Spack environment {combination.name} is {found.word}: {found.reason};"
            f" run ci/spack-envs build {combination.name}"
        )
    return {
        "name": combination.name,
        "features": ["mpi", library.kind, *offered["features"]],
        "env_vars": [
            ["PATH", ":".join([*map(str, program_folders(combination, folder)), "$PATH"])],
            *([name, value] for name, value in library.env_vars),
        ],
        "extras": {"mpi": label, "pmi": library.pmi, "built": built, "unusable": unusable},
    }


def _record(own: Path) -> BuildRecord | None:
    path = own / RECORDS / "built.json"
    if not path.exists():
        return None
    try:
        return codec.decode_part(BuildRecord, disk.json_file(path), "a build")
    except NetproofError as error:
        remedy = f"run ci/spack-envs clean {own.name}, and build it again"
        raise SpackFileError(path, "", f"is no record of a build, {error}; {remedy}") from error


def _stale(combination: Combination, folder: Path, record: BuildRecord, site: str) -> str:
    """Return why a record no longer holds, empty where it does."""
    if site != record.site:
        return f"it was built for site {record.site or 'none'}, not {site or 'none'}"
    now = inputs(combination, site, folder)
    for name in sorted({*now, *record.files}):
        if now.get(name) != record.files.get(name):
            return f"{name} has changed since it was built"
    lock = build_folder(combination, folder) / "spack.lock"
    if not lock.exists() or sha256(lock) != record.lock:
        return "its spack.lock is not the one that was built"
    if missing := missing_program(combination, folder):
        return f"there is no {missing} any more"
    for package in record.packages.values():
        if not Path(package.get("external", "")).exists():
            return f"{package['spec']} is not in {package['external']} any more"
    return ""
