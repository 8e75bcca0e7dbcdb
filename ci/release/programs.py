"""Run the machine's own programs."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence

from ci.release.errors import CannotRunError


def output_of(command: Sequence[str]) -> str:
    """Return a command's output. Raises CannotRunError with its message if it fails."""
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise CannotRunError(f"'{shlex.join(command)}' failed: {' '.join(ran.stderr.split())}")
    return ran.stdout


def apt_get(*words: str) -> bool:
    """Run apt-get without questions; return whether it succeeded."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(["apt-get", "-qq", *words], env=environment).returncode == 0
