"""Findings that references make, as a run records them."""

CRITERION = "reference"
"""Criterion of the findings that references make."""
