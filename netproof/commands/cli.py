"""The ``netproof`` command: its verbs by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from netproof.commands import (
    compare,
    entry,
    files,
    history,
    measure,
    references,
    reframe,
    sessions,
    sites,
    stores,
    studies,
)
from netproof.commands.options import described

EXITS = "Exit status: 0 passed, 1 failed, 2 usage or environment, 3 inconclusive or incomplete."


class Grouped(TyperGroup):
    """List verbs by what they are for."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group."""
        for heading, verbs in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(name, self.commands[name].get_short_help_str(100)) for name in verbs]
                )


app = typer.Typer(
    cls=Grouped,
    help="Acceptance testing for cluster interconnects.",
    epilog=EXITS,
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"netproof {version('netproof')}")
        raise typer.Exit


@app.callback()
def _netproof(
    debug: Annotated[  # entry.run takes it, wherever it stands.
        bool, typer.Option(entry.DEBUG, help="Of an error, show where in netproof it came up.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print it.")
    ] = False,
) -> None:
    """Acceptance testing for cluster interconnects."""


Verb = Callable[..., None]

GROUPS = {
    "Set up": ("site", "references"),
    "Run": ("run", "nightly", "measure"),
    "Read": ("verdict", "report", "compare", "history"),
    "Investigate": ("diagnose", "judge"),
    "Store": ("store",),
}
VERBS: Mapping[str, Verb | tuple[str, Mapping[str, Verb]]] = {
    "site": (
        "Write, check and show a site's configuration.",
        {"discover": sites.discover, "init": sites.init, "check": sites.check, "show": sites.show},
    ),
    "references": (
        "Derive references from sessions, and show what each bound risks.",
        {"derive": references.derive, "risk": references.risk},
    ),
    "run": reframe.run,
    "nightly": reframe.nightly,
    "measure": (
        "Measure what is no acceptance, or read what was measured: no verdict reads it.",
        {
            "tune": measure.tune,
            "algorithms": measure.algorithms,
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


def _add(
    parent: typer.Typer, name: str, function: Verb | tuple[str, Mapping[str, Verb]], above: str = ""
) -> None:
    if not isinstance(function, tuple):
        examples = described(function, f"{above}{name}")
        lines = "\n".join(f"  netproof {example}" for example in examples)
        parent.command(name, epilog=f"\b\nExamples:\n{lines}\n\n{EXITS}")(function)
        return
    text, verbs = function
    named = name == "history"
    cls = history.HistoryVerbs if named else TyperGroup
    group = typer.Typer(help=text, rich_markup_mode=None, cls=cls, no_args_is_help=not named)
    for verb, below in verbs.items():
        _add(group, verb, below, f"{name} ")
    parent.add_typer(group, name=name)


for _name, _function in VERBS.items():
    _add(app, _name, _function)


def main() -> None:
    """Run the command; exit 2, without a verdict, whatever stops it."""
    entry.run(app, "netproof")
