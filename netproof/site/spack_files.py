"""The files of spack-envs/: read, and checked against a schema of the parts that are used.

``spack-envs`` holds a table of combinations; a fragment for each MPI library, compiler and site; a
file that all share; and one environment per combination. A key that a schema does not name is an
error, since Spack would ignore some of them silently.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import jsonschema
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from netproof.errors import NetproofError, shortened
from netproof.intake import loading, yaml_reading


class SpackFileError(NetproofError):
    """A file of spack-envs/ that cannot be used; the text names file, place and remedy."""

    def __init__(self, path: Path, place: str, reason: str) -> None:
        self.path, self.place, self.reason = path, place, reason
        super().__init__(f"{path}: {place}: {reason}" if place else f"{path}: {reason}")


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _named(value: dict[str, Any], pattern: str = "^[a-z][a-z0-9]*$") -> dict[str, Any]:
    return {"type": "object", "patternProperties": {pattern: value}, "additionalProperties": False}


_TEXT = {"type": "string", "minLength": 1}
_TEXTS = {"type": "array", "items": _TEXT, "minItems": 1}
FABRICS = ("tcp", "shm", "verbs", "ucx", "psm3", "opx", "efa", "cxi", "cuda", "rocm")
"""Fabrics, and memories of GPUs, that an MPI library can be required to support."""
_REASONS = _object(dict.fromkeys(FABRICS, _TEXT))
_ATTRIBUTES = _object(
    {
        "netproof_label": _TEXT,
        "netproof_kind": _TEXT,
        "netproof_pmi": _TEXT,
        "netproof_fabrics": _REASONS,
        "netproof_absent": _REASONS,
        "netproof_env_vars": _named(_TEXT, "^[A-Za-z_][A-Za-z0-9_]*$"),
        "netproof_features": _TEXTS,
        "netproof_programs": _TEXTS,
        "netproof_folders": _TEXTS,
    }
)
_EXTERNAL = _object(
    {
        "spec": _TEXT,
        "prefix": _TEXT,
        "modules": _TEXTS,
        "extra_attributes": _object(
            {"compilers": _object({"c": _TEXT, "cxx": _TEXT, "fortran": _TEXT}, "c", "cxx")}
        ),
    },
    "spec",
)
_PACKAGE = _object(
    {
        "require": {
            "type": "array",
            "items": {"anyOf": [_TEXT, _object({"spec": _TEXT, "when": _TEXT}, "spec", "when")]},
            "minItems": 1,
        },
        "target": _TEXTS,
        "buildable": {"type": "boolean"},
        "externals": {"type": "array", "items": _EXTERNAL, "minItems": 1},
        "package_attributes": _ATTRIBUTES,
    }
)
# A second colon behind a name, which YAML reads as part of it, replaces what other files say.
_PACKAGES = _named(_PACKAGE, "^[a-z0-9][a-z0-9-]*:?$")


def _definitions(name: str, most: int) -> dict[str, Any]:
    specs = {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": most}
    return {"type": "array", "items": _object({name: specs}, name), "minItems": 1, "maxItems": 1}


_TOOLCHAIN = {"type": "array", "items": _object({"spec": _TEXT, "when": _TEXT}, "spec", "when")}
_INCLUDE = {
    "anyOf": [_TEXT, _object({"path": _TEXT, "optional": {"type": "boolean"}}, "path", "optional")]
}
_RELEASE = _object(
    {"repository": _TEXT, "tag": _TEXT, "commit": {"type": "string", "pattern": "^[0-9a-f]{40}$"}},
    "repository",
    "tag",
    "commit",
)
SCHEMAS: dict[str, dict[str, Any]] = {
    "table": _object(
        {"build": _named({**_TEXTS, "uniqueItems": True}), "excluded": _named(_named(_TEXT))},
        "build",
        "excluded",
    ),
    "mpi": _object(
        {"definitions": _definitions("mpi", 1), "packages": _PACKAGES}, "definitions", "packages"
    ),
    "compiler": _object(
        {
            "toolchains": _object({"under_test": _TOOLCHAIN}, "under_test"),
            "packages": _PACKAGES,
        },
        "toolchains",
    ),
    "site": _object({"packages": _PACKAGES}, "packages"),
    "common": _object(
        {
            "definitions": _definitions("apps", 99),
            "repos": _named(_TEXT),
            "concretizer": _object({"unify": {"const": True}, "reuse": {"type": "boolean"}}),
            "packages": _PACKAGES,
        },
        "definitions",
        "repos",
        "concretizer",
        "packages",
    ),
    "release": _object({"spack": _RELEASE, "packages": _RELEASE}, "spack", "packages"),
    "repo": _object({"repo": _object({"namespace": _TEXT, "api": _TEXT}, "namespace")}, "repo"),
    "environment": _object(
        {
            "spack": _object(
                {
                    "include": {"type": "array", "items": _INCLUDE, "minItems": 1},
                    "specs": {"const": ["$mpi", "$apps"]},
                    "view": {"const": {"default": {"root": "view", "link": "roots"}}},
                },
                "include",
                "specs",
                "view",
            )
        },
        "spack",
    ),
}
"""JSON schema of each kind of file."""


def load(path: Path, kind: str) -> dict[str, Any]:
    """Return a file's content, which fits the schema of its kind. Raises SpackFileError."""
    content: dict[str, Any] = parsed(path)
    faults = jsonschema.Draft202012Validator(SCHEMAS[kind]).iter_errors(content)
    fault = jsonschema.exceptions.best_match(faults)
    if fault is not None:
        raise SpackFileError(
            path, ".".join(map(str, fault.absolute_path)), shortened(fault.message)
        )
    return content


def parsed(path: Path) -> Any:
    """Return a file's content, of any kind, which nobody may change. Raises SpackFileError."""
    try:
        return _value(loading.read_text(path), path)
    except NetproofError as error:
        raise SpackFileError(path, "", str(error).removeprefix(f"{path}:").strip()) from error
    except UnicodeDecodeError as error:
        raise SpackFileError(path, "", f"is no UTF-8 text: {error.reason}") from error
    except OSError as error:
        raise SpackFileError(path, "", f"cannot be read: {error.strerror}") from error
    except YAMLError as error:
        raise SpackFileError(path, "", f"is no YAML: {' '.join(str(error).split())}") from error


@lru_cache(maxsize=64)
def _value(text: str, path: Path) -> Any:
    """Return what a text says: every environment includes the same files."""
    yaml_reading.check_yaml(text, path)
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
