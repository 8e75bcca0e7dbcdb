"""A copy of spack-envs/ to try things on, and a stand-in for the spack program."""

from __future__ import annotations

import contextlib
import io
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ci.spack_envs import command
from netproof.site import spack

ROOT = Path(__file__).resolve().parents[3]

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """spack-envs/ as it is in the repository, with nothing built."""
    monkeypatch.setenv("NETPROOF_SPACK_BUILDS", str(tmp_path / "builds"))
    copied = tmp_path / "spack-envs"
    shutil.copytree(ROOT / "spack-envs", copied, symlinks=True)
    return copied


@pytest.fixture
def spack_envs(folder: Path, tmp_path: Path) -> Command:
    """``spack_envs(*arguments, **settings)``: ci/spack-envs on the copy, without any spack."""

    def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        said, errors = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(spack, "FOLDER", folder)
            patch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
            for name, value in settings.items():
                patch.setenv(name, value)
            before = {
                number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)
            }
            try:
                with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
                    status = command.main(list(arguments))
            except SystemExit as ended:
                status = ended.code
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)
        return subprocess.CompletedProcess(arguments, status, said.getvalue(), errors.getvalue())

    return run


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """A stand-in for spack on PATH; called, it tells which verbs it was given."""
    shutil.copytree(Path(__file__).with_name("stand_ins"), tmp_path / "bin")
    calls = tmp_path / "calls"
    calls.touch()
    monkeypatch.setenv("STAND_IN_CALLS", str(calls))
    monkeypatch.setenv("STAND_IN_PROJECT", str(ROOT))
    monkeypatch.setenv("STAND_IN_DATA", str(ROOT / "tests" / "data" / "spack"))
    return lambda: calls.read_text().splitlines()
