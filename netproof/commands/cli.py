"""The ``netproof`` command: its verbs by name."""

from __future__ import annotations

from typing import Annotated

import typer

from netproof.commands import (
    compare,
    entry,
    files,
    history,
    measure,
    nightly,
    references,
    sessions,
    sites,
    stores,
    studies,
    tuning,
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


# In the order in which help lists them.
VERBS = {
    "site": (
        "Write, check and show a site's configuration.",
        {"init": sites.init, "check": sites.check, "show": sites.show},
    ),
    "references": (
        "Derive references from sessions, and show what each bound risks.",
        {"derive": references.derive, "risk": references.risk},
    ),
    "nightly": nightly.nightly,
    "measure": (
        "Measure what is no acceptance, or read what was measured: no verdict reads it.",
        {
            "tune": tuning.tune,
            "algorithms": tuning.algorithms,
            "load": measure.load,
            "tails": measure.tails,
            "gpcnet": measure.gpcnet,
            "study": studies.study,
        },
    ),
    "verdict": sessions.verdict,
    "report": sessions.report,
    "compare": compare.compare,
    "history": (
        "Follow every case over the sessions of a store. It shows what changed, since"
        " when, and what else changed then."
        "\n\nWithout a command it is 'show', which has the options: 'netproof history show"
        " --help'.",
        {"show": history.show, "accept": history.accept},
    ),
    "diagnose": sessions.diagnose,
    "judge": files.judge,
    "store": (
        "Put sessions into a store, take them out, and check it as a whole.",
        {"add": stores.add, "export": stores.export, "check": stores.check},
    ),
}


def _add(parent: typer.Typer, name: str, function: object) -> None:
    if not isinstance(function, tuple):
        parent.command(name)(function)
        return
    text, verbs = function
    kind = {"cls": history.HistoryVerbs} if name == "history" else {"no_args_is_help": True}
    group = typer.Typer(help=text, rich_markup_mode=None, **kind)
    for verb, below in verbs.items():
        _add(group, verb, below)
    parent.add_typer(group, name=name)


for _name, _function in VERBS.items():
    _add(app, _name, _function)


def main() -> None:
    """Run the command; exit 2, without a verdict, whatever stops it."""
    entry.run(app, "netproof")
