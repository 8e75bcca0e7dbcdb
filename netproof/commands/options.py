"""The arguments of verbs, what several verbs do with them, and how a command ends whatever happens.

``options.json`` has examples of each verb, and how each argument is written, its help and its
bounds: by its name, of all verbs, of those below a word, or of one. A verb imports what it does
only when it is called, so that help and faulty arguments are reported at once.

Status 1 is a verdict: a network failed. Whatever stops a command, foreseen or not, ends with 2 and
a sentence, and a reader that has gone, as ``head`` does, with SIGPIPE's status and none.
"""

from __future__ import annotations

import errno
import functools
import gc
import inspect
import json
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, get_origin

import typer

from netproof.errors import NO_REPORT, NetproofError, shortened
from netproof.present import documents, terminal
from netproof.present.document import Block, Cell, Part
from netproof.present.wording import visible
from netproof.site import folders
from netproof.verdict import CANNOT, MAX_AGE_DAYS

if TYPE_CHECKING:
    from netproof.verdict.verdict import StoredResults

DEBUG = "--debug"
INTERRUPTED, UNREAD = 128 + signal.SIGINT, 128 + signal.SIGPIPE


def debugging() -> bool:
    """Return whether the process was called with ``--debug``."""
    arguments = sys.argv[1:]
    return DEBUG in (arguments[: arguments.index("--")] if "--" in arguments else arguments)


def run(app: Callable[..., object], program: str) -> NoReturn:
    """Call a command with the arguments of the process, and end the process with its status.

    ``app``: from typer; ``program``: its name in messages.
    """
    _open_standard_streams(program)
    # A command lives shorter than its records, and hardly any of them are in a cycle.
    gc.disable()
    arguments, debug = sys.argv[1:], debugging()
    if debug:
        arguments.remove(DEBUG)
    status, out = CANNOT, sys.stdout
    try:
        ended = app(args=arguments, prog_name=program, standalone_mode=False)
        status = ended if isinstance(ended, int) else 0
    except typer.TyperException as error:
        # typer reports wrong arguments itself.
        error.show() if hasattr(error, "show") else say(f"{program}: {error}")
    except (KeyboardInterrupt, typer.Abort):
        say(f"{program}: interrupted")
        status = INTERRUPTED
    except SystemExit as end:
        # Commands end by typer.Exit. Completion ends like this, and with status 1 typer, with
        # another stream in place, and rich where the reader has gone.
        sys.stdout, code = out, end.code
        status = UNREAD if code == 1 else code if isinstance(code, int) else 0
    except BrokenPipeError:
        status = UNREAD
    except BaseException as error:
        if debug:
            traceback.print_exc()
        say(f"{program}: {_sentence(error, '' if debug else f'; {DEBUG} shows where')}")
    status = _flushed(status, program)
    # To take a large session's records apart one by one takes seconds.
    os._exit(status)


def _open_standard_streams(program: str) -> None:
    """Let characters that a terminal lacks never stop a command, and let a closed stream stop it.

    Python has no stream where the descriptor was closed, and the next file that is opened would get
    its number.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        say(f"{program}: standard output is closed, so that nothing could be said")
        sys.exit(CANNOT)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _flushed(status: int, program: str) -> int:
    """Return the status, or the one for no result where the output cannot be written."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # The rest of the buffer would fail again as the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.EPIPE:
            return status if status == CANNOT else UNREAD
        if status != CANNOT:
            say(f"{program}: the output cannot be written: {error.strerror}")
        return CANNOT
    return status


def _sentence(error: BaseException, remedy: str) -> str:
    if isinstance(error, NetproofError):
        return str(error)
    if isinstance(error, OSError):
        # An error of a stream names no file.
        if error.filename is None:
            return f"the output cannot be written: {error.strerror or error}"
        if error.errno in (errno.EEXIST, errno.ENOTDIR):
            return f"{error.filename}: a file is where a folder should be: name another one"
        return f"{error.filename}: {error.strerror}{remedy}"
    if isinstance(error, MemoryError):
        named = "memory ran out"
    elif isinstance(error, RecursionError):
        named = "RecursionError: something is nested too deeply"
    else:
        named = shortened(" ".join(traceback.format_exception_only(error)[-1].split()))
    return f"{named}; this is a defect in netproof or a damaged file{remedy}"


def say(sentence: str) -> None:
    """Print it on standard error, if that can be written."""
    try:
        print(visible(sentence), file=sys.stderr, flush=True)
    except OSError:
        # The status is all that is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


Form = StrEnum("Form", ["TEXT", "JSON"])
VerdictForm = StrEnum("VerdictForm", ["TEXT", "JSON", "JUNIT"])
"""Forms of what a verb prints."""

_FILE = Path(__file__).with_suffix(".json")
_KNOWN: dict[str, dict[str, Any]] = json.loads(_FILE.read_text(encoding="utf-8"))

_SYSTEM = re.compile(r"[A-Za-z_][\w-]*(:[\w-]+)?")


