"""Attack netproof's readers by mutated inputs, and print a table.

An oracle judges each mutated input. It has to be refused, or read with the recorded values, or,
where the mutation is valid, with its own. All else is wrong: another error than netproof's own, a
value from nowhere, more than a second of CPU time or 200 MiB. Damaged stores are tried by
``ci/evaluate store-flips``; single attacks, and what has to be refused, are tests.
"""

from __future__ import annotations

import argparse
import copy
import importlib.metadata
import json
import multiprocessing
import os
import platform
import pprint
import random
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import yaml

from ci.evaluation.machine import ROOT
from ci.evaluation.plants import TABLES
from ci.evaluation.table import show
from netproof import codec
from netproof.benchmarks import outputs
from netproof.benchmarks.interface import GUESS, Table
from netproof.errors import NetproofError
from netproof.intake import models
from netproof.measurement.case import Case
from netproof.present import terminal
from netproof.session import session
from netproof.session.measured import Measured, of_record
from netproof.site import matrix, site
from netproof.site.partition import ENVIRONMENT_KEYS, PARTITION_KEYS
from netproof.verdict.references import ReferenceFile

DATA = ROOT / "tests" / "data"
REFUSED, RIGHT, WRITTEN, WRONG = KINDS = ("refused", "right", "as written", "wrong")
SMALL = 8000
"""Bytes of a recorded output that is mutated: many small inputs try more than few large ones."""
LARGEST = 10_000_000
"""Largest input in characters, so that writing it does not take the memory."""
SECONDS, MIB = 1.0, 200
ENDLESS_SECONDS = 20.0
"""CPU seconds after which an input is given up."""
MOST_MIB = 4096
"""Memory limit of a process of attacks."""
BATCH, BATCH_SECONDS = 20_000, 3600
"""Inputs that a process tries, and its CPU seconds, for an input that not even a signal ends."""
SHOWN = 5
"""Largest number of an attack's wrong outcomes to print."""

Judge = Callable[[str, str], str]
"""Reads an input of an origin; returns RIGHT, WRITTEN or the fault. NetproofError is a refusal."""


class Attack(NamedTuple):
    """A kind of input: maker of a text, with its origin, and judge of what is read of it."""

    make: Callable[[random.Random], tuple[str, str]]
    judge: Judge


_WORDS = (
    *("nan", "inf", "-1", "1e999", "0", "0.00", "99999999999999999999", "-", "null", "[]", "{}"),
    *("\x00", "\x1b[31m", "é", "?", "\r", "\t", "9" * 400, "", "[" * 50_000, "{" * 2000),
)


def mutated(text: str, others: Sequence[str], draw: random.Random) -> str:
    """Put one to three faults into a text: a part of it is lost, changed, multiplied or moved."""
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        at, other = draw.randrange(len(text) + 1), draw.choice(others)
        there = draw.choice((".", "[0-9]", "[0-9]", r"[^ \n,]+", r".*\n", ".{,40}", "(?s:.*)", ""))
        found = re.compile(there).search(text, at)
        begin, end = found.span() if found else (at, at)
        part = text[begin:end]
        new = draw.choice(
            (
                draw.choice("0123456789"),
                draw.choice("0123456789 .-#:,{}[]\"'\n*&!|>%@x"),
                draw.choice(_WORDS),
                part * draw.choice((0, 2, 50)),
                other[draw.randrange(len(other)) :] if end == len(text) else "",
            )
        )
        if part.endswith("\n") and draw.random() < 0.5:
            # The line comes back somewhere else.
            text, new, begin = text[:begin] + text[end:], part, draw.randrange(len(text))
            begin = end = text.rfind("\n", 0, begin) + 1
        text = (text[:begin] + new + text[end:])[:LARGEST]
    return text


def of_texts(texts: dict[str, str]) -> Callable[[random.Random], tuple[str, str]]:
    """Return a maker of inputs from texts by origin."""

    def make(draw: random.Random) -> tuple[str, str]:
        origin = draw.choice(list(texts))
        return mutated(texts[origin], list(texts.values()), draw), origin

    return make


# Outputs of benchmarks.

READERS: dict[str, list[str]] = TABLES["evaluations"]["readers"]
"""Recorded outputs, by the name of the attack on their reader."""
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?")


