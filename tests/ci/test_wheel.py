"""The wheel, built of the sdist, holds all that the commands need in an empty folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# A wheel is built, and installed into an environment of its own.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SESSION = ROOT / "tests" / "data" / "sessions" / "passed.json"
IMB = ROOT / "tests" / "data" / "imb" / "2021.11" / "all.txt"
SOURCES = ("netproof", "checks", "site-config", "reference-values")
FILES = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """Where the wheel is, without what it depends on: that is in the tests' own environment."""
    source = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copyfile(ROOT / name, source / name)
    wheels, place = source / "wheels", tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    sdist = "from setuptools import build_meta; build_meta.build_sdist('dist')"
    _done([sys.executable, "-c", sdist], cwd=source)
    (archive,) = (source / "dist").glob("netproof-*.tar.gz")
    _done([*pip, "wheel", "--no-deps", "--wheel-dir", str(wheels), str(archive)])
    (wheel,) = wheels.glob("netproof-*.whl")
    _done([*pip, "install", "--no-deps", "--target", str(place), str(wheel)])
    return place


def _done(command: list[str], **options: Path) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.fixture
def netproof(installed, tmp_path):
    """``netproof(*arguments, **settings)`` in an empty folder, of the wheel's files alone."""

    def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        program = (
            f"import sys; sys.path.insert(0, {str(installed)!r});"
            "import netproof; assert netproof.__file__.startswith(sys.path[0]), netproof.__file__;"
            "from netproof.commands.cli import main; main()"
        )
        clean = {name: v for name, v in os.environ.items() if name[:4] not in ("RFM_", "PYTH")}
        return subprocess.run(
            [sys.executable, "-P", "-c", program, *arguments],
            cwd=tmp_path,
            env={**clean, "PYTHONPATH": str(installed), **settings},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_help_parse_and_judge_need_nothing_else(netproof):
    for words in (("--help",), ("judge", "--parse", str(IMB)), ("measure", "study", "--list")):
        ran = netproof(*words)
        assert ran.returncode == 0, ran.stderr
    judged = netproof("judge", str(IMB))
    assert "37 of 38 curves passed" in judged.stdout, judged.stderr


def test_a_new_site_is_written_and_a_session_of_the_testbed_judged_and_reported(netproof, tmp_path):
    ran = netproof("site", "init", "mine", ".")
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "checks" / "netpipe.py").exists()
    settings = {
        "RFM_CONFIG_PATH": str(ROOT / "site-config"),
        "RFM_REFERENCE_PREFIX": str(ROOT / "reference-values"),
        # The testbed's site takes Spack environments too, which a wheel has not.
        "NETPROOF_SPACK_ENVS": str(ROOT / "spack-envs"),
    }
    verdict = netproof("verdict", str(SESSION), **settings)
    assert verdict.returncode in (0, 1), verdict.stderr
    assert "cases" in verdict.stdout
    report = netproof("report", str(SESSION), "--to", "pages", **settings)
    assert report.returncode == 0, report.stderr
    assert (tmp_path / "pages" / "index.html").exists()
    assert list((tmp_path / "pages" / "assets").glob("*.css"))


@pytest.mark.parametrize(
    "folder", ["run/shell", "present/html/assets", "present/html/templates", "present/schemas"]
)
def test_what_runs_in_a_job_makes_a_page_or_describes_an_answer_is_in_it(installed, folder):
    there = {path.name for path in (installed / "netproof" / folder).glob("*.*")}
    assert there
    assert there == {path.name for path in (ROOT / "netproof" / folder).glob("*.*")}
