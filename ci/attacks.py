"""Attacks on what netproof reads, on whom it trusts, and on what it hands on; a table of them all.

Mutated inputs, each judged by an oracle that knows the truth: one is refused, or read right: with
the values that were recorded, or, where the mutation made another valid input, with those that
stand in it. All else is wrong: another error than netproof's own, a value that stands nowhere, an
input that had to be refused and was not, more than a second of the processor, more than 200 MiB.
Damaged stores, by ``ci/store-flips``. And what is tried once in each way, by the tests that try it.
"""

from __future__ import annotations

import argparse
import copy
import importlib.metadata
import json
import os
import platform
import pprint
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import yaml
from rich import box
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)

from ci import store_flips  # noqa: E402
from ci.testbed import topology  # noqa: E402
from netproof.benchmarks import imb_reading, imb_tables, netpipe_reading  # noqa: E402
from netproof.errors import NetproofError  # noqa: E402
from netproof.intake import patterns  # noqa: E402
from netproof.measurement import twin  # noqa: E402
from netproof.measurement.case import Case  # noqa: E402
from netproof.measurement.landmarks import ASYMPTOTIC  # noqa: E402
from netproof.present import tables  # noqa: E402
from netproof.session import session  # noqa: E402
from netproof.session.measured import Measured  # noqa: E402
from netproof.site import matrix, site  # noqa: E402
from netproof.site.keys import ENVIRONMENT_KEYS, PARTITION_KEYS  # noqa: E402
from netproof.verdict.references import ReferenceFile  # noqa: E402

DATA = ROOT / "tests" / "data"

MUTATED = (
    *("NetPIPE file", "NetPIPE print", "IMB output", "session report", "references", "site file"),
    *("topology", "patterns"),
)
"""Attacks of mutated inputs, in the order of the table."""

RECKONED = (*ASYMPTOTIC, *twin.NAMES)
"""Landmarks that a report of an early format does not have."""

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
        f"{_JUDGING}::test_a_link_to_nothing_beside_the_reports_is_named_and_stops_no_verdict",
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
"""What is tried once in each way, and the tests that try it."""

SECONDS, MIB = 1.0, 200
ENDLESS_SECONDS = 20.0
"""An input that takes so long is given up, and the next one is tried."""
MOST_MIB = 4096
"""What a process of attacks may have in all."""
BATCH = 20_000
BATCH_SECONDS = 3600
"""A batch that takes longer has an input that not even a signal ends."""

REFUSED, RIGHT, WRITTEN, WRONG = "refused", "right", "as written", "wrong"
LARGEST = 10_000_000
"""Characters of an input: writing it is not to be what takes the memory."""

SHOWN = 5
"""Wrong outcomes of an attack that are printed."""


@dataclass(frozen=True)
class Input:
    """A mutated input: its text, where it came from, and whether it has to be refused."""

    text: str
    origin: str
    must_refuse: bool = False


Judge = Callable[[Input], str]
"""Reads an input and returns RIGHT or WRITTEN, or what is wrong; NetproofError is a refusal."""


@dataclass(frozen=True)
class Attack:
    """One kind of input: how it is made, and who judges what is read of it."""

    name: str
    make: Callable[[random.Random], Input]
    judge: Judge


# Making inputs

_ODD = (
    "\x00",
    "\x1b[31m",
    "é",
    "\udcff".encode("utf-8", "replace").decode(),
    "\r",
    "\t",
    "9" * 400,
)
_WORDS = ("nan", "inf", "-1", "1e999", "0", "0.00", "99999999999999999999", "-", "null", "[]", "{}")


def mutated(text: str, others: Sequence[str], draw: random.Random) -> str:
    """The text with one to three faults: of characters, lines, numbers, or another text's part."""
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        text = draw.choice(_MUTATIONS)(text, others, draw)[:LARGEST]
    return text


def _place(text: str, draw: random.Random) -> int:
    return draw.randrange(len(text)) if text else 0


def _character(text: str, others: Sequence[str], draw: random.Random) -> str:
    at = _place(text, draw)
    return text[:at] + draw.choice("0123456789 .-#:,{}[]\"'\n*&!|>%@x") + text[at + 1 :]


