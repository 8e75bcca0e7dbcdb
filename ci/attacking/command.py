"""Attacks on what netproof reads, on whom it trusts, and on what it hands on; a table of them all.

Mutated inputs, each judged by an oracle that knows the truth: one is refused, or read right: with
the values that were recorded, or, where the mutation made another valid input, with those that
stand in it. All else is wrong: another error than netproof's own, a value that stands nowhere, an
input that had to be refused and was not, more than a second of the processor, more than 200 MiB.
Damaged stores, by ``ci/store-flips``. And what is tried once in each way, by the tests that try it.
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
from netproof.present import tables

SHOWN = 5
"""Wrong outcomes of an attack that are printed."""


def run(names: Sequence[str], seed: int, tries: int, jobs: int) -> int:
    """Try attacks and print the tables; exit status 0 nothing was wrong, 1 something was."""
    out, err = tables.console(), tables.console(stderr=True)
    known = ("ReFrame-HPC", "PyYAML", "ruamel.yaml", "pyarrow")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in known)
    tables.say(
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
            tables.say(err, f"{name}: {count:,} tried, {came}")
            table.add_row(name, f"{count:,}", came)
            wrong += [f"{name}: {sentence}" for sentence in sentences[:SHOWN]]
    if others:
        out.print(table)
    for sentence in wrong:
        tables.say(out, sentence)
    return 1 if wrong else 0


def _run_mutated(names: Sequence[str], seed: int, tries: int, jobs: int) -> list[str]:
    """Print the table of mutated inputs, and return what was wrong."""
    heads = ("attack", "tries", REFUSED, RIGHT, WRITTEN, WRONG, "slowest s", "most MiB")
    table = _table(heads, left=("attack",))
    wrong: list[str] = []
    err = tables.console(stderr=True)
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
            told = [sentence for one in done for sentence in one["wrong"]]
            wrong += [f"{name}: {sentence}" for sentence in told[:SHOWN]]
            tables.say(err, f"{name}: {sum(counts.values()):,} tried, {counts[WRONG]:,} wrong")
            table.add_row(
                name,
                f"{sum(counts.values()):,}",
                *(f"{counts[kind]:,}" for kind in (REFUSED, RIGHT, WRITTEN, WRONG)),
                f"{max(one['slowest'] for one in done):.2f}",
                f"{max(one['mib'] for one in done):.0f}",
            )
    if names:
        tables.console().print(table)
    return wrong


def _table(heads: Sequence[str], left: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        table.add_column(head, justify="left" if head in left else "right", no_wrap=True)
    return table


def main() -> int:
    """The command line."""
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
    asked = parser.parse_args()
    for option in ("tries", "jobs"):
        if getattr(asked, option) < 1:
            parser.error(f"--{option}: at least 1")
    if asked.batch:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MIB * 2**20, MOST_MIB * 2**20))
        print(json.dumps(batch(asked.batch, asked.seed, asked.tries)))
        return 0
    return run(asked.only or every, asked.seed, asked.tries, asked.jobs)
