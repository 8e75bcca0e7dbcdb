"""Find and restore values that a sweep by a site's hook changed on nodes.

A record is written before any change, and removed when every node has its own value again. A job
that is killed leaves it; the next sweep restores first.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from netproof.errors import NetproofError
from netproof.intake import disk, trust
from netproof.intake.disk import read_text
from netproof.session import session

ANSWER_S = 120
"""Seconds in which a node must answer: it may have to wait for its job to end."""


OWN_FILE = "own_values.tsv"
"""The same lines in the job's folder, where they stay: the nodes' values at its start."""

FOLDER = "tuning"
"""Folder of sweeps in the folder of reports, which no verdict reads."""


def record_of(reports: Path, system: str, partition: str) -> Path:
    """Return the record of sweeps on a partition; ``reports``: as for ``session.folder_of``."""
    return session.folder_of(reports, FOLDER) / f"not-restored-{system}-{partition}.tsv"


def read(record: Path) -> tuple[tuple[str, str, str], ...]:
    """Return nodes with a setting and its own value before a sweep; NetproofError if damaged."""
    if not record.exists():
        return ()
    trust.insist(record, "the record of a sweep")
    found: list[tuple[str, str, str]] = []
    for number, line in enumerate(read_text(record).splitlines(), 1):
        words = line.split("\t")
        if len(words) != 3 or not all(words):
            what = "is no line of node, setting and value"
            remedy = "restore the nodes by hand, and remove the file"
            raise NetproofError(f"{record}:{number}: {what}: {remedy}")
        found.append((words[0], words[1], words[2]))
    return tuple(found)


def restore(
    record: Path, hook: Sequence[str], access: Sequence[str]
) -> tuple[tuple[str, str, str], ...]:
    """Set the recorded values on their nodes, read them back, and remove the record.

    ``access``: ReFrame's options of the partition. Return the restored values. Raise NetproofError
    where a node failed, which stays in the record.
    """
    several = read(record)
    if several and not hook:
        raise NetproofError(
            f"{record}: an earlier sweep ended before everything was restored, and the partition"
            " has no tuning_hook any more: restore its nodes by hand, and remove the file"
        )
    failed, reasons = "", []
    for node, name, value in several:
        try:
            put(node, hook, name, value, access)
        except NetproofError as error:
            failed += f"{node}\t{name}\t{value}\n"
            reasons.append(str(error))
    if failed:
        disk.replace(record, failed)
        raise NetproofError(f"{record}: cannot be restored: {'; '.join(reasons)}")
    record.unlink(missing_ok=True)
    return several


def put(node: str, hook: Sequence[str], name: str, value: str, access: Sequence[str] = ()) -> None:
    """Set a value on a node by the hook, and read it back; NetproofError if it is another."""
    ask(node, [*hook, "set", name, value], access)
    now = ask(node, [*hook, "get", name], access)
    if now != value:
        raise NetproofError(f"{node}: {name} was set to {value} and is {now}")


def ask(node: str, command: Sequence[str], access: Sequence[str] = ()) -> str:
    """Return what a command prints on a node; raise NetproofError if it fails there."""
    options = [f"--nodelist={node}", "--nodes=1", "--ntasks=1", "--mpi=none", "--quiet"]
    try:
        ran = subprocess.run(
            ["srun", *access, *options, *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ANSWER_S,
            check=False,
        )
    except FileNotFoundError:
        raise NetproofError(f"{node}: there is no srun") from None
    except subprocess.TimeoutExpired:
        raise NetproofError(f"{node}: did not answer within {ANSWER_S} s") from None
    if ran.returncode != 0:
        words = " | ".join(line.strip() for line in ran.stderr.splitlines() if line.strip())
        ended = f"{' '.join(command)} ended with status {ran.returncode}"
        raise NetproofError(f"{node}: {ended}: {words}")
    return ran.stdout.strip()
