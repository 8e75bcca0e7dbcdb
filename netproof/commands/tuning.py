"""The verb ``tune``: a setting is swept, or the algorithms of a collective."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from netproof.commands.experiments import Where, show
from netproof.commands.options import (
    EnvironmentOption,
    JsonOption,
    PageOption,
    WhereOption,
    refused,
    verb,
)
from netproof.errors import NetproofError

if TYPE_CHECKING:
    from netproof.experiments.gains import SweepTable
    from netproof.experiments.sweep import Sweep


@verb("cannot tune")
def tune(
    parameter: Annotated[
        str | None,
        typer.Argument(
            help="What to turn: socket-buffer, eager-limit, rails, mtu, coalescing, algorithm, or"
            " an environment variable."
        ),
    ] = None,
    where: WhereOption = None,
    environment: EnvironmentOption = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol", metavar="tcp|mpi", help="Over what NetPIPE measures; tcp unless given."
        ),
    ] = None,
    path: Annotated[
        str | None,
        typer.Option(
            "--path",
            metavar="between|inside",
            help="Between two nodes, unless given, or inside one.",
        ),
    ] = None,
    function: Annotated[
        str | None,
        typer.Option(
            "--function", help="Of algorithm: the collective of IMB, Allreduce for instance."
        ),
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option(
            "--ranks", help="Of algorithm: one rank count of the partition instead of all."
        ),
    ] = None,
    values: Annotated[
        str | None, typer.Option("--values", metavar="A,B,...", help="Instead of its own values.")
    ] = None,
    rounds: Annotated[
        int, typer.Option("--rounds", min=3, help="How often each value is launched.")
    ] = 5,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            help="Measure nothing, and read the report of an earlier sweep.",
            readable=False,
        ),
    ] = None,
    restore: Annotated[
        bool,
        typer.Option(
            "--restore", help="Only restore what a sweep that was killed left changed on nodes."
        ),
    ] = False,
    html: PageOption = None,
    as_json: JsonOption = False,
) -> int:
    """Turn one setting, measure each value alongside the default, say which is best."""
    if (parameter is not None) + (report is not None) + restore != 1:
        raise typer.BadParameter("give PARAMETER to measure, --report to read, or --restore")
    if where is None and report is None:
        raise typer.BadParameter("say where: --system SYSTEM:PARTITION")
    if parameter is not None and environment is None:
        raise typer.BadParameter("say with what: --environment")
    of_algorithm = parameter == "algorithm"
    if of_algorithm and function is None:
        raise typer.BadParameter("say of what: --function Allreduce, for instance")
    if of_algorithm and (protocol is not None or path is not None):
        raise typer.BadParameter(
            "algorithms are swept with IMB: --protocol and --path are NetPIPE's"
        )
    if not of_algorithm and (function is not None or ranks is not None):
        raise typer.BadParameter("--function and --ranks are those of the parameter algorithm")
    if restore:
        return _restore(where)
    from netproof.present import algorithms, tuning

    given = () if values is None else values.split(",")
    if of_algorithm:
        report = measured_algorithms(function, where, environment, ranks, given, rounds)
    elif report is None:
        report = measured_setting(
            parameter, where, environment, protocol or "tcp", path or "between", given, rounds
        )
    results = results_in(report)
    if results[0][0].library:
        show(results, report, algorithms, algorithms.print_winners, html, as_json)
    else:
        show(results, report, tuning, tuning.print_sweep, html, as_json)
    return 0


def results_in(report: Path) -> list[tuple[Sweep, SweepTable]]:
    """Return the sweeps of a report with their results, the fewest ranks first.

    Raise NetproofError, with the report's path, without one, and where one has no result.
    """
    from netproof.experiments.sweep import Sweep

    several = sorted(Sweep.of_report(report), key=lambda sweep: sweep.case.ranks)
    try:
        return [(sweep, sweep.table()) for sweep in several]
    except NetproofError as error:
        raise NetproofError(f"{report}: {error}") from None


def _restore(option: str) -> int:
    """Restore settings that a sweep left changed on a partition's nodes; return the exit status."""
    from netproof.present import tables

    try:
        restored = _restored(Where.of(option))
    except NetproofError as error:
        return refused("cannot restore", error)
    if not restored:
        tables.say(tables.console(), f"{option}: nothing is left to restore")
    return 0


