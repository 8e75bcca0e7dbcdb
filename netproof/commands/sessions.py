"""The verbs on sessions and output files: verdict, report, diagnose, compare and judge.

Two sides are compared, or every value of a dimension against the first one: the partition, the
environment, or a label of stored sessions. Everything else is held fixed, since a case's
counterpart has all of it in common.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from netproof.commands.options import (
    Form,
    VerdictForm,
    alongside,
    insist_on_reports,
    printed,
    session_and_system,
    verb,
)
from netproof.commands.reframe import Where, run_reframe
from netproof.errors import NetproofError
from netproof.measurement.links import Transport
from netproof.present import documents, terminal
from netproof.site import folders
from netproof.verdict import EARLIER_SESSIONS, MAX_AGE_DAYS, SESSIONS

if TYPE_CHECKING:
    from netproof.history.series import Nights
    from netproof.present.document import Part
    from netproof.session.session import Session
    from netproof.store import Store

PAIRS = "pairs.py"


@verb("cannot judge")
def verdict(
    arguments: list[str] | None = None,
    store: Path | None = None,
    full: bool = False,
    everything: bool = False,
    with_stored: bool = False,
    max_age: float = MAX_AGE_DAYS,
    leave_out_marked: bool = False,
    fold: Annotated[
        int,
        typer.Option(
            min=0,
            max=EARLIER_SESSIONS,
            metavar="N",
            help="Warnings that each of the last N sessions had, 3 at least, are one line; 0: none"
            " is.",
        ),
    ] = SESSIONS,
    again: bool = False,
    power: bool = False,
    form: VerdictForm = VerdictForm.TEXT,
) -> int:
    """Print the verdict on a session."""
    asked = alongside(with_stored, store, max_age, leave_out_marked)
    if again and asked is not None:
        raise typer.BadParameter("--again and --with-stored do not go together")
    if power and form is VerdictForm.JUNIT:
        raise typer.BadParameter("--power is not part of JUnit's XML")
    session, system = session_and_system(arguments, store, newest=True)
    from netproof.present.verdict import brief, changes, junit, power_blocks
    from netproof.verdict import session_verdict

    as_json = form is VerdictForm.JSON
    with terminal.working("judging the session"):
        judged = session_verdict.judge_session(
            session_verdict.find(session, store, lazily=not (as_json or power or everything)),
            system=system,
            full=full,
            asked=asked,
            fold=fold,
            store=store,
            again=again,
        )
    if form is VerdictForm.JUNIT:
        info, system = judged.session.info, judged.matrix.cases[0].system
        began = datetime.fromtimestamp(info.get("time_start_unix", 0), UTC).isoformat()
        seconds = info.get("time_elapsed", 0)
        sys.stdout.buffer.write(junit(system, judged.verdict, began, seconds))
        return judged.verdict.status
    powers = []
    if power:
        with terminal.working("changing each case until it fails"):
            powers = session_verdict.power_of(judged)

    def document() -> dict[str, Any]:
        changed = [
            {**documents.plain(case), "launches": launches, "changes": documents.plain(smallest)}
            for case, launches, smallest in powers
        ]
        return {**documents.of_judged(judged), **({"power": changed} if power else {})}

    def parts(_: bool) -> Iterator[Part]:
        if everything:
            # It loads what only the comparisons and costs take.
            from netproof.present.html.report import Report
            from netproof.present.session import whole

            yield from whole(Report(judged))
        else:
            yield "verdict", "", [*brief(judged)]
        yield "more", "", [changes(judged)] if again else []
        yield "power", "", [*power_blocks(powers)] if power else []

    printed(form, document, parts)
    return judged.verdict.status


@verb("no report")
def report(
    arguments: list[str] | None = None,
    store: Path | None = None,
    full: bool = False,
    with_stored: bool = False,
    max_age: float = MAX_AGE_DAYS,
    leave_out_marked: bool = False,
    folder: Path | None = None,
    formats: str = "html",
    switch: str | None = None,
    power: bool = False,
) -> int:
    """Write pages and charts on a session."""
    asked = alongside(with_stored, store, max_age, leave_out_marked)
    session, system = session_and_system(arguments, store, newest=True)
    from netproof.present.html.folder import beside
    from netproof.present.html.page import write
    from netproof.present.html.report import FORMATS, HTML, MAIN, Report
    from netproof.verdict import session_verdict

    wanted = tuple(dict.fromkeys(name.strip().lower() for name in formats.split(",")))
    unknown = [name for name in wanted if name not in FORMATS]
    if unknown:
        raise NetproofError(
            f"--format {formats}: unknown format {', '.join(map(repr, unknown))}; choose"
            f" {', '.join(FORMATS)}, with commas between them"
        )
    with terminal.working("judging the session"):
        judged = session_verdict.judge_session(
            session_verdict.find(session, store), system=system, full=full, asked=asked, store=store
        )
    target = folder or beside(judged.session.path, "report")
    name = session or judged.session.path
    again = ["netproof", "report", str(name), *([system] if system else [])]
    again += ["--store", str(store)] if store and (asked or not name.is_file()) else []
    again += ["--full"] if full else []
    if asked:
        again += ["--with-stored", "--max-age", f"{max_age:g}"]
        again += ["--leave-out-marked"] if leave_out_marked else []
    again += ["--switch", switch] if switch else []
    again += ["--format", formats] if formats != "html" else []
    again += ["--power"] if power else []
    with terminal.working("gathering what the report shows"):
        nights = _nights(store, judged.matrix.cases[0].system)
        gathered = Report(judged, wanted, shlex.join(again), switch, power, nights)
    write(gathered, target)
    shown = target / (MAIN if HTML in wanted else "charts")
    terminal.say(f"report {shown}")
    return 0


def _nights(store: Path | None, system: str) -> Nights | None:
    """Return the series of a system's stored sessions; None without any that can be read."""
    if store is None or not store.is_dir():
        return None
    from netproof.history import history_verdict
    from netproof.store import Store

    try:
        return history_verdict.judge(Store(store), system).nights
    except NetproofError:
        # Its own verb says what is wrong with it.
        return None


