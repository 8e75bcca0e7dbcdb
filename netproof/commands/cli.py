"""The ``netproof`` command: arguments in, exit codes out; what a command does lives elsewhere."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from netproof.commands import (
    baseline,
    compare,
    dimension,
    entry,
    literature,
    show,
    site_check,
    site_show,
    store_check,
)
from netproof.commands import ingest as store_command
from netproof.commands import init as init_command
from netproof.commands import judge as judge_command
from netproof.commands import parse as parse_command
from netproof.commands import verdict as verdict_command
from netproof.errors import NetproofError
from netproof.history.selection import NEWEST_SESSIONS, Quantity, Selection
from netproof.present import export
from netproof.verdict import judging
from netproof.verdict.beside import MAX_AGE_DAYS, AlongsideOptions
from netproof.verdict.usual import SESSIONS

app = typer.Typer(
    help="Acceptance testing for cluster interconnects.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


JsonOption = Annotated[bool, typer.Option("--json", help="Print the same as JSON.")]

SystemOption = Annotated[
    str | None,
    typer.Option(
        "--system", help="SYSTEM or SYSTEM:PARTITION, as for reframe.", show_default=False
    ),
]

FullOption = Annotated[
    bool, typer.Option("--full", help="All IMB functions were to run (reframe -R).")
]

# Paths are not asked whether they can be read: each command tells it in its own words, and goes
# on with the others where it takes several.
SessionArgument = Annotated[
    Path | None,
    typer.Argument(
        help="Session report, or a session's name in the store; the newest report if left out.",
        readable=False,
    ),
]

SessionStoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store",
        envvar="NETPROOF_STORE",
        help="Folder of the store, for a session's name.",
        show_default=False,
        readable=False,
    ),
]


BesideOption = Annotated[
    bool,
    typer.Option(
        "--beside-stored",
        help="Compare with what the store has of the configurations that were not measured.",
    ),
]

MaxAgeOption = Annotated[
    float,
    typer.Option(
        "--max-age",
        min=0,
        metavar="DAYS",
        help="With --beside-stored: age from which a stored session is marked.",
    ),
]

LeaveOutOption = Annotated[
    bool,
    typer.Option(
        "--leave-out-marked",
        help="With --beside-stored: leave out what is too old, or was made with other versions.",
    ),
]
FoldOption = Annotated[
    int,
    typer.Option(
        "--fold",
        min=0,
        max=judging.EARLIER_SESSIONS,
        metavar="N",
        help="Warnings that each of the last N sessions had, 3 at least, are one line; 0: none is.",
    ),
]


def _asked(
    beside_stored: bool, store: Path | None, max_age: float, leave_out_marked: bool
) -> AlongsideOptions | None:
    """What of the store is to stand beside; typer.BadParameter where options do not fit."""
    if beside_stored:
        if store is None:
            raise typer.BadParameter("--beside-stored takes a store: --store or NETPROOF_STORE")
        return AlongsideOptions(store, max_age, leave_out_marked)
    if leave_out_marked or max_age != MAX_AGE_DAYS:
        raise typer.BadParameter("--max-age and --leave-out-marked go with --beside-stored")
    return None


@app.callback()
def _netproof(
    debug: Annotated[  # entry.run takes it, wherever it stands.
        bool, typer.Option(entry.DEBUG, help="Of an error, show where in netproof it came up.")
    ] = False,
) -> None:
    """Acceptance testing for cluster interconnects."""


@app.command("parse")
def parse(
    files: Annotated[list[Path], typer.Argument(help="Output of IMB-MPI1 or NetPIPE.")],
    bidirectional: Annotated[
        bool, typer.Option("--bidirectional", help="NetPIPE was run with -2.")
    ] = False,
) -> None:
    """Print what benchmarks' output files say as JSON: exit 0 all, 2 one of them is faulty."""
    raise typer.Exit(
        parse_command.run(files, bidirectional=bidirectional, out=sys.stdout, err=sys.stderr)
    )


@app.command("init")
def init(
    system: Annotated[str, typer.Option("--system", help="Name of your system.")],
    folder: Annotated[
        Path, typer.Argument(help="Folder to write to; made if need be.", readable=False)
    ] = Path("."),
) -> None:
    """Write what a new site begins with: exit 0 written, 2 it cannot be."""
    raise typer.Exit(init_command.run(folder, system))


