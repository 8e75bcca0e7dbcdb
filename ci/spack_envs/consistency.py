"""Check that table, folders, fragments and includes of spack-envs/ agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ci.spack_envs import toolchains
from netproof.benchmarks.registry import FEATURES
from netproof.site import spack
from netproof.site.spack import SpackFileError, includes, load


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
    yield from toolchains.file_faults(folder)


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
