"""The ``netproof`` command: its verbs by name; ``verbs`` has their arguments."""

from __future__ import annotations

from typing import Annotated

import typer

from netproof.commands import entry
from netproof.commands.verbs import (
    compare,
    diagnose,
    export,
    gpcnet,
    history,
    ingest,
    init,
    judge,
    literature,
    load,
    nightly,
    parse,
    references,
    report,
    show,
    site,
    store,
    study,
    tails,
    tune,
    verdict,
)

app = typer.Typer(
    help="Acceptance testing for cluster interconnects.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def _netproof(
    debug: Annotated[  # entry.run takes it, wherever it stands.
        bool, typer.Option(entry.DEBUG, help="Of an error, show where in netproof it came up.")
    ] = False,
) -> None:
    """Acceptance testing for cluster interconnects."""


site_app = typer.Typer(
    help="Check a site's configuration, and show what will run.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

references_app = typer.Typer(
    help="Derive references from sessions, and show what each bound risks.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

store_app = typer.Typer(
    help="Check the store as a whole.", no_args_is_help=True, rich_markup_mode=None
)

history_app = typer.Typer(
    cls=history.HistoryVerbs,
    help="Follow every case over the sessions of a store. It shows what changed, since"
    " when, and what else changed then."
    "\n\nWithout a command it is 'show', which has the options: 'netproof history show --help'.",
    rich_markup_mode=None,
)

# In the order in which help lists them.
app.command("parse")(parse.parse)
app.command("init")(init.init)
app.command("judge")(judge.judge)
app.command("verdict")(verdict.verdict)
app.command("diagnose")(diagnose.diagnose)
app.command("tune")(tune.tune)
app.command("load")(load.load)
app.command("tails")(tails.tails)
app.command("gpcnet")(gpcnet.gpcnet)
app.command("nightly")(nightly.nightly)
app.command("show")(show.show_session)
app.command("compare")(compare.compare_sessions)
app.command("ingest")(ingest.ingest)
app.command("export")(export.export_session)
app.command("literature")(literature.studies)
app.command("study")(study.study)
app.command("report")(report.report)
groups = (site_app, "site"), (references_app, "references"), (store_app, "store")
for group, name in (*groups, (history_app, "history")):
    app.add_typer(group, name=name)
references_app.command("derive")(references.derive)
references_app.command("risk")(references.risk)
site_app.command("check")(site.check_site)
site_app.command("show")(site.show_site)
store_app.command("check")(store.check_store)
history_app.command("show")(history.history_show)
history_app.command("accept")(history.history_accept)


def main() -> None:
    """Run the command; exit 2, without a verdict, whatever stops it."""
    entry.run(app, "netproof")
