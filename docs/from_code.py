"""Write the parts of the reference that follow from the code.

MkDocs calls it as a hook: a line ``<!-- from the code: NAME -->`` of a page becomes that part.

    python docs/from_code.py commands|tables
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import click


def commands() -> Iterator[str]:
    """Yield the Markdown of every verb: its usage, arguments, options and examples."""
    from typer.main import get_command

    from netproof.commands.cli import GROUPS, app

    context = click.Context(get_command(app), info_name="netproof")
    for heading, names in GROUPS.items():
        yield f"## {heading}\n"
        for name in names:
            yield from _verb(context.command.commands[name], f"netproof {name}", context)


def _verb(command: Any, path: str, parent: click.Context) -> Iterator[str]:
    if hasattr(command, "commands"):
        for name, below in command.commands.items():
            yield from _verb(below, f"{path} {name}", parent)
        return
    context = click.Context(command, info_name=path, parent=None)
    yield f"### {path}\n"
    yield f"{command.help.strip()}\n"
    yield f"    {' '.join([path, *command.collect_usage_pieces(context)])}\n"
    rows = [
        record
        for parameter in command.get_params(context)
        if (record := parameter.get_help_record(context)) and "--help" not in record[0]
    ]
    if rows:
        yield "| argument or option | meaning |\n| --- | --- |"
        for names, meaning in rows:
            yield f"| `{_cell(names)}` | {_cell(meaning)} |"
        yield ""
    examples = re.findall(r"(?m)^ +(netproof .+)$", command.epilog or "")
    if examples:
        yield "\n".join(f"    {one}" for one in examples) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def tables() -> Iterator[str]:
    """Yield the Markdown of every table of the store, with type and meaning of each column."""
    from netproof.store.tables import PATH_COLUMNS, TABLES

    yield "| column of the path | meaning |\n| --- | --- |"
    for name, meaning in PATH_COLUMNS.items():
        yield f"| `{name}` | {_cell(meaning)} |"
    for name, table in TABLES.items():
        yield f"\n## `{name}`\n\nA row is {table.row}.\n"
        yield "| column | type | meaning |\n| --- | --- | --- |"
        for column, one in table.columns.items():
            kind = _type(str(one.type)) + (", null" if one.nullable else "")
            yield f"| `{column}` | {kind} | {_cell(one.meaning)} |"
        yield ""


def _type(arrow: str) -> str:
    known = {"string": "text", "int32": "int", "int64": "bigint", "bool": "boolean"}
    known |= {"timestamp[us]": "timestamp", "map<string, string>": "map of text"}
    if arrow.startswith("list<"):
        return f"list of {_type(arrow.partition(': ')[2][:-1])}"
    return known.get(arrow, "struct" if arrow.startswith("struct") else arrow)


PARTS = {"commands": commands, "tables": tables}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page with the parts that it names; MkDocs calls this for each page."""
    return re.sub(
        r"<!-- from the code: (\w+) -->", lambda name: "\n".join(PARTS[name[1]]()), markdown
    )


if __name__ == "__main__":
    print("\n".join(PARTS[sys.argv[1]]()))
