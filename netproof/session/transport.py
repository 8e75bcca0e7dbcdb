"""Transport of a job's MPI library by its own report: recorded once per job, never judged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

STEP = "transport"
"""Stem of the files of the step in which it is asked."""

LIMIT_S = 60
"""Seconds after which that step is ended; it takes about one."""

MOST_LINES = 40
MOST_LETTERS = 200
MOST_TOLD = 5

ASK = {
    "OMPI_MCA_hook_comm_method_display": "mpi_init",
    # Open MPI 4 has not that in every build: it says which BTL it uses to whom.
    "OMPI_MCA_hook_comm_method_enable_mpi_init": "1",
    "OMPI_MCA_btl_base_verbose": "1",
    "UCX_LOG_LEVEL": "info",
    "MPIR_CVAR_DEBUG_SUMMARY": "1",
    "I_MPI_DEBUG": "4",
}
"""How MPI libraries are asked, each by its own variables; those of others mean nothing to them."""

_BENCHMARKS_OWN = re.compile(
    r"\s*|\s*#.*|[\s\d.]+|\s*[0-9]+: +[0-9]+ bytes.*|[0-9]+: \S+|Now starting the main loop"
    r"|Using no perturbations|Sending output to .*|srun: .*"
)
"""Lines that are IMB's, NetPIPE's and srun's."""

_TELLING = re.compile(r"libfabric provider: |o[nf]f?-host: |: Using \S+ btl |_cfg#[0-9]|netmod")
"""Lines of Intel MPI and MPICH, of Open MPI, and of UCX."""


def step(program: Sequence[str], srun: Sequence[str], nodes: int) -> tuple[str, ...]:
    """Return the arguments of a run of ``program``'s two ranks on one or two nodes, at a job's end.

    The library says there what it uses.
    """
    variables = [f"{name}={value}" for name, value in ASK.items()]
    placed = [f"--nodes={nodes}", "--ntasks=2", f"--ntasks-per-node={2 // nodes}"]
    return ("env", *variables, *srun, *placed, "--kill-on-bad-exit=1", *program)


@dataclass(frozen=True)
class ReportedTransport:
    """Lines of a job's MPI library on its transport; ``absent``: why there are none."""

    said: tuple[str, ...]
    absent: str


def of_job(folder: Path) -> ReportedTransport:
    """Return what the library said, by the files of a job's folder."""
    lines: list[str] = []
    try:
        for kind in ("out", "err"):
            text = (folder / f"{STEP}.{kind}").read_text(errors="replace")
            found = [line.rstrip() for line in text.splitlines()]
            lines += [line for line in found if not _BENCHMARKS_OWN.fullmatch(line)]
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}: the job ended before it was asked"
        return ReportedTransport((), reason)
    said = [_plain(line) for line in dict.fromkeys(lines)]
    if len(said) > MOST_LINES:
        # What names a transport first, whatever else was said before.
        said.sort(key=lambda line: _TELLING.search(line) is None)
        said = [*said[:MOST_LINES], f"… and {len(said) - MOST_LINES} more lines"]
    return ReportedTransport(tuple(said), "" if said else "the library said nothing of it")


def telling(said: Sequence[str]) -> tuple[str, ...]:
    """The lines that name a transport; where none of them does, the first few."""
    return tuple(line for line in said if _TELLING.search(line)) or tuple(said[:MOST_TOLD])


def _plain(line: str) -> str:
    """One printable line."""
    return "".join(one if one.isprintable() else " " for one in line)[:MOST_LETTERS]
