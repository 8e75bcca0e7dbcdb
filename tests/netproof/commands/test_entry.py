"""1 is a verdict that a network failed; whatever stops a command is 2 and one sentence."""

from __future__ import annotations

import inspect
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

from netproof.commands import options
from netproof.commands.cli import DONE, EXITS, VERBS, WITHOUT_VERDICT, app, main
from netproof.verdict import session_verdict

ROOT = Path(__file__).resolve().parents[3]
RECORDED = ROOT / "tests" / "data" / "sessions"
PASSED = str(RECORDED / "passed.json")
MAIN = "from netproof.commands.cli import main; main()"
INTERRUPTED = (
    "import netproof.verdict.session_verdict\n"
    "def stop(*arguments, **named): raise KeyboardInterrupt\n"
    "netproof.verdict.session_verdict.find = stop\n" + MAIN
)


@pytest.fixture(autouse=True)
def site(project, monkeypatch):
    monkeypatch.delenv("RFM_REPORT_FILE")


def netproof(*arguments, program=MAIN, **options):
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], check=False, timeout=60, **options
    )


@dataclass(frozen=True)
class Ended:
    """How a command ended that was called in this process."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def called(capsys, monkeypatch):
    """``called(*arguments)``: the command's whole way, without the second a process starts in."""

    def call(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["netproof", *arguments])
        monkeypatch.setattr(os, "_exit", sys.exit)
        with pytest.raises(SystemExit) as ended:
            main()
        return Ended(ended.value.code, *capsys.readouterr())

    return call


@pytest.mark.slow
@pytest.mark.parametrize(
    ("raised", "said"),
    [
        ("raise TypeError('x')", "TypeError: x; this is a defect in netproof or a damaged file"),
        ("deeper()", "RecursionError: something is nested too deeply"),
        ("raise MemoryError", "memory ran out; this is a defect"),
        ("None.x", "AttributeError: 'NoneType' object has no attribute 'x'"),
        ("raise AssertionError", "AssertionError; this is"),
        ("raise GeneratorExit", "GeneratorExit; this is"),
        ("raise ValueError('a\\n\\x1b[1mb' + 'c' * 10**8)", "characters more)"),
        ("open('/nonexistent/x')", "/nonexistent/x: No such file or directory"),
        (
            "from netproof.errors import NetproofError; raise NetproofError('no')",
            "cannot judge: no",
        ),
    ],
)
def test_whatever_nobody_foresaw_is_2_and_one_sentence(called, monkeypatch, raised, said):
    made = {}
    # Python 3.13 before 3.13.8 counts no call by default or * arguments against its limit of depth.
    exec(f"def deeper(): deeper()\ndef stop(*arguments, **named): {raised}", made)
    monkeypatch.setattr(session_verdict, "find", made["stop"])
    ran = called("verdict", "--all", PASSED)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("netproof: ")
    assert ran.stderr.count("\n") == 1
    assert said in ran.stderr
    assert len(ran.stderr) < 600
    assert "Traceback" not in ran.stderr
    assert "\x1b" not in ran.stderr
    shown = called("verdict", "--all", PASSED, "--debug")
    assert shown.returncode == 2
    assert "Traceback" in shown.stderr


@pytest.mark.slow
def test_an_interrupt_is_130():
    ran = netproof("verdict", "--all", PASSED, program=INTERRUPTED)
    assert ran.returncode == 128 + signal.SIGINT
    assert ran.stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "json"])
def test_where_nobody_reads_any_more_it_ends_silently_and_on_a_full_disk_there_is_no_verdict(form):
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as broken, open("/dev/full", "w") as full:
        unread, unwritten = (
            netproof("verdict", "--format", form, PASSED, stdout=out) for out in (broken, full)
        )
    assert (unread.returncode, unread.stderr) == (128 + signal.SIGPIPE, "")
    why = "netproof: the output cannot be written: No space left on device\n"
    assert (unwritten.returncode, unwritten.stderr) == (2, why)


@pytest.mark.parametrize("arguments", ["verdict", "nope"])
def test_with_closed_standard_output_there_is_no_verdict(arguments):
    ran = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -c "$1" {arguments} "$2" >&-', sys.executable, MAIN, PASSED],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert ran.stderr == "netproof: standard output is closed, so that nothing could be said\n"


@pytest.mark.slow
def test_a_terminal_without_a_character_shows_what_it_is(called):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ran = netproof("verdict", "--all", PASSED, env=environment, text=False)
    assert ran.returncode == 1, ran.stderr
    document = called("verdict", "--all", PASSED, "--format=json")
    ran = netproof("verdict", "--all", PASSED, "--format=json", env=environment, text=False)
    assert json.loads(ran.stdout.decode("ascii")) == json.loads(document.stdout)


@pytest.mark.slow
def test_version_and_completion_are_there():
    ran = netproof("--version")
    assert (ran.returncode, ran.stdout) == (0, "netproof 0.1.0\n")
    asked = {"_NETPROOF_COMPLETE": "complete_bash", "COMP_WORDS": "netproof ver", "COMP_CWORD": "1"}
    ran = netproof(env={**os.environ, **asked})
    assert (ran.returncode, ran.stdout.split()) == (0, ["verdict"])


def test_every_help_has_examples_and_exit_statuses(called):
    def helps(command, *before):
        for name, below in getattr(command, "commands", {}).items():
            yield from helps(below, *before, name)
        if before:
            yield before

    assert "Investigate:\n  diagnose " in called("-h").stdout
    for words in helps(typer.main.get_command(app)):
        said = called(*words, "-h").stdout
        assert f"Examples:\n    netproof {words[0]}" in said, words
        exits = DONE if " ".join(words) in WITHOUT_VERDICT else EXITS
        assert exits in " ".join(said.split()), words


def test_a_help_has_the_statuses_that_its_verb_returns():
    for words, function in VERBS.items():
        returned = re.findall(r"(?m)^    return (.+)$", inspect.getsource(function))
        done = all(
            re.fullmatch(r"0|PASSED|CANNOT if .* else PASSED|_list.*", one) for one in returned
        )
        assert done is (words in WITHOUT_VERDICT), words


HEAVY = {
    *("rich", "yaml"),
    *("altair", "jinja2", "vl_convert"),
    *("duckdb", "pyarrow", "pandas"),
    *("numpy", "scipy", "ruptures", "jsonschema", "ruamel.yaml"),
    *("reframe", "netproof.verdict.session_verdict"),
}
"""Modules that take a twentieth of a second or more to load, or lead to such."""


def test_the_command_line_alone_loads_not_even_what_prints():
    load = "import sys, netproof.commands.cli; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", load], capture_output=True, text=True, check=True)
    modules = ran.stdout.split()
    assert {*modules, *(name.partition(".")[0] for name in modules)} & HEAVY == set()


def test_what_is_said_of_arguments_is_of_arguments_that_there_are():
    used = {"examples", "help"}
    for name, command in typer.main.get_command(app).commands.items():
        for below, one in getattr(command, "commands", {"": command}).items():
            verb = f"{name} {below}".strip()
            parameters = {parameter.name for parameter in one.params}
            own = options._KNOWN.get(verb, {}).keys() - {"examples"}
            assert own <= parameters, verb
            used |= parameters
    assert {argument for several in options._KNOWN.values() for argument in several} <= used
