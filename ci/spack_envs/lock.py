"""What a spack.lock says of an environment's roots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from netproof import loading
from netproof.errors import NetproofError
from netproof.spack_files import SpackFileError


def roots(path: Path) -> dict[str, dict[str, str]]:
    """Each root's version, spec, compiler, hash and variants; an external's prefix besides.

    ``compiler`` is that of C, empty where the lock has none: for a binary or an external.
    Raises SpackFileError for a lock of another form than Spack 1 writes.
    """
    try:
        content = loading.json_file(path)
        specs = content["concrete_specs"]
        found = {}
        for root in content["roots"]:
            node = specs[root["hash"]]
            found[node["name"]] = _described(node, specs, root["hash"])
    except (NetproofError, OSError, ValueError, KeyError, TypeError) as error:
        raise SpackFileError(path, "", f"is no lock of Spack 1: {error!r}") from error
    return found


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