@app.command("judge")
def judge(
    files: Annotated[list[Path], typer.Argument(help="Output of IMB-MPI1 or NetPIPE.")],
    pattern: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="PATTERN",
            help="What a path says of its configuration: '{system}-{mpi}/{benchmark}'.",
            show_default=False,
        ),
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(
            "--names",
            help="CSV with a column file, and columns that name its configuration.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", help="Configuration that scores are relative to.", show_default=False
        ),
    ] = None,
    link: Annotated[
        str | None,
        typer.Option("--link", metavar="RATE", help="Link of a node: 100G.", show_default=False),
    ] = None,
    mtu: Annotated[int, typer.Option("--mtu", min=100, help="With --link: bytes.")] = 1500,
    bidirectional: Annotated[
        bool, typer.Option("--bidirectional", help="NetPIPE was run with -2.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Judge output files, from any harness: exit 0 passed, 1 failed, 2 cannot be judged."""
    raise typer.Exit(
        judge_command.run(
            files,
            pattern=pattern,
            names=names,
            bidirectional=bidirectional,
            link=link,
            mtu=mtu,
            baseline=baseline,
            as_json=as_json,
        )
    )


@app.command("verdict")
def verdict(
    session: SessionArgument = None,
    store: SessionStoreOption = None,
    system: SystemOption = None,
    full: FullOption = False,
    beside_stored: BesideOption = False,
    max_age: MaxAgeOption = MAX_AGE_DAYS,
    leave_out_marked: LeaveOutOption = False,
    fold: FoldOption = SESSIONS,
    as_json: JsonOption = False,
) -> None:
    """Judge a stored session: exit 0 passed, 1 failed, 2 cannot be judged."""
    raise typer.Exit(
        verdict_command.run(
            session,
            store=store,
            system=system,
            full=full,
            as_json=as_json,
            asked=_asked(beside_stored, store, max_age, leave_out_marked),
            fold=fold,
        )
    )


@app.command("show")
def show_session(
    session: SessionArgument = None,
    store: SessionStoreOption = None,
    system: SystemOption = None,
    full: FullOption = False,
    beside_stored: BesideOption = False,
    max_age: MaxAgeOption = MAX_AGE_DAYS,
    leave_out_marked: LeaveOutOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show a session's verdict, scores, landmarks and curves: exit 0 shown, 2 cannot be."""
    raise typer.Exit(
        show.run(
            session,
            store=store,
            system=system,
            full=full,
            as_json=as_json,
            asked=_asked(beside_stored, store, max_age, leave_out_marked),
        )
    )


@app.command("compare")
def compare_sessions(
    first: Annotated[
        Path | None,
        typer.Argument(
            help="Session report, or a session's name in the store.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    second: Annotated[
        Path | None,
        typer.Argument(
            help="Another one; the same if left out.", show_default=False, readable=False
        ),
    ] = None,
    store: SessionStoreOption = None,
    label: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--label",
            metavar="A B",
            help="KEY=VALUE of each side: the store's newest session with that label.",
            show_default=False,
        ),
    ] = None,
    partition: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--partition", metavar="A B", help="Partition of each side.", show_default=False
        ),
    ] = None,
    environment: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--environment", metavar="A B", help="Environment of each side.", show_default=False
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            help="All values of one dimension beside the first: partition, environment, or"
            " label=KEY over the store.",
            show_default=False,
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--out", help="Folder to write a page on it into, too.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare sessions, partitions or environments: exit 0 shown, 2 cannot be."""
    if by is not None:
        if second is not None or label is not None:
            raise typer.BadParameter("takes one session, and no --label", param_hint="--by")
        raise typer.Exit(
            dimension.run(
                by,
                first,
                store=store,
                partitions=partition,
                environments=environment,
                as_json=as_json,
                folder=folder,
            )
        )
    raise typer.Exit(
        compare.run(
            first,
            second,
            store=store,
            labels=label,
            partitions=partition,
            environments=environment,
            as_json=as_json,
            folder=folder,
        )
    )


site_app = typer.Typer(
    help="What a site's files say: what is missing or wrong, and what will run.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(site_app, name="site")

SiteArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[SYSTEM[:PARTITION]]",
        help="As for reframe --system; left out, the one this is a login node of.",
        show_default=False,
    ),
]


@site_app.command("check")
def check_site(
    system: SiteArgument = None, full: FullOption = False, as_json: JsonOption = False
) -> None:
    """Tell what is missing or wrong: exit 0 nothing, 2 something, or it cannot be checked."""
    raise typer.Exit(site_check.run(system, full=full, as_json=as_json))


@site_app.command("show")
def show_site(
    system: SiteArgument = None,
    store: SessionStoreOption = None,
    full: FullOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show the matrix that will run, and how long it should take: exit 0 shown, 2 cannot be."""
    raise typer.Exit(site_show.run(system, store=store, full=full, as_json=as_json))


@app.command("baseline")
def references(
    sessions: Annotated[list[Path], typer.Argument(help="Session reports, at least three.")],
    system: SystemOption = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write the file and do not just show the difference.")
    ] = False,
    allow_looser: Annotated[
        bool, typer.Option("--allow-looser", help="Let bounds that stand get wider.")
    ] = False,
    floor: Annotated[
        float | None,
        typer.Option("--floor", help="Least tolerance, 0.1 by default; an octave for sizes."),
    ] = None,
    spread_limit: Annotated[
        float | None,
        typer.Option(
            "--spread-limit", help="Largest spread over the median that is taken, 0.1 by default."
        ),
    ] = None,
    per_size: Annotated[
        bool, typer.Option("--per-size", help="Also bound the time at every size.")
    ] = False,
) -> None:
    """Derive references and show the change: exit 0 derived, 2 not, or not all of them."""
    raise typer.Exit(
        baseline.run(
            sessions,
            system=system,
            write_file=write,
            allow_looser=allow_looser,
            floor=floor,
            spread_limit=spread_limit,
            per_size=per_size,
        )
    )