def _odd(text: str, others: Sequence[str], draw: random.Random) -> str:
    at = _place(text, draw)
    return text[:at] + draw.choice(_ODD) + text[at:]


def _cut(text: str, others: Sequence[str], draw: random.Random) -> str:
    return text[: _place(text, draw)]


def _without(text: str, others: Sequence[str], draw: random.Random) -> str:
    at = _place(text, draw)
    return text[:at] + text[at + draw.randint(1, 40) :]


def _lines(text: str, others: Sequence[str], draw: random.Random) -> str:
    lines = text.splitlines(keepends=True) or [""]
    one, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    kind = draw.randrange(4)
    if kind == 0:
        del lines[one]
    elif kind == 1:
        lines.insert(other, lines[one])
    elif kind == 2:
        lines[one], lines[other] = lines[other], lines[one]
    else:
        lines[one] = lines[one].rstrip("\n") * draw.choice((2, 50)) + "\n"
    return "".join(lines)


def _token(text: str, others: Sequence[str], draw: random.Random) -> str:
    at = _place(text, draw)
    begin = max(text.rfind(" ", 0, at), text.rfind("\n", 0, at), text.rfind(",", 0, at)) + 1
    end = min((found for mark in " \n," if (found := text.find(mark, begin)) >= 0), default=at)
    return text[:begin] + draw.choice(_WORDS) + text[max(end, begin) :]


def _digit(text: str, others: Sequence[str], draw: random.Random) -> str:
    at = _place(text, draw)
    where = next((i for i in range(at, len(text)) if text[i].isdigit()), None)
    if where is None:
        return text
    return text[:where] + draw.choice("0123456789") + text[where + 1 :]


def _spliced(text: str, others: Sequence[str], draw: random.Random) -> str:
    other = draw.choice(others)
    return text[: _place(text, draw)] + other[_place(other, draw) :]


def _nested(text: str, others: Sequence[str], draw: random.Random) -> str:
    at = _place(text, draw)
    return text[:at] + draw.choice("[{(") * draw.choice((30, 2000, 50_000)) + text[at:]


_MUTATIONS = (
    *(_character, _character, _digit, _digit, _digit, _token, _token, _lines, _lines, _lines),
    *(_cut, _without, _odd, _spliced, _nested),
)


def of_files(paths: Sequence[Path], special: Callable[..., Input | None] | None = None) -> Any:
    """Makes inputs of recorded files; ``special`` makes some that have to be refused."""
    return of_texts({str(path): path.read_text() for path in paths}, special)


def of_texts(texts: dict[str, str], special: Callable[..., Input | None] | None = None) -> Any:
    """The same of texts by their origin."""

    def make(draw: random.Random) -> Input:
        origin = draw.choice(list(texts))
        if special is not None and draw.random() < 0.2:
            made = special(texts[origin], origin, draw)
            if made is not None:
                return made
        return Input(mutated(texts[origin], list(texts.values()), draw), origin)

    return make


def _ways_round(origin: str) -> bool:
    return "both-ways" in origin


# Judging what was read


