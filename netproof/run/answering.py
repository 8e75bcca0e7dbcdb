"""A process beside a job's script that decides for it, since Python takes half a second to start.

The script writes a line for each question, and reads one when the decision is in the job's folder:
``decide`` in ``shell/steps.sh``.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable

QUESTION_FILE = "question.json"
"""What is to be decided, in the job's folder."""

CLOSED_FILE = "closed.txt"
"""Labels of decided cases, which are launched no more, a line each."""


def answer(decide: Callable[[str], None]) -> None:
    """Call ``decide`` with each line of standard input, and print ``done`` after each.

    Exceptions go to standard error and decide nothing; files that were damaged at one question may
    be whole at the next.
    """
    for line in sys.stdin:
        try:
            decide(line.strip())
        except Exception:
            traceback.print_exc()
        print("done", flush=True)
