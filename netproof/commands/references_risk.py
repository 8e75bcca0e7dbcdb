"""The body of ``netproof references risk``: buyer's and seller's risks by the references."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from netproof.errors import NetproofError
from netproof.present import documents, risks, tables
from netproof.session import session
from netproof.verdict import risk
from netproof.verdict.derive import DERIVED, NOT_ALL_DERIVED, reference_folder, system_of
from netproof.verdict.references import ReferenceFile


def run(reports: Sequence[Path], *, system: str | None, margin: float, as_json: bool) -> int:
    """Print the risks, and return the exit status: 0, or 2 where a case has no risk to show."""
    try:
        with tables.working(f"simulating acceptances by {len(reports)} sessions"):
            sessions = [session.load(report) for report in reports]
            name, _, partition = (system or system_of(sessions)).partition(":")
            references = ReferenceFile(reference_folder() / f"{name}.yaml")
            found, without = risk.risks_of_sessions(
                sessions, references, name, partition or None, margin
            )
    except NetproofError as error:
        tables.say(tables.console(stderr=True), f"netproof: no risks: {error}", "red")
        return NOT_ALL_DERIVED
    if as_json:
        document = {
            "format": documents.FORMAT,
            "margin": margin,
            "risks": [{**documents.of_case(one.case), **risks.of_risk(one)} for one in found],
            "without": [{**documents.of_case(case), "why": why} for case, why in without.items()],
        }
        documents.write(document, sys.stdout)
    else:
        risks.print_risks(found, without, margin, tables.console())
    return NOT_ALL_DERIVED if without or not found else DERIVED
