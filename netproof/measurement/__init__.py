"""Measurements: units, cases, curves, launches, and the figures that follow from them."""
