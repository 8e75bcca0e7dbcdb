"""The body of ``netproof tune algorithm``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from netproof.benchmarks import imb, registry
from netproof.commands import labelled
from netproof.errors import NetproofError
from netproof.present import algorithms as shown
from netproof.present import tables
from netproof.site import site
from netproof.site.matrix import matrix
from netproof.site.partition import absences
from netproof.tuning import algorithm_sweep, restoring, sweep
from netproof.tuning.algorithm_sweep import AlgorithmSweep
from netproof.tuning.algorithms import known
from netproof.tuning.winners import Winners
from netproof.verdict import judging

CHECKS = "algorithms.py"
BENCHMARK = imb.BENCHMARK.name
SHOWN, NOT_SHOWN = 0, 2


def run(
    function: str,
    *,
    where: str,
    environment: str,
    ranks: int | None,
    values: Sequence[str] | None,
    rounds: int,
    folder: Path | None,
    as_json: bool,
) -> int:
    """Measure, print the tables of winners, and return the exit status, as ``show`` does."""
    try:
        report = measured(function, where, environment, ranks, values or (), rounds)
    except NetproofError as error:
        return _cannot(error)
    return show(report, folder=folder, as_json=as_json)


def show(report: Path, *, folder: Path | None, as_json: bool) -> int:
    """Print the tables of the fastest algorithms of a report, and return the exit status.

    0 with a result, even a statistical tie; 2 without.
    """
    try:
        several = results_in(report)
        written = None
        if folder is not None:
            # Altair takes a second to load, and only this needs it.
            from netproof.commands.report import write_page
            from netproof.present.html import algorithms as pages

            written = write_page(folder, lambda scripts: pages.page(several, scripts))
    except NetproofError as error:
        return _cannot(error)
    labelled.show(several, report, shown.document, shown.print_winners, written, as_json=as_json)
    return SHOWN


def _cannot(error: NetproofError) -> int:
    tables.say(tables.console(stderr=True), f"netproof: cannot tune: {error}", "red")
    return NOT_SHOWN


def results_in(report: Path) -> list[tuple[AlgorithmSweep, Winners]]:
    """Return the sweeps of a report, the fewest ranks first, with their tables.

    Raises NetproofError, with the report's path, where one has no table.
    """
    several = sorted(algorithm_sweep.of_report(report), key=lambda one: one.sweep.case.ranks)
    try:
        return [(one, one.winners()) for one in several]
    except NetproofError as error:
        raise NetproofError(f"{report}: {error}") from None


def measured(
    function: str,
    where: str,
    environment: str,
    ranks: int | None,
    values: Sequence[str],
    rounds: int,
) -> Path:
    """Measure a sweep with ReFrame, in a folder that no verdict reads, and return the report.

    Raises NetproofError for what the site or a library lacks, before anything is measured, and
    where ReFrame leaves no report.
    """
    system, partition = labelled.place(where)
    configuration = site.gather(judging.site_folder())
    found = matrix(configuration, system, [partition], all_functions=True)
    named = {
        one["name"]: one["extras"]
        for one in configuration["environments"]
        if system in one["target_systems"]
    }
    there = sorted({case.environment for case in found.cases if case.benchmark == BENCHMARK})
    label = registry.named(BENCHMARK).label
    if environment not in there:
        why = absences(named.get(environment, {})).get(BENCHMARK)
        raise NetproofError(
            f"{where} has no environment {environment!r} with {label}"
            f"{f', whose site says: {why}' if why else ''}; it has {', '.join(there) or 'none'}"
        )
    choice = known.choice(named[environment]["mpi"], function, values)
    counts = sorted({one.ranks for one in found.cases if one.function == function})
    if ranks is not None and ranks not in counts:
        raise NetproofError(
            f"{where} measures {function} on {', '.join(map(str, counts))} ranks, and not on"
            f" {ranks}"
        )
    settings = {
        "swept_function": function,
        "swept_ranks": str(ranks or 0),
        "rounds": str(rounds),
        **({"swept_algorithms": ",".join(values)} if values else {}),
    }
    jobs = 1 if ranks is not None else len(counts)
    count = jobs * len(sweep.turns(choice.values, rounds, 1))
    return labelled.measure(
        (where, environment),
        CHECKS,
        settings,
        label=restoring.FOLDER,
        subject=f"{algorithm_sweep.PARAMETER}-{function}",
        what=f"{count} launches",
    )
