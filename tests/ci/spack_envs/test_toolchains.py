"""A lock is refused if another compiler builds the packages under test."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ci.spack_envs import lock, toolchains
from netproof.site import spack
from netproof.site.spack import Combination

DATA = Path(__file__).resolve().parents[3] / "tests" / "data" / "spack"


def locked(folder: Path, combination: Combination, name: str) -> Path:
    """The recorded lock ``name`` as that of the combination."""
    own = spack.build_folder(combination, folder)
    own.mkdir(parents=True)
    return Path(shutil.copyfile(DATA / f"{name}.lock", own / "spack.lock"))


@pytest.mark.parametrize(
    ("combination", "name"),
    [
        (Combination("mpich", "gcc"), "mpich-gcc"),
        (Combination("mpich", "gcc"), "mpich-gcc-from-source"),
        (Combination("openmpi", "clang"), "openmpi-clang"),
    ],
)
def test_recorded_locks_are_of_the_compilers_that_they_have_to_be(folder, combination, name):
    path = locked(folder, combination, name)
    assert len(lock.built_by(path)) >= 3
    assert toolchains.lock_faults(combination, folder) == []


def test_what_is_under_test_is_not_of_another_compiler(folder):
    combination = Combination("mpich", "clang")
    locked(folder, combination, "mpich-gcc")
    assert toolchains.lock_faults(combination, folder)[0] == (
        "mpich-clang: the c compiler of netpipe is gcc, and has to be llvm: the site's file"
        " takes the requirement away"
    )


def test_what_is_below_may_be_of_another_compiler(folder):
    combination = Combination("mpich", "gcc")
    path = locked(folder, combination, "mpich-gcc-from-source")
    content = json.loads(path.read_text())
    nodes = content["concrete_specs"]
    (below,) = [node for node in nodes.values() if node["name"] == "libfabric"]
    nodes["other"] = {"name": "llvm", "version": "14.0.6"}
    for dependency in below["dependencies"]:
        if "c" in dependency["parameters"]["virtuals"]:
            dependency["hash"] = "other"
    path.write_text(json.dumps(content))
    assert ("libfabric", "c", "llvm") in lock.built_by(path)
    assert toolchains.lock_faults(combination, folder) == []


@pytest.mark.slow
def test_a_lock_of_the_wrong_compiler_is_not_installed(spack_envs, stand_in):
    ran = spack_envs("build", "mpich-clang", STAND_IN_COMPILER="gcc")
    assert ran.returncode == 1
    assert "the c compiler of netpipe is gcc, and has to be llvm" in ran.stdout
    assert stand_in() == ["mpich-clang concretize"]
