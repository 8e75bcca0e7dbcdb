"""The verb ``measure study``: list earlier studies with their figures, or redo one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from netproof.commands.measure import measured_setting
from netproof.commands.options import session_and_system, verb
from netproof.commands.reframe import Where, run_reframe
from netproof.errors import NetproofError
from netproof.site import folders

if TYPE_CHECKING:
    from netproof.experiments.literature import Study
    from netproof.experiments.sweep import Sweep
    from netproof.session.session import Session

FOLDER = "studies"
"""Folder of reports of studies in the folder of reports: no verdict reads it."""

ROUNDS = 5
"""Launches of each value of a sweep, as in `netproof measure tune`."""


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
    from netproof.present import studies, terminal
    from netproof.present.html.folder import beside, write_page
    from netproof.present.html.report import Report
    from netproof.verdict import session_verdict

    not_swept: dict[str, str] = {}
    if where is not None:
        Where.of(where)
        # ReFrame matches names without their spaces.
        pattern = f"^({'|'.join(checks(redone))})(%|$)"
        options = ["--system", where, "-c", str(folders.shipped("checks")), "-n", pattern]
        options.append(f"--session-extras=study={redone.name}")
        session = run_reframe(options, f"measuring the study {redone.name}", FOLDER, redone.name)
    measured = session_verdict.find(session, store)
    if where is None:
        shown = _results(redone, measured, sweeps or (), not_swept)
    else:
        shown = _swept(redone, where, environment, not_swept)
    for one in redone.sweeps:
        title = parameters.found(one, ("value",)).title
        not_swept.setdefault(
            one,
            f"{title}: no sweep of it was measured; `netproof measure tune SYSTEM:PARTITION"
            f" {one} -p ENVIRONMENT` measures one",
        )
    with terminal.working("judging the session"):
        gathered = Report(session_verdict.judge_session(measured, system=where, store=store))
    page = write_page(
        folder or beside(measured.path, name),
        lambda: studies.page(gathered, redone, shown, not_swept),
    )
    out = terminal.console()
    terminal.say(out, f"session {measured.path}")
    for swept_one in shown:
        terminal.say(out, f"sweep of {swept_one.title}: {swept_one.case}")
    swept = {one.parameter for one in shown}
    for parameter, why in not_swept.items():
        if parameter not in swept:
            terminal.say(out, f"not swept: {why}")
    terminal.say(out, f"page {page}")
    return 0


def _list(study: str | None, report: Path | None) -> int:
    """Show the figures of one study or of all, alongside those of a session."""
    from netproof.experiments.literature import SessionInStudy, load, names
    from netproof.present import terminal
    from netproof.present.document import show
    from netproof.present.studies import blocks

    alongside = None
    if report is not None:
        from netproof.session import session

        with terminal.working(f"reading {report}"):
            alongside = SessionInStudy(session.load(report))
    for name in [study] if study else names():
        show(blocks(load(name), alongside), terminal.console())
    return 0


def _results(
    study: Study, found: Session, reports: Sequence[Path], not_swept: dict[str, str]
) -> list[Sweep]:
    """Return the page's sweeps with their results: of these reports, or the newest.

    Adds to ``not_swept`` why the newest of a setting has no result.
    """
    from netproof.experiments import restoring, sweep
    from netproof.session.labelled import folder_of

    if reports:
        return [one for path in reports for one in sweep.results(path)]
    folder = folder_of(folders.of_reports(), restoring.FOLDER)
    results: list[Sweep] = []
    for system in sorted({result.system for result in found.results}):
        several, faults = sweep.newest(folder, system, study.sweeps)
        results += several
        not_swept |= faults
    return results


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


def _swept(
    study: Study, where: str, environment: str | None, not_swept: dict[str, str]
) -> list[Sweep]:
    """Measure the study's sweeps now; add to ``not_swept`` why one has no result."""
    from netproof.experiments import sweep
    from netproof.experiments.parameters import BY_NAME, MPI, TCP

    found: list[Sweep] = []
    for name in study.sweeps:
        parameter = BY_NAME[name]
        protocol = TCP if parameter.over_tcp is not None or parameter.by_hook else MPI
        try:
            if environment is None:
                raise NetproofError("say with which environment: --environment")
            place = Where.of(where, environment)
            report = measured_setting(place, name, protocol, "inter-node", (), ROUNDS)
            found += sweep.results(report)
        except NetproofError as error:
            not_swept[name] = f"{parameter.title}: {error}"
    return found
