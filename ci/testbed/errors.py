"""The testbed's errors, by exit code."""

from __future__ import annotations

from netproof.errors import NetproofError


class CannotRunError(NetproofError):
    """The machine or its state does not allow the request: exit 2."""


class StepFailedError(NetproofError):
    """A part of the testbed did not come up or go away: exit 1."""
