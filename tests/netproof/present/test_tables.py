"""Tables that fit the terminal without cutting a figure, and text that cannot command it."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from netproof.present import terminal
from netproof.present.document import EVERY, DataTable
from netproof.present.terminal import print_rows, say

WIDE = DataTable(
    ("partition", "lat µs", "16K", "4K", "line"),
    [("gige", "12.5", "1.0", "3.0", "97%"), ("fast-ethernet", "1234.5", "2.0", "4.0", "-")],
    EVERY[1:],
    ranks={"16K": 2, "4K": 2, "line": 1},
)
WIDTH = sum(WIDE.widths)


def printed(table, width, rows=range(2)):
    out = io.StringIO()
    print_rows(table, Console(file=out, width=width), rows)
    return out.getvalue()


@pytest.mark.parametrize(
    ("room", "kept"),
    [
        (100, ["partition", "lat µs", "16K", "4K", "line"]),
        (WIDTH - 1, ["partition", "lat µs", "16K", "line"]),
        (1, ["partition", "lat µs"]),
    ],
)
def test_columns_that_do_not_fit_go_by_their_rank_and_the_last_first(room, kept):
    assert WIDE.fitting(room).head == kept
    out = io.StringIO()
    terminal.show([WIDE], out=Console(file=out, width=room))
    gone = [one for one in WIDE.head if one not in kept]
    assert ("no room here for" in out.getvalue()) is bool(gone)
    assert all(one in out.getvalue() for one in gone)


@pytest.mark.parametrize("width", [10, 30, 80])
def test_a_table_is_as_wide_as_its_figures_and_none_is_cut(width):
    said = printed(WIDE, width)
    assert said.splitlines()[2].split() == ["fast-ethernet", "1234.5", "2.0", "4.0", "-"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;owned\x07 and [red]this[/red]\r", "\\x1b]0;owned\\x07 and [red]this[/red]\\x0d"),
        ("it passed \u202edeliaf\u2069", "it passed \\u202edeliaf\\u2069"),
        ("MT28908 [ConnectX-6] :on: [/bold]", "MT28908 [ConnectX-6] :on: [/bold]"),
    ],
)
def test_text_of_a_job_cannot_command_the_terminal(text, shown):
    out = io.StringIO()
    say(text, out=Console(file=out, width=80))
    assert out.getvalue() == f"{shown}\n"
    assert "\x1b" not in printed(DataTable(("name",), [("\x1b[2J",)]), 80, range(1))


def test_on_a_terminal_alone_what_is_being_done_is_said_on_standard_error(capsys, monkeypatch):
    with terminal.working("judging"):
        assert list(terminal.tracked([1, 2], "comparing")) == [1, 2]
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with terminal.working("judging the session"):
        pass
    assert list(terminal.tracked([1, 2], "comparing")) == [1, 2]
    said = capsys.readouterr()
    assert said.out == ""
    assert "judging the session" in said.err
    assert "comparing" in said.err
