"""The body of ``netproof diagnose``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from netproof.diagnosis import diagnosis
from netproof.errors import NetproofError
from netproof.present import diagnosis as shown
from netproof.present import documents, tables
from netproof.session import session as sessions
from netproof.site import shipped, site
from netproof.site.matrix import matrix
from netproof.verdict import judging

REFRAME = "reframe"
PAIRS = "pairs.py"
STDERR = 2


def run(
    partition: str | None,
    *,
    session: Path | None,
    store: Path | None,
    back: int,
    measure: bool,
    system: str | None,
    as_json: bool,
) -> int:
    """Print the diagnosis of each partition, in words or as JSON, and return the exit status.

    ``partition``: only this one; ``session`` and ``store`` as ``judging.find`` takes them;
    ``back``: how many earlier sessions may be read; ``measure``: pairs first.
    """
    try:
        if measure:
            session = _measured(partition, system)
        with tables.working("judging the session"):
            judged = judging.judge_session(judging.find(session, store), system=system, fold=0)
            earlier = diagnosis.sessions_before(judged, _made(store), back)
            found = diagnosis.diagnose(judged, partition, earlier)
    except NetproofError as error:
        tables.say(tables.console(stderr=True), f"netproof: cannot diagnose: {error}", "red")
        return diagnosis.INCONCLUSIVE
    if as_json:
        documents.write(shown.document(judged, found), sys.stdout)
    else:
        out = tables.console()
        for one in found:
            shown.print_diagnosis(one, out)
        tables.say(out, f"session {judged.session.path}")
    return diagnosis.status(found)


def _made(store: Path | None) -> Path | None:
    """Return the store, if it exists: ci/activate names the folder that the first session makes."""
    by_default = store is not None and os.environ.get("NETPROOF_STORE") == str(store)
    return None if by_default and not store.exists() else store


def _measured(partition: str, system: str | None) -> Path:
    """Measure rounds of pairs on a partition with ReFrame, and return the report's path.

    Raises NetproofError without ReFrame, configuration or report.
    """
    name = (system or os.environ.get("RFM_SYSTEM") or "").partition(":")[0]
    if not name:
        raise NetproofError("--measure takes a system: name it with --system or in RFM_SYSTEM")
    # An unknown partition is refused before anything is measured.
    matrix(site.gather(judging.site_folder()), name, [partition])
    program = Path(sys.executable).with_name(REFRAME)
    if not program.is_file():
        raise NetproofError(f"{program}: is not there, so nothing can be measured")
    folder = judging.reports_folder()
    folder.mkdir(parents=True, exist_ok=True)
    there = set(sessions.reports(folder))
    checks = shipped.folder("checks") / PAIRS
    command = [str(program), "--system", f"{name}:{partition}", "-c", str(checks), "-r"]
    tables.say(tables.console(stderr=True), f"measuring: {' '.join(command)}")
    # Its output is not part of the diagnosis, which reports failed tests itself.
    ended = subprocess.run(command, stdout=STDERR, stdin=subprocess.DEVNULL, check=False)
    new = [path for path in sessions.reports(folder) if path not in there]
    if not new:
        raise NetproofError(
            f"reframe left no new report in {folder} (exit status {ended.returncode}); what it"
            " printed says why"
        )
    return new[0]