StoreOption = Annotated[
    Path,
    typer.Option("--store", envvar="NETPROOF_STORE", help="Folder of the store.", readable=False),
]


@app.command("ingest")
def ingest(
    reports: Annotated[list[Path], typer.Argument(help="Session reports.", readable=False)],
    store: StoreOption,
) -> None:
    """Bring session reports into the store: exit 0 all are in, 2 some refused, or no store."""
    raise typer.Exit(store_command.run(reports, store))


store_app = typer.Typer(help="The store as a whole.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(store_app, name="store")


@store_app.command("check")
def check_store(
    store: Annotated[
        Path,
        typer.Argument(
            envvar="NETPROOF_STORE", help="Folder of the store.", metavar="STORE", readable=False
        ),
    ],
) -> None:
    """Read all of the store and name what is damaged: exit 0 nothing is, 2 something is."""
    raise typer.Exit(store_check.run(store))


@app.command("export")
def export_session(
    store: StoreOption,
    form: Annotated[export.Format, typer.Option("--format", help="What to write.")],
    folder: Annotated[Path, typer.Option("--to", help="A new or empty folder.")],
    session: Annotated[
        str, typer.Argument(help="Name of the session, how it begins, or newest.")
    ] = "newest",
) -> None:
    """Write a stored session as CSV, JSON, or NetPIPE's files: exit 0 written, 2 it cannot be."""
    raise typer.Exit(export.run(store, session, form, folder))


@app.command("literature")
def studies(
    study: Annotated[
        str | None, typer.Argument(help="Name of a study; all if left out.", show_default=False)
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--session", help="Session report to show beside the studies.", show_default=False
        ),
    ] = None,
) -> None:
    """Show the figures of earlier studies, with losses and shares: exit 0 shown, 2 cannot be."""
    raise typer.Exit(literature.run(study, report))


