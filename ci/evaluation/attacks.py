"""Attack netproof's readers by mutated inputs, and print a table.

An oracle judges each mutated input. It has to be refused, or read with the recorded values, or,
where the mutation is valid, with its own. All else is wrong: another error than netproof's own, a
value from nowhere, an input not refused, more than a second of CPU time or 200 MiB. Damaged stores
are tried by ``ci/store-flips``; single attacks are tests.
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
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, NoReturn

from rich import box
from rich.table import Table

from ci.evaluation import attack_files, attack_inputs
from ci.evaluation.attack_inputs import REFUSED, RIGHT, WRITTEN, WRONG, Attack, Input
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
    """Try attacks and print the tables; return 0 if nothing was wrong, otherwise 1."""
    out = terminal.console()
    known = ("ReFrame-HPC", "PyYAML", "ruamel.yaml", "pyarrow")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in known)
    terminal.say(
        out,
        f"{datetime.now(UTC):%Y-%m-%d}, netproof {importlib.metadata.version('netproof')},"
        f" Python {platform.python_version()}, {versions}; seed {seed}",
    )
    wrong = _run_mutated(names, seed, tries, jobs)
    for sentence in wrong:
        terminal.say(out, sentence)
    return 1 if wrong else 0


def _run_mutated(names: Sequence[str], seed: int, tries: int, jobs: int) -> list[str]:
    """Print the table of mutated inputs, and return the wrong outcomes."""
    heads = ("attack", "tries", REFUSED, RIGHT, WRITTEN, WRONG, "slowest s", "most MiB")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        table.add_column(head, justify="left" if head == "attack" else "right", no_wrap=True)
    wrong: list[str] = []
    err = terminal.console(stderr=True)
    forked = multiprocessing.get_context("fork")
    with forked.Pool(jobs, _limited, maxtasksperchild=1) as pool:
        begun = [
            [
                pool.apply_async(
                    batch, (name, int(f"{seed}{number:06d}"), min(BATCH, tries - begin))
                )
                for number, begin in enumerate(range(0, tries, BATCH))
            ]
            for name in names
        ]
        for name, several in zip(names, begun, strict=True):
            done = [one.get(len(names) * BATCH_SECONDS) for one in several]
            counts: Counter[str] = Counter()
            for one in done:
                counts.update(one.counts)
            sentences = [sentence for one in done for sentence in one.wrong]
            wrong += [f"{name}: {sentence}" for sentence in sentences[:SHOWN]]
            terminal.say(err, f"{name}: {sum(counts.values()):,} tried, {counts[WRONG]:,} wrong")
            table.add_row(
                name,
                f"{sum(counts.values()):,}",
                *(f"{counts[kind]:,}" for kind in (REFUSED, RIGHT, WRITTEN, WRONG)),
                f"{max(one.slowest_s for one in done):.2f}",
                f"{max(one.mib for one in done):.0f}",
            )
    terminal.console().print(table)
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="ci/attacks", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--tries", type=int, default=1000, help="mutated inputs of each kind (default 1000)"
    )
    parser.add_argument("--seed", type=int, default=1, help="the same one makes the same inputs")
    parser.add_argument("--only", action="append", choices=MUTATED, help="this attack alone")
    parser.add_argument(
        "--jobs",
        type=int,
        default=len(os.sched_getaffinity(0)),
        help="processes at a time (default: the CPUs)",
    )
    options = parser.parse_args(arguments)
    for name in ("tries", "jobs"):
        if getattr(options, name) < 1:
            parser.error(f"--{name}: at least 1")
    return run(options.only or MUTATED, options.seed, options.tries, options.jobs)
