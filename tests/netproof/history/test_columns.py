"""Columns of many series keep each series by itself, and say what it has not."""

from __future__ import annotations

import numpy as np

from netproof.history.columns import LevelColumns, NewestColumns
from netproof.history.night import LONGEST, Estimate

BOTH, SECOND = np.array([0, 1]), np.array([1])


def test_a_level_keeps_its_newest_nights_and_counts_them_all():
    level = LevelColumns.unknown(2, memory=3)
    assert level.members(0) == []
    for night in range(5):
        level.append(SECOND, night, np.array([float(night)]), first=2)
    assert (level.members(0), level.members(1)) == ([], [2, 3, 4])
    assert level.since.tolist() == [0, 5]
    level.begin(1, [4], np.array([4.0]))
    assert (level.members(1), level.since[1]) == ([4], 1)
    assert np.isnan(level.values[1, :-1]).all()


def test_what_was_long_ago_is_what_was_known_with_the_first_nights():
    level = LevelColumns.unknown(2, memory=3)
    for night in range(4):
        level.known.level[:], level.known.noise[:] = night, 0.1
        level.append(BOTH, night, np.zeros(2), first=3)
    assert level.long_ago.tolist() == [[2, 2], [0.1, 0.1]]
    level.begin(0, [], np.zeros(0))
    assert np.isnan(level.long_ago[:, 0]).all()
    assert level.scale(1) == (3, 0.1)


def test_the_newest_nights_have_what_was_known_before_each():
    newest = NewestColumns.unknown(2)
    known = Estimate.unknown(1)
    known.level[:] = 7
    newest.append(SECOND, np.array([1.5]), known)
    assert newest.values[1, -1] == 1.5
    assert newest.before.level[1, -1] == 7
    assert np.isnan(newest.values[0]).all()
    newest.forget(1)
    assert np.isnan(newest.values[1]).all()
    assert newest.before.count[1].tolist() == [0] * LONGEST
