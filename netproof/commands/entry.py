"""The entry to every command: its arguments, and how it ends whatever happens.

Status 1 is a verdict: a network failed. Whatever stops a command, foreseen or not, ends with 2 and
a sentence, and a reader that has gone, as ``head`` does, with SIGPIPE's status and none.
"""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

import typer

from netproof.errors import NetproofError, shortened
from netproof.present.wording import visible
from netproof.verdict import CANNOT

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
