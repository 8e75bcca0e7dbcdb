"""With Spack: NetPIPE's package passes its audit, and an MPI without verbs is not even begun."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        shutil.which("spack") is None,
        reason="there is no spack on PATH: docs/spack.md says how to get one",
    ),
]


def test_the_package_passes_spacks_audit(tmp_path):
    scope = tmp_path / "scope"
    scope.mkdir()
    repo = ROOT / "spack-envs" / "repo" / "spack_repo" / "netproof"
    (scope / "repos.yaml").write_text(f"repos:\n  netproof: {repo}\n")
    for what in ("packages", "externals"):
        ran = subprocess.run(
            ["spack", "-C", str(scope), "audit", what, "netpipe"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "passed" in ran.stdout


def test_an_mpich_that_would_lack_verbs_is_not_begun(tmp_path):
    folder = tmp_path / "spack-envs"
    shutil.copytree(ROOT / "spack-envs", folder, symlinks=True)
    site = folder / "site" / "plain" / "packages.yaml"
    site.parent.mkdir()
    site.write_text('packages:\n  "libfabric:":\n    require: ["fabrics:=tcp,shm"]\n')
    ran = subprocess.run(
        [ROOT / "ci" / "spack-envs", "build", "mpich-gcc", "--site", "plain"],
        env={
            **os.environ,
            "NETPROOF_SPACK_ENVS": str(folder),
            "NETPROOF_SPACK_BUILDS": str(tmp_path / "builds"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "mpich-gcc: verbs is missing, which is required: InfiniBand and RoCE" in ran.stdout
    (log,) = tmp_path.rglob("build.log")
    assert " concretize" in log.read_text()
    assert " install " not in log.read_text()
