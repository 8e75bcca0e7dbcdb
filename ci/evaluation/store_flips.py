"""Flip bits of a store's files and cut them short, and count the faults found.

Print a row for each file of a session: tries, those that a reader named with the file, and those
that ``netproof store check`` named; end with 1 unless all were.
docs/validation/store.md has the results.

``--sessions`` damages a session's report and records instead. End with 1 if a damaged session is
neither refused nor judged as before, or as failed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import random
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from ci.evaluation import scale_sessions
from ci.evaluation.markdown import markdown
from ci.evaluation.scale_sessions import Recorded
from netproof.commands import stores
from netproof.diagnosis.diagnosis import ingest
from netproof.errors import NetproofError
from netproof.present import documents
from netproof.session import session
from netproof.session.records import HEADER
from netproof.store import Store, questions
from netproof.store import folder as store_folder
from netproof.store.folder import StoredSession
from netproof.verdict import PASSED, session_verdict
from netproof.verdict import stored as stored_verdicts

ROOT = scale_sessions.ROOT
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


@dataclass
class Effects:
    """Counts for a kind of file: refused, not passed, judged as before, and otherwise."""

    refused: int = 0
    red: int = 0
    without: int = 0
    otherwise: int = 0


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
    names = [*store.files(sessions[0]), store_folder.CHECKSUMS]
    found = {name: Found(name) for name in names}
    chance = random.Random(seed)
    for number in range(tries):
        one = found[names[number % len(names)]]
        stored = sessions[number // len(names) % len(sessions)]
        path = store.path(stored) / one.name
        whole = path.read_bytes()
        damaged = _damaged(whole, chance)
        one.cuts += len(damaged) < len(whole)
        path.write_bytes(damaged)
        try:
            one.tries += 1
            try:
                read_all(store, stored)
            except NetproofError as error:
                one.named += str(error).startswith(f"{path}: is damaged: ")
            faults = stores.faults(store, stored)
            one.checked += any(each.startswith(f"{path}: is damaged: ") for each in faults)
        finally:
            path.write_bytes(whole)
    return list(found.values())


def _damaged(whole: bytes, chance: random.Random) -> bytes:
    """Return a file with a bit flipped, or cut short."""
    damaged = bytearray(whole)
    if chance.random() < CUTS:
        del damaged[chance.randrange(len(whole)) :]
    else:
        damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def run_sessions(
    folder: Path, *, tries: int, seed: int, report: Path = scale_sessions.SMALL
) -> dict[str, Effects]:
    """Damage the files of a session that passed one by one, and restore each.

    Every other try is of the session's folder without its report, as while its run goes on: it has
    to be refused or judged as before. Each that is judged otherwise goes to standard error.
    """
    recorded = Recorded(report)
    references = ROOT / "reference-values" / f"{recorded.system}.yaml"
    made = scale_sessions.make(folder / "made", recorded, 1, references)
    records = next(made.report.parent.glob("session-*"))
    alone = shutil.copytree(records, folder / "alone" / records.name)
    own, others = (
        [path for path in place.rglob("*") if path.is_file()] for place in (records, alone)
    )
    files = {made.report: [made.report, *own], alone: others}
    with mock.patch.dict(os.environ, made.environment()):
        return _damaged_sessions(files, random.Random(seed), tries)


def _damaged_sessions(
    files: Mapping[Path, Sequence[Path]], chance: random.Random, tries: int
) -> dict[str, Effects]:
    """Damage the files of a session's report and of its folder alone in turn."""
    whole = {place: _verdict(place) for place in files}
    with_report, alone = files
    if isinstance(whole[with_report], NetproofError):
        raise whole[with_report]
    effects: dict[str, Effects] = defaultdict(Effects)
    for number in range(tries):
        place = (with_report, alone)[number % 2]
        sizes = [path.stat().st_size for path in files[place]]
        (path,) = chance.choices(files[place], sizes)
        content, written = path.read_bytes(), path.stat().st_mtime
        damaged = _damaged(content, chance)
        path.write_bytes(damaged)
        os.utime(path, (written, written))
        try:
            found = _verdict(place)
        finally:
            path.write_bytes(content)
            os.utime(path, (written, written))
        kind = {with_report.name: "report", HEADER: "header"}.get(path.name, "record")
        one = effects[f"{kind}, without the report" if place == alone else kind]
        if isinstance(found, NetproofError):
            one.refused += 1
        elif found == whole[place]:
            one.without += 1
        elif place == with_report and json.loads(found)["status"] != PASSED:
            one.red += 1
        else:
            one.otherwise += 1
            pairs = enumerate(zip(content, damaged, strict=False))
            at = next((at for at, (was, now) in pairs if was != now), len(damaged))
            print(f"{path.name}: {content[max(0, at - 40) : at + 40]!r}", file=sys.stderr)
    return effects


def _verdict(place: Path) -> str | NetproofError:
    """Return the verdict on a session as JSON, or the reason without one.

    When it began and its labels are only shown: ReFrame's report has no checksum.
    """
    try:
        judged = session_verdict.judge_session(session.load(place), fold=0)
        document = {**documents.of_judged(judged), **dict.fromkeys(("started", "labels"))}
        return json.dumps({"status": judged.verdict.status} | document)
    except NetproofError as error:
        return error


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table of all files; return 0 if all faults were named."""
    parser = argparse.ArgumentParser(prog="ci/store-flips", description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=20061)
    parser.add_argument("--sessions", action="store_true", help="of reports and session folders")
    options = parser.parse_args(arguments)
    if options.sessions:
        with tempfile.TemporaryDirectory() as folder:
            effects = run_sessions(Path(folder), tries=options.tries, seed=options.seed)
        heads = ("file", "refused", "not passed", "judged as before", "judged otherwise")
        rows = [
            [name, *map(str, dataclasses.astuple(each))] for name, each in sorted(effects.items())
        ]
        print("\n".join(markdown([heads, *rows])))
        return 1 if any(each.otherwise for each in effects.values()) else 0
    with tempfile.TemporaryDirectory() as folder:
        judge_by_the_project(os.environ.__setitem__, Path(folder))
        found = run(Path(folder), REPORTS, tries=options.tries, seed=options.seed)
    total = Found("all")
    for one in found:
        for field in ("tries", "cuts", "named", "checked"):
            setattr(total, field, getattr(total, field) + getattr(one, field))
    rows = [
        (f"`{one.name}`", *map(str, (one.tries - one.cuts, one.cuts, one.named, one.checked)))
        for one in (*found, total)
    ]
    heads = ("file", "flipped", "cut", "named when read", "named by the check")
    print("\n".join(markdown([heads, *rows])))
    return 0 if total.named == total.checked == total.tries else 1
