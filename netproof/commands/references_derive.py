"""The body of ``netproof references derive``: references from sessions, shown or written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.text import Text

from netproof.errors import NetproofError
from netproof.intake import writing
from netproof.present import tables
from netproof.session import session
from netproof.session.session import Session
from netproof.verdict.derive import (
    DERIVED,
    FEW_LAUNCHES,
    NOT_ALL_DERIVED,
    DerivedCase,
    DerivingSettings,
    derived,
    reference_folder,
    system_of,
)
from netproof.verdict.references import ReferenceFile, diff, edited


def run(
    reports: Sequence[Path],
    *,
    system: str | None,
    write_file: bool,
    allow_looser: bool,
    risk: float | None,
    floor: float | None,
    spread_limit: float | None,
    per_size: bool,
) -> int:
    """Print diff and remarks, and return the exit status."""
    errors = tables.console(stderr=True)
    try:
        default = DerivingSettings()
        settings = DerivingSettings(
            risk=default.risk if risk is None else risk,
            floor=default.floor if floor is None else floor,
            spread_limit=default.spread_limit if spread_limit is None else spread_limit,
        )
        with tables.working(f"deriving references of {len(reports)} sessions"):
            sessions = [session.load(report) for report in reports]
            name, _, partition = (system or system_of(sessions)).partition(":")
            references = ReferenceFile(reference_folder() / f"{name}.yaml")
            made = derived(
                sessions,
                references,
                name,
                partition or None,
                settings=settings,
                allow_looser=allow_looser,
                per_size=per_size,
            )
        text = edited(
            references, {(one.check, one.case): one.entries for one in made if one.entries}
        )
        changed = diff(references.path, references.text, text)
        if write_file and changed:
            writing.replace(references.path, text)
    except (NetproofError, OSError) as error:
        errors.print(Text(f"netproof: cannot derive references: {error}", "red"), soft_wrap=True)
        return NOT_ALL_DERIVED
    out = tables.console()
    for line in changed:
        out.print(Text(line, _style(line)), soft_wrap=True)
    for line in _remarks(made):
        errors.print(line, soft_wrap=True)
    errors.print(Text(_summary(sessions, made), "bold"), soft_wrap=True)
    few = sum(one.launches < FEW_LAUNCHES for one in made if not one.reason)
    if few:
        errors.print(Text(_few_launches(few), "yellow"), soft_wrap=True)
    errors.print(Text(_outcome(references.path, changed, write_file)), soft_wrap=True)
    return NOT_ALL_DERIVED if any(one.outside for one in made) else DERIVED


def _remarks(made: Iterable[DerivedCase]) -> list[Text]:
    lines = []
    for one in made:
        if one.reason:
            lines.append(Text(f"{one.case}: no references: {one.reason}", "yellow"))
        elif one.left or one.kept:
            lines.append(Text(f"{one.case}:"))
            lines += [
                Text(f"  {variable}: left as it is: {reason}", "yellow")
                for variable, reason in one.left.items()
            ]
            lines += [Text(f"  {variable}: {text}") for variable, text in one.kept.items()]
    return lines


def _summary(sessions: Sequence[Session], made: Sequence[DerivedCase]) -> str:
    changed = sum(len(one.entries) for one in made)
    left = sum(len(one.left) for one in made)
    without = sum(bool(one.reason) for one in made)
    return (
        f"{len(sessions)} sessions, {len(made)} cases, {without} of them without references;"
        f" {changed} entries change, {left} are left as they are"
    )


def _few_launches(cases: int) -> str:
    return (
        f"{cases} cases have fewer than {FEW_LAUNCHES} launches in a session: one slow launch is"
        " then the session's value, which no bound foresees; measure with"
        f" -S launches={FEW_LAUNCHES}"
    )


def _outcome(path: Path, changed: Sequence[str], write_file: bool) -> str:
    shown = os.path.relpath(path)
    if not changed:
        return f"{shown} stays as it is"
    return f"{shown} is written" if write_file else f"nothing is written; --write changes {shown}"


def _style(line: str) -> str:
    if line.startswith(("---", "+++")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
