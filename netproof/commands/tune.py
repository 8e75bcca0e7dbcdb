"""The body of ``netproof tune``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from netproof.benchmarks import netpipe, registry
from netproof.commands import labelled, tune_algorithm
from netproof.errors import NetproofError
from netproof.present import tables
from netproof.present import tuning as shown
from netproof.site import site
from netproof.site.matrix import matrix
from netproof.tuning import algorithm_sweep, parameters, restoring, sweep
from netproof.tuning.gains import Tuned
from netproof.tuning.restoring import NotRestored
from netproof.verdict import judging

CHECKS = "tuning.py"
SHOWN, NOT_SHOWN = 0, 2


def run(
    parameter: str | None,
    *,
    where: str | None,
    environment: str | None,
    protocol: str,
    path: str,
    values: Sequence[str] | None,
    rounds: int,
    report: Path | None,
    folder: Path | None,
    as_json: bool,
) -> int:
    """Print a sweep's result, measured now or read from ``report``, and return the exit status.

    0 with a result, even if nothing is worth setting; 2 without.
    """
    try:
        if report is None:
            report = measured(parameter, where, environment, protocol, path, values or (), rounds)
        elif algorithm_sweep.is_in(report):
            return tune_algorithm.show(report, folder=folder, as_json=as_json)
        several = results_in(report)
        written = None
        if folder is not None:
            # Altair takes a second to load, and only this needs it.
            from netproof.commands.report import write_page
            from netproof.present.html import tuning as pages

            written = write_page(folder, lambda scripts: pages.page(several, scripts))
    except NetproofError as error:
        tables.say(tables.console(stderr=True), f"netproof: cannot tune: {error}", "red")
        return NOT_SHOWN
    labelled.show(several, report, shown.document, shown.print_sweep, written, as_json=as_json)
    return SHOWN


def results_in(report: Path) -> list[tuple[sweep.Sweep, Tuned]]:
    """Return the sweeps of a report with their results. Raises NetproofError without one."""
    several = sweep.of_report(report)
    try:
        return [(one, one.tuned()) for one in several]
    except NetproofError as error:
        raise NetproofError(f"{report}: {error}") from None


def restore(where: str) -> int:
    """Restore settings that a sweep left changed on a partition's nodes; return the exit status."""
    try:
        restored = _restored(site.gather(judging.site_folder()), *labelled.place(where))
    except NetproofError as error:
        tables.say(tables.console(stderr=True), f"netproof: cannot restore: {error}", "red")
        return NOT_SHOWN
    if not restored:
        tables.say(tables.console(), f"{where}: nothing is left to restore")
    return SHOWN


def _restored(
    configuration: Mapping[str, Any], system: str, partition: str
) -> tuple[NotRestored, ...]:
    """Restore what an earlier sweep left changed on a partition; NetproofError if not possible."""
    found = matrix(configuration, system, [partition])
    (access,) = (
        entry["access"]
        for one in configuration["systems"]
        if one["name"] == system
        for entry in one["partitions"]
        if entry["name"] == partition
    )
    record = restoring.record_of(judging.reports_folder(), system, partition)
    restored = restoring.restore(record, found.partitions[partition].tuning_hook, access)
    for one in restored:
        said = f"{one.node}: {one.name} is {one.value} again, as before a sweep that did not end"
        tables.say(tables.console(stderr=True), said)
    return restored


def _library(configuration: Mapping[str, Any], system: str, environment: str) -> str:
    """Return the MPI library of an environment, as its site names it."""
    (library,) = (
        entry["extras"]["mpi"]
        for entry in configuration["environments"]
        if entry["name"] == environment and system in entry["target_systems"]
    )
    return library


def measured(
    parameter: str,
    where: str,
    environment: str,
    protocol: str,
    path: str,
    values: Sequence[str],
    rounds: int,
) -> Path:
    """Measure a sweep with ReFrame, in a folder that no verdict reads, and return the report.

    Raises NetproofError for what the site or a library lacks, before anything is measured, and
    where ReFrame leaves no report.
    """
    for given, known in ((protocol, netpipe.PROTOCOLS), (path, netpipe.PATHS)):
        if given not in known:
            raise NetproofError(f"unknown {given!r}; choose {' or '.join(known)}")
    system, partition = labelled.place(where)
    configuration = site.gather(judging.site_folder())
    found = matrix(configuration, system, [partition])
    there = sorted(
        {case.environment for case in found.cases if registry.of(case).by_protocol},
    )
    if environment not in there:
        raise NetproofError(
            f"{where} has no environment {environment!r} with NetPIPE; it has {', '.join(there)}"
        )
    turned = parameters.found(parameter, values)
    turned.told(protocol, _library(configuration, system, environment), path)
    tried = tuple(values) or turned.values_on(found.partitions[partition].rails)
    parameters.insist_on_values(tried)
    if turned.by_hook and not found.partitions[partition].tuning_hook:
        raise NetproofError(
            f"{turned.title} takes root: give {where} a tuning_hook in its site's file"
        )
    _restored(configuration, system, partition)
    settings = {
        "turned": turned.name,
        "turned_protocol": protocol,
        "turned_path": path,
        "rounds": str(rounds),
        **({"turned_values": ",".join(values)} if values else {}),
    }
    count = len(sweep.turns(tried, rounds, 1))
    try:
        return labelled.measure(
            (where, environment),
            CHECKS,
            settings,
            label=restoring.FOLDER,
            subject=turned.name,
            what=f"{count} launches",
        )
    finally:
        # A killed job could not restore it.
        _restored(configuration, system, partition)
