"""The committed locks are of the files next to them, and have what the files require."""

from __future__ import annotations

import json
import platform
import shutil
from pathlib import Path

import pytest

from ci.spack_envs import build, fabrics, lock, release, toolchains
from netproof.site import spack
from netproof.site.spack import load

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "spack-envs"
LOCKS = sorted(path.parent for path in FOLDER.glob("locks/*/*/spack.lock"))
each_lock = pytest.mark.parametrize(
    "kept", LOCKS, ids=lambda kept: f"{kept.parent.name}-{kept.name}"
)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_each_default_environment_has_one_of_a_generic_linux(machine):
    names = [kept.name for kept in LOCKS if kept.parent.name == f"generic-{machine}"]
    assert names == ["mpich-clang", "mpich-gcc", "openmpi-clang", "openmpi-gcc"]


def now(kept: Path) -> dict[str, object]:
    """Sources of a lock made now."""
    pair = release.pair(FOLDER)
    site = kept.parent.name
    return {
        "spack": f"{pair['spack'].tag.removeprefix('v')} ({pair['spack'].commit})",
        "recipes": pair["packages"].commit,
        "site": site,
        "files": spack.inputs(spack.table(FOLDER).named(kept.name), site, FOLDER),
    }


@each_lock
def test_it_is_of_the_files_the_site_and_the_releases_as_they_are(kept):
    assert build.stored_fault(kept, now(kept)) == "", (
        f"ci/spack-envs concretize {kept.name} --site {kept.parent.name} --build-slurm"
        f" --locks {kept.parent} makes a new one"
    )


def test_what_tools_leave_alongside_the_files_changes_nothing(folder):
    combination = spack.table(folder).named("mpich-gcc")
    before = spack.inputs(combination, "generic-x86_64", folder)
    for name in ("repo/.ruff_cache/x", "repo/spack_repo/__pycache__/x"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("1")
    assert spack.inputs(combination, "generic-x86_64", folder) == before


@each_lock
def test_it_has_the_versions_the_compilers_and_the_fabrics_that_are_required(kept, folder):
    combination = spack.table(folder).named(kept.name)
    own = spack.build_folder(combination, folder)
    own.mkdir(parents=True)
    shutil.copyfile(kept / "spack.lock", own / "spack.lock")
    mpi = spack.mpi(combination, kept.parent.name, folder)
    roots = lock.roots(kept / "spack.lock")
    (required,) = load(FOLDER / "mpi" / f"{combination.mpi}.yaml", "mpi")["packages"][mpi.package][
        "require"
    ]
    assert f"@{roots[mpi.package]['version']}" == required.split()[0]
    for app in load(FOLDER / "common.yaml", "common")["definitions"][0]["apps"]:
        name, _, version = app.split()[0].partition("@")
        assert roots[name]["version"] == version
    assert toolchains.lock_faults(combination, folder) == []
    said = fabrics.in_lock(kept / "spack.lock", mpi.package)
    assert fabrics.faults(kept.name, mpi, said, insist=True) == []


@each_lock
def test_its_externals_are_the_distributions(kept):
    nodes = json.loads((kept / "spack.lock").read_text())["concrete_specs"].values()
    assert {node["external"]["path"] for node in nodes if "external" in node} == {"/usr"}


@each_lock
def test_all_in_it_is_for_one_kind_of_processors_and_others_refuse_it(kept, monkeypatch):
    machine = kept.parent.name.removeprefix("generic-")
    other = {"x86_64": "aarch64", "aarch64": "x86_64"}[machine]
    targets = set()
    for node in json.loads((kept / "spack.lock").read_text())["concrete_specs"].values():
        target = node["arch"]["target"]
        targets.add(target if isinstance(target, str) else target["name"])
    assert targets == {"x86_64": {"x86_64", "x86_64_v3"}, "aarch64": {"aarch64"}}[machine]
    monkeypatch.setattr(platform, "machine", lambda: other)
    said = lock.elsewhere(kept / "spack.lock")
    assert f" is for {machine}" in said
    assert said.endswith(f", and this machine is {other}")


@pytest.mark.slow
def test_a_changed_fragment_makes_it_stale_and_build_says_so(spack_envs, stand_in, folder):
    path = folder / "mpi" / "mpich.yaml"
    path.write_text(path.read_text().replace("~fortran", "+fortran"))
    ran = spack_envs("build", "mpich-gcc", "--site", "generic-x86_64", "--locked")
    assert ran.returncode == 1
    assert (
        "locks/generic-x86_64/mpich-gcc/spack.lock is not used: mpi/mpich.yaml has changed since"
        " it was made."
    ) in ran.stdout
    assert stand_in() == []


@pytest.mark.slow
def test_other_packages_of_spack_make_it_stale_and_build_says_so(spack_envs, stand_in):
    ran = spack_envs(
        *("build", "mpich-gcc", "--site", "generic-x86_64", "--locked", "--any-release"),
        STAND_IN_PACKAGES="0" * 40,
    )
    assert ran.returncode == 1
    assert "is not used: Spack's package repository was d4f7c711a6a4" in ran.stdout