@verb("cannot diagnose")
def diagnose(
    arguments: list[str] | None = None,
    store: Path | None = None,
    back: int = EARLIER_SESSIONS,
    measure: bool = False,
    form: Form = Form.TEXT,
) -> int:
    """Say what is wrong, where, since when."""
    session, system = session_and_system(arguments, store, newest=not measure)
    name, _, partition = (system or "").partition(":")
    if measure and session is not None:
        raise typer.BadParameter("--measure makes a session of its own: leave SESSION out")
    if measure and not partition:
        raise typer.BadParameter("--measure takes SYSTEM:PARTITION")
    from netproof.diagnosis import diagnosis
    from netproof.present.diagnosis import blocks
    from netproof.verdict import session_verdict

    if measure:
        Where.of(system or "")
        asked = ["--system", system or "", "-c", str(folders.shipped("checks") / PAIRS)]
        session = run_reframe(asked, "measuring rounds of pairs", "", "pairs")
    # ci/activate names the folder of a store that only the first session makes.
    known = store
    if store is not None and os.environ.get("NETPROOF_STORE") == str(store) and not store.exists():
        known = None
    with terminal.working("judging the session"):
        found = session_verdict.find(session, store)
        measured = {one.case.partition for one in found.results if one.case is not None}
        # What else the session measured is compared with the partition.
        expected = system if measured <= {partition} else name or None
        judged = session_verdict.judge_session(found, system=expected, fold=0)
        earlier = diagnosis.sessions_before(judged, known, back)
        diagnoses = diagnosis.diagnose(judged, partition or None, earlier)
    printed(
        form,
        lambda: {**documents.of_session(judged), "partitions": documents.plain(diagnoses)},
        lambda _: [
            *(("partition", "", [*blocks(one)]) for one in diagnoses),
            ("session", "", [f"session {judged.session.path}"]),
        ],
    )
    return diagnosis.status(diagnoses)


Pair = tuple[str, str]

LABEL = "label="


