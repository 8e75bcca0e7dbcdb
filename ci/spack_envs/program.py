"""Find the spack on PATH, check its version, and run it with its output in a log."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from ci.spack_envs.release import Found, at
from netproof.errors import NetproofError

LEAST_VERSION = (1, 1)
HOW_TO_GET_IT = (
    "'ci/spack-envs bootstrap DIR' clones the Spack that this was made with where there is a"
    " network; source its share/spack/setup-env.sh, and run this again"
)


@dataclass(frozen=True)
class Spack:
    """A spack program, its version, and the commits of it and its package repository."""

    path: str
    version: str
    release: dict[str, Found]
    _running: set[subprocess.Popen[bytes]] = field(default_factory=set, compare=False)

    def run(self, log: Path, *arguments: str) -> int:
        """Run a spack command with its output appended to ``log``; return its exit status."""
        with log.open("a", encoding="utf-8") as output:
            print(f"$ spack {' '.join(arguments)}", file=output, flush=True)
            process = subprocess.Popen(
                [self.path, "--color=never", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            self._running.add(process)
            try:
                return process.wait()
            finally:
                self._running.discard(process)

    @property
    def made_by(self) -> dict[str, str]:
        """Makers of a lock that it writes: ``spack``, and ``recipes``, its packages."""
        return {
            "spack": f"{self.version} ({self.release['spack'].commit})",
            "recipes": self.release["packages"].commit,
        }

    def end(self) -> None:
        """Interrupt running commands, so that Spack ends its builds and releases its locks."""
        for process in list(self._running):
            process.send_signal(signal.SIGINT)


def find(folder: Path | None = None) -> Spack:
    """Find the spack in ``folder``, by default on PATH. Raises NetproofError if none is usable."""
    path = shutil.which("spack", path=folder)
    if path is None:
        raise NetproofError(f"there is no spack on PATH: {HOW_TO_GET_IT}")
    shown = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"(\d+)\.(\d+)\S*", shown.stdout)
    if shown.returncode or not found:
        said = (shown.stderr or shown.stdout).strip().splitlines() or ["nothing"]
        raise NetproofError(f"{path} --version says {said[-1]!r}, no version: {HOW_TO_GET_IT}")
    if (int(found[1]), int(found[2])) < LEAST_VERSION:
        raise NetproofError(f"{path} is Spack {found[0]}, which is too old: {HOW_TO_GET_IT}")
    release = {
        half: at(Path(_answer(path, "location", *options)))
        for half, options in (("spack", ["--spack-root"]), ("packages", ["--repo", "builtin"]))
    }
    return Spack(path, found[0], release)


def _answer(path: str, *arguments: str) -> str:
    ran = subprocess.run([path, *arguments], capture_output=True, text=True, check=False)
    if ran.returncode or not ran.stdout.strip():
        said = (ran.stderr or "nothing").strip().splitlines()[-1]
        raise NetproofError(f"{path} {' '.join(arguments)} says {said!r}: {HOW_TO_GET_IT}")
    return ran.stdout.strip()
