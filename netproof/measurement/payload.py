"""Bytes that a launch must send: between its nodes, and between its ranks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Payload:
    """What must be sent in a launch: between all of its nodes, or all of its ranks.

    ``bytes``: of messages, the least that any algorithm must send, without headers; None where it
    cannot be known, with the reason in ``why``. ``messages``: their number, likewise; None between
    nodes, where only bytes count.
    """

    bytes: int | None
    why: str = ""
    messages: int | None = None
