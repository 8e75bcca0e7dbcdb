"""What a launch had to send between its nodes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Payload:
    """The bytes of messages that had to leave the nodes of a launch, all of them together.

    ``bytes``: the least that any algorithm has to send, without headers; None where it cannot be
    known, and ``why`` has the reason.
    """

    bytes: int | None
    why: str = ""
