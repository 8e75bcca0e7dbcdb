"""What a launch had to send: between its nodes, and between its ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Payload:
    """The bytes of messages that had to leave the nodes of a launch, all of them together.

    ``bytes``: the least that any algorithm has to send, without headers; None where it cannot be
    known, and ``why`` has the reason.
    """

    bytes: int | None
    why: str = ""


@dataclass(frozen=True)
class Exchanged:
    """The messages that the ranks of a launch had to send to each other, on whatever nodes.

    ``messages``: how many; ``bytes``: of all of them, without headers; both the least that any
    algorithm has to send, None where that cannot be known, and ``why`` has the reason.
    """

    messages: int | None
    bytes: int | None
    why: str = ""

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Exchanged:
        """Of plain values with its fields' names; KeyError where one is missing."""
        return cls(values["messages"], values["bytes"], values["why"])