def of_program(name: str) -> Attack:
    """Return the attack on a program's reader by its recorded outputs that are read whole."""
    texts, truth = dict[str, str](), dict[str, list[tuple[tuple, tuple]]]()
    for path in (path for one in READERS[name] for path in sorted(DATA.glob(one))):
        if path.stat().st_size < SMALL:
            with suppress(NetproofError):
                found = _believed(text := path.read_text(), str(path))
                truth[str(path)] = [(kind, _points(table)) for _, kind, table in found]
                texts[str(path)] = text
    return Attack(of_texts(texts), partial(of_output, truth=truth))


def _believed(text: str, origin: str) -> list[tuple[bool, tuple, Table]]:
    """Return each table read: whether its program's last line is there, its kind, and itself.

    Without its banner IMB's last line says nothing.
    """
    log = outputs.read(outputs.shown(text), origin, bidirectional="both-ways" in origin)
    return [
        (
            output.ended and (output.of.name != "imb" or output.version is not None),
            (output.of.name, one.function, one.ranks, one.groups, one.group),
            one,
        )
        for output in log.outputs
        for one in output.tables
    ]


def _points(table: Table) -> tuple:
    return tuple((row.size, row.time_us, row.failure) for row in table.rows)


def of_output(text: str, origin: str, truth: Mapping[str, Sequence[tuple[tuple, tuple]]]) -> str:
    """Judge what all readers together make of an input; ``truth``: tables that have parts in it."""
    known = [one for tables in truth.values() for one in tables]
    lines, outcome = outputs.shown(text).split("\n"), REFUSED
    for ended, kind, table in _believed(text, origin):
        outcome = RIGHT if outcome == REFUSED else outcome
        points, guessed = _points(table), GUESS in table.remark
        same = [one for other, one in known if guessed or other == kind]
        # A failed size makes no curve.
        if points in same or any(failure for *_, failure in points):
            continue
        # Only programs without a last line have beginnings that nothing tells from a whole.
        if not ended and any(points == one[: len(points)] for one in same):
            continue
        sizes = [point[0] for point in points]
        for other, one in truth[origin]:
            # One of another text has nothing to do with it.
            if other != kind or set(points).isdisjoint(one):
                continue
            there = [point[0] for point in one]
            within = [size for size in there if sizes[0] <= size <= sizes[-1]]
            # Of sizes from a file of lengths only that file knows how many there are, and without
            # its banner nothing says at which size IMB began, or what followed 0.
            listed = "lengths were user defined" in text
            if not ended and len(sizes) > 1:
                within = [size for size in within if size in sizes or size > sizes[1]]
            if set(sizes) < set(there) and (ended or sizes != within) and not listed:
                return f"{kind} lacks sizes: {sorted({*there} - {*sizes})}"
        for row in table.rows:
            # JSON has no lines.
            words = set(map(float, _NUMBER.findall(lines[row.line - 1] if row.line else text)))
            stated = [one for one in row.values.values() if isinstance(one, float)]
            derived = kind[0] in ("mpigraph", "linktest", "iperf3")
            if "3.7.2" in origin:
                # Files of NetPIPE 3 have seconds, and both directions together; its print has µs.
                together = "both-ways" in origin and "usec" not in lines[row.line - 1]
                stated.append(row.size * (2 if together else 1))
                words |= {round(1e6 * word, 9) for word in words}
            if not row.failure and not derived and not set(stated) <= words:
                return f"line {row.line} says {sorted(words)[:20]}, and read was {row}"
        outcome = WRITTEN
    return outcome


# A site's patterns.


def _pattern(draw: random.Random) -> tuple[str, str]:
    def part(depth: int) -> str:
        kind = draw.randrange(7 if depth else 3)
        if kind < 3:
            return draw.choice(("a", "[a-z]", ".", "\\w", "gige", "x|y", "[a-zA-Z0-9 ]", "\\d"))
        if kind == 3:
            return f"({part(depth - 1)}|{part(depth - 1)})"
        if kind == 4:
            return part(depth - 1) + part(depth - 1)
        return f"({part(depth - 1)}){draw.choice(('*', '+', '?', '{2,9}', '{40}', '*?', '{1,}'))}"

    return part(draw.randint(1, 6)) + draw.choice(("", "!", "$", "z")), "made"


def _matched(text: str, origin: str) -> str:
    for search in (False, True):
        taken = models.expression(text, search=search)
        for there in ("a" * 60, "gige openmpi-5.0 IMB Alltoallv 64 ranks", "ab" * 30 + "?"):
            taken.search(there) if search else taken.fullmatch(there)
    return RIGHT


