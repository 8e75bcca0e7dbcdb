"""Why a try of another release cannot be made."""

from __future__ import annotations


class CannotRunError(Exception):
    """The run cannot be made here; the sentence says why."""