def _netpipe(read: Callable[..., netpipe_reading.NetpipeOutput]) -> Judge:
    @cache
    def truth(origin: str) -> dict[int, float]:
        output = read(Path(origin).read_text(), origin, bidirectional=_ways_round(origin))
        return {point.size: point.time_us for point in output.points}

    def judge(given: Input) -> str:
        both = _ways_round(given.origin)
        output = read(given.text, given.origin, bidirectional=both)
        known = truth(given.origin)
        if all(known.get(point.size) == point.time_us for point in output.points):
            there = [point.size for point in output.points]
            between = [size for size in known if there[0] <= size <= there[-1]]
            return RIGHT if there == between else f"lacks sizes: {sorted({*between} - {*there})}"
        lines = given.text.split("\n")
        for point in output.points:
            words = lines[point.line - 1].replace(":", " ").split()
            stated = (
                (int(words[0]) // (2 if both else 1), float(words[2]) * 1e6)
                if len(words) == 3
                else (int(words[1]), float(words[-2]))
            )
            if stated[0] != point.size or abs(stated[1] - point.time_us) > 0.011:
                return f"line {point.line} says {stated}, and read was {point}"
        return WRITTEN

    return judge


def _imb() -> Judge:
    def rows(output: imb_tables.ImbOutput) -> dict[tuple, tuple]:
        return {
            (table.function, table.ranks, table.group, row.size): (row.time_us, row.repetitions)
            for table in output.tables
            for row in table.rows
        }

    @cache
    def truth(origin: str) -> dict[tuple, tuple]:
        return rows(imb_reading.read(Path(origin).read_text(), origin))

    def judge(given: Input) -> str:
        output = imb_reading.read(given.text, given.origin)
        if rows(output).items() <= truth(given.origin).items():
            return RIGHT
        lines = given.text.split("\n")
        for table in output.tables:
            for row in table.rows:
                words = [float(word) for word in lines[row.line - 1].split()]
                time_us = row.messages_s if row.messages_s is not None else row.time_us
                sizes = () if table.function == "Barrier" else (row.size,)
                if not {*sizes, row.repetitions, time_us} <= set(words):
                    return f"line {row.line} says {words}, and read was {row}"
        return WRITTEN

    return judge


def _report(folder: Path) -> Judge:
    path = folder / "run-1.json"

    @cache
    def truth(origin: str) -> list[Any]:
        return [one.measured for one in session.load(folder / origin).results]

    def judge(given: Input) -> str:
        path.write_text(given.text, errors="surrogatepass")
        found = session.load(path)
        refused = [one.contradiction is not None for one in found.results]
        measured = [one.measured for one in found.results]
        for values, contradicts in zip(measured, refused, strict=True):
            if values is not None and not contradicts:
                Measured.from_json(values)
        if measured == truth(given.origin):
            return RIGHT
        stated = [
            test.get("netproof_measured") or None
            for run in json.loads(given.text)["runs"]
            for test in run["testcases"]
        ]
        # A case that contradicts itself is refused alone, and is one that was not measured.
        taken = [
            None if no and values is None else _recorded(there)
            for no, values, there in zip(refused, measured, stated, strict=True)
        ]
        if list(map(_recorded, measured)) == taken:
            return REFUSED if any(refused) else WRITTEN
        return "what was read stands nowhere in the report"

    return judge


def _recorded(values: dict[str, Any] | None) -> dict[str, Any] | None:
    """Of a case's values those that a report of any format has: others are reckoned in reading."""
    if values is None:
        return None
    stated = {
        name: [one for one in value if one[0] not in RECKONED] if name == "undefined" else value
        for name, value in values["landmarks"].items()
        if name not in (*RECKONED, "intervals")
    }
    return {**values, "landmarks": stated}


_CASES = tuple(
    (check, Case("testbed", partition, "mpich", *rest))
    for partition in ("gige", "fast-ethernet")
    for check, *rest in (
        ("ImbPingPong", "imb", "PingPong", 2, 1),
        ("ImbAllreduce", "imb", "Allreduce", 4, 1),
        ("NetpipeTcp", "netpipe", "tcp", 2, 1),
    )
)


def _references(folder: Path) -> Judge:
    path = folder / "testbed.yaml"

    def entries(place: Path) -> list[Any]:
        file, found = ReferenceFile(place), []
        for check, case in _CASES:
            try:
                found.append(file.find(check, case))
            except NetproofError as error:
                found.append(type(error).__name__)
        return found

    @cache
    def truth(origin: str) -> list[Any]:
        return entries(folder / f"recorded-{origin}")

    def judge(given: Input) -> str:
        path.write_text(given.text, errors="surrogatepass")
        found = entries(path)
        if found == truth(given.origin):
            return RIGHT
        stated = json.dumps(_stated_yaml(given.text), default=str)
        for entry in found:
            for values in entry.values() if isinstance(entry, dict) else ():
                if json.dumps(values, default=str) not in stated:
                    return f"{values} stands nowhere in the file"
        return WRITTEN

    return judge


def _stated_yaml(text: str) -> Any:
    try:
        return yaml.load(text, yaml.CSafeLoader)
    except yaml.YAMLError:
        # What is written in C refuses some of what PyYAML, and with it ReFrame, takes.
        return yaml.safe_load(text)


def _second_key(text: str, origin: str, draw: random.Random) -> Input | None:
    """A line with a key and its value stands twice in its mapping, the second one looser."""
    lines = text.splitlines(keepends=True)
    entries = [i for i, line in enumerate(lines) if "_us:" in line and line.rstrip().endswith("]")]
    kind = draw.randrange(4)
    if kind == 0 and entries:
        at = draw.choice(entries)
        lines.insert(at + 1, lines[at].replace("null", "9.5"))
        return Input("".join(lines), origin, must_refuse=True)
    if kind == 1 and entries:
        at = draw.choice(entries)
        head, _, rest = lines[at].partition("[")
        _, comma, rest = rest.partition(",")
        lines[at] = f"{head}[{draw.choice(('.nan', '.inf', '-.inf', '1.0e+999'))}{comma}{rest}"
        return Input("".join(lines), origin, must_refuse=True)
    if kind == 2:
        return Input(text + _bomb(draw), origin, must_refuse=True)
    key = draw.choice(("(([a-z ]+)+)+!", "(a|a)*b", "(x?){60}", ".*.*.*.*.*.*!"))
    return Input(f"{text}\nExtra:\n  $index: [$environ]\n  '{key}': {{}}\n", origin, True)


def _bomb(draw: random.Random) -> str:
    width, depth = draw.randint(6, 12), draw.randint(8, 14)
    lines = ["\n.b0: &b0 {x: 1}"]
    merged = draw.random() < 0.5
    for level in range(1, depth):
        several = ", ".join([f"*b{level - 1}"] * width)
        value = f"{{<<: [{several}], k{level}: 1}}" if merged else f"[{several}]"
        lines.append(f".b{level}: &b{level} {value}")
    return "\n".join(lines) + "\n"


def _second_json_key(text: str, origin: str, draw: random.Random) -> Input | None:
    """A key of a report stands twice, a value is no number, or lists are nested without end."""
    kind = draw.randrange(3)
    keys = [found.start() for found in re.finditer(r'"time_us": \[', text)]
    if not keys:
        return None
    at = draw.choice(keys)
    if kind == 0:
        return Input(f'{text[:at]}"time_us": [1.0], {text[at:]}', origin, must_refuse=True)
    begin = text.index("[", at) + 1
    odd = draw.choice(("NaN", "Infinity", "-Infinity", "1e999", '"fast"', "null", "true", "{}"))
    if kind == 1:
        return Input(f"{text[:begin]}{odd}, {text[begin:]}", origin, must_refuse=True)
    deep = "[" * draw.choice((100, 5000, 100_000))
    return Input(text[:begin] + deep + text[begin:], origin, must_refuse=True)


def _topology(folder: Path) -> Judge:
    path = folder / "topology.yaml"

    @cache
    def truth(origin: str) -> topology.Topology:
        return topology.load(Path(origin))

    def judge(given: Input) -> str:
        path.write_text(given.text, errors="surrogatepass")
        found = topology.load(path)
        if found == truth(given.origin):
            return RIGHT
        # All as text: what a number is, is told by its digits and by no other reader.
        stated = yaml.load(given.text, yaml.CBaseLoader)["switches"]
        for switch in found.switches:
            values = (switch.link_mbps, switch.mtu, switch.buffer, switch.cpus, len(switch.nodes))
            there = stated[switch.name]
            keys = ("link_mbps", "mtu", "buffer", "cpus", "nodes")
            if values != tuple(_whole(there[key]) for key in keys):
                return f"{switch} is not what the file says"
        return WRITTEN

    return judge


def _whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        return int(digits, 0)


def _bomb_of_topology(text: str, origin: str, draw: random.Random) -> Input | None:
    return Input(text + _bomb(draw).replace(".b", "b"), origin, must_refuse=True)


_ODD_VALUES = (
    *(None, True, -1, 0, 1, 1.5, 10**30, float("nan"), float("inf"), "", "x", "a b", "\x1b[31m"),
    *("$(id)", "a\nb", [], [1], ["x"], {}, {"x": 1}, ("x",), b"x", "(a+)+!", 3 + 2j),
)


def _site(folder: Path) -> Judge:
    path = folder / "site.py"
    sys.dont_write_bytecode = True

    def judge(given: Input) -> str:
        path.write_text(given.text, errors="surrogatepass")
        found = site.load(path)
        for system in found["systems"]:
            matrix.matrix(found, system["name"], all_functions=True)
        stated = _stated_site(given.text)
        wrong = _not_as_stated(found, stated)
        if wrong:
            return wrong
        return RIGHT if repr(stated) == repr(_recorded_site(given.origin)) else WRITTEN

    return judge


def _stated_site(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "site", "exec"), {"__builtins__": {}}, names)
    return names["site_configuration"]


