"""A lock is used where it holds, and refused in words where it does not."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ci.spack_envs import lock
from netproof.site import spack

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "tests" / "data" / "spack"
ONE = "mpich-gcc"
NOW: dict[str, Any] = {"spack": "1.1.0", "recipes": "a", "site": "x", "files": {"common.yaml": "1"}}


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ({}, ""),
        ({"spack": "1.0.2"}, "Spack was 1.0.2 when it was made, and is 1.1.0 now"),
        ({"recipes": "b"}, "Spack's package repository was b when it was made, and is a now"),
        ({"site": ""}, "the site was none when it was made, and is x now"),
        ({"files": {"common.yaml": "2"}}, "common.yaml has changed since it was made"),
        ({"files": {}}, "common.yaml has changed since it was made"),
    ],
)
def test_what_makes_a_lock_stale_is_reported_in_words(then, said):
    assert lock.stale({**NOW, **then}, NOW) == said


def altered(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A real lock with something changed in each external."""
    content = json.loads((DATA / "mpich-gcc.lock").read_text().replace("/srv/cluster", str(ROOT)))
    for node in content["concrete_specs"].values():
        change(node)
    path.write_text(json.dumps(content))
    return path


def test_a_lock_for_other_processors_is_not_for_this_machine(tmp_path):
    def other(node: dict[str, Any]) -> None:
        node["arch"]["target"] = "ppc64le"

    said = lock.elsewhere(altered(tmp_path / "spack.lock", other))
    assert said.endswith(f"is for ppc64le, and this machine is {platform.machine()}")


def test_a_lock_with_a_compiler_of_another_version_is_not_for_this_machine(tmp_path):
    compiler = tmp_path / "gcc"
    compiler.write_text("#!/bin/sh\necho 11.4.0\n")
    compiler.chmod(0o755)

    def other(node: dict[str, Any]) -> None:
        if "external" in node:
            node["external"]["path"] = "/usr"
        if node["name"] == "gcc":
            node["external"]["extra_attributes"] = {"compilers": {"c": str(compiler)}}

    path = altered(tmp_path / "spack.lock", other)
    said = f"it names gcc@12.2.0, and {compiler} here is 11.4.0"
    assert lock.elsewhere(path) == said
    compiler.write_text("#!/bin/sh\necho 12.2.0\n")
    assert lock.elsewhere(path) == ""
    compiler.unlink()
    assert lock.elsewhere(path) == f"its gcc@12.2.0 has {compiler}, which is not here"


def test_a_lock_whose_external_is_elsewhere_is_not_for_this_machine(tmp_path):
    def other(node: dict[str, Any]) -> None:
        if "external" in node:
            node["external"]["path"] = "/no/such"

    assert "is in /no/such, which is not here" in lock.elsewhere(
        altered(tmp_path / "spack.lock", other)
    )


@pytest.fixture
def runnable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorded locks' machine is taken for this one."""
    if platform.machine() != "x86_64" or shutil.which("gcc") is None:
        pytest.skip("the recorded locks are of x86_64 with GCC")


@pytest.mark.slow
@pytest.mark.usefixtures("runnable")
def test_locked_builds_by_the_lock_and_concretizes_nothing(spack_envs, stand_in, folder, tmp_path):
    locks = tmp_path / "locks"
    ran = spack_envs("concretize", ONE, "--site", "debian12", "--locks", str(locks))
    assert ran.returncode == 0, ran.stderr
    assert f"{ONE}: concretized" in ran.stdout
    made = altered(locks / ONE / "spack.lock", lambda node: _at_home(node, tmp_path))
    _note(locks / ONE, made)
    spack_envs("clean", ONE)
    ran = spack_envs("build", ONE, "--locked", "--locks", str(locks))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert stand_in() == [f"{ONE} concretize", f"{ONE} install"]
    own = spack.builds(folder) / ONE / "spack.lock"
    assert own.read_bytes() == made.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("flags", [[], ["--locks", "elsewhere"]])
