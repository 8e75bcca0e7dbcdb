"""The statistic of one night."""

from __future__ import annotations

import numpy as np
from made_series import quiet

from netproof.history import night as statistic


def test_more_of_a_change_never_has_a_larger_p_value():
    base = np.log(quiet(8, 63))
    before = statistic.estimated(base[np.newaxis, :60], np.full(1, np.nan), np.zeros((1, 3)))
    known = np.full((1, statistic.LONGEST), before)
    p_values = [
        statistic.scan(
            np.full((1, statistic.LONGEST), before["level"] + off * before["noise"]), known
        )[0]
        for off in np.arange(0, 3, 0.1)
    ]
    assert np.all(np.diff(np.ravel(p_values)) <= 0)
