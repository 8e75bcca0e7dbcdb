"""Mutated files of references, and the judge of their reader."""

from __future__ import annotations

import json
import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ci.attacking.inputs import RIGHT, ROOT, WRITTEN, Attack, Input, Judge, of_texts
from netproof.errors import NetproofError
from netproof.measurement.case import Case
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


def attacks(folder: Path) -> tuple[Attack, ...]:
    """Return the attack on the reader of references; ``folder`` gets some of the testbed's."""
    whole = (ROOT / "reference-values" / "testbed.yaml").read_text()
    texts = {"testbed.yaml": _some_checks(whole)}
    (folder / "recorded-testbed.yaml").write_text(texts["testbed.yaml"])
    return (Attack("references", of_texts(texts, _second_key), _references(folder)),)
