"""The criteria that judge curves: pure functions, each with its settings, each saying why.

A family of criteria is a module, and has its ``CRITERIA``; see ``interface``. A criterion takes
curves and settings and returns findings. For a curve that it cannot judge it returns the level
``undefined`` with the reason, which no one may count as passed.
"""

from netproof.criteria.findings import Bounds, Finding, Level

__all__ = ["Bounds", "Finding", "Level"]
