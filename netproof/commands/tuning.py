"""The verbs ``measure tune`` and ``measure algorithms``: what is swept to find the best value."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from netproof.commands.measure import Where, WhereArgument, place_or_report, show
from netproof.commands.options import (
    EnvironmentOption,
    Form,
    FormatOption,
    PageOption,
    refused,
    session_and_system,
    verb,
)
from netproof.errors import NetproofError

if TYPE_CHECKING:
    from netproof.experiments.gains import SweepTable
    from netproof.experiments.sweep import Sweep


ValuesOption = Annotated[
    str | None, typer.Option("--values", metavar="A,B,...", help="Instead of its own values.")
]

RoundsOption = Annotated[
    int, typer.Option("--rounds", min=3, help="How often each value is launched.")
]


@verb(
    "cannot tune",
    "measure tune mycluster:ib socket-buffer -p openmpi",
    "measure tune mycluster:ib --restore",
)
def tune(
    subject: WhereArgument,
    parameter: Annotated[
        str | None,
        typer.Argument(
            help="What to turn: socket-buffer, eager-limit, rails, mtu, coalescing, or an"
            " environment variable."
        ),
    ] = None,
    environment: EnvironmentOption = None,
    protocol: Annotated[
        str, typer.Option("--protocol", metavar="tcp|mpi", help="Over what NetPIPE measures.")
    ] = "tcp",
    path: Annotated[
        str,
        typer.Option(
            "--path", metavar="inter-node|intra-node", help="Between two nodes, or inside one."
        ),
    ] = "inter-node",
    values: ValuesOption = None,
    rounds: RoundsOption = 5,
    restore: Annotated[
        bool,
        typer.Option(
            "--restore", help="Only restore what a sweep that was killed left changed on nodes."
        ),
    ] = False,
    page: PageOption = None,
    form: FormatOption = Form.TEXT,
) -> int:
    """Turn one setting, measure each value alongside the default, say which is best."""
    report, where = session_and_system([subject])
    if report is not None:
        if parameter is not None or restore:
            raise typer.BadParameter("a session is only read: leave PARAMETER and --restore out")
        return _show(report, page, form)
    if where is None or (parameter is not None) is restore:
        raise typer.BadParameter("give SYSTEM:PARTITION and PARAMETER to measure, or --restore")
    if parameter is None:
        return _restore(where)
    if environment is None:
        raise typer.BadParameter("say with what: --environment")
    given = () if values is None else values.split(",")
    report = measured_setting(parameter, where, environment, protocol, path, given, rounds)
    return _show(report, page, form)


@verb("cannot tune", "measure algorithms mycluster:ib Allreduce -p openmpi --ranks 16")
def algorithms(
    subject: WhereArgument,
    function: Annotated[
        str | None, typer.Argument(help="The collective of IMB, Allreduce for instance.")
    ] = None,
    environment: EnvironmentOption = None,
    ranks: Annotated[
        int | None,
        typer.Option("--ranks", help="One rank count of the partition instead of all."),
    ] = None,
    values: ValuesOption = None,
    rounds: RoundsOption = 5,
    page: PageOption = None,
    form: FormatOption = Form.TEXT,
) -> int:
    """Measure a collective with each algorithm of the MPI library, say which wins at which size."""
    report = place_or_report(subject, environment)
    if isinstance(report, Path) is (function is not None):
        raise typer.BadParameter("give SYSTEM:PARTITION and FUNCTION to measure, or only SESSION")
    if not isinstance(report, Path):
        given = () if values is None else values.split(",")
        report = measured_algorithms(function or "", *report, ranks, given, rounds)
    return _show(report, page, form)


def _show(report: Path, page: Path | None, form: Form) -> int:
    """Print the sweeps of a report, of a setting or of algorithms."""
    from netproof.present.sweeps import answer, document

    return show(results_in(report), report, "Tuning", answer, document, page, form)


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
    from netproof.present import terminal

    try:
        restored = _restored(Where.of(option))
    except NetproofError as error:
        return refused("cannot restore", error)
    if not restored:
        terminal.say(terminal.console(), f"{option}: nothing is left to restore")
    return 0


def _restored(where: Where) -> tuple[tuple[str, str, str], ...]:
    """Restore what an earlier sweep left changed on a partition; NetproofError if not possible."""
    from netproof.experiments import restoring
    from netproof.present import terminal
    from netproof.site import folders
    from netproof.site.matrix import partitions_in

    access = partitions_in(where.configuration, where.system)[where.partition]["access"]
    record = restoring.record_of(folders.of_reports(), where.system, where.partition)
    restored = restoring.restore(record, where.settings.tuning_hook, access)
    for node, name, value in restored:
        said = f"{node}: {name} is {value} again, as before a sweep that did not end"
        terminal.say(terminal.console(stderr=True), said)
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
    where = Where.of(option, environment)
    from netproof.benchmarks import netpipe, registry
    from netproof.experiments import parameters, restoring, sweep
    from netproof.site.matrix import environments_in

    for given, known in ((protocol, netpipe.PROTOCOLS), (path, netpipe.PATHS)):
        if given not in known:
            raise NetproofError(f"unknown {given!r}; choose {' or '.join(known)}")
    cases = where.matrix.cases
    where.insist(
        sorted({one.environment for one in cases if registry.of(one).by_protocol}), "NetPIPE"
    )
    turned = parameters.found(parameter, values)
    there = environments_in(where.configuration, where.system)
    turned.assignment(protocol, there[environment]["extras"]["mpi"], path)
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
    where = Where.of(option, environment, full=True)
    from netproof.benchmarks import imb, registry
    from netproof.experiments import algorithms, restoring, sweep
    from netproof.site.matrix import environments_in

    benchmark = imb.BENCHMARK.name
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
