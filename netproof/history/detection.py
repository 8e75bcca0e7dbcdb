"""Find changes in series of nights: steps, drifts and single bad nights.

A series has one value for each night, a case's latency for instance. It is followed from its first
night to its last, so that each night is judged by what was known then: ``night`` has the statistic
of one night, ``followers`` its consequences. Everything works on plain numbers and knows nothing of
stores, cases or dates. docs/history.md shows how well it does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from netproof.history.changes import SETTINGS, DetectionSettings, Followed
from netproof.history.followers import Followers
from netproof.history.night import Floats, logarithms
from netproof.history.past import FollowedState


def follow(
    values: Sequence[float | None],
    settings: DetectionSettings = SETTINGS,
    accepted: Collection[int] = (),
) -> Followed:
    """Follow one series from its first night to its last.

    ``values``: above 0, in any unit; None: a night without a value. ``accepted``: indices of nights
    at which an intended new level begins. Raise NetproofError for a value that is not above 0.
    """
    return follow_all([values], settings, [accepted])[0]


def follow_all(
    series: Sequence[Sequence[float | None]],
    settings: DetectionSettings = SETTINGS,
    accepted: Sequence[Collection[int]] | None = None,
) -> list[Followed]:
    """Follow many series of the same nights, each as ``follow`` does, in much less time.

    Raise NetproofError for a value that is not above 0, and for series of different lengths.
    """
    return follow_on(series, settings, accepted)[0]


def follow_on(
    series: Sequence[Sequence[float | None]],
    settings: DetectionSettings = SETTINGS,
    accepted: Sequence[Collection[int]] | None = None,
    known: FollowedState | None = None,
    places: Sequence[int] | None = None,
) -> tuple[list[Followed], FollowedState]:
    """Follow many series as ``follow`` does, continuing from a state; return the new state too.

    ``known``: state with the same settings; ``places``: of each series in it, -1 for none. A series
    whose nights or intended levels up to then differ is followed from its first night. Raise
    NetproofError as ``follow_all``.
    """
    if not series:
        return [], FollowedState(np.empty((0, 0)), (), {}, {})
    logs = logarithms(series)
    followers = Followers(logs, settings)
    intended = tuple(map(frozenset, accepted or [()] * len(series)))
    if known is not None and known.logs.shape[1] > logs.shape[1]:
        known = None
    before = np.full(len(series), -1) if known is None else np.array(places)
    nights = 0 if known is None else known.logs.shape[1]
    if known is not None:
        there = np.flatnonzero(before >= 0)
        same = _same(known.logs[before[there]], logs[there, :nights])
        for number, whole in zip(there.tolist(), same.tolist(), strict=True):
            up_to = frozenset(night for night in intended[number] if night < nights)
            if not whole or known.accepted[before[number]] != up_to:
                before[number] = -1
        followers.go_on_from(known, before)
    restarted = before < 0
    starts = {night for several in intended for night in several}
    for night in range(0 if restarted.any() else nights, logs.shape[1]):
        among = restarted if night < nights else np.ones(len(series), bool)
        if night in starts:
            for number in np.flatnonzero(among).tolist():
                if night in intended[number]:
                    followers.accept(number, night)
        followers.add(night, among)
    return followers.followed(), followers.state(intended)


def _same(one: Floats, other: Floats) -> NDArray[np.bool_]:
    """Return which rows are equal, including missing values."""
    return ((one == other) | (np.isnan(one) & np.isnan(other))).all(axis=1)