@verb("cannot compare")
def compare(
    first: Path | None = None,
    second: Path | None = None,
    store: Path | None = None,
    label: tuple[str, str] | None = None,
    partition: tuple[str, str] | None = None,
    environment: tuple[str, str] | None = None,
    by: str | None = None,
    page: Path | None = None,
    form: Form = Form.TEXT,
) -> int:
    """Compare sessions, partitions or environments."""
    if by is None:
        insist_on_reports([name for name in (first, second) if name is not None], store)
    elif second is not None or label is not None:
        raise typer.BadParameter("takes one session, and no --label", param_hint="--by")

    with terminal.working("reading the sessions"):
        held: dict[str, Pair | None] = {"partition": partition, "environment": environment}
        values, asked = {}, {}
        if by is None:
            asked[""] = (_sessions(first, second, store, label), {**held, "label": label})
        else:
            values = _values(by, first, store, held)
            (earliest, before), *others = values.items()
            for value, after in others:
                pairs = {**held, "label": None, by.partition("=")[0]: (earliest, value)}
                asked[value] = ((before, after), pairs)
    from netproof.comparison import comparison
    from netproof.present import compared

    several, failed = [], {}
    for name, (sessions, pairs) in asked.items():
        try:
            tracked = partial(terminal.tracked, what="comparing")
            sides = comparison.sides(*sessions, *pairs.values())
            several.append(comparison.compare(*sides, tracked))
        except NetproofError as error:
            failed[name] = str(error)
    if not several:
        raise NetproofError("; ".join(failed.values()))

    def document() -> dict[str, Any]:
        documents = list(map(compared.document, several))
        if by is None:
            return documents[0]
        of_all = {"comparisons": documents, "not_compared": failed}
        return {"by": by, "values": list(values), **of_all}

    printed(
        form,
        document,
        lambda drawn: compared.parts(several, failed, every=by is not None, drawn=drawn),
        page,
        f"By {by}: {', '.join(values)}"
        if by
        else f"{several[0].second.name} against {several[0].first.name}",
    )
    return 0


def _sessions(
    first: Path | None, second: Path | None, store: Path | None, labels: Pair | None
) -> tuple[Session, Session | None]:
    if labels:
        if first is not None:
            raise NetproofError("name sessions or labels, not both")
        opened = _labels_in(store)
        from netproof.store import questions

        one, other = (questions.with_label(opened, label) for label in labels)
        return questions.load(opened, one), questions.load(opened, other)
    if first is None:
        raise NetproofError("name a session, or two with --label")
    from netproof.verdict import session_verdict

    found = session_verdict.find(first, store)
    return found, None if second is None else session_verdict.find(second, store)


def _labels_in(store: Path | None) -> Store:
    if store is None:
        raise NetproofError("labels are looked up in a store: name it with --store")
    from netproof.store import Store

    return Store(store)


def _values(
    by: str, name: Path | None, store: Path | None, held: Mapping[str, Pair | None]
) -> dict[str, Session]:
    """Return the session of each value of a dimension, in order; at least two."""
    for option, pair in held.items():
        if pair and (pair[0] != pair[1] or by == option):
            raise NetproofError(
                f"--{option} {' '.join(pair)}: what is compared is by {by}; --{option} can hold"
                " another dimension fixed, the same value twice"
            )
    if by.startswith(LABEL):
        if name is not None:
            raise NetproofError("by a label the store's sessions are compared; name none")
        opened, label = _labels_in(store), by.removeprefix(LABEL)
        from netproof.store import questions

        newest = questions.labelled(opened, label).items()
        sessions = {f"{label}={value}": questions.load(opened, one) for value, one in newest}
    elif by in held:
        if name is None:
            raise NetproofError(f"by {by} one session is looked at: name it")
        stored, _ = _sessions(name, None, store, None)
        cases = [result.case for result in stored.results if result.case is not None]
        sessions = dict.fromkeys((getattr(case, by) for case in cases), stored)
    else:
        raise NetproofError(f"{by!r} is no dimension: partition, environment, or label=KEY")
    if len(sessions) < 2:
        only = f"one {by} only, {next(iter(sessions))}" if sessions else "no case to compare"
        raise NetproofError(f"there is {only}")
    return sessions


