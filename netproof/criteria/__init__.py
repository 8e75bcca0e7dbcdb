"""The criteria that judge curves: pure functions, each with its settings, each saying why.

A family of criteria is a module, and has its ``CRITERIA``; see ``interface``. A criterion takes
curves and settings and returns findings. For a curve that it cannot judge it returns the level
``undefined`` with the reason, which no one may count as passed.
"""

from netproof.criteria.confirming import (
    Bend,
    ConfirmSettings,
    Region,
    closer_sizes,
    confirm,
    dense_sizes,
    found_closer,
    kinks,
    measured_closer,
    needed_sizes,
    regions,
)
from netproof.criteria.findings import READABLE, Bounds, CommonSizes, Confirmation, Finding, Level
from netproof.criteria.launches import crash_share
from netproof.criteria.rate import loss
from netproof.criteria.score import percentile_interval, resampled_medians, score
from netproof.criteria.slower import envelope

__all__ = [
    "READABLE",
    "Bend",
    "Bounds",
    "CommonSizes",
    "ConfirmSettings",
    "Confirmation",
    "Finding",
    "Level",
    "Region",
    "closer_sizes",
    "confirm",
    "crash_share",
    "dense_sizes",
    "envelope",
    "found_closer",
    "kinks",
    "loss",
    "measured_closer",
    "needed_sizes",
    "percentile_interval",
    "regions",
    "resampled_medians",
    "score",
]
