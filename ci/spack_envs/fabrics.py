"""Fabrics that an MPI library can drive, by its lock and by the library itself.

A fragment or a site requires fabrics, each with a reason. A fabric is a way from rank to rank:
``netproof.site.spack.FABRICS`` has the names. Without an answer of lock or library, it counts
as missing.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci.spack_envs import lock
from netproof.errors import NetproofError
from netproof.intake import disk
from netproof.site import spack
from netproof.site.spack import FABRICS, Combination, Mpi

LAYERS = ("libfabric", "ucx")
"""Packages that drive network cards for an MPI library."""
GPUS = ("cuda", "rocm")
SECONDS = 60
"""Time limit of a library's own program."""


@dataclass(frozen=True)
class Said:
    """Whether a fabric is present, and the source of that."""

    there: bool
    by: str


def in_lock(path: Path, package: str) -> dict[str, Said]:
    """Read the known fabrics of the MPI library from a spack.lock.

    None are known of an external, whose variants are the site's claims. Raises SpackFileError for
    another form of lock than Spack 1 writes.
    """
    with lock.reading(path, f"Spack 1 with {package}"):
        content = disk.json_file(path)
        nodes = content["concrete_specs"]
        node = {nodes[one["hash"]]["name"]: nodes[one["hash"]] for one in content["roots"]}[package]
        below = _below(node, nodes)
        if "external" in node:
            return {}
        return _of_nodes(node, {name: below[name] for name in LAYERS if name in below})


