"""Attack netproof's readers by mutated inputs, and print a table.

An oracle judges each mutated input. It has to be refused, or read with the recorded values, or,
where the mutation is valid, with its own. All else is wrong: another error than netproof's own, a
value from nowhere, an input not refused, more than a second of CPU time or 200 MiB. Damaged stores
are tried by ``ci/evaluate store-flips``; single attacks are tests.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import multiprocessing
import os
import platform
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple, NoReturn

from ci.evaluation import attack_files, attack_inputs
from ci.evaluation.attack_inputs import REFUSED, RIGHT, WRITTEN, WRONG, Attack, Input
from ci.evaluation.command import add_numbers
from ci.evaluation.table import markdown
from netproof.errors import NetproofError
from netproof.present import terminal

MUTATED = (*attack_inputs.READERS, "patterns", "session report", "references", "site file")
"""Names of the attacks by mutated inputs, in the order of the table."""
SECONDS, MIB = 1.0, 200
ENDLESS_SECONDS = 20.0
"""CPU seconds after which an input is given up."""
MOST_MIB = 4096
"""Memory limit of a process of attacks."""
BATCH, BATCH_SECONDS = 20_000, 3600
"""Inputs that a process tries, and its CPU seconds, for an input that not even a signal ends."""


def attacks(folder: Path) -> dict[str, Attack]:
    """Return all attacks by name; ``folder`` is for inputs read from a file."""
    several = (*attack_inputs.of_outputs(), *attack_files.of_files_read(folder))
    return {attack.name: attack for attack in several}


class Batch(NamedTuple):
    """Outcomes of a process' inputs: counts, sentences, CPU seconds of the slowest, and memory."""

    counts: Counter[str]
    wrong: list[str]
    slowest_s: float
    mib: float


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


def _limited() -> None:
    """Limit this process: it ends by a signal, and the whole command by an error."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MIB * 2**20, MOST_MIB * 2**20))
    resource.setrlimit(resource.RLIMIT_CPU, (BATCH_SECONDS, BATCH_SECONDS))


def batch(name: str, seed: int, tries: int) -> Batch:
    """Try inputs in this process."""
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
    return Batch(counts, wrong, slowest, max(mib, 0.0))


SHOWN = 5
"""Largest number of an attack's wrong outcomes to print."""


def run(names: Sequence[str], seed: int, tries: int, jobs: int) -> int:
    """Try attacks and print the table; return 0 if nothing was wrong, otherwise 1."""
    wrong = list[str]()
    rows = [["attack", "tries", REFUSED, RIGHT, WRITTEN, WRONG, "slowest s", "most MiB"]]
    with multiprocessing.get_context("fork").Pool(jobs, _limited, maxtasksperchild=1) as pool:
        begun = {
            name: [
                pool.apply_async(batch, (name, int(f"{seed}{number:06d}"), min(BATCH, tries - at)))
                for number, at in enumerate(range(0, tries, BATCH))
            ]
            for name in names
        }
        for name, several in begun.items():
            done = [one.get(len(names) * BATCH_SECONDS) for one in several]
            counts = sum((one.counts for one in done), Counter())
            wrong += [f"{name}: {said}" for one in done for said in one.wrong][:SHOWN]
            counted = [counts.total(), *(counts[kind] for kind in (REFUSED, RIGHT, WRITTEN, WRONG))]
            slowest, most = max(one.slowest_s for one in done), max(one.mib for one in done)
            cells = [*(f"{count:,}" for count in counted), f"{slowest:.2f}", f"{most:.0f}"]
            rows.append([name, *cells])
            print(*rows[-1], file=sys.stderr)
    known = ("netproof", "ReFrame-HPC", "PyYAML", "ruamel.yaml", "pyarrow")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in known)
    print(f"{date.today()}, Python {platform.python_version()}, {versions}; seed {seed}\n")
    print("\n".join(markdown(rows)))
    for sentence in wrong:
        terminal.say(sentence)
    return 1 if wrong else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="ci/evaluate attacks", description=__doc__.split("\n")[0])
    parser.add_argument("--only", action="append", choices=MUTATED, help="this attack alone")
    add_numbers(
        *(parser, int, 1),
        ("tries", 1000, "mutated inputs of each kind"),
        ("seed", 1, "the same one makes the same inputs"),
        ("jobs", len(os.sched_getaffinity(0)), "processes at a time"),
    )
    options = parser.parse_args(arguments)
    return run(options.only or MUTATED, options.seed, options.tries, options.jobs)
