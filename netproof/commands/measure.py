"""The verbs of ``measure``: each has ReFrame run one experiment, or reads its report.

``study`` lists earlier studies with their figures, or redoes one.

They are no acceptance: their reports are in folders that no verdict reads.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from netproof.commands.options import Form, printed, session_and_system, verb
from netproof.commands.reframe import Where, run_reframe
from netproof.errors import NetproofError
from netproof.present import documents, terminal
from netproof.present.wording import file_name
from netproof.site import folders
from netproof.verdict import FAILED, INCONCLUSIVE, PASSED

if TYPE_CHECKING:
    from netproof.experiments.experiment import Experiment
    from netproof.experiments.literature import Study
    from netproof.experiments.sweep import Sweep
    from netproof.present.document import Part
    from netproof.session.session import Session

STUDIES = "studies"
"""Folder of reports of studies in the folder of reports: no verdict reads it."""

ROUNDS = 5
"""Launches of each value of a sweep, as in `netproof measure tune`."""


def _measured(where: Where, asked: Experiment) -> Path:
    """Have ReFrame measure an experiment, and return the report.

    Raise NetproofError for what the site or a library lacks, before anything is measured, and
    where ReFrame leaves no report.
    """
    from netproof import codec
    from netproof.experiments import parameters
    from netproof.experiments.tuning import TuningAsked

    planned = where.insist(asked)
    if isinstance(asked, TuningAsked):
        _restored(where)
        record = parameters.record_of(folders.of_reports(), where.system, where.partition)
        asked = dataclasses.replace(asked, record=str(record.absolute()))
    subject, words = asked.subject or where.partition, asked.words(planned)
    options = ["--system", where.option, "-c", str(folders.shipped("checks") / "experiments.py")]
    setting = f"{asked.TEST}.asked={json.dumps(codec.encode(asked))}"
    label = f"--session-extras={asked.FOLDER}={subject}"
    options += ["-p", where.environment, "-S", setting, label]
    try:
        return run_reframe(options, f"measuring {words}", asked.FOLDER, subject)
    finally:
        if isinstance(asked, TuningAsked):
            # A killed job could not restore it.
            _restored(where)


def _answered(
    key: str,
    subject: str,
    environment: str | None,
    asked: Callable[[], Experiment],
    form: Form,
    folder: Path | None = None,
) -> int:
    """Print the answers of the report that is named, or of the one that measuring there leaves.

    ``key``: of the experiment, and of all answers in the document; ``asked``: what to measure;
    ``folder``: to write a page into, None for no page. Return the exit status of what has bounds.
    Raise typer.BadParameter for a place without an environment.
    """
    report, where = session_and_system([subject])
    if report is None:
        if environment is None:
            raise typer.BadParameter("say with what: --environment")
        report = _measured(Where.of(where or "", environment, full=True), asked())
    from netproof.present.loads import ANSWERS

    begins, of_report, answer = ANSWERS[key]
    several = of_report(report)

    answers = [*map(answer, several)]
    parts: list[Part] = [(file_name(title), title, shown) for title, shown in answers]
    parts.append(("report", "", [f"report {report}"]))
    more = f" and {len(answers) - 1} more" if len(answers) > 1 else ""
    page_title = f"{begins}: {answers[0][0]}{more}"
    printed(form, lambda: {key: documents.plain(several)}, lambda _: parts, folder, page_title)
    if any(getattr(one, "beyond", False) for one in several):
        return FAILED
    return INCONCLUSIVE if any(getattr(one, "undecided", False) for one in several) else PASSED


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

    def asked() -> Experiment:
        from netproof.experiments.load_plan import Aggressor, LoadAsked, Victim, chosen

        several, congesting = chosen(Victim, victims), chosen(Aggressor, aggressors)
        return LoadAsked(victims=several, aggressors=congesting, rounds=rounds, nodes=nodes)

    return _answered("load", subject, environment, asked, form, page)


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

    def asked() -> Experiment:
        from netproof.experiments.tails import TailsAsked

        return TailsAsked(seconds=seconds, bytes=size)

    return _answered("tails", subject, environment, asked, form, page)


@verb("GPCNeT is inconclusive")
def gpcnet(
    subject: str,
    environment: str | None = None,
    rounds: int = 3,
    nodes: int = 0,
    form: Form = Form.TEXT,
) -> int:
    """Run GPCNeT on all nodes of a partition, say what its congestors cost its tests."""

    def asked() -> Experiment:
        from netproof.experiments.gpcnet import GpcnetAsked

        return GpcnetAsked(rounds=rounds, nodes=nodes)

    return _answered("gpcnet", subject, environment, asked, form)


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
        if not _restored(Where.of(where)):
            terminal.say(f"{where}: nothing is left to restore")
        return 0

    def asked() -> Experiment:
        from netproof.experiments.tuning import TuningAsked

        given = () if values is None else tuple(values.split(","))
        return TuningAsked(
            parameter=parameter or "", protocol=protocol, path=path, values=given, rounds=rounds
        )

    return _answered("sweeps", subject, environment, asked, form, page)


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

    def asked() -> Experiment:
        from netproof.experiments.tuning import AlgorithmsAsked

        given, named = () if values is None else tuple(values.split(",")), function or ""
        return AlgorithmsAsked(function=named, ranks=ranks or 0, values=given, rounds=rounds)

    return _answered("sweeps", subject, environment, asked, form, page)


def _restored(where: Where) -> tuple[tuple[str, str, str], ...]:
    """Restore what an earlier sweep left changed on a partition; NetproofError if not possible."""
    from netproof.experiments import parameters

    record = parameters.record_of(folders.of_reports(), where.system, where.partition)
    restored = parameters.restore(
        record, where.settings.tuning_hook, where.matrix.entries[where.partition]["access"]
    )
    for node, name, value in restored:
        said = f"{node}: {name} is {value} again, as before a sweep that did not end"
        terminal.say(said, stderr=True)
    return restored


@verb("no study")
def study(
    name: str | None = None,
    arguments: list[str] | None = None,
    listing: bool = False,
    store: Path | None = None,
    sweeps: list[Path] | None = None,
    environment: str | None = None,
    folder: Path | None = None,
) -> int:
    """Write a page that redoes an earlier study, or list studies."""
    if listing:
        session, found = session_and_system([*([name] if name else []), *(arguments or ())])
        return _list(found, session)
    if name is None:
        raise typer.BadParameter("name a study: netproof measure study --list has them")
    session, where = session_and_system(arguments, store)
    if where is not None and (session is not None or sweeps):
        raise typer.BadParameter("SYSTEM:PARTITION measures: leave SESSION and --sweep out")
    if where is None and environment is not None:
        raise typer.BadParameter("--environment goes with SYSTEM:PARTITION")
    if where is None and session is None:
        session, _ = session_and_system((), newest=True)
    from netproof.experiments import literature

    redone = literature.load(name)
    if not redone.page:
        raise NetproofError(f"{name}: its file has no page, which says what to show")
    from netproof.experiments import parameters
    from netproof.present import studies
    from netproof.present.html.folder import beside, write_page
    from netproof.present.html.report import Report
    from netproof.verdict import session_verdict

    if where is not None:
        Where.of(where)
        # ReFrame matches names without their spaces.
        pattern = f"^({'|'.join(checks(redone))})(%|$)"
        options = ["--system", where, "-c", str(folders.shipped("checks")), "-n", pattern]
        options.append(f"--session-extras=study={redone.name}")
        session = run_reframe(options, f"measuring the study {redone.name}", STUDIES, redone.name)
    measured = session_verdict.find(session, store)
    if where is None:
        shown, faults = _results(redone, measured, sweeps or ())
    else:
        shown, faults = _swept(redone, where, environment)
    not_swept = {
        one: f"{parameters.of(one).title}: no sweep of it was measured; `netproof measure tune"
        f" SYSTEM:PARTITION {one} -p ENVIRONMENT` measures one"
        for one in redone.sweeps
    } | faults
    with terminal.working("judging the session"):
        gathered = Report(session_verdict.judge_session(measured, system=where, store=store))
    page = write_page(
        folder or beside(measured.path, name),
        lambda: studies.page(gathered, redone, shown, not_swept),
    )
    swept = {one.parameter for one in shown}
    lines = [f"session {measured.path}", *(f"sweep of {one.title}: {one.case}" for one in shown)]
    lines += [f"not swept: {why}" for name, why in not_swept.items() if name not in swept]
    terminal.show([*lines, f"page {page}"])
    return 0


def _list(study: str | None, report: Path | None) -> int:
    """Show the figures of one study or of all, alongside those of a session."""
    from netproof.experiments.literature import SessionInStudy, load, names
    from netproof.present.studies import blocks

    alongside = None
    if report is not None:
        from netproof.session import session

        with terminal.working(f"reading {report}"):
            alongside = SessionInStudy(session.load(report))
    for name in [study] if study else names():
        terminal.show(blocks(load(name), alongside))
    return 0


def _results(
    study: Study, found: Session, reports: Sequence[Path]
) -> tuple[list[Sweep], dict[str, str]]:
    """Return the page's sweeps with their results: of these reports, or the newest.

    Then why the newest of a setting has no result.
    """
    from netproof.experiments import parameters, sweep
    from netproof.session.session import folder_of

    if reports:
        return [one for path in reports for one in sweep.results(path)], {}
    folder = folder_of(folders.of_reports(), parameters.FOLDER)
    results: list[Sweep] = []
    faults: dict[str, str] = {}
    for system in sorted({result.system for result in found.results}):
        several, of_system = sweep.newest(folder, system, study.sweeps)
        results += several
        faults |= of_system
    return results, faults


def checks(study: Study) -> tuple[str, ...]:
    """Return the classes of ``checks/`` that measure what a study's page draws."""
    from netproof.benchmarks import registry

    functions = {one for part in study.page for one in (*part.functions, *part.scores)}
    with_netpipe = any(part.netpipe is not None or part.tables for part in study.page)
    return tuple(
        registry.check_name(benchmark.name, function.name)
        for benchmark in registry.STARTED
        for function in benchmark.functions
        if function.name in functions or (benchmark.by_protocol and with_netpipe)
    )


def _swept(study: Study, where: str, environment: str | None) -> tuple[list[Sweep], dict[str, str]]:
    """Measure the study's sweeps now; return them, and why one has no result."""
    from netproof.experiments import parameters, sweep
    from netproof.experiments.parameters import MPI, TCP
    from netproof.experiments.tuning import TuningAsked

    found: list[Sweep] = []
    faults: dict[str, str] = {}
    for name in study.sweeps:
        parameter = parameters.of(name)
        protocol = TCP if parameter.over_tcp is not None or parameter.by_hook else MPI
        try:
            if environment is None:
                raise NetproofError("say with which environment: --environment")
            asked = TuningAsked(parameter=name, protocol=protocol, rounds=ROUNDS)
            found += sweep.results(_measured(Where.of(where, environment), asked))
        except NetproofError as error:
            faults[name] = f"{parameter.title}: {error}"
    return found, faults
