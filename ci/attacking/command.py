"""Attack netproof's inputs, trust and outputs, and print a table.

An oracle judges each mutated input. It has to be refused, or read with the recorded values, or,
where the mutation is valid, with its own. All else is wrong: another error than netproof's own, a
value from nowhere, an input not refused, more than a second of CPU time or 200 MiB. Damaged stores
are tried by ``ci/store-flips``, single attacks by their tests.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import resource
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from rich import box
from rich.table import Table

from ci.attacking.inputs import REFUSED, RIGHT, WRITTEN, WRONG
from ci.attacking.kinds import MUTATED
from ci.attacking.listed import FLIPS, LISTED, flips, listed
from ci.attacking.trying import BATCH, MOST_MIB, batch, one_batch
from netproof.present import terminal

SHOWN = 5
"""Largest number of an attack's wrong outcomes to print."""


def run(names: Sequence[str], seed: int, tries: int, jobs: int) -> int:
    """Try attacks and print the tables; return 0 if nothing was wrong, otherwise 1."""
    out, err = terminal.console(), terminal.console(stderr=True)
    known = ("ReFrame-HPC", "PyYAML", "ruamel.yaml", "pyarrow")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in known)
    terminal.say(
        out,
        f"{datetime.now(UTC):%Y-%m-%d}, netproof {importlib.metadata.version('netproof')},"
        f" Python {platform.python_version()}, {versions}; seed {seed}",
    )
    wrong = _run_mutated([name for name in names if name in MUTATED], seed, tries, jobs)
    others = [name for name in names if name not in MUTATED]
    with ThreadPoolExecutor(jobs) as pool:
        done = [
            pool.submit(flips, max(1, tries // 10), seed)
            if name == FLIPS
            else pool.submit(listed, LISTED[name])
            for name in others
        ]
        table = _table(("attack", "tries", "outcome"), left=("attack", "outcome"))
        for name, one in zip(others, done, strict=True):
            count, came, sentences = one.result()
            terminal.say(err, f"{name}: {count:,} tried, {came}")
            table.add_row(name, f"{count:,}", came)
            wrong += [f"{name}: {sentence}" for sentence in sentences[:SHOWN]]
    if others:
        out.print(table)
    for sentence in wrong:
        terminal.say(out, sentence)
    return 1 if wrong else 0


def _run_mutated(names: Sequence[str], seed: int, tries: int, jobs: int) -> list[str]:
    """Print the table of mutated inputs, and return the wrong outcomes."""
    heads = ("attack", "tries", REFUSED, RIGHT, WRITTEN, WRONG, "slowest s", "most MiB")
    table = _table(heads, left=("attack",))
    wrong: list[str] = []
    err = terminal.console(stderr=True)
    with ThreadPoolExecutor(jobs) as pool:
        begun = [
            [
                pool.submit(one_batch, name, int(f"{seed}{number:06d}"), min(BATCH, tries - begin))
                for number, begin in enumerate(range(0, tries, BATCH))
            ]
            for name in names
        ]
        for name, several in zip(names, begun, strict=True):
            done = [one.result() for one in several]
            counts: Counter[str] = Counter()
            for one in done:
                counts.update(one["counts"])
            sentences = [sentence for one in done for sentence in one["wrong"]]
            wrong += [f"{name}: {sentence}" for sentence in sentences[:SHOWN]]
            terminal.say(err, f"{name}: {sum(counts.values()):,} tried, {counts[WRONG]:,} wrong")
            table.add_row(
                name,
                f"{sum(counts.values()):,}",
                *(f"{counts[kind]:,}" for kind in (REFUSED, RIGHT, WRITTEN, WRONG)),
                f"{max(one['slowest'] for one in done):.2f}",
                f"{max(one['mib'] for one in done):.0f}",
            )
    if names:
        terminal.console().print(table)
    return wrong


def _table(heads: Sequence[str], left: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        table.add_column(head, justify="left" if head in left else "right", no_wrap=True)
    return table


def main() -> int:
    """Run the command line."""
    every = (*MUTATED, FLIPS, *LISTED)
    parser = argparse.ArgumentParser(prog="ci/attacks", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--tries", type=int, default=1000, help="mutated inputs of each kind (default 1000)"
    )
    parser.add_argument("--seed", type=int, default=1, help="the same one makes the same inputs")
    parser.add_argument("--only", action="append", choices=every, help="this attack alone")
    parser.add_argument(
        "--jobs",
        type=int,
        default=len(os.sched_getaffinity(0)),
        help="processes at a time (default: the CPUs)",
    )
    parser.add_argument("--batch", choices=MUTATED, help=argparse.SUPPRESS)
    options = parser.parse_args()
    for name in ("tries", "jobs"):
        if getattr(options, name) < 1:
            parser.error(f"--{name}: at least 1")
    if options.batch:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MIB * 2**20, MOST_MIB * 2**20))
        print(json.dumps(batch(options.batch, options.seed, options.tries)))
        return 0
    return run(options.only or every, options.seed, options.tries, options.jobs)
