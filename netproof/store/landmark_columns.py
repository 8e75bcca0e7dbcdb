"""Columns on the landmarks of a case's curve."""

from __future__ import annotations

import pyarrow as pa

from netproof.measurement import twin
from netproof.measurement.landmark_table import LANDMARKS, Landmark
from netproof.store.columns import BYTES_TYPE, MAP_TYPE, NUMBER_TYPE, StoreColumn

_EAGER_LIMIT = pa.struct(
    [
        ("size_below", pa.int64()),
        ("time_below_us", pa.float64()),
        ("rate_below_mb_s", pa.float64()),
        ("size_above", pa.int64()),
        ("time_above_us", pa.float64()),
        ("rate_above_mb_s", pa.float64()),
        ("step_us", pa.float64()),
    ]
)

_INTERVALS = pa.list_(
    pa.struct([("landmark", pa.string()), ("low", pa.float64()), ("high", pa.float64())])
)

_IN_UNIT = {"us": ", µs", "MB/s": ", MB/s", "B": ", bytes", "%": ""}


def _number(landmark: Landmark) -> StoreColumn:
    meaning = landmark.how + _IN_UNIT[landmark.unit]
    return StoreColumn(BYTES_TYPE if landmark.whole else NUMBER_TYPE, meaning, True)


_NUMBERS = {name: _number(one) for name, one in LANDMARKS.items()}

LANDMARK_COLUMNS = {
    **{name: column for name, column in _NUMBERS.items() if name not in twin.NAMES},
    "eager_limit": StoreColumn(
        _EAGER_LIMIT, "both sides of the eager limit; µs, MB/s, bytes", True
    ),
    "undefined": StoreColumn(
        MAP_TYPE, "landmarks that are not defined, each with the reason", True
    ),
    "intervals": StoreColumn(_INTERVALS, "landmarks with a 95 % interval, in their units", True),
    **{name: _NUMBERS[name] for name in twin.NAMES},
}
