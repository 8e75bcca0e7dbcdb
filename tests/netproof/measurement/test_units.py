"""Units are converted once, and a share of nothing is refused."""

from __future__ import annotations

import pytest

from netproof.errors import NetproofError
from netproof.measurement.units import line_rate_share


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_line_rate_that_is_none_is_refused(rate):
    with pytest.raises(NetproofError, match="no line rate"):
        line_rate_share(1.0, rate)
