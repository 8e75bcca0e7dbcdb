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
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from rich import box
from rich.table import Table

from ci.evaluation import attack_files, attack_inputs, store_flips
from ci.evaluation.attack_inputs import REFUSED, RIGHT, WRITTEN, WRONG, Attack, Input
from ci.evaluation.testbed import ROOT
from netproof.errors import NetproofError
from netproof.present import terminal

MUTATED = (
    *("NetPIPE file", "NetPIPE print", *attack_inputs.READERS, "session report", "references"),
    *("site file", "topology", "patterns"),
)
"""Names of the attacks by mutated inputs, in the order of the table."""
FLIPS = "bits of a store flipped, files cut"
_JUDGING, _HISTORY = (
    "tests/netproof/commands/test_judging.py",
    "tests/netproof/history/test_command.py",
)
_PAGES, _EXPORT = (
    "tests/netproof/present/html/test_pages.py",
    "tests/netproof/present/test_export.py",
)
_NETPIPE, _LOADING = (
    "tests/netproof/benchmarks/test_parse_netpipe.py",
    "tests/netproof/intake/test_loading.py",
)
_TRUST, _REFERENCES = (
    "tests/netproof/intake/test_trust.py",
    "tests/netproof/verdict/test_references.py",
)
LISTED = {
    "code and configuration where others can write": (
        _TRUST,
        f"--deselect={_TRUST}::TestASlurmConfThatNamesNothing",
    ),
    "reports that contradict themselves, references since changed": (
        "tests/netproof/verdict/test_contradictions.py",
    ),
    "faults that nobody foresaw, faulty input to every verb": (
        "tests/netproof/commands/test_entry.py",
        "tests/netproof/commands/test_exit_statuses.py",
    ),
    "a link to nothing, a report cut short among others": (
        f"{_JUDGING}::test_a_link_to_nothing_alongside_the_reports_is_named_and_stops_no_verdict",
        f"{_JUDGING}::test_an_earlier_report_that_cannot_be_read_is_told",
    ),
    "a damaged session among sound ones": (
        f"{_HISTORY}::test_a_damaged_session_is_named_and_left_out_and_the_exit_status_says_so",
        f"{_HISTORY}::test_with_a_damaged_session_what_is_worse_fails_all_the_same",
        f"{_HISTORY}::test_where_no_session_can_be_read_the_files_are_named",
    ),
    "keys twice, no numbers, bombs, depth, endless expressions": (
        _LOADING,
        f"{_REFERENCES}::test_what_loosens_a_bound_unseen_or_never_ends_is_refused_with_its_line",
        f"{_REFERENCES}::test_bombs_of_aliases_and_merges_are_refused_at_once",
        "tests/netproof/criteria/test_settings.py",
    ),
    "pipes and devices in a file's place": (
        f"{_LOADING}::test_what_is_no_file_is_refused_and_not_waited_for",
    ),
    "a line of 100 MB": (f"{_NETPIPE}::test_a_line_of_100_mb_is_quoted_by_its_beginning",),
    "a NetPIPE file that lost lines": (
        f"{_NETPIPE}::test_a_file_from_which_lines_are_missing_is_refused_with_their_sizes",
        f"{_NETPIPE}::test_sizes_that_no_run_visits_are_refused",
    ),
    "control characters in charts and pages": (
        f"{_PAGES}::test_charts_of_names_with_control_characters_are_xml",
        "tests/netproof/present/html/test_html.py",
    ),
    "formulas in CSV": (
        f"{_EXPORT}::test_text_that_a_spreadsheet_takes_for_a_formula_is_marked_as_text",
    ),
    "a SLURM_CONF that names nothing": (f"{_TRUST}::TestASlurmConfThatNamesNothing",),
    "text from outside in job scripts, JUnit, hook, crontab, names": (
        "tests/netproof/commands/test_hostile_text.py",
    ),
}
"""Single attacks, and the tests that try them."""


def flips(tries: int, seed: int) -> tuple[int, str, list[str]]:
    """Damage a store; return the number of faults, their outcome, and those not found."""
    with tempfile.TemporaryDirectory(prefix="netproof-attacks-") as folder:
        found = store_flips.run(Path(folder), store_flips.REPORTS, tries=tries, seed=seed)
    count = sum(one.tries for one in found)
    named = sum(min(one.named, one.checked) for one in found)
    wrong = [
        f"{one.name}: {one.named} named when read, {one.checked} by the check, of {one.tries}"
        for one in found
        if not one.named == one.checked == one.tries
    ]
    return count, f"{named:,} found and named", wrong


def listed(tests: Sequence[str]) -> tuple[int, str, list[str]]:
    """Run an attack's tests; return their number, their outcome, and the failures."""
    with tempfile.TemporaryDirectory(prefix="netproof-attacks-") as folder:
        junit = Path(folder) / "junit.xml"
        options = ["-q", "-p", "no:cacheprovider", f"--junitxml={junit}"]
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if not junit.exists():
            end = (ran.stdout + ran.stderr)[-300:].strip()
            return 0, "not tried", [f"pytest left no result (ci/setup --test installs it): {end}"]
        cases = list(ET.parse(junit).getroot().iter("testcase"))
    wrong = [
        f"{case.get('classname')}::{case.get('name')}: {child.tag}"
        for case in cases
        for child in case
        if child.tag in ("failure", "error", "skipped")
    ]
    if ran.returncode and not wrong:
        wrong = [f"pytest ended with {ran.returncode}: {ran.stdout[-300:]}"]
    held = len(cases) - len({sentence.rpartition(":")[0] for sentence in wrong})
    return len(cases), f"{held} held" if cases else "not tried", wrong


SECONDS, MIB = 1.0, 200
ENDLESS_SECONDS = 20.0
"""CPU seconds after which an input is given up."""
MOST_MIB = 4096
"""Memory limit of a process of attacks."""
BATCH = 20_000


BATCH_SECONDS = 3600
"""Time limit of a batch, for an input that not even a signal ends."""


def attacks(folder: Path) -> dict[str, Attack]:
    """Return all attacks by name; ``folder`` is for inputs read from a file."""
    several = (*attack_inputs.of_outputs(), *attack_files.of_files_read(folder))
    found = {attack.name: attack for attack in several}
    return {name: found[name] for name in MUTATED}


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
    command = [
        sys.executable,
        "-m",
        "ci.evaluation",
        "attacks",
        "--batch",
        name,
        "--seed",
        f"{seed}",
    ]
    try:
        ran = subprocess.run(
            [*command, "--seed", f"{seed}", "--tries", f"{tries}"],
            capture_output=True,
            text=True,
            timeout=BATCH_SECONDS,
            check=True,
            cwd=ROOT,
        )
        return json.loads(ran.stdout)
    except subprocess.TimeoutExpired:
        return _lost(tries, f"seed {seed}: did not end within {BATCH_SECONDS} s")
    except subprocess.CalledProcessError as error:
        return _lost(tries, f"seed {seed}: status {error.returncode}: {error.stderr[-300:]}")


def _lost(tries: int, why: str) -> dict[str, Any]:
    return {"counts": {WRONG: tries}, "wrong": [why], "slowest": 0.0, "mib": 0.0}


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


def main(arguments: Sequence[str] | None = None) -> int:
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
    options = parser.parse_args(arguments)
    for name in ("tries", "jobs"):
        if getattr(options, name) < 1:
            parser.error(f"--{name}: at least 1")
    if options.batch:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MIB * 2**20, MOST_MIB * 2**20))
        print(json.dumps(batch(options.batch, options.seed, options.tries)))
        return 0
    return run(options.only or every, options.seed, options.tries, options.jobs)