def _not_as_stated(found: dict[str, Any], stated: dict[str, Any]) -> str:
    """In what a site's configuration is not what its file says, but for what is filled in."""
    environments = zip(found["environments"], stated["environments"], strict=True)
    partitions = (
        pair
        for ours, theirs in zip(found["systems"], stated["systems"], strict=True)
        for pair in zip(ours["partitions"], theirs["partitions"], strict=True)
    )
    pairs = [(ENVIRONMENT_KEYS, *pair) for pair in environments]
    pairs += [(PARTITION_KEYS, *pair) for pair in partitions]
    for known, ours, theirs in pairs:
        for key, value in theirs.items():
            if key in ("environs", "features"):
                taken = ours[key][: len(value)]
            elif key == "extras":
                taken = {name: ours[key].get(name) for name in value}
                if not value.get("contention_domain", True):
                    taken["contention_domain"] = ""
            else:
                taken = ours[key]
            if repr(taken) != repr(value):  # NaN is no NaN.
                return f"{ours['name']}: {key}: read was {taken}, and the file says {value}"
        for name, key in known.items():
            default = ours["extras"]["switch"] if name == "contention_domain" else key.default
            if name not in theirs.get("extras", {}) and ours["extras"][name] != default:
                return f"{ours['name']}: {name} is {ours['extras'][name]}, which nobody said"
    return ""


