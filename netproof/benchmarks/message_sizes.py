"""Message sizes that a site asks for beyond its benchmark's own."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from netproof.intake.models import Written

MOST_PER_OCTAVE = 16


class MessageSizes(Written):
    """Settings of a benchmark that measures its own sizes and no others."""

    def largest(self) -> int:
        """Return the largest size in bytes asked for by itself, 0 without any."""
        return 0


ITS_OWN = MessageSizes()
"""Settings where a site has none."""


class ListedSizes(MessageSizes):
    """Settings of a benchmark that takes a list of sizes.

    ``per_octave``: from one power of two to the next, evenly spaced in their logarithms; ``also``:
    in bytes, whatever the others are.
    """

    per_octave: Annotated[int, Field(ge=1, le=MOST_PER_OCTAVE)] = Field(
        default=1, description="sizes from one power of two to the next, that one not counted"
    )
    also: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(strict=False)] = Field(
        default=(), description="further sizes in bytes"
    )

    def largest(self) -> int:
        """Return the largest of ``also``."""
        return max(self.also, default=0)

    def sizes(self, least: int, most: int) -> tuple[int, ...]:
        """Return increasing sizes in bytes from ``least`` to ``most``, all multiples of ``least``.

        The powers of two times ``least`` are always among them. Other sizes are rounded down to a
        multiple.
        """
        doubling = []
        size = least
        while size <= most:
            doubling.append(size)
            size *= 2
        between = [
            round(size * 2 ** (part / self.per_octave))
            for size in doubling
            for part in range(1, self.per_octave)
        ]
        others = {size // least * least for size in (*between, *self.also)}
        return tuple(sorted({*doubling, *(size for size in others if least <= size <= most)}))
