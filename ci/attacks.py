"""Attacks on what netproof reads: mutated inputs, each judged by an oracle that knows the truth.

An input is refused, or read right: with the values that were recorded, or, where the mutation made
another valid input, with those that stand in it. All else is wrong: another error than netproof's
own, a value that stands nowhere, an input that had to be refused and was not, more than a second
of the processor, more than 200 MiB.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from rich import box
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)

from ci.testbed import topology  # noqa: E402
from netproof import loading, session, tables  # noqa: E402
from netproof.case import Case  # noqa: E402
from netproof.errors import NetproofError  # noqa: E402
from netproof.landmarks import ASYMPTOTIC  # noqa: E402
from netproof.measured import Measured  # noqa: E402
from netproof.parse import imb, netpipe  # noqa: E402
from netproof.references import ReferenceFile  # noqa: E402

DATA = ROOT / "tests" / "data"
SECONDS, MIB = 1.0, 200
BATCH = 1000
BATCH_SECONDS = 900
"""A batch that takes longer has an input that never ends."""

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
    texts = {str(path): path.read_text() for path in paths}

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


def _netpipe(read: Callable[..., netpipe.NetpipeOutput]) -> Judge:
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
    def rows(output: imb.ImbOutput) -> dict[tuple, tuple]:
        return {
            (table.function, table.ranks, table.group, row.size): (row.time_us, row.repetitions)
            for table in output.tables
            for row in table.rows
        }

    @cache
    def truth(origin: str) -> dict[tuple, tuple]:
        return rows(imb.read(Path(origin).read_text(), origin))

    def judge(given: Input) -> str:
        output = imb.read(given.text, given.origin)
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
        return [one.measured for one in session.load(Path(origin)).results]

    def judge(given: Input) -> str:
        path.write_text(given.text, errors="surrogatepass")
        found = session.load(path)
        measured = [one.measured for one in found.results]
        for values in measured:
            if values is not None:
                Measured.from_json(values)
        if measured == truth(given.origin):
            return RIGHT
        stated = [
            test.get("netproof_measured") or None
            for run in json.loads(given.text)["runs"]
            for test in run["testcases"]
        ]
        if list(map(_recorded, measured)) == list(map(_recorded, stated)):
            return WRITTEN
        return "what was read stands nowhere in the report"

    return judge


def _recorded(values: dict[str, Any] | None) -> dict[str, Any] | None:
    """Of a case's values those that a report of any format has: others are reckoned in reading."""
    if values is None:
        return None
    stated = {
        name: [one for one in value if one[0] not in ASYMPTOTIC] if name == "undefined" else value
        for name, value in values["landmarks"].items()
        if name not in (*ASYMPTOTIC, "intervals")
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
        return entries(Path(origin))

    def judge(given: Input) -> str:
        path.write_text(given.text, errors="surrogatepass")
        found = entries(path)
        if found == truth(given.origin):
            return RIGHT
        stated = json.dumps(yaml.safe_load(given.text), default=str)
        for entry in found:
            for values in entry.values() if isinstance(entry, dict) else ():
                if json.dumps(values, default=str) not in stated:
                    return f"{values} stands nowhere in the file"
        return WRITTEN

    return judge


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
    keys = [i for i in range(len(text)) if text.startswith('"time_us": [', i)]
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

    def judge(given: Input) -> str:
        path.write_text(given.text, errors="surrogatepass")
        found = topology.load(path)
        if found == topology.load(Path(given.origin)):
            return RIGHT
        stated = yaml.safe_load(given.text)["switches"]
        for switch in found.switches:
            values = (switch.link_mbps, switch.mtu, switch.buffer, switch.cpus, len(switch.nodes))
            there = stated[switch.name]
            if values != tuple(there[k] for k in ("link_mbps", "mtu", "buffer", "cpus", "nodes")):
                return f"{switch} is not what the file says"
        return WRITTEN

    return judge


def _bomb_of_topology(text: str, origin: str, draw: random.Random) -> Input | None:
    return Input(text + _bomb(draw).replace(".b", "b"), origin, must_refuse=True)


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
        taken = loading.expression(given.text, search=search)
        for text in ("a" * 60, "gige openmpi-5.0 IMB Alltoallv 64 ranks", "ab" * 30 + "?"):
            taken.search(text) if search else taken.fullmatch(text)
    return RIGHT


def attacks(folder: Path) -> dict[str, Attack]:
    """All attacks by name; ``folder`` is for what is read from a file."""
    recorded = sorted((DATA / "netpipe" / "3.7.2").glob("*"))
    fine = {path: path.read_text() for path in recorded if "hung" not in path.name}
    files = [path for path in fine if path.suffix == ".out" and _reads(netpipe.read_file, path)]
    printed = [
        path for path in fine if path.suffix == ".stderr" and _reads(netpipe.read_print, path)
    ]
    outputs = [path for path in sorted((DATA / "imb").rglob("*.txt")) if _reads(imb.read, path)]
    reports = [DATA / "sessions" / name for name in ("repeated-1.json", "netpipe-whole.json")]
    references = [ROOT / "reference-values" / "testbed.yaml"]
    topologies = sorted((ROOT / "ci" / "testbed").glob("*.yaml"))
    several = (
        Attack("NetPIPE file", of_files(files), _netpipe(netpipe.read_file)),
        Attack("NetPIPE print", of_files(printed), _netpipe(netpipe.read_print)),
        Attack("IMB output", of_files(outputs), _imb()),
        Attack("session report", of_files(reports, _second_json_key), _report(folder)),
        Attack("references", of_files(references, _second_key), _references(folder)),
        Attack("topology", of_files(topologies, _bomb_of_topology), _topology(folder)),
        Attack("patterns", _pattern, _matched),
    )
    return {attack.name: attack for attack in several}


def _reads(read: Callable[..., Any], path: Path) -> bool:
    more = {} if read is imb.read else {"bidirectional": _ways_round(path.name)}
    try:
        read(path.read_text(), str(path), **more)
    except NetproofError:
        return False
    return True


# Trying


def outcome(attack: Attack, given: Input) -> str:
    """What came of one input: REFUSED, RIGHT, WRITTEN, or what is wrong."""
    try:
        found = attack.judge(given)
    except NetproofError as error:
        return REFUSED if len(str(error)) < 10_000 else "an error of 10,000 characters and more"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if given.must_refuse:
        return "was read, and has to be refused"
    return found


def batch(name: str, seed: int, tries: int) -> dict[str, Any]:
    """What came of some tries in this process: counts, wrong ones, slowest in s, most MiB."""
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


def _batches(name: str, seed: int, tries: int) -> Iterator[dict[str, Any]]:
    for number, begin in enumerate(range(0, tries, BATCH)):
        count = min(BATCH, tries - begin)
        mine = f"{seed}{number:06d}"
        command = [sys.executable, __file__, "--batch", name, "--seed", mine, "--tries", str(count)]
        try:
            ran = subprocess.run(
                command, capture_output=True, text=True, timeout=BATCH_SECONDS, check=True
            )
            yield json.loads(ran.stdout)
        except subprocess.TimeoutExpired:
            yield _lost(count, f"seed {mine}: did not end within {BATCH_SECONDS} s")
        except subprocess.CalledProcessError as error:
            yield _lost(count, f"seed {mine}: status {error.returncode}: {error.stderr[-300:]}")


def _lost(tries: int, why: str) -> dict[str, Any]:
    return {"counts": {WRONG: tries}, "wrong": [why], "slowest": 0.0, "mib": 0.0}


def run(names: Sequence[str], seed: int, tries: int) -> int:
    """Try all attacks and print the table; exit status 0 nothing was wrong, 1 something was."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    heads = ("attack", "tries", REFUSED, RIGHT, WRITTEN, WRONG, "slowest s", "most MiB")
    for head in heads:
        table.add_column(head, justify="left" if head == "attack" else "right", no_wrap=True)
    wrong: list[str] = []
    for name in names:
        done = list(_batches(name, seed, tries))
        counts: Counter[str] = Counter()
        for one in done:
            counts.update(one["counts"])
        told = [sentence for one in done for sentence in one["wrong"]]
        wrong += [f"{name}: {sentence}" for sentence in told[:SHOWN]]
        table.add_row(
            name,
            f"{sum(counts.values()):,}",
            *(f"{counts[kind]:,}" for kind in (REFUSED, RIGHT, WRITTEN, WRONG)),
            f"{max(one['slowest'] for one in done):.2f}",
            f"{max(one['mib'] for one in done):.0f}",
        )
    out = tables.console()
    out.print(table)
    for sentence in wrong:
        tables.say(out, sentence)
    return 1 if wrong else 0


def main() -> int:
    """The command line."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="netproof-attacks-"))
        known = list(attacks(Path(folder)))
    parser = argparse.ArgumentParser(prog="ci/attacks", description=__doc__.split("\n")[0])
    parser.add_argument("--tries", type=int, default=1000, help="of each attack (default 1000)")
    parser.add_argument("--seed", type=int, default=1, help="the same one makes the same inputs")
    parser.add_argument("--only", action="append", choices=known, help="this attack alone")
    parser.add_argument("--batch", choices=known, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.tries < 1:
        parser.error("--tries: at least 1")
    if asked.batch:
        print(json.dumps(batch(asked.batch, asked.seed, asked.tries)))
        return 0
    return run(asked.only or known, asked.seed, asked.tries)


if __name__ == "__main__":
    sys.exit(main())
