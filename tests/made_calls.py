"""Commands, called in this process as one types them."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from netproof.commands.cli import app


def called(*arguments: str | Path) -> tuple[int, str, str]:
    """Return the status of a command, its standard output and its standard error."""
    ran = CliRunner().invoke(app, [*map(str, arguments)])
    return ran.exit_code, ran.stdout, ran.stderr


def in_words(*arguments: str | Path) -> tuple[int, str]:
    """Return the status of a command, and all that it prints, on one line."""
    ran = CliRunner().invoke(app, [*map(str, arguments)])
    return ran.exit_code, " ".join(ran.output.split())
