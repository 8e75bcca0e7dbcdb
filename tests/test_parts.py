"""Quick, unit and system tests: each test is in a part, and in the one that its folder says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FEW = (
    "tests/system/test_nightly.py",
    "tests/ci/test_wheel.py",
    "tests/netproof/store/test_store.py",
)


def collected(*arguments: str) -> set[str]:
    """Names of the tests that pytest would run of a few files, one for each kind."""
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *arguments, *FEW],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {line for line in ran.stdout.splitlines() if "::" in line}


@pytest.mark.slow
def test_each_test_is_in_the_part_that_its_folder_and_its_mark_say():
    unit, system, quick = (collected("--part", part) for part in ("unit", "system", "quick"))
    every = collected("--part", "system", "--all")
    assert system < every
    assert {name.partition("::")[0] for name in system} == {FEW[0]}
    assert {name.partition("::")[0] for name in unit} == set(FEW[1:])
    assert {name.partition("::")[0] for name in quick} == {FEW[2]}
    assert quick < unit
    assert unit | every == collected()


def test_tests_that_take_the_testbed_stand_in_their_folder():
    mark = "mark." + "testbed"
    marked = {path for path in (ROOT / "tests").rglob("*.py") if mark in path.read_text()}
    assert marked
    assert {path.parent for path in marked} == {ROOT / "tests" / "system"}
