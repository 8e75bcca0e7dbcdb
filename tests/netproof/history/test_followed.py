"""The state is stored: a night adds its own values, and the result is the same."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from made_nights import MadeNights, by, without

from netproof.errors import NetproofError
from netproof.history import followers, history_verdict, series
from netproof.history import values as night_values
from netproof.history.followers import Followers
from netproof.history.selection import NEWEST_SESSIONS, STRIDE, Selection
from netproof.history.series import Acceptance, chosen
from netproof.present.history import document
from netproof.store import StoredSession, questions

SYSTEM = "testbed"


def said(nights: MadeNights) -> str:
    """All that the history says."""
    return json.dumps(document(history_verdict.judge(nights.store), series=True))


def from_the_first(nights: MadeNights) -> str:
    """The same with nothing kept."""
    nights.store.followed(SYSTEM).unlink(missing_ok=True)
    return said(nights)


def asked(monkeypatch) -> list[str]:
    """The sessions whose values are read from here on."""
    found: list[str] = []

    def noted(real):
        def ask(store, sessions, **others):
            found.extend(stored.name for stored in sessions)
            return real(store, sessions, **others)

        return ask

    for name in ("nightly", "crashes", "counted"):
        monkeypatch.setattr(questions, name, noted(getattr(questions, name)))
    return found


@pytest.mark.nightly
@pytest.mark.slow
def test_night_after_night_says_what_all_nights_say_from_the_first(nights):
    """With steps, one that ends, a bad night, an accepted change, a case less and a case more."""
    slower = {18: by(1.3), 24: by(1.0), 26: by(1.5, environment="mpich"), 27: by(1.0)}
    now = by(1.0)

    for night in range(34):
        now = slower.get(night, now)
        now = by(1.25, environment="other") if night == 29 else now
        change = without(environment="other") if night < 3 or night == 20 else lambda rows: None
        stored = nights.add(night, now, change)
        if night == 22:
            accept(nights, nights.stored(19))
        if night == 31:
            accept(nights, stored)
        by_night = said(nights) if night > 12 else ""
        if night in (20, 23, 28, 33):
            kept = nights.store.followed(SYSTEM).read_bytes()
            assert from_the_first(nights) == by_night
            nights.store.followed(SYSTEM).write_bytes(kept)


def accept(nights: MadeNights, stored: StoredSession) -> None:
    covers = Selection(environment="mpich")
    series.accept(nights.store, Acceptance(SYSTEM, stored.name, "why", "who", "now", covers))


@pytest.mark.slow
def test_a_night_reads_its_own_values_and_goes_on_from_what_is_known(nights, monkeypatch):
    nights.add_many(12)
    said(nights)
    added = nights.add(12)
    read = asked(monkeypatch)
    added_nights = []
    add = Followers.add

    def counted(self, night, among):
        added_nights.append((night, int(among.sum())))
        return add(self, night, among)

    monkeypatch.setattr(Followers, "add", counted)
    verdict = history_verdict.judge(nights.store)
    assert read == [added.name] * 3
    single, pools = len(verdict.nights.series), len(verdict.nights.pools)
    assert (12, single + pools) in added_nights
    assert {count for night, count in added_nights if night == 0} == {pools}
    read.clear()
    history_verdict.judge(nights.store)
    assert read == []


@pytest.mark.slow
def test_what_is_damaged_is_made_anew(nights):
    nights.add_many(8)
    before = said(nights)
    path = nights.store.followed(SYSTEM)
    whole = path.read_bytes()
    for damaged in (
        *(whole[:cut] for cut in (0, 10, len(whole) // 2, len(whole) - 1)),
        *(_flipped(whole, at) for at in (3, 30, len(whole) // 3, len(whole) - 5)),
        whole.replace(b"netproof-followed %d" % night_values.FORMAT, b"netproof-followed 0", 1),
        b"\n".join([night_values._head(b"no arrays"), b"no arrays"]),
    ):
        path.write_bytes(damaged)
        assert night_values.load(nights.store, SYSTEM) is night_values.NOTHING
    assert said(nights) == before
    assert path.read_bytes() == whole


def _flipped(content: bytes, at: int) -> bytes:
    changed = bytearray(content)
    changed[at] ^= 1
    return bytes(changed)


@pytest.mark.slow
def test_a_session_that_is_put_there_anew_or_came_late_is_read_alone(nights, monkeypatch):
    for night in (0, 1, 2, 4, 5):
        nights.add(night)
    said(nights)
    read = asked(monkeypatch)
    os.utime(nights.store.path(nights.stored(2)) / "curves.parquet", ns=(1, 1))
    said(nights)
    assert read == [nights.stored(2).name] * 3
    read.clear()
    nights.add(3)
    by_night = said(nights)
    assert read == [nights.stored(3).name] * 3
    # All but the values begins again.
    assert from_the_first(nights) == by_night


@pytest.mark.slow
def test_other_sessions_than_the_usual_ones_are_not_kept_and_nothing_that_cannot_be_written(
    nights, monkeypatch
):
    nights.add_many(6)
    before = said(nights)
    kept = nights.store.followed(SYSTEM).read_bytes()
    history_verdict.judge(nights.store, last=3)
    history_verdict.judge(nights.store, session=nights.stored(3).name)
    assert nights.store.followed(SYSTEM).read_bytes() == kept
    assert said(nights) == before
    nights.store.followed(SYSTEM).unlink()

    def refuse(*arguments):
        raise NetproofError("the file system is full")

    monkeypatch.setattr(type(nights.store), "replace", refuse)
    verdict = history_verdict.judge(nights.store)
    assert verdict.not_kept == "the file system is full"
    assert verdict.nights.series


@pytest.mark.slow
def test_a_series_whose_values_changed_is_followed_from_its_first_night():
    random = np.random.default_rng(1)
    several = np.exp(0.01 * random.standard_normal((3, 40))).tolist()
    several[1][30:] = [1.3 * value for value in several[1][30:]]
    state = followers.follow_on([row[:35] for row in several])
    several[2][5] = None
    found = followers.follow_on(several, known=state, places=[0, 1, 2]).followed()
    assert found == followers.follow_all(several)
    assert found[1].changes


def test_the_first_session_stays_the_first_for_a_stride_of_nights(nights, monkeypatch):
    count = NEWEST_SESSIONS + 2 * STRIDE
    many = [nights.stored(night) for night in range(count)]
    for there in (NEWEST_SESSIONS - 1, NEWEST_SESSIONS + STRIDE - 1, NEWEST_SESSIONS + STRIDE):
        monkeypatch.setattr(
            type(nights.store), "sessions", lambda store, system=None, there=there: many[:there]
        )
        first = chosen(nights.store)[1][0]
        assert first == many[0 if there < NEWEST_SESSIONS + STRIDE else STRIDE]
