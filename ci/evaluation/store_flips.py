"""Damage every file of a session by one bit or a cut, and count what comes of it.

The session is copied three times: its report with its folder, its folder alone, as while a run goes
on, and its entry of a store. Each kind of file gets as many tries, each of its files in turn.
docs/validation/store.md has the results.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ci.evaluation.table import show
from netproof.commands import stores
from netproof.diagnosis.diagnosis import ingest
from netproof.errors import NetproofError
from netproof.intake import disk
from netproof.present import documents
from netproof.session import records, session
from netproof.store import Store, StoredSession, questions
from netproof.verdict import PASSED, session_verdict
from netproof.verdict import stored as stored_verdicts

CUTS = 0.1
"""Share of the tries that cut a file short instead of flipping a bit."""


COLUMNS = ("tries", "of them cut", "refused", "not passed", "as before", "otherwise")
"""Counts for a kind of file: tries, and what came of them; refused is by the file's name."""
Place = tuple[dict[str, list[Path]], Callable[[Path], str]]
"""A copy of a session: its files by kind, and what reads all that it says."""


def verdict(place: Path, damaged: Path) -> str:
    """Return the verdict on a session as JSON.

    When it began and its labels are only shown: ReFrame's report has no checksum.
    """
    judged = session_verdict.judge_session(session.load(place), fold=0)
    document = {**documents.of_judged(judged), **dict.fromkeys(("started", "labels"))}
    return json.dumps({"status": judged.verdict.status} | document)


def stored(store: Store, one: StoredSession, damaged: Path) -> str:
    """Read a session, its verdict and its tables, as commands do, after ``store check``."""
    faults = stores.faults(store, one)
    try:
        questions.tables(store, one)
        found = stored_verdicts.on_session(questions.load(store, one), store, one)
    except NetproofError as error:
        if any(each.startswith(f"{damaged}: is damaged: ") for each in faults):
            raise
        raise NetproofError("store check does not name it") from error
    return json.dumps({"status": PASSED, "found": repr(found)})


def places(folder: Path, report: Path) -> list[Place]:
    """Copy a session into ``folder``, and return its copies."""
    test = next(
        test
        for run in disk.json_file(report)["runs"]
        for test in run["testcases"]
        if test.get(records.KEY)
    )
    name = Path(test[records.KEY]["path"]).parent
    own = shutil.copytree(report.parent / name, folder / "whole" / name)
    whole = Path(shutil.copy2(report, own.parent))
    alone = shutil.copytree(own, folder / "alone" / name)
    store = Store.create(folder / "store")
    one = ingest(store, whole).stored

    def files(place: Path, what: str = "") -> dict[str, list[Path]]:
        several = {"record": "*+*.json", "case": "*/*.json"}
        return {f"{kind}{what}": sorted(place.glob(names)) for kind, names in several.items()}

    in_store = {f"`{path.name}`": [path] for path in sorted(store.path(one).iterdir())}
    return [
        # Beside a report the header is not read.
        ({"report": [whole], **files(own)}, partial(verdict, whole)),
        (
            {"header": [alone / records.HEADER], **files(alone, ", without the report")},
            partial(verdict, alone),
        ),
        (in_store, partial(stored, store, one)),
    ]


def flipped(folder: Path, report: Path, *, tries: int, seed: int) -> dict[str, Counter[str]]:
    """Damage files of a session's copies in ``folder`` one by one, and restore each.

    What is read otherwise, or refused without the file's name, goes to standard error. Raise
    NetproofError for a session that has not passed: it could lose cases unnoticed.
    """
    several = [(by, read, read(folder)) for by, read in places(folder, report)]
    if json.loads(several[0][2])["status"] != PASSED:
        raise NetproofError(f"{report}: has not passed by the site's files of this shell")
    kinds = [(kind, files, *of) for by, *of in several for kind, files in by.items() if files]
    effects = {kind: Counter[str]() for kind, *_ in kinds}
    chance = random.Random(seed)
    for number in range(tries):
        kind, files, read, was = kinds[number % len(kinds)]
        path, count = files[number // len(kinds) % len(files)], effects[kind]
        content, written = path.read_bytes(), path.stat().st_mtime
        damaged = _damaged(content, chance)
        count["tries"] += 1
        count["of them cut"] += len(damaged) < len(content)
        _write(path, damaged, written)
        try:
            found = read(path)
        except NetproofError as error:
            found = f"refused: {error}"
        finally:
            _write(path, content, written)
        outcome = "otherwise"
        if found.startswith("refused: "):
            outcome = "refused" if str(path) in found else outcome
        elif found == was:
            outcome = "as before"
        elif PASSED == json.loads(was)["status"] != json.loads(found)["status"]:
            outcome = "not passed"
        count[outcome] += 1
        if outcome == "otherwise":
            pairs = enumerate(zip(content, damaged, strict=False))
            at = next((at for at, (one, now) in pairs if one != now), len(damaged))
            print(f"{path}: {content[max(0, at - 40) : at + 40]!r}: {found[:500]}", file=sys.stderr)
    return effects


def _damaged(whole: bytes, chance: random.Random) -> bytes:
    """Return a file with a bit flipped, or cut short."""
    damaged = bytearray(whole)
    if chance.random() < CUTS:
        del damaged[chance.randrange(len(whole)) :]
    else:
        damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def _write(path: Path, content: bytes, written: float) -> None:
    """Write a file as of the time at which it was ``written``: a session ends with its newest."""
    path.write_bytes(content)
    os.utime(path, (written, written))


def run(options: argparse.Namespace) -> bool:
    """Print the table of all files; return whether nothing was read otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        effects = flipped(Path(folder), options.report, tries=options.tries, seed=options.seed)
    effects["all"] = total = sum(effects.values(), Counter())
    rows = [[kind, *(one[name] for name in COLUMNS)] for kind, one in effects.items()]
    show(("file", *COLUMNS), rows)
    return not total["otherwise"]