# Session reports.

_REPORTS = {
    "netpipe.json": ("netpipe-whole.json", ("NetpipeJob", "NetpipeTcp", "NetpipeMpi"), 4),
    "ranges.json": ("ranges.json", ("ImbJob", "ImbPingPong", "ImbAllreduce", "Imb"), 3),
    "again.json": ("sick.json", ("Imb",), 3),
}
"""Reports of attacks: the recorded session, its checks, and the number of cases."""


def _some_of(name: str, checks: Sequence[str], most: int) -> str:
    """Return a recorded report with some of its cases; faults hit a small one where it counts."""
    document = json.loads((DATA / "sessions" / name).read_text())
    left = most
    for run in document["runs"]:
        cases = [one for one in run["testcases"] if one["display_name"].startswith(tuple(checks))]
        run["testcases"] = cases[:left]
        left -= len(run["testcases"])
        run["num_cases"] = len(run["testcases"])
    return json.dumps(document, indent=2)


def of_reports(folder: Path) -> Attack:
    """Return the attack on session reports; ``folder`` gets each input."""
    path, texts = folder / "run-1.json", {name: _some_of(*of) for name, of in _REPORTS.items()}

    def read(text: str) -> list[Any]:
        path.write_text(text, errors="surrogatepass")
        return [(one.measured, one.extras) for one in session.load(path).results]

    truth = {name: read(text) for name, text in texts.items()}

    def judge(text: str, origin: str) -> str:
        if (measured := read(text)) == truth[origin]:
            return RIGHT
        tests = (test for run in json.loads(text)["runs"] for test in run["testcases"])
        stated = [test.get("netproof_measured") or None for test in tests]
        taken = [(None, {}) if there is None else _taken(there) for there in stated]
        return WRITTEN if measured == taken else "what was read stands nowhere in the report"

    return Attack(of_texts(texts), judge)


def _taken(stated: dict[str, Any]) -> tuple[Measured, dict[str, Any]]:
    """Return what was measured by the plain values of a report, and where."""
    own = {"format", *Measured.__dataclass_fields__}
    extras = {key: one for key, one in stated.items() if key not in own}
    return of_record(codec.decode(Case, stated["case"], "case"), stated), extras


# Files of references.

_CASES = tuple(
    (check, Case("testbed", partition, "mpich", *rest))
    for partition in ("gige", "fast-ethernet")
    for check, *rest in (
        ("ImbPingPong", "imb", "PingPong", 2, 1),
        ("ImbAllreduce", "imb", "Allreduce", 4, 1),
        ("NetpipeTcp", "netpipe", "tcp", 2, 1),
    )
)


def of_references(folder: Path) -> Attack:
    """Return the attack on the testbed's references, cut down to _CASES and some landmarks."""
    path, text = folder / "testbed.yaml", (ROOT / "reference-values/testbed.yaml").read_text()
    heads = tuple(f"{check}:" for check, _ in _CASES)
    text = re.sub(r"^(#|  (rate|half)_).*\n", "", text, flags=re.MULTILINE)
    parts = text.split("\n\n")
    chosen = [one for one in parts if not re.match("[A-Z]", one) or one.startswith(heads)]

    def read(text: str) -> list[Any]:
        path.write_text(text, errors="surrogatepass")
        file, found = ReferenceFile(path), []
        for check, case in _CASES:
            try:
                found.append(file.find(check, case))
            except NetproofError as error:
                found.append(type(error).__name__)
        return found

    truth = read(recorded := "\n\n".join(chosen) + "\n")

    def judge(text: str, origin: str) -> str:
        if (found := read(text)) == truth:
            return RIGHT
        stated = json.dumps(_stated_yaml(text), default=str)
        for entry in found:
            for values in entry.values() if isinstance(entry, dict) else ():
                if json.dumps(values, default=str) not in stated:
                    return f"{values} stands nowhere in the file"
        return WRITTEN

    return Attack(of_texts({"testbed.yaml": recorded}), judge)


def _stated_yaml(text: str) -> Any:
    try:
        return yaml.load(text, yaml.CSafeLoader)
    except yaml.YAMLError:
        # The loader in C refuses some files that PyYAML, and with it ReFrame, accepts.
        return yaml.safe_load(text)


# Sites' files.

