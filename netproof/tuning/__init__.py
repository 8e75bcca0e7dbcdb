"""Sweeps: one setting is changed, and the effect is measured and judged."""