def test_locked_without_a_lock_is_refused(spack_envs, stand_in, folder, flags):
    ran = spack_envs("build", ONE, "--site", "debian12", "--locked", *flags)
    assert ran.returncode == 1
    place = flags[1] if flags else f"{folder}/locks/debian12"
    assert f"spack.lock is not used: there is no {place}/{ONE}/spack.lock." in ran.stdout
    assert f"'ci/spack-envs concretize {ONE} --locks {place}' makes a new one" in ran.stdout
    assert stand_in() == []


@pytest.mark.slow
def test_locked_with_a_stale_lock_is_refused_in_words(spack_envs, stand_in, folder, tmp_path):
    locks = tmp_path / "locks"
    spack_envs("concretize", ONE, "--site", "debian12", "--locks", str(locks))
    path = folder / "mpi" / "mpich.yaml"
    path.write_text(path.read_text().replace("@4.3.2", "@4.3.1"))
    ran = spack_envs("build", ONE, "--locked", "--locks", str(locks))
    assert ran.returncode == 1
    assert "is not used: mpi/mpich.yaml has changed since it was made." in ran.stdout
    (locks / ONE / "spack.lock").write_text("{}")
    ran = spack_envs("build", ONE, "--locked", "--locks", str(locks))
    assert "it is not the one that concretized.json describes" in ran.stdout


@pytest.mark.slow
def test_slurm_and_pmix_are_the_clusters_unless_allowed(
    spack_envs, stand_in, tmp_path, monkeypatch
):
    data = tmp_path / "data"
    shutil.copytree(DATA, data)
    content = json.loads((data / "openmpi-clang.lock").read_text())
    for name, version in (("slurm", "25-05-1-1"), ("pmix", "5.0.10"), ("hwloc", "2.13.0")):
        content["concrete_specs"][name] = {"name": name, "version": version}
    (data / "openmpi-clang.lock").write_text(json.dumps(content))
    monkeypatch.setenv("STAND_IN_DATA", str(data))
    ran = spack_envs("build", "openmpi-gcc")
    assert ran.returncode == 1
    assert (
        "Spack would build pmix@5.0.10 and slurm@25-05-1-1, which have to be those that the"
        " cluster runs: 'spack external find slurm pmix' shows where they are"
    ) in ran.stdout
    assert stand_in() == ["openmpi-gcc concretize"]
    assert spack_envs("build", "openmpi-gcc", "--build-slurm").returncode == 0
    assert stand_in() == ["openmpi-gcc concretize", "openmpi-gcc install"]


@pytest.mark.slow
def test_a_build_writes_nothing_into_the_checkout(spack_envs, stand_in, folder):
    def content() -> dict[str, bytes]:
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }

    before = content()
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o555 if path.is_dir() else 0o444)
    ran = spack_envs("build", "--site", "debian12")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert content() == before
    place = spack_envs("where", ONE).stdout.strip()
    assert place == str(spack.builds(folder) / ONE)
    text = (Path(place) / "spack.yaml").read_text()
    assert "- files/mpi/mpich.yaml\n" in text
    assert "../" not in text


@pytest.mark.slow
def test_where_says_what_to_do_first(spack_envs):
    ran = spack_envs("where", ONE)
    assert ran.returncode == 2
    assert f"run ci/spack-envs concretize {ONE}" in ran.stderr


def test_two_checkouts_do_not_meet(tmp_path, monkeypatch):
    monkeypatch.delenv(spack.BUILDS, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    places = {spack.builds(tmp_path / name / "spack-envs") for name in ("a", "b")}
    assert len(places) == 2
    assert all(place.parent == tmp_path / "netproof" for place in places)


def _at_home(node: dict[str, Any], place: Path) -> None:
    """Moves an external to this machine, whose gcc may be of any version."""
    if "external" not in node:
        return
    node["external"]["path"] = "/usr"
    if node["name"] in ("gcc", "llvm"):
        compiler = place / node["name"]
        compiler.write_text(f"#!/bin/sh\necho {node['version']}\n")
        compiler.chmod(0o755)
        node["external"]["extra_attributes"] = {"compilers": {"c": str(compiler)}}


def _note(kept: Path, made: Path) -> None:
    note = kept / "concretized.json"
    content = json.loads(note.read_text())
    content["lock"] = hashlib.sha256(made.read_bytes()).hexdigest()
    note.write_text(json.dumps(content))
