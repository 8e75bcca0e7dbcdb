"""Mutated configurations of sites, and the judge of their reader."""

from __future__ import annotations

import copy
import pprint
import random
import sys
from functools import cache
from pathlib import Path
from typing import Any

from ci.attacking.inputs import RIGHT, ROOT, WRITTEN, Attack, Input, Judge, mutated
from netproof.site import matrix, site
from netproof.site.keys import ENVIRONMENT_KEYS, PARTITION_KEYS

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


def attacks(folder: Path) -> tuple[Attack, ...]:
    """Return the attack on the reader of a site's file; ``folder`` gets the inputs."""
    return (Attack("site file", _site_input, _site(folder)),)
