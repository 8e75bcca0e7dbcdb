"""Mutated references, session reports, sites and topologies, and the judges of their readers."""

from __future__ import annotations

import copy
import json
import pprint
import random
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ci.evaluation.attack_inputs import (
    DATA,
    RIGHT,
    WRITTEN,
    Attack,
    Input,
    Judge,
    mutated,
    of_texts,
)
from ci.evaluation.testbed import ROOT
from netproof import codec
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.session import session
from netproof.session.measured import Measured, of_record
from netproof.site import matrix, site
from netproof.site.partition import ENVIRONMENT_KEYS, PARTITION_KEYS
from netproof.verdict.references import ReferenceFile

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
        # The loader in C refuses some files that PyYAML, and with it ReFrame, accepts.
        return yaml.safe_load(text)


def _second_key(text: str, origin: str, draw: random.Random) -> Input | None:
    """Repeat a key with a looser value, put in an odd bound, a bomb, or an endless pattern."""
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
        return Input(text + bomb(draw), origin, must_refuse=True)
    key = draw.choice(("(([a-z ]+)+)+!", "(a|a)*b", "(x?){60}", ".*.*.*.*.*.*!"))
    return Input(f"{text}\nExtra:\n  $index: [$environ]\n  '{key}': {{}}\n", origin, True)


def bomb(draw: random.Random) -> str:
    """Return YAML whose aliases or merges grow with each level."""
    width, depth = draw.randint(8, 12), draw.randint(9, 14)
    lines = ["\n.b0: &b0 {x: 1}"]
    merged = draw.random() < 0.5
    for level in range(1, depth):
        several = ", ".join([f"*b{level - 1}"] * width)
        value = f"{{<<: [{several}], k{level}: 1}}" if merged else f"[{several}]"
        lines.append(f".b{level}: &b{level} {value}")
    return "\n".join(lines) + "\n"


def _some_checks(text: str) -> str:
    """Cut a file of references down to the cases of _CASES and some landmarks."""
    heads = tuple(f"{check}:" for check, _ in _CASES)
    text = re.sub(r"^(#|  (rate|half)_).*\n", "", text, flags=re.MULTILINE)
    parts = text.split("\n\n")
    chosen = [one for one in parts if not re.match("[A-Z]", one) or one.startswith(heads)]
    return "\n\n".join(chosen) + "\n"


def _report(folder: Path) -> Judge:
    path = folder / "run-1.json"

    @cache
    def truth(origin: str) -> list[Any]:
        return [(one.measured, one.extras) for one in session.load(folder / origin).results]

    def judge(given: Input) -> str:
        path.write_text(given.text, errors="surrogatepass")
        found = session.load(path)
        measured = [(one.measured, one.extras) for one in found.results]
        if measured == truth(given.origin):
            return RIGHT
        stated = [
            test.get("netproof_measured") or None
            for run in json.loads(given.text)["runs"]
            for test in run["testcases"]
        ]
        taken = [(None, {}) if there is None else _taken(there) for there in stated]
        if measured == taken:
            return WRITTEN
        return "what was read stands nowhere in the report"

    return judge


def _taken(stated: dict[str, Any]) -> tuple[Measured, dict[str, Any]]:
    """Return what was measured by the plain values of a report, and where."""
    own = {"format", *Measured.__dataclass_fields__}
    extras = {key: one for key, one in stated.items() if key not in own}
    return of_record(codec.decode(Case, stated["case"], "case"), stated), extras


def _second_json_key(text: str, origin: str, draw: random.Random) -> Input | None:
    """Repeat a key, put in a value that is no number, or nest lists deeply."""
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
    """Name a difference between the configuration and its file, defaults apart; "" for none."""
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
            if repr(taken) != repr(value):  # NaN differs from itself.
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
    """Return a site's file written out in full, and a small one."""
    whole = _stated_site((ROOT / "site-config" / "example.py").read_text())
    more = {
        "criteria": {"inversion": {"warn": 2.0, "fail": 10.0}, "curves": {"least_size": 64}},
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
    # repr writes these two as names that Python lacks.
    text = pprint.pformat(configuration, sort_dicts=False)
    head = "nan, inf = 1e999 - 1e999, 1e999\n"
    return Input(f"{head}site_configuration = {text}\n", origin, must_refuse)


def _replaced(configuration: dict[str, Any], draw: random.Random) -> None:
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


def _wrong_site(configuration: dict[str, Any], draw: random.Random) -> None:
    """Put in something forbidden that loosens a bound, never ends, or commands a shell."""
    partition = draw.choice(configuration["systems"][0]["partitions"])
    environment = draw.choice(configuration["environments"])
    extras = partition["extras"]
    odd = draw.choice((float("nan"), float("inf"), -float("inf"), "10", None, [10]))
    endless = draw.choice(("(([a-z ]+)+)+!", "(a|a)*b", "(x?){60}", ".*.*.*.*.*.*!"))
    kind = draw.randrange(10)
    if kind == 0:
        criterion, key = draw.choice((("curves", "least_size"), ("confirm", "most_launches")))
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


def of_files_read(folder: Path) -> tuple[Attack, ...]:
    """Return the attacks on readers of files; ``folder`` gets recorded ones and the inputs."""
    references = {
        "testbed.yaml": _some_checks((ROOT / "reference-values" / "testbed.yaml").read_text())
    }
    reports = {name: _some_of(*where) for name, where in _REPORTS.items()}
    (folder / "recorded-testbed.yaml").write_text(references["testbed.yaml"])
    for name, text in reports.items():
        (folder / name).write_text(text)
    return (
        Attack("session report", of_texts(reports, _second_json_key), _report(folder)),
        Attack("references", of_texts(references, _second_key), _references(folder)),
        Attack("site file", _site_input, _site(folder)),
    )
