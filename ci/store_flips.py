"""Flip bits of a store's files and cut them short, and count the faults found.

Print a row for each file of a session: tries, those that a reader named with the file, and those
that ``netproof store check`` named; end with 1 unless all were. docs/store.md has the results.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from netproof.commands.store_check import check
from netproof.errors import NetproofError
from netproof.store import Store, checksums, questions
from netproof.store.folder import StoredSession
from netproof.verdict import stored as stored_verdicts
from netproof.verdict.judging import ingest

ROOT = Path(__file__).resolve().parents[1]
REPORTS = tuple(
    ROOT / "tests" / "data" / "sessions" / f"{name}.json"
    for name in ("passed", "ranges", "sick", "two-switches")
)
CUTS = 0.1
"""Share of the tries that cut a file short instead of flipping a bit."""


@dataclass
class Found:
    """Counts for a file: damaged, named by a reader, and named by the check."""

    name: str
    tries: int = 0
    cuts: int = 0
    named: int = 0
    checked: int = 0


def judge_by_the_project(set_variable: Callable[[str, str], object], folder: Path) -> None:
    """Let sessions be judged by the project's own configuration and references."""
    set_variable("RFM_CONFIG_PATH", str(ROOT / "site-config"))
    set_variable("RFM_REFERENCE_PREFIX", str(ROOT / "reference-values"))
    set_variable("RFM_REPORT_FILE", str(folder / "reports" / "run-0.json"))


def read_all(store: Store, stored: StoredSession) -> None:
    """Read a session, its verdict and its tables, as commands do; NetproofError for damage."""
    stored_verdicts.on_session(questions.load(store, stored), store, stored)
    questions.tables(store, stored)


def run(folder: Path, reports: Sequence[Path], *, tries: int, seed: int) -> list[Found]:
    """Damage files of a store of ``reports`` in ``folder`` one by one, and restore each.

    A try takes the next file, and a random bit or length.
    """
    store = Store.create(folder / "store")
    sessions = [ingest(store, report).stored for report in reports]
    names = [*store.files(sessions[0]), checksums.NAME]
    found = {name: Found(name) for name in names}
    chance = random.Random(seed)
    for number in range(tries):
        one = found[names[number % len(names)]]
        stored = sessions[number // len(names) % len(sessions)]
        path = store.path(stored) / one.name
        whole = path.read_bytes()
        damaged = bytearray(whole)
        if chance.random() < CUTS:
            del damaged[chance.randrange(len(whole)) :]
            one.cuts += 1
        else:
            damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        try:
            one.tries += 1
            try:
                read_all(store, stored)
            except NetproofError as error:
                one.named += str(error).startswith(f"{path}: is damaged: ")
            faults = check(store, stored).faults
            one.checked += any(each.startswith(f"{path}: is damaged: ") for each in faults)
        finally:
            path.write_bytes(whole)
    return list(found.values())


def main() -> int:
    """Print the table of all files; return 0 if all faults were named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=20061)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        judge_by_the_project(os.environ.__setitem__, Path(folder))
        found = run(Path(folder), REPORTS, tries=arguments.tries, seed=arguments.seed)
    total = Found("all")
    print("| file | flipped | cut | named when read | named by the check |")
    print("| --- | --- | --- | --- | --- |")
    for one in (*found, total):
        print(
            f"| `{one.name}` | {one.tries - one.cuts} | {one.cuts} | {one.named} | {one.checked} |"
        )
        for field in ("tries", "cuts", "named", "checked"):
            setattr(total, field, getattr(total, field) + getattr(one, field))
    return 0 if total.named == total.checked == total.tries else 1


if __name__ == "__main__":
    sys.exit(main())
