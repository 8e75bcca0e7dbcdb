"""Sweeps: one setting is turned, and what that changes is measured and judged."""