def _restored(where: Where) -> tuple[tuple[str, str, str], ...]:
    """Restore what an earlier sweep left changed on a partition; NetproofError if not possible."""
    from netproof.experiments import restoring
    from netproof.present import tables
    from netproof.site.matrix import partitions_in
    from netproof.verdict import judging

    access = partitions_in(where.configuration, where.system)[where.partition]["access"]
    record = restoring.record_of(judging.reports_folder(), where.system, where.partition)
    restored = restoring.restore(record, where.settings.tuning_hook, access)
    for node, name, value in restored:
        said = f"{node}: {name} is {value} again, as before a sweep that did not end"
        tables.say(tables.console(stderr=True), said)
    return restored


def measured_setting(
    parameter: str,
    option: str,
    environment: str,
    protocol: str,
    path: str,
    values: Sequence[str],
    rounds: int,
) -> Path:
    """Measure a sweep of one setting with ReFrame, and return the report.

    Raise NetproofError for what the site or a library lacks, before anything is measured, and
    where ReFrame leaves no report.
    """
    from netproof.benchmarks import netpipe, registry
    from netproof.experiments import parameters, restoring, sweep
    from netproof.site.matrix import environments_in

    for given, known in ((protocol, netpipe.PROTOCOLS), (path, netpipe.PATHS)):
        if given not in known:
            raise NetproofError(f"unknown {given!r}; choose {' or '.join(known)}")
    where = Where.of(option, environment)
    cases = where.matrix.cases
    where.insist(
        sorted({one.environment for one in cases if registry.of(one).by_protocol}), "NetPIPE"
    )
    turned = parameters.found(parameter, values)
    there = environments_in(where.configuration, where.system)
    turned.told(protocol, there[environment]["extras"]["mpi"], path)
    tried = tuple(values) or turned.values_on(where.settings.rails)
    parameters.insist_on_values(tried)
    if turned.by_hook and not where.settings.tuning_hook:
        raise NetproofError(
            f"{turned.title} takes root: give {option} a tuning_hook in its site's file"
        )
    _restored(where)
    settings = {
        "turned": turned.name,
        "turned_protocol": protocol,
        "turned_path": path,
        "rounds": rounds,
        **({"turned_values": ",".join(values)} if values else {}),
    }
    what = f"{len(sweep.turns(tried, rounds, 1))} launches"
    try:
        return where.measure("tuning.py", settings, restoring.FOLDER, turned.name, what)
    finally:
        # A killed job could not restore it.
        _restored(where)


def measured_algorithms(
    function: str,
    option: str,
    environment: str,
    ranks: int | None,
    values: Sequence[str],
    rounds: int,
) -> Path:
    """Measure a sweep of a collective's algorithms with ReFrame, and return the report.

    Raise NetproofError as ``measured_setting``.
    """
    from netproof.benchmarks import imb, registry
    from netproof.experiments import algorithms, restoring, sweep
    from netproof.site.matrix import environments_in

    benchmark = imb.BENCHMARK.name
    where = Where.of(option, environment, full=True)
    named = environments_in(where.configuration, where.system)
    cases = where.matrix.cases
    there = sorted({case.environment for case in cases if case.benchmark == benchmark})
    why = named.get(environment, {}).get("extras", {}).get("absent", {}).get(benchmark)
    where.insist(there, registry.named(benchmark).label, f", whose site says: {why}" if why else "")
    names = algorithms.choice(named[environment]["extras"]["mpi"], function, values)
    counts = sorted({one.ranks for one in cases if one.function == function})
    if ranks is not None and ranks not in counts:
        raise NetproofError(
            f"{option} measures {function} on {', '.join(map(str, counts))} ranks, and not on"
            f" {ranks}"
        )
    settings = {
        "swept_function": function,
        "swept_ranks": ranks or 0,
        "rounds": rounds,
        **({"swept_algorithms": ",".join(values)} if values else {}),
    }
    jobs = 1 if ranks is not None else len(counts)
    what = f"{jobs * len(sweep.turns(tuple(names), rounds, 1))} launches"
    subject = f"{sweep.ALGORITHM}-{function}"
    return where.measure("algorithms.py", settings, restoring.FOLDER, subject, what)
