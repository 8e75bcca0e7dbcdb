"""A process next to a job's script that decides for it, since starting Python takes half a second.

The script writes a line for each question, and reads one when what was decided is in the job's
folder: ``decide`` in ``shell/steps.sh``.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable


def answer(decide: Callable[[str], None]) -> None:
    """Call ``decide`` with each line of standard input until it ends, and say when it is done.

    What it raises goes to standard error, and nothing is decided then; the next question may find
    whole what it found damaged.
    """
    for line in sys.stdin:
        try:
            decide(line.strip())
        except Exception:
            traceback.print_exc()
        print("done", flush=True)
