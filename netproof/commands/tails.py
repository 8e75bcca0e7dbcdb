"""The body of ``netproof tails``."""

from __future__ import annotations

from pathlib import Path

from netproof.commands import labelled
from netproof.congestion import percentiles, tails
from netproof.congestion.percentiles import TailFigures
from netproof.congestion.tails import Tail
from netproof.errors import NetproofError
from netproof.present import tables
from netproof.present import tails as shown
from netproof.site import site
from netproof.site.matrix import matrix
from netproof.verdict import judging

CHECKS = "load.py"
WITHIN, BEYOND, UNDECIDED = 0, 1, 2


def run(
    *,
    where: str | None,
    environment: str | None,
    seconds: float,
    size: int,
    report: Path | None,
    folder: Path | None,
    as_json: bool,
) -> int:
    """Print the tails of a long launch, measured now or read from ``report``.

    Returns the exit status: 1 where a percentile is beyond its bound; 2 where one with a bound is
    undecided, or without a result; else 0.
    """
    try:
        if report is None:
            report = _measured(where, environment, seconds, size)
        several = [(one, percentiles.figures(one)) for one in tails.of_report(report)]
        written = None
        if folder is not None:
            # Altair takes a second to load, and only this needs it.
            from netproof.commands.report import write_page
            from netproof.present.html import tails as pages

            written = write_page(folder, lambda scripts: pages.page(several, scripts))
    except NetproofError as error:
        said = f"netproof: tails are inconclusive: {error}"
        tables.say(tables.console(stderr=True), said, "red")
        return UNDECIDED
    labelled.show(several, report, shown.document, shown.print_tail, written, as_json=as_json)
    return _status(several)


def _status(several: list[tuple[Tail, TailFigures]]) -> int:
    if any(found.beyond for _, found in several):
        return BEYOND
    return UNDECIDED if any(found.undecided for _, found in several) else WITHIN


def _measured(where: str, environment: str, seconds: float, size: int) -> Path:
    """Measure with ReFrame, in a folder that no verdict reads, and return the report's path.

    Raises NetproofError for what the site lacks, before anything is measured, and where ReFrame
    leaves no report.
    """
    system, partition = labelled.place(where)
    found = matrix(site.gather(judging.site_folder()), system, [partition])
    labelled.insist_on_environment(found, where, environment)
    most = found.partitions[partition].max_message_bytes
    if size > most:
        raise NetproofError(f"--bytes {size}: the largest message of {where} is of {most} bytes")
    return labelled.measure(
        (where, environment),
        CHECKS,
        {"tails_seconds": f"{seconds:g}", "tails_bytes": str(size)},
        label=tails.FOLDER,
        subject=partition,
        what=f"single calls of {size} bytes for {seconds:g} s",
    )
