"""A lock is used where it holds, and refused in words where it does not."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from pathlib import Path
from typing import Any

import pytest
from made_programs import program

from ci.spack_envs import build, consistency, fabrics, lock, release
from netproof.site import spack
from netproof.site.spack import load

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


def altered(path: Path, **externals: Any) -> Path:
    """A real lock with other externals: a place, and a compiler in place of gcc and llvm."""
    content = json.loads((DATA / "mpich-gcc.lock").read_text().replace("/srv/cluster", str(ROOT)))
    for node in content["concrete_specs"].values():
        node["arch"]["target"] = externals.get("target", node["arch"]["target"])
        if "external" in node:
            node["external"]["path"] = externals.get("place", "/usr")
            if node["name"] in ("gcc", "llvm") and "compiler" in externals:
                here = externals["compiler"]
                node["external"]["extra_attributes"] = {"compilers": {"c": str(here)}}
    path.write_text(json.dumps(content))
    return path


def test_a_lock_for_another_machine_is_refused_in_words(tmp_path):
    path = tmp_path / "spack.lock"
    said = lock.elsewhere(altered(path, target="ppc64le"))
    assert said.endswith(f"is for ppc64le, and this machine is {platform.machine()}")
    assert "is in /no/such, which is not here" in lock.elsewhere(altered(path, place="/no/such"))
    gcc = program(tmp_path / "gcc", "echo 11.4.0")
    said = f"it names gcc@12.2.0, and {gcc} here is 11.4.0"
    assert lock.elsewhere(altered(path, compiler=gcc)) == said
    program(gcc, "echo 12.2.0")
    assert lock.elsewhere(path) == ""
    gcc.unlink()
    assert lock.elsewhere(path) == f"its gcc@12.2.0 has {gcc}, which is not here"


@pytest.mark.slow
def test_locked_builds_by_the_lock_and_concretizes_nothing(spack_envs, stand_in, folder, tmp_path):
    if platform.machine() != "x86_64":
        pytest.skip("the recorded locks are of x86_64")
    locks = tmp_path / "locks"
    ran = spack_envs("concretize", ONE, "--site", "debian12", "--locks", str(locks))
    assert ran.returncode == 0, ran.stderr
    assert f"{ONE}: concretized" in ran.stdout
    made = altered(locks / ONE / "spack.lock", compiler=program(tmp_path / "gcc", "echo 12.2.0"))
    note = locks / ONE / "concretized.json"
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    note.write_text(json.dumps({**json.loads(note.read_text()), "lock": digest}))
    spack_envs("clean", ONE)
    ran = spack_envs("build", ONE, "--locked", "--locks", str(locks))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert stand_in() == [f"{ONE} concretize", f"{ONE} install"]
    own = spack.builds(folder) / ONE / "spack.lock"
    assert own.read_bytes() == made.read_bytes()


@pytest.mark.slow
def test_locked_without_a_lock_of_the_files_is_refused_in_words(
    spack_envs, stand_in, folder, tmp_path
):
    locks = ["--locked", "--locks", str(tmp_path / "locks")]
    for flags, place in ((locks[:1], folder / "locks/debian12"), (locks, tmp_path / "locks")):
        ran = spack_envs("build", ONE, "--site", "debian12", *flags)
        assert ran.returncode == 1
        assert f"spack.lock is not used: there is no {place}/{ONE}/spack.lock." in ran.stdout
        assert f"'ci/spack-envs concretize {ONE} --locks {place}' makes a new one" in ran.stdout
    spack_envs("concretize", ONE, *locks[1:])
    path = folder / "mpi" / "mpich.yaml"
    path.write_text(path.read_text().replace("@4.3.2", "@4.3.1"))
    said = spack_envs("build", ONE, *locks).stdout
    assert "is not used: mpi/mpich.yaml has changed since it was made." in said
    (tmp_path / "locks" / ONE / "spack.lock").write_text("{}")
    said = spack_envs("build", ONE, *locks).stdout
    assert "it is not the one that concretized.json describes" in said


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

    ran = spack_envs("where", ONE)
    assert ran.returncode == 2
    assert f"run ci/spack-envs concretize {ONE}" in ran.stderr
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


def test_two_checkouts_do_not_meet(tmp_path, monkeypatch):
    monkeypatch.delenv(spack.BUILDS, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    places = {spack.builds(tmp_path / name / "spack-envs") for name in ("a", "b")}
    assert len(places) == 2
    assert all(place.parent == tmp_path / "netproof" for place in places)


# The committed locks are of the files next to them, and have what the files require.

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
    assert consistency.compiler_faults(combination, folder) == []
    said = fabrics.in_lock(kept / "spack.lock", mpi.package)
    assert fabrics.faults(kept.name, mpi, said, insist=True) == []


@each_lock
def test_all_in_it_is_for_one_kind_of_processors_and_of_the_distribution(kept):
    machine = kept.parent.name.removeprefix("generic-")
    nodes = json.loads((kept / "spack.lock").read_text())["concrete_specs"].values()
    assert {node["external"]["path"] for node in nodes if "external" in node} == {"/usr"}
    targets = [node["arch"]["target"] for node in nodes]
    names = {target if isinstance(target, str) else target["name"] for target in targets}
    assert names == {"x86_64": {"x86_64", "x86_64_v3"}, "aarch64": {"aarch64"}}[machine]


# A lock is refused if another compiler builds the packages under test.


def test_what_is_below_the_mpi_library_may_be_of_another_compiler(folder):
    combination = spack.table(folder).named(ONE)
    path = spack.build_folder(combination, folder) / "spack.lock"
    path.parent.mkdir(parents=True)
    content = json.loads((DATA / "mpich-gcc-from-source.lock").read_text())
    nodes = content["concrete_specs"]
    nodes["other"] = {"name": "llvm", "version": "14.0.6"}
    (below,) = (node for node in nodes.values() if node["name"] == "libfabric")
    for dependency in below["dependencies"]:
        if "c" in dependency["parameters"]["virtuals"]:
            dependency["hash"] = "other"
    path.write_text(json.dumps(content))
    assert ("libfabric", "c", "llvm") in lock.built_by(path)
    assert consistency.compiler_faults(combination, folder) == []


@pytest.mark.slow
def test_a_lock_of_the_wrong_compiler_is_not_installed(spack_envs, stand_in):
    ran = spack_envs("build", "mpich-clang", STAND_IN_COMPILER="gcc")
    assert ran.returncode == 1
    assert "the c compiler of netpipe is gcc, and has to be llvm" in ran.stdout
    assert stand_in() == ["mpich-clang concretize"]
