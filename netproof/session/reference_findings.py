"""What a run said of its references, as its report keeps it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from netproof.criteria import Finding, Level
from netproof.errors import NetproofError
from netproof.intake.shapes import NUMBER, TEXT, Keys, OrNone, RowOf, insist

CRITERION = "reference"
"""Of the findings that references make."""

SHAPE = Keys(
    {
        **dict.fromkeys(("level", "where", "why", "variable"), TEXT),
        **dict.fromkeys(("value", "bound"), OrNone(NUMBER)),
        "interval": OrNone(RowOf((NUMBER, OrNone(NUMBER)))),
    }
)
"""Of what kind each value of ``as_json`` is."""


def as_json(variable: str, finding: Finding) -> dict[str, Any]:
    """The plain values that a report keeps of a finding of a reference.

    JSON has no infinite numbers: an interval without an upper end has None there.
    """
    values = {**dataclasses.asdict(finding), "variable": variable, "why": finding.why}
    del values["reason"]
    if finding.interval is not None:
        low, high = finding.interval
        values["interval"] = [low, high if math.isfinite(high) else None]
    return values


def from_json(values: Mapping[str, Any]) -> Finding:
    """A finding of a reference from the plain values that a report keeps of it.

    Raises NetproofError where they are none.
    """
    insist(values, SHAPE, "what a reference says cannot be read")
    ends = values["interval"]
    try:
        return Finding(
            CRITERION,
            Level(values["level"]),
            values["where"],
            # A report keeps the sentence as it is printed, with the case at its head.
            values["why"].removeprefix(f"{values['where']}: "),
            value=values["value"],
            bound=values["bound"],
            interval=None if ends is None else (ends[0], math.inf if ends[1] is None else ends[1]),
            variable=values["variable"],
        )
    except ValueError as error:
        raise NetproofError(f"what a reference says cannot be read: {error!r}") from error