@cache
def _recorded_site(origin: str) -> dict[str, Any]:
    return _stated_site(_site_texts()[origin])


@cache
def _site_texts() -> dict[str, str]:
    """A site's file, all of it written out, and a small one."""
    whole = _stated_site((ROOT / "site-config" / "example.py").read_text())
    more = {
        "criteria": {"inversion": {"warn": 2.0, "fail": 10.0}, "jump": {"least_size": 64}},
        "retired": {"gone-gcc": "its compiler is gone"},
        "imb_arguments": ["-time", "0.1"],
        "contention_domain": "core",
    }
    whole["systems"][0]["partitions"][0]["extras"] |= more
    whole["environments"][0]["extras"]["known"] = {"IMB Bcast .* ranks": "is slow, as ever"}
    small = copy.deepcopy(whole)
    del small["systems"][0]["partitions"][1]
    return {
        name: f"site_configuration = {pprint.pformat(value, sort_dicts=False)}\n"
        for name, value in (("two partitions", whole), ("one partition", small))
    }


def _site_input(draw: random.Random) -> Input:
    texts = _site_texts()
    origin = draw.choice(list(texts))
    kind = draw.random()
    if kind < 0.4:
        return Input(mutated(texts[origin], list(texts.values()), draw), origin)
    configuration = copy.deepcopy(_stated_site(texts[origin]))
    must_refuse = kind < 0.6
    if must_refuse:
        _wrong_site(configuration, draw)
    else:
        for _ in range(draw.choice((1, 1, 2))):
            _replaced(configuration, draw)
    # What repr does not write as Python has it.
    text = pprint.pformat(configuration, sort_dicts=False)
    head = "nan, inf = 1e999 - 1e999, 1e999\n"
    return Input(f"{head}site_configuration = {text}\n", origin, must_refuse)


