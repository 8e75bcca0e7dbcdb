"""What stops the testbed, by the exit code that it ends with."""

from __future__ import annotations

from netproof.errors import NetproofError


class CannotRunError(NetproofError):
    """The machine, or what is on it, does not allow what was asked: exit 2."""


class StepFailedError(NetproofError):
    """A part of the testbed did not come up or go away: exit 1."""
