"""The fastest algorithm of a collective at each size: in words, as a table, as plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console

from netproof.experiments.gains import SweepRow, SweepTable
from netproof.experiments.sweep import Sweep
from netproof.present.tables import DataTable, benchmark_name, print_answer
from netproof.present.tuning import gain_in_words, percent, setting
from netproof.present.wording import counted, size_in_words

OWN = "the library's own"

MOST_AS_GOOD = 3
"""Other algorithms of a row that a terminal and a page name; ``--format json`` has all."""


def name_of(swept: Sweep, value: str) -> str:
    """Return an algorithm's name: ``4 ring`` where a number chooses it, else its value."""
    name = swept.names.get(value, "")
    return f"{value} {name}" if name else value


def winner_in_words(swept: Sweep, row: SweepRow) -> str:
    """Return the fastest algorithm of a row, or why no algorithm is."""
    if row.winner is not None:
        return name_of(swept, row.winner)
    if row.costly:
        return OWN
    return "no change" if row.none else "statistically tied"


def as_good_in_words(swept: Sweep, row: SweepRow) -> str:
    """Return the algorithms that are statistically tied with the fastest, the closest first."""
    several = sorted(row.as_good.items(), key=lambda one: one[1])
    listed = [
        f"{name_of(swept, value)} (at most {100 * behind:.0f} % behind)"
        for value, behind in several[:MOST_AS_GOOD]
    ]
    more = len(several) - len(listed)
    return ", ".join([*listed, *([f"{more} more"] if more else [])]) or "-"


def conclusion(swept: Sweep, table: SweepTable) -> str:
    """Return which algorithm is fastest from which size to which, as a sentence."""
    parts = []
    for winner, group in groupby(table.rows, key=lambda row: row.winner):
        rows = list(group)
        if winner is None:
            continue
        gains = [row.gain.factor for row in rows]
        low, high = percent(min(gains)), percent(max(gains))
        by = low if low == high else f"{low.removesuffix(' %')} to {high}"
        where = ""
        if rows[0].at:
            first, last = size_in_words(rows[0].at), size_in_words(rows[-1].at)
            where = f" at {first}" if len(rows) == 1 else f" from {first} to {last}"
        parts.append(f"{name_of(swept, winner)}{where} ({by})")
    title = f"{swept.title} on {swept.case.ranks} ranks"
    if not parts:
        return f"{title}: leave it to the library: no algorithm is faster for sure"
    lost = sum(row.winner is None for row in table.rows)
    rest = f"; at the other {counted(lost, 'size')} none is faster for sure" if lost else ""
    return f"{title}: {', '.join(parts)}{rest}"


def answer(swept: Sweep, table: SweepTable) -> dict[str, Any]:
    """Return what terminal and page show: conclusion, settings, a row a size, remarks."""
    won = list(dict.fromkeys(row.winner for row in table.rows if row.winner is not None))
    remarks = [f"Not taken, {name_of(swept, value)}: {why}" for value, why in swept.refused.items()]
    remarks += [
        f"In some calls the library took its own choice instead of {name_of(swept, value)}: {line}"
        for value, line in swept.fell_back.items()
    ]
    remarks += [
        f"{name_of(swept, value)} is left out: {counted(count, 'round')} of it"
        " had nothing that disturbed."
        for value, count in table.disturbed_values.items()
    ]
    remarks.append(
        f"{counted(table.rounds, 'round')} of {counted(len(table.values), 'algorithm')}, each"
        " alongside the library's own choice at the same time; the last launch of that took"
        f" {table.drift:.2f} times the first."
    )
    if table.disturbed:
        count = len(swept.launches)
        remarks.append(f"{table.disturbed} of {count} launches were disturbed and are left out.")
    return {
        "conclusion": [conclusion(swept, table)],
        "style": "green" if won else "",
        "settings": {f"set {name_of(swept, one)} by": setting(swept, one) for one in won},
        "table": DataTable(
            ("message", "fastest", "than the library's own choice", "statistically tied with it"),
            [
                (
                    size_in_words(row.at) if row.at else "-",
                    winner_in_words(swept, row),
                    "-" if row.gain is None else gain_in_words(row.gain),
                    as_good_in_words(swept, row),
                )
                for row in table.rows
            ],
            (0,),
        ),
        "remarks": remarks,
    }


def print_winners(swept: Sweep, table: SweepTable, out: Console) -> None:
    """Print the conclusion, a line for each size, and the algorithms not taken."""
    case = swept.case
    where = f"{case.system}:{case.partition} {case.environment} {benchmark_name(case)}"
    print_answer(f"{where}, {case.ranks} ranks", answer(swept, table), out)


def document(several: Sequence[tuple[Sweep, SweepTable]]) -> dict[str, Any]:
    """Return plain values for ``json``: each sweep with its table."""
    return {"sweeps": [_document(swept, table) for swept, table in several]}


def _remarks(remarks: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"value": value, "said": remark} for value, remark in remarks.items()]


def _document(swept: Sweep, table: SweepTable) -> dict[str, Any]:
    return {
        "case": str(swept.case),
        "parameter": swept.parameter,
        "library": swept.library,
        "function": swept.case.function,
        "ranks": swept.case.ranks,
        "rounds": table.rounds,
        "drift": table.drift,
        "disturbed": table.disturbed,
        "conclusion": conclusion(swept, table),
        "algorithms": [
            {
                "value": value,
                "name": swept.names.get(value) or value,
                "set": setting(swept, value),
            }
            for value in table.values
        ],
        "refused": _remarks(swept.refused),
        "fell_back": _remarks(swept.fell_back),
        "left_out": table.disturbed_values,
        "sizes": [
            {
                "bytes": row.at,
                "winner": row.winner,
                "sentence": winner_in_words(swept, row),
                "as_good": row.as_good,
                "gains": {value: dataclasses.asdict(gain) for value, gain in row.gains.items()},
            }
            for row in table.rows
        ],
    }
