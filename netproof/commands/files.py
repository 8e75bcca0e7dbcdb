"""The verbs on output files of benchmarks, from any harness: ``parse`` and ``judge``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from netproof.commands.options import (
    BidirectionalOption,
    JsonOption,
    OutputsArgument,
    refused,
    verb,
)
from netproof.errors import NetproofError
from netproof.measurement.transports import Transport


@verb("")
def parse(files: OutputsArgument, bidirectional: BidirectionalOption = False) -> int:
    """Print the contents of benchmark outputs as JSON. Exit 0: all read, 2: a file is faulty."""
    import json

    from netproof.benchmarks.outputs import read, text_of

    entries: list[dict[str, Any]] = []
    faults: list[str] = []
    for path in files:
        try:
            output = read(text_of(path), str(path), bidirectional=bidirectional)
        except NetproofError as fault:
            faults.append(str(fault))
            continue
        # A file with a failed measurement is printed all the same.
        entries.append(output.document(faults))
    sys.stdout.write(json.dumps(entries, indent=1, allow_nan=False) + "\n")
    for sentence in faults:
        sys.stderr.write(f"netproof: {sentence}\n")
    return 2 if faults else 0


@verb("cannot judge")
def judge(
    files: OutputsArgument,
    pattern: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="PATTERN",
            help="What a path says of its configuration: '{system}-{mpi}/{benchmark}'.",
        ),
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(
            "--names",
            help="CSV with a column file, and columns that name its configuration.",
            readable=False,
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", help="Configuration that scores are relative to.")
    ] = None,
    link: Annotated[
        str | None, typer.Option("--link", metavar="RATE", help="Link of a node: 100G.")
    ] = None,
    mtu: Annotated[
        int | None,
        typer.Option("--mtu", min=100, help="With --link: bytes; InfiniBand 4096, else 1500."),
    ] = None,
    transport: Annotated[
        Transport, typer.Option("--transport", help="With --link: what carries MPI.")
    ] = Transport.TCP,
    bidirectional: BidirectionalOption = False,
    folder: Annotated[
        Path | None,
        typer.Option("--report", metavar="FOLDER", help="Also write a page with charts."),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Judge output files from any harness. Exit 0: passed, 1: failed, 2: cannot be judged."""
    from netproof.present import documents, judged_files, tables
    from netproof.verdict import files as outputs

    if pattern is not None and names is not None:
        raise NetproofError("--as and --names both say what is a configuration: give one")
    named = None
    if pattern is not None:
        named = outputs.Pattern(pattern)
    elif names is not None:
        named = outputs.NameList(names)
    elif baseline is not None:
        raise NetproofError("--baseline names a configuration: --as or --names says what is one")
    if link is None and (mtu is not None or transport is not Transport.TCP):
        raise NetproofError("--mtu and --transport are of a link: give its rate with --link")
    with tables.working(f"reading {len(files)} files"):
        judged = outputs.judge(
            files,
            named=named,
            bidirectional=bidirectional,
            link=None if link is None else outputs.link(link, mtu, transport),
            baseline=baseline,
        )
    page = None
    if folder is not None:
        # Altair takes a second to load, and only this needs it.
        from netproof.commands import report
        from netproof.present.html import files as pages

        try:
            page = report.write_page(
                folder, lambda scripts: pages.page(judged, scripts, compared=named is not None)
            )
        except NetproofError as error:
            return refused("no report", error)
    if as_json:
        documents.write(judged_files.document(judged), sys.stdout)
    else:
        judged_files.print_files(judged, tables.console(), compared=named is not None)
        if page is not None:
            tables.say(tables.console(), f"report {page}")
    return judged.status
