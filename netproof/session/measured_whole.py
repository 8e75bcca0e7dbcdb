"""Whether what a report has of a case is what its launches make."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.measurement.eager_limit import EagerLimit
from netproof.measurement.landmarks import LANDMARK_NAMES
from netproof.measurement.links import RailLinks
from netproof.session.measured import Measured, line_rate_of_case, made

SAME = 1e-9
"""Relative difference up to which a figure that is computed again is the one that was stored."""


def insist_on_whole(case: Case, values: Mapping[str, Any]) -> Measured:
    """What was measured of a case, from plain values, all of which is computed again.

    Raises NetproofError, naming the case, where something is missing or is not what comes of the
    rest: it is of another case, has no launches, or they are numbered otherwise; its curve and
    spread are not those of its launches; its line rate is not that of the link, its landmarks not
    those of its curves.
    """
    try:
        measured = Measured.from_json(dict(values))
        if measured.case != case:
            raise NetproofError(f"what was measured is of {measured.case}")
        numbers = [launch.number for launch in measured.launches]
        if numbers != list(range(1, len(numbers) + 1)):
            raise NetproofError(f"its launches are numbered {numbers}")
        again = made(
            case, measured.launches, measured.line_rate_mb_s, measured.peak_from, measured.crashes
        )
        if (again.curve, again.mad_us) != (measured.curve, measured.mad_us):
            raise NetproofError("its curve is not the median of its launches")
        _insist_on_link(measured, values)
        for name in LANDMARK_NAMES:
            stored, found = getattr(measured.landmarks, name), getattr(again.landmarks, name)
            if not _same(stored, found):
                raise NetproofError(f"its {name} is {stored}, and its curves have {found}")
            if not _same(measured.landmarks.interval(name), again.landmarks.interval(name)):
                raise NetproofError(f"the interval of its {name} is not that of its launches")
    except NetproofError as error:
        raise NetproofError(f"{case}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise NetproofError(f"{case}: what was measured cannot be read: {error!r}") from error
    return measured


def _insist_on_link(measured: Measured, values: Mapping[str, Any]) -> None:
    """The line rate is that of the partition's link, as far as the report has it."""
    extras, over_tcp = values["partition_extras"], values["environment_extras"]["mpi_over_tcp"]
    stored = measured.line_rate_mb_s
    links = RailLinks.of_extras(extras)
    found = line_rate_of_case(links, measured.case, mpi_over_tcp=over_tcp)
    if not _same(stored, found):
        raise NetproofError(f"its line rate is {stored} MB/s, and its link has {found}")
    from_bytes = extras["line_rate_from_bytes"] if stored else 0
    if measured.peak_from != from_bytes:
        raise NetproofError(
            f"its peak is looked for from {measured.peak_from} bytes, and not from {from_bytes}"
        )


def _same(stored: Any, found: Any) -> bool:
    """Whether a figure, or several, are what was computed again, but for rounding."""
    if isinstance(stored, EagerLimit) and isinstance(found, EagerLimit):
        return _same(dataclasses.astuple(stored), dataclasses.astuple(found))
    if isinstance(stored, tuple) and isinstance(found, tuple):
        return len(stored) == len(found) and all(map(_same, stored, found))
    if isinstance(stored, int | float) and isinstance(found, int | float):
        return math.isclose(stored, found, rel_tol=SAME)
    return stored is None and found is None