@app.command("report")
def report(
    session: SessionArgument = None,
    store: SessionStoreOption = None,
    system: SystemOption = None,
    full: FullOption = False,
    beside_stored: BesideOption = False,
    max_age: MaxAgeOption = MAX_AGE_DAYS,
    leave_out_marked: LeaveOutOption = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder to write; beside the session if left out.", show_default=False
        ),
    ] = None,
    formats: Annotated[
        str, typer.Option("--format", help="Any of html,png,svg,pdf,csv, with commas.")
    ] = "html",
    switch: Annotated[
        str | None,
        typer.Option(
            "--switch",
            metavar="PARTITION",
            help="Page on this one against the others; else on one that was measured alone.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write pages and charts on a session: exit 0 written, 2 it cannot be."""
    # Loading what draws takes a third of any command's start.
    from netproof.commands import report as command

    raise typer.Exit(
        command.run(
            session,
            store=store,
            system=system,
            full=full,
            folder=folder,
            formats=formats,
            switch=switch,
            asked=_asked(beside_stored, store, max_age, leave_out_marked),
        )
    )


class _HistoryCommands(TyperGroup):
    """What ``netproof history`` is without the name of a command: ``show``."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:
        """Put the name of the command there that is meant."""
        named = args[:1]
        if not named or named[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["show", *args]
        return super().parse_args(ctx, args)


history_app = typer.Typer(
    cls=_HistoryCommands,
    help="Follow every case over the sessions of a store: what changed, since when, and what else."
    "\n\nWithout a command it is 'show', which has the options: 'netproof history show --help'.",
    rich_markup_mode=None,
)
app.add_typer(history_app, name="history")

CasesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="CASE",
        help="Regular expressions, all to be found in PARTITION ENVIRONMENT BENCHMARK ….",
        show_default=False,
    ),
]
PartitionOption = Annotated[
    str | None, typer.Option("--partition", help="Only this partition.", show_default=False)
]
EnvironmentOption = Annotated[
    str | None, typer.Option("--environment", help="Only this environment.", show_default=False)
]
QuantityOption = Annotated[
    Quantity | None,
    typer.Option("--quantity", help="Only this landmark, or the score.", show_default=False),
]
HistorySystemOption = Annotated[
    str | None,
    typer.Option("--system", help="System, where the store has several.", show_default=False),
]


def _selection(
    case: list[str] | None,
    partition: str | None,
    environment: str | None,
    quantity: Quantity | None,
) -> Selection:
    """The series that a command is about; a bad expression is a fault of its arguments."""
    try:
        return Selection(tuple(case or ()), partition, environment, quantity)
    except NetproofError as error:
        raise typer.BadParameter(str(error), param_hint="CASE") from error


@history_app.command("show")
def history_show(
    store: StoreOption,
    case: CasesArgument = None,
    partition: PartitionOption = None,
    environment: EnvironmentOption = None,
    quantity: QuantityOption = None,
    system: HistorySystemOption = None,
    session: Annotated[
        str | None,
        typer.Option("--session", help="Up to this one; the newest if left out."),
    ] = None,
    last: Annotated[
        int, typer.Option("--last", min=1, help="How many sessions are looked back on.")
    ] = NEWEST_SESSIONS,
    since: Annotated[
        datetime | None,
        typer.Option("--since", formats=["%Y-%m-%d"], help="None before this day.", metavar="DATE"),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="KEY=VALUE", help="Only sessions with this label."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Draw the series in a file: .html, .svg, .png or .pdf."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what changed, or the series of cases: exit 0 nothing is worse, 1 worse, 2 cannot be."""
    from netproof.commands import history as command

    selection = _selection(case, partition, environment, quantity)
    raise typer.Exit(
        command.run(
            selection,
            store,
            system=system,
            session=session,
            last=last,
            since=since.date() if since else None,
            labels=label or (),
            plot=plot,
            as_json=as_json,
        )
    )


@history_app.command("accept")
def history_accept(
    store: StoreOption,
    session: Annotated[
        str, typer.Option("--session", help="The first one at the new level, or newest.")
    ],
    reason: Annotated[str, typer.Option("--reason", help="Why the change is intended.")],
    name: Annotated[str, typer.Option("--name", help="Who says so.")],
    case: CasesArgument = None,
    partition: PartitionOption = None,
    environment: EnvironmentOption = None,
    quantity: QuantityOption = None,
    system: HistorySystemOption = None,
) -> None:
    """Record in the store that a change is intended: exit 0 recorded, 2 cannot be."""
    from netproof.commands import history as command

    selection = _selection(case, partition, environment, quantity)
    raise typer.Exit(
        command.accept(selection, store, system=system, session=session, reason=reason, name=name)
    )


def main() -> None:
    """Entry point of the command; exit 2, and no verdict, whatever stops it."""
    entry.run(app, "netproof")
