"""The verbs on references: ``references derive`` and ``references risk``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from netproof.commands.options import Form, printed, subjects, verb
from netproof.verdict import INCONCLUSIVE, PASSED

if TYPE_CHECKING:
    from netproof.session.session import Session
    from netproof.verdict.references import ReferenceFile


@verb("cannot derive references")
def derive(
    arguments: list[str],
    write: bool = False,
    allow_looser: bool = False,
    risk: float = 0.05,
    floor: float = 0.1,
    spread_limit: float = 0.1,
    per_size: bool = False,
) -> int:
    """Derive references and show what changes."""
    sessions, system = subjects(arguments, most=None)
    from netproof.present import terminal

    with terminal.working(f"deriving references of {len(sessions)} sessions"):
        loaded, references, name, partition = _loaded(sessions, system)
        from netproof.intake import disk
        from netproof.verdict import derive as deriving
        from netproof.verdict.references import diff, edited

        made = deriving.derived(
            loaded,
            references,
            name,
            partition,
            risk=risk,
            floor=floor,
            spread_limit=spread_limit,
            allow_looser=allow_looser,
            per_size=per_size,
        )
    path = references.path
    text = edited(references, {(one.check, one.case): one.entries for one in made if one.entries})
    changed = diff(path, references.text, text)
    if write and changed:
        disk.replace(path, text)
    out, errors = terminal.console(), terminal.console(stderr=True)
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in changed:
        head = line.startswith(("---", "+++"))
        terminal.say(out, line, "bold" if head else styles.get(line[:1], ""))
    for one in made:
        if one.reason:
            terminal.say(errors, f"{one.case}: no references: {one.reason}", "yellow")
        elif one.unchanged or one.kept:
            terminal.say(errors, f"{one.case}:")
            for variable, reason in one.unchanged.items():
                terminal.say(errors, f"  {variable}: left as it is: {reason}", "yellow")
            for variable, why in one.kept.items():
                terminal.say(errors, f"  {variable}: {why}")
    terminal.say(
        errors,
        f"{len(loaded)} sessions, {len(made)} cases, {sum(bool(one.reason) for one in made)} of"
        f" them without references; {sum(len(one.entries) for one in made)} entries change,"
        f" {sum(len(one.unchanged) for one in made)} are left as they are",
        "bold",
    )
    least = deriving.FEW_LAUNCHES
    few = sum(one.launches < least for one in made if not one.reason)
    if few:
        terminal.say(
            errors,
            f"{few} cases have fewer than {least} launches in a session: one slow launch is then"
            f" the session's value, which no bound foresees; measure with -S launches={least}",
            "yellow",
        )
    shown = os.path.relpath(path)
    if not changed:
        terminal.say(errors, f"{shown} stays as it is")
    elif write:
        terminal.say(errors, f"{shown} is written")
    else:
        terminal.say(errors, f"nothing is written; --write changes {shown}")
    return INCONCLUSIVE if any(one.outside for one in made) else PASSED


def _loaded(
    reports: Sequence[Path], system: str | None
) -> tuple[list[Session], ReferenceFile, str, str | None]:
    """Return sessions and references, and the names of system and partition (None: all)."""
    from netproof.site import folders
    from netproof.verdict.references import ReferenceFile

    def of_system(system: str) -> tuple[ReferenceFile, str, str | None]:
        name, _, partition = system.partition(":")
        return ReferenceFile(folders.of_references() / f"{name}.yaml"), name, partition or None

    # What is wrong with the references of a system that was named is said at once.
    named = system and of_system(system)
    from netproof.session import session

    sessions = [session.load(report) for report in reports]
    if named:
        return sessions, *named
    from netproof.verdict.derive import system_of

    return sessions, *of_system(system_of(sessions))


@verb("no risks")
def risk(
    arguments: list[str],
    margin: float = 0.1,
    form: Form = Form.TEXT,
) -> int:
    """Print what buyer and seller risk by each bound."""
    sessions, system = subjects(arguments, most=None)
    from netproof.present import terminal

    with terminal.working(f"simulating acceptances by {len(sessions)} sessions"):
        loaded = _loaded(sessions, system)
        from netproof.verdict.derive import risks_of_sessions

        found, without = risks_of_sessions(*loaded, margin)
    from netproof.present import documents
    from netproof.present.verdict import of_risk, risk_blocks

    printed(
        form,
        lambda: {
            "margin": margin,
            "risks": [{**documents.plain(one.case), **of_risk(one)} for one in found],
            "without": [{**documents.plain(case), "why": why} for case, why in without.items()],
        },
        lambda: risk_blocks(found, without, margin),
    )
    return INCONCLUSIVE if without or not found else PASSED