_ODD_VALUES = (
    *(None, True, -1, 0, 1, 1.5, 10**30, float("nan"), float("inf"), "", "x", "a b", "\x1b[31m"),
    *("$(id)", "a\nb", [], [1], ["x"], {}, {"x": 1}, ("x",), b"x", "(a+)+!", 3 + 2j),
)


def of_sites(folder: Path) -> Attack:
    """Return the attack on sites' files: the example written out in full, and a small one."""
    path, whole = folder / "site.py", _stated_site((ROOT / "site-config/example.py").read_text())
    whole["systems"][0]["partitions"][0]["extras"] |= {
        "criteria": {"inversion": {"warn": 2.0, "fail": 10.0}, "curves": {"least_size": 64}},
        "retired": {"gone-gcc": "its compiler is gone"},
        "imb_arguments": ["-time", "0.1"],
        "contention_domain": "core",
    }
    whole["environments"][0]["extras"]["known"] = {"IMB Bcast .* ranks": "is slow, as ever"}
    small = copy.deepcopy(whole)
    del small["systems"][0]["partitions"][1]
    there = {"two partitions": whole, "one partition": small}
    as_texts = of_texts({name: _written_site(one) for name, one in there.items()})
    sys.dont_write_bytecode = True

    def make(draw: random.Random) -> tuple[str, str]:
        if draw.random() < 0.5:
            return as_texts(draw)
        origin = draw.choice(list(there))
        configuration = copy.deepcopy(there[origin])
        for _ in range(draw.choice((1, 1, 2))):
            _replace_one(configuration, draw)
        return _written_site(configuration), origin

    def judge(text: str, origin: str) -> str:
        path.write_text(text, errors="surrogatepass")
        found = site.load(path)
        for system in found["systems"]:
            matrix.matrix(found, system["name"], all_functions=True)
        stated = _stated_site(text)
        if wrong := _not_as_stated(found, stated):
            return wrong
        return RIGHT if repr(stated) == repr(there[origin]) else WRITTEN

    return Attack(make, judge)


def _written_site(configuration: dict[str, Any]) -> str:
    # repr writes these two as names that Python lacks.
    head = "nan, inf = 1e999 - 1e999, 1e999\n"
    return f"{head}site_configuration = {pprint.pformat(configuration, sort_dicts=False)}\n"


def _stated_site(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "site", "exec"), {"__builtins__": {}}, names)
    return names["site_configuration"]


def _replace_one(configuration: dict[str, Any], draw: random.Random) -> None:
    """Replace a value by an odd one, remove it, rename it, or double it."""
    places: list[tuple[Any, Any]] = []
    level: list[Any] = [configuration]
    while level:
        parent = level.pop()
        for key, value in parent.items() if isinstance(parent, dict) else enumerate(parent):
            places.append((parent, key))
            if isinstance(value, dict | list):
                level.append(value)
    if not places:
        return
    parent, key = draw.choice(places)
    kind = draw.randrange(5)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, dict):
        parent[draw.choice(("x", 1, f"{key} "))] = parent.pop(key)
    elif kind == 2 and isinstance(parent, list):
        parent.append(copy.deepcopy(parent[key]))
    else:
        parent[key] = copy.deepcopy(draw.choice(_ODD_VALUES))


def _not_as_stated(found: dict[str, Any], stated: dict[str, Any]) -> str:
    """Name a difference between the configuration and its file, defaults apart; "" for none."""
    lists = [(ENVIRONMENT_KEYS, found["environments"], stated["environments"])]
    for ours, theirs in zip(found["systems"], stated["systems"], strict=True):
        lists.append((PARTITION_KEYS, ours["partitions"], theirs["partitions"]))
    pairs = ((known, *pair) for known, *both in lists for pair in zip(*both, strict=True))
    for known, ours, theirs in pairs:
        for key, value in theirs.items():
            taken = ours[key]
            if key in ("environs", "features"):
                taken = taken[: len(value)]
            elif key == "extras":
                taken = {name: taken.get(name) for name in value}
                if not value.get("contention_domain", True):
                    taken["contention_domain"] = ""
            if repr(taken) != repr(value):  # NaN differs from itself.
                return f"{ours['name']}: {key}: read was {taken}, and the file says {value}"
        for name, key in known.items():
            default = ours["extras"]["switch"] if name == "contention_domain" else key.default
            if name not in theirs.get("extras", {}) and ours["extras"][name] != default:
                return f"{ours['name']}: {name} is {ours['extras'][name]}, which nobody said"
    return ""


