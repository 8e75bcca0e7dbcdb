"""Bytes that a launch must send: between its nodes, and between its ranks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Payload:
    """The bytes of messages that must leave the nodes of a launch, all of them together.

    ``bytes``: the least that any algorithm must send, without headers; None where it cannot be
    known, with the reason in ``why``.
    """

    bytes: int | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Exchanged:
    """The messages that the ranks of a launch must send to each other, on whatever nodes.

    ``messages``: their number; ``bytes``: of all of them, without headers; both the least that any
    algorithm must send, None where it cannot be known, with the reason in ``why``.
    """

    messages: int | None
    bytes: int | None
    why: str = ""
