"""What a run said of its references, as its report stores it."""

from __future__ import annotations

import dataclasses
from typing import Any

from netproof import codec
from netproof.criteria import Finding

CRITERION = "reference"
"""Of the findings that references make."""


def as_json(variable: str, finding: Finding) -> dict[str, Any]:
    """Return the plain values of a finding of the reference on a variable."""
    return codec.encode(dataclasses.replace(finding, variable=variable))


def from_json(values: Any) -> Finding:
    """Return a reference's finding from plain values; NetproofError where they are none."""
    return codec.decode(Finding, values, "what a reference says cannot be read")
