"""The body of ``netproof judge``: existing output files, judged."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from netproof.errors import NetproofError
from netproof.measurement.transports import Transport
from netproof.present import documents, judged_files, tables
from netproof.verdict import files
from netproof.verdict.exit_status import CANNOT_JUDGE


def run(
    paths: Sequence[Path],
    *,
    pattern: str | None,
    names: Path | None,
    bidirectional: bool,
    link: str | None,
    mtu: int | None,
    transport: Transport,
    baseline: str | None,
    folder: Path | None = None,
    as_json: bool,
) -> int:
    """Judge the files, print the findings, and return the exit status.

    ``folder``: for a page on them, None without one. 0 passed, 1 a curve failed, 2 something could
    not be read, judged or written.
    """
    try:
        if pattern is not None and names is not None:
            raise NetproofError("--as and --names both say what is a configuration: give one")
        named = None
        if pattern is not None:
            named = files.Pattern(pattern)
        elif names is not None:
            named = files.NameList(names)
        elif baseline is not None:
            raise NetproofError(
                "--baseline names a configuration: --as or --names says what is one"
            )
        if link is None and (mtu is not None or transport is not Transport.TCP):
            raise NetproofError("--mtu and --transport are of a link: give its rate with --link")
        with tables.working(f"reading {len(paths)} files"):
            judged = files.judge(
                paths,
                named=named,
                bidirectional=bidirectional,
                link=None if link is None else files.link(link, mtu, transport),
                baseline=baseline,
            )
    except NetproofError as error:
        tables.say(tables.console(stderr=True), f"netproof: cannot judge: {error}", "red")
        return CANNOT_JUDGE
    page = None
    if folder is not None:
        # Altair takes a second to load, and only this needs it.
        from netproof.commands import report
        from netproof.present.html import files as pages

        try:
            page = report.write_page(
                folder, lambda scripts: pages.page(judged, scripts, compared=named is not None)
            )
        except NetproofError as error:
            tables.say(tables.console(stderr=True), f"netproof: no report: {error}", "red")
            return CANNOT_JUDGE
    if as_json:
        documents.write(judged_files.document(judged), sys.stdout)
    else:
        judged_files.print_files(judged, tables.console(), compared=named is not None)
        if page is not None:
            tables.say(tables.console(), f"report {page}")
    return judged.status
