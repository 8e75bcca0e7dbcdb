"""The criteria that judge curves: pure functions, each with its settings, each saying why.

A criterion is a module, and declares itself as ``CRITERION``; see ``interface``. It takes curves
and settings and returns findings. It raises nothing for a curve that it cannot judge, but returns
the level ``undefined`` with the reason, which no one may count as passed.
"""

from netproof.criteria.agreements import AgreementSettings, agreement
from netproof.criteria.confirming import (
    Confirmation,
    ConfirmSettings,
    confirm,
    dense_sizes,
    needed_sizes,
)
from netproof.criteria.cpu_costs import CpuCostSettings, cpu_cost
from netproof.criteria.crashes import CrashSettings, crash_share
from netproof.criteria.dropouts import DropoutSettings, dropout
from netproof.criteria.early_rendezvous import EarlyRendezvousSettings, early_rendezvous
from netproof.criteria.envelopes import Envelope, EnvelopeSettings, above_envelope, envelope
from netproof.criteria.findings import Bounds, CommonSizes, Finding, Level
from netproof.criteria.floors import FloorSettings, floor
from netproof.criteria.growths import GrowthSettings, growth, monotony
from netproof.criteria.guidelines import GuidelineSettings, guidelines
from netproof.criteria.inversions import InversionSettings, inversion, rounded_to_zero
from netproof.criteria.jumps import JumpSettings, jump
from netproof.criteria.launch_spreads import LaunchSpreadSettings, launch_spread
from netproof.criteria.line_rates import LineRateSettings, line_rate
from netproof.criteria.mpi_losses import AT_A_SIZE, MpiLossSettings, loss, losses, mpi_loss
from netproof.criteria.points import READABLE
from netproof.criteria.refining import (
    Bend,
    RefineSettings,
    Region,
    closer_sizes,
    found_closer,
    kinks,
    measured_closer,
    regions,
)
from netproof.criteria.scores import ScoreSettings, percentile_interval, resampled_medians, score
from netproof.criteria.variation import RoughnessSettings, roughness

__all__ = [
    "AT_A_SIZE",
    "READABLE",
    "AgreementSettings",
    "Bend",
    "Bounds",
    "CommonSizes",
    "ConfirmSettings",
    "Confirmation",
    "CpuCostSettings",
    "CrashSettings",
    "DropoutSettings",
    "EarlyRendezvousSettings",
    "Envelope",
    "EnvelopeSettings",
    "Finding",
    "FloorSettings",
    "GrowthSettings",
    "GuidelineSettings",
    "InversionSettings",
    "JumpSettings",
    "LaunchSpreadSettings",
    "Level",
    "LineRateSettings",
    "MpiLossSettings",
    "RefineSettings",
    "Region",
    "RoughnessSettings",
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
