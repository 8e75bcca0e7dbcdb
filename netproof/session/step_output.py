"""Standard error and output of a step: reports of its ranks, last words."""

from __future__ import annotations

import re
from pathlib import Path

from netproof.errors import NetproofError, ParseError
from netproof.measurement import disturbance
from netproof.measurement.disturbance import NodeLoad
from netproof.session.measured import RankUse

_RANK_LINE = re.compile(
    r"netproof rank (\d+) on (\S+): ([\d.]+) s wall, ([\d.]+) s user, ([\d.]+) s system"
)

_RECORD = re.compile(r"netproof (rank \d+ on|scheduled|load on|counters on|pace on) ")
"""Beginnings of what the job's own scripts say on a step's standard error."""

_DIED = re.compile(r"srun: error: (\S+): tasks? [\d,-]+: ")
"""srun on ranks that ended badly, and the node."""

_ENDING = "_step_signal: Terminating"
"""Message of srun when it begins to end the other ranks of a step."""

_AFTERMATH = re.compile(
    rf"{_ENDING}|\*\*\* STEP \S+ ON \S+ CANCELLED"
    r"|task \S+: Terminated|Force Terminated"
)
"""Messages of Slurm while it ends the other ranks of a step, which are not the cause."""


def reported(errors: Path, count: int) -> tuple[tuple[RankUse, ...], tuple[NodeLoad, ...]]:
    """Return the resources that the ranks of a step used, and the other load of their nodes.

    ``errors``: its standard error; ``count``: how many ranks it has. Raises NetproofError where
    not all of them reported their end, and OSError.
    """
    said = errors.read_text(errors="replace")
    ranks = rank_uses(errors, said)
    if len(ranks) != count:
        raise NetproofError(f"{errors}: {len(ranks)} of {count} ranks reported their end")
    return ranks, disturbance.loads(errors, said, cpu_by_node(said))


def last_words(errors: Path) -> str:
    """Return the end of a sentence on a step that went wrong."""
    said = said_at_end(errors)
    return f"; it said: {' | '.join(said)}" if said else ""


def died_first(errors: Path) -> tuple[str, ...]:
    """The nodes on which ranks ended badly before Slurm began to end the others."""
    try:
        lines = errors.read_text(errors="replace").splitlines()
    except OSError:
        return ()
    began = next((place for place, line in enumerate(lines) if _ENDING in line), len(lines))
    for several in (lines[:began], lines):
        found = [_DIED.search(line) for line in several if not _AFTERMATH.search(line)]
        if any(found):
            return tuple(dict.fromkeys(one[1] for one in found if one is not None))
    return ()


def said_at_end(errors: Path) -> list[str]:
    """Return the last messages of a step, without Slurm's on ending the other ranks."""
    try:
        lines = [line for line in errors.read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        return []
    said = [line.strip()[:200] for line in lines if not _RECORD.search(line)]
    said = [line for line in said if not _AFTERMATH.search(line)] or said
    if len(said) > 5:
        # An error stack has its cause at the end, and srun then names the node.
        said = [*said[:2], "…", *said[-3:]]
    return said


def last_line(output: Path) -> str:
    """Return the last words of a program: NetPIPE reports its troubles on its standard output."""
    return "".join(f"; {output.name} ends: {line}" for line in last_printed(output))


def last_printed(output: Path) -> list[str]:
    """The last line that a program printed, if any."""
    try:
        lines = [line for line in output.read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        return []
    return [line.strip()[:200] for line in lines[-1:]]


def rank_uses(errors: Path, said: str) -> tuple[RankUse, ...]:
    """Return each rank's use from a step's standard error; ParseError where a watched one lacks."""
    scheduled = disturbance.scheduled(errors, said)
    uses = [
        RankUse(
            int(found[1]),
            found[2],
            float(found[3]),
            float(found[4]) + float(found[5]),
            scheduled.get(int(found[1])),
            float(found[5]),
        )
        for found in _RANK_LINE.finditer(said)
    ]
    if scheduled and sorted(scheduled) != sorted(use.rank for use in uses):
        raise ParseError(
            str(errors), 0, "", "the ranks that reported their end are not those that were watched"
        )
    return tuple(sorted(uses, key=lambda use: use.rank))


def cpu_by_node(said: str) -> dict[str, tuple[float, float]]:
    """User and system CPU seconds of the ranks by node."""
    taken: dict[str, tuple[float, float]] = {}
    for found in _RANK_LINE.finditer(said):
        user_s, system_s = taken.get(found[2], (0.0, 0.0))
        taken[found[2]] = (user_s + float(found[4]), system_s + float(found[5]))
    return taken