def _below(node: Mapping[str, Any], nodes: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return all packages that a package is linked with, by name."""
    found: dict[str, Mapping[str, Any]] = {}
    waiting = [node]
    while waiting:
        for dependency in waiting.pop().get("dependencies", []):
            other = nodes[dependency["hash"]]
            if "link" in dependency["parameters"]["deptypes"] and other["name"] not in found:
                found[other["name"]] = other
                waiting.append(other)
    return found


def _of_nodes(node: Mapping[str, Any], layers: Mapping[str, Mapping[str, Any]]) -> dict[str, Said]:
    name, variants = node["name"], node["parameters"]
    if name not in ("openmpi", "mpich", "mvapich"):
        # A binary, Intel's for instance: its recipe has no fabrics.
        return {}
    itself = f"{name}@{node['version']}"
    device = "".join(variants.get("device", ""))
    said = {"shm": Said(device != "ch3:sock", f"{itself} has it always")}
    if name == "openmpi" or device == "ch3:sock":
        said["tcp"] = Said(True, f"{itself} has it always")
    by_names = [f"{layer['name']}@{layer['version']}{_chosen(layer)}" for layer in layers.values()]
    by = f"{itself} with {' and '.join(by_names) or 'neither libfabric nor ucx'}"
    providers = (
        set(layers["libfabric"]["parameters"]["fabrics"]) if "libfabric" in layers else set()
    )
    ucx = layers["ucx"]["parameters"] if "ucx" in layers else None
    found = providers | {"ucx"} if ucx is not None else providers
    if ucx is not None:
        found |= {"tcp"} | ({"verbs"} if ucx.get("verbs") else set())
    if "sockets" in found:
        found |= {"tcp"}
    known = all("external" not in layer for layer in layers.values())
    for fabric in FABRICS:
        if fabric in said:
            continue
        if fabric in GPUS:
            said[fabric] = Said(bool(variants.get(fabric)), f"{itself}{_gpu(variants, fabric)}")
        elif known or (fabric == "ucx"):
            said[fabric] = Said(fabric in found, by)
    return said


def _gpu(variants: Mapping[str, Any], fabric: str) -> str:
    return f" {'+' if variants.get(fabric) else '~'}{fabric}"


def _chosen(layer: Mapping[str, Any]) -> str:
    """Format the variants of a layer that select its cards."""
    if "external" in layer:
        return " (external)"
    if layer["name"] == "libfabric":
        return f" fabrics={','.join(layer['parameters']['fabrics'])}"
    return f" {'+' if layer['parameters'].get('verbs') else '~'}verbs"


def of_library(program: Path, tools: Iterable[Path]) -> dict[str, Said]:
    """Ask the libraries that ``program``, an MPI program, is linked with for their fabrics.

    ``tools``: folders with the MPI library's own programs. ``ompi_info`` or ``mpichversion``,
    ``fi_info`` and ``ucx_info`` answer, of the libraries that the loader finds. Raises
    NetproofError if the program is linked with no MPI library.
    """
    libraries = linked(program)
    mpi = [path for name, path in libraries.items() if re.match(r"libmpi(ch)?\.so", name)]
    if not mpi:
        raise NetproofError(f"{program} is linked with no libmpi: ldd shows none")
    said: dict[str, Said] = {}
    folders = [*tools, *_programs_of(mpi[0])]
    if info := _tool(folders, "ompi_info"):
        text = _output(info, "--parsable", "--all")
        said |= _of_open_mpi(text, info)
        for plugin in _plugins(text):
            libraries |= linked(plugin)
    elif version := _tool(folders, "mpichversion"):
        said |= _of_mpich(_output(version), version)
    for name, ask in (("libfabric.so", _of_libfabric), ("libuct.so", _of_ucx)):
        for library in [path for key, path in libraries.items() if key.startswith(name)]:
            for fabric, one in ask(library).items():
                # The MPI library has a fabric if one of its layers has it.
                if one.there or fabric not in said:
                    said[fabric] = one
    return said


def linked(program: Path) -> dict[str, Path]:
    """Return the shared libraries that the loader finds for a program or library, by name."""
    text = _output(Path("ldd"), str(program))
    return {name: Path(path) for name, path in re.findall(r"(?m)^\s+(\S+) => (/\S+) \(0x", text)}


def faults(name: str, mpi: Mpi, said: Mapping[str, Said], insist: bool) -> list[str]:
    """Return a sentence for each required fabric that an environment's MPI library lacks.

    ``insist``: unknown counts as missing, as for an answer of the library itself.
    """
    found = []
    for fabric, reason in mpi.fabrics.items():
        one = said.get(fabric)
        if fabric in mpi.absent:
            if one is not None and one.there:
                found.append(
                    f"{name}: {fabric} is declared absent ({mpi.absent[fabric]}), and is there:"
                    f" {one.by}; take it out of netproof_absent"
                )
        elif one is None and insist:
            found.append(
                f"{name}: nothing tells whether {fabric} is in its MPI library, which is required:"
                f" {reason}; netproof_absent in the site's file declares it absent"
            )
        elif one is not None and not one.there:
            found.append(
                f"{name}: {fabric} is missing, which is required: {reason}; found {one.by};"
                " netproof_absent in the site's file declares it absent"
            )
    return found


def _tool(folders: Iterable[Path], name: str) -> Path | None:
    return next((folder / name for folder in folders if os.access(folder / name, os.X_OK)), None)


def _programs_of(library: Path) -> list[Path]:
    """Return the program folders of a library's prefix: /usr has one more level."""
    real = library.resolve()
    return [parent / "bin" for parent in list(real.parents)[1:3]]


def _output(program: Path, *arguments: str) -> str:
    """Return a program's output. Raises NetproofError if it fails, since it may be partial."""
    command = [str(program), *arguments]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NetproofError(f"{' '.join(command)} cannot be asked: {error}") from error
    if ran.returncode:
        said = (ran.stderr or ran.stdout).strip().splitlines() or ["nothing"]
        raise NetproofError(f"{' '.join(command)} ended with {ran.returncode}: {said[-1]}")
    return ran.stdout


def _of_open_mpi(text: str, program: Path) -> dict[str, Said]:
    by = f"by {program}"
    components = set(re.findall(r"(?m)^mca:(\w+:\w+):version:", text))
    present = {
        "tcp": "btl:tcp" in components,
        "shm": bool({"btl:vader", "btl:sm"} & components),
        "ucx": "pml:ucx" in components,
        "cuda": "accelerator:cuda" in components
        or bool(re.search(r"mpi_built_with_cuda_support:value:true", text)),
        "rocm": "accelerator:rocm" in components,
    }
    # Open MPI 4's own, which UCX has replaced since.
    if "btl:openib" in components:
        present["verbs"] = True
    return {fabric: Said(there, by) for fabric, there in present.items()}


def _plugins(text: str) -> list[Path]:
    """Return the component files that are linked with UCX or libfabric."""
    folder = re.search(r"(?m)^path:pkglibdir:(.+)$", text)
    if not folder:
        return []
    names = ("pml_ucx", "mtl_ofi", "btl_ofi", "btl_uct")
    paths = [Path(folder[1].strip(), f"mca_{name}.so") for name in names]
    return [path for path in paths if path.exists()]


def _of_mpich(text: str, program: Path) -> dict[str, Said]:
    found = re.search(r"(?m)^(?:MPICH|MVAPICH\S*) Device:\s*(\S+)(.*)$", text)
    if not found:
        raise NetproofError(f"{program} tells no device")
    by = f"by {program}: {found[1]}{found[2]}"
    device, _, first = found[1].partition(":")
    networks = {first, *found[2].split()}
    said = {
        "shm": Said(device in ("ch3", "ch4") and "sock" not in networks, by),
        "ucx": Said("ucx" in networks, by),
    }
    if networks & {"sock", "tcp"} or (device == "ch3" and not networks & {"ofi", "mxm"}):
        said["tcp"] = Said(True, by)
    for gpu, option in (("cuda", "--with-cuda"), ("rocm", "--with-hip")):
        said[gpu] = Said(bool(re.search(rf"{option}=(?!no\b)\S", text)), by)
    return said


def _of_libfabric(library: Path) -> dict[str, Said]:
    info = _tool(_programs_of(library), "fi_info")
    if info is not None:
        providers = set(re.findall(r"(?m)^(\w[\w-]*):$", _output(info, "--list")))
        by, whole = f"by {info}: {', '.join(sorted(providers))}", True
    else:
        # Without the program only providers in files of their own show.
        folder = library.resolve().parent / "libfabric"
        names = [path.name for path in folder.glob("lib*-fi.so*")]
        providers = {name.removeprefix("lib").partition("-fi.so")[0] for name in names}
        by, whole = f"by the files of {folder}", False
    if "sockets" in providers:
        providers |= {"tcp"}
    return {
        fabric: Said(fabric in providers, by)
        for fabric in FABRICS
        if fabric not in (*GPUS, "shm", "ucx") and (whole or fabric in providers)
    }


def _of_ucx(library: Path) -> dict[str, Said]:
    """Read ``ucx_info``: ``-d`` shows TCP, and InfiniBand only with a card; ``-b`` has modules."""
    info = _tool(_programs_of(library), "ucx_info")
    if info is not None:
        transports = set(re.findall(r"(?m)^#\s+Transport: (\S+)", _output(info, "-d")))
        found = re.search(r'(?m)^#define uct_MODULES\s+"(.*)"$', _output(info, "-b"))
        if found is None:
            raise NetproofError(f"{info} -b tells no uct_MODULES")
        modules = {name for name in found[1].split(":") if name}
        by = f"by {info}: {', '.join(sorted(transports))}; modules {', '.join(sorted(modules))}"
    else:
        # TCP is always built in; other modules are files.
        folder = library.resolve().parent / "ucx"
        transports = {"tcp"}
        names = [path.name.split(".")[0] for path in folder.glob("libuct_*.so*")]
        modules = {name.removeprefix("libuct_") for name in names}
        by = f"by the files of {folder}"
    return {"tcp": Said("tcp" in transports, by), "verbs": Said("ib" in modules, by)}


def lock_faults(combination: Combination, site: str, folder: Path) -> list[str]:
    """Return the fabrics missing by an environment's lock, before hours of building."""
    mpi = spack.mpi(combination, site, folder)
    path = spack.view(combination, folder).parent / "spack.lock"
    return faults(combination.name, mpi, in_lock(path, mpi.package), insist=False)


def library_faults(combination: Combination, site: str, folder: Path) -> list[str]:
    """Return the required fabrics that the built MPI library does not report."""
    mpi = spack.mpi(combination, site, folder)
    view = spack.view(combination, folder)
    root = lock.roots(view.parent / "spack.lock")[mpi.package]
    tools = [view / "bin"]
    if root.get("external"):
        tools.insert(0, Path(root["external"], "bin"))
    try:
        said = of_library(view / "bin" / "NPmpi", tools)
    except NetproofError as error:
        return [f"{combination.name}: the fabrics of its MPI library are not known: {error}"]
    return faults(combination.name, mpi, said, insist=True)