def _replaced(configuration: dict[str, Any], draw: random.Random) -> None:
    """Put something odd in the place of a value, take it away, rename it, or double it."""
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


def _wrong_site(configuration: dict[str, Any], draw: random.Random) -> None:
    """Something that no site may say, and that loosens, never ends, or commands a shell."""
    partition = draw.choice(configuration["systems"][0]["partitions"])
    environment = draw.choice(configuration["environments"])
    extras = partition["extras"]
    odd = draw.choice((float("nan"), float("inf"), -float("inf"), "10", None, [10]))
    endless = draw.choice(("(([a-z ]+)+)+!", "(a|a)*b", "(x?){60}", ".*.*.*.*.*.*!"))
    kind = draw.randrange(10)
    if kind == 0:
        criterion, key = draw.choice((("jump", "least_size"), ("confirm", "launches")))
        extras["criteria"] = {criterion: {key: odd}}
    elif kind == 1:
        key = draw.choice(("warn", "fail"))
        value = draw.choice((float("nan"), float("inf"), "10", [10], True))
        extras["criteria"] = {"inversion": {key: value}}
    elif kind == 2:
        environment["extras"]["known"] = {endless: "is slow"}
    elif kind == 3:
        del extras[draw.choice(("switch", "link_mbit_s", "mtu", "interface", "rank_counts"))]
    elif kind == 4:
        extras[draw.choice(("swich", "mtu ", "link_mbits", "MTU"))] = 1
    elif kind == 5:
        extras[draw.choice(("link_mbit_s", "mtu", "nodes", "ranks_per_node"))] = draw.choice(
            (0, -1, odd, 1e9, True, "1")
        )
    elif kind == 6:
        extras["interface"] = draw.choice(("eth0 -x", "-i", "a/b", "eth0\n", "", "x" * 16))
    elif kind == 7:
        entry = draw.choice((configuration["systems"][0], partition, environment))
        entry["name"] = draw.choice(("$(id)", "a b", "a\nb", "../x", "", "é", None, 7))
    elif kind == 8:
        partition["access"] = ["--partition=x\n#SBATCH --uid=0"]
    else:
        configuration["environments"].append(copy.deepcopy(environment))


def _pattern(draw: random.Random) -> Input:
    def part(depth: int) -> str:
        kind = draw.randrange(7 if depth else 3)
        if kind < 3:
            return draw.choice(("a", "[a-z]", ".", "\\w", "gige", "x|y", "[a-zA-Z0-9 ]", "\\d"))
        if kind == 3:
            return f"({part(depth - 1)}|{part(depth - 1)})"
        if kind == 4:
            return part(depth - 1) + part(depth - 1)
        return f"({part(depth - 1)}){draw.choice(('*', '+', '?', '{2,9}', '{40}', '*?', '{1,}'))}"

    return Input(part(draw.randint(1, 6)) + draw.choice(("", "!", "$", "z")), "made")


def _matched(given: Input) -> str:
    for search in (False, True):
        taken = patterns.expression(given.text, search=search)
        for text in ("a" * 60, "gige openmpi-5.0 IMB Alltoallv 64 ranks", "ab" * 30 + "?"):
            taken.search(text) if search else taken.fullmatch(text)
    return RIGHT


