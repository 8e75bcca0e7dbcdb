"""Errors of a try of another release."""

from __future__ import annotations


class CannotRunError(Exception):
    """No run is possible here; the sentence gives the reason."""