# The command.

FILES: dict[str, Callable[[Path], Attack]] = {
    "patterns": lambda _: Attack(_pattern, _matched),
    "session report": of_reports,
    "references": of_references,
    "site file": of_sites,
}
"""Attacks other than those on programs' readers, by what makes them for a folder of their own."""
MUTATED = (*READERS, *FILES)
"""Names of the attacks, in the order of the table."""


def attack_of(name: str, folder: Path) -> Attack:
    """Return an attack by its name; ``folder`` is for inputs read from a file."""
    return FILES[name](folder) if name in FILES else of_program(name)


class _Endless(BaseException):
    """An input that was given up."""


def _give_up(*_: object) -> NoReturn:
    raise _Endless


def outcome(judge: Judge, text: str, origin: str) -> str:
    """Return the outcome of one input: REFUSED, RIGHT, WRITTEN, or the fault."""
    signal.setitimer(signal.ITIMER_PROF, ENDLESS_SECONDS)
    try:
        return judge(text, origin)
    except NetproofError as error:
        return REFUSED if len(str(error)) < 10_000 else "an error of 10,000 characters and more"
    except (Exception, _Endless) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _limited() -> None:
    """Limit this process: it ends by a signal, and the whole command by an error."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MIB * 2**20, MOST_MIB * 2**20))
    resource.setrlimit(resource.RLIMIT_CPU, (BATCH_SECONDS, BATCH_SECONDS))


def batch(name: str, seed: int, tries: int) -> tuple[Counter[str], list[str], float, float]:
    """Try inputs in this process; return counts, sentences, the slowest's CPU seconds, and MiB."""
    signal.signal(signal.SIGPROF, _give_up)
    with tempfile.TemporaryDirectory(prefix="netproof-attacks-") as folder:
        attack, draw = attack_of(name, Path(folder)), random.Random(f"{name} {seed}")
        counts, wrong, slowest = Counter[str](), list[str](), 0.0
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in range(tries):
            text, origin = attack.make(draw)
            began = time.process_time()
            found = outcome(attack.judge, text, origin)
            took = time.process_time() - began
            slowest = max(slowest, took)
            mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
            if took > SECONDS:
                found = f"took {took:.1f} s"
            elif mib > MIB:
                found = f"took {mib:.0f} MiB"
                before += int(mib * 1024)
            kind = found if found in KINDS else WRONG
            counts[kind] += 1
            if kind == WRONG:
                wrong.append(f"seed {seed}, try {number}, {Path(origin).name}: {found}"[:300])
    return counts, wrong, slowest, max(mib, 0.0)


def run(options: argparse.Namespace) -> bool:
    """Try attacks and print the table; return whether nothing was wrong."""
    names, tries = options.only or MUTATED, options.tries
    if unknown := {*names} - {*MUTATED}:
        raise NetproofError(f"unknown attack {unknown.pop()}; choose from {', '.join(MUTATED)}")
    jobs = options.jobs or len(os.sched_getaffinity(0))
    wrong, rows = list[str](), list[list[str]]()
    with multiprocessing.get_context("fork").Pool(jobs, _limited, (), 1) as pool:
        begun = {
            name: [
                pool.apply_async(batch, (name, int(f"{options.seed}{at:06d}"), min(BATCH, rest)))
                for at, rest in enumerate(range(tries, 0, -BATCH))
            ]
            for name in names
        }
        for name, several in begun.items():
            done = (one.get(len(names) * BATCH_SECONDS) for one in several)
            counts, said, slowest, mib = zip(*done, strict=True)
            count = sum(counts, Counter())
            wrong += [f"{name}: {one}" for one in chain(*said)][:SHOWN]
            cells = [f"{one:,}" for one in (count.total(), *(count[kind] for kind in KINDS))]
            rows.append([name, *cells, f"{max(slowest):.2f}", f"{max(mib):.0f}"])
            print(*rows[-1], file=sys.stderr)
    known = ("netproof", "ReFrame-HPC", "PyYAML", "ruamel.yaml", "pyarrow")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in known)
    print(f"{date.today()}, Python {platform.python_version()}, {versions}; seed {options.seed}\n")
    show(("attack", "tries", *KINDS, "slowest s", "most MiB"), rows)
    for sentence in wrong:
        terminal.say(sentence)
    return not wrong
