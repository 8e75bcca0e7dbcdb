"""The verb ``judge``, on output files of benchmarks from any harness."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

from netproof.commands.options import Form, verb
from netproof.errors import NetproofError
from netproof.measurement.links import Transport


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
    from netproof.present import documents, judged_files, terminal
    from netproof.verdict import files as outputs

    if pattern is not None and names is not None:
        raise NetproofError("--as and --names both say what is a configuration: give one")
    if against and (names is not None or baseline is not None):
        raise NetproofError("--against names two sets: --names and --baseline are for other ones")
    if baseline is not None and pattern is None and names is None:
        raise NetproofError("--baseline names a configuration: --as or --names says what is one")
    of_path = None if pattern is None else file_names.Pattern(pattern, of_sets=bool(against))
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
    if page is not None:
        from netproof.present.html.folder import write_page

        page = write_page(page, lambda: judged_files.page(judged))
    if form is Form.JSON:
        documents.write(judged_files.document(judged), sys.stdout)
    else:
        judged_files.print_files(judged, terminal.console())
        if page is not None:
            terminal.say(terminal.console(), f"report {page}")
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
