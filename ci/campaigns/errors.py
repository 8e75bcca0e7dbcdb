"""Why a campaign or one of its runs ends early."""

from __future__ import annotations

from netproof.errors import NetproofError


class Ended(BaseException):
    """A signal ended the campaign; no handler of errors may catch it."""


class TooLongError(Exception):
    """A run took too long. Not a NetproofError: measuring takes that for a silent slurmctld."""


class CannotRunError(NetproofError):
    """The campaign cannot be made, or cannot go on, on this machine."""
