"""Which packages `ci/setup` has apt install."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def setup(tmp_path):
    """Runs `ci/setup` where only packages may be missing; what it installs."""
    (tmp_path / "ci").mkdir()
    shutil.copy(ROOT / "ci" / "setup", tmp_path / "ci")
    (tmp_path / "ci" / "packages.txt").write_text("libpmi2-0\nmunge\n")
    for name in ("setup.cfg", "ci/requirements.lock"):
        (tmp_path / name).touch()
    found = tmp_path / "bin"
    python, stamp = tmp_path / ".venv/bin/python", tmp_path / ".venv/installed"
    for folder in (found, python.parent):
        folder.mkdir(parents=True)
    stamp.touch()
    for line in (ROOT / "ci" / "setup").read_text().splitlines():
        if line.strip().startswith("wheel "):
            _, prefix, requirement = line.split()
            for folder in ("bin", "lib"):
                (tmp_path / ".opt" / prefix / folder).mkdir(parents=True)
            (tmp_path / ".opt" / prefix / requirement).touch()

    def run(listed: str) -> str:
        for path, text in {
            python: "exit 0",
            found / "id": "echo 0",
            found / "apt-get": f'echo "$*" >>{tmp_path}/apt',
            found / "dpkg-query": f"cat <<'END'\n{listed}\nEND",
        }.items():
            path.write_text(f"#!/bin/bash\n{text}\n")
            path.chmod(0o755)
        subprocess.run(
            [tmp_path / "ci" / "setup"],
            env={**os.environ, "PATH": f"{found}:{os.environ['PATH']}"},
            check=True,
        )
        said = tmp_path / "apt"
        return said.read_text() if said.exists() else ""

    return run


def test_a_package_of_another_name_that_provides_the_listed_one_is_there(setup):
    """Debian 13 has libpmi2-0t64 for libpmi2-0."""
    there = "installed libpmi2-0t64, libpmi2-0 (= 24.11.5-4+deb13u1)\ninstalled munge, "
    assert setup(there) == ""


def test_a_package_that_was_removed_is_installed(setup):
    said = setup("config-files libpmi2-0, \ninstalled munge-doc, \ninstalled munge, ")
    assert said.splitlines()[-1].endswith("--no-install-recommends libpmi2-0")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--tests"], ["--test", "--unit"], ["--unit", ""]]
)
def test_what_it_does_not_know_installs_nothing(arguments):
    ran = subprocess.run([ROOT / "ci" / "setup", *arguments], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "usage: ci/setup [--test | --unit]\n"
