"""The ``netproof`` command: its verbs by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from netproof.commands import measure, options, reframe, sessions, sites, stores
from netproof.commands.options import described, help_of

EXITS = "Exit status: 0 passed, 1 failed, 2 usage or environment, 3 inconclusive or incomplete."
DONE = "Exit status: 0 done, whatever the verdict; 2 usage or environment."


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
        bool, typer.Option(options.DEBUG, help="Of an error, show where in netproof it came up.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print it.")
    ] = False,
) -> None:
    """Acceptance testing for cluster interconnects."""


GROUPS = {
    "Set up": ("site", "references"),
    "Run": ("run", "nightly", "measure"),
    "Read": ("verdict", "report", "compare", "history"),
    "Investigate": ("diagnose", "judge"),
    "Store": ("store",),
}
VERBS = {
    "site discover": sites.discover,
    "site init": sites.init,
    "site check": sites.check,
    "site show": sites.show,
    "references derive": stores.derive,
    "references risk": stores.risk,
    "run": reframe.run,
    "nightly": reframe.nightly,
    "measure tune": measure.tune,
    "measure algorithms": measure.algorithms,
    "measure load": measure.load,
    "measure tails": measure.tails,
    "measure gpcnet": measure.gpcnet,
    "measure study": measure.study,
    "verdict": sessions.verdict,
    "report": sessions.report,
    "compare": sessions.compare,
    "history show": stores.show,
    "history accept": stores.accept,
    "diagnose": sessions.diagnose,
    "judge": sessions.judge,
    "store add": stores.add,
    "store export": stores.export,
    "store check": stores.check,
}
WITHOUT_VERDICT = {
    *("site discover", "site init", "site show", "report", "compare", "measure study"),
    *("history accept", "store add", "store export"),
}
"""Verbs that only write or show."""


def _epilog(examples: Iterable[str], exits: str = EXITS) -> str:
    lines = "\n".join(f"  netproof {example}" for example in examples)
    return f"\b\nExamples:\n{lines}\n\n{exits}"


_typers = {"": app}
_firsts = defaultdict[str, list[str]](list)
for _verb, _function in VERBS.items():
    _above, _, _name = _verb.rpartition(" ")
    if _above not in _typers:
        _named = _above == "history"
        _typers[_above] = typer.Typer(
            help=help_of(_above),
            rich_markup_mode=None,
            cls=stores.HistoryVerbs if _named else TyperGroup,
            no_args_is_help=not _named,
        )
        app.add_typer(_typers[_above], name=_above)
    _examples = described(_function, _verb)
    _exits = DONE if _verb in WITHOUT_VERDICT else EXITS
    _typers[_above].command(_name, epilog=_epilog(_examples, _exits))(_function)
    _firsts[_above].append(_examples[0])
    if _above:
        _typers[_above].info.epilog = _epilog(_firsts[_above])


def main() -> None:
    """Run the command; exit 2, without a verdict, whatever stops it."""
    options.run(app, "netproof")
