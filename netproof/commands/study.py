"""The body of ``netproof study``: an earlier study, repeated on the system at hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from netproof.benchmarks import registry
from netproof.commands import labelled, tune
from netproof.commands.report import alongside, assemble, write_page
from netproof.errors import NetproofError
from netproof.present import tables
from netproof.present.html import study_page
from netproof.session import session
from netproof.session.labelled import folder_of
from netproof.session.session import Session
from netproof.site import shipped
from netproof.studies import literature
from netproof.studies.study import Study
from netproof.tuning import kept_sweeps, parameters, restoring
from netproof.tuning.gains import Tuned
from netproof.tuning.parameters import MPI, TCP
from netproof.tuning.sweep import Sweep
from netproof.verdict import judging
from netproof.verdict.exit_status import CANNOT_JUDGE

FOLDER = "studies"
"""Folder of reports of studies in the folder of reports: no verdict reads it."""

ROUNDS = 5
"""Launches of each value of a sweep, as in `netproof tune`."""


def run(
    name: str,
    *,
    report: Path | None,
    store: Path | None,
    sweeps: Sequence[Path],
    folder: Path | None,
    where: str | None,
    environment: str | None,
) -> int:
    """Write the page on a study and return the exit status: 0 written, 2 not possible.

    ``report`` and ``store`` as ``judging.find`` takes them; ``sweeps``: reports of ``netproof
    tune``, else the newest of each setting that the study varied; ``where``: a partition on which
    all of the study is measured first, the sweeps with this ``environment``.
    """
    try:
        study = literature.load(name)
        if not study.page:
            raise NetproofError(f"{name}: its file has no page, which says what to show")
        not_swept: dict[str, str] = {}
        if where is not None:
            report = _measured(study, where)
            shown = _swept(study, where, environment, not_swept)
        found = judging.find(report, store)
        if where is None:
            shown = _results(study, found, sweeps, not_swept)
        for one in study.sweeps:
            not_swept.setdefault(one, _how_to(one))
        with tables.working("judging the session"):
            gathered = assemble(judging.judge_session(found, system=where, store=store))
        target = folder or alongside(found.path, name)
        page = write_page(
            target, lambda scripts: study_page.page(gathered, study, shown, not_swept, scripts)
        )
    except NetproofError as error:
        tables.say(tables.console(stderr=True), f"netproof: no study: {error}", "red")
        return CANNOT_JUDGE
    out = tables.console()
    tables.say(out, f"session {found.path}")
    for one, _ in shown:
        tables.say(out, f"sweep of {one.title}: {one.case}")
    swept = {one.parameter for one, _ in shown}
    for parameter, why in not_swept.items():
        if parameter not in swept:
            tables.say(out, f"not swept: {why}")
    tables.say(out, f"page {page}")
    return 0


def _how_to(name: str) -> str:
    title = parameters.found(name, ("value",)).title
    return (
        f"{title}: no sweep of it was measured; `netproof tune {name} --system SYSTEM:PARTITION"
        " -p ENVIRONMENT` measures one"
    )


def _results(
    study: Study, found: Session, reports: Sequence[Path], not_swept: dict[str, str]
) -> list[tuple[Sweep, Tuned]]:
    """Return the page's sweeps with their results: of these reports, or the newest.

    Adds to ``not_swept`` why the newest of a setting has no result.
    """
    if reports:
        return [one for path in reports for one in tune.results_in(path)]
    folder = folder_of(judging.reports_folder(), restoring.FOLDER)
    results: list[tuple[Sweep, Tuned]] = []
    for system in sorted({result.system for result in found.results}):
        several, faults = kept_sweeps.newest(folder, system, study.sweeps)
        results += several
        not_swept |= faults
    return results


def checks(study: Study) -> tuple[str, ...]:
    """Return the classes of ``checks/`` that measure what a study's page draws."""
    functions = {one for part in study.page for one in (*part.functions, *part.scores)}
    with_netpipe = any(part.netpipe is not None or part.tables for part in study.page)
    return tuple(
        registry.check_name(benchmark.name, function.name)
        for benchmark in registry.STARTED
        for function in benchmark.functions
        if function.name in functions or (benchmark.by_protocol and with_netpipe)
    )


def _measured(study: Study, where: str) -> Path:
    """Measure the study's cases on a partition, and return the report's path."""
    labelled.place(where)
    folder = folder_of(judging.reports_folder(), FOLDER)
    report = folder / f"run-{study.name}-{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
    # ReFrame matches names without their spaces.
    pattern = f"^({'|'.join(checks(study))})(%|$)"
    arguments = ["--system", where, "-c", str(shipped.folder("checks")), "-n", pattern]
    labelled.reframe(
        [*arguments, f"--session-extras=study={study.name}"], report, f"the study {study.name}"
    )
    session.load(report)
    return report


def _swept(
    study: Study, where: str, environment: str | None, not_swept: dict[str, str]
) -> list[tuple[Sweep, Tuned]]:
    """Measure the study's sweeps now; add to ``not_swept`` why one has no result."""
    found: list[tuple[Sweep, Tuned]] = []
    for name in study.sweeps:
        parameter = parameters.BY_NAME[name]
        protocol = TCP if parameter.over_tcp is not None or parameter.by_hook else MPI
        try:
            if environment is None:
                raise NetproofError("say with which environment: --environment")
            report = tune.measured(name, where, environment, protocol, "between", (), ROUNDS)
            found += tune.results_in(report)
        except NetproofError as error:
            not_swept[name] = f"{parameter.title}: {error}"
    return found
