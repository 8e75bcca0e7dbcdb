"""Check that the files of spack-envs/ agree, and the compilers of a spack.lock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ci.spack_envs import lock
from netproof.benchmarks.registry import FEATURES
from netproof.site import spack
from netproof.site.spack import Combination, SpackFileError, includes, load

UNDER_TEST = "%under_test"
"""Requirement of the combination's compiler."""


def faults(folder: Path) -> Iterator[str]:
    """Yield a sentence for every disagreement between the files of ``folder``."""
    try:
        table = spack.table(folder)
    except SpackFileError as error:
        yield str(error)
        return
    yield from _names(folder, table)
    for kind, pattern in (
        ("mpi", "mpi/*.yaml"),
        ("compiler", "compiler/*.yaml"),
        ("site", "site/*/packages.yaml"),
        ("common", "common.yaml"),
        ("release", "release.yaml"),
        ("repo", "repo/**/repo.yaml"),
        ("environment", "envs/*/spack.yaml"),
    ):
        for path in sorted(folder.glob(pattern)):
            try:
                load(path, kind)
            except SpackFileError as error:
                yield str(error)
    for combination in table.build:
        yield from _environment(folder, combination)
    yield from _common(folder)
    yield from _compilers(folder)


def _names(folder: Path, table: spack.BuildTable) -> Iterator[str]:
    wanted = {combination.name for combination in table.build}
    there = {path.parent.name for path in folder.glob("envs/*/spack.yaml")}
    for name in sorted(wanted - there):
        yield f"matrix.yaml builds {name}, and there is no envs/{name}/spack.yaml"
    for name in sorted(there - wanted):
        yield f"envs/{name} is there, and matrix.yaml does not build it"
    for kind in ("mpi", "compiler"):
        fragments = {path.stem for path in folder.glob(f"{kind}/*.yaml")}
        for combination in (*table.build, *table.excluded):
            name = getattr(combination, kind)
            if name not in fragments:
                yield f"matrix.yaml names {name}, and there is no {kind}/{name}.yaml"


def _environment(folder: Path, combination: spack.Combination) -> Iterator[str]:
    path = spack.environment_folder(combination, folder) / "spack.yaml"
    expected = [
        folder / "site" / spack.CHOSEN,
        folder / "mpi" / f"{combination.mpi}.yaml",
        folder / "compiler" / f"{combination.compiler}.yaml",
        folder / "common.yaml",
    ]
    try:
        included = includes(path)
        spack.mpi(combination, "", folder)
    except SpackFileError as error:
        yield str(error)
        return
    if [file for file, _ in included] != [file.resolve() for file in expected]:
        names = ", ".join(str(file.relative_to(folder)) for file in expected)
        yield f"{path}: include: has to be {names}, in this order"
    for file, optional in included:
        if not optional and not file.exists():
            yield f"{path}: include: there is no {file}"


def _common(folder: Path) -> Iterator[str]:
    try:
        offered = spack.benchmarks(folder)["features"]
        repos = load(folder / "common.yaml", "common")["repos"]
    except SpackFileError:
        return
    if sorted(offered) != sorted(FEATURES):
        yield f"common.yaml: netproof_features are {offered}, and have to be {list(FEATURES)}"
    for name, repo in repos.items():
        if not (folder / repo / "repo.yaml").exists():
            yield f"common.yaml: repos.{name}: there is no {folder / repo / 'repo.yaml'}"


def _compilers(folder: Path) -> Iterator[str]:
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


def compiler_faults(combination: Combination, folder: Path) -> list[str]:
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