def subjects(
    arguments: Sequence[str] | None, store: Path | None = None, *, most: int | None = 1
) -> tuple[list[Path], str | None]:
    """Return the sessions among the arguments of a verb, and the ``SYSTEM[:PARTITION]`` or None.

    A name is a system unless it is a file's, a session's folder's, or ``newest``; sessions in a
    store begin with a digit. Raises typer.BadParameter for a second system and for more than
    ``most`` sessions, and NetproofError, before anything is loaded, for a report that is missing.
    """
    given = list(arguments or ())
    systems = [one for one in given if _is_system(one)]
    sessions = [one for one in given if one not in systems]
    if len(systems) > 1:
        raise typer.BadParameter(
            f"{' and '.join(systems)} are two systems: name one; a report is named by its file"
        )
    if most is not None and len(sessions) > most:
        raise typer.BadParameter(f"{' and '.join(sessions)}: name one session")
    named = [Path(name) for name in sessions]
    insist_on_reports(named, store)
    return named, systems[0] if systems else None


def insist_on_reports(sessions: Sequence[Path], store: Path | None) -> None:
    """Raise NetproofError for a session or a store that is missing, before anything is loaded."""
    from netproof.store import Store

    for name in sessions:
        if os.path.exists(name):
            continue
        if name.suffix == ".json" or os.sep in str(name):
            raise NetproofError(f"{name}: {NO_REPORT}")
        if store is None:
            raise NetproofError(f"{name} is no file here, and no store was named to look it up in")
        try:
            Store(store)
        except NetproofError as error:
            raise NetproofError(f"{name} is no file here, and {error}") from error


def _is_system(argument: str) -> bool:
    if argument == "newest" or not _SYSTEM.fullmatch(argument) or os.path.isfile(argument):
        return False
    if not os.path.isdir(argument):
        return True
    from netproof.session.records import HEADER

    return not os.path.isfile(os.path.join(argument, HEADER))


def session_and_system(
    arguments: Sequence[str] | None, store: Path | None = None, *, newest: bool = False
) -> tuple[Path | None, str | None]:
    """Return the same where there is one session at most: it, or the newest, or None."""
    sessions, system = subjects(arguments, store)
    if newest and not sessions:
        from netproof.session import session

        sessions = [session.newest(folders.of_reports(), system)]
    return (sessions[0] if sessions else None), system


def verb(cannot: str = "") -> Callable[[Callable[..., int]], Callable[..., None]]:
    """Make a function that returns an exit status a verb.

    A NetproofError, or why a file cannot be used, is printed with ``cannot`` before it, and the
    status is 2.
    """

    def decorated(function: Callable[..., int]) -> Callable[..., None]:
        @functools.wraps(function)
        def call(*arguments: object, **named: object) -> None:
            try:
                status = function(*arguments, **named)
            except (NetproofError, OSError) as error:
                if isinstance(error, OSError) and error.filename is None:
                    # One of a stream names no file.
                    raise
                if debugging():
                    traceback.print_exc()
                text = f"netproof: {cannot}{': ' if cannot else ''}{_sentence(error, '')}"
                terminal.say(text, "red", stderr=True)
                status = CANNOT
            raise typer.Exit(status)

        return call

    return decorated


def help_of(word: str) -> str:
    """Return the help of a word that has verbs below it."""
    return str(_KNOWN[word]["help"])


def described(function: Callable[..., None], verb: str) -> list[str]:
    """Give a verb's function its parameters as ``options.json`` has them, return its examples."""
    known = {**_KNOWN["any"], **_KNOWN.get(verb.split()[0], {}), **_KNOWN.get(verb, {})}
    for name, one in inspect.signature(function, eval_str=True).parameters.items():
        # What follows from a constant stands beside the parameter.
        if get_origin(one.annotation) is not Annotated:
            usage, text, *bounds = known[name]
            flags = [word for word in usage.split() if word.startswith("-")]
            metavar = " ".join(word for word in usage.split() if word not in flags)
            made = (typer.Option if flags else typer.Argument)(
                *flags, metavar=metavar or None, help=text, **(bounds[0] if bounds else {})
            )
            function.__annotations__[name] = Annotated[one.annotation, made]
    return list(known["examples"])


def printed(
    form: str,
    document: Callable[[], Mapping[str, Any]],
    parts: Callable[[bool], Iterable[Part]],
    folder: Path | None = None,
    title: str = "",
) -> None:
    """Print an answer in the form that was asked for, once its page is in ``folder``, if any.

    ``parts``: of the answer, with charts or without.
    """
    written: list[Block] = []
    if folder is not None:
        from netproof.present.html.folder import page_of, write_page

        written.append(f"page {write_page(folder, lambda: page_of(title, [*parts(True)]))}")
    if form == Form.JSON:
        documents.write(document(), sys.stdout)
        return
    for number, (_, heading, blocks) in enumerate(parts(False)):
        look = "heading" if number else "strong"
        terminal.show([*([Cell(str(heading), look)] if heading else []), *blocks])
    terminal.show(written)


def alongside(
    with_stored: bool, store: Path | None, max_age: float, leave_out_marked: bool
) -> StoredResults | None:
    """Return which stored results to show; typer.BadParameter where options do not fit."""
    if with_stored:
        if store is None:
            raise typer.BadParameter("--with-stored takes a store: --store or NETPROOF_STORE")
        from netproof.verdict.verdict import StoredResults

        return StoredResults(store, max_age, leave_out_marked)
    if leave_out_marked or max_age != MAX_AGE_DAYS:
        raise typer.BadParameter("--max-age and --leave-out-marked go with --with-stored")
    return None
