"""Read a spack.lock: roots, hashes, packages to build, machine, and sources."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from netproof.errors import NetproofError
from netproof.intake import disk
from netproof.site.spack import SpackFileError


@contextmanager
def reading(path: Path, what: str = "Spack 1") -> Iterator[None]:
    """Raise SpackFileError if the block finds another form of lock than Spack 1 writes."""
    try:
        yield
    except (NetproofError, OSError, ValueError, KeyError, TypeError) as error:
        raise SpackFileError(path, "", f"is no lock of {what}: {error!r}") from error


def roots(path: Path) -> dict[str, dict[str, str]]:
    """Return each root's version, spec, compiler, hash and variants, and an external's prefix.

    ``compiler`` is that of C, empty for an external. For Intel MPI, a binary, a lock names a
    compiler that built nothing. Raises SpackFileError for another form than Spack 1 writes.
    """
    with reading(path):
        content = disk.json_file(path)
        specs, digests = content["concrete_specs"], [root["hash"] for root in content["roots"]]
        return {specs[one]["name"]: _described(specs[one], specs, one) for one in digests}


def hashes(path: Path) -> dict[str, str]:
    """Return name and version of every spec by its hash. Raises SpackFileError."""
    return {digest: _named(node) for digest, node in _specs(path).items()}


def versions(path: Path) -> dict[str, str]:
    """Return the version of each package, with a comma between several."""
    found: dict[str, set[str]] = {}
    for node in _specs(path).values():
        found.setdefault(node["name"], set()).add(node["version"])
    return {name: ", ".join(sorted(each)) for name, each in found.items()}


def built_by(path: Path) -> list[tuple[str, str, str]]:
    """Return package, language and compiler of each build in a lock. Raises SpackFileError."""
    specs = _specs(path)
    with reading(path):
        return [
            (node["name"], language, specs[dependency["hash"]]["name"])
            for node in specs.values()
            for dependency in node.get("dependencies", [])
            for language in dependency["parameters"]["virtuals"]
            if language in ("c", "cxx", "fortran")
        ]


def built_among(path: Path, packages: Sequence[str]) -> list[str]:
    """Return the ``packages`` that Spack would build by the lock instead of using externals."""
    return sorted(
        _named(node)
        for node in _specs(path).values()
        if node["name"] in packages and "external" not in node
    )


def elsewhere(path: Path) -> str:
    """Return why the lock is not for this machine; empty if it is.

    Checked are processors, the externals' places, and the compilers' versions.
    """
    for node in _specs(path).values():
        family = platform.machine()
        target = node["arch"]["target"]
        name = target if isinstance(target, str) else target["name"]
        if _family(name) not in ("", family):
            return f"its {_named(node)} is for {name}, and this machine is {family}"
        external = node.get("external")
        if not external:
            continue
        if external["path"] and not Path(external["path"]).exists():
            return f"its {_named(node)} is in {external['path']}, which is not here"
        for compiler in (external.get("extra_attributes") or {}).get("compilers", {}).values():
            if not os.access(compiler, os.X_OK):
                return f"its {_named(node)} has {compiler}, which is not here"
            if node["name"] in ("gcc", "llvm"):
                said = _version(compiler)
                if said != node["version"]:
                    return f"it names {_named(node)}, and {compiler} here is {said}"
    return ""


def stale(made_of: dict[str, Any], now: dict[str, Any]) -> str:
    """Return what has changed since a lock was made; empty if nothing has.

    Both arguments have ``spack``, ``recipes``, ``site`` and ``files``, as in concretized.json.
    """
    for key, what in (
        ("spack", "Spack"),
        ("recipes", "Spack's package repository"),
        ("site", "the site"),
    ):
        if made_of.get(key) != now[key]:
            then = made_of.get(key) or "none"
            return f"{what} was {then} when it was made, and is {now[key] or 'none'} now"
    then = made_of.get("files", {})
    for name in sorted({*then, *now["files"]}):
        if then.get(name) != now["files"].get(name):
            return f"{name} has changed since it was made"
    return ""


def _family(target: str) -> str:
    """Return the machine's architecture by a target's name; empty for single processors' names."""
    for family in ("x86_64", "aarch64", "ppc64le"):
        if target == family or target.startswith(f"{family}_"):
            return family
    return ""


def _version(compiler: str) -> str:
    """Ask a GCC or Clang for its version."""
    options = ["-dumpfullversion", "-dumpversion"]
    ran = subprocess.run([compiler, *options], capture_output=True, text=True, check=False)
    if ran.returncode:
        ran = subprocess.run([compiler, options[1]], capture_output=True, text=True, check=False)
    return ran.stdout.strip() or "of no known version"


def _named(node: dict[str, Any]) -> str:
    return f"{node['name']}@{node['version']}"


def _specs(path: Path) -> dict[str, dict[str, Any]]:
    with reading(path):
        return disk.json_file(path)["concrete_specs"]


def _described(node: dict[str, Any], specs: dict[str, Any], digest: str) -> dict[str, str]:
    compiler = ""
    for dependency in node.get("dependencies", []):
        if "c" in dependency["parameters"]["virtuals"]:
            built_by = specs[dependency["hash"]]
            compiler = f"{built_by['name']}@{built_by['version']}"
    described = {
        "version": node["version"],
        "spec": f"{node['name']}@{node['version']}",
        "compiler": compiler,
        "hash": digest,
        "variants": " ".join(
            _variant(name, value)
            for name, value in sorted(node["parameters"].items())
            if value or value is False
        ),
    }
    if "external" in node:
        # An external that a module brings has no path.
        described["external"] = node["external"]["path"] or ""
    return described


def _variant(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return f"{'+' if value else '~'}{name}"
    return f"{name}={','.join(value) if isinstance(value, list) else value}"
