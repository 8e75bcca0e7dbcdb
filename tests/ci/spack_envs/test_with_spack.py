"""With Spack: the default environments concretize, are built, and the checks run on them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ci.spack_envs import lock
from netproof import session, spack
from netproof.spack_files import load

ROOT = Path(__file__).resolve().parents[3]
BUILT = ("mpich-gcc", "openmpi-clang")
DEFAULT = [combination.name for combination in spack.table(ROOT / "spack-envs").build]

pytestmark = pytest.mark.skipif(
    shutil.which("spack") is None,
    reason="there is no spack on PATH: docs/spack.md says how to get one",
)


def copied(folder: Path) -> Path:
    """A copy of spack-envs/ with nothing built, so that this machine's own are left alone."""
    names = (".netproof", ".spack-env", "view", "._view", "spack.lock", "chosen", "chosen.yaml")
    shutil.copytree(
        ROOT / "spack-envs", folder, symlinks=True, ignore=shutil.ignore_patterns(*names)
    )
    return folder


@pytest.fixture
def envs(tmp_path: Path) -> Path:
    """A copy for one test: Spack writes into the spack.yaml that it concretizes by itself."""
    return copied(tmp_path / "spack-envs")


def spack_envs(envs: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "ci" / "spack-envs", *arguments],
        env={**os.environ, "NETPROOF_SPACK_ENVS": str(envs)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", DEFAULT)
def test_each_default_environment_concretizes_as_its_files_say(envs, name):
    combination = spack.table(envs).named(name)
    own = spack.environment_folder(combination, envs)
    ran = subprocess.run(
        ["spack", "-e", own, "concretize", "--force"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    roots = lock.roots(own / "spack.lock")
    assert set(roots) == {
        spack.mpi(combination, "", envs).package, "netpipe", "intel-mpi-benchmarks",
    }  # fmt: skip
    fragment = load(envs / "compiler" / f"{combination.compiler}.yaml", "compiler")
    assert [root["compiler"].split("@")[0] for root in roots.values()] == [
        *fragment["packages"]["c"]["require"]
    ] * 3


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with two environments built, for the site whose externals ci/setup installs."""
    envs = copied(tmp_path_factory.mktemp("spack") / "spack-envs")
    ran = spack_envs(envs, "build", *BUILT, "--site", "debian12")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return envs


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
    checks = ["-c", str(ROOT / "checks"), "-x", "Smoothness"]
    ran = run(tmp_path, *command, *checks, "-r", NETPROOF_SPACK_ENVS=str(built))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    report = session.load(tmp_path / "run-0.json")
    results = [result for result in report.results if result.case is not None]
    assert {result.case.benchmark for result in results} == {"imb", "netpipe"}
    for result in results:
        assert (result.case.environment, result.result) == (name, "pass")
        packages = result.measured["environment_extras"]["built"]["packages"]
        assert all(
            set(package) >= {"spec", "compiler", "hash", "variants"}
            for package in packages.values()
        )
