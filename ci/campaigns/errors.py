"""Why a campaign or one of its runs ends early."""

from __future__ import annotations

from netproof.errors import NetproofError


class Ended(BaseException):
    """Told to end by a signal; no handler of errors may take it for one."""


class TooLongError(Exception):
    """A run took too long; no NetproofError, which measuring takes for a silent slurmctld."""


class CannotRunError(NetproofError):
    """The campaign cannot be made, or cannot go on, on this machine."""
