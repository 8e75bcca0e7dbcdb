"""Check the compiler of each package, in the files and in a spack.lock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ci.spack_envs import lock
from netproof.site import spack
from netproof.site.spack import Combination, SpackFileError, load

UNDER_TEST = "%under_test"
"""Requirement of the combination's compiler."""


def file_faults(folder: Path) -> Iterator[str]:
    """Yield MPI libraries and benchmarks without a requirement of the combination's compiler."""
    try:
        content = load(folder / "common.yaml", "common")
        names = [spec.split("@")[0] for spec in content["definitions"][0]["apps"]]
        wanted = [("common.yaml", content, name) for name in names]
        for path in sorted(folder.glob("mpi/*.yaml")):
            content = load(path, "mpi")
            (package,) = content["definitions"][0]["mpi"]
            wanted.append((f"mpi/{path.name}", content, package))
    except SpackFileError:
        return
    for name, content, package in wanted:
        required = content["packages"].get(package, {}).get("require", [])
        if not any(UNDER_TEST in str(entry).split() for entry in required):
            yield f"{name}: packages.{package}.require: has no {UNDER_TEST}: any compiler would do"


def lock_faults(combination: Combination, folder: Path) -> list[str]:
    """Return a sentence for each root and language with another compiler than its fragment's.

    Their dependencies may have any compiler: Spack uses few, and GCC if the combination's fails.
    Raises SpackFileError.
    """
    path = spack.build_folder(combination, folder) / "spack.lock"
    fragment = folder / "compiler" / f"{combination.compiler}.yaml"
    entries = load(fragment, "compiler")["toolchains"]["under_test"]
    pairs = [entry["spec"].lstrip("%").partition("=") for entry in entries]
    tested = {language: compiler.partition("@")[0] for language, _, compiler in pairs}
    roots = lock.roots(path)
    found = []
    for package, language, compiler in lock.built_by(path):
        if package in roots and compiler != tested[language]:
            found.append(
                f"{combination.name}: the {language} compiler of {package} is {compiler}, and has"
                f" to be {tested[language]}: the site's file takes the requirement away"
            )
    return found
