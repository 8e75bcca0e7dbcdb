"""The criteria that judge curves: pure functions, each with its settings, each saying why.

A family of criteria is a module, and has its ``CRITERIA``; see ``interface``. A criterion takes
curves and settings and returns findings. For a curve that it cannot judge it returns the level
``undefined`` with the reason, which no one may count as passed.
"""

from netproof.criteria.confirming import (
    Bend,
    Confirmation,
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
from netproof.criteria.consistency import agreement, growth, guidelines, monotony
from netproof.criteria.findings import READABLE, Bounds, CommonSizes, Finding, Level
from netproof.criteria.launches import cpu_cost, crash_share, launch_spread
from netproof.criteria.protocol import early_rendezvous
from netproof.criteria.rate import line_rate, loss, losses, mpi_loss
from netproof.criteria.shape import dropout, inversion, jump, roughness, rounded_to_zero
from netproof.criteria.slower import (
    Envelope,
    ScoreSettings,
    above_envelope,
    envelope,
    floor,
    percentile_interval,
    resampled_medians,
    score,
)

__all__ = [
    "READABLE",
    "Bend",
    "Bounds",
    "CommonSizes",
    "ConfirmSettings",
    "Confirmation",
    "Envelope",
    "Finding",
    "Level",
    "Region",
    "ScoreSettings",
    "above_envelope",
    "agreement",
    "closer_sizes",
    "confirm",
    "cpu_cost",
    "crash_share",
    "dense_sizes",
    "dropout",
    "early_rendezvous",
    "envelope",
    "floor",
    "found_closer",
    "growth",
    "guidelines",
    "inversion",
    "jump",
    "kinks",
    "launch_spread",
    "line_rate",
    "loss",
    "losses",
    "measured_closer",
    "monotony",
    "mpi_loss",
    "needed_sizes",
    "percentile_interval",
    "regions",
    "resampled_medians",
    "roughness",
    "rounded_to_zero",
    "score",
]
