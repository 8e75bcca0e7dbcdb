"""Mutated session reports, and the judge of their reader."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ci.attacking.inputs import DATA, REFUSED, RIGHT, WRITTEN, Attack, Input, Judge, of_texts
from netproof import codec
from netproof.session import session
from netproof.session.measured import Measured


def _report(folder: Path) -> Judge:
    path = folder / "run-1.json"

    @cache
    def truth(origin: str) -> list[Any]:
        return [(one.measured, one.extras) for one in session.load(folder / origin).results]

    def judge(given: Input) -> str:
        path.write_text(given.text, errors="surrogatepass")
        found = session.load(path)
        refused = [one.contradiction is not None for one in found.results]
        measured = [(one.measured, one.extras) for one in found.results]
        if measured == truth(given.origin):
            return RIGHT
        stated = [
            test.get("netproof_measured") or None
            for run in json.loads(given.text)["runs"]
            for test in run["testcases"]
        ]
        # A case that contradicts itself is refused alone, and counts as not measured.
        taken = [
            (None, {}) if no or there is None else _taken(there)
            for no, there in zip(refused, stated, strict=True)
        ]
        if measured == taken:
            return REFUSED if any(refused) else WRITTEN
        return "what was read stands nowhere in the report"

    return judge


def _taken(stated: dict[str, Any]) -> tuple[Measured, dict[str, Any]]:
    """Return what was measured by the plain values of a report, and where."""
    own = {"format", *Measured.__dataclass_fields__}
    extras = {key: one for key, one in stated.items() if key not in own}
    return codec.decode_part(Measured, stated, "stated"), extras


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


def attacks(folder: Path) -> tuple[Attack, ...]:
    """Return the attack on the reader of session reports; ``folder`` gets recorded ones."""
    texts = {name: _some_of(*where) for name, where in _REPORTS.items()}
    for name, text in texts.items():
        (folder / name).write_text(text)
    return (Attack("session report", of_texts(texts, _second_json_key), _report(folder)),)
