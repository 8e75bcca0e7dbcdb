"""The ``netproof`` command: its verbs by name."""

from __future__ import annotations

from typing import Annotated

import typer

from netproof.commands import (
    compare,
    entry,
    experiments,
    files,
    nightly,
    references,
    sessions,
    sites,
    stores,
    studies,
    tuning,
)
from netproof.commands.verbs import history

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
VERBS = {
    "parse": files.parse,
    "init": sites.init,
    "judge": files.judge,
    "verdict": sessions.verdict,
    "diagnose": sessions.diagnose,
    "tune": tuning.tune,
    "load": experiments.load,
    "tails": experiments.tails,
    "gpcnet": experiments.gpcnet,
    "nightly": nightly.nightly,
    "show": sessions.show,
    "compare": compare.compare,
    "ingest": stores.ingest,
    "export": stores.export,
    "literature": studies.literature,
    "study": studies.study,
    "report": sessions.report,
}
GROUPS = {
    "site": (site_app, {"check": sites.check, "show": sites.show}),
    "references": (references_app, {"derive": references.derive, "risk": references.risk}),
    "store": (store_app, {"check": stores.check}),
    "history": (
        history_app,
        {"show": history.history_show, "accept": history.history_accept},
    ),
}
for name, function in VERBS.items():
    app.command(name)(function)
for name, (group, verbs) in GROUPS.items():
    app.add_typer(group, name=name)
    for verb, function in verbs.items():
        group.command(verb)(function)


def main() -> None:
    """Run the command; exit 2, without a verdict, whatever stops it."""
    entry.run(app, "netproof")
