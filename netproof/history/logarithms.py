"""The values of series of nights as natural logarithms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netproof.errors import NetproofError
from netproof.history.night import Floats


def logarithms(series: Sequence[Sequence[float | None]]) -> Floats:
    """Return series x nights, NaN where a night has no value.

    Raise NetproofError for a value that is not above 0, and for series of different lengths.
    """
    lengths = sorted({len(values) for values in series})
    if len(lengths) > 1:
        raise NetproofError(
            f"series of {lengths[0]} and of {lengths[-1]} nights cannot be followed together:"
            " give each a value or None for every night"
        )
    values = np.array(series, dtype=float)
    missing = np.isnan(values)
    # None became NaN; a NaN that was given is a value.
    for number, night in np.argwhere(missing).tolist():
        missing[number, night] = series[number][night] is None
    with np.errstate(invalid="ignore"):
        bad = ~missing & ~(np.isfinite(values) & (values > 0))
    if bad.any():
        number, night = (int(place) for place in np.argwhere(bad)[0])
        raise NetproofError(
            f"series {number}, night {night}: {series[number][night]} has no logarithm: a value is"
            " above 0, or None for a missing one"
        )
    values[missing] = np.nan
    return np.log(values)
