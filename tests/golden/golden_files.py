"""Write, read and compare golden files.

A section is a line, and each of its facts an indented line: name, colon, value. Numbers have four
digits, and are equal if they differ by at most half of the fourth.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from unittest import mock

import golden_facts

TOLERANCE = 5.01e-4
NOTHING = 1e-12
"""Smaller numbers are rounding errors of 0."""

NUMBER = re.compile(r"(-?(?:inf|nan|\d+(?:\.\d+)?(?:e[+-]\d+)?))(?![\w.])")

Facts = Mapping[tuple[str, str], str]
"""Values by section and name."""


def text(value: object, digits: int) -> str:
    """Return a value as text, with so many digits."""
    if isinstance(value, tuple | list):
        return " ".join(text(one, digits) for one in value) or "none"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, float):
        return f"{0.0 if abs(value) < NOTHING else value:.{digits}g}"
    return str(value)


def today(part: str) -> tuple[Facts, Facts]:
    """Return the facts of a part with all digits, and with four, by the project's own site."""
    found: dict[tuple[str, str], list] = {}
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ):
        os.environ.pop("NETPROOF_TOPOLOGY", None)
        os.environ["RFM_CONFIG_PATH"] = str(golden_facts.ROOT / "site-config")
        os.environ["RFM_REFERENCE_PREFIX"] = str(golden_facts.ROOT / "reference-values")
        os.environ["RFM_REPORT_FILE"] = f"{folder}/run-0.json"
        for section, what, *values in golden_facts.PARTS[part]():
            names = itertools.chain([what], (f"{what} ({n})" for n in itertools.count(2)))
            found[section, next(n for n in names if (section, n) not in found)] = values
    return tuple({key: text(found[key], digits) for key in found} for digits in (17, 4))


def path(part: str) -> Path:
    return Path(__file__).with_name(f"{part}.txt")


def read(part: str) -> Facts:
    """Return the facts of a golden file, none if it does not exist."""
    found, section = {}, ""
    for line in path(part).read_text().splitlines() if path(part).exists() else ():
        if line.startswith("  "):
            what, _, value = line.strip().partition(": ")
            found[section, what] = value
        else:
            section = line
    return found


def write(part: str, facts: Facts) -> None:
    lines = []
    for section, several in itertools.groupby(sorted(facts), key=lambda key: key[0]):
        lines += [section, *(f"  {key[1]}: {facts[key]}" for key in several)]
    path(part).write_text("\n".join(lines) + "\n")


def same(was: str, now: str) -> bool:
    """Check whether two values have the same words, and the same numbers within the tolerance."""
    one, other = NUMBER.split(was), NUMBER.split(now)
    return len(one) == len(other) and all(
        a == b or (place % 2 and math.isclose(float(a), float(b), rel_tol=TOLERANCE))
        for place, (a, b) in enumerate(zip(one, other, strict=True))
    )


def differences(part: str, was: Facts, now: Facts, short: Facts) -> Iterator[str]:
    """Return a line for each difference: file, section, name, the value that was and that is."""
    for key in sorted({*was, *now}):
        if key not in was or key not in now or not same(was[key], now[key]):
            values = f"was {was.get(key, 'not there')}, is {short.get(key, 'not there')}"
            yield f"{path(part).name}: {key[0]}: {key[1]}: {values}"


def main(parts: list[str]) -> None:
    """Make these golden files, or all, and print the differences from the files before."""
    for part in parts or golden_facts.PARTS:
        was, (now, short) = read(part), today(part)
        found = list(differences(part, was, now, short))
        print("\n".join([*found, f"{path(part).name}: {len(found)} differences"]))
        # An equal value stays as it is, also at the edge of rounding.
        equal = {key: was[key] for key in now if same(was.get(key, ""), now[key])}
        write(part, {**short, **equal})


if __name__ == "__main__":
    main(sys.argv[1:])
