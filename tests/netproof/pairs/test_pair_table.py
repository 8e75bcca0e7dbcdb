"""Of what pairs measured the table has what can be compared."""

from __future__ import annotations

import math

import pytest

from netproof.pairs.model import PairObservation, table_of
from netproof.site.partition import PairQuantity


def test_a_table_has_what_can_be_compared():
    seen = [
        PairObservation(5, ("a", "b"), rate_mb_s=1.0),
        PairObservation(5, ("c", "d"), rate_mb_s=2.0),
        PairObservation(6, ("a", "b"), rate_mb_s=1.0),
        PairObservation(7, ("a", "b"), rate_mb_s=1.0, alone=True),
        PairObservation(5, ("a", "x"), rate_mb_s=1.0),
        PairObservation(8, ("a", "b"), time_us=1.0),
    ]
    table = table_of(seen, ["a", "b", "c", "d"], PairQuantity.RATE)
    assert table.rows == 2
    assert table.slowness == pytest.approx([0.0, -math.log(2)])
