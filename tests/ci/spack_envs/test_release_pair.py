"""Only the pair of releases in release.yaml is used, except with --any-release."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from made_programs import program

from ci.spack_envs import release
from ci.spack_envs.release import Release
from netproof.errors import NetproofError

# ci/spack-envs runs as a whole, several times a test.
pytestmark = pytest.mark.slow

ONE = "mpich-gcc"
OTHER = "0" * 40


def git(where: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    return subprocess.run(
        ["git", *identity, "-C", where, *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def upstream(tmp_path: Path, folder: Path) -> Path:
    """Repositories of Spack and of packages with a release, and release.yaml names it."""
    for half, kept in (("spack", "etc/spack/x"), ("packages", "repos/spack_repo/builtin/x")):
        clone = tmp_path / "upstream" / half
        (clone / kept).parent.mkdir(parents=True)
        (clone / kept).write_text("1\n")
        git(clone.parent, "init", "--quiet", half)
        git(clone, "add", ".")
        git(clone, "commit", "--quiet", "-m", "one")
        git(clone, "tag", "-a", "v1", "-m", "annotated, as some are")
    root = tmp_path / "upstream"
    named = {
        half: Release(str(root / half), "v1", git(root / half, "rev-parse", "HEAD"))
        for half in release.HALVES
    }
    path = folder / release.FILE
    path.write_text(release.text(named, path.read_text()))
    return root


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        (
            {"STAND_IN_SPACK": OTHER, "STAND_IN_TAG": "v0"},
            "Spack is v0 (000000000000), and release.yaml names v1.1.0 (2e907202bcc8)",
        ),
        (
            {"STAND_IN_PACKAGES": OTHER, "STAND_IN_TAG": "v0"},
            "Spack's package repository is v0 (000000000000), and release.yaml names"
            " v2026.06.0 (d4f7c711a6a4)",
        ),
        ({"STAND_IN_CHANGED": "1"}, "v1.1.0 (2e907202bcc8) with changed files"),
        # One that is no clone.
        ({}, "Spack is of no known commit, and release.yaml names v1.1.0"),
    ],
)
def test_another_release_is_refused_with_both_named(spack_envs, stand_in, tmp_path, settings, what):
    if not settings:
        (tmp_path / "bin" / "git").write_text("#!/bin/bash\nexit 128\n")
    ran = spack_envs("build", ONE, **settings)
    assert ran.returncode == 2
    assert what in ran.stderr
    assert "'ci/spack-envs bootstrap DIR' gets the named ones" in ran.stderr
    assert stand_in() == []


def test_what_another_release_built_is_built_again(spack_envs, stand_in):
    assert spack_envs("build", ONE, "--any-release", STAND_IN_PACKAGES=OTHER).returncode == 0
    ran = spack_envs("build", ONE)
    assert f"{ONE}: built," in ran.stdout
    assert stand_in() == [f"{ONE} concretize", f"{ONE} install"] * 2


def test_bootstrap_clones_the_pair_and_joins_it(spack_envs, upstream, tmp_path):
    place = tmp_path / "got"
    for _ in range(2):
        ran = spack_envs("bootstrap", str(place))
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout == f". {place}/spack/share/spack/setup-env.sh\n"
    for half in release.HALVES:
        assert release.at(place / half).name.startswith("v1 (")
        assert release.at(place / half).commit == git(upstream / half, "rev-parse", "HEAD")
    assert (place / "spack/etc/spack/site/repos.yaml").read_text() == (
        f"repos:\n  builtin: {place}/packages/repos/spack_repo/builtin\n"
    )


def test_bootstrap_refuses_a_tag_that_moved_and_says_what_failed(spack_envs, upstream, tmp_path):
    (upstream / "packages" / "more").write_text("2\n")
    git(upstream / "packages", "add", ".")
    git(upstream / "packages", "commit", "--quiet", "-m", "two")
    git(upstream / "packages", "tag", "-f", "v1")
    ran = spack_envs("bootstrap", str(tmp_path / "got"))
    assert ran.returncode == 2
    assert "packages: v1 is commit " in ran.stderr
    assert ", which release.yaml names" in ran.stderr
    (upstream / "spack").rename(upstream / "gone")
    ran = spack_envs("bootstrap", str(tmp_path / "other"))
    assert ran.returncode == 2
    assert "spack-envs: git fetch --quiet --depth=1 " in ran.stderr
    with pytest.raises(NetproofError, match="has no tag v2"):
        release.resolved(str(upstream / "packages"), "v2")
    (tmp_path / "file").write_text("")
    with pytest.raises(NetproofError, match="file is no folder that can be made"):
        release.bootstrap({}, tmp_path / "file")


def test_upgrade_shows_what_fails_and_leaves_the_pair(spack_envs, upstream, tmp_path, folder):
    found = program(
        upstream / "spack" / "bin" / "spack",
        "case $* in\n--version) echo 1.2.0 ;;\n"
        f'"location --spack-root") echo {tmp_path}/new/spack ;;\n'
        f"location*) echo {tmp_path}/new/packages ;;\n"
        "*) echo '==> Error: no such version of ucx'; exit 1 ;;\nesac",
    )
    git(upstream / "spack", "add", ".")
    git(upstream / "spack", "commit", "--quiet", "-m", "two")
    git(upstream / "spack", "tag", "v2")
    before = (folder / release.FILE).read_text()
    ran = spack_envs("upgrade", str(tmp_path / "new"), "v2", "v1", "--write")
    assert ran.returncode == 1, ran.stderr
    assert "mpich-gcc:\n    error: Error: no such version of ucx (log: " in ran.stdout
    assert (folder / release.FILE).read_text() == before
    found.write_text(found.read_text().replace("exit 1", "exit 0"))
    git(upstream / "spack", "commit", "--quiet", "-a", "-m", "three")
    git(upstream / "spack", "tag", "v3")
    ran = spack_envs("upgrade", str(tmp_path / "new"), "v3", "v1", "--write")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "concretizes; there is no " in ran.stdout
    assert release.pair(folder)["spack"].tag == "v3"
    assert release.pair(folder)["packages"].tag == "v1"
    assert (folder / release.FILE).read_text().startswith("# The pair of releases")