@verb("cannot judge")
def judge(
    files: list[Path],
    against: list[Path] | None = None,
    parse: bool = False,
    pattern: str | None = None,
    names: Path | None = None,
    baseline: str | None = None,
    link: str | None = None,
    mtu: int | None = None,
    transport: Transport = Transport.TCP,
    least: str | None = None,
    fail_above: str | None = None,
    bidirectional: bool = False,
    printed_by: str | None = None,
    page: Path | None = None,
    form: Form = Form.TEXT,
) -> int:
    """Judge output files from any harness."""
    from netproof.verdict import file_names

    if parse:
        judges = against, pattern, names, baseline, link, least, fail_above, page
        if any(judges) or form is Form.JSON:
            raise typer.BadParameter(
                "--parse judges nothing: only --bidirectional and --from go with it"
            )
        return _parse(file_names.files_in(files), bidirectional, printed_by)
    there = [*files, *(against or [])]
    missing = [path for path in there if not path.exists()]
    if missing and (against or missing == there):
        raise NetproofError(f"{missing[0]}: is not there")
    from netproof.benchmarks.outputs import form as form_of
    from netproof.present import judged_files
    from netproof.verdict import files as outputs

    if pattern is not None and names is not None:
        raise NetproofError("--as and --names both say what is a configuration: give one")
    if against and (names is not None or baseline is not None):
        raise NetproofError("--against names two sets: --names and --baseline are for other ones")
    if baseline is not None and pattern is None and names is None:
        raise NetproofError("--baseline names a configuration: --as or --names says what is one")
    of_path = None if pattern is None else file_names.Pattern(pattern, of_sets=bool(against))
    if of_path is not None:
        of_path.insist_on_one(file_names.files_in(there))
    sets = file_names.Sets(files, against, of_path) if against else None
    named = sets or (of_path if names is None else file_names.NameList(names))
    if link is None and (mtu is not None or transport is not Transport.TCP):
        raise NetproofError("--mtu and --transport are of a link: give its rate with --link")
    if least is not None and link is None:
        raise NetproofError("--least is a share of the line rate: give the link's with --link")
    if fail_above is not None and named is None:
        raise NetproofError("--fail-above compares: --against, --as or --names says what with what")
    with terminal.working(f"reading {len(files)} files"):
        judged = outputs.judge(
            file_names.files_in(files) if sets is None else sets.paths,
            named=named,
            bidirectional=bidirectional,
            form=None if printed_by is None else form_of(printed_by),
            link=None if link is None else outputs.link(link, mtu, transport),
            least_share=None if least is None else outputs.share(least),
            baseline=baseline,
            fail_above=None if fail_above is None else outputs.share(fail_above, "--fail-above"),
        )
    printed(
        form,
        lambda: documents.plain(judged),
        lambda drawn: judged_files.parts(judged, drawn=drawn),
        page,
        judged_files.title(judged),
    )
    return judged.status


def _parse(files: list[Path], bidirectional: bool, printed_by: str | None) -> int:
    """Print the contents of benchmark outputs as JSON; return 2 if a file is faulty."""
    import json

    from netproof.benchmarks import outputs

    form = None if printed_by is None else outputs.form(printed_by)
    entries: list[dict[str, Any]] = []
    faults: list[str] = []
    for path in files:
        try:
            text = outputs.text_of(path)
            log = outputs.read(text, str(path), bidirectional=bidirectional, form=form)
        except NetproofError as fault:
            faults.append(str(fault))
            continue
        faults += log.faults
        for output in log.outputs:
            if bidirectional and not output.of.by_protocol:
                faults.append(f"{path}: {output.of.label}'s output has no direction: leave it out")
            else:
                # A file with a failed measurement is printed all the same.
                entries.append(output.document(faults))
    sys.stdout.write(json.dumps(entries, indent=1, allow_nan=False) + "\n")
    for sentence in faults:
        sys.stderr.write(f"netproof: {sentence}\n")
    return 2 if faults else 0
