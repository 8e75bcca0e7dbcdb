"""The entry to every command: its arguments, and how it ends whatever happens.

Status 1 is a verdict: a network failed. Whatever stops a command, foreseen or not, ends with 2 and
a sentence.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

import typer

from netproof.errors import NetproofError, shortened
from netproof.present.characters import visible

DEBUG = "--debug"
CANNOT = 2
INTERRUPTED = 128 + signal.SIGINT


def debugging() -> bool:
    """Return whether the process was called with ``--debug``."""
    arguments = sys.argv[1:]
    return DEBUG in (arguments[: arguments.index("--")] if "--" in arguments else arguments)


def run(app: Callable[..., object], program: str) -> NoReturn:
    """Call a command with the arguments of the process, and end the process with its status.

    ``app``: from typer; ``program``: its name in messages.
    """
    _open_standard_streams(program)
    arguments, debug = sys.argv[1:], debugging()
    if debug:
        arguments.remove(DEBUG)
    status, out = CANNOT, sys.stdout
    try:
        ended = app(args=arguments, prog_name=program, standalone_mode=False)
        status = ended if isinstance(ended, int) else 0
    except typer.TyperException as error:
        # typer reports wrong arguments itself.
        error.show() if hasattr(error, "show") else _say(f"{program}: {error}")
    except (KeyboardInterrupt, typer.Abort):
        _say(f"{program}: interrupted")
        status = INTERRUPTED
    except NetproofError as error:
        _tell(debug)
        _say(f"{program}: {error}")
    except OSError as error:
        _tell(debug)
        if error.filename is not None:
            _say(f"{program}: {error.filename}: {error.strerror}{_remedy(debug)}")
        else:
            # An error of a stream names no file.
            _say(f"{program}: the output cannot be written: {error.strerror or error}")
    except SystemExit:
        # Commands end by typer.Exit. This is how typer, with another stream in place, and rich
        # end where the reader has gone: with status 1.
        sys.stdout = out
        _say(f"{program}: the output cannot be written: {os.strerror(errno.EPIPE)}")
    except BaseException as error:
        _tell(debug)
        _say(
            f"{program}: {_named(error)}; this is a defect in netproof or a damaged file"
            f"{_remedy(debug)}"
        )
    sys.exit(_flushed(status, program))


def _open_standard_streams(program: str) -> None:
    """Let characters that a terminal lacks never stop a command, and let a closed stream stop it.

    Python has no stream where the descriptor was closed, and the next file that is opened would get
    its number.
    """
    closed = [number for number in range(3) if not _is_open(number)]
    for _ in closed:
        os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        _say(f"{program}: standard output is closed, so that nothing could be said")
        sys.exit(CANNOT)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _flushed(status: int, program: str) -> int:
    """Return the status, or the one for no result where the output cannot be written."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # The rest of the buffer would fail again as the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if status != CANNOT:
            _say(f"{program}: the output cannot be written: {error.strerror}")
        return CANNOT
    return status


def _named(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "memory ran out"
    if isinstance(error, RecursionError):
        return "RecursionError: something is nested too deeply"
    return shortened(" ".join(traceback.format_exception_only(error)[-1].split()))


def _remedy(debug: bool) -> str:
    return "" if debug else f"; {DEBUG} shows where"


def _tell(debug: bool) -> None:
    if debug:
        traceback.print_exc()


def _say(sentence: str) -> None:
    try:
        print(visible(sentence), file=sys.stderr, flush=True)
    except OSError:
        # The status is all that is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
