"""Try many inputs of an attack in a process of its own, and count the outcomes."""

from __future__ import annotations

import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

from ci.attacking.inputs import REFUSED, RIGHT, WRITTEN, WRONG, Attack, Input
from ci.attacking.kinds import attacks
from netproof.errors import NetproofError

PROGRAM = str(Path(__file__).parent)
SECONDS, MIB = 1.0, 200
ENDLESS_SECONDS = 20.0
"""CPU seconds after which an input is given up."""
MOST_MIB = 4096
"""Memory limit of a process of attacks."""
BATCH = 20_000


BATCH_SECONDS = 3600
"""Time limit of a batch, for an input that not even a signal ends."""


class _Endless(BaseException):
    """An input that was given up."""


def _give_up(*_: object) -> NoReturn:
    raise _Endless


def outcome(attack: Attack, given: Input) -> str:
    """Return the outcome of one input: REFUSED, RIGHT, WRITTEN, or the fault."""
    signal.setitimer(signal.ITIMER_PROF, ENDLESS_SECONDS)
    try:
        found = attack.judge(given)
    except NetproofError as error:
        return REFUSED if len(str(error)) < 10_000 else "an error of 10,000 characters and more"
    except (Exception, _Endless) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if given.must_refuse and found != REFUSED:
        return "was read, and has to be refused"
    return found


def batch(name: str, seed: int, tries: int) -> dict[str, Any]:
    """Try inputs in this process; return counts, wrong ones, slowest in s, most MiB."""
    signal.signal(signal.SIGPROF, _give_up)
    with tempfile.TemporaryDirectory(prefix="netproof-attacks-") as folder:
        attack = attacks(Path(folder))[name]
        draw = random.Random(f"{name} {seed}")
        counts: Counter[str] = Counter()
        wrong, slowest = [], 0.0
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in range(tries):
            given = attack.make(draw)
            began = time.process_time()
            found = outcome(attack, given)
            took = time.process_time() - began
            slowest = max(slowest, took)
            mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
            if took > SECONDS:
                found = f"took {took:.1f} s"
            elif mib > MIB:
                found = f"took {mib:.0f} MiB"
                before += int(mib * 1024)
            kind = found if found in (REFUSED, RIGHT, WRITTEN) else WRONG
            counts[kind] += 1
            if kind == WRONG:
                wrong.append(f"seed {seed}, try {number}, {Path(given.origin).name}: {found}"[:300])
    return {"counts": counts, "wrong": wrong, "slowest": slowest, "mib": max(mib, 0.0)}


def one_batch(name: str, seed: int, tries: int) -> dict[str, Any]:
    """Run ``batch`` in a process of its own; if it is killed, all its tries count as wrong."""
    command = [sys.executable, PROGRAM, "--batch", name, "--seed", f"{seed}"]
    try:
        ran = subprocess.run(
            [*command, "--tries", f"{tries}"],
            capture_output=True,
            text=True,
            timeout=BATCH_SECONDS,
            check=True,
        )
        return json.loads(ran.stdout)
    except subprocess.TimeoutExpired:
        return _lost(tries, f"seed {seed}: did not end within {BATCH_SECONDS} s")
    except subprocess.CalledProcessError as error:
        return _lost(tries, f"seed {seed}: status {error.returncode}: {error.stderr[-300:]}")


def _lost(tries: int, why: str) -> dict[str, Any]:
    return {"counts": {WRONG: tries}, "wrong": [why], "slowest": 0.0, "mib": 0.0}
