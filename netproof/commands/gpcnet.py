"""The body of ``netproof gpcnet``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from netproof.commands import labelled
from netproof.congestion import gpcnet
from netproof.congestion.gpcnet import GpcnetImpacts, GpcnetRuns
from netproof.congestion.gpcnet_output import PROGRAM
from netproof.errors import NetproofError
from netproof.present import gpcnet as shown
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
    rounds: int,
    nodes: int,
    report: Path | None,
    as_json: bool,
) -> int:
    """Print GPCNeT's congestion impact factors, measured now or read from ``report``.

    Returns the exit status: 1 where a factor is beyond its bound; 2 where one with a bound is
    undecided, where too few rounds count, or without a result; else 0.
    """
    try:
        if report is None:
            report = _measured(where, environment, rounds, nodes)
        several = [(one, gpcnet.impacts(one)) for one in gpcnet.of_report(report)]
    except NetproofError as error:
        said = f"netproof: GPCNeT is inconclusive: {error}"
        tables.say(tables.console(stderr=True), said, "red")
        return UNDECIDED
    labelled.show(several, report, shown.document, shown.print_gpcnet, as_json=as_json)
    return _status(several)


def _status(several: list[tuple[GpcnetRuns, GpcnetImpacts]]) -> int:
    if any(found.beyond() for _, found in several):
        return BEYOND
    return UNDECIDED if any(found.undecided() for _, found in several) else WITHIN


def _measured(where: str, environment: str, rounds: int, nodes: int) -> Path:
    """Measure with ReFrame, in a folder that no verdict reads, and return the report's path.

    Raises NetproofError for what the site lacks, before anything is measured, and where ReFrame
    leaves no report.
    """
    system, partition = labelled.place(where)
    configuration = site.gather(judging.site_folder())
    found = matrix(configuration, system, [partition])
    _insist_on_program(configuration, where, environment)
    most = found.partitions[partition].nodes
    if most < gpcnet.LEAST_NODES:
        raise NetproofError(
            f"{where} has {most} nodes, and GPCNeT takes {gpcnet.LEAST_NODES}: two for its tests,"
            " eight for its congestors; netproof load takes 4"
        )
    return labelled.measure(
        (where, environment),
        CHECKS,
        {"gpcnet_rounds": str(rounds), "gpcnet_nodes": str(nodes)},
        label=gpcnet.FOLDER,
        subject=partition,
        what=f"GPCNeT {rounds} times, some minutes each",
    )


def _insist_on_program(configuration: Mapping[str, Any], where: str, environment: str) -> None:
    """Raise NetproofError where an environment of a partition lacks GPCNeT's feature."""
    system, partition = labelled.place(where)
    systems = {one["name"]: one for one in configuration["systems"]}
    (environs,) = (
        one["environs"] for one in systems[system]["partitions"] if one["name"] == partition
    )
    having = {
        one["name"]
        for one in configuration["environments"]
        if gpcnet.FEATURE in one.get("features", [])
    }
    there = [name for name in environs if name in having]
    if environment not in there:
        raise NetproofError(
            f"{where} has no environment {environment!r} with the feature {gpcnet.FEATURE!r}; it"
            f" has {', '.join(there) or 'none'}. Put GPCNeT's {PROGRAM} into the environment's PATH"
            " and name the feature in its site's file"
        )