def attacks(folder: Path) -> dict[str, Attack]:
    """All attacks by name; ``folder`` is for what is read from a file."""
    recorded = sorted((DATA / "netpipe" / "3.7.2").glob("*"))
    fine = {path: path.read_text() for path in recorded if "hung" not in path.name}
    files = [
        path for path in fine if path.suffix == ".out" and _reads(netpipe_reading.read_file, path)
    ]
    printed = [
        path
        for path in fine
        if path.suffix == ".stderr" and _reads(netpipe_reading.read_print, path)
    ]
    outputs = [
        path for path in sorted((DATA / "imb").rglob("*.txt")) if _reads(imb_reading.read, path)
    ]
    reports = {name: _some_of(*where) for name, where in _REPORTS.items()}
    for name, text in reports.items():
        (folder / name).write_text(text)
    whole = (ROOT / "reference-values" / "testbed.yaml").read_text()
    references = {"testbed.yaml": _some_checks(whole)}
    (folder / "recorded-testbed.yaml").write_text(references["testbed.yaml"])
    topologies = sorted((ROOT / "ci" / "testbed").glob("*.yaml"))
    several = (
        Attack("NetPIPE file", of_files(files), _netpipe(netpipe_reading.read_file)),
        Attack("NetPIPE print", of_files(printed), _netpipe(netpipe_reading.read_print)),
        Attack("IMB output", of_files(outputs), _imb()),
        Attack("session report", of_texts(reports, _second_json_key), _report(folder)),
        Attack("references", of_texts(references, _second_key), _references(folder)),
        Attack("site file", _site_input, _site(folder)),
        Attack("topology", of_files(topologies, _bomb_of_topology), _topology(folder)),
        Attack("patterns", _pattern, _matched),
    )
    return {attack.name: attack for attack in several}


def _some_checks(text: str) -> str:
    """What a file of references has of the cases that are asked for, with some of the landmarks."""
    asked = tuple(f"{check}:" for check, _ in _CASES)
    text = re.sub(r"^(#|  (rate|half)_).*\n", "", text, flags=re.MULTILINE)
    parts = text.split("\n\n")
    kept = [one for one in parts if not re.match("[A-Z]", one) or one.startswith(asked)]
    return "\n\n".join(kept) + "\n"


_REPORTS = {
    "netpipe.json": ("netpipe-whole.json", ("NetpipeJob", "NetpipeTcp", "NetpipeMpi"), 4),
    "ranges.json": ("ranges.json", ("ImbJob", "ImbPingPong", "ImbAllreduce", "Imb"), 3),
    "again.json": ("sick.json", ("Imb",), 3),
}
"""Reports of attacks: which recorded session, which of its checks, and how many cases of them."""


def _some_of(name: str, checks: Sequence[str], most: int) -> str:
    """A recorded report with some of its cases: a small one is damaged where it counts."""
    document = json.loads((DATA / "sessions" / name).read_text())
    left = most
    for run in document["runs"]:
        kept = [one for one in run["testcases"] if one["display_name"].startswith(tuple(checks))]
        run["testcases"] = kept[:left]
        left -= len(run["testcases"])
        run["num_cases"] = len(run["testcases"])
    return json.dumps(document, indent=2)


def _reads(read: Callable[..., Any], path: Path) -> bool:
    more = {} if read is imb_reading.read else {"bidirectional": _ways_round(path.name)}
    try:
        read(path.read_text(), str(path), **more)
    except NetproofError:
        return False
    return True


# Trying


class _Endless(BaseException):
    """An input that was given up."""


def _give_up(*_: object) -> NoReturn:
    raise _Endless


def outcome(attack: Attack, given: Input) -> str:
    """What came of one input: REFUSED, RIGHT, WRITTEN, or what is wrong."""
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
    """What came of some tries in this process: counts, wrong ones, slowest in s, most MiB."""
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


def _one_batch(name: str, seed: int, tries: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--batch", name, "--seed", f"{seed}"]
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


def _flips(tries: int, seed: int) -> tuple[int, str, list[str]]:
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


def _listed(tests: Sequence[str]) -> tuple[int, str, list[str]]:
    """How many tests there are of an attack, what came of them, and which did not hold."""
    with tempfile.TemporaryDirectory(prefix="netproof-attacks-") as folder:
        told = Path(folder) / "told.xml"
        options = ["-q", "-p", "no:cacheprovider", f"--junitxml={told}"]
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if not told.exists():
            said = (ran.stdout + ran.stderr)[-300:].strip()
            return 0, "not tried", [f"pytest left no result (ci/setup --test installs it): {said}"]
        cases = list(ET.parse(told).getroot().iter("testcase"))
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
            pool.submit(_flips, max(1, tries // 10), seed)
            if name == FLIPS
            else pool.submit(_listed, LISTED[name])
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
                pool.submit(_one_batch, name, int(f"{seed}{number:06d}"), min(BATCH, tries - begin))
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


if __name__ == "__main__":
    sys.exit(main())
