"""The verbs of ``measure`` but ``study``: each has ReFrame run one experiment, or reads its report.

They are no acceptance: their reports are in folders that no verdict reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from netproof.commands.options import Form, printed, refused, session_and_system, verb
from netproof.commands.reframe import Where
from netproof.errors import NetproofError

if TYPE_CHECKING:
    from netproof.present.document import Block

_PAGES = {"load": "Under load", "tails": "Single calls", "sweeps": "Tuning"}
"""Beginnings of the titles of pages."""

SHOWN, BEYOND, UNDECIDED = 0, 1, 3
"""Exit statuses: a result within its bounds, one beyond a bound, none or an inconclusive one."""


def _report(subject: str, environment: str | None, measured: Callable[[Where], Path]) -> Path:
    """Return the report that a verb's argument names, or else the one that measuring there leaves.

    Raise typer.BadParameter for a place without an environment.
    """
    report, where = session_and_system([subject])
    if report is not None:
        return report
    if environment is None:
        raise typer.BadParameter("say with what: --environment")
    return measured(Where.of(where or "", environment, full=True))


def _insist_on_number(nodes: int, least: int) -> None:
    if 0 < nodes < least:
        raise typer.BadParameter(f"--nodes: give {least} at least, or 0 for all")


def _show(
    key: str,
    several: Sequence[Any],
    answer: Callable[[Any], tuple[str, list[Block]]],
    document: Callable[[Any], dict[str, Any]],
    report: Path,
    form: Form,
    folder: Path | None = None,
) -> int:
    """Print what was measured and its figures: the answer of each, or all as a document.

    ``key``: of all in the document; ``folder``: to write a page into, None for no page. Return the
    exit status of what has bounds.
    """

    def page() -> str:
        from netproof.present.html.folder import answers_page

        return answers_page(_PAGES[key], [*map(answer, several)])

    def blocks() -> Iterator[Block]:
        from netproof.present.document import Cell

        for title, shown in map(answer, several):
            yield from (Cell(title, "strong"), *shown)
        yield f"report {report}"

    printed(form, lambda: {key: [*map(document, several)]}, blocks, folder, page)
    if any(getattr(one, "beyond", False) for one in several):
        return BEYOND
    return UNDECIDED if any(getattr(one, "undecided", False) for one in several) else SHOWN


@verb("load is inconclusive")
def load(
    subject: str,
    environment: str | None = None,
    victims: str = "all",
    aggressors: str = "all",
    nodes: int = 0,
    rounds: int = 6,
    page: Path | None = None,
    form: Form = Form.TEXT,
) -> int:
    """Measure two nodes alone and alongside others that congest, say what that costs."""

    def measured(where: Where) -> Path:
        from netproof.experiments import load, load_plan
        from netproof.experiments.load_plan import Aggressor, Victim, chosen

        several, congesting = chosen(Victim, victims), chosen(Aggressor, aggressors)
        where.insist_on_pairs()
        where.insist_on_nodes(load_plan.LEAST_NODES, load_plan.WHY)
        settings: dict[str, object] = {
            "aggressors": ",".join(congesting),
            "victims": ",".join(several),
        }
        settings |= {"most_nodes": nodes, "rounds": rounds}
        count = len(several) * len(congesting) * rounds
        what = f"{count} times alone and alongside, at each place"
        return where.measure("load.py", settings, load.FOLDER, where.partition, what)

    _insist_on_number(nodes, 4)
    report = _report(subject, environment, measured)
    from netproof.experiments.load import Loaded
    from netproof.present.loads import load_answer, load_document

    several = Loaded.of_report(report)
    return _show("load", several, load_answer, load_document, report, form, page)


@verb("tails are inconclusive")
def tails(
    subject: str,
    environment: str | None = None,
    seconds: float = 60,
    size: int = 8,
    page: Path | None = None,
    form: Form = Form.TEXT,
) -> int:
    """Time every call of a long PingPong between two nodes, name its pauses and when they were."""

    def measured(where: Where) -> Path:
        from netproof.experiments import tails

        where.insist_on_pairs()
        most = where.settings.max_message_bytes
        if size > most:
            raise NetproofError(
                f"--bytes {size}: the largest message of {where.option} is of {most} bytes"
            )
        settings = {"tails_seconds": f"{seconds:g}", "tails_bytes": size}
        what = f"single calls of {size} bytes for {seconds:g} s"
        return where.measure("load.py", settings, tails.FOLDER, where.partition, what)

    report = _report(subject, environment, measured)
    from netproof.experiments.tails import Tail
    from netproof.present.loads import tail_answer, tail_document

    several = Tail.of_report(report)
    return _show("tails", several, tail_answer, tail_document, report, form, page)


@verb("GPCNeT is inconclusive")
def gpcnet(
    subject: str,
    environment: str | None = None,
    rounds: int = 3,
    nodes: int = 0,
    form: Form = Form.TEXT,
) -> int:
    """Run GPCNeT on all nodes of a partition, say what its congestors cost its tests."""

    def measured(where: Where) -> Path:
        from netproof.experiments import gpcnet

        there, environments = where.environments, where.entry["environs"]
        having = [
            one for one in environments if gpcnet.FEATURE in there.get(one, {}).get("features", ())
        ]
        remedy = (
            f". Put GPCNeT's {gpcnet.PROGRAM} into the environment's PATH and name the feature in"
            " its site's file"
        )
        where.insist(having, f"the feature {gpcnet.FEATURE!r}", remedy)
        where.insist_on_nodes(gpcnet.LEAST_NODES, f"{gpcnet.WHY}; netproof measure load takes 4")
        settings = {"gpcnet_rounds": rounds, "gpcnet_nodes": nodes}
        what = f"GPCNeT {rounds} times, some minutes each"
        return where.measure("load.py", settings, gpcnet.FOLDER, where.partition, what)

    _insist_on_number(nodes, 10)
    report = _report(subject, environment, measured)
    from netproof.experiments.gpcnet import GpcnetRuns
    from netproof.present.loads import gpcnet_answer, gpcnet_document

    several = GpcnetRuns.of_report(report)
    return _show("gpcnet", several, gpcnet_answer, gpcnet_document, report, form)


@verb("cannot tune")
def tune(
    subject: str,
    parameter: str | None = None,
    environment: str | None = None,
    protocol: str = "tcp",
    path: str = "inter-node",
    values: str | None = None,
    rounds: int = 5,
    restore: bool = False,
    page: Path | None = None,
    form: Form = Form.TEXT,
) -> int:
    """Turn one setting, measure each value alongside the default, say which is best."""
    report, where = session_and_system([subject])
    if report is not None and (parameter is not None or restore):
        raise typer.BadParameter("a session is only read: leave PARAMETER and --restore out")
    if report is None and (where is None or (parameter is not None) is restore):
        raise typer.BadParameter("give SYSTEM:PARTITION and PARAMETER to measure, or --restore")
    if restore and where is not None:
        return _restore(where)
    given = () if values is None else values.split(",")

    def measured(place: Where) -> Path:
        return measured_setting(place, parameter or "", protocol, path, given, rounds)

    return _show_sweeps(_report(subject, environment, measured), page, form)


@verb("cannot tune")
def algorithms(
    subject: str,
    function: str | None = None,
    environment: str | None = None,
    ranks: int | None = None,
    values: str | None = None,
    rounds: int = 5,
    page: Path | None = None,
    form: Form = Form.TEXT,
) -> int:
    """Measure a collective with each algorithm of the MPI library, say which wins at which size."""
    session, _ = session_and_system([subject])
    if (session is None) is (function is None):
        raise typer.BadParameter("give SYSTEM:PARTITION and FUNCTION to measure, or only SESSION")
    given = () if values is None else values.split(",")

    def measured(where: Where) -> Path:
        return _measured_algorithms(where, function or "", ranks, given, rounds)

    return _show_sweeps(_report(subject, environment, measured), page, form)


def _show_sweeps(report: Path, page: Path | None, form: Form) -> int:
    from netproof.experiments import sweep
    from netproof.present.sweeps import answer, document

    return _show("sweeps", sweep.results(report), answer, document, report, form, page)


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

    record = restoring.record_of(folders.of_reports(), where.system, where.partition)
    restored = restoring.restore(record, where.settings.tuning_hook, where.entry["access"])
    for node, name, value in restored:
        said = f"{node}: {name} is {value} again, as before a sweep that did not end"
        terminal.say(terminal.console(stderr=True), said)
    return restored


def measured_setting(
    where: Where, parameter: str, protocol: str, path: str, values: Sequence[str], rounds: int
) -> Path:
    """Measure a sweep of one setting with ReFrame, and return the report.

    Raise NetproofError for what the site or a library lacks, before anything is measured, and
    where ReFrame leaves no report.
    """
    from netproof.benchmarks import netpipe, registry
    from netproof.experiments import parameters, restoring, sweep

    for given, known in ((protocol, netpipe.PROTOCOLS), (path, netpipe.PATHS)):
        if given not in known:
            raise NetproofError(f"unknown {given!r}; choose {' or '.join(known)}")
    cases = where.matrix.cases
    where.insist({one.environment for one in cases if registry.of(one).by_protocol}, "NetPIPE")
    turned = parameters.found(parameter, values)
    library = where.environments[where.environment]["extras"]["mpi"]
    turned.assignment(protocol, library, path)
    tried = tuple(values) or turned.values_on(where.settings.rails)
    parameters.insist_on_values(tried)
    if turned.by_hook and not where.settings.tuning_hook:
        raise NetproofError(
            f"{turned.title} takes root: give {where.option} a tuning_hook in its site's file"
        )
    _restored(where)
    settings: dict[str, object] = {
        "turned": turned.name,
        "turned_protocol": protocol,
        "turned_path": path,
    }
    settings |= {"rounds": rounds, **({"turned_values": ",".join(values)} if values else {})}
    what = f"{len(sweep.turns(tried, rounds, 1))} launches"
    try:
        return where.measure("tuning.py", settings, restoring.FOLDER, turned.name, what)
    finally:
        # A killed job could not restore it.
        _restored(where)


def _measured_algorithms(
    where: Where, function: str, ranks: int | None, values: Sequence[str], rounds: int
) -> Path:
    """Measure a sweep of a collective's algorithms; raise NetproofError as the other."""
    from netproof.benchmarks import imb, registry
    from netproof.experiments import parameters, restoring, sweep

    benchmark, named, cases = imb.BENCHMARK.name, where.environments, where.matrix.cases
    why = named.get(where.environment, {}).get("extras", {}).get("absent", {}).get(benchmark)
    where.insist(
        {case.environment for case in cases if case.benchmark == benchmark},
        registry.named(benchmark).label + (f", whose site says: {why}" if why else ""),
    )
    names = parameters.algorithms(named[where.environment]["extras"]["mpi"], function, values)
    counts = sorted({one.ranks for one in cases if one.function == function})
    if ranks is not None and ranks not in counts:
        on = ", ".join(map(str, counts))
        raise NetproofError(f"{where.option} measures {function} on {on} ranks, and not on {ranks}")
    settings = {"swept_function": function, "swept_ranks": ranks or 0, "rounds": rounds}
    settings |= {"swept_algorithms": ",".join(values)} if values else {}
    jobs = 1 if ranks is not None else len(counts)
    what = f"{jobs * len(sweep.turns(tuple(names), rounds, 1))} launches"
    subject = f"{sweep.ALGORITHM}-{function}"
    return where.measure("algorithms.py", settings, restoring.FOLDER, subject, what)
