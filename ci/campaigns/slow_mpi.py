"""Compile the library that slows down an MPI library, for a campaign."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ci.campaigns.errors import CannotRunError

SOURCE = Path(__file__).with_name("slow_mpi.c")


def compiled(folder: Path) -> Path:
    """Compile the library into ``folder``. Raises CannotRunError if that fails."""
    library = folder / "libslow_mpi.so"
    command = ["cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC"]
    try:
        ran = subprocess.run(
            [*command, "-o", library, SOURCE], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise CannotRunError(f"cc: {error.strerror}; apt-get install gcc libc6-dev") from error
    if ran.returncode:
        raise CannotRunError(f"{SOURCE} cannot be compiled: {ran.stderr.strip()}")
    return library


def slower(
    library: Path | str, rules: str, program: str = "", unless: tuple[str, str] | None = None
) -> dict[str, str]:
    """Return the variables by which ``library`` slows down calls, as slow_mpi.c describes them.

    ``program``: only in this one; ``unless``: a variable and the value that turns it off.
    """
    return {
        "LD_PRELOAD": str(library),
        "SLOW_MPI": rules,
        **({"SLOW_MPI_PROGRAM": program} if program else {}),
        **({"SLOW_MPI_UNLESS": "=".join(unless)} if unless else {}),
    }
