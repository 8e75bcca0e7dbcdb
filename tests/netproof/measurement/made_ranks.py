"""Ranks of a step that are run without Slurm."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

SHELL = Path(__file__).resolve().parents[3] / "netproof" / "run" / "shell"


def rank(folder: Path, *command: str, **further: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder as a rank of node n1, which reads a line."""
    for script in SHELL.glob("*.sh"):
        shutil.copy(script, folder)
    slurm = {"SLURMD_NODENAME": "n1", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}
    return subprocess.run(
        ["bash", "./rank.sh", *command],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **slurm, **further},
        capture_output=True,
        text=True,
        input="read by the rank\n",
        check=False,
    )
