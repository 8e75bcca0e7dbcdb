"""With Spack: the default environments concretize, are built, and the checks run on them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci.spack_envs import lock
from netproof.session import session
from netproof.site import spack

ROOT = Path(__file__).resolve().parents[2]
BUILT = ("mpich-gcc", "openmpi-clang")
SITES = ("connectx", "slingshot", "ethernet")
TABLE = spack.table(ROOT / "spack-envs")
DEFAULT = [combination.name for combination in TABLE.build]
# What Spack calls them.
COMPILERS = {
    "gcc": "gcc",
    "clang": "llvm",
    "oneapi": "intel-oneapi-compilers",
    "nvhpc": "nvhpc",
    "aocc": "aocc",
}
CELLS = [
    spack.Combination(mpi, compiler)
    for mpi in ("openmpi", "mpich", "mvapich", "intelmpi")
    for compiler in COMPILERS
]

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        shutil.which("spack") is None,
        reason="there is no spack on PATH: docs/spack.md says how to get one",
    ),
]


def copied(folder: Path) -> Path:
    """A copy of spack-envs/ with nothing built, so that this machine's own are left alone."""
    shutil.copytree(ROOT / "spack-envs", folder, symlinks=True)
    return folder


@pytest.fixture
def envs(tmp_path: Path) -> Path:
    """A copy for one test: Spack writes into the spack.yaml that it concretizes by itself."""
    return copied(tmp_path / "spack-envs")


def spack_envs(envs: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "ci" / "spack-envs", *arguments],
        env={
            **os.environ,
            "NETPROOF_SPACK_ENVS": str(envs),
            "NETPROOF_SPACK_BUILDS": str(envs.parent / "builds"),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def without_its_compilers(site: Path, place: Path) -> None:
    """Puts stand-ins for a site's compilers: of one that does not run, Spack knows no libc.

    Each is this machine's GCC, so that what is tried is the concretizing and no compiler.
    """
    lines = site.read_text().splitlines()
    for number, line in enumerate(lines):
        found = re.fullmatch(r"(\s+)(c|cxx|fortran): (/\S+)", line)
        if found:
            program = place / found[3].lstrip("/")
            program.parent.mkdir(parents=True, exist_ok=True)
            real = "g++" if found[2] == "cxx" else "gcc"
            program.write_text(f'#!/bin/sh\nexec {real} "$@"\n')
            program.chmod(0o755)
            lines[number] = f"{found[1]}{found[2]}: {program}"
    site.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("what", ["packages", "externals"])
def test_the_package_of_netpipe_passes_spacks_audit(tmp_path, what):
    repo = ROOT / "spack-envs" / "repo" / "spack_repo" / "netproof"
    (tmp_path / "repos.yaml").write_text(f"repos:\n  netproof: {repo}\n")
    command = ["spack", "-C", str(tmp_path), "audit", what, "netpipe"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "passed" in ran.stdout


@pytest.mark.parametrize("name", DEFAULT)
@pytest.mark.parametrize("site", SITES)
def test_each_default_environment_concretizes_on_each_example_of_a_site(
    envs, tmp_path, monkeypatch, name, site
):
    monkeypatch.setenv(spack.BUILDS, str(envs.parent / "builds"))
    combination = spack.table(envs).named(name)
    path = envs / "site" / site / "packages.yaml"
    if combination.compiler == "clang" and "llvm:" not in path.read_text():
        pytest.skip(f"{site} has no Clang")
    without_its_compilers(path, tmp_path / "compilers")
    ran = spack_envs(envs, "concretize", name, "--site", site)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    locked = spack.build_folder(combination, envs) / "spack.lock"
    insist_on_roots(locked, combination, envs)
    assert lock.built_among(locked, ("slurm", "pmix", "rdma-core")) == []


@pytest.mark.parametrize(
    "cell", [cell for cell in CELLS if cell.name not in DEFAULT], ids=lambda cell: cell.name
)
def test_each_other_cell_concretizes_with_a_sites_compiler_or_has_its_reason(
    envs, tmp_path, monkeypatch, cell
):
    if cell in TABLE.excluded:
        assert TABLE.excluded[cell]
        return
    monkeypatch.setenv(spack.BUILDS, str(envs.parent / "builds"))
    without_its_compilers(envs / "site" / "connectx" / "packages.yaml", tmp_path / "compilers")
    assert spack_envs(envs, "add", cell.mpi, cell.compiler).returncode == 0
    ran = spack_envs(envs, "concretize", cell.name, "--site", "connectx")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    insist_on_roots(spack.build_folder(cell, envs) / "spack.lock", cell, envs)


def insist_on_roots(locked: Path, combination: spack.Combination, envs: Path) -> None:
    """The lock has the MPI library and the benchmarks, which are of the combination's compiler."""
    library = spack.mpi(combination, "", envs).package
    roots = lock.roots(locked)
    assert set(roots) == {
        *(library, "netpipe"),
        *("intel-mpi-benchmarks", "osu-micro-benchmarks"),
    }
    # Of Intel MPI too, a binary: all of Intel's libraries have a compiler in Spack's recipes.
    compilers = {root["compiler"].split("@")[0] for root in roots.values()}
    assert compilers == {COMPILERS[combination.compiler]}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy with two environments built, for the site whose externals ci/setup installs."""
    envs = copied(tmp_path_factory.mktemp("spack") / "spack-envs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(spack.BUILDS, str(envs.parent / "builds"))
        ran = spack_envs(envs, "build", *BUILT, "--site", "debian12")
        assert ran.returncode == 0, ran.stdout + ran.stderr
        yield envs


def test_two_environments_are_built_and_pass_their_smoke_tests(built):
    for name in BUILT:
        assert spack.state(spack.table(built).named(name), built).word == "built"
    ran = spack_envs(built, "check", *BUILT)
    assert ran.returncode == 0, ran.stdout
    for name in BUILT:
        assert f"{name}: smoke tests passed" in ran.stdout


@pytest.mark.testbed
@pytest.mark.usefixtures("testbed")
@pytest.mark.parametrize("name", BUILT)
def test_the_checks_measure_on_what_was_built(built, run, tmp_path, name):
    command = ["reframe", "--system", "testbed:gige", "-S", "launches=1", "-p", name]
    checks = ["-c", str(ROOT / "checks")]
    # On a busy machine criteria may fail.
    run(tmp_path, *command, *checks, "-r", NETPROOF_SPACK_ENVS=str(built))
    report = session.load(tmp_path / "run-0.json")
    results = [result for result in report.results if result.case is not None]
    assert {result.case.benchmark for result in results} == {"imb", "netpipe", "osu"}
    for result in results:
        assert (result.case.environment, result.result) == (name, "pass")
        packages = result.extras["environment_extras"]["built"]["packages"]
        assert all(
            set(package) >= {"spec", "compiler", "hash", "variants"}
            for package in packages.values()
        )
