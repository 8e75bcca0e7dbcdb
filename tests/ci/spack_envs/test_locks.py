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

from ci.spack_envs import build, consistency, fabrics, lock, release
from netproof.site import spack
from netproof.site.spack import Combination, load

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


# A lock is refused if another compiler builds the packages under test.

SPACK_DATA = Path(__file__).resolve().parents[3] / "tests" / "data" / "spack"


def locked(folder: Path, combination: Combination, name: str) -> Path:
    """The recorded lock ``name`` as that of the combination."""
    own = spack.build_folder(combination, folder)
    own.mkdir(parents=True)
    return Path(shutil.copyfile(SPACK_DATA / f"{name}.lock", own / "spack.lock"))


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
    assert consistency.compiler_faults(combination, folder) == []


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
    assert consistency.compiler_faults(combination, folder) == []


@pytest.mark.slow
def test_a_lock_of_the_wrong_compiler_is_not_installed(spack_envs, stand_in):
    ran = spack_envs("build", "mpich-clang", STAND_IN_COMPILER="gcc")
    assert ran.returncode == 1
    assert "the c compiler of netpipe is gcc, and has to be llvm" in ran.stdout
    assert stand_in() == ["mpich-clang concretize"]
