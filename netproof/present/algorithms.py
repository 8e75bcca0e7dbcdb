"""The fastest algorithm of a collective at each size: in words, as a table, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from rich.console import Console

from netproof.present.tables import TableColumn, benchmark_name, print_table, say
from netproof.present.tuning import gain_in_words, percent, setting
from netproof.present.wording import counted
from netproof.tuning.algorithm_sweep import AlgorithmSweep, Remark
from netproof.tuning.gains import Gain, SizeWinner, Winners

OWN = "the library's own"
NO_DIFFERENCE = "statistically tied"
NO_CHANGE = "no change"

MOST_AS_GOOD = 3
"""Other algorithms of a row that a terminal and a page name; ``--json`` has all."""


def name_of(swept: AlgorithmSweep, value: str) -> str:
    """Return an algorithm's name: ``4 ring`` where a number chooses it, else its value."""
    name = swept.names.get(value, "")
    return f"{value} {name}" if name else value


def size_in_words(size: int) -> str:
    """Return a message size as people write it, ``64 KiB``; empty for a call without a message."""
    if not size:
        return "-"
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size:,} B"


def winner_in_words(swept: AlgorithmSweep, row: SizeWinner) -> str:
    """Return the fastest algorithm of a row, or why no algorithm is."""
    if row.winner is not None:
        return name_of(swept, row.winner)
    if row.costly:
        return OWN
    return NO_CHANGE if row.none else NO_DIFFERENCE


def as_good_in_words(swept: AlgorithmSweep, row: SizeWinner) -> str:
    """Return the algorithms that are statistically tied with the fastest, the closest first."""
    several = sorted(row.as_good.items(), key=lambda one: one[1])
    listed = [
        f"{name_of(swept, value)} (at most {100 * behind:.0f} % behind)"
        for value, behind in several[:MOST_AS_GOOD]
    ]
    more = len(several) - len(listed)
    return ", ".join([*listed, *([f"{more} more"] if more else [])]) or "-"


def conclusion(swept: AlgorithmSweep, table: Winners) -> str:
    """Return which algorithm is fastest from which size to which, as a sentence."""
    parts = []
    for winner, group in groupby(table.rows, key=lambda row: row.winner):
        rows = list(group)
        if winner is None:
            continue
        gains = [row.gain.factor for row in rows]
        low, high = percent(min(gains)), percent(max(gains))
        by = low if low == high else f"{low.removesuffix(' %')} to {high}"
        sizes = [size_in_words(row.size) for row in (rows[0], rows[-1])]
        where = f" at {sizes[0]}" if len(rows) == 1 else f" from {sizes[0]} to {sizes[1]}"
        parts.append(f"{name_of(swept, winner)}{where if rows[0].size else ''} ({by})")
    title = f"{swept.sweep.title} on {swept.sweep.case.ranks} ranks"
    if not parts:
        return f"{title}: leave it to the library: no algorithm is faster for sure"
    lost = sum(row.winner is None for row in table.rows)
    rest = f"; at the other {counted(lost, 'size')} none is faster for sure" if lost else ""
    return f"{title}: {', '.join(parts)}{rest}"


def settings(swept: AlgorithmSweep, table: Winners) -> dict[str, str]:
    """Return how to set each of the fastest algorithms, by its name."""
    won = dict.fromkeys(row.winner for row in table.rows if row.winner is not None)
    return {name_of(swept, value): setting(swept.sweep, value) for value in won}


def remarks(swept: AlgorithmSweep, table: Winners) -> tuple[str, ...]:
    """Return the algorithms that the library did not take, and how all was measured."""

    def said(remark: Remark) -> str:
        return f"{name_of(swept, remark.value)}: {remark.said}"

    sentences = [f"Not taken, {said(one)}" for one in swept.refused]
    sentences += [
        f"In some calls the library took its own choice instead of {said(one)}"
        for one in swept.fell_back
    ]
    sentences += [
        f"{name_of(swept, value)} is left out: {counted(count, 'round')} of it"
        " had nothing that disturbed."
        for value, count in table.disturbed_values.items()
    ]
    sentences.append(
        f"{counted(table.rounds, 'round')} of {counted(len(table.values), 'algorithm')}, each"
        " alongside the library's own choice at the same time; the last launch of that took"
        f" {table.drift:.2f} times the first."
    )
    if table.disturbed:
        count = len(swept.sweep.launches)
        sentences.append(f"{table.disturbed} of {count} launches were disturbed and are left out.")
    return tuple(sentences)


def head() -> tuple[str, ...]:
    """Return the titles of the table's columns."""
    return ("message", "fastest", "than the library's own choice", "statistically tied with it")


def rows_of(swept: AlgorithmSweep, table: Winners) -> list[tuple[str, ...]]:
    """Return the table's cells."""
    return [
        (
            size_in_words(row.size),
            winner_in_words(swept, row),
            "-" if row.gain is None else gain_in_words(row.gain),
            as_good_in_words(swept, row),
        )
        for row in table.rows
    ]


def print_winners(swept: AlgorithmSweep, table: Winners, out: Console) -> None:
    """Print the conclusion, a line for each size, and the algorithms not taken."""
    case = swept.sweep.case
    where = f"{case.system}:{case.partition} {case.environment} {benchmark_name(case)}"
    say(out, f"{where}, {case.ranks} ranks", "bold")
    won = any(row.winner is not None for row in table.rows)
    say(out, conclusion(swept, table), "green" if won else "")
    for name, how in settings(swept, table).items():
        say(out, f"set {name} by: {how}")
    cells = list(zip(*rows_of(swept, table), strict=True))
    columns = [
        TableColumn(title, column, right=place == 0)
        for place, (title, column) in enumerate(zip(head(), cells, strict=True))
    ]
    print_table(columns, out)
    for sentence in remarks(swept, table):
        say(out, sentence)


def document(several: Sequence[tuple[AlgorithmSweep, Winners]]) -> dict[str, Any]:
    """Return plain values for ``json``: each sweep with its table."""
    return {"sweeps": [_document(swept, table) for swept, table in several]}


def _document(swept: AlgorithmSweep, table: Winners) -> dict[str, Any]:
    return {
        "case": str(swept.sweep.case),
        "parameter": swept.sweep.parameter,
        "library": swept.library,
        "function": swept.sweep.case.function,
        "ranks": swept.sweep.case.ranks,
        "rounds": table.rounds,
        "drift": table.drift,
        "disturbed": table.disturbed,
        "conclusion": conclusion(swept, table),
        "algorithms": [
            {
                "value": value,
                "name": swept.names.get(value) or value,
                "set": setting(swept.sweep, value),
            }
            for value in table.values
        ],
        "refused": [{"value": one.value, "said": one.said} for one in swept.refused],
        "fell_back": [{"value": one.value, "said": one.said} for one in swept.fell_back],
        "left_out": dict(table.disturbed_values),
        "sizes": [
            {
                "bytes": row.size,
                "winner": row.winner,
                "told": winner_in_words(swept, row),
                "as_good": dict(row.as_good),
                "gains": {value: _gain_values(gain) for value, gain in row.gains.items()},
            }
            for row in table.rows
        ],
    }


def _gain_values(gain: Gain) -> dict[str, Any]:
    return {"factor": gain.factor, "interval": list(gain.interval)}
