"""Write the parts of the reference that follow from the code; hooks of MkDocs for the site.

A line ``<!-- from the code: NAME -->`` of a page becomes that part.

    python docs/from_code.py commands|tables|answers
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
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
    """Yield the Markdown of every table of the store, with the type of each column."""
    from netproof.store.tables import TABLES

    for name, schema in TABLES.items():
        yield f"\n### Types of `{name}`\n\n| column | type |\n| --- | --- |"
        for column in schema:
            yield f"| `{column.name}` | {_type(column.type)}{', null' * column.nullable} |"


def _type(arrow: Any) -> str:
    known = {"string": "text", "int32": "int", "int64": "bigint", "bool": "boolean"}
    known |= {"timestamp[us]": "timestamp", "map<string, string>": "map of text"}
    text = str(arrow)
    if text.startswith("list<"):
        return f"list of {_type(arrow.value_type)}"
    return known.get(text, "struct" if text.startswith("struct") else text)


def answers() -> Iterator[str]:
    """Yield the Markdown of every answer in JSON: keys and their types, of each record once."""
    sys.path.append(str(Path(__file__).parent))
    from answers import VERBS, Schema, file_name, written_types

    records: dict[str, Any] = {}
    for verb in VERBS:
        one = Schema(verb)
        records |= one.definitions
        yield f"\n### netproof {verb}\n\nThe schema is `{file_name(verb)}`."
        yield from _keys(one.schema, written_types)
    for name, schema in sorted(records.items()):
        yield f"\n### {name}"
        yield from _keys(schema, written_types)


def _keys(schema: Mapping[str, Any], written: Callable[[Mapping[str, Any]], str]) -> Iterator[str]:
    yield "\n| key | type |\n| --- | --- |"
    for key, one in schema["properties"].items():
        lacking = "" if key in schema["required"] else ", or absent"
        yield f"| `{key}` | {_cell(written(one))}{lacking} |"


PARTS = {"commands": commands, "tables": tables, "answers": answers}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page with the parts that it names; MkDocs calls this for each page."""
    return re.sub(
        r"<!-- from the code: (\w+) -->", lambda name: "\n".join(PARTS[name[1]]()), markdown
    )


if __name__ == "__main__":
    print("\n".join(PARTS[sys.argv[1]]()))
