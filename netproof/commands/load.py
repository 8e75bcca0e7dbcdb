"""The body of ``netproof load``."""

from __future__ import annotations

from pathlib import Path

from netproof.commands import labelled
from netproof.congestion import causes, loaded
from netproof.congestion.causes import LoadFindings
from netproof.congestion.loaded import Loaded
from netproof.congestion.turns import LEAST_NODES, Aggressor, Victim, chosen
from netproof.errors import NetproofError
from netproof.present import load as shown
from netproof.present import tables
from netproof.site import site
from netproof.site.matrix import matrix
from netproof.verdict import judging

CHECKS = "load.py"
WITHIN, BEYOND, UNDECIDED = 0, 1, 2


def run(
    *,
    where: str | None,
    environment: str | None,
    victims: str,
    aggressors: str,
    nodes: int,
    rounds: int,
    report: Path | None,
    folder: Path | None,
    as_json: bool,
) -> int:
    """Print the effects of load on a network, measured now or read from ``report``.

    Returns the exit status: 1 where a factor or a cause is beyond its bound; 2 where a factor with
    a bound is undecided, where too few rounds count, or without a result; else 0.
    """
    try:
        if report is None:
            report = _measured(where, environment, victims, aggressors, nodes, rounds)
        several = [(one, causes.findings(one)) for one in loaded.of_report(report)]
        written = None
        if folder is not None:
            # Altair takes a second to load, and only this needs it.
            from netproof.commands.report import write_page
            from netproof.present.html import load as pages

            written = write_page(folder, lambda scripts: pages.page(several, scripts))
    except NetproofError as error:
        said = f"netproof: load is inconclusive: {error}"
        tables.say(tables.console(stderr=True), said, "red")
        return UNDECIDED
    labelled.show(several, report, shown.document, shown.print_load, written, as_json=as_json)
    return _status(several)


def _status(several: list[tuple[Loaded, LoadFindings]]) -> int:
    if any(found.beyond() for _, found in several):
        return BEYOND
    return UNDECIDED if any(found.undecided() for _, found in several) else WITHIN


def _measured(
    where: str, environment: str, victims: str, aggressors: str, nodes: int, rounds: int
) -> Path:
    """Measure with ReFrame, in a folder that no verdict reads, and return the report's path.

    Raises NetproofError for what the site lacks, before anything is measured, and where ReFrame
    leaves no report.
    """
    system, partition = labelled.place(where)
    measured, congesting = chosen(Victim, victims), chosen(Aggressor, aggressors)
    found = matrix(site.gather(judging.site_folder()), system, [partition])
    labelled.insist_on_environment(found, where, environment)
    most = found.partitions[partition].nodes
    if most < LEAST_NODES:
        raise NetproofError(
            f"{where} has {most} nodes, and load takes {LEAST_NODES}: two for what is measured, two"
            " for what congests"
        )
    settings = {
        "aggressors": ",".join(congesting),
        "victims": ",".join(measured),
        "most_nodes": str(nodes),
        "rounds": str(rounds),
    }
    count = len(measured) * len(congesting) * rounds
    return labelled.measure(
        (where, environment),
        CHECKS,
        settings,
        label=loaded.FOLDER,
        subject=partition,
        what=f"{count} times alone and alongside, at each place",
    )
