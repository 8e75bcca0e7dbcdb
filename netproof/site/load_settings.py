"""Settings of a site for its network under load, with defaults."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from netproof.intake.models import Written

_Factor = Annotated[float, Field(gt=1, title="a factor above 1")]
_Word = Annotated[str, Field(pattern=r"^\S+$", title="a word")]

LEAST_REPETITIONS = 2


class LoadSettings(Written):
    """Victims alongside aggressors on a partition, and single calls of a long launch."""

    most: _Factor | None = Field(
        None,
        description="how many times as long a victim's mean time may be alongside an aggressor as"
        " alone; by default it is shown",
    )
    most_99th: _Factor | None = Field(
        None, description="the same of the 99th percentile of its times"
    )
    most_999th: _Factor | None = Field(
        None,
        description="how many times the median the 99.9th percentile of single calls may be"
        " (`netproof measure tails`)",
    )
    pause_us: Annotated[float, Field(gt=0)] = Field(
        1000.0,
        description="from how many µs on a single call is a pause, if it also takes ten times the"
        " median (`netproof measure tails`)",
    )
    repetitions: Annotated[int, Field(ge=LEAST_REPETITIONS)] = Field(
        128,
        description="how often a victim's call is timed in a launch; 100 give a 99th percentile",
    )
    bytes: Annotated[int, Field(ge=4)] = Field(131072, description="message of an aggressor")
    arguments: Annotated[tuple[_Word, ...], Field(strict=False)] = Field(
        (), description="further arguments of IMB-MPI1 under load"
    )
